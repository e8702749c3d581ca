"""The ranks of FedCP-QQ and FedCP^2-QQ, for m silos of n scores each.

Both are from Humbert, Le Bars, Bellet and Arlot, "One-shot federated conformal prediction", ICML 2023. The coverage
M(l, k) of the k-th smallest of m replies, each the l-th smallest score of its silo, is an integral over one variable
(docs/theory-federated.md, Theorem F1). Its inverse gives the published ranks.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.federated.certificates import DOUBT, coverage_fraction, is_simple
from confide.federated.quadrature import gauss_legendre
from confide.support import Level, bisect, exact_level, positive_integer, privacy_loss

# Gauss-Legendre nodes of an integral; beyond its interval the integrand differs from 0 and 1 by less than this
_NODES = 64
_NEGLIGIBLE = 1e-17

# The smallest k is rarely further from its first estimate than this; else the interval grows, first by this step
_NEAR = 2
_FIRST_STEP = 4.0

# Relative increases of levels, so that rounded values still reach the claimed level. The one that selects a pair is
# larger than the one that solves for its gamma, and both are larger than that of a plan for this gamma: so the plan has
# this pair and this correction
_ROUNDING = 1e-13
_ROUNDING_OF_GAMMA = 3 * _ROUNDING
_ROUNDING_OF_PAIR = 4 * _ROUNDING


@dataclass(frozen=True)
class RankChoice:
    """The choice of order statistics: l_j for every silo, k, and the exact coverage for continuous scores."""

    ranks: tuple[int, ...]
    k: int
    coverage: float


def qq_coverage(l: ArrayLike, k: ArrayLike, m: int, n: int) -> NDArray[np.float64]:
    """M(l, k): coverage of the k-th smallest of m replies, each the l-th smallest of n continuous scores.

    M(l, k) = 1 - int_0^1 P(Bin(m, I_t(l, n-l+1)) >= k) dt. It is a lower bound if scores have ties. l need not be an
    integer.

    Parameters
    ----------
    l
        Ranks within a silo, in [1, n]; broadcast with `k`.
    k
        Ranks among the replies, in [1, m].
    m, n
        Number of silos, number of scores in each.

    Returns
    -------
    numpy.ndarray
        float64 of the broadcast shape.

    Examples
    --------
    >>> round(float(qq_coverage(2, 3, m=4, n=5)), 6)
    0.379015
    """
    from scipy.special import betainc, betainccinv, betaincinv

    l, k = np.broadcast_arrays(np.asarray(l, dtype=np.float64), np.asarray(k, dtype=np.float64))

    # The interval on which the probability differs from 0 and 1
    low = betaincinv(l, n - l + 1, betaincinv(k, m - k + 1, _NEGLIGIBLE))
    high = betainccinv(l, n - l + 1, betaincinv(m - k + 1, k, _NEGLIGIBLE))

    # The integral over this interval; below it nothing is missed, above it everything
    x, w = gauss_legendre(_NODES)
    t = low[..., None] + (high - low)[..., None] * x
    inner = betainc(l[..., None], (n - l + 1)[..., None], t)
    missed = betainc(k[..., None], (m - k + 1)[..., None], inner) @ w
    coverage: NDArray[np.float64] = high - (high - low) * missed
    return coverage


class RankPairs(NamedTuple):
    """Pairs (l, k) of whole numbers: the ranks within a silo, and for each a rank among the replies."""

    l: NDArray[np.float64]
    k: NDArray[np.float64]

    def up_to(self, rank: int) -> "RankPairs":
        """The pairs with l <= rank."""
        within = self.l <= rank
        return RankPairs(self.l[within], self.k[within])


@dataclass(frozen=True)
class CoverageGoal:
    """The pairs (l, k) with M(l, k) >= wanted, for m silos of n scores; `wanted` is any number.

    M increases in l and in k.
    """

    m: int
    n: int
    wanted: float

    def coverage(self, l: ArrayLike, k: ArrayLike) -> NDArray[np.float64]:
        """M(l, k) for whole numbers; within 1e-12 of `wanted` exact where possible.

        Quadrature cannot distinguish 9/10 from slightly less, and a level that is met exactly must count as met.
        """
        coverage = qq_coverage(l, k, self.m, self.n)
        sizes = [self.n] * self.m
        doubtful = np.abs(coverage - self.wanted) < DOUBT
        if not doubtful.any() or not is_simple(sizes):
            return coverage
        l, k = np.broadcast_arrays(l, k)
        coverage = np.array(coverage)
        for index in map(tuple, np.argwhere(doubtful)):
            coverage[index] = float(coverage_fraction(sizes, [int(l[index])] * self.m, int(k[index])))
        return coverage

    def is_reached(self, l: ArrayLike, k: ArrayLike) -> NDArray[np.bool_]:
        """Whether each pair reaches the goal."""
        return self.coverage(l, k) >= self.wanted

    def pairs(self) -> RankPairs:
        """The ranks l that may be best, and for each the smallest k that reaches the goal; there may be none."""
        # Below the first l no k is enough, and above the first l with k = 1 all are worse
        first = bisect(lambda l: bool(self.is_reached(l, self.m)), 0, self.n + 1)
        last = min(bisect(lambda l: bool(self.is_reached(l, 1)), first - 1, self.n + 1), self.n)
        l = np.arange(first, last + 1, dtype=np.float64)
        return RankPairs(l, self._smallest_k(l) if l.size else l)

    def _smallest_k(self, l: NDArray[np.float64]) -> NDArray[np.float64]:
        """For every l the smallest k that reaches the goal, or m."""
        # Bisect between the last k that is too low and the first that is enough
        low, high = self._bracket(l)
        while (undecided := high - low > 1).any():
            middle = np.floor((low + high) / 2)
            is_enough = self.is_reached(l, np.maximum(middle, 1))
            low = np.where(undecided & ~is_enough, middle, low)
            high = np.where(undecided & is_enough, middle, high)
        return high

    def _bracket(self, l: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """For every l a k that is too low, or 0, and a larger one that is enough, or m."""
        from scipy.special import betainc

        # Around k = m G(wanted) the coverage crosses the goal: gallop down from there, then up
        estimate = np.floor(self.m * betainc(l, self.n - l + 1, self.wanted))
        low = np.clip(estimate - _NEAR, 0, self.m - 1)
        high = np.clip(estimate + _NEAR + 1, 1, self.m)
        step = _FIRST_STEP
        while (falls := (low > 0) & self.is_reached(l, np.maximum(low, 1))).any():
            high = np.where(falls, low, high)
            low = np.where(falls, np.maximum(low - step, 0), low)
            step *= 2
        step = _FIRST_STEP
        while (rises := (high < self.m) & ~self.is_reached(l, high)).any():
            low = np.where(rises, high, low)
            high = np.where(rises, np.minimum(high + step, self.m), high)
            step *= 2
        return low, high


def least_above(m: int, n: int, wanted: float, most_k: int | None = None) -> RankChoice | None:
    """The pair (l, k) with the least M(l, k) >= wanted, of several the one with the least l; `wanted` is any number.

    Examples
    --------
    >>> least_above(3, 3, 0.9)
    RankChoice(ranks=(3, 3, 3), k=3, coverage=0.9)
    """
    goal = CoverageGoal(m, n, wanted)
    l, k = goal.pairs()
    if not l.size:
        return None
    coverage = goal.coverage(l, k)
    coverage[k > (m if most_k is None else most_k)] = np.inf
    return least_of(l, k, coverage, m)


def least_of(
    l: NDArray[np.float64], k: NDArray[np.float64], coverage: NDArray[np.float64], m: int
) -> RankChoice | None:
    """The pair of least coverage; None if none is finite."""
    best = int(np.argmin(coverage))
    if not np.isfinite(coverage[best]):
        return None
    return RankChoice((int(l[best]),) * m, int(k[best]), float(coverage[best]))


@dataclass(frozen=True)
class PublishedChoice:
    """A published pair (rank = l + l_cor, k), where gamma is the share of alpha for the union bound.

    `compensation` is M(l + l_cor, k): the coverage if every silo returned exactly its target rank.
    """

    rank: int
    k: int
    gamma: float
    compensation: float


def published_correction(epsilon: float, candidates: int, m: int, share: float) -> int:
    """l_cor = ceil(2/epsilon log(B / (1 - (1 - share)^(1/m)))) with share = gamma alpha.

    Examples
    --------
    >>> published_correction(5.0, 100, 5, 0.01)
    5
    """
    return math.ceil(2 / epsilon * math.log(candidates / -math.expm1(math.log1p(-share) / m)))


def published_at(gamma: float, m: int, n: int, alpha: Level, epsilon: float, candidates: int) -> PublishedChoice | None:
    """The published choice for one gamma: the best pair for (1-alpha)/(1-gamma alpha), and l_cor; None if beyond n.

    Examples
    --------
    >>> published_at(0.01, 5, 200, 0.1, 5.0, 100)
    PublishedChoice(rank=189, k=2, gamma=0.01, compensation=0.93276...)
    """
    level = float(exact_level("alpha", alpha))
    share = gamma * level
    choice = least_above(m, n, (1 - level) / (1 - share) * (1 + _ROUNDING))
    if choice is None:
        return None
    rank = choice.ranks[0] + published_correction(epsilon, candidates, m, share)
    return PublishedChoice(rank, choice.k, gamma, float(qq_coverage(rank, choice.k, m, n))) if rank <= n else None


@lru_cache(maxsize=256)
def best_published(m: int, n: int, alpha: Level, epsilon: float, candidates: int) -> PublishedChoice | None:
    """The choice of least compensation over all gamma in (0, 1), for m silos of n scores; None if no rank is within n.

    Of all gamma that select the pair (l, k), the largest one has the least l_cor. Its level (1-alpha)/(1-gamma alpha)
    is M(l, k) itself. So for every l_cor there is one level, and for every l the smallest k that reaches it.

    Examples
    --------
    >>> best_published(5, 200, 0.1, 5.0, 100)
    PublishedChoice(rank=184, k=4, gamma=0.02176..., compensation=0.92567...)
    """
    level = float(exact_level("alpha", alpha))
    m = positive_integer("m", m)
    n = positive_integer("n", n)
    epsilon = privacy_loss("epsilon", epsilon)
    best: PublishedChoice | None = None
    all_pairs = CoverageGoal(m, n, 1 - level).pairs()
    for l_cor in range(published_correction(epsilon, candidates, m, level), n):
        # Stop when no pair of the level 1-alpha is better with this correction
        within = all_pairs.up_to(n - l_cor)
        bound = np.min(qq_coverage(within.l + l_cor, within.k, m, n), initial=np.inf)
        if not within.l.size or (best is not None and bound >= best.compensation):
            break
        share = -math.expm1(m * math.log1p(-min(candidates * math.exp(-epsilon * l_cor / 2), 1.0)))
        choice = _best_with_correction(l_cor, share, m, n, level)
        if choice is not None and (best is None or choice.compensation < best.compensation):
            best = choice
    return best


def _best_with_correction(l_cor: int, share: float, m: int, n: int, level: float) -> PublishedChoice | None:
    """The choice of least compensation with this l_cor, which suits up to this share of errors; None beyond n."""
    goal = CoverageGoal(m, n, (1 - level) / (1 - share) * (1 + _ROUNDING_OF_PAIR))
    pairs = goal.pairs().up_to(n - l_cor)
    if not pairs.l.size:
        return None
    compensation = qq_coverage(pairs.l + l_cor, pairs.k, m, n)
    least = int(np.argmin(compensation))
    l = pairs.l[least]
    k = pairs.k[least]

    # The largest gamma whose level (1-alpha)/(1-gamma alpha) this pair reaches
    gamma = (1 - (1 - level) / float(qq_coverage(l, k, m, n)) * (1 + _ROUNDING_OF_GAMMA)) / level
    return PublishedChoice(int(l) + l_cor, int(k), gamma, float(compensation[least]))
