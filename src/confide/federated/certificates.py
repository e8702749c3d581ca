"""Certificates: the coverage of the k-th smallest reply, and the smallest k that reaches a level.

Scores may be taken uniform: a score enters through its value F(S), and ties only raise coverage. Reply j is at most t
with probability G_j(t) (docs/theory-federated.md, Theorems F1 and F2).
"""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from math import comb, factorial
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.federated.quadrature import KINKED, SMOOTH, integral, nodes_around
from confide.federated.reply_laws import ReplyLaw, ReplyTable
from confide.support import bisect

Replies: TypeAlias = Sequence[ReplyLaw] | ReplyTable

# Within this distance of a level, quadrature is not exact enough to decide on which side a coverage lies
DOUBT = 1e-12

# Coverages of a sweep within this distance of the level are computed one by one
_SWEEP_DOUBT = 1e-7

# Nodes in each panel of a sweep
_SWEEP_NODES = 6

# Number of records up to which exact coverages take little time
_MOST_EXACT = 300


def order_statistic_coverage(replies: Replies, k: int, honest: int | None = None) -> float:
    """Coverage of the k-th smallest reply: 1 - int_0^1 P(at least k replies <= t) dt; +inf beyond all replies covers.

    It is unknown which `honest` silos are honest: at every t those with the largest G_j(t) are taken, the worst case.
    By default all are honest.

    Examples
    --------
    >>> from confide.federated.reply_laws import RandomRankReply
    >>> replies = [RandomRankReply.fixed(5, 4)] * 3
    >>> round(order_statistic_coverage(replies, 2), 4)
    0.6767
    """
    if k < 1:
        return 0.0
    if k > (len(replies) if honest is None else honest):
        return 1.0
    table = ReplyTable.of(replies)
    tolerance = SMOOTH if honest is None or honest >= len(table) else KINKED
    return 1.0 - integral(lambda t: at_least(probabilities(table, t, honest), k), tolerance)


def conditional_coverage_failure(replies: Replies, k: int, level: float, honest: int | None = None) -> float:
    """P(coverage given all calibration data < level) when the k-th smallest reply is the threshold.

    Exact for replies that are order statistics of continuous scores, an upper bound for random ranks (Theorem F2).

    Examples
    --------
    >>> from confide.federated.reply_laws import RandomRankReply
    >>> replies = [RandomRankReply.fixed(200, 184)] * 5
    >>> round(conditional_coverage_failure(replies, 3, 0.9), 4)
    0.0638
    """
    if k < 1:
        return 1.0
    return float(at_least(probabilities(replies, np.array([level]), honest), k)[0])


def probabilities(replies: Replies, t: NDArray[np.float64], honest: int | None = None) -> NDArray[np.float64]:
    """G_j(t), float64 of shape (silos, nodes); with `honest` the largest ones at every t, shape (honest, nodes)."""
    table = ReplyTable.of(replies)
    rows = table.below(t)
    if honest is None or honest >= len(rows) or table.identical:
        return rows[:honest]
    return np.sort(rows, axis=0)[len(rows) - honest :]


def certified(
    replies: Replies, k: int, level: Fraction, delta: float | None, honest: int | None = None
) -> Fraction | float:
    """The certified coverage of the k-th smallest honest reply.

    Marginal coverage is a fraction for one reply, and if quadrature cannot distinguish it from the level; else a float.
    With a delta the result is the level, or 0 if coverage given the data is below the level with probability above
    delta.

    Examples
    --------
    >>> from confide.federated.reply_laws import RandomRankReply
    >>> level, replies = Fraction(9, 10), [RandomRankReply.fixed(29, 27)]
    >>> certified(replies, 1, level, None), certified(replies, 1, level, 0.5), certified(replies, 1, level, 0.1)
    (Fraction(9, 10), Fraction(9, 10), Fraction(0, 1))
    """
    table = ReplyTable.of(replies)
    if delta is not None:
        return level if conditional_coverage_failure(table, k, float(level), honest) <= delta else Fraction(0)
    # A silo without others: a mean rank, without an integral
    if k == 1 and (law := table.single_law) is not None:
        return law.coverage
    coverage = order_statistic_coverage(table, k, honest)
    if abs(coverage - float(level)) >= DOUBT:
        return coverage
    # Near the level exactly, if all replies are order statistics
    fixed = table.fixed() if honest is None or honest >= len(table) or table.identical else None
    if fixed is None:
        return coverage
    sizes, ranks = zip(*fixed[:honest], strict=True)
    return coverage_fraction(sizes, ranks, k) if is_simple(sizes) else coverage


