"""private-qq: every silo answers with the slope mechanism; its noise is a random rank (docs/theory-federated.md, F3).

By the random-rank lemma a silo's reply is at least S_(R), R independent of the data and of known law. So the integral
of FedCP-QQ stays, with a mixture in place of one order statistic: no union bound over silos, no free parameter.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from operator import itemgetter
from typing import TypeAlias

import numpy as np

from confide.federated.certified_k import bisect, certified_k, certifies
from confide.federated.many_silos import Line, Search, StandIns, expected_in_search, target_rank
from confide.federated.reply_laws import expected_coverage, slopes_reply
from confide.federated.reply_table import ReplyLaw, ReplyTable
from confide.guarantee import private_offset, tangent_rate
from confide.mechanisms import UNIT, Slopes, slopes_for
from confide.planning import PARTS, flat_for
from confide.selection import Selector

Enough: TypeAlias = Callable[[Sequence[Slopes], int], bool]
"""Whether the k-th smallest honest reply of these mechanisms is certified."""

_SPLITS = (8, 10, 12, 14, 16)
MANY = 64
"""Beyond so many silos a quick search with stand-ins finds the plan; its certificate is that of all of them."""

_RISES_OF_MANY = (0.0, 6.0, 10.0)
_FEW_LINES, _LINES, _BEST, _REFINED = 4, 16, 3, 6
_FEW = 16
_RISES = (0.0, 3.0, 6.0, 10.0)
"""Not beyond 10: the k-th smallest reply may be that of one silo whose scores leave a desert, and a longer rise would
carry it across."""


@dataclass(frozen=True)
class MechanismChoice:
    """A choice of mechanisms for all silos, and of k.

    Parameters
    ----------
    mechanisms
        One per silo.
    k
        Which of the honest replies becomes the threshold, if all silos answer.
    coverage
        What is guaranteed then: the marginal coverage, or the level that holds with probability 1 - delta.
    expected
        Mean coverage on evenly spread scores.
    """

    mechanisms: tuple[Slopes, ...]
    k: int
    coverage: float
    expected: float


def best_private_qq(
    sizes: Sequence[int | None],
    level: Fraction,
    epsilon: float,
    candidates: int,
    *,
    delta: float | None = None,
    honest: int | None = None,
    absent: int = 0,
    most_k: int | None = None,
    n_min: int = 1,
    n_typical: int = 1000,
    selector: Selector = "permute_and_flip",
) -> MechanismChoice | None:
    """Mechanisms and k for all silos, of least expected coverage among those that certify the level.

    Public sizes: target ranks are T_j = ceil(x (n_j + 1)), at most n_j; for every split of the loss between the slopes
    and every k (nine of them if there are many silos) the smallest x that is certified is found by bisection.
    Secret sizes: one line rate (n + 1) + offset with rate above the level for all silos, certified for every
    n_j >= n_min (Theorem F4); those lines are tried that keep one silo's reply at the level with a few probabilities.

    Parameters
    ----------
    sizes
        Numbers of scores; None for all of them if they are secret.
    level
        Wanted coverage.
    epsilon
        Loss of each silo: when one of its records is replaced if sizes are public, else when one is added or removed.
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
    n_min, n_typical
        For secret sizes: the least number of scores of a silo, and the one for which the plan is chosen.
    selector
        As in `confide.plan`.

    Returns
    -------
    MechanismChoice or None
        None if the level cannot be certified with a finite threshold.

    Examples
    --------
    >>> found = best_private_qq([200] * 5, Fraction(9, 10), 5.0, 100)
    >>> found.k, {int(m.offset) for m in found.mechanisms}, round(found.expected, 3)
    (5, {176}, 0.906)
    >>> found = best_private_qq([None] * 5, Fraction(9, 10), 2.0, 100, n_min=50, n_typical=300)
    >>> found.coverage >= 0.9, found.expected < 0.95
    (True, True)
    """
    return _best(tuple(sizes), level, epsilon, candidates, delta, honest, absent, most_k, n_min, n_typical, selector)


@lru_cache(maxsize=256)
def _best(
    sizes: tuple[int | None, ...],
    level: Fraction,
    epsilon: float,
    candidates: int,
    delta: float | None,
    honest: int | None,
    absent: int,
    most_k: int | None,
    n_min: int,
    n_typical: int,
    selector: Selector,
) -> MechanismChoice | None:
    """The same, once for each request: comparisons, several levels and the plan that is made at last share most."""
    m = len(sizes) if honest is None else honest
    top = min(m, most_k or m)
    public = tuple(n for n in sizes if n is not None)

    def replies(mechanisms: Sequence[Slopes]) -> list[ReplyLaw]:
        return [slopes_reply(n, one, candidates, n_min) for n, one in zip(sizes, mechanisms, strict=True)]

    def enough(mechanisms: Sequence[Slopes], k: int) -> bool:
        return certifies(replies(mechanisms), k, level, delta, honest)

    if len(public) > MANY or len(set(public)) > 1:
        return _for_many(public, level, epsilon, candidates, delta, m, absent, top, selector)
    options: Iterator[tuple[tuple[Slopes, ...], int | None]]
    if public:
        options = _targets(public, enough, epsilon, candidates, _some(top), selector)
    else:
        options = _lines(len(sizes), level, epsilon, candidates, n_min, n_typical, selector)
    typical = [n_typical if n is None else n for n in sizes]
    present = sorted(range(len(sizes)), key=lambda i: typical[i])[: len(sizes) - absent]
    best: MechanismChoice | None = None
    for mechanisms, guess in options:
        found = certified_k(replies(mechanisms), level, delta, honest, guess)
        if found is None or found[0] > top:
            continue
        k = found[0] + max(len(present) - m, 0)
        there = [(typical[i], mechanisms[i].target(typical[i])) for i in present]
        expected = expected_coverage(there, k, mechanisms[0], candidates)
        if best is None or expected < best.expected:
            best = MechanismChoice(mechanisms, *found, expected)
    return best


def _targets(
    sizes: tuple[int, ...], enough: Enough, epsilon: float, candidates: int, ks: Sequence[int], selector: Selector
) -> Iterator[tuple[tuple[Slopes, ...], int]]:
    """For every rise, split of the loss and k the smallest certified targets, with k as a first guess.

    Target ranks are whole: with few records per silo a smaller k may serve at the same targets.
    """
    splits: Sequence[int] = _SPLITS if len(set(sizes)) == 1 else _SPLITS[1::2]
    for rise, left in product(_RISES, splits):
        plain = slopes_for(Fraction(0), Fraction(1), left, PARTS - left, "replace_one", epsilon, selector)
        trial = _raised(plain, rise, candidates)
        for k in ks:
            if (found := _smallest_targets(sizes, trial, k, enough)) is not None:
                yield found, k


def _for_many(
    sizes: tuple[int, ...],
    level: Fraction,
    epsilon: float,
    candidates: int,
    delta: float | None,
    honest: int,
    absent: int,
    top: int,
    selector: Selector,
) -> MechanismChoice | None:
    """The line of least expected coverage, by the quick search; its k by the certificate of all silos."""
    stand, present = StandIns.of(sizes), StandIns.of(sorted(sizes)[: len(sizes) - absent])
    more = max(len(sizes) - absent - honest, 0)

    def looked(rise: float, left: int, steps: int) -> Iterator[tuple[float, float, int, Slopes, Line]]:
        plain = slopes_for(Fraction(0), Fraction(1), left, PARTS - left, "replace_one", epsilon, selector)
        trial = _raised(plain, rise, candidates)
        for line in Search(stand, trial, candidates, level, delta, honest, top).lines(steps):
            there = Line(line.rate, line.k + more)
            expected = expected_in_search(present, there, trial, candidates, level)
            yield expected, rise, left, trial, line

    splits, steps = (_SPLITS[::2], _FEW_LINES) if len(sizes) > _FEW else (_SPLITS, _LINES)
    found = [one for rise, left in product(_RISES_OF_MANY, splits) for one in looked(rise, left, steps)]
    best = dict.fromkeys((rise, left) for _, rise, left, *_ in sorted(found, key=itemgetter(0)))
    for rise, left in list(best)[:_BEST]:
        found += looked(rise, left, _LINES)
    refined = list[MechanismChoice]()
    for expected, _, _, trial, line in sorted(found, key=itemgetter(0)):
        choice = _certified(sizes, trial, line, level, candidates, delta, honest)
        if choice is None or choice.k > top:
            continue
        if len(sizes) > _FEW:
            return replace(choice, expected=expected)
        there = [(n, m.offset) for n, m in sorted(zip(sizes, choice.mechanisms, strict=True), key=itemgetter(0))]
        seen = expected_coverage(there[: len(sizes) - absent], choice.k + more, trial, candidates)
        refined.append(replace(choice, expected=seen))
        if len(refined) == _REFINED:
            break
    return min(refined, key=lambda choice: choice.expected, default=None)


def _certified(
    sizes: tuple[int, ...],
    trial: Slopes,
    line: Line,
    level: Fraction,
    candidates: int,
    delta: float | None,
    honest: int,
) -> MechanismChoice | None:
    """The line by the certificate of all silos; for few of them the lowest one that its k certifies."""

    def mechanisms(rate: Fraction) -> tuple[Slopes, ...]:
        return tuple(replace(trial, offset=Fraction(target_rank(n, rate))) for n in sizes)

    def replies(rate: Fraction) -> ReplyTable:
        return ReplyTable([slopes_reply(n, m, candidates, 1) for n, m in zip(sizes, mechanisms(rate), strict=True)])

    found, rate = certified_k(replies(line.rate), level, delta, honest, line.k), line.rate
    if found is not None and len(sizes) <= _FEW:
        k, parts = found[0], max(sizes) + 1
        lowest = bisect(lambda s: certifies(replies(Fraction(s, parts)), k, level, delta, honest), 0, int(rate * parts))
        rate = Fraction(lowest, parts)
        found = certified_k(replies(rate), level, delta, honest, k)
    return None if found is None else MechanismChoice(mechanisms(rate), *found, 1.0)


def _raised(plain: Slopes, rise: float, candidates: int) -> Slopes:
    """The mechanism with this rise, in log-odds, as slow as it can be."""
    flat, steps = flat_for(candidates, rise), math.floor(rise * plain.scale)
    return replace(plain, flat=flat, rise=steps) if flat and steps else plain


def _smallest_targets(sizes: tuple[int, ...], trial: Slopes, k: int, enough: Enough) -> tuple[Slopes, ...] | None:
    largest = max(sizes)

    def aimed(step: int) -> tuple[Slopes, ...]:
        aims = [min(n, math.ceil(Fraction(step * (n + 1), largest + 1))) for n in sizes]
        return tuple(replace(trial, offset=Fraction(T)) for T in aims)

    return aimed(bisect(lambda step: enough(aimed(step), k), 0, largest)) if enough(aimed(largest), k) else None


def _lines(
    silos: int, level: Fraction, epsilon: float, candidates: int, n_min: int, n_typical: int, selector: Selector
) -> Iterator[tuple[tuple[Slopes, ...], None]]:
    """Lines rate (n + 1) + offset on which one silo's reply misses the level with a few probabilities."""
    unit = level.denominator * -(-UNIT // level.denominator)
    left = 14
    for failure, rise in product((0.35, 0.2, 0.1), _RISES[1::2]):
        rate = tangent_rate(level, failure, n_typical)
        slopes = left, PARTS - left, "add_remove", epsilon, selector
        trial = _raised(slopes_for(rate, Fraction(1, unit), *slopes), rise, candidates)
        rivals, slope = trial.rivals(candidates), trial.slope_left
        offset = private_offset(rate, level, failure, max(n_min, 1), n_typical, slope, rivals, selector, unit)
        yield (_raised(slopes_for(rate, offset, *slopes), rise, candidates),) * silos, None


def _some(top: int) -> Sequence[int]:
    """The k to try: all, or nine if there are many."""
    shares = np.linspace(0.15, 0.95, 9)
    return range(1, top + 1) if top <= 9 else sorted({max(1, round(top * share)) for share in shares})
