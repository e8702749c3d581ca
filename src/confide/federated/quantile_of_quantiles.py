"""FedCP-QQ: every silo sends its l-th smallest score, the threshold is the k-th smallest of the m replies.

Humbert, Le Bars, Bellet and Arlot, "One-shot federated conformal prediction", ICML 2023. Their coverage M(l, k) is a
sum over hypergeometric terms; as an integral over one variable (docs/federated.md, Theorem F1) it is thousands of times
faster and extends to silos of unequal sizes.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.checks import positive_integer
from confide.federated.order_statistics import RandomRankReply, gauss_legendre, order_statistic_coverage
from confide.rationals import Level, exact_level

_NODES = 64
_NEGLIGIBLE = 1e-17
_RATES = 7
_MANY = 100


@dataclass(frozen=True)
class RankChoice:
    """Which order statistics to take.

    Parameters
    ----------
    ranks
        l_j for every silo.
    k
        Which of the replies becomes the threshold.
    coverage
        The exact coverage for continuous scores, at least 1 - alpha.
    """

    ranks: tuple[int, ...]
    k: int
    coverage: float


def qq_coverage(l: ArrayLike, k: ArrayLike, m: int, n: int) -> NDArray[np.float64]:
    """M(l, k): coverage of the k-th smallest of m replies, each the l-th smallest of n continuous scores.

    M(l, k) = 1 - int_0^1 P(Bin(m, I_t(l, n-l+1)) >= k) dt, by 64 Gauss-Legendre nodes on the stretch where the
    probability is neither 0 nor 1 to 1e-17. It is a lower bound when scores tie. l need not be an integer.

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


def qq_coverage_largest(k: int, m: int, n: int) -> float:
    """M(n, k) in closed form: every silo sends its largest score.

    Gamma(k + 1/n) / Gamma(k) * Gamma(m + 1) / Gamma(m + 1 + 1/n), which is the product of i/(i + 1/n) over i = k..m.

    Examples
    --------
    >>> round(qq_coverage_largest(2, m=4, n=10), 6)
    0.899179
    """
    return math.exp(-math.fsum(math.log1p(1 / (n * i)) for i in range(k, m + 1)))


def best_qq(m: int, n: int, level: Level) -> RankChoice | None:
    """(l*, k*): among all pairs with M(l, k) >= level, the one of least coverage; None if even M(n, m) is below it.

    M rises in l and in k, so for every l one k is found by bisection, for all l at once.

    Parameters
    ----------
    m, n
        Number of silos, number of scores in each.
    level
        Wanted coverage in (0, 1).

    Examples
    --------
    >>> best_qq(5, 200, 0.9)
    RankChoice(ranks=(183, 183, 183, 183, 183), k=2, coverage=0.9011...)
    """
    from scipy.special import betainc

    m, n = positive_integer("m", m), positive_integer("n", n)
    wanted = float(exact_level("level", level))
    l = np.arange(1, n + 1, dtype=np.float64)
    # Around k = m G(level) the coverage crosses the level; gallop from there, then bisect.
    guess = np.floor(m * betainc(l, n - l + 1, wanted))
    low, high = np.clip(guess - 2, 0, m - 1), np.clip(guess + 3, 1, m)
    step = 4.0
    while True:
        too_high = (low > 0) & (qq_coverage(l, np.maximum(low, 1), m, n) >= wanted)
        too_low = (high < m) & (qq_coverage(l, high, m, n) < wanted)
        if not (too_high.any() or too_low.any()):
            break
        low, high = (
            np.where(too_high, np.maximum(low - step, 0), np.where(too_low, high, low)),
            np.where(too_low, np.minimum(high + step, m), np.where(too_high, low, high)),
        )
        step *= 2
    while ((high - low) > 1).any():
        middle = np.floor((low + high) / 2)
        enough = qq_coverage(l, np.maximum(middle, 1), m, n) >= wanted
        open_ = high - low > 1
        low, high = np.where(open_ & ~enough, middle, low), np.where(open_ & enough, middle, high)
    coverage = qq_coverage(l, high, m, n)
    coverage[coverage < wanted] = np.inf
    best = int(np.argmin(coverage))
    if not np.isfinite(coverage[best]):
        return None
    return RankChoice((best + 1,) * m, int(high[best]), float(coverage[best]))


