"""The number of successes among independent trials of unequal probability, for many parameter vectors at once.

Coverage when the threshold is the k-th smallest of m independent replies (docs/theory-federated.md, Theorem F1).

Scores may be taken uniform: a score enters through its value F(S), and ties only raise coverage. If reply j is at most
t with probability G_j(t), the threshold is at most t when at least k replies are, and

    coverage = 1 - int_0^1 P( at least k of independent events of probability G_j(t) ) dt.

A reply that is the l-th smallest of n scores has G(t) = I_t(l, n-l+1); one that dominates the R-th smallest, R random
and independent of the data, has the mixture of these over the law of R.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.federated.reply_table import ReplyLaw, ReplyTable

_DIRECT = 16


def poisson_binomial(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """The law of the number of successes, by multiplying generating polynomials pairwise (divide and conquer).

    Short products are direct, long ones go through the FFT; the absolute error is a few 1e-16.

    Parameters
    ----------
    p
        Success probabilities, float64, shape (m, nodes): m trials, for each of `nodes` parameter vectors.

    Returns
    -------
    numpy.ndarray
        float64, shape (nodes, m + 1): probability of 0, 1, ..., m successes.

    Examples
    --------
    >>> poisson_binomial(np.array([[0.5], [0.5], [0.25]])).round(4)
    array([[0.1875, 0.4375, 0.3125, 0.0625]])
    """
    m = len(p)
    factors = np.stack([1 - p, p], axis=-1)
    while len(factors) > 1:
        if len(factors) % 2:
            one = np.zeros_like(factors[:1])
            one[..., 0] = 1.0
            factors = np.concatenate([factors, one])
        factors = _products(factors[0::2], factors[1::2])
    law: NDArray[np.float64] = np.maximum(factors[0][:, : m + 1], 0.0)
    return law


def at_least(p: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """P(at least k of the m trials succeed), shape (nodes,).

    Equal rows are recognised, and then the tail is an incomplete beta function.

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
    if m == 1 or bool((p == p[0]).all()):
        tail: NDArray[np.float64] = betainc(k, m - k + 1, p[0])
        return tail
    law = poisson_binomial(p)
    upper, lower = law[:, k:].sum(axis=1), law[:, :k].sum(axis=1)
    tail = np.where(upper < 0.5, upper, 1 - lower)
    return tail


def _products(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.fft import irfft, next_fast_len, rfft

    size = a.shape[-1] + b.shape[-1] - 1
    if b.shape[-1] <= _DIRECT:
        product = np.zeros((*a.shape[:-1], size))
        for i in range(b.shape[-1]):
            product[..., i : i + a.shape[-1]] += a * b[..., i : i + 1]
        return product
    length = next_fast_len(size, real=True)
    full: NDArray[np.float64] = irfft(rfft(a, length) * rfft(b, length), length)[..., :size]
    return full


Curve: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]

_NODES = 32
_FLAT = 1e-16
_TOLERANCE = 1e-14
_KINKED = 1e-10


def order_statistic_coverage(replies: Sequence[ReplyLaw] | ReplyTable, k: int, honest: int | None = None) -> float:
    """Coverage of the k-th smallest reply: 1 - int_0^1 P(at least k replies <= t) dt.

    Parameters
    ----------
    replies
        One law per silo.
    k
        Which reply becomes the threshold, at least 1; beyond the number of replies it is +inf, which covers all.
    honest
        Only `honest` of the silos count, unknown which: at every t those of largest G_j(t) are taken, which is the
        worst case. By default all.

    Examples
    --------
    >>> from confide.federated.reply_table import RandomRankReply
    >>> replies = [RandomRankReply.fixed(5, 4)] * 3
    >>> round(order_statistic_coverage(replies, 2), 4)
    0.6767
    """
    if k < 1:
        return 0.0
    if k > (len(replies) if honest is None else honest):
        return 1.0
    table = ReplyTable.of(replies)
    whole = honest is None or honest >= len(table)
    tolerance = _TOLERANCE if whole else _KINKED  # the largest of several curves has kinks
    return 1.0 - integral(lambda t: at_least(probabilities(table, t, honest), k), tolerance)


