"""What the reply of a silo dominates that runs a mechanism on its scores, for a public or a secret number of records.

And, for the choice among plans but never for a promise, what it is like on evenly spread scores.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confide.federated.order_statistics import order_statistic_coverage
from confide.federated.reply_table import RandomRankReply, ReplyLaw
from confide.guarantee import line_holds
from confide.mechanisms import Mechanism, Slopes
from confide.selection import Selector, selection_law

_UNLIKELY = 1e-10
_LEVELS = 24
_GRID = 100


def slopes_reply(n: int | None, mechanism: Slopes, candidates: int, n_min: int) -> ReplyLaw:
    """The law that a silo's reply dominates; with n None for every number of scores from n_min on."""
    return any_size_reply(mechanism, candidates, n_min) if n is None else random_rank(n, mechanism, candidates)


@lru_cache(maxsize=8192)
def random_rank(n: int, mechanism: Mechanism, candidates: int) -> RandomRankReply:
    """The law that a silo's reply dominates, for a public number of scores n and a mechanism that knows its rank law.

    Examples
    --------
    >>> mechanism = Slopes(Fraction(0), Fraction(90), 3, 1, 4.0, "permute_and_flip")
    >>> reply = random_rank(100, mechanism, 50)
    >>> round(float(reply.below(np.array([0.9]))[0]), 2)
    0.9
    """
    law = mechanism.rank_law(n, candidates)
    assert law is not None
    ranks, mass, bottom = law
    # The lowest ranks, together less likely than 1e-10, count as rank 0: it can only lower the certificate.
    first = int(np.searchsorted(bottom + np.cumsum(mass), _UNLIKELY))
    bottom += float(mass[:first].sum())
    kept, mass = ranks[first:], mass[first:]
    finite = kept <= n
    return RandomRankReply(n, tuple(kept[finite].tolist()), tuple(mass[finite].tolist()), max(bottom, 0.0))


