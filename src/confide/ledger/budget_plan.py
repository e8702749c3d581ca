"""`budget_plan`: the most expensive schedule within a total, by each rule of composition, from public numbers alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from importlib.util import find_spec
from numbers import Integral
from typing import Any, Literal, TypedDict, Unpack

from confide.errors import InputError, InputTypeError
from confide.ledger.composition import check_delta, epsilon_of_zcdp
from confide.ledger.cost import decimal
from confide.ledger.schedule import MOST_PLANNED, PLANNED, RULES, PlannedReleases, Rule, Schedule
from confide.mechanisms import NEIGHBORS, Neighbors
from confide.selection import range_of_zcdp
from confide.support import (
    LEAST_LOSS,
    MOST_PER_PERSON,
    Level,
    check_unknown_arguments,
    exact_level,
    float_below,
    one_of,
    positive_integer,
    privacy_loss,
    several,
)

_DIGITS = 6
"""Significant digits of the epsilon of each release, so that the printed number is the charged one."""


class Year(TypedDict, total=False):
    """The plan of a year under one total per person; `budget_plan` describes the fields."""

    releases: int
    evaluations: int
    looks: int
    dp_delta: float
    releases_per_person: int | None
    evaluations_per_person: int | None
    looks_per_person: int | None
    records_per_person: int
    share: Level
    neighbors: Neighbors


def budget_plan(
    epsilon: float,
    *,
    rule: Rule | Literal["best"] = "best",
    n: int | Sequence[int] = 1000,
    alpha: Level = 0.1,
    **year: Unpack[Year],
) -> Schedule:
    """Plan the epsilon of each release of a year, so that one person's total privacy loss stays within a limit.

    Parameters
    ----------
    epsilon, dp_delta
        The total per person: (epsilon, dp_delta)-differential privacy, dp_delta 1e-6 by default. With `dp_delta=0`
        epsilons add up.
    releases, evaluations, looks
        Number of calibrations, of private evaluations, and of looks (batches of a monitor of coverage); by default 0.
    releases_per_person, evaluations_per_person, looks_per_person
        In how many of them one person's records can be (default: all). A smaller number is a public statement about
        the people that you make: fifty-two weekly looks at patients who come once are one look per person.
    records_per_person
        Public bound on the number of one person's records in one release; 1 by default.
    share
        The share of the total for calibrations, by default half of it, if evaluations or looks are planned too; these
        divide the rest evenly. It is a share of epsilon under `"basic"`, of the zero-concentrated loss under the other
        rules, approximately under `"pld"`.
    rule
        `"basic"`: permute-and-flip, epsilons add up. `"zcdp"`: the exponential mechanism; also valid if the schedule is
        changed on the way. `"pld"`: permute-and-flip, privacy-loss distributions (needs dp-accounting); the schedule
        must be fixed in advance. `"best"`: of the available rules, the one with the least excess coverage of releases
        for `n` and `alpha`; without releases the one with the least noise in looks.
    neighbors
        The adjacency for which losses are stated, `"add_remove"` by default.
    n, alpha
        Numbers of records in one release, and its miscoverage level, for which `"best"` compares.

    Returns
    -------
    Schedule
        The epsilon of each release, rounded down to six digits.

    Raises
    ------
    InputError, InputTypeError
        If an argument is out of range, nothing is planned, or the epsilon of a release would be too small.
    MissingExtraError
        If `rule="pld"` and dp-accounting is not installed.

    Examples
    --------
    >>> year = budget_plan(3.0, releases=12, looks=52, looks_per_person=1, dp_delta=0)
    >>> [(entry.words, entry.epsilon) for entry in year.entries]
    [('12 releases', 0.125), ('52 looks', 1.5)]
    """
    check_unknown_arguments("budget_plan", year, (*Year.__annotations__, "rule", "n", "alpha"))
    if one_of("rule", rule, (*RULES, "best")) != "best":
        return by_rule(rule, epsilon, **year)  # type: ignore[arg-type]
    return best_of(by_rules(epsilon, **year), n, alpha)


def by_rules(epsilon: float, **year: Unpack[Year]) -> dict[Rule, Schedule]:
    """The schedules by all available rules; arguments as in `budget_plan`.

    With `dp_delta=0` only basic composition is available, and PLD only if dp-accounting is installed.
    """
    rules: list[Rule] = ["basic"]
    if check_delta(year.get("dp_delta", 1e-6)) > 0:
        rules += ["zcdp", "pld"] if find_spec("dp_accounting") else ["zcdp"]
    return {rule: by_rule(rule, epsilon, **year) for rule in rules}


def best_of(schedules: Mapping[Rule, Schedule], n: int | Sequence[int] = 1000, alpha: Level = 0.1) -> Schedule:
    """The schedule with the least excess coverage, summed over the n; without releases, with the least noise in looks.

    The schedule by privacy-loss distributions is considered only if it allows a larger epsilon than basic composition.
    """
    sizes = [n] if isinstance(n, int) else several("n", n)
    if not sizes:
        raise InputError("n", "must be a number of records, or several", got="none")

    def worth(schedule: Schedule) -> tuple[float, float]:
        last = schedule.entries[-1].epsilon
        if schedule.entries[0].kind != "calibration":
            return 0.0, -last
        return round(math.fsum(schedule.plan(one, alpha).expected_coverage for one in sizes), 4), -last

    basic = schedules.get("basic")
    worthy = [one for one in schedules.values() if one.rule != "pld" or _allows_more(one, basic)]
    return worthy[0] if len(worthy) == 1 else min(worthy, key=worth)


def by_rule(
    rule: Rule,
    epsilon: float,
    *,
    releases: int = 0,
    evaluations: int = 0,
    looks: int = 0,
    dp_delta: float = 1e-6,
    releases_per_person: int | None = None,
    evaluations_per_person: int | None = None,
    looks_per_person: int | None = None,
    records_per_person: int = 1,
    share: Level = 0.5,
    neighbors: Neighbors = "add_remove",
) -> Schedule:
    """The most expensive schedule by one rule; arguments as in `budget_plan`."""
    total, delta = privacy_loss("epsilon", epsilon), check_delta(dp_delta)
    if rule != "basic" and delta == 0:
        raise InputError("dp_delta", f"must be above 0 for rule={rule!r}", remedy="With dp_delta=0 use rule='basic'")
    counts = {
        "calibration": _count("releases", releases, releases_per_person),
        "evaluation": _count("evaluations", evaluations, evaluations_per_person),
        "look": _count("looks", looks, looks_per_person),
    }
    planned = {kind: counts[kind] for kind in PLANNED if counts[kind][0]}
    if not planned:
        raise InputError("releases", "releases, evaluations or looks must be planned", got="none")
    shares = _shares(list(planned), exact_level("share", share))
    weights = {kind: shares[kind] / per_person for kind, (_, per_person) in planned.items()}
    relation = one_of("neighbors", neighbors, NEIGHBORS)
    records = positive_integer("records_per_person", records_per_person, most=MOST_PER_PERSON)

    def schedule_at(price: Callable[[str], float | Fraction]) -> Schedule:
        entries = []
        for kind, (count, per_person) in planned.items():
            each = _rounded_down(price(kind))
            if each < LEAST_LOSS * records:
                raise InputError(
                    "epsilon",
                    f"epsilon = {total:g} leaves each record less than a loss of {LEAST_LOSS:g}",
                    remedy="Plan fewer releases, or fewer per person",
                )
            drawn = None if kind != "calibration" else "exponential" if rule == "zcdp" else "permute_and_flip"
            entries.append(PlannedReleases(kind, count, per_person, each, drawn))  # type: ignore[arg-type]
        return Schedule(total, 0.0 if rule == "basic" else delta, rule, tuple(entries), relation, records)

    if rule == "basic":
        return schedule_at(lambda kind: decimal(total) * weights[kind]).check()
    if rule == "zcdp":
        rho = Fraction(rho_within(total, delta))
        return schedule_at(lambda kind: _largest_epsilon(kind, float_below(rho * weights[kind]))).check()

    def fits(scale: float) -> bool:
        return schedule_at(lambda kind: scale * math.sqrt(weights[kind])).loss <= total

    scale = _largest(fits, total, within=1e-5)  # finer than the grid of the distributions
    return schedule_at(lambda kind: scale * math.sqrt(weights[kind])).check()


@lru_cache(maxsize=64)
def rho_within(epsilon: float, dp_delta: float) -> float:
    """The largest zero-concentrated loss within epsilon at dp_delta, rounded down.

    Examples
    --------
    >>> round(rho_within(3.0, 1e-6), 4)
    0.1851
    """
    return _largest(lambda rho: epsilon_of_zcdp(rho, dp_delta) <= epsilon, epsilon)


def _largest(fits: Callable[[float], bool], start: float, within: float = 1e-8) -> float:
    """The largest number that fits, up to a relative error; all smaller numbers must fit."""
    low = start
    while not fits(low):
        low /= 2
    high = 2 * low
    while fits(high):
        low, high = high, 2 * high
    while high - low > within * low:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _largest_epsilon(kind: str, rho: float) -> float:
    """The largest loss of one release whose zero-concentrated loss is at most rho."""
    if kind == "calibration":
        return range_of_zcdp(rho)
    return math.sqrt(2 * rho) * (1 - 1e-15)


def _rounded_down(value: float | Fraction) -> float:
    ratio, down = Fraction(value), Context(prec=_DIGITS, rounding=ROUND_FLOOR)
    return float(down.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))


def _allows_more(one: Schedule, other: Schedule | None) -> bool:
    """Whether any kind has a larger epsilon in one schedule than in the other."""
    if other is None:
        return True
    return any(mine.epsilon > its.epsilon for mine, its in zip(one.entries, other.entries, strict=True))


def _count(name: str, count: Any, per_person: Any) -> tuple[int, int]:
    """The number of releases of a kind, and the number of them that one person is in."""
    if isinstance(count, bool) or not isinstance(count, Integral):
        raise InputTypeError(name, "must be an integer", got=type(count).__name__)
    number = int(count)
    if not 0 <= number <= MOST_PLANNED:
        raise InputError(name, f"must be an integer from 0 to {MOST_PLANNED}", got=str(number))
    if per_person is None:
        return number, number
    if number == 0:
        raise InputError(f"{name}_per_person", f"must be left out without {name}")
    return number, positive_integer(f"{name}_per_person", per_person, most=number)


def _shares(kinds: Sequence[str], share: Fraction) -> dict[str, Fraction]:
    """The share of each kind: `share` for calibrations, the rest evenly; everything if there is one kind."""
    others = [kind for kind in kinds if kind != "calibration"]
    if len(others) in (0, len(kinds)):
        return {kind: Fraction(1, len(kinds)) for kind in kinds}
    return {kind: share if kind == "calibration" else (1 - share) / len(others) for kind in kinds}
