"""`fedcp2-qq`, and `fedcp2-qq-sum`, which reveals only the sum of the replies: for equal public sizes.

Both are from Humbert, Le Bars, Bellet and Arlot, "One-shot federated conformal prediction", ICML 2023. The coverage
M(l, k) of the k-th smallest of m replies, each the l-th smallest score of its silo, is an integral over one variable
(docs/theory-federated.md, Theorem F1). Its inverse gives the published ranks. `confide.papers.fedcp_qq` has the
published method without privacy.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.federated.certificates import DOUBT, coverage_fraction, is_simple, order_statistic_coverage
from confide.federated.protocols.channels import Channel
from confide.federated.protocols.sorted_replies import SortedReplies
from confide.federated.protocols.threshold_plan import too_few_records
from confide.federated.quadrature import gauss_legendre
from confide.federated.terms import Terms
from confide.mechanisms import PrivatePredictionSets
from confide.support import Level, bisect, exact_level, positive_integer, privacy_loss, require, scale_for

# Gauss-Legendre nodes of an integral; beyond its interval the integrand differs from 0 and 1 by less than this
_NODES = 64
_NEGLIGIBLE = 1e-17

# Relative increase of levels, so that rounded values still reach the claimed level
_ROUNDING = 1e-13


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


def least_above(m: int, n: int, wanted: float, most_k: int | None = None) -> RankChoice | None:
    """The pair (l, k) with the least M(l, k) >= wanted, of several the one with the least l; `wanted` is any number.

    Examples
    --------
    >>> least_above(3, 3, 0.9)
    RankChoice(ranks=(3, 3, 3), k=3, coverage=0.9)
    """
    l, k = smallest_k_of_ranks(m, n, wanted)
    if not l.size:
        return None
    coverage = settled(qq_coverage(l, k, m, n), l, k, m, n, wanted)
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


def settled(coverage: ArrayLike, l: ArrayLike, k: ArrayLike, m: int, n: int, wanted: float) -> NDArray[np.float64]:
    """Values of M(l, k), of which those within 1e-12 of `wanted` are replaced by exact ones where possible.

    Quadrature cannot distinguish 9/10 from slightly less, and a level that is met exactly must count as met.
    """
    coverage = np.array(coverage, dtype=np.float64)
    if not np.any(np.abs(coverage - wanted) < DOUBT):
        return coverage
    l, k = np.broadcast_to(l, coverage.shape), np.broadcast_to(k, coverage.shape)
    for place in map(tuple, np.argwhere(np.abs(coverage - wanted) < DOUBT)):
        rank, whole_k = int(l[place]), int(k[place])
        if is_simple([n] * m) and (rank, whole_k) == (l[place], k[place]):
            coverage[place] = float(coverage_fraction([n] * m, [rank] * m, whole_k))
    return coverage


def smallest_k_of_ranks(m: int, n: int, wanted: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The ranks l that may be best, and for each the smallest k with M(l, k) >= wanted.

    M increases in both. Below the first l no k is enough, and above the first l with k = 1 all are worse.
    """

    def enough(l: int, k: int) -> bool:
        return bool(settled(qq_coverage(l, k, m, n), l, k, m, n, wanted) >= wanted)

    first = bisect(lambda l: enough(l, m), 0, n + 1)
    last = min(bisect(lambda l: enough(l, 1), first - 1, n + 1), n)
    l = np.arange(first, last + 1, dtype=np.float64)
    return l, _marginal_k(l, m, n, wanted) if l.size else l


def _marginal_k(l: NDArray[np.float64], m: int, n: int, wanted: float) -> NDArray[np.float64]:
    """For every l the smallest k with M(l, k) >= wanted, or m."""
    from scipy.special import betainc

    def enough(k: NDArray[np.float64]) -> NDArray[np.bool_]:
        return settled(qq_coverage(l, k, m, n), l, k, m, n, wanted) >= wanted

    # Around k = m G(wanted) the coverage crosses the level: gallop from there, down where k is too high
    guess = np.floor(m * betainc(l, n - l + 1, wanted))
    low, high = np.clip(guess - 2, 0, m - 1), np.clip(guess + 3, 1, m)
    step = 4.0
    while True:
        too_high = (low > 0) & enough(np.maximum(low, 1))
        too_low = (high < m) & ~enough(high)
        if not (too_high.any() or too_low.any()):
            break
        next_low = np.select([too_high, too_low], [np.maximum(low - step, 0), high], low)
        high = np.select([too_low, too_high], [np.minimum(high + step, m), low], high)
        low = next_low
        step *= 2

    # Bisect between the last k that is too low and the first that is enough
    while ((high - low) > 1).any():
        middle = np.floor((low + high) / 2)
        reached = enough(np.maximum(middle, 1))
        undecided = high - low > 1
        low = np.where(undecided & ~reached, middle, low)
        high = np.where(undecided & reached, middle, high)
    smallest: NDArray[np.float64] = high
    return smallest


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
    share = gamma * float(exact_level("alpha", alpha))
    choice = least_above(m, n, (1 - float(exact_level("alpha", alpha))) / (1 - share) * (1 + _ROUNDING))
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
    all_l, all_k = smallest_k_of_ranks(m, n, 1 - level)
    for l_cor in range(published_correction(epsilon, candidates, m, level), n):
        # Stop when no pair of the level 1-alpha is better with this correction
        within = all_l + l_cor <= n
        bound = np.min(qq_coverage(all_l[within] + l_cor, all_k[within], m, n), initial=np.inf)
        if not within.any() or (best is not None and bound >= best.compensation):
            break

        # The pairs for the level of this correction
        share = -math.expm1(m * math.log1p(-min(candidates * math.exp(-epsilon * l_cor / 2), 1.0)))
        l, k = smallest_k_of_ranks(m, n, (1 - level) / (1 - share) * (1 + 4 * _ROUNDING))
        l, k = l[l + l_cor <= n], k[l + l_cor <= n]
        if not l.size:
            continue
        compensation = qq_coverage(l + l_cor, k, m, n)
        least = int(np.argmin(compensation))
        if best is None or compensation[least] < best.compensation:
            rank = l[least]
            k_of_rank = k[least]
            gamma = (1 - (1 - level) / float(qq_coverage(rank, k_of_rank, m, n)) * (1 + 3 * _ROUNDING)) / level
            best = PublishedChoice(int(rank) + l_cor, int(k_of_rank), gamma, float(compensation[least]))
    return best


