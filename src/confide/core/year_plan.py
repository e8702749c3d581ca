"""`budget_plan`: the largest epsilons of a year's releases within one total per person, from public numbers alone.

Under the rule `basic` epsilons add up; under `zcdp` zero-concentrated losses do, and the sum is converted at dp_delta.
A ledger does not contain plans: it adds up all charges of a data set, as if each person were in every release. If each
person is in one release of a kind, charges name a partition with a cell for each release, and the largest one counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from numbers import Integral
from typing import Any, Literal, NamedTuple, TypeAlias, TypedDict, Unpack, get_args

from confide.core.plan import Plan, plan
from confide.errors import InputError, InputTypeError
from confide.ledger import KINDS, Cost, check_delta, decimal, decimal_above, decimal_form, epsilon_of_zcdp
from confide.mechanisms import NEIGHBORS, Neighbors, weak_privacy_text
from confide.noisy_counts import noise_variance
from confide.selection import range_of_zcdp, zcdp_of_range
from confide.support import (
    LEAST_LOSS,
    MOST_PER_PERSON,
    Described,
    Level,
    Section,
    check_unknown_arguments,
    exact_level,
    float_above,
    float_below,
    one_of,
    positive_integer,
    privacy_loss,
    require,
    several,
)

# The rule by which the privacy loss of one person is computed.
Rule: TypeAlias = Literal["basic", "zcdp"]

RULES: tuple[Rule, ...] = get_args(Rule)
IN_WORDS: Mapping[Rule, str] = {"basic": "basic composition", "zcdp": "zCDP"}

# The kinds in the order of plans, and their nouns, whose plurals are the arguments of `budget_plan`.
PLANNED = ("calibration", "evaluation", "look")
_NOUNS = {"calibration": "release"} | {kind: kind for kind in KINDS}

# Most releases of one kind.
MOST_PLANNED = 1_000_000

# Significant digits of the epsilon of each release, so that the printed number is the charged one.
_DIGITS = 6

# What the rounding of a square root may add to it.
_ROUNDED_DOWN = 1 - 1e-15


@dataclass(frozen=True)
class PlannedReleases:
    """The releases of one kind in a budget plan.

    Parameters
    ----------
    kind
        `"calibration"`, `"evaluation"` or `"look"`.
    count
        Their number.
    per_person
        In how many of these releases one person's records can be. This is a public statement about the people, which
        cannot be verified from the releases.
    epsilon
        The privacy loss of each of them, per person.

    Examples
    --------
    >>> PlannedReleases("calibration", 12, 12, 0.125).words
    '12 releases'
    >>> PlannedReleases("look", 52, 1, 0.5).words
    '52 looks'
    """

    kind: str
    count: int
    per_person: int
    epsilon: float

    @property
    def words(self) -> str:
        """The number in words, such as "12 releases"."""
        return f"{self.count} {_NOUNS[self.kind]}{'' if self.count == 1 else 's'}"

    def cost(self, neighbors: Neighbors) -> Cost:
        """The cost of one of them."""
        rho = zcdp_of_range(self.epsilon) if self.kind == "calibration" else None
        return Cost(self.epsilon, neighbors, "slopes" if self.kind == "calibration" else f"{self.kind} by plan", rho)


@dataclass(frozen=True, repr=False)
class BudgetPlan(Described):
    """A year's releases within one total per person, as returned by `budget_plan`.

    Parameters
    ----------
    epsilon, dp_delta
        The total for each person: all releases together are (epsilon, dp_delta)-differentially private. The rule
        `"basic"` has `dp_delta` 0.
    rule
        `"basic"` or `"zcdp"`.
    entries
        The plan of each kind, in the order of calibrations, evaluations and looks.
    neighbors
        The adjacency for which the losses are stated.
    records_per_person
        Public bound on the number of one person's records in one release.

    Examples
    --------
    >>> print(BudgetPlan(1.0, 0.0, "basic", (PlannedReleases("look", 52, 1, 1.0),)).statement)
    One person can be in 1 of 52 looks. Together that is 1-differentially private for this person, by basic composition.
    """

    epsilon: float
    dp_delta: float
    rule: Rule
    entries: tuple[PlannedReleases, ...]
    neighbors: Neighbors = "add_remove"
    records_per_person: int = 1

    @property
    def loss(self) -> float:
        """The total privacy loss of one person, by the plan's rule at `dp_delta`; rounded up."""
        costs = [(entry.per_person, entry.cost(self.neighbors)) for entry in self.entries]
        if self.rule == "basic":
            return decimal_above(sum((count * cost.exact for count, cost in costs), Fraction(0)))
        rho = sum((count * cost.zcdp for count, cost in costs), Fraction(0))
        return epsilon_of_zcdp(float_above(rho), self.dp_delta)

    def plan(self, n: int = 1000, alpha: Level = 0.1) -> Plan | None:
        """What one planned calibration promises and costs with n records; None if no calibration is planned."""
        first = self.entries[0]
        if first.kind != "calibration":
            return None
        return plan(alpha, first.epsilon, n, neighbors=self.neighbors, records_per_person=self.records_per_person)

    def records_of(self, entry: PlannedReleases, alpha: Level = 0.1) -> int:
        """How many records a look or an evaluation needs, about: 22/epsilon**2 at alpha = 0.1.

        With at least this many records the noise in a count has a smaller variance than the number of covered records,
        n alpha (1 - alpha).
        """
        level = float(exact_level("alpha", alpha))
        per_record = entry.epsilon / self.records_per_person
        per_count = per_record if self.neighbors == "add_remove" else per_record / 2
        return math.ceil(noise_variance(per_count) / (level * (1 - level)))

    @property
    def statement(self) -> str:
        """The guarantee for one person over the whole plan."""
        parts = [f"{_article(entry)} {entry.words}" for entry in self.entries]
        records = f", with up to {self.records_per_person} records in each" if self.records_per_person > 1 else ""
        at = decimal_form(self.epsilon)
        private = f"({at}, {self.dp_delta:g})" if self.dp_delta else at
        weak = weak_privacy_text(self.epsilon)
        return (
            f"One person can be in {_join_with_and(parts)}{records}. Together that is {private}-differentially private "
            f"for this person, by {IN_WORDS[self.rule]}{f': {weak}' if weak else ''}."
        )

    def _section(self) -> Section:
        return Section("Budget plan", f"{_join_with_and([entry.words for entry in self.entries])}. {self.statement}")

    def _brief(self) -> str:
        parts = ", ".join(f"{entry.words} at epsilon {decimal_form(entry.epsilon)}" for entry in self.entries)
        delta = f" at delta {self.dp_delta:g}" if self.dp_delta else ""
        return f"{parts}; epsilon {decimal_form(self.epsilon)}{delta} per person by {IN_WORDS[self.rule]}"


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


