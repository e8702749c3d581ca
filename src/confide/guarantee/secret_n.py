"""The two-sided certificate for a secret n: one offset for all n, and a prior bonus of +inf for few records.

T(n) = rate (n+1) + offset is enough for n if L2 + x <= offset + 2 (docs/theory-two-sided.md, Theorem T1b). The n with
many points beyond rank c + 1 form a few cases, one for each fractional part of T(n). The others are taken in groups. A
group is divided where its bound is too large.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from confide.guarantee.adversary import each, largest
from confide.guarantee.left_side import Case
from confide.guarantee.slope_noise import SlopeNoise
from confide.guarantee.two_sided import adversaries, two_sided_loss
from confide.support import ceil_to

_ENOUGH = (5, 8, 12, 18, 30)
"""Numbers of points beyond rank c + 1 from which on all n are one case, tried in turn; larger at small slopes."""
_SPARSE = 5
"""Number of points beyond rank c + 1 from which on all n with (about) the same fractional part of T(n) form a group."""
_NARROW = Fraction(1, 20)
"""The first groups of n with fewer points have x in intervals of this length."""
_FRACTIONS = 24
"""Largest number of fractional parts of T(n) that are computed one by one; more are taken in as many intervals."""
_PERIOD = 10
"""x mostly repeats after so many n. A sample has a stride with no common factor, so that it contains each x. With a
guess of n the stride is not corrected."""
_AT_ONCE = 64
"""Number of groups of n in one search."""
_FLAT, _FLAT_RIGHT, _STEEP, _MOST_RIVALS = 0.9, 0.3, 4.0, 1_000
"""For a smaller sum of slopes, a smaller right slope, or a larger competitor ratio the search takes seconds. For a
larger sum of slopes the certificate saves almost nothing."""
_MOST_SMALL = 1_000
"""Largest count of n with few points beyond their target rank; if there are more, the certificate is not used."""
_MORE, _MORE_AT_ONCE = (1, 4, 16, 40), (2, 3, 4, 6, 10, 16, 40)
"""Numbers of small steps above the offset that is enough for large n, or above an estimate of it, tried in turn."""
_FINE = 0.25
"""Step of the prior bonus, in log-odds."""
_USUAL = 14
"""Number of steps that the search for a prior bonus tries first: just above most results."""


class Size(NamedTuple):
    """A number of records n, its x, and the points beyond rank c + 1 (-1 where T exceeds n)."""

    n: int
    x: float
    beyond: int


Group: TypeAlias = list[Size]
"""Some n in increasing order, with about the same x or with equally many points beyond."""


def two_sided_offset(
    level: Fraction,
    noise: SlopeNoise,
    unit: int,
) -> Fraction:
    """A small offset, in steps of 1/unit, that is enough for every n with many points beyond its target rank.

    "Many" is about 30, more at small slopes. Smaller n also need a prior bonus of +inf: see `two_sided_prior_bonus`.

    Examples
    --------
    >>> float(two_sided_offset(Fraction(9, 10), SlopeNoise(0.45, 0.55, 28.0, step=0.9), 10))
    2.4
    """
    lost = two_sided_loss(1.0, noise)
    offset = ceil_to(max(0.0, lost - 1), unit)
    while not _holds_for_large_n(noise, level, offset, _point_counts(noise)[-1]):
        offset += ceil_to(_small_step(noise.left + noise.right), unit)
    return offset


def two_sided_shortfall(
    rate: Fraction,
    offset: Fraction,
    bonus: Callable[[int], float],
    n_min: int,
    noise: SlopeNoise,
) -> float:
    """Number of ranks that `offset` lacks for coverage >= rate at every n >= n_min (Theorem T1b); at most 0 if enough.

    bonus(n) is the prior bonus of +inf at n records, in log-odds. It must not grow with n. If the offset is too
    small, the search ends early and the number is approximate. It is inf if the offset is too small for large n also.

    Examples
    --------
    >>> rate, offset = Fraction(9, 10), Fraction(4)
    >>> short = two_sided_shortfall(rate, offset, lambda n: 4.0, 1, SlopeNoise(0.6, 0.5, 49.0, step=1.0))
    >>> short <= 0
    True
    """
    few = _groups_of_small_n(noise, rate, offset, n_min)
    if few is None:
        return math.inf
    needing = _needing(noise, rate, offset, n_min, bonus)
    return max(1e-9, max(_bounds(noise, offset, needing, bonus)) - float(offset) - 2) if needing else 0.0


def two_sided_prior_bonus(
    rate: Fraction,
    offset: Fraction,
    fade: float,
    n_min: int,
    noise: SlopeNoise,
    *,
    most: float = math.inf,
    sampled: bool = False,
) -> float:
    """The least a, in steps of 1/4, whose prior bonus max(0, a - fade n) of +inf is enough for every n >= n_min.

    It is in log-odds, and `two_sided_shortfall` is at most 0 with it. It is inf if it would be larger than `most`, or
    if the offset is too small for large n, where no bonus helps. With a scale of the noise, a and the fade are
    rounded to multiples of 1/scale as in a mechanism, which is then not certified a second time. If `sampled`, only
    some n are computed, which give nearly the result of all. The caller must then check `two_sided_shortfall`.

    Examples
    --------
    >>> a = two_sided_prior_bonus(Fraction(9, 10), Fraction(5, 2), 0.05, 1, SlopeNoise(0.45, 0.55, 28.0, step=0.96))
    >>> 3 < a < 5
    True
    """
    groups = _groups_of_small_n(noise, rate, offset, n_min)
    if groups is None:
        return math.inf

    def ahead(steps: int) -> Callable[[int], float]:
        scale = noise.scale
        if scale is None:
            return lambda n: max(0.0, steps * _FINE - fade * n)
        most_ahead, falls = math.ceil(steps * _FINE * scale), round(fade * scale)
        return lambda n: max(0, most_ahead - falls * n) / scale

    def serving(some: list[Group], least: int, guess: int) -> tuple[int, Group | None]:
        """The least number of steps, from `least` on, that is enough for some groups, and a group that needs it."""
        below, above, stride, needy = least - 1, max(least, guess), 4, None
        while still := _failing(noise, offset, some, ahead(above)):
            some, needy, below, above, stride = still, still[0], above, above + stride, 2 * stride
        while above - below > 1:
            middle = (below + above) // 2
            if still := _failing(noise, offset, some, ahead(middle)):
                some, needy, below = still, still[0], middle
            else:
                above = middle
        return above, needy

    # A few n give nearly the result of all. Where other n need more, they are computed too.
    few = _sample(groups, 8, 1 if noise.scale is None else _PERIOD)
    if most < math.inf and _failing(noise, offset, few, ahead(int(most / _FINE))):
        return math.inf
    steps, neediest = serving(few, 0, _USUAL)
    if neediest and steps * _FINE <= most:
        number, some = (64, 6) if noise.scale is None else (_MOST_SMALL, _PERIOD)
        near = sorted((abs(group[0].n - neediest[0].n), group) for group in _sample(groups, number))
        steps, _ = serving([group for _, group in near[:some]], steps, steps)
    while not sampled and steps * _FINE <= most and (needing := _needing(noise, rate, offset, n_min, ahead(steps))):
        steps, _ = serving(needing, steps + 1, steps + 1)
    return steps * _FINE if steps * _FINE <= most else math.inf


def two_sided_secret(
    level: Fraction,
    fade: float,
    most: float,
    n_min: int,
    noise: SlopeNoise,
    unit: int,
    *,
    sampled: bool = False,
    exact: Callable[[Fraction], SlopeNoise] | None = None,
) -> tuple[Fraction, float] | None:
    """A small offset, in steps of 1/unit, for which a prior bonus of at most `most` is enough for every n >= n_min.

    Also returns the least such bonus; see `two_sided_prior_bonus`, also for `sampled`. With a slow fade the offset is
    nearly that of large n. A fast fade needs a larger offset or bonus. `exact` gives the noise of the mechanism with
    a certain offset, which differs slightly. None if `most` is too small even for an offset that is two ranks larger.

    Examples
    --------
    >>> offset, ahead = two_sided_secret(Fraction(9, 10), 0.05, 5.0, 1, SlopeNoise(0.45, 0.55, 28.0, step=0.96), 20)
    >>> float(offset), ahead < 5
    (2.4, True)
    """
    if not two_sided_saves(noise):
        return None
    lost = two_sided_loss(1.0, noise)
    if _first_large_n(level, ceil_to(lost, unit), _point_counts(noise)[0]) - n_min > _MOST_SMALL:
        return None
    least = two_sided_offset(level, noise, unit) if exact is None else ceil_to(max(0.0, lost - 1), unit)
    # A slightly larger offset makes the bonus much smaller, and faster to find.
    for more in _MORE if exact is None else _MORE_AT_ONCE:
        offset = least + ceil_to(more * _small_step(noise.left + noise.right), unit)
        of_offset = replace(noise, scale=None) if exact is None else exact(offset)
        ahead = two_sided_prior_bonus(level, offset, fade, n_min, of_offset, most=most, sampled=sampled)
        if ahead < math.inf:
            return offset, ahead
    return None


def two_sided_saves(noise: SlopeNoise) -> bool:
    """Whether the two-sided search for a secret n is fast and can save ranks; otherwise the sharp one is used.

    Examples
    --------
    >>> two_sided_saves(SlopeNoise(0.45, 0.55, 28.0)), two_sided_saves(SlopeNoise(0.045, 0.055, 28.0))
    (True, False)
    """
    gentle = _FLAT <= noise.left + noise.right <= _STEEP
    return gentle and noise.right >= _FLAT_RIGHT and noise.rivals <= _MOST_RIVALS


def _small_step(slopes: float) -> Fraction:
    """A small step of an offset, compared with the noise: a twentieth of a rank where slopes add up to 1."""
    return Fraction(max(1, round(1 / slopes)), 20)


@lru_cache(maxsize=256)
def _sufficient_points(noise: SlopeNoise, rate: Fraction, offset: Fraction) -> int | None:
    """Number of points beyond rank c + 1 from which on the offset is enough without a bonus; None if it never is."""
    return next((enough for enough in _point_counts(noise) if _holds_for_large_n(noise, rate, offset, enough)), None)


def _point_counts(noise: SlopeNoise) -> list[int]:
    return [int(enough * max(1.0, 0.3 / noise.right)) for enough in _ENOUGH]


def _holds_for_large_n(noise: SlopeNoise, rate: Fraction, offset: Fraction, enough: int) -> bool:
    goal = float(offset) + 2
    return largest(noise, _cases_of_large_n(noise, rate, offset, enough), goal) <= goal


def _cases_of_large_n(noise: SlopeNoise, rate: Fraction, offset: Fraction, enough: int) -> list[Case]:
    """All n with at least `enough` points beyond rank c + 1: every x that T(n) can have, or intervals of them."""
    parts = min(rate.denominator, _FRACTIONS)
    found: list[Case] = []
    first = offset % Fraction(1, parts)  # T(n) is the offset and a multiple of 1/denominator
    for k in range(parts):
        if parts == rate.denominator:
            low = high = float(first + Fraction(k, parts)) or 1.0
        else:
            low, high = k / parts, (k + 1) / parts
        found.extend(adversaries(noise, low, high, enough, None))
    return found


@lru_cache(maxsize=256)
def _groups_of_small_n(noise: SlopeNoise, rate: Fraction, offset: Fraction, n_min: int) -> list[Group] | None:
    """In groups, every n >= n_min with too few points beyond rank c + 1 for the offset without a bonus.

    None if the offset is too small for large n also, if there are too many such n, or if slopes are small.
    """
    if not two_sided_saves(noise):
        return None
    enough = _sufficient_points(noise, rate, offset)
    if enough is None or _first_large_n(rate, offset, enough) - n_min > _MOST_SMALL:
        return None
    return _groups_below(rate, offset, n_min, enough)


def _first_large_n(rate: Fraction, offset: Fraction, enough: int) -> int:
    """The n from which on there are at least `enough` points beyond rank c + 1."""
    return math.ceil((enough + offset + 2) / (1 - rate)) + 1


def _groups_below(rate: Fraction, offset: Fraction, n_min: int, enough: int) -> list[Group]:
    """Every n >= n_min with fewer than `enough` points beyond rank c + 1, in groups."""
    groups: dict[tuple[int, int], Group] = {}
    for n in range(n_min, _first_large_n(rate, offset, enough)):
        target = rate * (n + 1) + offset
        beyond = max(n - math.ceil(target), -1)
        if beyond < enough:
            x = target - n + max(beyond, 0) + 1
            width = _NARROW if beyond < _SPARSE else Fraction(1, _FRACTIONS)
            groups.setdefault((min(beyond, _SPARSE), math.ceil(x / width)), []).append(Size(n, float(x), beyond))
    return list(groups.values())


def _failing_sizes(
    noise: SlopeNoise, offset: Fraction, groups: list[Group], bonus: Callable[[int], float]
) -> list[Group]:
    """Some single n for which offset and bonus are not enough; empty if they are enough for all n of the groups."""
    if single := _failing(noise, offset, _sample(groups, 8), bonus):
        return single
    while groups := _failing(noise, offset, groups, bonus):
        if single := [group for group in groups if len(group) == 1]:
            return single
        groups = [half for group in groups for half in _halves(group)]
    return []


def _needing(
    noise: SlopeNoise, rate: Fraction, offset: Fraction, n_min: int, bonus: Callable[[int], float]
) -> list[Group]:
    """Some single n for which offset and bonus are not enough; empty if they are enough for every n >= n_min."""
    groups = _groups_of_small_n(noise, rate, offset, n_min) or []
    every = sorted(size.n for group in groups for size in group)
    return _needing_of(noise, rate, offset, n_min, tuple((n, bonus(n)) for n in every))


@lru_cache(maxsize=256)
def _needing_of(
    noise: SlopeNoise, rate: Fraction, offset: Fraction, n_min: int, ahead: tuple[tuple[int, float], ...]
) -> list[Group]:
    groups = _groups_of_small_n(noise, rate, offset, n_min) or []
    return _failing_sizes(noise, offset, groups, dict(ahead).__getitem__)


def _halves(group: Group) -> tuple[Group, Group]:
    """Two halves by n, or by x where all have about equally many points beyond."""
    if group[-1].beyond <= 1.5 * group[0].beyond:
        group = sorted(group, key=lambda size: size.x)
    return sorted(group[: len(group) // 2]), sorted(group[len(group) // 2 :])


def _sample(groups: list[Group], number: int, period: int = 1) -> list[Group]:
    """About `number` n from smallest to largest, each as a group of one; their distance has no factor of the period."""
    every = sorted(size for group in groups for size in group)
    stride = max(1, len(every) // number)
    while math.gcd(stride, period) > 1:
        stride += 1
    return [[size] for size in every[::stride]]


def _failing(noise: SlopeNoise, offset: Fraction, groups: list[Group], bonus: Callable[[int], float]) -> list[Group]:
    """The groups whose bound is too large."""
    bounds = _bounds(noise, offset, groups, bonus)
    return [group for group, bound in zip(groups, bounds, strict=True) if bound > float(offset) + 2]


def _bounds(noise: SlopeNoise, offset: Fraction, groups: list[Group], bonus: Callable[[int], float]) -> list[float]:
    """An upper bound on L2(x) + x in each group, accurate enough to decide whether the offset is enough for it."""
    found: list[float] = []
    for some in (groups[k : k + _AT_ONCE] for k in range(0, len(groups), _AT_ONCE)):
        cases = [list(_cases_of_group(noise, group, bonus)) for group in some]
        bounds = iter(each(noise, [case for of_one in cases for case in of_one], float(offset) + 2))
        found += [max(float(next(bounds)) for _ in of_one) for of_one in cases]
    return found


def _cases_of_group(noise: SlopeNoise, group: Group, bonus: Callable[[int], float]) -> Iterator[Case]:
    """All choices of an adversary at the n of a group."""
    x, first, last = [size.x for size in group], group[0], group[-1]
    return adversaries(noise, min(x), max(x), first.beyond, last.beyond, bonus(last.n))
