"""Checks of charges against schedules and limits.

A schedule determines how many releases of each kind are left, which charges are rejected, and the privacy loss of one
person.

Charges made together are one occasion: the levels of one calibration share its cost, and thresholds of disjoint groups
cost the largest. Occasions about different cells of a partition count as one for each person.

A limit is checked by sums, by zero-concentrated losses, or by a schedule that was fixed in advance
(docs/theory-composition.md, Lemmas B2 and B3). One delta is spent because only one of the rules of a data set has one.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from confide.ledger.composition import epsilon_of_zcdp, worst
from confide.ledger.cost import Cost, Group, decimal, decimal_above, decimal_form, unbounded
from confide.ledger.schedule import IN_WORDS, Planned, Schedule, and_, counted
from confide.support import float_above

Occasion: TypeAlias = tuple[Cost, ...]
"""The charges of one kind that were made together."""

Weight: TypeAlias = Callable[[Cost], Fraction]


@dataclass(frozen=True)
class Stage:
    """The charges while one schedule was in force, or before any.

    Parameters
    ----------
    schedule
        The schedule, or None before the first.
    occasions
        The charges of that time, oldest first, without those that cost nothing.

    Examples
    --------
    >>> week = Cost(0.5, "add_remove", "look by discrete-laplace")
    >>> stage = Stage(Schedule(3.0, 0.0, "basic", (Planned("look", 52, 1, 0.5),)), ((week,), (week,)))
    >>> stage.left(), stage.loss(lambda cost: cost.exact), stage.refusal([week])
    ({'look': 50}, Fraction(1, 2), None)
    """

    schedule: Schedule | None
    occasions: tuple[Occasion, ...]

    def then(self, costs: Sequence[Cost]) -> "Stage":
        """The stage after these costs were also charged together."""
        return replace(self, occasions=(*self.occasions, *_by_kind(costs)))

    def left(self) -> dict[str, int]:
        """How many of each planned kind may still be charged, for a person who was in as many as possible."""
        planned = () if self.schedule is None else self.schedule.entries
        return {entry.kind: entry.count - _number(self._of(entry)) for entry in planned}

    def loss(self, weight: Weight) -> Fraction:
        """The largest sum of weights over the releases that one person can be in."""
        plainly = worst([cost for occasion in self.occasions for cost in occasion], weight)
        if self.schedule is None:
            return plainly
        return min(plainly, sum((self._loss(entry, weight) for entry in self.schedule.entries), Fraction(0)))

    def refusal(self, costs: Sequence[Cost]) -> str | None:
        """Why the schedule does not allow these costs together, with what is left; None if it does."""
        if self.schedule is None:
            return None
        for occasion in _by_kind(costs):
            planned = {entry.kind: entry for entry in self.schedule.entries}.get(occasion[0].kind)
            if planned is None:
                return f"follows a schedule without any {counted(occasion[0].kind, 2).split()[1]}; {self.in_words}"
            if _number([*self._of(planned), occasion]) > planned.count:
                return f"has had the {planned.words} of its schedule; {self.in_words}"
            if dearer := _dearer(occasion, planned, self.schedule):
                return f"follows a schedule in which {counted(planned.kind, 1)} may cost {dearer}; {self.in_words}"
        return None

    @property
    def in_words(self) -> str:
        """The number left of each kind, in words."""
        assert self.schedule is not None
        left = self.left()
        return and_([f"{left[entry.kind]} of {entry.words}" for entry in self.schedule.entries]) + " are left"

    def _of(self, entry: Planned) -> list[Occasion]:
        return [occasion for occasion in self.occasions if occasion[0].kind == entry.kind]

    def _loss(self, entry: Planned, weight: Weight) -> Fraction:
        occasions = self._of(entry)
        dearest = max((worst(occasion, weight) for occasion in occasions), default=Fraction(0))
        return min(worst([cost for one in occasions for cost in one], weight), entry.per_person * dearest)


def stage_of(schedule: Schedule | None, charged: Iterable[tuple[Cost, bool]]) -> Stage:
    """The stage with these charges, each with whether it was joined to the one before."""
    together: list[list[Cost]] = []
    for cost, joined in charged:
        if joined and together:
            together[-1].append(cost)
        else:
            together.append([cost])
    return Stage(schedule, tuple(occasion for costs in together for occasion in _by_kind(costs)))


def _by_kind(costs: Iterable[Cost]) -> list[Occasion]:
    kinds: dict[str, list[Cost]] = {}
    for cost in costs:
        if cost.epsilon > 0:
            kinds.setdefault(cost.kind, []).append(cost)
    return [tuple(one) for one in kinds.values()]


def _number(occasions: Iterable[Occasion]) -> int:
    """The number of occasions that one person can be in; of each partition, the cell with the most occasions counts."""
    marks = []
    for occasion in occasions:
        groups: set[Group | None] = {cost.group for cost in occasion}
        marks += [replace(occasion[0], group=group) for group in ({None} if None in groups else groups)]
    return int(worst(marks, lambda cost: Fraction(1)))


def _dearer(occasion: Occasion, planned: Planned, schedule: Schedule) -> str | None:
    """The largest planned cost in words, if these costs together exceed it; else None."""
    most = planned.cost(schedule.neighbors)
    if not all(cost.private for cost in occasion):
        how = "is not private" if unbounded(occasion) == "not private" else "has zCDP alone"
        return f"epsilon = {decimal_form(planned.epsilon)}, and this {how}"
    if schedule.rule == "zcdp":
        total_rho = worst(occasion, lambda cost: cost.zcdp)
        by = f" by the {planned.selector} mechanism" if planned.selector else ""
        words = f"{float(most.zcdp):.6g} of zCDP, epsilon = {decimal_form(planned.epsilon)}{by}; this costs"
        return f"{words} {float(total_rho):.6g} of zCDP" if total_rho > most.zcdp else None
    total = worst(occasion, lambda cost: cost.exact)
    words = f"epsilon = {decimal_form(planned.epsilon)}; this costs {float(total):.6g}"
    return words if total > decimal(planned.epsilon) else None


class Limit(NamedTuple):
    """Limit on the budget of a data set: (epsilon, dp_delta)-differential privacy of all releases together."""

    epsilon: float
    dp_delta: float = 0.0


def fits(limit: Limit, stages: Sequence[Stage]) -> bool:
    """Whether the charges of these stages are within a limit, by the rules of the last stage."""
    if added(stages) <= decimal(limit.epsilon):
        return True
    schedule = stages[-1].schedule
    if schedule is not None and schedule.rule == "pld":
        return _whole_fits(limit, stages[:-1], schedule)
    return (schedule is None or schedule.rule == "zcdp") and _zcdp_fits(limit, concentrated(stages))


def unfit(limit: Limit | None, stages: Sequence[Stage], schedule: Schedule) -> str | None:
    """Why a schedule cannot follow these stages; None if it can. Without a limit the schedule's own is used.

    Examples
    --------
    >>> from confide.ledger import Cost, Planned
    >>> from confide.ledger.limit import stage_of
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
    """The sum of the epsilons that one person can be in."""
    return sum((stage.loss(lambda one: one.exact) for stage in stages), Fraction(0))