_DEFAULTS: Mapping[str, Any] = {
    "releases": 0, "evaluations": 0, "looks": 0, "dp_delta": 1e-6, "records_per_person": 1, "share": 0.5,
    "neighbors": "add_remove",
}  # fmt: skip


def budget_plan(
    epsilon: float,
    *,
    rule: Rule | Literal["best"] = "best",
    n: int | Sequence[int] = 1000,
    alpha: Level = 0.1,
    **year: Unpack[Year],
) -> BudgetPlan:
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
        divide the rest evenly. It is a share of epsilon under `"basic"`, of the zero-concentrated loss under `"zcdp"`.
    rule
        `"basic"`: epsilons add up. `"zcdp"`: zero-concentrated losses add up. Both are also valid if you change the
        plan during the year. `"best"`: of the available rules, the one with the least excess coverage of releases for
        `n` and `alpha`; without releases the one with the least noise in looks.
    neighbors
        The adjacency for which losses are stated, `"add_remove"` by default.
    n, alpha
        Numbers of records in one release, and its miscoverage level, for which `"best"` compares.

    Returns
    -------
    BudgetPlan
        The epsilon of each release, rounded down to six digits.

    Raises
    ------
    InputError, InputTypeError
        If an argument is out of range, nothing is planned, or the epsilon of a release would be too small.

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


def by_rules(epsilon: float, **year: Unpack[Year]) -> dict[Rule, BudgetPlan]:
    """The plans by all available rules; arguments as in `budget_plan`. With `dp_delta=0` epsilons add up."""
    rules = RULES if check_delta(year.get("dp_delta", _DEFAULTS["dp_delta"])) > 0 else RULES[:1]
    return {rule: by_rule(rule, epsilon, **year) for rule in rules}


def best_of(plans: Mapping[Rule, BudgetPlan], n: int | Sequence[int] = 1000, alpha: Level = 0.1) -> BudgetPlan:
    """The plan with the least excess coverage, summed over the n; without releases, with the least noise in looks."""
    sizes = [n] if isinstance(n, int) else several("n", n)
    require("n", sizes, "must be a number of records, or several", got="none")

    def order(year: BudgetPlan) -> tuple[float, float]:
        plans = (year.plan(size, alpha) for size in sizes)
        coverage = math.fsum(release.expected_coverage for release in plans if release is not None)
        return round(coverage, 4), -year.entries[-1].epsilon

    return next(iter(plans.values())) if len(plans) == 1 else min(plans.values(), key=order)


