"""`pps-laplace`: the Laplace histogram of Private Prediction Sets, version 1.

Angelopoulos, Bates, Zrnic and Jordan, "Private Prediction Sets", arXiv 2102.06202v1. Noisy counts c_j + Lap(2/epsilon)
give F(z) = 1 - (1/n) sum_j (c_j + noise_j) 1{z < e_j}, and the threshold is the first candidate with

    F(e_k) >= (n+1)(1-alpha) / (n(1-gamma alpha)) + zeta.

Theorem 2: zeta is the (1 - gamma alpha) quantile of max_k |sum_(j<=k) noise_j| / n, by simulation. The simulation's
error is accounted for: an order statistic is used that lies below the quantile with probability at most 1e-6, and
1e-6 is taken from gamma alpha. Corollary 1: zeta = 4 sqrt(2 m log(4/(gamma alpha))) / (n epsilon), used where the
simulation cannot resolve gamma alpha or would be too long.

The noise is Laplace noise on a lattice of 2**-20 records, sampled exactly by OpenDP. Coupled with continuous Laplace
noise it differs by less than one lattice step per bin, which is added to zeta.

Privacy: two counts change by one when a record is replaced, so the loss is epsilon as claimed. n enters the level and
is public. Coverage is at least 1 - alpha.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.guarantee import RankLaw
from confide.mechanisms.interface import Mechanism
from confide.selection import noisy_counts, scale_for
from confide.support import ceil_to, float_above

STEPS = 2**20
"""Noise is a multiple of 1/STEPS record, and levels are multiples of 1/GRID."""

GRID = 2**24
UNSURE = 1e-6
"""Probability with which the simulated quantile may be too small; it is part of gamma alpha."""

_WALKS = 50_000
_MOST_STEPS = 2 * 10**7
_SEED = 20210212
_INT64_ROOM = 2**62


@dataclass(frozen=True)
class LaplaceHistogram(Mechanism):
    """The published noisy histogram, stated completely.

    Parameters
    ----------
    level
        The level that the noisy distribution function has to reach, zeta included, in (0, 1].
    gamma
        The share of alpha set aside for the noise.
    scale
        Scale of the Laplace noise in each bin, in records.

    Examples
    --------
    >>> mechanism = pps_laplace_for(5000, Fraction(1, 10), 1.0, 100)
    >>> mechanism.replace_one, round(float(mechanism.level), 3)
    (1.0, 0.922)
    """

    name: ClassVar[Literal["pps-laplace"]] = "pps-laplace"

    level: Fraction
    gamma: float
    scale: float

    @property
    def replace_one(self) -> float:
        """Loss when one record is replaced: two counts change by one."""
        return float_above(2 / Fraction(self.scale))

    def choose(self, counts: NDArray[np.int64]) -> int:
        """Add noise to all counts, and take the first candidate that reaches the level."""
        n = int(counts.sum())
        if GRID * n > _INT64_ROOM:
            raise InputError("counts hold more records than 64-bit arithmetic allows; use mechanism='slopes'")
        noisy = noisy_counts(counts * STEPS, self.scale * STEPS)
        beyond = int(noisy.sum()) - np.cumsum(noisy)
        reached = n * STEPS - beyond >= math.ceil(self.level * n * STEPS)
        reached[-1] = True
        return int(np.argmax(reached))

    def certified(self, level: Fraction, m: int, n: int | None, n_min: int | None) -> Fraction:
        """The published claim, `level`, if this level reaches it (Theorem 2); else what the same argument gives."""
        assert n is not None
        rank, fails = self._surely(n, m, 1 - level)
        return max(Fraction(0), min(level, (1 - Fraction(fails)) * min(rank, n + 1) / (n + 1)))

    def rank_law(self, n: int, m: int) -> RankLaw:
        """Rank 0 with probability gamma/100, else the rank that the level leaves above the noise."""
        rank, fails = self._surely(n, m, Fraction(1, 100))
        if rank < 1:
            return np.zeros(0, np.int64), np.zeros(0), 1.0
        return np.array([rank], dtype=np.int64), np.array([1 - fails]), fails

    def _surely(self, n: int, m: int, alpha: Fraction) -> tuple[int, float]:
        """A rank that the selected candidate reaches but for a probability of gamma alpha, and that probability."""
        fails = self.gamma * float(alpha)
        return math.ceil(self.level * n - Fraction(noise_bound(m, fails, self.scale)) - Fraction(1, 10**9)), fails

    def coverage_at_most(self, n: int, m: int) -> float:
        """Upper bound for continuous scores, up to the mass of one bin; the subject of the paper's Theorem 3.

        The candidate before the selected one did not reach the level, so A_J < n level + n zeta but for a probability
        of gamma alpha; the bound takes the best of a few failure probabilities.
        """
        best = 1.0
        for fails in np.geomspace(1e-4, 0.1, 13).tolist():
            over = noise_bound(m, fails, self.scale)
            best = min(best, (float(self.level * n) + over + 1) / (n + 1) + fails)
        return best


def pps_laplace_for(
    n: int, alpha: Fraction, epsilon: float, m: int, gamma: float | None = None
) -> LaplaceHistogram | None:
    """The mechanism for a public n; None if its level exceeds 1, where the answer is +inf whatever the data.

    gamma is the best of a grid between 1e-4 and 0.1, unless one is given.

    Examples
    --------
    >>> pps_laplace_for(200, Fraction(1, 10), 1.0, 100) is None
    True
    """
    scale = scale_for(2, epsilon)
    grid = np.geomspace(1e-4, 0.1, 61).tolist() if gamma is None else [gamma]
    level, gamma = min((published_level(n, alpha, m, g, scale), g) for g in grid)
    return LaplaceHistogram(ceil_to(level, GRID), gamma, scale) if level <= 1 - 1 / GRID else None


def published_level(n: int, alpha: Fraction, m: int, gamma: float, scale: float) -> float:
    """(n+1)(1-alpha)/(n(1-gamma alpha)) + zeta, with zeta by Theorem 2 or Corollary 1, whichever is smaller."""
    a = float(alpha)
    return (n + 1) * (1 - a) / (n * (1 - gamma * a)) + noise_bound(m, gamma * a, scale) / n + 1e-12


def noise_bound(m: int, fails: float, scale: float) -> float:
    """N zeta: max_k |sum_(j<=k) noise_j| over m bins stays below it but for a probability of `fails` = gamma alpha.

    Examples
    --------
    >>> round(noise_bound(100, 0.01, 2.0)), round(closed_form(100, 0.01, 2.0))
    (81, 138)
    """
    simulated = simulated_bound(m, fails)
    bound = closed_form(m, fails, scale)
    return bound if simulated is None else min(bound, scale * simulated + m / STEPS)


def closed_form(m: int, fails: float, scale: float) -> float:
    """Corollary 1, in records: 4 sqrt(2 m log(4/(gamma alpha)))/epsilon with epsilon = 2/scale.

    Levy's inequality and Chernoff's bound with E[exp(r X)] <= exp(2 (r scale)^2) for r scale <= 1/sqrt(2), which asks
    for m >= log(4/(gamma alpha)) = L. With fewer bins the largest such r gives sqrt(2) scale (L + m log 2).
    """
    logs = math.log(4 / fails)
    return scale * (2 * math.sqrt(2 * m * logs) if m >= logs else math.sqrt(2) * (logs + m * math.log(2)))


def simulated_bound(m: int, fails: float) -> float | None:
    """The (1 - fails) quantile of max_k |walk_k| for unit Laplace steps, from above; None if it cannot be resolved.

    The simulation is public and the same everywhere (a fixed seed). The r-th smallest of K simulated maxima lies below
    the quantile only if at least r of them do, so r is the smallest with P(Bin(K, 1 - fails') >= r) <= 1e-6, where
    fails' = fails - 1e-6.
    """
    from scipy.stats import binom

    walks = simulated_maxima(m)
    if walks is None or fails <= 2 * UNSURE:
        return None
    rank = int(binom.isf(UNSURE, len(walks), 1 - (fails - UNSURE))) + 1
    return float(walks[rank - 1]) if rank <= len(walks) else None


@lru_cache(maxsize=64)
def simulated_maxima(m: int) -> NDArray[np.float64] | None:
    """Sorted maxima of |walks| of m unit Laplace steps; None for m so large that too few walks can be made."""
    walks = min(_WALKS, _MOST_STEPS // m)
    if walks < 1000:
        return None
    rng, out, block = np.random.default_rng(_SEED), np.empty(walks), max(1, 4_000_000 // m)
    for start in range(0, walks, block):
        steps = rng.laplace(size=(min(block, walks - start), m))
        out[start : start + block] = np.abs(np.cumsum(steps, axis=1, out=steps), out=steps).max(axis=1)
    return np.sort(out)


def optimal_bins(n: int, alpha: Fraction, epsilon: float, options: int = 25) -> int:
    """A number of bins near (n epsilon)^(2/3), the subject of version 1's Algorithm 5.

    For uniform scores the threshold is the level plus half a bin. That sum is minimised over multiples of the order,
    with the walk's quantile by the reflection principle, P(max |walk| > x) near 4 P(N > x/(scale sqrt(2 m))): it
    touches efficiency only, and depends on public numbers only.

    Examples
    --------
    >>> optimal_bins(5000, Fraction(1, 10), 1.0)
    65
    """
    from scipy.special import ndtri

    order, scale, a = (n * epsilon) ** (2 / 3), scale_for(2, epsilon), float(alpha)
    tried = np.unique(np.maximum(10, np.geomspace(order / 8, 2 * order, options)).astype(int))
    gammas = np.geomspace(1e-4, 0.1, 31)
    levels = (n + 1) * (1 - a) / (n * (1 - gammas * a))
    noise = scale * np.sqrt(2 * tried[:, None]) * -ndtri(gammas * a / 4) / n
    return int(tried[np.argmin((levels + noise).min(axis=1) + 0.5 / tried)])
