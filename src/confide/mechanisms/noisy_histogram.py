"""`noisy-histogram`: a histogram with discrete Laplace noise, calibrated by the random-rank lemma.

The release of Private Prediction Sets version 1 (arXiv 2102.06202v1) with the calibration of this project: no gamma and
no union bound. With noisy counts c_j + Z_j, candidate k reaches the target if

    n - sum_(j>k) (c_j + Z_j) >= T        n public, T a number;
    the same with n replaced by the noisy total, in T(n) = rate (n+1) + offset too        n secret.

The last rule selects the first candidate at which, and beyond which everywhere, the target is reached. Then
B_J >= T - N for a random N that is independent of the data: for a public n the end of the noise walk
(docs/theory-last-rule.md, Theorems W1 and W2; docs/methods.md). Everything released is a function of the noisy
counts, whose loss is 2/scale (replace-one) and 1/scale (add/remove).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from confide.guarantee import (
    RankLaw,
    chosen_by_last_rule,
    maximum,
    missed_by_last_rule,
    rank_law_of,
    walk_end,
)
from confide.mechanisms.interface import Mechanism
from confide.selection import noisy_counts
from confide.support import bisect, float_above, scale_for

_ROUNDING = 1e-7
"""Ranks reserved for the rounding of the convolutions."""


@dataclass(frozen=True)
class NoisyHistogram(Mechanism):
    """Discrete Laplace noise on the counts, and a candidate that reaches a target rank.

    Parameters
    ----------
    rate
        Growth of the target rank with n + 1, in [0, 1); 0 when n is public.
    offset
        Constant part of the target rank T(n) = rate (n+1) + offset.
    scale
        Scale of the noise in each bin, in records.

    Examples
    --------
    >>> mechanism = NoisyHistogram(Fraction(0), Fraction(930), scale=2.0)
    >>> mechanism.replace_one, float(mechanism.certified(Fraction(9, 10), 100, 1000, None)) > 0.9
    (1.0, True)
    """

    name: ClassVar[Literal["noisy-histogram"]] = "noisy-histogram"

    rate: Fraction
    offset: Fraction
    scale: float

    @property
    def replace_one(self) -> float:
        """Loss when one record is replaced: two counts change by one."""
        return float_above(2 / Fraction(self.scale))

    @property
    def add_remove(self) -> float | None:
        """Loss when one record is added or removed: one count changes by one."""
        return float_above(1 / Fraction(self.scale)) if self.rate else None

    def target(self, n: int) -> Fraction:
        """The target rank for n records."""
        return self.rate * (n + 1) + self.offset

    def choose(self, counts: NDArray[np.int64]) -> int:
        """Add noise to all counts, and return the index that the last rule selects."""
        noisy = noisy_counts(counts, self.scale)
        return self.selected(noisy, int(noisy.sum()) if self.rate else int(counts.sum()))

    def selected(self, noisy: NDArray[np.int64], n: int) -> int:
        """The index from noisy counts; a candidate k with n - (noisy counts beyond k) >= T(n) reaches the target."""
        return int(chosen_by_last_rule(noisy, n, math.ceil(self.target(n))))

    def certified(self, level: Fraction, m: int, n: int | None, n_min: int | None) -> Fraction:
        """Guaranteed marginal coverage: E[min(R, n+1)]/(n+1) for a public n, else the smallest for n >= n_min."""
        if n is not None:
            return max(Fraction(0), Fraction(_public_coverage(self, n, m) - _ROUNDING))
        assert n_min is not None
        short = _shortfall(self, m, n_min)
        return max(Fraction(0), self.rate - Fraction(max(0.0, short)) / (n_min + 1))

    def rank_law(self, n: int, m: int) -> RankLaw | None:
        """The law of R = T - N for a public n; for a secret n it is not tabulated."""
        if self.rate:
            return None
        return rank_law_of(math.ceil(self.offset), self.deficit(m))

    def deficit(self, m: int) -> NDArray[np.float64]:
        """P(N = 0), P(N = 1), ... of the rank deficit for a public n; missing mass counts as N = +inf."""
        return _end(self.scale, m - 1)

    def coverage_at_most(self, n: int, m: int) -> float:
        """Upper bound for continuous scores, up to the mass of one bin.

        Candidate J - 1, or one beyond it, misses T. So A_J exceeds T by the walk's maximum at most.
        """
        return min(1.0, (float(self.target(n)) + maximum(self.scale, m - 1).mean + 1) / (n + 1))


def noisy_histogram_for(level: Fraction, epsilon: float, m: int, n: int | None, n_min: int) -> NoisyHistogram | None:
    """The smallest target rank that guarantees `level`; None if a public n has no such rank.

    epsilon is the loss per record, under replace-one if n is given (public), under add/remove if it is None (secret).

    Examples
    --------
    >>> float(noisy_histogram_for(Fraction(9, 10), 1.0, 100, 1000, 1).offset)
    912.0
    >>> noisy_histogram_for(Fraction(9, 10), 1.0, 100, 50, 1) is None
    True
    """
    if n is None:
        return _of_secret_size(level, scale_for(1, epsilon), m, n_min)
    scale = scale_for(2, epsilon)

    def serves(target: int) -> bool:
        made = NoisyHistogram(Fraction(0), Fraction(target), scale)
        return _public_coverage(made, n, m) - _ROUNDING >= level

    if not serves(n):
        return None
    return NoisyHistogram(Fraction(0), Fraction(bisect(serves, math.floor(level * n), n)), scale)


def optimal_bins(n: int, epsilon: float) -> int:
    """The number of bins that minimises half a bin plus the mean price of the noise, for a public n.

    1/(2m) + 2/(n epsilon) sqrt(m/pi), because the end of a walk of m steps is sqrt(m/pi) scales above 0 in the mean.

    Examples
    --------
    >>> optimal_bins(5000, 1.0)
    270
    """
    best = float((n * epsilon * math.sqrt(math.pi) / 2) ** (2 / 3))
    return max(2, round(best))


@lru_cache(maxsize=64)
def _end(scale: float, steps: int) -> NDArray[np.float64]:
    """The law of the walk's end for discrete Laplace steps; the array must not be changed."""
    a = math.exp(-1 / scale)
    z = np.arange(-math.ceil(40 * scale), math.ceil(40 * scale) + 1)
    return walk_end((1 - a) / (1 + a) * np.exp(-np.abs(z) / scale), steps)