def by_rule(rule: Rule, epsilon: float, **year: Unpack[Year]) -> BudgetPlan:
    """The most expensive plan by one rule; arguments as in `budget_plan`."""
    stated: dict[str, Any] = {**_DEFAULTS, **year}
    total = privacy_loss("epsilon", epsilon)
    delta = check_delta(stated["dp_delta"])
    if rule != "basic" and delta == 0:
        raise InputError("dp_delta", f"must be above 0 for rule={rule!r}", remedy="With dp_delta=0 use rule='basic'")

    # What is planned, and the share of each kind.
    planned = [_planned(kind, stated) for kind in PLANNED]
    planned = [each for each in planned if each.number]
    require("releases", planned, "releases, evaluations or looks must be planned", got="none")
    shares = _shares([each.kind for each in planned], exact_level("share", stated["share"]))
    neighbors = one_of("neighbors", stated["neighbors"], NEIGHBORS)
    records = positive_integer("records_per_person", stated["records_per_person"], most=MOST_PER_PERSON)

    # The epsilon of each release.
    entries = []
    for each in planned:
        weight = shares[each.kind] / each.per_person
        entries.append(PlannedReleases(*each, epsilon=_epsilon_of_each(rule, each.kind, total, delta, weight)))
    if any(entry.epsilon < LEAST_LOSS * records for entry in entries):
        must = f"epsilon = {total:g} leaves each record less than a loss of {LEAST_LOSS:g}"
        raise InputError("epsilon", must, remedy="Plan fewer releases, or fewer per person")
    return BudgetPlan(total, 0.0 if rule == "basic" else delta, rule, tuple(entries), neighbors, records)


@lru_cache(maxsize=64)
def rho_within(epsilon: float, dp_delta: float) -> float:
    """The largest zero-concentrated loss within epsilon at dp_delta, rounded down."""

    def fits(rho: float) -> bool:
        return epsilon_of_zcdp(rho, dp_delta) <= epsilon

    # A loss that fits, and twice as much, which does not; then a bisection.
    low = epsilon
    while not fits(low):
        low /= 2
    high = 2 * low
    while fits(high):
        low, high = high, 2 * high
    while high - low > 1e-8 * low:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _epsilon_of_each(rule: Rule, kind: str, total: float, delta: float, weight: Fraction) -> float:
    """The largest epsilon of a release whose privacy loss is this part of the total, rounded down to six digits."""
    if rule == "basic":
        epsilon = decimal(total) * weight
    else:
        rho = float_below(Fraction(rho_within(total, delta)) * weight)
        # Laplace noise of an epsilon costs epsilon**2 / 2; a calibration less, because its range is bounded.
        epsilon = Fraction(range_of_zcdp(rho) if kind == "calibration" else math.sqrt(2 * rho) * _ROUNDED_DOWN)
    down = Context(prec=_DIGITS, rounding=ROUND_FLOOR)
    return float(down.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator)))


class _Planned(NamedTuple):
    """The number of releases of a kind, and of those that one person is in."""

    kind: str
    number: int
    per_person: int


def _planned(kind: str, stated: Mapping[str, Any]) -> _Planned:
    name = f"{_NOUNS[kind]}s"
    count = stated[name]
    per_person = stated.get(f"{name}_per_person")
    if isinstance(count, bool) or not isinstance(count, Integral):
        raise InputTypeError(name, "must be an integer", got=type(count).__name__)
    number = int(count)
    require(name, 0 <= number <= MOST_PLANNED, f"must be an integer from 0 to {MOST_PLANNED}", got=str(number))
    if per_person is not None and number == 0:
        raise InputError(f"{name}_per_person", f"must be left out without {name}")
    most = number if per_person is None else positive_integer(f"{name}_per_person", per_person, most=number)
    return _Planned(kind, number, most)


def _shares(kinds: Sequence[str], share: Fraction) -> dict[str, Fraction]:
    """The share of each kind: `share` for calibrations, the rest evenly; everything if there is one kind."""
    others = [kind for kind in kinds if kind != "calibration"]
    if len(others) in (0, len(kinds)):
        return {kind: Fraction(1, len(kinds)) for kind in kinds}
    return {kind: share if kind == "calibration" else (1 - share) / len(others) for kind in kinds}


def _article(entry: PlannedReleases) -> str:
    """In how many of the releases one person can be, as the words before their number."""
    if entry.count == 1:
        return "the"
    return f"{entry.per_person} of" if entry.per_person < entry.count else "all"


def _join_with_and(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