@dataclass(frozen=True)
class AnySizeReply:
    """The worst reply over all numbers of scores from n_min on: for silos whose sizes are secret (Theorem F4).

    `steps` are pairs (t, bound), rising: for every n >= n_min the reply is at most t with probability at most `bound`.
    Between two t the bound of the upper one is used, above the last one it is 1.
    """

    steps: tuple[tuple[float, float], ...]

    def below(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """The step function, shape of t."""
        at = np.array([step[0] for step in self.steps])
        bound = np.array([step[1] for step in self.steps] + [1.0])
        found: NDArray[np.float64] = np.where(t <= 0, 0.0, bound[np.searchsorted(at, t, side="left")])
        return found


@lru_cache(maxsize=64)
def any_size_reply(mechanism: Slopes, candidates: int, n_min: int) -> AnySizeReply:
    """Bounds that hold for every secret n >= n_min, each proved by `line_holds` (docs/theory.md, Theorem 4).

    Without a record S_(R) is +inf, so the reply is anything else with probability at most P(R = 0), whatever t is.
    """
    if n_min == 0:
        law = mechanism.rank_law(0, candidates)
        assert law is not None  # records of silos weigh alike
        return AnySizeReply(tuple((t, max(b, law[2])) for t, b in any_size_reply(mechanism, candidates, 1).steps))
    rate = float(mechanism.rate)
    gaps = np.geomspace(0.02, 1.0, _LEVELS)[::-1] * min(0.25, rate)
    steps = []
    for gap in gaps:
        t = Fraction(math.floor((rate - gap) * 10**5), 10**5)
        if t > 0:
            steps.append((float(t), _largest_failure(mechanism, candidates, n_min, t)))
    bounds = np.maximum.accumulate([bound for _, bound in steps])
    return AnySizeReply(tuple((t, float(b)) for (t, _), b in zip(steps, bounds, strict=True)))


def _largest_failure(mechanism: Slopes, candidates: int, n_min: int, t: Fraction) -> float:
    """The smallest delta on a grid for which the reply is below t with probability at most delta at every n."""

    def holds(log_delta: float) -> bool:
        rate, offset, slope = mechanism.rate, mechanism.offset, mechanism.slope_left
        rivals = mechanism.rivals(candidates)
        return line_holds(rate, offset, t, math.exp(log_delta), n_min, slope, rivals, mechanism.selector)

    low, high = -16.0, -0.02
    if not holds(high):
        return 1.0
    if holds(low):
        return math.exp(low)
    while high - low > 0.06:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return math.exp(high)


def expected_coverage(silos: Sequence[tuple[int, Fraction]], k: int, mechanism: Slopes, candidates: int) -> float:
    """Mean coverage of the k-th smallest reply on evenly spread scores.

    `silos` are pairs (number of scores, target rank); slopes, heights and noise of the mechanism are the same in all.
    """
    replies = [typical_reply(n, replace(mechanism, offset=Fraction(target)), candidates) for n, target in silos]
    return order_statistic_coverage(replies, k)


def typical_reply(n: int, mechanism: Slopes, candidates: int) -> RandomRankReply:
    """What a silo of public size replies on evenly spread scores; its ranks are not whole.

    Examples
    --------
    >>> reply = typical_reply(100, Slopes(Fraction(0), Fraction(90), 3, 1, 4.0, "permute_and_flip"), 50)
    >>> round(float(np.dot(reply.ranks, reply.probabilities)), 1)
    92.4
    """
    slopes = _LogOdds(
        mechanism.slope_left, mechanism.slope_right, float(mechanism.flat), mechanism.total_rise, mechanism.selector
    )
    return _typical_reply(n, float(mechanism.offset), slopes, candidates)


def whole_ranks(reply: RandomRankReply) -> RandomRankReply:
    """The same with ranks rounded to whole ones and without gaps; beyond n it is +inf.

    Examples
    --------
    >>> whole_ranks(RandomRankReply(9, (5.2, 7.4, 9.7), (0.5, 0.25, 0.25)))
    RandomRankReply(n=9, ranks=(5, 6, 7), probabilities=(0.5, 0.0, 0.25), bottom=0.0)
    """
    at = np.maximum(np.rint(reply.ranks).astype(np.int64), 1)
    law = np.bincount(at, weights=reply.probabilities, minlength=reply.n + 1)
    first, last = min(int(at[0]), reply.n), min(int(at[-1]), reply.n)
    while last > first and not law[last]:
        last -= 1
    return RandomRankReply(reply.n, tuple(range(first, last + 1)), tuple(law[first : last + 1].tolist()))


class _LogOdds(NamedTuple):
    """Slopes and heights of a mechanism, whatever its target."""

    left: float
    right: float
    flat: float
    rise: float
    selector: Selector


@lru_cache(maxsize=8192)
def _typical_reply(n: int, target: float, slopes: _LogOdds, candidates: int) -> RandomRankReply:
    """The law of the mechanism's choice among candidates evenly spread over the ranks 0..n+1, which are not whole here.

    A candidate beyond all n scores is penalised as if it were the n-th: with a target near n nothing keeps the choice
    from running to the end, which a plan has to weigh.
    """
    left, right, reach = slopes.left, slopes.right, 25 + slopes.rise
    low = max(target - 25 / left, 0.0)
    high = n + 1 if right * (n - target) < reach else target + reach / right
    spacing = max((n + 1) / candidates, (high - low) / _GRID)
    ranks = np.minimum(np.arange(low, high, spacing) + spacing / 2, n + 1 - 1e-3)
    ranks = np.maximum(ranks, 1e-3)
    short = left * np.maximum(target - np.minimum(ranks, n), 0)
    over = right * np.maximum(np.minimum(ranks - spacing, n) - target, 0)
    place = candidates * ranks / (n + 1)
    ahead = slopes.rise * np.maximum(place - slopes.flat, 0) / max(candidates - slopes.flat, 1.0)
    utility = ahead - np.maximum(short, over)
    law = selection_law(np.exp(utility - utility.max()), slopes.selector)
    kept = law > 1e-9
    return RandomRankReply(n, tuple(ranks[kept].tolist()), tuple((law[kept] / law[kept].sum()).tolist()))
