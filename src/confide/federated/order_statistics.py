"""Coverage when the threshold is the k-th smallest of m independent replies (docs/federated.md, Theorem F1).

Scores may be taken uniform: a score enters through its value F(S), and ties only raise coverage. If reply j is at most
t with probability G_j(t), the threshold is at most t when at least k replies are, and

    coverage = 1 - int_0^1 P( at least k of independent events of probability G_j(t) ) dt.

A reply that is the l-th smallest of n scores has G(t) = I_t(l, n-l+1); one that dominates the R-th smallest, R random
and independent of the data, has the mixture of these over the law of R.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.federated.poisson_binomial import at_least

Curve: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]

_NODES = 32
_FLAT = 1e-16
_TOLERANCE = 1e-14
_KINKED = 1e-10


class ReplyLaw(Protocol):
    """How likely a silo's reply is to be low."""

    def below(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """An upper bound on P(reply <= t) for uniform scores, shape of t; never falling in t."""
        ...


@dataclass(frozen=True)
class RandomRankReply:
    """A reply that is at least the R-th smallest of n scores, R random and independent of them.

    Parameters
    ----------
    n
        Number of scores in the silo.
    ranks, probabilities
        The law of R on 1..n, rising; what is missing to 1 beyond `bottom` stands for +inf.
    bottom
        P(R = 0): the reply may be anything.

    Examples
    --------
    >>> float(RandomRankReply.fixed(1, 1).below(np.array([0.25]))[0])
    0.25
    """

    n: int
    ranks: tuple[float, ...]
    probabilities: tuple[float, ...]
    bottom: float = 0.0

    @classmethod
    def fixed(cls, n: int, rank: int) -> "RandomRankReply":
        """The reply that is exactly the rank-th smallest score; +inf if rank > n."""
        return cls(n, (rank,), (1.0,)) if rank <= n else cls(n, (), ())

    def below(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(S_(R) <= t) for n uniform scores: P(R <= Bin(n, t)), so one tail and a few binomial probabilities."""
        from scipy.special import betainc

        if not self.ranks:
            return np.full(np.shape(t), self.bottom)
        n, top = self.n, self.ranks[-1]
        if self._consecutive is None:
            r = np.array(self.ranks)[:, None]
            mixed: NDArray[np.float64] = self.bottom + np.array(self.probabilities) @ betainc(r, n - r + 1, t[None, :])
            return np.minimum(mixed, 1.0)
        below_top, ways, up_to = self._consecutive
        mixed = self.bottom + float(np.sum(self.probabilities)) * betainc(top, n - top + 1, t)
        if below_top.size:
            with np.errstate(divide="ignore"):
                logs = ways + np.outer(np.log(t), below_top) + np.outer(np.log1p(-t), n - below_top)
            mixed = mixed + np.exp(logs) @ up_to
        return np.minimum(mixed, 1.0)

    @cached_property
    def _consecutive(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]] | None:
        """For ranks without gaps: those below the last, their ln C(n, r), and P(R <= r), as Bin = r counts them all."""
        from scipy.special import gammaln

        if np.any(np.diff(self.ranks) != 1):
            return None
        n, r = self.n, np.array(self.ranks[:-1], dtype=np.float64)
        return r, gammaln(n + 1) - gammaln(r + 1) - gammaln(n - r + 1), np.cumsum(self.probabilities[:-1])


def order_statistic_coverage(replies: Sequence[ReplyLaw], k: int, honest: int | None = None) -> float:
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
    >>> replies = [RandomRankReply.fixed(5, 4)] * 3
    >>> round(order_statistic_coverage(replies, 2), 4)
    0.6767
    """
    if k < 1:
        return 0.0
    if k > (len(replies) if honest is None else honest):
        return 1.0
    whole = honest is None or honest >= len(replies)
    tolerance = _TOLERANCE if whole else _KINKED  # the largest of several curves has kinks
    return 1.0 - integral(lambda t: at_least(probabilities(replies, t, honest), k), tolerance)


def conditional_coverage_failure(replies: Sequence[ReplyLaw], k: int, level: float, honest: int | None = None) -> float:
    """P(coverage given all calibration data < level) when the k-th smallest reply is the threshold.

    Exact for replies that are order statistics of continuous scores, an upper bound for random ranks (Theorem F2).

    Examples
    --------
    >>> replies = [RandomRankReply.fixed(200, 184)] * 5
    >>> round(conditional_coverage_failure(replies, 3, 0.9), 4)
    0.0638
    """
    if k < 1:
        return 1.0
    return float(at_least(probabilities(replies, np.array([level]), honest), k)[0])


def probabilities(
    replies: Sequence[ReplyLaw], t: NDArray[np.float64], honest: int | None = None
) -> NDArray[np.float64]:
    """G_j(t), float64 of shape (silos, nodes); with `honest` the largest of them at every t, shape (honest, nodes)."""
    rows: dict[ReplyLaw, NDArray[np.float64]] = {}
    for reply in replies:
        if reply not in rows:
            rows[reply] = reply.below(t)
    table = np.stack([rows[reply] for reply in replies])
    if honest is None or honest >= len(table) or len(rows) == 1:
        return table[: len(table) if honest is None else honest]
    return np.sort(table, axis=0)[len(table) - honest :]


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
    x, w = gauss_legendre(_NODES)
    edges = np.linspace(low, high, 3)
    left, right = edges[:-1], edges[1:]
    total = low * bottom + (1 - high) * top

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
