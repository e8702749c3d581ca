"""The score that a silo's reply is at least, tables of its law, and exact sums over them.

What a silo's reply is like: how likely it is to be low, if scores are uniform on [0, 1] (docs/theory-federated.md, F1).

How likely the replies of all silos are to be low, for many thresholds at once.

The coverage of a quantile of quantiles as a rational number: the published sum, by how many scores lie below.

Humbert, Le Bars, Bellet and Arlot, "One-shot federated conformal prediction", ICML 2023, (5) and Appendix A.1: the sum
over i_1, ..., i_m has one denominator for all terms of one total r = i_1 + ... + i_m, so the products of binomial
coefficients are coefficients of a product of polynomials, and these are multiplied as whole numbers.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import comb, factorial
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray


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

    @property
    def whole(self) -> bool:
        """Whether ranks are whole numbers without gaps."""
        return bool(self.ranks) and bool(np.all(np.diff(self.ranks) == 1))

    @cached_property
    def _consecutive(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]] | None:
        """For ranks without gaps: those below the last, their ln C(n, r), and P(R <= r), as Bin = r counts them all."""
        from scipy.special import gammaln

        if not self.whole:
            return None
        n, r = self.n, np.array(self.ranks[:-1], dtype=np.float64)
        return r, gammaln(n + 1) - gammaln(r + 1) - gammaln(n - r + 1), np.cumsum(self.probabilities[:-1])


_AGAIN = 12
"""Binomial probabilities follow from one another; after so many of them they are computed afresh, so that one that is
too small for a float does not make all others vanish."""

_FEW = 4
"""So many distinct laws are quicker together than one by one."""

_EDGE, _RARE = 1e-12, 1e-6


class ReplyTable:
    """The laws of the replies of m silos: each distinct one computed once, and those of whole ranks all together.

    Parameters
    ----------
    replies
        One law per silo.

    Examples
    --------
    >>> table = ReplyTable([RandomRankReply.fixed(1, 1), RandomRankReply.fixed(2, 2), RandomRankReply.fixed(1, 1)])
    >>> table.below(np.array([0.5]))
    array([[0.5 ],
           [0.25],
           [0.5 ]])
    """

    def __init__(self, replies: Sequence[ReplyLaw]) -> None:
        places: dict[ReplyLaw, int] = {}
        self._place = np.array([places.setdefault(reply, len(places)) for reply in replies], dtype=np.int64)
        self._distinct = tuple(places)
        whole = {i: law for i, law in enumerate(places) if isinstance(law, RandomRankReply) and law.whole}
        if len(whole) < _FEW:
            whole = {}
        self._whole, self._places_of_whole = WholeRanks(list(whole.values())) if whole else None, list(whole)
        self._others = [i for i in range(len(places)) if i not in whole]

    @classmethod
    def of(cls, replies: "Sequence[ReplyLaw] | ReplyTable") -> "ReplyTable":
        """The table of these laws, or what is one already."""
        return replies if isinstance(replies, ReplyTable) else cls(replies)

    def __len__(self) -> int:
        return len(self._place)

    @property
    def alike(self) -> bool:
        """Whether all silos have one law."""
        return len(self._distinct) == 1

    def fixed(self) -> list[tuple[int, int]] | None:
        """The number of scores and the rank of every silo, if all replies are order statistics of their scores."""
        found = list[tuple[int, int]]()
        for law in self._distinct:
            if not isinstance(law, RandomRankReply) or law.probabilities != (1.0,) or law.ranks[0] % 1:
                return None
            found.append((law.n, int(law.ranks[0])))
        return [found[place] for place in self._place]

    def below(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """G_j(t), float64 of shape (silos, nodes)."""
        rows = np.empty((len(self._distinct), len(t)))
        if self._whole is not None:
            rows[self._places_of_whole] = self._whole.below(t)
        for i in self._others:
            rows[i] = self._distinct[i].below(t)
        return rows[self._place]


class WholeRanks:
    """Laws of whole ranks without gaps: one tail of the binomial at the last rank, then its probabilities downwards."""

    def __init__(self, laws: Sequence[RandomRankReply]) -> None:
        deepest = max(len(law.ranks) for law in laws) - 1
        self._n = np.array([law.n for law in laws], dtype=np.float64)[:, None]
        self._top = np.array([law.ranks[-1] for law in laws], dtype=np.float64)[:, None]
        self._sure = np.array([sum(law.probabilities) for law in laws])[:, None]
        self._bottom = np.array([law.bottom for law in laws])[:, None]
        self._up_to = np.zeros((deepest, len(laws), 1))  # P(0 < R < top - d) of every law, in row d
        for i, law in enumerate(laws):
            self._up_to[: len(law.ranks) - 1, i, 0] = np.cumsum(law.probabilities[:-1])[::-1]

    def short(self) -> "WholeRanks":
        """Without ranks that are less likely than a millionth, for a search."""
        made = copy(self)
        made._up_to = self._up_to[: int((self._up_to.max(axis=(1, 2)) > _RARE).sum())]
        return made

    def moved(self, n: NDArray[np.int64], targets: NDArray[np.int64]) -> "WholeRanks":
        """The only law for other numbers of scores and last ranks: ranks lie as far below the target as here."""
        made = copy(self)
        made._n, made._top = n.astype(np.float64)[:, None], targets.astype(np.float64)[:, None]
        return made

    def below(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(R <= Bin(n, t)), shape (laws, nodes); never falling in t."""
        from scipy.special import betainc, gammaln

        n, t = self._n, np.clip(t, _EDGE, 1 - _EDGE)[None, :]
        found = self._bottom + self._sure * betainc(self._top, n - self._top + 1, t)
        log_t, log_rest, odds = np.log(t), np.log1p(-t), (1 - t) / t
        chance, weighed = np.zeros_like(found), np.empty_like(found)
        for d, weight in enumerate(self._up_to):
            r = self._top - 1 - d
            if d % _AGAIN == 0:
                at = np.maximum(r, 0)
                ways = gammaln(n + 1) - gammaln(at + 1) - gammaln(n - at + 1)
                chance = np.where(r < 0, 0.0, np.exp(ways + at * log_t + (n - at) * log_rest))
            else:
                chance *= odds
                chance *= np.maximum(r + 1, 0) / (n - r)
            found += np.multiply(chance, weight, out=weighed)
        result: NDArray[np.float64] = np.minimum(found, 1.0)
        return result