def _public_coverage(mechanism: NoisyHistogram, n: int, m: int) -> float:
    """E[min(R, n+1)]/(n+1) for R = (ceil(T) - N)_+, missing mass counted as R = 0."""
    law = mechanism.deficit(m)
    ranks = np.clip(math.ceil(mechanism.offset) - np.arange(len(law)), 0, n + 1)
    return float(law @ ranks) / (n + 1)


def _shortfall(mechanism: NoisyHistogram, m: int, n_min: int) -> float:
    """Number of ranks that the offset lacks for coverage >= rate at every n >= n_min; at most 0 if enough.

    Missed mass times (n+1) is at most h(x), x = offset - (1-rate)(n+1), and h(x) + x grows with x, so the smallest n
    decides.
    """
    rate, offset, scale = mechanism.rate, mechanism.offset, mechanism.scale
    x = float(offset - (1 - rate) * (n_min + 1))
    return missed_by_last_rule(x, scale, m, float(rate)) + x + _ROUNDING - float(offset)


def _of_secret_size(level: Fraction, scale: float, m: int, n_min: int) -> NoisyHistogram:
    unit = level.denominator * -(-16 // level.denominator)

    def made(offset: int) -> NoisyHistogram:
        return NoisyHistogram(level, Fraction(offset, unit), scale)

    def serves(offset: int) -> bool:
        return _shortfall(made(offset), m, n_min) <= 0

    low, high = 0, unit
    while not serves(high):
        low, high = high, 2 * high
    return made(bisect(serves, low, high))
