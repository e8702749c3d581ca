"""Coverage of labelled records, and exact limits for a share or a mean."""

from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError, InputTypeError
from confide.support import Described, Level, bisect, exact_level, positive_integer, require

CHANCE = 0.001
"""Largest probability that a correct release is called broken; a guarantee with probability 1 - delta adds delta."""


@dataclass(frozen=True, repr=False)
class CoverageEstimate(Described):
    """Share of records covered, and its exact interval: of Clopper and Pearson, or of a count with noise.

    Examples
    --------
    >>> print(coverage_from_counts(90, 100))
    0.900 (95 % interval 0.824 to 0.951, n=100)
    """

    value: float
    low: float
    high: float
    confidence: float
    n: int

    def _brief(self) -> str:
        return f"{self.value:.3f} ({100 * self.confidence:g} % interval {self.low:.3f} to {self.high:.3f}, n={self.n})"


def share_covered(inside: NDArray[np.bool_], confidence: Level = 0.95) -> CoverageEstimate:
    """Coverage of records of which each is covered or not; bool, shape (n,)."""
    if inside.dtype != np.bool_:
        raise InputTypeError("covered", "must be boolean", got=f"dtype {inside.dtype}")
    if inside.ndim != 1 or inside.size == 0:
        raise InputError("covered", "must be one-dimensional and not empty", got=f"shape {inside.shape}")
    return coverage_from_counts(int(inside.sum()), inside.size, confidence)


def coverage_from_counts(hits: int, n: int, confidence: Level = 0.95) -> CoverageEstimate:
    """Coverage from the number of covered records and the number of records."""
    n = positive_integer("n", n)
    require("hits", 0 <= hits <= n, f"must lie between 0 and n={n}", got=str(hits))
    level = float(exact_level("confidence", confidence))
    low, high = exact_interval(np.array([hits]), np.array([n]), level)
    return CoverageEstimate(hits / n, float(low[0]), float(high[0]), level, n)


def exact_interval(
    hits: NDArray[np.int64], n: NDArray[np.int64], confidence: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Clopper-Pearson limits for many counts at once; [0, 1] where n is 0.

    Examples
    --------
    >>> low, high = exact_interval(np.array([9, 0]), np.array([10, 0]), 0.95)
    >>> low.round(3), high.round(3)
    (array([0.555, 0.   ]), array([0.997, 1.   ]))
    """
    from scipy.special import betaincinv

    tail = (1 - confidence) / 2
    missed = n - hits
    low = np.where(hits == 0, 0.0, betaincinv(np.maximum(hits, 1), missed + 1, tail))
    high = np.where(missed == 0, 1.0, betaincinv(hits + 1, np.maximum(missed, 1), 1 - tail))
    return low, high


def count_limit(hits: int, n: int) -> float:
    """The largest coverage at which so few of n records are covered with probability CHANCE/2 (Clopper and Pearson)."""
    return float(exact_interval(np.array([hits]), np.array([n]), 1 - CHANCE)[1][0])


def mean_limit(mean: float, n: int, chance: float = CHANCE) -> float:
    """The upper limit for a mean of n independent numbers in [0, 1], wrong with probability `chance` / 2 at most.

    See Hoeffding 1963, Theorem 1.
    """
    from scipy.special import rel_entr

    # The limit is searched among multiples of 1/steps: from it on, means as small as this one are too improbable.
    steps = 10**9
    exponent = log(2 / chance) / n

    def is_excluded(step: int) -> bool:
        return float(rel_entr(mean, step / steps) + rel_entr(1 - mean, 1 - step / steps)) >= exponent

    return bisect(is_excluded, int(mean * steps), steps) / steps
