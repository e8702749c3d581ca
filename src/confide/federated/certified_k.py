"""The smallest k, or target, whose certificate reaches what is wanted."""

from collections.abc import Callable, Sequence
from fractions import Fraction

from confide.federated.order_statistics import ReplyLaw, conditional_coverage_failure, order_statistic_coverage


def certified_k(
    replies: Sequence[ReplyLaw],
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
    if delta is None:
        return smallest_k(lambda k: order_statistic_coverage(replies, k, honest), float(level), m, guess)
    sure = smallest_k(lambda k: 1 - conditional_coverage_failure(replies, k, float(level), honest), 1 - delta, m, guess)
    return None if sure is None else (sure[0], float(level))


def certifies(
    replies: Sequence[ReplyLaw], k: int, level: Fraction, delta: float | None, honest: int | None = None
) -> bool:
    """Whether the k-th smallest honest reply reaches the level, as in `certified_k`."""
    if delta is None:
        return order_statistic_coverage(replies, k, honest) >= level
    return conditional_coverage_failure(replies, k, float(level), honest) <= delta


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
