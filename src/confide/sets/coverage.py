"""The share of records covered, with its exact interval (Clopper and Pearson 1934). Not private: it uses labels."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError, InputTypeError
from confide.support import Level, Shown, exact_level, positive_integer


@dataclass(frozen=True, repr=False)
class CoverageEstimate(Shown):
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

    def __str__(self) -> str:
        return f"{self.value:.3f} ({100 * self.confidence:g} % interval {self.low:.3f} to {self.high:.3f}, n={self.n})"

    def _brief(self) -> str:
        return str(self)


def share_covered(inside: NDArray[np.bool_], confidence: Level = 0.95) -> CoverageEstimate:
    """Coverage of records of which each is covered or not; bool, shape (n,).

    Raises
    ------
    InputError, InputTypeError
        If there are none, or they are no booleans.

    Examples
    --------
    >>> share_covered(np.array([True, False])).value
    0.5
    """
    if inside.dtype != np.bool_:
        raise InputTypeError(f"covered must be boolean; found dtype {inside.dtype}")
    if inside.ndim != 1 or inside.size == 0:
        raise InputError(f"covered must be one-dimensional and not empty; found shape {inside.shape}")
    return coverage_from_counts(int(inside.sum()), inside.size, confidence)


def coverage_from_counts(hits: int, n: int, confidence: Level = 0.95) -> CoverageEstimate:
    """Coverage from the number of covered records and the number of records.

    Examples
    --------
    >>> coverage_from_counts(9, 10).value
    0.9
    """
    n = positive_integer("n", n)
    if not 0 <= hits <= n:
        raise InputError(f"hits must lie between 0 and n={n}; found {hits}")
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


def promise_notes(promised: float | None) -> list[str]:
    """What is promised of sets or intervals in words, where it is known."""
    return [] if promised is None else [f"promised: coverage at least {promised:.4g} on average"]
