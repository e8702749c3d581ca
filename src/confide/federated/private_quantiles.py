"""private-qq: every silo answers with the slope mechanism; its noise is a random rank (docs/federated.md, Theorem F3).

By the random-rank lemma a silo's reply is at least S_(R), R independent of the data and of known law. So the integral
of FedCP-QQ stays, with a mixture in place of one order statistic: no union bound over silos, no free parameter.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from confide.federated.order_statistics import (
    RandomRankReply,
    ReplyLaw,
    conditional_coverage_failure,
    order_statistic_coverage,
)
from confide.federated.quantile_of_quantiles import smallest_k
from confide.guarantee.conditional import line_holds, private_offset, tangent_rate
from confide.guarantee.random_rank import rank_law
from confide.mechanisms.selector import Selector, selection_law
from confide.mechanisms.slopes import UNIT, Slopes, slopes_for
from confide.slope_choice import PARTS

_SPLITS = (12, 13, 14, 15, 16, 17)
_UNLIKELY = 1e-10
_LEVELS = 24
_GRID = 100


@dataclass(frozen=True)
class PrivateQQ:
    """A choice of mechanisms for all silos, and of k.

    Parameters
    ----------
    mechanisms
        One per silo; None for a silo that answers +inf without touching its data.
    k
        Which of the honest replies becomes the threshold, if all silos answer.
    coverage
        What is guaranteed then: the marginal coverage, or the level that holds with probability 1 - delta.
    expected
        Mean coverage on evenly spread scores.
    """

    mechanisms: tuple[Slopes | None, ...]
    k: int
    coverage: float
    expected: float


@lru_cache(maxsize=8192)
def private_reply(n: int, mechanism: Slopes | None, candidates: int) -> RandomRankReply:
    """The law that a silo's reply dominates, for a public number of scores n.

    Examples
    --------
    >>> mechanism = Slopes(Fraction(0), Fraction(90), 3, 1, 4.0, "permute_and_flip")
    >>> reply = private_reply(100, mechanism, 50)
    >>> round(float(reply.below(np.array([0.9]))[0]), 2)
    0.9
    """
    if mechanism is None:
        return RandomRankReply(n, (), ())
    ranks, mass, bottom = rank_law(float(mechanism.target(n)), mechanism.slope_left, candidates, mechanism.selector)
    # The lowest ranks, together less likely than 1e-10, count as rank 0: it can only lower the certificate.
    first = int(np.searchsorted(bottom + np.cumsum(mass), _UNLIKELY))
    bottom += float(mass[:first].sum())
    kept, mass = ranks[first:], mass[first:]
    finite = kept <= n
    return RandomRankReply(n, tuple(kept[finite].tolist()), tuple(mass[finite].tolist()), max(bottom, 0.0))


@dataclass(frozen=True)
class AnySizeReply:
    """The worst reply over all numbers of scores from n_min on: for silos whose sizes are secret (Theorem F4).

    Parameters
    ----------
    steps
        Pairs (t, bound), rising: for every n >= n_min the reply is at most t with probability at most `bound`. Between
        two t the bound of the upper one is used, above the last one it is 1.
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
    """Bounds that hold for every secret n >= n_min, each proved by `line_holds` (docs/theory.md, Theorem 4)."""
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
        return line_holds(rate, offset, t, math.exp(log_delta), n_min, slope, candidates, mechanism.selector)

    low, high = -16.0, -0.02
    if not holds(high):
        return 1.0
    if holds(low):
        return math.exp(low)
    while high - low > 0.06:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return math.exp(high)


def certified_k(
    replies: Sequence[ReplyLaw],
    level: Fraction,
    delta: float | None,
    honest: int | None = None,
    guess: int | None = None,
) -> tuple[int, float] | None:
    """The smallest k whose certificate reaches the level, and what it certifies; None if no k up to `honest` does.

    Parameters
    ----------
    replies
        One law per silo that answers.
    level
        Wanted coverage.
    delta
        None for marginal coverage; else the allowed probability of coverage below the level given the data.
    honest
        How many of the silos are honest; by default all.
    """
    m = len(replies) if honest is None else honest
    if m < 1:
        return None
    if delta is None:
        return smallest_k(lambda k: order_statistic_coverage(replies, k, honest), float(level), m, guess)
    sure = smallest_k(lambda k: 1 - conditional_coverage_failure(replies, k, float(level), honest), 1 - delta, m, guess)
    return None if sure is None else (sure[0], float(level))


