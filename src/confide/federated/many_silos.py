"""private-qq for many silos: a quick search with sizes and laws that stand for others, and an exact certificate.

Whatever the search finds is certified by the laws of all silos (docs/federated.md, Theorem F3): only the choice is
approximate, never the promise.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.federated.certified_k import bisect
from confide.federated.order_statistics import nodes_around
from confide.federated.poisson_binomial import poisson_binomial
from confide.federated.reply_laws import random_rank, typical_reply, whole_ranks
from confide.federated.reply_table import ReplyTable, WholeRanks
from confide.mechanisms import Slopes

_SIZES = 48
"""So many sizes stand for all others in the search."""
_LAW = 64
"""For so few silos the law itself is quick enough; nearly, it can be .02 off for eight that differ."""
_FAR, _GRID = 2**30, 12
_HIGHEST, _LOWEST = 0.96, 0.08
"""What share of the silos may reply below the level."""


Tail: TypeAlias = Callable[[int], NDArray[np.float64]]


class StandIns(NamedTuple):
    """A few sizes that stand for all: how many silos each stands for, and how many of these are sure to count."""

    sizes: NDArray[np.int64]
    silos: NDArray[np.int64]

    @classmethod
    def of(cls, sizes: Sequence[int]) -> "StandIns":
        """All sizes if they are few; else the middle ones of groups of equally many silos.

        Examples
        --------
        >>> StandIns.of([30, 20, 30])
        StandIns(sizes=array([20, 30]), silos=array([1, 2]))
        """
        ordered = np.sort(np.asarray(sizes, dtype=np.int64))
        if len(set(sizes)) > _SIZES:
            ordered = np.concatenate(
                [np.full_like(part, part[len(part) // 2]) for part in np.array_split(ordered, _SIZES)]
            )
        return cls(*np.unique(ordered, return_counts=True))

    def targets(self, rate: Fraction) -> NDArray[np.int64]:
        """Their target ranks."""
        return np.array([target_rank(n, rate) for n in self.sizes.tolist()])


def target_rank(n: int, rate: Fraction) -> int:
    """ceil(rate (n + 1)), at most n.

    Examples
    --------
    >>> target_rank(99, Fraction(9, 10)), target_rank(5, Fraction(9, 10))
    (90, 5)
    """
    return min(n, -(-rate.numerator * (n + 1) // rate.denominator))


class Line(NamedTuple):
    """Target ranks target_rank(n, rate), and the k that the search found for them."""

    rate: Fraction
    k: int


@dataclass(frozen=True)
class Search:
    """Rates from which nearly all silos, to which few of them, reply below the level, and the smallest k for each."""

    stand: StandIns
    trial: Slopes
    candidates: int
    level: Fraction
    delta: float | None
    honest: int
    top: int

    def lines(self, steps: int) -> Iterator[Line]:
        """So many of them, evenly spread."""
        largest = int(self.stand.sizes[-1])
        nodes, weights = nodes_around(float(self.level))
        if self.delta is not None:
            nodes, weights = np.array([float(self.level)]), np.ones(1)
        enough = float(self.level) if self.delta is None else 1 - self.delta
        first, last = self._falls_to(_HIGHEST), self._falls_to(_LOWEST)
        for step in sorted({round(step) for step in np.linspace(first, last, steps)}):
            rate = Fraction(step, largest + 1)
            tail = tails(self._below(self.stand.sizes, self.stand.targets(rate), nodes), self.stand.silos, self.honest)

            def certified(k: int, tail: Tail = tail) -> bool:
                return 1 - float(tail(k) @ weights) >= enough

            if certified(self.top):
                yield Line(rate, bisect(certified, 0, self.top))

    def _falls_to(self, share: float) -> int:
        """The first step, of as many as there are ranks in the largest silo, with so few silos below the level."""
        largest = int(self.stand.sizes[-1])
        low, high = 0, largest
        while high - low > 1:
            steps = np.unique(np.linspace(low, high, _GRID + 2).astype(np.int64))[1:-1].tolist() or [low + 1]
            aims = [self.stand.targets(Fraction(step, largest + 1)) for step in steps]
            sizes = np.tile(self.stand.sizes, len(steps))
            chances = self._below(sizes, np.concatenate(aims), np.array([float(self.level)]))
            shares = chances.reshape(len(steps), -1) @ self.stand.silos / self.stand.silos.sum()
            few = int(np.searchsorted(-shares, -share))
            low, high = ([low, *steps][few], [*steps, high][few])
        return high

    def _below(
        self, sizes: NDArray[np.int64], targets: NDArray[np.int64], t: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        if self._far is not None:
            return self._far.moved(sizes, targets).below(t)
        pairs = zip(sizes.tolist(), targets.tolist(), strict=True)
        aimed = [random_rank(n, replace(self.trial, offset=Fraction(T)), self.candidates) for n, T in pairs]
        return ReplyTable(aimed).below(t)

    @cached_property
    def _far(self) -> WholeRanks | None:
        """The law far from the first rank; None if its ranks have gaps, as they do where slopes are very flat."""
        law = random_rank(_FAR, replace(self.trial, offset=Fraction(_FAR)), self.candidates)
        return WholeRanks([law]).short() if law.whole else None


def expected_in_search(stand: StandIns, line: Line, trial: Slopes, candidates: int, level: Fraction) -> float:
    """Mean coverage of the k-th smallest reply on evenly spread scores, nearly: to choose by."""
    pairs = zip(stand.sizes.tolist(), stand.targets(line.rate).tolist(), strict=True)
    laws = [whole_ranks(typical_reply(n, replace(trial, offset=Fraction(T)), candidates)) for n, T in pairs]
    t, weights = nodes_around(float(level))
    return 1 - float(tails(WholeRanks(laws).short().below(t), stand.silos)(line.k) @ weights)


def tails(chances: NDArray[np.float64], silos: NDArray[np.int64], honest: int | None = None) -> Tail:
    """K -> P(at least k silos reply low) at every node: by their law if they are few, else nearly.

    Parameters
    ----------
    chances
        Of every stand-in, float64 of shape (sizes, nodes).
    silos
        For how many silos each stands, shape (sizes,).
    honest
        Only so many silos count, at every node those with the largest chances; by default all.
    """
    total = int(silos.sum())
    if total > _LAW:
        return lambda k: matched(chances, silos, k, honest)
    each = np.repeat(chances, silos, axis=0)
    if honest is not None and honest < total:
        each = np.sort(each, axis=0)[total - honest :]
    at_least = np.cumsum(poisson_binomial(each)[:, ::-1], axis=1)[:, ::-1]
    return lambda k: at_least[:, k]


def matched(
    chances: NDArray[np.float64], silos: NDArray[np.int64], k: int, honest: int | None = None
) -> NDArray[np.float64]:
    """P(at least k) of the binomial with the mean and the variance of the sum: exact if all chances agree.

    Parameters
    ----------
    chances
        Of every stand-in, float64 of shape (sizes, nodes).
    silos
        For how many silos each stands, shape (sizes,).
    k
        At least so many.
    honest
        Only so many silos count, at every node those with the largest chances; by default all.

    Examples
    --------
    >>> matched(np.array([[0.5], [0.5]]), np.array([2, 1]), 2)
    array([0.5])
    """
    from scipy.special import betainc

    counted = np.broadcast_to(silos[:, None], chances.shape)
    if honest is not None and honest < silos.sum():
        order = np.argsort(-chances, axis=0)
        chances, counted = np.take_along_axis(chances, order, 0), silos[order]
        counted = np.clip(honest - (np.cumsum(counted, axis=0) - counted), 0, counted)
    mean, variance = (counted * chances).sum(axis=0), (counted * chances * (1 - chances)).sum(axis=0)
    p = np.clip(1 - variance / np.maximum(mean, 1e-300), 1e-12, 1.0)
    trials = np.maximum(mean / p, k)
    result: NDArray[np.float64] = np.where(mean < 1e-12, 0.0, betainc(k, trials - k + 1, p))
    return result
