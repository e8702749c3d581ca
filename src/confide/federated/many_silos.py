"""private-qq for many silos: a search with a few representative sizes and with laws that are fast to compute.

`private_quantiles.py` certifies the result by the laws of all silos (docs/theory-federated.md, Theorem F3). So only the
choice is approximate, not the guarantee. Plans are chosen by the coverage on uniform scores, which is not guaranteed.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.federated.certificates import (
    certificate_rule,
    certified,
    order_statistic_coverage,
    poisson_binomial,
    reaches,
)
from confide.federated.quadrature import nodes_around
from confide.federated.reply_laws import RandomRankReply, ReplyTable, WholeRanks, random_rank, slopes_reply
from confide.mechanisms import Slopes
from confide.selection import selection_law
from confide.support import bisect

# Maximum number of representative sizes in the search
_MOST_SIZES = 48

# Up to this number of silos the exact law is fast enough; the approximation can be 0.02 off for eight unequal ones
_MOST_EXACT = 64

# Range of the share of silos that may reply below the level
_HIGHEST_SHARE = 0.96
_LOWEST_SHARE = 0.08


@dataclass(frozen=True)
class Goal:
    """The public numbers of the search for a plan: see `best_private_qq`. `honest` and `most_k` are resolved here."""

    sizes: tuple[int | None, ...]
    level: Fraction
    epsilon: float
    candidates: int
    delta: float | None
    honest: int
    absent: int
    most_k: int
    n_min: int
    n_typical: int

    @property
    def public(self) -> tuple[int, ...]:
        """The sizes, if they are public."""
        return tuple(n for n in self.sizes if n is not None)

    @property
    def present(self) -> int:
        """Number of silos that answer."""
        return len(self.sizes) - self.absent

    @property
    def byzantine(self) -> int:
        """Number of Byzantine answers, which are expected to be lowest."""
        return max(self.present - self.honest, 0)

    def replies(self, mechanisms: Sequence[Slopes]) -> ReplyTable:
        """The laws of the replies of all silos."""
        pairs = zip(self.sizes, mechanisms, strict=True)
        return ReplyTable([slopes_reply(n, slopes, self.candidates, self.n_min, self.level) for n, slopes in pairs])

    def certifies(self, mechanisms: Sequence[Slopes], k: int) -> bool:
        """Whether the k-th smallest honest reply of these mechanisms is certified."""
        return reaches(certified(self.replies(mechanisms), k, self.level, self.delta, self.honest), self.level)


class StandIns(NamedTuple):
    """A few representative sizes, and how many silos each represents."""

    sizes: NDArray[np.int64]
    silos: NDArray[np.int64]

    @classmethod
    def of(cls, sizes: Sequence[int]) -> "StandIns":
        """All sizes if they are few; else the median sizes of groups with equal numbers of silos."""
        ordered = np.sort(np.asarray(sizes, dtype=np.int64))
        if len(set(sizes)) > _MOST_SIZES:
            groups = np.array_split(ordered, _MOST_SIZES)
            ordered = np.concatenate([np.full_like(group, group[len(group) // 2]) for group in groups])
        return cls(*np.unique(ordered, return_counts=True))

    def targets(self, rate: Fraction) -> NDArray[np.int64]:
        """The target ranks of these sizes."""
        return np.array([target_rank(n, rate) for n in self.sizes.tolist()])


def target_rank(n: int, rate: Fraction) -> int:
    """ceil(rate (n + 1)), at most n.

    Examples
    --------
    >>> target_rank(99, Fraction(9, 10)), target_rank(5, Fraction(9, 10))
    (90, 5)
    """
    return min(n, -(-rate.numerator * (n + 1) // rate.denominator))


# P(at least k silos reply low) at every node, by k
Tail: TypeAlias = Callable[[int], NDArray[np.float64]]

# Steps that a search computes together
_STEPS_AT_ONCE = 12

# A number of scores whose target rank is far from the first rank
_FAR = 2**30


class Line(NamedTuple):
    """Target ranks target_rank(n, rate), and the k that the search found for them."""

    rate: Fraction
    k: int


@dataclass(frozen=True)
class Search:
    """A search over rates, from nearly all silos replying below the level to few of them, with the smallest k for each.

    `trial` is the mechanism, whose target is replaced.
    """

    goal: Goal
    representative: StandIns
    trial: Slopes

    def lines(self, steps: int) -> Iterator[Line]:
        """Up to `steps` evenly spread rates that can be certified, with their k."""
        # Rates are target ranks of the largest silo
        largest = int(self.representative.sizes[-1])
        first = self._falls_to(_HIGHEST_SHARE)
        last = self._falls_to(_LOWEST_SHARE)
        rule = certificate_rule(float(self.goal.level), self.goal.delta)
        for step in sorted({round(step) for step in np.linspace(first, last, steps)}):
            # The smallest k that is enough with this rate
            rate = Fraction(step, largest + 1)
            chances = self._below(self.representative.sizes, self.representative.targets(rate), rule.nodes)
            tail = tails(chances, self.representative.silos, self.goal.honest)

            def is_enough(k: int, tail: Tail = tail) -> bool:
                return 1 - float(tail(k) @ rule.weights) >= rule.enough

            if is_enough(self.goal.most_k):
                yield Line(rate, bisect(is_enough, 0, self.goal.most_k))

    def _falls_to(self, share: float) -> int:
        """The first step, in ranks of the largest silo, with at most this share of silos below the level."""
        largest = int(self.representative.sizes[-1])
        # Several steps at once, because the laws of all of them are computed together
        low, high = 0, largest
        while high - low > 1:
            inner = np.unique(np.linspace(low, high, _STEPS_AT_ONCE + 2).astype(np.int64))[1:-1]
            steps = inner.tolist() or [low + 1]
            aims = [self.representative.targets(Fraction(step, largest + 1)) for step in steps]
            sizes = np.tile(self.representative.sizes, len(steps))
            chances = self._below(sizes, np.concatenate(aims), np.array([float(self.goal.level)]))
            shares = chances.reshape(len(steps), -1) @ self.representative.silos / self.representative.silos.sum()
            # Shares decrease: the border lies after the last step with a larger share
            bounds = [low, *steps, high]
            last_above = int(np.searchsorted(-shares, -share))
            low, high = bounds[last_above], bounds[last_above + 1]
        return high

    def _below(
        self, sizes: NDArray[np.int64], targets: NDArray[np.int64], t: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """P(reply <= t) with these target ranks, by the law far from the first rank if there is one."""
        if self._far is not None:
            return self._far.moved(sizes, targets).below(t)
        pairs = zip(sizes.tolist(), targets.tolist(), strict=True)
        aimed = [random_rank(n, replace(self.trial, offset=Fraction(T)), self.goal.candidates) for n, T in pairs]
        return ReplyTable(aimed).below(t)

    @cached_property
    def _far(self) -> WholeRanks | None:
        """The law far from the first rank; None if its ranks have gaps, as for very flat slopes."""
        law = random_rank(_FAR, replace(self.trial, offset=Fraction(_FAR)), self.goal.candidates)
        return WholeRanks([law]).short() if law.whole else None


def expected_in_search(answering: StandIns, line: Line, trial: Slopes, candidates: int, level: Fraction) -> float:
    """The approximate mean coverage of the k-th smallest reply on uniform scores, used to choose a plan."""
    pairs = zip(answering.sizes.tolist(), answering.targets(line.rate).tolist(), strict=True)
    laws = [whole_ranks(typical_reply(n, replace(trial, offset=Fraction(T)), candidates)) for n, T in pairs]
    t, weights = nodes_around(float(level))
    tail = tails(WholeRanks(laws).short().below(t), answering.silos)
    return 1 - float(tail(line.k) @ weights)


def tails(chances: NDArray[np.float64], silos: NDArray[np.int64], honest: int | None = None) -> Tail:
    """The function k -> P(at least k silos reply low) at every node: exact for few silos, else approximate.

    `chances` has the probability of a low reply for every representative size, float64 of shape (sizes, nodes), and
    `silos` the number of silos of each size. Only `honest` silos count, at every node those with the largest
    probabilities; by default all.
    """
    total = int(silos.sum())
    if total > _MOST_EXACT:
        return lambda k: matched(chances, silos, k, honest)
    each = np.repeat(chances, silos, axis=0)
    if honest is not None and honest < total:
        each = np.sort(each, axis=0)[total - honest :]
    at_least = np.cumsum(poisson_binomial(each)[:, ::-1], axis=1)[:, ::-1]
    return lambda k: at_least[:, k]


def matched(
    chances: NDArray[np.float64], silos: NDArray[np.int64], k: int, honest: int | None = None
) -> NDArray[np.float64]:
    """P(at least k silos reply low) approximately; exact if all probabilities are equal. Arguments of `tails`.

    Examples
    --------
    >>> matched(np.array([[0.5], [0.5]]), np.array([2, 1]), 2)
    array([0.5])
    """
    from scipy.special import betainc

    # The silos that count: at every node the honest silos are those with the largest probabilities
    counted = np.broadcast_to(silos[:, None], chances.shape)
    if honest is not None and honest < silos.sum():
        order = np.argsort(-chances, axis=0)
        chances = np.take_along_axis(chances, order, 0)
        counted = silos[order]
        counted = np.clip(honest - (np.cumsum(counted, axis=0) - counted), 0, counted)

    # The binomial law with the mean and the variance of the number of low replies
    mean = (counted * chances).sum(axis=0)
    variance = (counted * chances * (1 - chances)).sum(axis=0)
    p = np.clip(1 - variance / np.maximum(mean, 1e-300), 1e-12, 1.0)
    trials = np.maximum(mean / p, k)
    return np.where(mean < 1e-12, 0.0, betainc(k, trials - k + 1, p))


def expected_coverage(silos: Sequence[tuple[int, Fraction]], k: int, mechanism: Slopes, candidates: int) -> float:
    """Mean coverage of the k-th smallest reply on uniform scores.

    `silos` are pairs (number of scores, target rank). Slopes, prior weights and noise are the same in all silos.
    """
    replies = [typical_reply(n, replace(mechanism, offset=Fraction(target)), candidates) for n, target in silos]
    return order_statistic_coverage(replies, k)


# Candidates that are less likely than the best one by this factor, in log-odds, are hardly ever chosen
_REACH = 25

# Number of points that stand for the candidates in between
_FINE = 100

# Ranks lie at least this far from 0 and n + 1, where a law has no density; ranks of less probability are left out
_EDGE = 1e-3
_RARE = 1e-9


@lru_cache(maxsize=8192)
def typical_reply(n: int, mechanism: Slopes, candidates: int) -> RandomRankReply:
    """The law of a silo's reply on uniform scores, for a public size; the ranks of the law are not integers.

    The candidates are evenly spread over the real numbers 0..n+1, as ranks.
    """
    left = mechanism.slope_left
    right = mechanism.slope_right
    rise = mechanism.total_rise
    target = float(mechanism.offset)
    flat = float(mechanism.flat)

    # The ranks that may be chosen. A candidate beyond all n scores is penalised as if it were the n-th: with a target
    # near n the choice may lie anywhere above the scores.
    low = max(target - _REACH / left, 0.0)
    high = n + 1 if right * (n - target) < _REACH + rise else target + (_REACH + rise) / right
    spacing = max((n + 1) / candidates, (high - low) / _FINE)
    middles = np.arange(low, high, spacing) + spacing / 2
    ranks = np.maximum(np.minimum(middles, n + 1 - _EDGE), _EDGE)

    # Their utilities, in log-odds, with the rise of the prior weights
    short = left * np.maximum(target - np.minimum(ranks, n), 0)
    over = right * np.maximum(np.minimum(ranks - spacing, n) - target, 0)
    candidate = candidates * ranks / (n + 1)
    bonus = rise * np.maximum(candidate - flat, 0) / max(candidates - flat, 1.0)
    utility = bonus - np.maximum(short, over)
    law = selection_law(np.exp(utility - utility.max()))

    # Without the unlikely ones
    likely = law > _RARE
    return RandomRankReply(n, tuple(ranks[likely].tolist()), tuple((law[likely] / law[likely].sum()).tolist()))


def whole_ranks(reply: RandomRankReply) -> RandomRankReply:
    """The law with ranks rounded to integers and without gaps; beyond n the reply is +inf.

    Examples
    --------
    >>> whole_ranks(RandomRankReply(9, (5.2, 7.4, 9.7), (0.5, 0.25, 0.25)))
    RandomRankReply(n=9, ranks=(5, 6, 7), probabilities=(0.5, 0.0, 0.25), bottom=0.0)
    """
    ranks = np.maximum(np.rint(reply.ranks).astype(np.int64), 1)
    law = np.bincount(ranks, weights=reply.probabilities, minlength=reply.n + 1)
    first = min(int(ranks[0]), reply.n)
    last = int(np.flatnonzero(law[: reply.n + 1]).max(initial=first))
    return RandomRankReply(reply.n, tuple(range(first, last + 1)), tuple(law[first : last + 1].tolist()))