def best_private_qq(
    sizes: Sequence[int],
    level: Fraction,
    epsilon: float,
    candidates: int,
    *,
    delta: float | None = None,
    honest: int | None = None,
    absent: int = 0,
    most_k: int | None = None,
    selector: Selector = "permute_and_flip",
) -> PrivateQQ | None:
    """Mechanisms and k for silos of public sizes, of least expected coverage among those that certify the level.

    Target ranks are T_j = ceil(x (n_j + 1)), at most n_j. For every split of the loss between the slopes and every k
    (nine of them if there are many silos) the smallest x that is certified is found by bisection.

    Parameters
    ----------
    sizes
        Public numbers of scores.
    level
        Wanted coverage.
    epsilon
        Loss of each silo when one of its records is replaced.
    candidates
        Number of candidate thresholds, +inf included.
    delta
        None for the marginal guarantee, else a training-conditional one.
    honest
        How many silos can be relied on to answer and be honest; by default all.
    absent
        How many of the others stay away (the rest lie); matters for the expected coverage only.
    most_k
        The largest k that is of use; by default `honest`.
    selector
        As in `confide.plan`.

    Returns
    -------
    PrivateQQ or None
        None if the level cannot be certified with a finite threshold.

    Examples
    --------
    >>> found = best_private_qq([200] * 5, Fraction(9, 10), 5.0, 100)
    >>> found.k, {int(m.offset) for m in found.mechanisms}, round(found.expected, 3)
    (5, {177}, 0.911)
    """
    m = len(sizes) if honest is None else honest
    largest = max(sizes)
    many = len(set(sizes)) * m > 2000
    top = min(m, most_k or m)
    shares = np.linspace(0.15, 0.95, 3 if many else 9)
    ks = list(range(1, top + 1)) if top <= 9 else sorted({max(1, round(top * share)) for share in shares})
    present = sorted(range(len(sizes)), key=lambda i: sizes[i])[: len(sizes) - absent]
    best: PrivateQQ | None = None
    for left in (15,) if many else _SPLITS if len(set(sizes)) == 1 else _SPLITS[1::2]:
        trial = slopes_for(Fraction(0), Fraction(1), left, PARTS - left, "replace_one", epsilon, selector)

        def targets(step: int) -> tuple[int, ...]:
            return tuple(min(n, math.ceil(Fraction(step * (n + 1), largest + 1))) for n in sizes)

        for start in ks:
            low, high, k = 0, largest, start

            def enough(step: int, k: int = start, trial: Slopes = trial) -> bool:
                replies = [
                    private_reply(n, _aimed(trial, T), candidates) for n, T in zip(sizes, targets(step), strict=True)
                ]
                if delta is not None:
                    return conditional_coverage_failure(replies, k, float(level), honest) <= delta
                return order_statistic_coverage(replies, k, honest) >= level

            if not enough(high):
                continue
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if enough(middle) else (middle, high)
            # Target ranks are whole: with few records per silo a smaller k may serve at the same targets.
            aims = targets(high)
            replies = [private_reply(n, _aimed(trial, T), candidates) for n, T in zip(sizes, aims, strict=True)]
            found = certified_k(replies, level, delta, honest, k)
            if found is None:
                continue
            k, certified = found
            extra = max(len(present) - m, 0)
            expected = _expected([sizes[i] for i in present], [aims[i] for i in present], k + extra, trial, candidates)
            if best is None or expected < best.expected:
                best = PrivateQQ(tuple(_aimed(trial, T) for T in aims), k, certified, expected)
    return best