def reaches(coverage: Fraction | float, level: Fraction) -> bool:
    """Whether a coverage is at least the level, which is rounded like the coverage."""
    return coverage >= (level if isinstance(coverage, Fraction) else float(level))


def certified_k(
    replies: Replies, level: Fraction, delta: float | None, honest: int | None = None, guess: int | None = None
) -> tuple[int, float] | None:
    """The smallest k whose `certified` coverage reaches the level, and this coverage; None if no k up to `honest` does.

    Examples
    --------
    >>> from confide.federated.reply_laws import RandomRankReply
    >>> certified_k([RandomRankReply.fixed(12, 12), RandomRankReply.fixed(30, 28)], Fraction(9, 10), 0.35)
    (2, 0.9)
    """
    table = ReplyTable.of(replies)
    most = len(table) if honest is None else honest
    if most < 1:
        return None
    coverage = cache(lambda k: certified(table, k, level, delta, honest))
    k = smallest(lambda k: reaches(coverage(k), level), most, guess)
    return None if k is None else (k, float(coverage(k)))


class CertificateRule(NamedTuple):
    """The k-th smallest reply is certified if 1 - sum_i weights_i P(at least k replies <= nodes_i) >= enough."""

    nodes: NDArray[np.float64]
    weights: NDArray[np.float64]
    enough: float


def certificate_rule(level: float, delta: float | None, each: int = 4) -> CertificateRule:
    """The rule for marginal coverage, an integral by nodes around the level; with a delta for coverage at the level."""
    if delta is None:
        return CertificateRule(*nodes_around(level, each), level)
    return CertificateRule(np.array([level]), np.ones(1), 1 - delta)


def every_certified_k(replies: Sequence[ReplyLaw], level: Fraction, delta: float | None) -> list[int | None]:
    """The k of `certified_k` for 1, 2, ... honest silos, in one sweep.

    Examples
    --------
    >>> from confide.federated.reply_laws import RandomRankReply
    >>> every_certified_k([RandomRankReply.fixed(12, 12), RandomRankReply.fixed(30, 28)], Fraction(9, 10), None)
    [None, 2]
    """
    table = ReplyTable.of(replies)
    rule = certificate_rule(float(level), delta, _SWEEP_NODES)
    ks = list[int | None]()
    for honest, law in enumerate(_laws_of_low_replies(table, rule.nodes), 1):
        # The smallest k whose surplus over what is enough is not negative; it increases with k = 1, 2, ..., honest
        at_least_k_low = np.cumsum(law[honest:0:-1] @ rule.weights)[::-1]
        surplus = 1 - at_least_k_low - rule.enough
        k = int(np.searchsorted(surplus, 0.0)) + 1

        # One by one where the surplus of this k or of the one before is too small to decide at the nodes
        if np.abs(surplus[max(k - 2, 0) : k]).min() < _SWEEP_DOUBT:
            certificate = certified_k(table, level, delta, honest, min(k, honest))
            ks.append(None if certificate is None else certificate[0])
        else:
            ks.append(k if k <= honest else None)
    return ks


