"""Coverage with its exact confidence interval. Evaluation numbers are computed from labels and are not private."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from confide.arrays import as_array
from confide.checks import positive_integer
from confide.errors import InputError, InputTypeError
from confide.rationals import Level, exact_level


@dataclass(frozen=True)
class CoverageEstimate:
    """Share of records covered, and its Clopper-Pearson interval.

    Examples
    --------
    >>> print(coverage(np.array([True] * 90 + [False] * 10)))
    0.900 (95 % interval 0.824 to 0.951, n=100)
    """

    value: float
    low: float
    high: float
    confidence: float
    n: int

    def __str__(self) -> str:
        return f"{self.value:.3f} ({100 * self.confidence:g} % interval {self.low:.3f} to {self.high:.3f}, n={self.n})"


def coverage(covered: ArrayLike, confidence: Level = 0.95) -> CoverageEstimate:
    """Coverage with an exact (Clopper and Pearson 1934) two-sided confidence interval.

    Parameters
    ----------
    covered
        bool, shape (n,): whether each true label is in its set, for example `sets.contains(labels)`.
    confidence
        Confidence of the interval, in (0, 1).

    Raises
    ------
    InputError, InputTypeError
        If `covered` is empty, not one-dimensional or not boolean.
    """
    inside = as_array("covered", covered)
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
    from scipy.special import betaincinv

    n = positive_integer("n", n)
    if not 0 <= hits <= n:
        raise InputError(f"hits must lie between 0 and n={n}; found {hits}")
    level = float(exact_level("confidence", confidence))
    tail = (1 - level) / 2
    low = 0.0 if hits == 0 else float(betaincinv(hits, n - hits + 1, tail))
    high = 1.0 if hits == n else float(betaincinv(hits + 1, n - hits, 1 - tail))
    return CoverageEstimate(hits / n, low, high, level, n)