def best_private_qq_secret(
    silos: int,
    level: Fraction,
    epsilon: float,
    candidates: int,
    *,
    n_min: int,
    n_typical: int,
    delta: float | None = None,
    honest: int | None = None,
    absent: int = 0,
    most_k: int | None = None,
    selector: Selector = "permute_and_flip",
) -> PrivateQQ | None:
    """One mechanism for all silos and k, certified for every secret size n_j >= n_min of every silo (Theorem F4).

    The target is a line rate (n + 1) + offset with rate above the level. Lines are tried that keep one silo's reply at
    the level with a few probabilities; the best at `n_typical` records per silo is kept.

    Examples
    --------
    >>> found = best_private_qq_secret(5, Fraction(9, 10), 2.0, 100, n_min=50, n_typical=300)
    >>> found.coverage >= 0.9, found.expected < 0.95
    (True, True)
    """
    best: PrivateQQ | None = None
    left = 14
    unit = level.denominator * -(-UNIT // level.denominator)
    for failure in (0.35, 0.2, 0.1):
        rate = tangent_rate(level, failure, n_typical)
        slope = slopes_for(rate, Fraction(1, unit), left, PARTS - left, "add_remove", epsilon, selector).slope_left
        offset = private_offset(rate, level, failure, n_min, n_typical, slope, candidates, selector, unit)
        mechanism = slopes_for(rate, offset, left, PARTS - left, "add_remove", epsilon, selector)
        replies = [any_size_reply(mechanism, candidates, n_min)] * silos
        found = certified_k(replies, level, delta, honest)
        if found is None or found[0] > (most_k or silos):
            continue
        present = silos - absent
        extra = max(present - (silos if honest is None else honest), 0)
        target = float(mechanism.target(n_typical))
        expected = _expected([n_typical] * present, [target] * present, found[0] + extra, mechanism, candidates)
        if best is None or expected < best.expected:
            best = PrivateQQ((mechanism,) * silos, *found, expected)
    return best


def _aimed(trial: Slopes, target: int) -> Slopes:
    return Slopes(Fraction(0), Fraction(target), trial.left, trial.right, trial.scale, trial.selector)


@dataclass(frozen=True)
class TypicalReply:
    """The reply of a silo on evenly spread scores, noise included: for the choice of a plan, never for a promise.

    Parameters
    ----------
    n
        Number of scores.
    ranks, probabilities
        Where the chosen candidate lies, in ranks (not whole, up to n + 1), and how likely.
    """

    n: int
    ranks: tuple[float, ...]
    probabilities: tuple[float, ...]

    def below(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(reply <= t), shape of t."""
        from scipy.special import betainc

        r = np.array(self.ranks)[:, None]
        mixed: NDArray[np.float64] = np.array(self.probabilities) @ betainc(r, self.n - r + 1, t[None, :])
        return np.minimum(mixed, 1.0)


@lru_cache(maxsize=8192)
def typical_reply(n: int, target: float, mechanism: Slopes, candidates: int) -> TypicalReply:
    """The law of the mechanism's choice among candidates evenly spread over the ranks 0..n+1.

    A candidate beyond all n scores is penalised as if it were the n-th: with a target near n nothing keeps the choice
    from running to the end, which a plan has to weigh.
    """
    left, right = mechanism.slope_left, mechanism.slope_right
    low = max(target - 25 / left, 0.0)
    high = n + 1 if right * (n - target) < 25 else target + 25 / right
    spacing = max((n + 1) / candidates, (high - low) / _GRID)
    ranks = np.minimum(np.arange(low, high, spacing) + spacing / 2, n + 1 - 1e-3)
    ranks = np.maximum(ranks, 1e-3)
    short = left * np.maximum(target - np.minimum(ranks, n), 0)
    over = right * np.maximum(np.minimum(ranks - spacing, n) - target, 0)
    utility = -np.maximum(short, over)
    law = selection_law(np.exp(utility - utility.max()), mechanism.selector)
    kept = law > 1e-9
    return TypicalReply(n, tuple(ranks[kept].tolist()), tuple((law[kept] / law[kept].sum()).tolist()))


def _expected(sizes: Sequence[int], targets: Sequence[float], k: int, mechanism: Slopes, candidates: int) -> float:
    """Mean coverage on evenly spread scores."""
    plain = replace(mechanism, rate=Fraction(0), offset=Fraction(0), scale=mechanism.scale / mechanism.unit)
    replies = [typical_reply(n, float(target), plain, candidates) for n, target in zip(sizes, targets, strict=True)]
    return order_statistic_coverage(replies, k)
