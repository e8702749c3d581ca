"""Schedules: how many releases of each kind a year has, and the epsilon of each, within one total per person.

A schedule is public and is decided before any of it is spent. It is about one person: how many releases of a kind one
person's records can be in, and the cost of all of these together by its rule.

basic   epsilons add up
zcdp    zero-concentrated losses add up, and the sum is converted at dp_delta; thresholds by the exponential mechanism
pld     privacy-loss distributions are composed at dp_delta, which needs the schedule to be fixed in advance
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, get_args

from confide.errors import InputError, InputTypeError
from confide.ledger.composition import check_delta, epsilon_of_zcdp, pld_epsilon
from confide.ledger.cost import KINDS, Cost, decimal_above, decimal_form
from confide.mechanisms import NEIGHBORS, Neighbors, weak_privacy_text
from confide.planning import Plan, plan
from confide.selection import SELECTORS, Selector, zcdp_of_range
from confide.support import (
    MOST_PER_PERSON,
    Described,
    Form,
    Level,
    Section,
    exact_level,
    float_above,
    one_of,
    positive_integer,
    privacy_loss,
    read_as,
    shapes,
    write_text,
)

Rule: TypeAlias = Literal["basic", "zcdp", "pld"]
"""The rule by which the privacy loss of one person is computed."""

RULES: tuple[Rule, ...] = get_args(Rule)
IN_WORDS: Mapping[Rule, str] = {"basic": "basic composition", "zcdp": "zCDP", "pld": "PLD accounting"}
STANDS: Mapping[Rule, str] = {
    "basic": "",
    "zcdp": ", also if the schedule is changed on the way",
    "pld": ", since the schedule is fixed in advance",
}
PLANNED = ("calibration", "evaluation", "look")
"""The kinds in the order of schedules."""
_NOUNS = {"calibration": "release"} | {kind: kind for kind in KINDS}

MOST_PLANNED = 1_000_000
"""Most releases of one kind."""


@dataclass(frozen=True)
class Planned:
    """The releases of one kind in a schedule.

    Parameters
    ----------
    kind
        `"calibration"`, `"evaluation"` or `"look"`.
    count
        Their number.
    per_person
        In how many of them one person's records can be. This is a public statement about the people, which cannot be
        verified from the releases.
    epsilon
        The privacy loss of each of them, per person.
    selector
        The selection mechanism of thresholds; None for other kinds.

    Examples
    --------
    >>> Planned("calibration", 12, 12, 0.125, "permute_and_flip").words
    '12 releases'
    >>> Planned("look", 52, 1, 0.5).words
    '52 looks'
    """

    kind: str
    count: int
    per_person: int
    epsilon: float
    selector: Selector | None = None

    def __post_init__(self) -> None:
        one_of("kind", self.kind, PLANNED)
        object.__setattr__(self, "count", positive_integer("count", self.count, most=MOST_PLANNED))
        object.__setattr__(self, "per_person", positive_integer("per_person", self.per_person, most=self.count))
        object.__setattr__(self, "epsilon", privacy_loss("epsilon", self.epsilon))
        if self.kind == "calibration":
            one_of("selector", self.selector, SELECTORS)
        elif self.selector is not None:
            raise InputError("selector", f"must be left out for kind={self.kind!r}: it selects thresholds")

    @property
    def words(self) -> str:
        """The number in words, such as "12 releases"."""
        return counted(self.kind, self.count)

    def cost(self, neighbors: Neighbors) -> Cost:
        """The cost of one of them."""
        rho = zcdp_of_range(self.epsilon) if self.selector == "exponential" else None
        return Cost(self.epsilon, neighbors, "slopes" if self.kind == "calibration" else f"{self.kind} by plan", rho)


@dataclass(frozen=True, repr=False)
class Schedule(Described):
    """A year's releases within one total per person, as returned by `budget_plan`.

    Parameters
    ----------
    epsilon, dp_delta
        The total for each person: all releases together are (epsilon, dp_delta)-differentially private. The rule
        `"basic"` has `dp_delta` 0.
    rule
        `"basic"`, `"zcdp"` or `"pld"`.
    entries
        The plan of each kind, in the order of calibrations, evaluations and looks.
    neighbors
        The adjacency for which the losses are stated.
    records_per_person
        Public bound on the number of one person's records in one release.

    Raises
    ------
    InputError, InputTypeError
        If a field is invalid, or does not fit the rule.

    Examples
    --------
    >>> print(Schedule(1.0, 0.0, "basic", (Planned("look", 52, 1, 1.0),)).statement)
    One person can be in 1 of 52 looks. Together that is 1-differentially private for this person, by basic composition.
    """

    epsilon: float
    dp_delta: float
    rule: Rule
    entries: tuple[Planned, ...]
    neighbors: Neighbors = "add_remove"
    records_per_person: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", privacy_loss("epsilon", self.epsilon))
        object.__setattr__(self, "dp_delta", check_delta(self.dp_delta))
        one_of("rule", self.rule, RULES)
        one_of("neighbors", self.neighbors, NEIGHBORS)
        records = positive_integer("records_per_person", self.records_per_person, most=MOST_PER_PERSON)
        object.__setattr__(self, "records_per_person", records)
        if (self.rule == "basic") != (self.dp_delta == 0):
            raise InputError("dp_delta", "must be 0 for rule='basic', and above 0 for the others")
        object.__setattr__(self, "entries", _checked(self.entries, self.rule))

    def entry_for(self, kind: str) -> Planned:
        """The plan of a kind.

        Raises
        ------
        InputError
            If the schedule does not contain the kind.
        """
        for entry in self.entries:
            if entry.kind == one_of("kind", kind, PLANNED):
                return entry
        raise InputError(
            "schedule", f"has no {counted(kind, 0).split()[1]}", remedy="Plan some with `confide budget plan`"
        )

    @property
    def of_one_person(self) -> list[Cost]:
        """The costs of all releases that one person can be in."""
        return [cost for entry in self.entries for cost in [entry.cost(self.neighbors)] * entry.per_person]

    def added(self, weight: Callable[[Cost], Fraction]) -> Fraction:
        """The sum of weights over all releases that one person can be in."""
        return sum((entry.per_person * weight(entry.cost(self.neighbors)) for entry in self.entries), Fraction(0))

    @property
    def loss(self) -> float:
        """The total privacy loss of one person, by the schedule's rule at `dp_delta`; rounded up.

        Raises
        ------
        MissingExtraError
            If the rule is `"pld"` and dp-accounting is not installed.
        """
        return _loss(self)

    def check(self) -> Self:
        """Return the schedule if its plan is within its total.

        Raises
        ------
        InputError
            If it is not.
        """
        if self.loss > self.epsilon:
            raise InputError(
                "entries",
                f"must be within epsilon = {decimal_form(self.epsilon)}",
                remedy=(
                    f"Together they cost one person {self.loss:.6g} by {IN_WORDS[self.rule]}; make a schedule "
                    "with `confide budget plan`"
                ),
            )
        return self

    def plan(self, n: int = 1000, alpha: Level = 0.1) -> Plan:
        """What one planned calibration promises and costs with n records."""
        return _plan(self.entry_for("calibration"), n, alpha, self.neighbors, self.records_per_person)

    def records_of(self, kind: str, alpha: Level = 0.1) -> int:
        """How many records a look or an evaluation needs, about: 22/epsilon**2 at alpha = 0.1.

        From there on the noise on a count has less variance than the number of covered records has by chance, which is
        n alpha (1 - alpha).
        """
        level = float(exact_level("alpha", alpha))
        one = self.entry_for(kind).epsilon / self.records_per_person
        each = one if self.neighbors == "add_remove" else one / 2
        variance = 2 * math.exp(-each) / math.expm1(-each) ** 2
        return math.ceil(variance / (level * (1 - level)))

    @property
    def statement(self) -> str:
        """The guarantee for one person over the whole schedule; it is checked where it can be computed."""
        if self.rule != "pld" or find_spec("dp_accounting"):
            self.check()
        parts = [
            f"{f'{entry.per_person} of' if entry.per_person < entry.count else 'all'} {entry.words}"
            if entry.count > 1
            else f"the {entry.words}"
            for entry in self.entries
        ]
        records = f", with up to {self.records_per_person} records in each" if self.records_per_person > 1 else ""
        at = decimal_form(self.epsilon)
        private = f"({at}, {self.dp_delta:g})" if self.dp_delta else at
        weak = f": {weak_privacy_text(self.epsilon)}" if weak_privacy_text(self.epsilon) else ""
        return (
            f"One person can be in {and_(parts)}{records}. Together that is {private}-differentially private for this "
            f"person, by {IN_WORDS[self.rule]}{STANDS[self.rule]}{weak}."
        )

    def _section(self) -> Section:
        return Section("Schedule", f"{and_([entry.words for entry in self.entries])}. {self.statement}")

    def _brief(self) -> str:
        parts = ", ".join(f"{entry.words} at epsilon {decimal_form(entry.epsilon)}" for entry in self.entries)
        delta = f" at delta {self.dp_delta:g}" if self.dp_delta else ""
        return f"{parts}; epsilon {decimal_form(self.epsilon)}{delta} per person by {IN_WORDS[self.rule]}"

    @property
    def fields(self) -> dict[str, Any]:
        """The whole plan, as JSON values."""
        return shapes.write_shape(self, _SHAPE)

    def to_json(self) -> str:
        """The schedule as a JSON document with a schema version and a checksum."""
        return _FORM.write(self.fields)

    @classmethod
    def from_json(cls, text: str) -> "Schedule":
        """Read the output of `to_json`; the privacy loss of one person is recomputed.

        Raises
        ------
        FormatError
            If the text is not a schedule, is damaged, altered or of a newer schema, or spends more than its total.
        MissingExtraError
            If its rule is `"pld"` and dp-accounting is not installed.

        Examples
        --------
        >>> schedule = Schedule(3.0, 0.0, "basic", (Planned("look", 52, 3, 1.0),))
        >>> Schedule.from_json(schedule.to_json()) == schedule
        True
        """
        return _FORM.read(text, lambda fields: cls(**shapes.read_shape(fields, _SHAPE)).check())

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write `to_json()` to a file, atomically."""
        write_text(path, self.to_json(), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path) -> "Schedule":
        """Read a file written by `save`."""
        return read_as(path, cls.from_json)


