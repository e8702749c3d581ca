"""FedCP-QQ and FedCP-Avg as functions of numbers and arrays. They are not private.

FedCP-QQ (Humbert, Le Bars, Bellet and Arlot, ICML 2023): every silo sends its l-th smallest score, and the threshold is
the k-th smallest of the m replies. The coverage M(l, k), there a sum of hypergeometric terms, is here an integral over
one variable (docs/theory-federated.md, Theorem F1), which also holds for silos of unequal sizes.
"""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from confide.arrays import as_vector
from confide.federated import (
    RandomRankReply,
    RankChoice,
    certified_k,
    least_above,
    least_of,
    order_statistic_coverage,
    qq_coverage,
)
from confide.support import Level, exact_level, positive_integer

# The number of rates l_j/(n_j + 1) that are tried for silos of unequal sizes.
_RATES = 7

# For more silos only three rates are tried: the choice of k alone is fine enough, and each rate needs an integral over
# all silos.
_MANY_SILOS = 100


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
    # On average over calibrations.
    m, n = positive_integer("m", m), positive_integer("n", n)
    wanted = float(exact_level("level", level))
    if delta is None:
        return least_above(m, n, wanted, most_k)

    # Given the calibration data: for every l the smallest k with P(Bin(m, G_l(level)) >= k) <= delta, at most m + 1.
    from scipy.special import betainc
    from scipy.stats import binom

    l = np.arange(1, n + 1, dtype=np.float64)
    k = binom.isf(delta, m, betainc(l, n - l + 1, wanted)) + 1
    coverage = qq_coverage(l, np.minimum(k, m), m, n)
    coverage[k > (m if most_k is None else most_k)] = np.inf
    return least_of(l, k, coverage, m)


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
        Failure probability of coverage given the calibration data; by default the mean coverage reaches the level.
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
    choices: list[RankChoice] = []
    for option in options:
        # The expected number of replies below the level is near the best k.
        replies = [RandomRankReply.fixed(n, l) for n, l in zip(sizes, option, strict=True)]
        below = {reply: float(reply.below(np.array([float(wanted)]))[0]) for reply in replies}
        guess = math.floor(sum(below[reply] * count for reply, count in Counter(replies).items()))
        certificate = certified_k(replies, wanted, delta, honest, guess)
        if certificate is None:
            continue

        # The mean coverage, which another guarantee does not state.
        k, coverage = certificate
        if k <= (most_k or len(sizes)):
            if delta is not None or honest is not None:
                coverage = order_statistic_coverage(replies, k)
            choices.append(RankChoice(option, k, coverage))
    if ranks is None:
        choices = [choice for choice in choices if choice.coverage < 1]  # 1 means +inf
    return min(choices, key=lambda choice: choice.coverage, default=None)


def _rank_options(sizes: Sequence[int], level: float, delta: float | None) -> list[tuple[int, ...]]:
    # The paper's ranks, and rates around the level by multiples of the standard deviation of a typical silo.
    options = [published_ranks(sizes, exact_level("level", level))]
    deviation = math.sqrt(level * (1 - level) / max(1.0, float(np.median(np.asarray(sizes)))))
    multiples = np.linspace(-0.6, 0.6, _RATES - 1 if len(sizes) <= _MANY_SILOS else 2)
    if delta is not None:
        multiples = np.linspace(0.25, 3.0, 2 * _RATES)
    for multiple in multiples:
        rate = min(max(level + multiple * deviation, 1e-9), 1 - 1e-9)
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


def fedcp_qq(silos: Sequence[ArrayLike], alpha: Level) -> tuple[float, float]:
    """FedCP-QQ: the threshold, and the coverage M(l, k) of continuous scores, at least 1 - alpha.

    Silos of one size use the best pair (l, k). Others use the published ranks (`published_ranks`) and the best k.

    Returns
    -------
    threshold, coverage
        (inf, 1.0) if the silos have too few scores for a finite threshold.

    Examples
    --------
    >>> fedcp_qq([[0.3, 0.1, 0.5], [0.2, 0.4, 0.9], [0.7, 0.6, 0.8]], 0.5)
    (0.4, 0.5)
    """
    # The ranks.
    ordered = [np.sort(as_vector("scores", scores)) for scores in silos]
    sizes = [len(scores) for scores in ordered]
    level = 1 - exact_level("alpha", alpha)
    if len(set(sizes)) == 1:
        choice = best_qq(len(sizes), sizes[0], level)
    else:
        choice = best_qq_unequal(sizes, level, published_ranks(sizes, level))
    if choice is None:
        return math.inf, 1.0

    # The replies; a rank above the number of scores stands for +inf.
    pairs = zip(ordered, choice.ranks, strict=True)
    replies = [float(scores[l - 1]) if l <= len(scores) else math.inf for scores, l in pairs]
    return sorted(replies)[choice.k - 1], choice.coverage
