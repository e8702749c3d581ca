"""Checks of charges against schedules and limits.

A schedule determines how many releases of each kind are left, which charges are rejected, and the privacy loss of one
person.

Charges made together are one joint charge: the levels of one calibration share its cost, and thresholds of disjoint
groups cost the largest. Joint charges about different cells of a partition count as one for each person.

A limit is checked by sums, by zero-concentrated losses, or by a schedule that was fixed in advance
(docs/theory-composition.md, Lemmas B2 and B3). One delta is spent because only one of the rules of a data set has one.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from confide.ledger.composition import epsilon_of_zcdp, largest_sum
from confide.ledger.cost import Cost, Group, decimal, decimal_above, decimal_form, unbounded
from confide.ledger.schedule import IN_WORDS, PlannedReleases, Schedule, count_in_words, join_with_and
from confide.support import float_above

JointCharge: TypeAlias = tuple[Cost, ...]
"""The charges of one kind that were made together."""

Weight: TypeAlias = Callable[[Cost], Fraction]


@dataclass(frozen=True)
class Epoch:
    """The charges while one schedule was in force, or before any.

    Parameters
    ----------
    schedule
        The schedule, or None before the first.
    joint_charges
        The charges of that time, oldest first, without those that cost nothing.

    Examples
    --------
    >>> week = Cost(0.5, "add_remove", "look by discrete-laplace")
    >>> epoch = Epoch(Schedule(3.0, 0.0, "basic", (PlannedReleases("look", 52, 1, 0.5),)), ((week,), (week,)))
    >>> epoch.left(), epoch.loss(lambda cost: cost.exact), epoch.refusal([week])
    ({'look': 50}, Fraction(1, 2), None)
    """

    schedule: Schedule | None
    joint_charges: tuple[JointCharge, ...]

    def after(self, costs: Sequence[Cost]) -> "Epoch":
        """The epoch after these costs were also charged together."""
        return replace(self, joint_charges=(*self.joint_charges, *_by_kind(costs)))

    def left(self) -> dict[str, int]:
        """How many of each planned kind may still be charged, for a person who was in as many as possible."""
        planned = () if self.schedule is None else self.schedule.entries
        return {entry.kind: entry.count - _number(self._of(entry)) for entry in planned}

    def loss(self, weight: Weight) -> Fraction:
        """The largest sum of weights over the releases that one person can be in."""
        plainly = largest_sum([cost for joint_charge in self.joint_charges for cost in joint_charge], weight)
        if self.schedule is None:
            return plainly
        return min(plainly, sum((self._loss(entry, weight) for entry in self.schedule.entries), Fraction(0)))

    def refusal(self, costs: Sequence[Cost]) -> str | None:
        """Why the schedule does not allow these costs together, with what is left; None if it does."""
        if self.schedule is None:
            return None
        for joint_charge in _by_kind(costs):
            kind = joint_charge[0].kind
            planned = {entry.kind: entry for entry in self.schedule.entries}.get(kind)
            if planned is None:
                return f"follows a schedule without any {count_in_words(kind, 2).split()[1]}; {self.in_words}"
            if _number([*self._of(planned), joint_charge]) > planned.count:
                return f"has had the {planned.words} of its schedule; {self.in_words}"
            if most := _exceeds_plan(joint_charge, planned, self.schedule):
                return f"follows a schedule in which {count_in_words(kind, 1)} may cost {most}; {self.in_words}"
        return None

    @property
    def in_words(self) -> str:
        """The number left of each kind, in words."""
        assert self.schedule is not None
        left = self.left()
        return join_with_and([f"{left[entry.kind]} of {entry.words}" for entry in self.schedule.entries]) + " are left"

    def _of(self, entry: PlannedReleases) -> list[JointCharge]:
        return [joint_charge for joint_charge in self.joint_charges if joint_charge[0].kind == entry.kind]

    def _loss(self, entry: PlannedReleases, weight: Weight) -> Fraction:
        joint_charges = self._of(entry)
        dearest = max((largest_sum(joint_charge, weight) for joint_charge in joint_charges), default=Fraction(0))
        return min(largest_sum([cost for one in joint_charges for cost in one], weight), entry.per_person * dearest)


def epoch_of(schedule: Schedule | None, charged: Iterable[tuple[Cost, bool]]) -> Epoch:
    """The epoch with these charges, each with whether it was joined to the one before."""
    together: list[list[Cost]] = []
    for cost, joined in charged:
        if joined and together:
            together[-1].append(cost)
        else:
            together.append([cost])
    return Epoch(schedule, tuple(joint_charge for costs in together for joint_charge in _by_kind(costs)))


def _by_kind(costs: Iterable[Cost]) -> list[JointCharge]:
    kinds: dict[str, list[Cost]] = {}
    for cost in costs:
        if cost.epsilon > 0:
            kinds.setdefault(cost.kind, []).append(cost)
    return [tuple(one) for one in kinds.values()]


def _number(joint_charges: Iterable[JointCharge]) -> int:
    """The number of joint charges that one person can be in; of each partition, the cell with the most counts."""
    marks = []
    for joint_charge in joint_charges:
        groups: set[Group | None] = {cost.group for cost in joint_charge}
        marks += [replace(joint_charge[0], group=group) for group in ({None} if None in groups else groups)]
    return int(largest_sum(marks, lambda cost: Fraction(1)))


def _exceeds_plan(joint_charge: JointCharge, planned: PlannedReleases, schedule: Schedule) -> str | None:
    """The largest planned cost in words, if these costs together exceed it; else None."""
    most = planned.cost(schedule.neighbors)
    if not all(cost.private for cost in joint_charge):
        how = "is not private" if unbounded(joint_charge) == "not private" else "has zCDP alone"
        return f"epsilon = {decimal_form(planned.epsilon)}, and this {how}"
    if schedule.rule == "zcdp":
        total_rho = largest_sum(joint_charge, lambda cost: cost.zcdp)
        by = f" by the {planned.selector} mechanism" if planned.selector else ""
        words = f"{float(most.zcdp):.6g} of zCDP, epsilon = {decimal_form(planned.epsilon)}{by}; this costs"
        return f"{words} {float(total_rho):.6g} of zCDP" if total_rho > most.zcdp else None
    total = largest_sum(joint_charge, lambda cost: cost.exact)
    words = f"epsilon = {decimal_form(planned.epsilon)}; this costs {float(total):.6g}"
    return words if total > decimal(planned.epsilon) else None


class Limit(NamedTuple):
    """Limit on the budget of a data set: (epsilon, dp_delta)-differential privacy of all releases together."""

    epsilon: float
    dp_delta: float = 0.0


def fits(limit: Limit, epochs: Sequence[Epoch]) -> bool:
    """Whether the charges of these epochs are within a limit, by the rules of the last epoch."""
    if sum_of_epsilons(epochs) <= decimal(limit.epsilon):
        return True
    schedule = epochs[-1].schedule
    if schedule is not None and schedule.rule == "pld":
        return _whole_fits(limit, epochs[:-1], schedule)
    return (schedule is None or schedule.rule == "zcdp") and _zcdp_fits(limit, sum_of_rhos(epochs))


def why_unfit(limit: Limit | None, epochs: Sequence[Epoch], schedule: Schedule) -> str | None:
    """Why a schedule cannot follow these epochs; None if it can. Without a limit the schedule's own is used.

    Examples
    --------
    >>> from confide.ledger import Cost, PlannedReleases
    >>> from confide.ledger.limit import epoch_of
    >>> year = Schedule(3.0, 0.0, "basic", (PlannedReleases("look", 6, 6, 0.5),))
    >>> before = epoch_of(None, [(Cost(2.0, "add_remove", "slopes"), False)])
    >>> why_unfit(Limit(5.0), [before], year)
    >>> why_unfit(Limit(4.0), [before], year)
    'has spent 2 of its limit epsilon = 4, and the schedule adds 3 by basic composition; plan within less, or ...'
    """
    if (twice := _spends_delta_twice(limit, epochs, schedule)) is not None:
        return twice
    bound = limit or Limit(schedule.epsilon, schedule.dp_delta)
    if sum_of_epsilons(epochs) + schedule.added(lambda cost: cost.exact) <= decimal(bound.epsilon):
        return None
    if schedule.rule == "pld" and _whole_fits(bound, epochs, schedule):
        return None
    rho = sum_of_rhos(epochs) + schedule.added(lambda cost: cost.zcdp)
    if schedule.rule == "zcdp" and _zcdp_fits(bound, rho):
        return None
    at = f" at dp_delta = {bound.dp_delta:g}" if bound.dp_delta else ""
    by = f"{IN_WORDS[schedule.rule]}{f' at dp_delta = {schedule.dp_delta:g}' if schedule.dp_delta else ''}"
    return (
        f"has spent {decimal_form(decimal_above(sum_of_epsilons(epochs)))} of its limit epsilon = "
        f"{decimal_form(bound.epsilon)}{at}, and the schedule adds {schedule.loss:.6g} by {by}; plan within less, or "
        "raise the limit with `confide ledger limit`"
    )


def sum_of_epsilons(epochs: Iterable[Epoch]) -> Fraction:
    """The sum of the epsilons that one person can be in."""
    return sum((epoch.loss(lambda one: one.exact) for epoch in epochs), Fraction(0))


def sum_of_rhos(epochs: Iterable[Epoch]) -> Fraction:
    """The sum of the zero-concentrated losses that one person can be in."""
    return sum((epoch.loss(lambda one: one.zcdp) for epoch in epochs), Fraction(0))


def _whole_fits(limit: Limit, before: Sequence[Epoch], schedule: Schedule) -> bool:
    """Whether a whole schedule fits after the sum of the earlier charges."""
    enough = limit.dp_delta >= schedule.dp_delta
    return enough and sum_of_epsilons(before) + decimal(schedule.epsilon) <= decimal(limit.epsilon)


def _zcdp_fits(limit: Limit, rho: Fraction) -> bool:
    return limit.dp_delta > 0 and epsilon_of_zcdp(float_above(rho), limit.dp_delta) <= limit.epsilon


def _spends_delta_twice(limit: Limit | None, epochs: Sequence[Epoch], schedule: Schedule) -> str | None:
    """Why a schedule would spend a second delta, after one of earlier charges; None if it would not."""
    without = "zcdp" if limit is not None and limit.dp_delta else "basic"
    spent = {epoch.schedule.rule if epoch.schedule else without for epoch in epochs if epoch.joint_charges} - {"basic"}
    if schedule.rule == "basic" or not spent or (schedule.rule == "zcdp" and spent == {"zcdp"}):
        return None
    instead = "basic composition" if "pld" in spent else "basic composition or zCDP"
    return (
        f"has charges that may have spent its delta, and a schedule by {IN_WORDS[schedule.rule]} would spend one "
        f"again; plan by {instead}"
    )