_FORM = Form("confide.schedule", "schedule", hint="Make one with `confide budget plan --out`", most_characters=10_000)
_SHAPE = shapes.shape_of(Schedule)
SCHEDULE = shapes.record(Schedule, _SHAPE)
"""A schedule in a document; reading it does not compute its cost (`Schedule.check` does)."""


def counted(kind: str, number: int) -> str:
    """A number of releases of a kind, in words.

    Examples
    --------
    >>> counted("calibration", 1), counted("look", 52)
    ('1 release', '52 looks')
    """
    return f"{number} {_NOUNS[kind]}{'' if number == 1 else 's'}"


def and_(parts: Sequence[str]) -> str:
    """A list in words.

    Examples
    --------
    >>> and_(["12 releases", "1 evaluation", "52 looks"])
    '12 releases, 1 evaluation and 52 looks'
    """
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _checked(entries: Any, rule: Rule) -> tuple[Planned, ...]:
    if not isinstance(entries, tuple) or not all(isinstance(entry, Planned) for entry in entries):
        raise InputTypeError("entries", "must be a tuple of Planned", got=type(entries).__name__)
    kinds = [entry.kind for entry in entries]
    if not kinds or kinds != [kind for kind in PLANNED if kind in kinds]:
        raise InputError("entries", f"must be some of {', '.join(PLANNED)}, each once and in this order", got="others")
    drawn = "exponential" if rule == "zcdp" else "permute_and_flip"
    if any(entry.selector not in (None, drawn) for entry in entries):
        raise InputError("selector", f"must be {drawn!r} for rule={rule!r}", got="the other one")
    return entries


@lru_cache(maxsize=64)
def _plan(entry: Planned, n: int, alpha: Level, neighbors: Neighbors, records: int) -> Plan:
    size: dict[str, Any] = {"n_typical": n} if neighbors == "add_remove" else {}
    return plan(
        alpha, entry.epsilon, n, neighbors=neighbors, records_per_person=records, selector=entry.selector, **size
    )


@lru_cache(maxsize=64)
def _loss(schedule: Schedule) -> float:
    if schedule.rule == "basic":
        return decimal_above(schedule.added(lambda cost: cost.exact))
    if schedule.rule == "zcdp":
        return epsilon_of_zcdp(float_above(schedule.added(lambda cost: cost.zcdp)), schedule.dp_delta)
    return pld_epsilon(schedule.of_one_person, schedule.dp_delta)