def published_ranks(sizes: Sequence[int], level: Level) -> tuple[int, ...]:
    """l_j = ceil(level (n_j + 1)), the paper's choice for silos of unequal sizes; above n_j it stands for +inf.

    Examples
    --------
    >>> published_ranks([9, 99, 200], 0.9)
    (9, 90, 181)
    """
    exact = exact_level("level", level)
    return tuple(math.ceil(exact * (n + 1)) for n in sizes)


def best_qq_unequal(sizes: Sequence[int], level: Level, ranks: Sequence[int] | None = None) -> RankChoice | None:
    """Ranks l_j and k for silos of unequal sizes, by the Poisson-binomial form of M.

    Parameters
    ----------
    sizes
        Numbers of scores.
    level
        Wanted coverage in (0, 1).
    ranks
        l_j to use, for example `published_ranks(sizes, level)`. By default l_j = ceil(x (n_j + 1)) for the best of a
        few x near the level, the paper's x = level among them: so the result is never worse than the paper's.

    Returns
    -------
    RankChoice or None
        None if no k reaches the level.

    Examples
    --------
    >>> paper = best_qq_unequal([50, 100, 400], 0.9, published_ranks([50, 100, 400], 0.9))
    >>> best_qq_unequal([50, 100, 400], 0.9).coverage <= paper.coverage
    True
    """
    wanted = exact_level("level", level)
    if ranks is not None:
        return _smallest_k(sizes, tuple(ranks), float(wanted))
    typical = math.sqrt(float(wanted * (1 - wanted)) / max(1.0, float(np.median(np.asarray(sizes)))))
    options = [published_ranks(sizes, wanted)]
    # With many silos k alone is fine enough, and each rate costs an integral over all of them.
    for shift in np.linspace(-0.6, 0.6, _RATES - 1 if len(sizes) <= _MANY else 2):
        rate = min(max(float(wanted) + shift * typical, 1e-9), 1 - 1e-9)
        option = tuple(max(1, min(n, math.ceil(rate * (n + 1)))) for n in sizes)
        if option not in options:
            options.append(option)
    found = [choice for option in options if (choice := _smallest_k(sizes, option, float(wanted)))]
    found = [choice for choice in found if choice.coverage < 1]  # 1 means +inf
    return min(found, key=lambda choice: choice.coverage, default=None)


def _smallest_k(sizes: Sequence[int], ranks: tuple[int, ...], wanted: float) -> RankChoice | None:
    replies = [RandomRankReply.fixed(n, l) for n, l in zip(sizes, ranks, strict=True)]
    counted: dict[RandomRankReply, int] = {}
    for reply in replies:
        counted[reply] = counted.get(reply, 0) + 1
    guess = math.floor(sum(float(reply.below(np.array([wanted]))[0]) * count for reply, count in counted.items()))
    found = smallest_k(lambda k: order_statistic_coverage(replies, k), wanted, len(replies), guess)
    return None if found is None else RankChoice(ranks, *found)


def smallest_k(
    coverage_at: Callable[[int], float], wanted: float, m: int, guess: int | None = None
) -> tuple[int, float] | None:
    """The smallest k in 1..m with coverage_at(k) >= wanted and its coverage, by galloping from a guess and bisection.

    Examples
    --------
    >>> smallest_k(lambda k: k / 10, 0.55, 9)
    (6, 0.6)
    """
    known: dict[int, float] = {0: 0.0}

    def enough(k: int) -> bool:
        if k not in known:
            known[k] = coverage_at(k)
        return known[k] >= wanted

    start = min(max(m // 2 if guess is None else guess, 1), m)
    step = 1
    if enough(start):
        low, high = start - 1, start
        while low > 0 and enough(low):
            low, high, step = max(low - step, 0), low, 2 * step
    else:
        low, high = start, min(start + 1, m)
        while not enough(high):
            if high == m:
                return None
            low, high, step = high, min(high + step, m), 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high, known[high]