@dataclass(frozen=True, kw_only=True)
class FedCP2QQ(SortedReplies):
    """FedCP^2-QQ, the published private method; over a sum the replies of single silos are hidden.

    The ranks (l, k) are those for the level (1-alpha)/(1-gamma alpha). A union bound over silos corrects them by
    l_cor. Each silo runs the exponential mechanism of Angelopoulos, Bates, Zrnic and Jordan, "Private prediction sets".

    A sum counts how many silos replied each candidate, so its k-th smallest reply has the same certificate and the same
    loss. The paper claims a loss smaller by the order of sqrt(m), which does not hold for silos of more than one record
    (docs/theory-federated.md, Theorems F10 and F11). Every reply is private by itself, without other silos.

    Parameters
    ----------
    targets
        l + l_cor for every silo.
    published_k
        The published rank of the reply that becomes the threshold, if all silos answer; 0 for the rank of confide.

    Examples
    --------
    >>> from confide.federated import SiloKeys, plan
    >>> silos = [SiloKeys.generate(f"hospital {i}").public(size=200) for i in range(5)]
    >>> p = plan(silos, 0.1, 5.0, score="lac", method="fedcp2-qq")
    >>> p.certify()[0] == p.first.published_k
    True
    >>> plan(silos, 0.1, 5.0, score="lac", method="fedcp2-qq-sum").first.targets == p.first.targets
    True
    """

    parameters = ("targets", "published_k")
    reliance_label = "single replies are hidden by"

    targets: tuple[int, ...]
    published_k: int

    @classmethod
    def planned(cls, terms: Terms, method: str, channel: Channel) -> Self:
        """The published ranks and k of least compensation over all gamma."""
        m = len(terms.silos)
        n = terms.silos[0].size or 0
        summed = not channel.single_replies
        must = f"must have equal sizes for the {'' if summed else 'published '}method {method!r}"
        remedy = f"Use {'secure-sum' if summed else 'private-qq'}"
        require("silos", len({silo.size for silo in terms.silos}) == 1, must, remedy=remedy)
        choice = best_published(m, n, terms.alpha, terms.epsilon, terms.candidates.size)
        if choice is None:
            raise too_few_records()
        targets = (choice.rank,) * m
        planned = cls(**vars(terms), method=method, channel=channel, targets=targets, published_k=choice.k)
        # A sum needs a finite threshold, because it opens with all silos only
        if summed and planned.certify()[0] > m:
            raise too_few_records()
        return planned

    def loss(self, i: int) -> float:
        """The published loss of one reply, which holds for all observers."""
        return self.epsilon

    def mechanism(self, i: int) -> PrivatePredictionSets:
        """The exponential mechanism of Private Prediction Sets."""
        return published_quantile(self.silos[i].size or 0, self.targets[i], self.epsilon)

    def planned_k(self) -> int | None:
        """The published k, if no silo is Byzantine, there is no delta, and the certificate confirms it."""
        if not self.published_k or self.liars or self.delta is not None:
            return None
        replies = [self.reply_law(i) for i in range(len(self.silos))]
        return self.published_k if order_statistic_coverage(replies, self.published_k) >= self.level else None


def published_quantile(n: int, rank: int, epsilon: float) -> PrivatePredictionSets:
    """The exponential mechanism of Private Prediction Sets at quantile max(rank/n, 1/2), for a published loss.

    The published method never aims below the median, which is rounded up to an integer rank. `rank` is the corrected
    rank l + l_cor, at most n. `epsilon` is the published loss when one record is replaced, which is up to twice the
    proven one.
    """
    level = max(Fraction(rank, n), Fraction(-(-n // 2), n))
    return PrivatePredictionSets(level, 0.0, scale_for(2 * level.numerator, epsilon))
