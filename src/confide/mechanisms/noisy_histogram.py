"""`noisy-histogram`: a histogram with discrete Laplace noise, calibrated by the random-rank lemma.

The release of Private Prediction Sets version 1 (arXiv 2102.06202v1) with the calibration of this project: no gamma and
no union bound. With noisy counts c_j + Z_j, the selected candidate is the first k with

    n - sum_(j>k) (c_j + Z_j) >= T        n public, T a number;
    the same with n replaced by the noisy total, in T(n) = rate (n+1) + offset too        n secret.

Hence B_J >= T - N with N = max_k sum_(j>k) (-Z_j), or N = (1-rate) sum_j Z_j + max_k sum_(j>k) (-Z_j) if n is secret:
the noise is a random rank R = ceil(T - N), independent of the data, whose law is known (docs/theory.md, Theorem C1;
docs/methods.md has the argument for a secret n). Everything released is a function of the noisy counts, whose loss is
2/scale (replace-one) and 1/scale (add/remove).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from confide.guarantee import RankLaw, maximum, total_above
from confide.mechanisms.interface import Mechanism
from confide.selection import noisy_counts
from confide.support import float_above, scale_for

_ROUNDING = 1e-7
"""Ranks reserved for the rounding of the convolutions."""


@dataclass(frozen=True)
class NoisyHistogram(Mechanism):
    """Discrete Laplace noise on the counts, and the first candidate that reaches a target rank.

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
        """Add noise to all counts, and return the first candidate that reaches the target."""
        noisy = noisy_counts(counts, self.scale)
        return self.first(noisy, int(noisy.sum()) if self.rate else int(counts.sum()))

    def first(self, noisy: NDArray[np.int64], n: int) -> int:
        """The first candidate k with n - (noisy counts beyond k) >= T(n); the last one if there is none."""
        beyond = int(noisy.sum()) - np.cumsum(noisy)
        reached = n - beyond >= math.ceil(self.target(n))
        reached[-1] = True
        return int(np.argmax(reached))

    def certified(self, level: Fraction, m: int, n: int | None, n_min: int | None) -> Fraction:
        """Guaranteed marginal coverage: E[min(R, n+1)]/(n+1) for a public n, else the smallest for n >= n_min."""
        if n is not None:
            return max(Fraction(0), Fraction(_public_coverage(n, self.offset, self.scale, m) - _ROUNDING))
        assert n_min is not None
        short = _shortfall(self.rate, self.offset, self.scale, m, n_min)
        return max(Fraction(0), self.rate - Fraction(max(0.0, short)) / (n_min + 1))

    def rank_law(self, n: int, m: int) -> RankLaw | None:
        """The law of R = T - M for a public n; for a secret n it is not tabulated."""
        if self.rate:
            return None
        walk, top = maximum(self.scale, m - 1), math.ceil(self.offset)
        ranks = top - np.arange(len(walk.law), dtype=np.int64)
        keep = ranks >= 1
        return ranks[keep][::-1], walk.law[keep][::-1], 1.0 - float(walk.law[keep].sum())

    def coverage_at_most(self, n: int, m: int) -> float:
        """Upper bound for continuous scores, up to the mass of one bin: A_J exceeds T by at most a maximum of noise."""
        return min(1.0, (float(self.target(n)) + maximum(self.scale, m - 1).mean + 1) / (n + 1))


def noisy_histogram_for(level: Fraction, epsilon: float, m: int, n: int | None, n_min: int) -> NoisyHistogram | None:
    """The smallest target rank that guarantees `level`; None if a public n has no such rank.

    epsilon is the loss per record, under replace-one if n is given (public), under add/remove if it is None (secret).

    Examples
    --------
    >>> float(noisy_histogram_for(Fraction(9, 10), 1.0, 100, 1000, 1).offset)
    922.0
    >>> noisy_histogram_for(Fraction(9, 10), 1.0, 100, 50, 1) is None
    True
    """
    if n is None:
        scale = scale_for(1, epsilon)
        return NoisyHistogram(level, _private_offset(level, scale, m, n_min), scale)
    scale = scale_for(2, epsilon)
    low, high = math.floor(level * n), n
    if not _serves(n, high, scale, m, level):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _serves(n, middle, scale, m, level) else (middle, high)
    return NoisyHistogram(Fraction(0), Fraction(high), scale)


def optimal_bins(n: int, epsilon: float) -> int:
    """The number of bins that minimises half a bin plus the mean of the largest noise, for a public n.

    1/(2m) + 2/(n epsilon) sqrt(4m/pi), the mean maximum of a walk of m steps being about sqrt(4m/pi) scales.

    Examples
    --------
    >>> optimal_bins(5000, 1.0)
    170
    """
    best = float((n * epsilon * math.sqrt(math.pi) / 4) ** (2 / 3))
    return max(2, round(best))


def _serves(n: int, target: int, scale: float, m: int, level: Fraction) -> bool:
    return _public_coverage(n, Fraction(target), scale, m) - _ROUNDING >= level


def _public_coverage(n: int, target: Fraction, scale: float, m: int) -> float:
    """E[min(R, n+1)]/(n+1) for R = (ceil(T) - M)_+, leaked mass counted as R = 0."""
    walk = maximum(scale, m - 1)
    ranks = np.clip(math.ceil(target) - np.arange(len(walk.law)), 0, n + 1)
    return float(walk.law @ ranks) / (n + 1)


def _shortfall(rate: Fraction, offset: Fraction, scale: float, m: int, n_min: int) -> float:
    """Number of ranks that `offset` lacks for coverage >= rate at every n >= n_min; at most 0 if enough.

    Missed mass times (n+1) is at most h(x) = E[(N - x)_+], x = offset - (1-rate)(n+1), and h(x) + x grows with x, so
    the smallest n decides.
    """
    x = float(offset - (1 - rate) * (n_min + 1))
    return _missed(x, 1 - rate, scale, m) + x + _ROUNDING - float(offset)


def _missed(x: float, weight: Fraction, scale: float, m: int) -> float:
    """An upper bound on E[(N - x)_+] for N = weight * (sum of all noise) + M: (a+b)_+ <= a_+ + b_+, best split of x."""
    walk, total = maximum(scale, m - 1), total_above(scale, m, float(weight))
    spread = float(weight) * scale * math.sqrt(2 * m)
    shares = spread * np.concatenate([-np.geomspace(64, 0.25, 9), np.linspace(0, 6, 25)])
    return min(walk.above(x - share) + total(share) for share in shares.tolist())


def _private_offset(level: Fraction, scale: float, m: int, n_min: int) -> Fraction:
    unit = level.denominator * -(-16 // level.denominator)
    low, high = 0, unit
    while _shortfall(level, Fraction(high, unit), scale, m, n_min) > 0:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        enough = _shortfall(level, Fraction(middle, unit), scale, m, n_min) <= 0
        low, high = (low, middle) if enough else (middle, high)
    return Fraction(high, unit)
