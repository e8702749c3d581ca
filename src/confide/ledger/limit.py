"""Whether charges fit a limit: by sums, by zero-concentrated losses, or by a schedule that was fixed in advance.

docs/ledger.md, Lemmas 2 and 3. One delta is spent since only one of the rules that a data set goes by has one.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from confide.ledger.composition import epsilon_of_zcdp
from confide.ledger.cost import decimal, decimal_above, decimal_form
from confide.ledger.following import Stage
from confide.ledger.schedule import IN_WORDS, Schedule
from confide.support import float_above


class Limit(NamedTuple):
    """The most that may be spent on a data set: (epsilon, dp_delta)-differential privacy of all releases together."""

    epsilon: float
    dp_delta: float = 0.0


def fits(limit: Limit, stages: Sequence[Stage]) -> bool:
    """Whether what was charged in these stages keeps a limit, by the rules that the last one goes by."""
    if added(stages) <= decimal(limit.epsilon):
        return True
    schedule = stages[-1].schedule
    if schedule is not None and schedule.rule == "pld":
        return _whole_fits(limit, stages[:-1], schedule)
    return (schedule is None or schedule.rule == "zcdp") and _zcdp_fits(limit, concentrated(stages))


def unfit(limit: Limit | None, stages: Sequence[Stage], schedule: Schedule) -> str | None:
    """Why a schedule cannot follow these stages; None if it can. Without a limit it gets the schedule's own.

    Examples
    --------
    >>> from confide.ledger import Cost, Planned
    >>> from confide.ledger.following import stage_of
    >>> year = Schedule(3.0, 0.0, "basic", (Planned("look", 6, 6, 0.5),))
    >>> before = stage_of(None, [(Cost(2.0, "add_remove", "slopes"), False)])
    >>> unfit(Limit(5.0), [before], year)
    >>> unfit(Limit(4.0), [before], year)
    'has spent 2 of its limit epsilon = 4, and the schedule adds 3 by basic composition; plan within less, or ...'
    """
    if (twice := _spends_delta_twice(limit, stages, schedule)) is not None:
        return twice
    bound = limit or Limit(schedule.epsilon, schedule.dp_delta)
    if added(stages) + schedule.added(lambda cost: cost.exact) <= decimal(bound.epsilon):
        return None
    if schedule.rule == "pld" and _whole_fits(bound, stages, schedule):
        return None
    rho = concentrated(stages) + schedule.added(lambda cost: cost.zcdp)
    if schedule.rule == "zcdp" and _zcdp_fits(bound, rho):
        return None
    at = f" at dp_delta = {bound.dp_delta:g}" if bound.dp_delta else ""
    by = f"{IN_WORDS[schedule.rule]}{f' at dp_delta = {schedule.dp_delta:g}' if schedule.dp_delta else ''}"
    return (
        f"has spent {decimal_form(decimal_above(added(stages)))} of its limit epsilon = {decimal_form(bound.epsilon)}"
        f"{at}, and the schedule adds {schedule.loss:.6g} by {by}; plan within less, or raise the limit with "
        "`confide ledger limit`"
    )


def added(stages: Iterable[Stage]) -> Fraction:
    """The sum of the epsilons of what one person can be in."""
    return sum((stage.loss(lambda one: one.exact) for stage in stages), Fraction(0))


def concentrated(stages: Iterable[Stage]) -> Fraction:
    """The sum of the zero-concentrated losses of what one person can be in."""
    return sum((stage.loss(lambda one: one.zcdp) for stage in stages), Fraction(0))


def _whole_fits(limit: Limit, before: Sequence[Stage], schedule: Schedule) -> bool:
    """Whether all of a schedule fits after the sum of what was charged before it."""
    enough = limit.dp_delta >= schedule.dp_delta
    return enough and added(before) + decimal(schedule.epsilon) <= decimal(limit.epsilon)


def _zcdp_fits(limit: Limit, rho: Fraction) -> bool:
    return limit.dp_delta > 0 and epsilon_of_zcdp(float_above(rho), limit.dp_delta) <= limit.epsilon


def _spends_delta_twice(limit: Limit | None, stages: Sequence[Stage], schedule: Schedule) -> str | None:
    """Why a schedule would spend a delta besides one that earlier charges may have spent; None if it would not."""
    without = "zcdp" if limit is not None and limit.dp_delta else "basic"
    spent = {stage.schedule.rule if stage.schedule else without for stage in stages if stage.occasions} - {"basic"}
    if schedule.rule == "basic" or not spent or (schedule.rule == "zcdp" and spent == {"zcdp"}):
        return None
    instead = "basic composition" if "pld" in spent else "basic composition or zCDP"
    return (
        f"has charges that may have spent its delta, and a schedule by {IN_WORDS[schedule.rule]} would spend one "
        f"again; plan by {instead}"
    )