DOUBT = 1e-12
"""A coverage so near to a level may lie on either side of it: quadrature is less exact."""

_MOST = 300


def coverage_fraction(sizes: Sequence[int], ranks: Sequence[int], k: int) -> Fraction:
    """Coverage of the k-th smallest of m replies, reply j the l_j-th smallest of n_j continuous scores, exactly.

    One silo, or one record each, is split conformal prediction. Otherwise the time grows with the squares of m and of
    the number of records: for a few hundred records.

    Parameters
    ----------
    sizes
        n_j.
    ranks
        l_j in 1..n_j + 1, which stands for +inf.
    k
        Which reply becomes the threshold, in 1..m.

    Examples
    --------
    >>> coverage_fraction([5, 5, 5, 5], [2, 2, 2, 2], 3)
    Fraction(52519, 138567)
    >>> coverage_fraction([999], [900], 1), coverage_fraction([3, 3, 3], [3, 3, 3], 3)
    (Fraction(9, 10), Fraction(9, 10))
    """
    total = sum(sizes)
    if len(sizes) == 1:
        return Fraction(ranks[0], total + 1)
    if total == len(sizes) == sum(ranks):
        return Fraction(k, total + 1)
    bits = total + 1  # a coefficient is at most C(total, r) < 2^total: the polynomials are whole numbers in base 2^bits
    ways = [1]  # by how many replies lie below t
    for n, l in zip(sizes, ranks, strict=True):
        below, above = (sum(comb(n, i) << bits * i for i in span) for span in (range(l, n + 1), range(l)))
        ways = [
            (ways[j] * above if j < len(ways) else 0) + (ways[j - 1] * below if j else 0) for j in range(len(ways) + 1)
        ]
    missed, mask, weighted = sum(ways[k:]), (1 << bits) - 1, 0
    for r in range(total + 1):
        weighted += (missed >> bits * r & mask) * factorial(r) * factorial(total - r)
    return 1 - Fraction(weighted, factorial(total) * (total + 1))


def is_simple(sizes: Sequence[int]) -> bool:
    """Whether `coverage_fraction` takes little time: one silo, or one record each, or up to 300 records in all."""
    return len(sizes) == 1 or sum(sizes) in (len(sizes), *range(_MOST + 1))


def settled(coverage: ArrayLike, l: ArrayLike, k: ArrayLike, m: int, n: int, wanted: float) -> NDArray[np.float64]:
    """Computed values of M(l, k), those within 1e-12 of what is wanted replaced by exact ones where that is simple.

    A quadrature cannot tell 9/10 from a little less; a level that is met exactly must count as met.

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
