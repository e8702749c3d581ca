"""The smallest k, or target, whose certificate reaches what is wanted."""

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from confide.federated.order_statistics import conditional_coverage_failure, nodes_around, order_statistic_coverage
from confide.federated.reply_table import DOUBT, ReplyLaw, ReplyTable, coverage_fraction, is_simple

_DOUBT = 1e-7
"""Coverages so near the level are computed by adaptive quadrature."""


def certified_k(
    replies: Sequence[ReplyLaw] | ReplyTable,
    level: Fraction,
    delta: float | None,
    honest: int | None = None,
    guess: int | None = None,
) -> tuple[int, float] | None:
    """The smallest k whose certificate reaches the level, and what it certifies; None if no k up to `honest` does.

    `delta` is None for marginal coverage, else the allowed probability of coverage below the level given the data;
    `honest` is how many of the silos are, by default all.
    """
    m = len(replies) if honest is None else honest
    if m < 1:
        return None
    table = ReplyTable.of(replies)
    if delta is None:
        return smallest_k(lambda k: certain_coverage(table, k, float(level), honest), float(level), m, guess)
    sure = smallest_k(lambda k: 1 - conditional_coverage_failure(table, k, float(level), honest), 1 - delta, m, guess)
    return None if sure is None else (sure[0], float(level))


def every_certified_k(replies: Sequence[ReplyLaw], level: Fraction, delta: float | None) -> list[int | None]:
    """What `certified_k` finds if 1, 2, ... of the silos are honest, whichever they are; all in one sweep.

    At every node the silos are taken one after the other, the one with the largest G_j first. What the nodes leave in
    doubt is asked of `certified_k`.

    Examples
    --------
    >>> from confide.federated.reply_table import RandomRankReply
    >>> every_certified_k([RandomRankReply.fixed(12, 12), RandomRankReply.fixed(30, 28)], Fraction(9, 10), None)
    [None, 2]
    """
    table, m, wanted = ReplyTable.of(replies), len(replies), float(level) if delta is None else 1 - delta
    t, weights = nodes_around(float(level), 6) if delta is None else (np.array([float(level)]), np.ones(1))
    chances = -np.sort(-table.below(t), axis=0)
    law = np.zeros((m + 1, len(t)))
    law[0] = 1.0
    found = list[int | None]()
    for honest, chance in enumerate(chances, 1):
        law[1 : honest + 1] += chance * (law[:honest] - law[1 : honest + 1])
        law[0] *= 1 - chance
        surplus = 1 - np.cumsum(law[honest:0:-1] @ weights)[::-1] - wanted  # of k = 1, 2, ..., honest
        k = int(np.searchsorted(surplus, 0.0)) + 1  # rises with k
        near = np.abs(surplus[max(k - 2, 0) : k]).min() < _DOUBT
        if near:
            sure = certified_k(table, level, delta, honest, min(k, honest))
            found.append(None if sure is None else sure[0])
        else:
            found.append(k if k <= honest else None)
    return found


def certifies(
    replies: Sequence[ReplyLaw] | ReplyTable, k: int, level: Fraction, delta: float | None, honest: int | None = None
) -> bool:
    """Whether the k-th smallest honest reply reaches the level, as in `certified_k`."""
    if delta is None:
        return certain_coverage(ReplyTable.of(replies), k, float(level), honest) >= float(level)
    return conditional_coverage_failure(replies, k, float(level), honest) <= delta


def certain_coverage(table: ReplyTable, k: int, wanted: float, honest: int | None = None) -> float:
    """The coverage; where quadrature cannot tell it from what is wanted, the exact one of order statistics.

    Examples
    --------
    >>> from confide.federated.reply_table import RandomRankReply
    >>> certain_coverage(ReplyTable([RandomRankReply.fixed(29, 27)]), 1, 0.9)
    0.9
    """
    coverage = order_statistic_coverage(table, k, honest)
    if abs(coverage - wanted) >= DOUBT or k < 1:
        return coverage
    fixed = table.fixed() if honest is None or honest >= len(table) or table.alike else None
    if fixed is None:
        return coverage
    sizes, ranks = zip(*fixed[:honest], strict=True)
    return float(coverage_fraction(sizes, ranks, k)) if is_simple(sizes) else coverage


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
    k = bisect(enough, low, high)
    return k, known[k]


def bisect(enough: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest number beyond `low` that is enough, if `high` is and every number above one that is."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