def concentrated(stages: Iterable[Stage]) -> Fraction:
    """The sum of the zero-concentrated losses that one person can be in."""
    return sum((stage.loss(lambda one: one.zcdp) for stage in stages), Fraction(0))


def _whole_fits(limit: Limit, before: Sequence[Stage], schedule: Schedule) -> bool:
    """Whether a whole schedule fits after the sum of the earlier charges."""
    enough = limit.dp_delta >= schedule.dp_delta
    return enough and added(before) + decimal(schedule.epsilon) <= decimal(limit.epsilon)


def _zcdp_fits(limit: Limit, rho: Fraction) -> bool:
    return limit.dp_delta > 0 and epsilon_of_zcdp(float_above(rho), limit.dp_delta) <= limit.epsilon


def _spends_delta_twice(limit: Limit | None, stages: Sequence[Stage], schedule: Schedule) -> str | None:
    """Why a schedule would spend a second delta, after one of earlier charges; None if it would not."""
    without = "zcdp" if limit is not None and limit.dp_delta else "basic"
    spent = {stage.schedule.rule if stage.schedule else without for stage in stages if stage.occasions} - {"basic"}
    if schedule.rule == "basic" or not spent or (schedule.rule == "zcdp" and spent == {"zcdp"}):
        return None
    instead = "basic composition" if "pld" in spent else "basic composition or zCDP"
    return (
        f"has charges that may have spent its delta, and a schedule by {IN_WORDS[schedule.rule]} would spend one "
        f"again; plan by {instead}"
    )
