"""What a schedule makes of charges: how many of each kind are left, what it refuses, what one person loses in all.

Charges that were made together are one occasion: the levels of one calibration share its price, and thresholds of
disjoint groups cost the largest. Occasions about different cells of a partition are one for each person.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

from confide.ledger.composition import worst
from confide.ledger.cost import Cost, Group, decimal, decimal_form, unbounded
from confide.ledger.schedule import Planned, Schedule, and_, counted

Occasion: TypeAlias = tuple[Cost, ...]
"""What was charged together, of one kind."""

Weight: TypeAlias = Callable[[Cost], Fraction]


@dataclass(frozen=True)
class Stage:
    """What was charged while one schedule was followed, or none.

    Parameters
    ----------
    schedule
        The schedule, or None before the first.
    occasions
        What was charged then, oldest first, without what cost nothing.

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
        """The stage after these were charged together, too."""
        return replace(self, occasions=(*self.occasions, *_by_kind(costs)))

    def left(self) -> dict[str, int]:
        """How many of each planned kind may still be charged, for people who were in all that can concern one."""
        planned = () if self.schedule is None else self.schedule.entries
        return {entry.kind: entry.count - _number(self._of(entry)) for entry in planned}

    def loss(self, weight: Weight) -> Fraction:
        """The largest sum of weights over what one person can be in."""
        plainly = worst([cost for occasion in self.occasions for cost in occasion], weight)
        if self.schedule is None:
            return plainly
        return min(plainly, sum((self._loss(entry, weight) for entry in self.schedule.entries), Fraction(0)))

    def refusal(self, costs: Sequence[Cost]) -> str | None:
        """Why the schedule does not allow these together, and what is left; None if it does."""
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
        """What is left, in words."""
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
    """In how many of these occasions one person can be: of each partition, the cell with the most counts."""
    marks = []
    for occasion in occasions:
        groups: set[Group | None] = {cost.group for cost in occasion}
        marks += [replace(occasion[0], group=group) for group in ({None} if None in groups else groups)]
    return int(worst(marks, lambda cost: Fraction(1)))


def _dearer(occasion: Occasion, planned: Planned, schedule: Schedule) -> str | None:
    """What one may cost at most, in words, if these cost more together."""
    most = planned.cost(schedule.neighbors)
    if not all(cost.private for cost in occasion):
        how = "is not private" if unbounded(occasion) == "not private" else "has zCDP alone"
        return f"epsilon = {decimal_form(planned.epsilon)}, and this {how}"
    if schedule.rule == "zcdp":
        asked = worst(occasion, lambda cost: cost.zcdp)
        by = f" by the {planned.selector} mechanism" if planned.selector else ""
        words = f"{float(most.zcdp):.6g} of zCDP, epsilon = {decimal_form(planned.epsilon)}{by}; this costs"
        return f"{words} {float(asked):.6g} of zCDP" if asked > most.zcdp else None
    total = worst(occasion, lambda cost: cost.exact)
    words = f"epsilon = {decimal_form(planned.epsilon)}; this costs {float(total):.6g}"
    return words if total > decimal(planned.epsilon) else None
