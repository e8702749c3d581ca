"""Federations of many silos: certificates for a random silo, and what shuffling hides.

private-qq for many silos: a quick search with sizes and laws that stand for others, and an exact certificate.

Whatever the search finds is certified by the laws of all silos (docs/theory-federated.md, Theorem F3): only the choice
is approximate, never the promise.

Privacy amplification by shuffling or summing: what hiding among other participants' answers adds, and when.

Feldman, McMillan and Talwar, "Hiding among the clones", FOCS 2021, Theorem 3.2: the randomizer is any epsilon_0-DP one.
(The tighter theorem of 2023 holds only for a restricted class of randomizers, by its own erratum, and is not used.)
Answers are as if n participants used the same randomizer and nobody knew who said what: a trusted shuffler, or a sum of
one-hot vectors, which tell the same. The theorem asks for the loss of replacing the WHOLE input of another participant.
Where a participant holds one record that is the loss of one record; where it is a silo of many records it is another,
far larger number, `whole`, and mostly nothing is gained (docs/theory-federated.md, Theorems A1 and A2).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.federated.certified_k import bisect
from confide.federated.order_statistics import nodes_around, poisson_binomial
from confide.federated.reply_laws import random_rank, typical_reply, whole_ranks
from confide.federated.reply_table import ReplyTable, WholeRanks
from confide.mechanisms import Slopes
from confide.support import Level, exact_level, positive_integer, privacy_loss

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


_TAIL = 1e-14
_MOST_LOCAL, _LARGEST = 50.0, 700.0


def clones_delta(epsilon: float, epsilon_0: float, n: int, *, whole: float | None = None) -> float:
    """The delta at which n shuffled answers of an epsilon_0-DP randomizer are (epsilon, delta)-DP.

    The hockey-stick divergence between (A + D, C - A + 1 - D) and its mirror image, with C ~ Bin(n-1, e^-whole),
    A ~ Bin(C, 1/2) and D ~ Bernoulli(e^epsilon_0 / (1 + e^epsilon_0)). Binomial tails beyond 1e-14 are added to it.

    Parameters
    ----------
    epsilon
        The loss after shuffling.
    epsilon_0
        The loss of one answer when what the statement is about changes: one record of the participant looked at.
    n
        How many participants answer honestly, the one looked at among them.
    whole
        The loss of one answer when the whole input of its participant is replaced, at least; by default `epsilon_0`,
        for participants of one record each.

    Examples
    --------
    >>> clones_delta(0.17, 4.0, 100_000) < 1e-6 < clones_delta(0.165, 4.0, 100_000)
    True
    >>> clones_delta(0.17, 4.0, 100_000, whole=40.0) > 0.9
    True
    """
    from scipy.stats import binom

    n = positive_integer("n", n)
    epsilon_0 = privacy_loss("epsilon_0", epsilon_0)
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise InputError(f"epsilon must be a finite number of at least 0; found {epsilon!r}")
    whole = epsilon_0 if whole is None else privacy_loss("whole", whole)
    if epsilon >= epsilon_0:
        return 0.0
    stays, alike, odds = math.exp(-whole), 1 / (1 + math.exp(-epsilon_0)), math.exp(min(epsilon, _LARGEST))
    mean = (n - 1) * stays
    low, high = mean - 9 * math.sqrt(mean), mean + 12 * math.sqrt(mean) + 40  # beyond either: less than 1e-17
    c = np.arange(max(0, math.floor(low)), min(n - 1, math.ceil(high)) + 1)
    weight = binom.pmf(c, n - 1, stays)
    gain = alike - odds * (1 - alike)
    if gain <= 0:
        return 0.0
    ratio = (odds * alike - (1 - alike)) / gain
    first = np.floor((c + 1) * ratio / (1 + ratio)) + 1
    with_d, without = binom.sf(first - 2, c, 0.5), binom.sf(first - 1, c, 0.5)
    here, there = alike * with_d + (1 - alike) * without, (1 - alike) * with_d + alike * without
    return float((weight * np.maximum(here - odds * there, 0)).sum() + 2 * _TAIL)


def clones_epsilon(epsilon_0: float, n: int, dp_delta: Level, *, whole: float | None = None) -> float:
    """The smallest epsilon, to 1e-6 and rounded up, at which `clones_delta` is at most dp_delta.

    Examples
    --------
    >>> clones_epsilon(1.0, 10_000, 1e-6) < 0.054
    True
    >>> clones_epsilon(1.0, 10_000, 1e-6, whole=20.0) > 0.999
    True
    """
    delta = check_dp_delta(dp_delta)
    low, high = 0.0, float(epsilon_0)
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if clones_delta(middle, epsilon_0, n, whole=whole) <= delta else (middle, high)
    return high


def clones_local(
    epsilon: float, n: int, dp_delta: Level, *, whole: Callable[[float], float] = lambda epsilon_0: epsilon_0
) -> float:
    """The largest loss of one answer, to 1e-6 and rounded down, at which n of them shuffled are (epsilon, dp_delta)-DP.

    Parameters
    ----------
    epsilon, dp_delta
        The loss after shuffling.
    n
        How many participants answer honestly.
    whole
        The loss of replacing a participant's whole input, by the loss of one record; it must not fall. By default the
        same, for participants of one record each.

    Returns
    -------
    float
        At least epsilon, which shuffling does not raise.

    Examples
    --------
    >>> 2.36 < clones_local(0.5, 2_000, 1e-6) < 2.37
    True
    >>> clones_local(0.5, 2_000, 1e-6, whole=lambda loss: 200 * loss) - 0.5 < 1e-5
    True
    """
    delta = check_dp_delta(dp_delta)
    low, high = privacy_loss("epsilon", epsilon), max(_MOST_LOCAL, 2 * epsilon)
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if clones_delta(epsilon, middle, n, whole=whole(middle)) <= delta else (low, middle)
    return low


def check_dp_delta(dp_delta: Level) -> float:
    """A delta of differential privacy, strictly between 0 and 1."""
    delta = float(exact_level("dp_delta", dp_delta)) if not isinstance(dp_delta, float) else dp_delta
    if not 0 < delta < 1:
        raise InputError(f"dp_delta must lie strictly between 0 and 1; found {dp_delta!r}")
    return delta
