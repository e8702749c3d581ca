"""`pps-laplace`: the Laplace histogram of Private Prediction Sets, version 1 (arXiv 2102.06202v1), for a public n.

Noisy counts c_j + Lap(2/epsilon) give F(z) = 1 - (1/n) sum_j (c_j + noise_j) 1{z < e_j}. The threshold is the first
candidate with F(e_k) >= (n+1)(1-alpha) / (n(1-gamma alpha)) + zeta. The loss is epsilon as claimed, because a replaced
record changes two counts by one. Coverage is at least 1 - alpha.

This module has the mechanism, then its level, the bound zeta on its noise, and the number of bins.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from confide.guarantee import RankLaw, RecordCount
from confide.mechanisms.interface import Mechanism
from confide.mechanisms.utilities import GRID, INT64_ROOM
from confide.selection import noisy_counts
from confide.support import ceil_to, float_above, require, scale_for

# Noise is a multiple of 1/STEPS record. Noise on this lattice is sampled exactly by OpenDP. Coupled with continuous
# Laplace noise it differs by less than one step per bin, which is added to zeta.
STEPS = 2**20

# The values of gamma that are tried.
GAMMAS = np.geomspace(1e-4, 0.1, 61)


@dataclass(frozen=True)
class LaplaceHistogram(Mechanism):
    """The published noisy histogram: `level` is what the noisy distribution function must reach, zeta included.

    `gamma` is the share of alpha reserved for the noise, and `scale` that of the Laplace noise in each bin, in records.
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
        """Add noise to all counts, and return the first candidate that reaches the level."""
        n = int(counts.sum())
        require("counts", GRID * n <= INT64_ROOM, "must fit into 64-bit arithmetic", remedy="Use mechanism='slopes'")
        noisy = noisy_counts(counts * STEPS, self.scale * STEPS)
        beyond = int(noisy.sum()) - np.cumsum(noisy)
        reached = n * STEPS - beyond >= math.ceil(self.level * n * STEPS)
        reached[-1] = True
        return int(np.argmax(reached))

    def certified(self, level: Fraction, m: int, records: RecordCount) -> Fraction:
        """The published claim, `level`, if this level is high enough (Theorem 2); else the same argument's bound."""
        n = records.least
        rank, fails = self._reached_rank(n, m, 1 - level)
        return max(Fraction(0), min(level, (1 - Fraction(fails)) * min(rank, n + 1) / (n + 1)))

    def rank_law(self, n: int, m: int) -> RankLaw:
        """Rank 0 with probability gamma/100, else the rank of the level less the noise."""
        rank, fails = self._reached_rank(n, m, Fraction(1, 100))
        if rank < 1:
            return RankLaw(np.zeros(0, np.int64), np.zeros(0), 1.0)
        return RankLaw(np.array([rank], dtype=np.int64), np.array([1 - fails]), fails)

    def _reached_rank(self, n: int, m: int, alpha: Fraction) -> tuple[int, float]:
        """A rank that the selected candidate reaches except with probability gamma alpha, and that probability."""
        fails = self.gamma * float(alpha)
        noise = Fraction(noise_bound(m, fails, self.scale)) + Fraction(1, 10**9)  # rounding must not raise the rank
        return math.ceil(self.level * n - noise), fails

    def coverage_at_most(self, n: int, m: int) -> float:
        """Upper bound on coverage for continuous scores, to which the mass of one bin must be added.

        Let f be the probability that the noise exceeds n zeta. Except with this probability the candidate before the
        selected one has fewer than x = n level + n zeta scores, for all data. So coverage is at most
        f + (1-f) ceil(x)/(n+1), as in the proof of Theorem 3 of version 1; the smallest one over a grid of f is taken.
        """
        fails = np.append(np.geomspace(1e-4, 0.1, 13), self.gamma / 10)
        most = np.ceil(float(self.level) * n + noise_bounds(m, fails, self.scale) + 1e-9)
        return float((fails + (1 - fails) * np.minimum(most / (n + 1), 1.0)).min())