def _laws_of_low_replies(table: ReplyTable, nodes: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    """The laws of the numbers of low replies of 1, 2, ... silos, shape (silos + 1, nodes), in one array."""
    law = np.zeros((len(table) + 1, len(nodes)))
    law[0] = 1.0
    # At every node the silo with the largest G_j comes first: the first silos are the worst case of the honest ones
    for honest, chance in enumerate(-np.sort(-table.below(nodes), axis=0), 1):
        law[1 : honest + 1] += chance * (law[:honest] - law[1 : honest + 1])
        law[0] *= 1 - chance
        yield law


def smallest(enough: Callable[[int], bool], most: int, guess: int | None = None) -> int | None:
    """The smallest number in 1..most for which `enough` is true, by doubling steps from a guess; None if there is none.

    If `enough` is true for a number, it must be true for every larger number.

    Examples
    --------
    >>> smallest(lambda k: k / 10 >= 0.55, 9), smallest(lambda k: k > 9, 9)
    (6, None)
    """
    # Gallop down or up, until the border lies between two numbers; each number is tried once
    start = min(max(most // 2 if guess is None else guess, 1), most)
    step = 1
    if enough(start):
        high = start
        low = start - 1
        while low > 0 and enough(low):
            high = low
            low = max(low - step, 0)
            step *= 2
        return bisect(enough, low, high)
    low = start
    high = min(start + 1, most)
    while not enough(high):
        if high == most:
            return None
        low = high
        high = min(high + step, most)
        step *= 2
    return bisect(enough, low, high)


def coverage_fraction(sizes: Sequence[int], ranks: Sequence[int], k: int) -> Fraction:
    """Coverage of the k-th smallest of m replies, reply j the l_j-th smallest of n_j continuous scores, exactly.

    `ranks` has l_j in 1..n_j + 1; the last one stands for +inf. The time grows with the squares of m and of the number
    of records, so it is meant for a few hundred records.

    Examples
    --------
    >>> coverage_fraction([5, 5, 5, 5], [2, 2, 2, 2], 3)
    Fraction(52519, 138567)
    >>> coverage_fraction([999], [900], 1), coverage_fraction([3, 3, 3], [3, 3, 3], 3)
    (Fraction(9, 10), Fraction(9, 10))
    """
    # One silo, or one record each, is split conformal prediction
    total = sum(sizes)
    if len(sizes) == 1:
        return Fraction(ranks[0], total + 1)
    if total == len(sizes) == sum(ranks):
        return Fraction(k, total + 1)

    # The number of ways in which r records lie below t, by the number of replies below t. These are the coefficients of
    # polynomials, at most C(total, r) < 2^total, which are stored as integers in base 2^bits.
    bits = total + 1
    ways = [1]
    for n, l in zip(sizes, ranks, strict=True):
        below = sum(comb(n, i) << bits * i for i in range(l, n + 1))
        above = sum(comb(n, i) << bits * i for i in range(l))
        ways = [fewer * below + same * above for fewer, same in zip([0, *ways], [*ways, 0], strict=True)]

    # The integral of each power of t and 1 - t
    missed = sum(ways[k:])
    mask = (1 << bits) - 1
    weighted = sum((missed >> bits * r & mask) * factorial(r) * factorial(total - r) for r in range(total + 1))
    return 1 - Fraction(weighted, factorial(total) * (total + 1))


def is_simple(sizes: Sequence[int]) -> bool:
    """Whether `coverage_fraction` takes little time: one silo, or one record each, or up to 300 records in all."""
    records = sum(sizes)
    return len(sizes) == 1 or records == len(sizes) or records <= _MOST_EXACT


def poisson_binomial(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """The law of the number of successes, shape (nodes, m + 1), to a few 1e-16; p has shape (m, nodes), m trials.

    Examples
    --------
    >>> poisson_binomial(np.array([[0.5], [0.5], [0.25]])).round(4)
    array([[0.1875, 0.4375, 0.3125, 0.0625]])
    """
    # Generating polynomials, multiplied pairwise
    factors = np.stack([1 - p, p], axis=-1)
    while len(factors) > 1:
        if len(factors) % 2:
            constant = np.zeros_like(factors[:1])
            constant[..., 0] = 1.0
            factors = np.concatenate([factors, constant])
        factors = _products(factors[0::2], factors[1::2])
    # FFTs may give slightly negative probabilities
    return np.asarray(np.maximum(factors[0][:, : len(p) + 1], 0.0))


# Length of a factor up to which a product is faster without an FFT
_DIRECT = 16


def _products(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Products of polynomials, whose coefficients lie along the last axis."""
    from scipy.fft import irfft, next_fast_len, rfft

    size = a.shape[-1] + b.shape[-1] - 1
    if b.shape[-1] <= _DIRECT:
        product = np.zeros((*a.shape[:-1], size))
        for i in range(b.shape[-1]):
            product[..., i : i + a.shape[-1]] += a * b[..., i : i + 1]
        return product
    length = next_fast_len(size, real=True)
    return np.asarray(irfft(rfft(a, length) * rfft(b, length), length)[..., :size])


def at_least(p: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """P(at least k of the m trials succeed), shape (nodes,).

    Examples
    --------
    >>> at_least(np.array([[0.5], [0.5], [0.25]]), 2)
    array([0.375])
    """
    from scipy.special import betainc

    m = len(p)
    if k <= 0:
        return np.ones(p.shape[1])
    if k > m:
        return np.zeros(p.shape[1])
    # Equal probabilities: an incomplete beta function
    if m == 1 or bool((p == p[0]).all()):
        return np.asarray(betainc(k, m - k + 1, p[0]))
    # The smaller sum is more exact
    law = poisson_binomial(p)
    upper = law[:, k:].sum(axis=1)
    return np.asarray(np.where(upper < 0.5, upper, 1 - law[:, :k].sum(axis=1)))