def conditional_coverage_failure(
    replies: Sequence[ReplyLaw] | ReplyTable, k: int, level: float, honest: int | None = None
) -> float:
    """P(coverage given all calibration data < level) when the k-th smallest reply is the threshold.

    Exact for replies that are order statistics of continuous scores, an upper bound for random ranks (Theorem F2).

    Examples
    --------
    >>> from confide.federated.reply_table import RandomRankReply
    >>> replies = [RandomRankReply.fixed(200, 184)] * 5
    >>> round(conditional_coverage_failure(replies, 3, 0.9), 4)
    0.0638
    """
    if k < 1:
        return 1.0
    return float(at_least(probabilities(replies, np.array([level]), honest), k)[0])


def probabilities(
    replies: Sequence[ReplyLaw] | ReplyTable, t: NDArray[np.float64], honest: int | None = None
) -> NDArray[np.float64]:
    """G_j(t), float64 of shape (silos, nodes); with `honest` the largest of them at every t, shape (honest, nodes)."""
    table = ReplyTable.of(replies)
    rows = table.below(t)
    if honest is None or honest >= len(rows) or table.alike:
        return rows[: len(rows) if honest is None else honest]
    return np.sort(rows, axis=0)[len(rows) - honest :]


def integral(curve: Curve, tolerance: float = _TOLERANCE) -> float:
    """The integral over [0, 1] of a curve that never falls, to about ten times `tolerance`.

    Stretches on which the curve is flat to 1e-16 are found first, level by level; between them panels of 32
    Gauss-Legendre nodes are halved until halving changes nothing. Polynomials of degree up to 63 are exact at once.

    Examples
    --------
    >>> round(integral(lambda t: t**40), 15) == round(1 / 41, 15)
    True
    """
    low, high, bottom, top = _steep(curve)
    return low * bottom + (1 - high) * top + _halved(curve, np.linspace(low, high, 3), tolerance)


def expectation(curve: Curve, tolerance: float = _TOLERANCE) -> float:
    """The integral over [0, 1] of any curve that is smooth but for a few kinks, by the same halving of panels.

    Examples
    --------
    >>> round(expectation(lambda t: np.abs(t - 0.3)), 13)
    0.29
    """
    return _halved(curve, np.linspace(0.0, 1.0, 17), tolerance)


def _halved(curve: Curve, edges: NDArray[np.float64], tolerance: float) -> float:
    x, w = gauss_legendre(_NODES)
    left, right = edges[:-1], edges[1:]
    total = 0.0

    def panels(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        values = curve((a[:, None] + (b - a)[:, None] * x[None, :]).ravel()).reshape(len(a), -1)
        sums: NDArray[np.float64] = (b - a) * (values @ w)
        return sums

    whole = panels(left, right)
    for _ in range(40):
        middle = (left + right) / 2
        first, second = panels(left, middle), panels(middle, right)
        rough = np.abs(first + second - whole) > tolerance
        total += float((first + second)[~rough].sum())
        if not rough.any():
            return total
        left, right = np.concatenate([left[rough], middle[rough]]), np.concatenate([middle[rough], right[rough]])
        whole = np.concatenate([first[rough], second[rough]])
    return total + float(whole.sum())


def _steep(curve: Curve) -> tuple[float, float, float, float]:
    """The stretch outside of which a rising curve is flat, and its values at 0 and at 1."""
    grid = np.linspace(0.0, 1.0, 33)
    values = curve(grid)
    bottom, top = float(values[0]), float(values[-1])
    while True:
        low = grid[max(int(np.sum(values <= bottom + _FLAT)) - 1, 0)]
        high = grid[min(len(grid) - int(np.sum(values >= top - _FLAT)), len(grid) - 1)]
        if high - low > (grid[-1] - grid[0]) / 2 or high <= low:
            return float(low), float(max(high, low)), bottom, top
        grid = np.linspace(low, high, 25)
        values = curve(grid)


@lru_cache(maxsize=4)
def gauss_legendre(size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes and weights on [0, 1]."""
    x, w = np.polynomial.legendre.leggauss(size)
    return (x + 1) / 2, w / 2


def nodes_around(level: float, each: int = 4) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes and weights for integrals over [0, 1] of curves that rise somewhere near the level."""
    away = 2.0 ** np.arange(12) * 2e-4
    edges = np.unique(np.clip(np.concatenate([[0.0], level - away, [level], level + away, [1.0]]), 0, 1))
    x, w = gauss_legendre(each)
    widths = np.diff(edges)[:, None]
    return (edges[:-1, None] + widths * x).ravel(), (widths * w).ravel()