def pps_laplace_for(n: int, alpha: Fraction, epsilon: float, m: int) -> LaplaceHistogram | None:
    """The mechanism for a public n; None if its level exceeds 1, where the answer is +inf for all data.

    gamma is the best of a grid between 1e-4 and 0.1.
    """
    # The level for each gamma, rounded up, with zeta by Theorem 2 or Corollary 1, whichever is smaller.
    scale = scale_for(2, epsilon)
    zeta = noise_bounds(m, GAMMAS * float(alpha), scale) / n
    levels = laplace_level(n, alpha, GAMMAS, zeta) + 1e-12

    # The smallest level, if a multiple of 1/GRID below 1 reaches it.
    best = int(np.argmin(levels))
    level = float(levels[best])
    return LaplaceHistogram(ceil_to(level, GRID), float(GAMMAS[best]), scale) if level <= 1 - 1 / GRID else None


# The level.


def laplace_level(
    n: int, alpha: Fraction, gamma: NDArray[np.float64], zeta: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The level of (4): (n+1)(1-alpha)/(n(1-gamma alpha)) + zeta."""
    return (n + 1) * (1 - float(alpha)) / (n * (1 - gamma * float(alpha))) + zeta


# zeta. By Theorem 2 it is the (1 - gamma alpha) quantile of max_k |sum_(j<=k) noise_j| / n. The paper simulates it.
# Here it is computed (`walk_quantiles`), so there is no simulation error. By Corollary 1 it is at most
# 4 sqrt(2 m log(4/(gamma alpha))) / (n epsilon).

# For a smaller gamma alpha, floating-point sums do not resolve the quantile, and Corollary 1 is used.
_LEAST_RESOLVED = 1e-9


def noise_bound(m: int, fails: float, scale: float) -> float:
    """A bound n zeta on the noise of cumulative counts of m bins, which fails with probability `fails`, gamma alpha."""
    return float(noise_bounds(m, np.array([fails]), scale)[0])


def noise_bounds(m: int, fails: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """`noise_bound` for several probabilities at once."""
    bounds = np.array([noise_closed_form(m, f, scale) for f in fails.tolist()])
    resolved = fails >= _LEAST_RESOLVED
    if resolved.any():
        quantiles = walk_quantiles(m, tuple(fails[resolved].tolist()), float(bounds[resolved].max()) / scale)
        bounds[resolved] = np.minimum(bounds[resolved], scale * quantiles + m / STEPS)
    return bounds


def noise_closed_form(m: int, fails: float, scale: float) -> float:
    """Corollary 1, in records: 4 sqrt(2 m log(4/(gamma alpha)))/epsilon with epsilon = 2/scale.

    Levy's inequality and Chernoff's bound with E[exp(r X)] <= exp(2 (r scale)^2) for r scale <= 1/sqrt(2), which
    requires m >= log(4/(gamma alpha)) = L. With fewer bins the largest such r gives sqrt(2) scale (L + m log 2).
    """
    log = math.log(4 / fails)
    return scale * (2 * math.sqrt(2 * m * log) if m >= log else math.sqrt(2) * (log + m * math.log(2)))


# zeta by Theorem 2: the largest absolute value of a walk of Laplace steps, exactly.
#
# S_k is a sum of k independent Laplace variables of scale 1. The density of S_k on (-t, t) for walks that never left
# this interval is T^k applied to a unit mass at 0, where T has the kernel exp(-|x-y|)/2. Since u = T f solves u - u'' =
# f with u' = -u at t and u' = u at -t, the even eigenfunctions of T are cos(w x) with w tan(w t) = 1, their eigenvalues
# 1/(1+w^2), and
#
#     P(max_(k<=m) |S_k| < t) = sum_i (-1)^i 2 / ( w_i sqrt(1+w_i^2) (t + 1/(1+w_i^2)) (1+w_i^2)^m ),
#
# an alternating sum of decreasing terms, w_i t in (i pi, i pi + pi/2). The truncation error is less than the next term.

# Terms of the sum below this are left out.
_NEGLIGIBLE = 1e-14

# Probability reserved for the rounding of the sum.
ROUNDING = 1e-12

# Steps of Newton's method for a frequency w_i.
_NEWTON_STEPS = 8

# Steps of bisection for a quantile.
_HALVINGS = 60


def walk_stays_below(m: int, t: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(max_(k<=m) abs(S_k) < t) for each t > 0, with an error below `ROUNDING`."""
    if m == 1:
        return -np.expm1(-t)

    # Newton's method for x = w t, where w tan(w t) = 1: x = i pi + arctan(t/x).
    largest_w = math.sqrt(_NEGLIGIBLE ** (-1 / (m + 1)) - 1)  # (1+w^2)^-(m+1) is negligible from here on
    i = np.arange(math.ceil(float(t.max()) * largest_w / math.pi) + 2)
    turns = i * math.pi
    t = t[:, None]
    x = turns + np.arctan2(t, turns + math.pi / 2)
    for _ in range(_NEWTON_STEPS):
        x = x - (x - turns - np.arctan2(t, x)) / (1 + t / (x * x + t * t))

    # The alternating sum.
    w2 = (x / t) ** 2
    size = 2 * t / (x * np.sqrt(1 + w2) * (t + 1 / (1 + w2))) * np.exp(-m * np.log1p(w2))
    return np.asarray(size @ np.where(i % 2, -1.0, 1.0))


@lru_cache(maxsize=256)
def walk_quantiles(m: int, fails: tuple[float, ...], top: float) -> NDArray[np.float64]:
    """Upper bounds on the smallest t with P(max_(k<=m) abs(S_k) >= t) at most each probability; `top` bounds all."""
    wanted = 1 - (np.array(fails) - ROUNDING)
    low = np.zeros(len(wanted))
    high = np.full(len(wanted), top)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = walk_stays_below(m, middle) >= wanted
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high


# The number of bins, by public simulations: how many, and their seed.
_RUNS = 1000
_SEED = 20210212


def optimal_bins(n: int, alpha: Fraction, epsilon: float, options: int = 40, *, aligned: bool = False) -> int:
    """The number of bins with the smallest mean threshold on uniform scores, averaged over positions of the edges.

    Algorithm 5 of version 1 compares one noisy threshold for each number of bins, with edges at j/m, which
    `aligned=True` averages. It prefers numbers of bins that happen to have an edge just above the level, which is no
    advantage for other scores. So without `aligned` all edges are shifted by parts of a bin. A few numbers near (n
    epsilon)^(2/3) are tried, each with the best gamma of the grid, in public simulations that are identical on every
    machine.
    """
    order = (n * epsilon) ** (2 / 3)
    numbers: list[int] = np.unique(np.maximum(10, np.geomspace(order / 10, 2 * order, options)).astype(int)).tolist()
    return min(numbers, key=lambda m: uniform_threshold(n, alpha, epsilon, m, aligned=aligned))


def uniform_threshold(
    n: int, alpha: Fraction, epsilon: float, m: int, runs: int = _RUNS, *, aligned: bool = False
) -> float:
    """The mean threshold on n uniform scores, by public simulation; 1 where it is +inf.

    The edges are j/m, or with `aligned=False` (j-1+u)/m with u uniform on (0, 1), and 1.
    """
    mechanism = pps_laplace_for(n, alpha, epsilon, m)
    if mechanism is None:
        return 1.0

    # The lowest bins, which reach the level with a probability below 1e-9, are drawn as one.
    level = float(mechanism.level)
    scale = mechanism.scale
    far = 7 * (math.sqrt(n * (1 - level) * level) + scale * math.sqrt(2 * m)) + 25 * scale
    bins = m - max(0, math.floor(m * (level - far / n)) - (not aligned))
    last_width = np.ones(runs) if aligned else (np.arange(runs) + 0.5) / runs  # of the last bin, in bins

    # Counts and noise of all runs at once, without the lowest bins.
    widths = np.full((runs, bins), 1 / m)
    widths[:, -1] = last_width / m
    lowest = np.maximum(1 - widths.sum(axis=1, keepdims=True), 0.0)
    rng = np.random.default_rng(_SEED)
    counts = rng.multinomial(n, np.hstack([lowest, widths]))[:, 1:]
    noisy = counts + rng.laplace(scale=scale, size=counts.shape)

    # The first bin that reaches the level, and its edge.
    beyond = noisy.sum(axis=1, keepdims=True) - np.cumsum(noisy, axis=1)
    reached = n - beyond >= level * n
    reached[:, -1] = True
    above = bins - 1 - np.argmax(reached, axis=1)  # bins above the selected one
    return float(1 - np.where(above > 0, above - 1 + last_width, 0.0).mean() / m)
