"""FedCP-QQ: every silo sends its l-th smallest score, and the threshold is the k-th smallest of the m replies.

This module implements the method of Humbert, Le Bars, Bellet and Arlot, "One-shot federated conformal prediction", ICML
2023. The publication computes the coverage M(l, k) as a sum of hypergeometric terms. Here it is an integral over one
variable (docs/theory-federated.md, Theorem F1), which is thousands of times faster to compute and also holds for silos
of unequal sizes. The module also has the two baselines of the publication: the mean of the silos' quantiles, and the
quantile of the pooled scores.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_vector
from confide.federated.certificates import (
    DOUBT,
    certified_k,
    coverage_fraction,
    gauss_legendre,
    is_simple,
    order_statistic_coverage,
)
from confide.federated.reply_laws import RandomRankReply
from confide.support import Level, bisect, exact_level, positive_integer

_NODES = 64
_NEGLIGIBLE = 1e-17
_RATES = 7
_MANY = 100


@dataclass(frozen=True)
class RankChoice:
    """The choice of order statistics.

    Parameters
    ----------
    ranks
        l_j for every silo.
    k
        Rank of the reply that becomes the threshold.
    coverage
        The exact coverage for continuous scores, at least 1 - alpha.
    """

    ranks: tuple[int, ...]
    k: int
    coverage: float


def qq_coverage(l: ArrayLike, k: ArrayLike, m: int, n: int) -> NDArray[np.float64]:
    """M(l, k): coverage of the k-th smallest of m replies, each the l-th smallest of n continuous scores.

    M(l, k) = 1 - int_0^1 P(Bin(m, I_t(l, n-l+1)) >= k) dt, by 64 Gauss-Legendre nodes on the interval where the
    probability differs from 0 and 1 by more than 1e-17. It is a lower bound if scores have ties. l need not be an
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
    low = betaincinv(l, n - l + 1, betaincinv(k, m - k + 1, _NEGLIGIBLE))
    high = betainccinv(l, n - l + 1, betaincinv(m - k + 1, k, _NEGLIGIBLE))
    x, w = gauss_legendre(_NODES)
    t = low[..., None] + (high - low)[..., None] * x
    inner = betainc(l[..., None], (n - l + 1)[..., None], t)
    missed = betainc(k[..., None], (m - k + 1)[..., None], inner) @ w
    result: NDArray[np.float64] = high - (high - low) * missed
    return result


def best_qq(
    m: int, n: int, level: Level, *, delta: float | None = None, most_k: int | None = None
) -> RankChoice | None:
    """(l*, k*): among all pairs that reach the level, the one of least coverage M(l, k); None if there is none.

    M increases in l and in k, so for every l one k is found by bisection, for all l at once.

    Parameters
    ----------
    m, n
        Number of silos, number of scores in each.
    level
        Required coverage in (0, 1).
    delta
        Failure probability: coverage given the calibration data reaches the level with probability 1 - delta. By
        default the mean coverage reaches the level.
    most_k
        The largest allowed k; by default m.

    Examples
    --------
    >>> best_qq(5, 200, 0.9)
    RankChoice(ranks=(183, 183, 183, 183, 183), k=2, coverage=0.9011...)
    """
    m, n = positive_integer("m", m), positive_integer("n", n)
    wanted = float(exact_level("level", level))
    if delta is None:
        return least_above(m, n, wanted, most_k)
    l = np.arange(1, n + 1, dtype=np.float64)
    k = _conditional_k(l, m, n, wanted, delta)
    coverage = qq_coverage(l, np.minimum(k, m), m, n)
    coverage[k > (m if most_k is None else most_k)] = np.inf
    return _least(l, k, coverage, m)


def least_above(m: int, n: int, wanted: float, most_k: int | None = None) -> RankChoice | None:
    """The pair of least M(l, k) >= wanted, and among equal ones that of least l; `wanted` may be any number.

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
    return _least(l, k, coverage, m)


def _least(l: NDArray[np.float64], k: NDArray[np.float64], coverage: NDArray[np.float64], m: int) -> RankChoice | None:
    best = int(np.argmin(coverage))
    if not np.isfinite(coverage[best]):
        return None
    return RankChoice((int(l[best]),) * m, int(k[best]), float(coverage[best]))


def settled(coverage: ArrayLike, l: ArrayLike, k: ArrayLike, m: int, n: int, wanted: float) -> NDArray[np.float64]:
    """Values of M(l, k), of which those within 1e-12 of `wanted` are replaced by exact ones where possible.

    Quadrature cannot distinguish 9/10 from slightly less, and a level that is met exactly must count as met.

    Examples
    --------
    >>> settled([0.9 - 1e-15, 0.8], [27, 24], 1, 1, 29, 0.9)
    array([0.9, 0.8])
    """
    coverage = np.array(coverage, dtype=np.float64)
    if not np.any(np.abs(coverage - wanted) < DOUBT):
        return coverage
    l, k = np.broadcast_to(l, coverage.shape), np.broadcast_to(k, coverage.shape)
    for at in np.argwhere(np.abs(coverage - wanted) < DOUBT):
        place = tuple(at)
        whole = int(l[place]), int(k[place])
        if is_simple([n] * m) and whole == (l[place], k[place]):
            coverage[place] = float(coverage_fraction([n] * m, [whole[0]] * m, whole[1]))
    return coverage


def smallest_k_of_ranks(m: int, n: int, wanted: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The ranks l that may be best, and for each the smallest k with M(l, k) >= wanted.

    M increases in both. Below the first l no k is enough, and above the first l with k = 1 all are worse.

    Examples
    --------
    >>> smallest_k_of_ranks(3, 9, 0.8)
    (array([7., 8., 9.]), array([3., 2., 1.]))
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

    # Around k = m G(level) the coverage crosses the level; gallop from there, then bisect.
    guess = np.floor(m * betainc(l, n - l + 1, wanted))
    low, high = np.clip(guess - 2, 0, m - 1), np.clip(guess + 3, 1, m)
    step = 4.0
    while True:
        too_high = (low > 0) & enough(np.maximum(low, 1))
        too_low = (high < m) & ~enough(high)
        if not (too_high.any() or too_low.any()):
            break
        low, high = (
            np.where(too_high, np.maximum(low - step, 0), np.where(too_low, high, low)),
            np.where(too_low, np.minimum(high + step, m), np.where(too_high, low, high)),
        )
        step *= 2
    while ((high - low) > 1).any():
        middle = np.floor((low + high) / 2)
        reached = enough(np.maximum(middle, 1))
        open_ = high - low > 1
        low, high = np.where(open_ & ~reached, middle, low), np.where(open_ & reached, middle, high)
    found: NDArray[np.float64] = high
    return found


def _conditional_k(l: NDArray[np.float64], m: int, n: int, wanted: float, delta: float) -> NDArray[np.float64]:
    """For every l the smallest k with P(Bin(m, G_l(level)) >= k) <= delta, at most m + 1."""
    from scipy.special import betainc
    from scipy.stats import binom

    found: NDArray[np.float64] = binom.isf(delta, m, betainc(l, n - l + 1, wanted)) + 1
    return found


def published_ranks(sizes: Sequence[int], level: Level) -> tuple[int, ...]:
    """l_j = ceil(level (n_j + 1)), the paper's choice for silos of unequal sizes; a rank above n_j stands for +inf.

    Examples
    --------
    >>> published_ranks([9, 99, 200], 0.9)
    (9, 90, 181)
    """
    exact = exact_level("level", level)
    return tuple(math.ceil(exact * (n + 1)) for n in sizes)


def best_qq_unequal(
    sizes: Sequence[int],
    level: Level,
    ranks: Sequence[int] | None = None,
    *,
    delta: float | None = None,
    honest: int | None = None,
    most_k: int | None = None,
) -> RankChoice | None:
    """Ranks l_j and k for silos of unequal sizes, by the Poisson-binomial form of M.

    Parameters
    ----------
    sizes
        Numbers of scores.
    level
        Required coverage in (0, 1).
    ranks
        l_j to use, for example `published_ranks(sizes, level)`. By default l_j = ceil(x (n_j + 1)) for the best of a
        few x near the level. The paper's x = level is one of them, so the result is never worse than the paper's.
    delta
        As in `best_qq`.
    honest
        Number of honest silos, which are unknown; by default all.
    most_k
        The largest allowed k; by default `honest`.

    Returns
    -------
    RankChoice or None
        With the mean coverage of the k-th smallest of all replies. None if no k reaches the level.

    Examples
    --------
    >>> paper = best_qq_unequal([50, 100, 400], 0.9, published_ranks([50, 100, 400], 0.9))
    >>> best_qq_unequal([50, 100, 400], 0.9).coverage <= paper.coverage
    True
    """
    wanted = exact_level("level", level)
    options = [tuple(ranks)] if ranks is not None else _rank_options(sizes, float(wanted), delta)
    found: list[RankChoice] = []
    for option in options:
        replies = [RandomRankReply.fixed(n, l) for n, l in zip(sizes, option, strict=True)]
        at = np.array([float(wanted)])
        guess = math.floor(sum(float(one.below(at)[0]) * count for one, count in Counter(replies).items()))
        best = certified_k(replies, wanted, delta, honest, guess)
        if best is None or best[0] > (most_k or len(sizes)):
            continue
        exact = best[1] if delta is None and honest is None else order_statistic_coverage(replies, best[0])
        found.append(RankChoice(option, best[0], exact))
    if ranks is None:
        found = [choice for choice in found if choice.coverage < 1]  # 1 means +inf
    return min(found, key=lambda choice: choice.coverage, default=None)


def _rank_options(sizes: Sequence[int], level: float, delta: float | None) -> list[tuple[int, ...]]:
    typical = math.sqrt(level * (1 - level) / max(1.0, float(np.median(np.asarray(sizes)))))
    options = [published_ranks(sizes, exact_level("level", level))]
    # With many silos the choice of k alone is fine enough, and each rate needs an integral over all of them.
    shifts = np.linspace(-0.6, 0.6, _RATES - 1 if len(sizes) <= _MANY else 2)
    for shift in shifts if delta is None else np.linspace(0.25, 3.0, 2 * _RATES):
        rate = min(max(level + shift * typical, 1e-9), 1 - 1e-9)
        option = tuple(max(1, min(n, math.ceil(rate * (n + 1)))) for n in sizes)
        if option not in options:
            options.append(option)
    return options


def conformal_quantile(scores: ArrayLike, alpha: Level) -> float:
    """The ceil((n+1)(1-alpha))-th smallest score, +inf if there are too few.

    Examples
    --------
    >>> conformal_quantile([0.3, 0.1, 0.2], 0.5)
    0.2
    """
    array = as_vector("scores", scores)
    rank = math.ceil((1 - exact_level("alpha", alpha)) * (len(array) + 1))
    return float(np.sort(array)[rank - 1]) if rank <= len(array) else math.inf


def average_threshold(silos: Sequence[ArrayLike], alpha: Level) -> float:
    """FedCP-Avg: the mean of the silos' conformal quantiles. No guarantee.

    Examples
    --------
    >>> round(average_threshold([[1.0, 2.0, 3.0], [5.0, 6.0, 7.0]], 0.5), 6)
    4.0
    """
    return float(np.mean([conformal_quantile(scores, alpha) for scores in silos]))


def centralised_threshold(silos: Sequence[ArrayLike], alpha: Level) -> float:
    """The threshold of split conformal prediction on the pooled scores, a baseline.

    Examples
    --------
    >>> centralised_threshold([[1.0, 2.0, 3.0], [5.0, 6.0, 7.0]], 0.5)
    5.0
    """
    return conformal_quantile(np.concatenate([as_vector("scores", scores) for scores in silos]), alpha)
