"""Calibrations from tables, wherever they live: counted, paid for, drawn."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from confide.calibration import (
    PricedRelease,
    check_options,
    price_groups,
    price_levels,
    price_risk,
    price_sides,
    price_threshold,
    suited_candidates,
    suited_for_levels,
    suited_for_sides,
    weighted_sum,
)
from confide.candidates import AnyCandidates, Candidates
from confide.counting import ScoreHistogram
from confide.errors import InputError
from confide.mechanisms import Neighbors
from confide.planning import ClassShift, RecordWeights, shifted_population
from confide.scores import score_kind
from confide.support import DEBUG, Level, as_integer, canonical, order_of, tell
from confide.tables.arrow import is_integer
from confide.tables.columns import Classified, Losses, Regressed, What, stated_outputs
from confide.tables.counting import Counting
from confide.tables.named_columns import NamedColumn, Names, WeightColumn, group_column
from confide.tables.open_table import opened
from confide.tables.table import People, Progress, Table, silent

Counted = Mapping[Any, ScoreHistogram]
"""Histograms by the name of a group, of a side's score, or None; or by the name of a threshold."""


@dataclass(frozen=True)
class Counts:
    """What is counted, but for the candidates; as `Counting`."""

    table: Table
    what: What
    group: NamedColumn | None
    people: People | None
    skip_incomplete: bool
    progress: Progress
    weight: WeightColumn | None = None

    def over(self, candidates: Candidates) -> Counting:
        """The pass that counts over these candidates."""
        given = self.group, self.people, self.skip_incomplete, self.weight
        return Counting.of(self.table, self.what, candidates, *given)


@dataclass(frozen=True)
class Asked:
    """What is asked of the counts of a table, whose number n of records may be public.

    Parameters
    ----------
    suited
        From n to the candidates to count over; with `known_later` to all that may be needed when n is known.
    price
        From n, and the pass that counts, to the priced release.
    own
        From counts, and n, to those that each threshold sees.
    """

    suited: Callable[..., Candidates]
    price: Callable[[int | None, Counting], PricedRelease]
    own: Callable[[Counted, int | None], Counted]

    def release(self, counts: Counts, n: int | None, *, public: bool, paid: bool) -> Any:
        """Count, pay and draw, in the order that `calibrate_table` states; `paid` if a ledger is."""
        table = counts.table
        some_count = counts.skip_incomplete or counts.people is not None
        rows = table.counted_rows() if public and n is None and table.local and not some_count else n
        counting = counts.over(self.suited(rows, known_later=public and rows is None))
        if not public and n is not None:
            raise InputError("n must be left out: the number of records, or of those in each group, is secret")
        if public and n is None:
            if not table.local and paid:
                raise InputError("n must be given under neighbors='replace_one' with a ledger, to charge it beforehand")
            if paid:
                self.price(1, counting)  # an account that keeps n secret refuses whatever n is, before a row is read
            counted = by_name(counting, counts.progress)
            total = next(iter(counted.values())).total
            tell("tables", "counted", DEBUG, table=table.name, rows=total)
            if not total:
                raise InputError(f"{table.name} must have rows; it is empty: it has column names but no rows")
            return self.price(total, counting).release(lambda: self.own(counted, total))
        priced = self.price(n, counting)

        def counted_now() -> Counted:
            found = by_name(counting, counts.progress, n)
            tell("tables", "counted", DEBUG, table=table.name, rows="secret" if n is None else n)
            return self.own(found, n)

        return priced.release(counted_now, charge_first=not table.local)


def calibrate_table(
    source: Any,
    what: What,
    alpha: Level | Sequence[Level],
    epsilon: float | None = None,
    *,
    by: str | None = None,
    groups: Sequence[str | int] | None = None,
    by_class: bool = False,
    n: int | None = None,
    candidates: AnyCandidates = None,
    unit: float | None = None,
    people: People | None = None,
    records_per_person: int | None = None,
    skip_incomplete: bool = False,
    neighbors: Neighbors = "add_remove",
    about: Mapping[str, str] | None = None,
    progress: Progress = silent,
    class_weights: Mapping[Any, Any] | ClassShift | None = None,
    weights: str | None = None,
    weight_bound: float | None = None,
    **options: Any,
) -> Any:
    """Release thresholds from a table; the statement is that of `calibrate` and its kin on the same scores.

    With a ledger the price is charged before the mechanism sees a count. Where an engine counts, it is charged before
    the engine is asked, because what its logs or its timing tell is not known; where this process reads the rows, a
    table with bad rows is refused first and costs nothing. A request that looks identical to an earlier one is counted
    first, wherever the table lives, to tell whether the data are the same.

    Parameters
    ----------
    source, people, skip_incomplete, progress
        As in `score_histogram`. With `people`, epsilon is stated per person (docs/engines/README.md).
    what
        What is read of each record. Regression with the score `cqr_sides` releases a threshold for each side, and
        `Losses` one at which the expected loss is at most alpha.
    alpha
        The miscoverage level, or several for nested thresholds under one budget.
    by, groups
        One threshold for each of these public groups, which the column `by` names.
    by_class
        One threshold for each class.
    n
        The public number of rows, under `replace_one` only; needed there with a ledger where an engine counts. A table
        with another number of rows is refused. Default candidates suit it, as those of `confide.plan` do; without it
        they suit the number that is found, also where rows pass by once: then every candidate that may be chosen is
        counted over.
    class_weights
        As in `calibrate`, the classes named as in the table; the class of each record is its label, or what the column
        `by` says.
    weights, weight_bound
        The column of each record's public weight, and the public bound of all of them, as in `calibrate`.
    epsilon, candidates, unit, neighbors, records_per_person, about, **options
        As in `calibrate`, `calibrate_levels`, `calibrate_groups` (with `partition` for the ledger), `calibrate_sides`;
        `records_per_person` follows from `people` if that is given.

    Returns
    -------
    Calibration, LevelCalibration, GroupCalibration, SidesCalibration or RiskCalibration
        What follows from the arguments.

    Raises
    ------
    InputError
        If an argument cannot be used or rows have no usable score; then nothing was released. What was charged before
        an engine was asked stays charged. A table without rows is refused under `replace_one` only: under `add_remove`
        it is a release like every other, for that there are any rows is secret.
    EngineError
        If the engine fails; likewise.
    BudgetError, LedgerError
        If the ledger refuses; then no engine was asked.

    Examples
    --------
    >>> import pyarrow, numpy as np
    >>> from confide.tables import Scored
    >>> rng = np.random.default_rng(0)
    >>> table = pyarrow.table({"s": rng.random(5000), "ward": rng.choice(["a", "b"], 5000)})
    >>> print(calibrate_table(table, Scored("s", "lac"), alpha=0.1, epsilon=1.0).privacy)
    1-differential privacy for adding or removing one record
    >>> list(calibrate_table(table, Scored("s", "lac"), 0.1, 1.0, by="ward", groups=["a", "b"]).parts)
    ['a', 'b']
    """
    check_options("calibrate_table", options, own=("partition", "share_low", "shares"))
    options |= {
        "neighbors": neighbors,
        "records_per_person": _owned(people, records_per_person),
        "about": stated_outputs(what, about),
    }
    if isinstance(what, Losses) and what.losses is not None:
        what = what.over(candidates)
    if people is not None:
        options["dataset"] = people.payer(options.get("dataset"))
    if (weights is None) != (weight_bound is None):
        raise InputError("weights, the column, and weight_bound must be given together")
    population = shifted_population(class_weights, weight_bound)
    with opened(source) as table:
        if population is not None:
            if groups is not None or by_class:
                raise InputError("groups and by_class must be left out with weights: they belong to one threshold")
            if isinstance(population, RecordWeights) and by is not None:
                raise InputError("by must be left out with weights of records")
            options["population"] = population
        shift = population if isinstance(population, ClassShift) else None
        group = (
            group_of(table, what, by, groups, by_class) if shift is None else shifted_classes(table, what, by, shift)
        )
        weight = WeightColumn.of(table, weights, population) if isinstance(population, RecordWeights) else None
        if isinstance(what, Classified | Losses) and what.probabilities is not None:
            if "classes" in options:
                raise InputError("classes must be left out: they are those of the columns of probabilities")
            options["classes"] = what.columns(table)[1]
        public = group is None and weight is None and (neighbors == "replace_one" or options.get("mechanism") == "none")
        parts = None if group is None or shift is not None else len(group.names)

        def suited(n: int | None, *, known_later: bool = False) -> Candidates:
            own = {"unit": unit, "groups": parts, "known_later": known_later, **options}
            return _suited(what, candidates, alpha, epsilon, n, **own)

        def price(n: int | None, counting: Counting) -> PricedRelease:
            return _priced(what, alpha, epsilon, n, counting, suited(n), by_class, shift is not None, options)

        def own(counted: Counted, n: int | None) -> Counted:
            found = counted if shift is None else {None: weighted_sum(dict(counted), shift)}
            return {name: one.over(suited(n)) for name, one in found.items()}

        counts = Counts(table, what, group, people, skip_incomplete, progress, weight)
        paid = options.get("ledger") is not None
        return Asked(suited, price, own).release(counts, n, public=public, paid=paid)


def by_name(counting: Counting, progress: Progress, n: int | None = None) -> dict[Any, Any]:
    """The histograms, by the name of the group or, for two sides, of the score; of n records if that is stated."""
    found = counting.run(progress)
    if len(found) > 1:
        counted = {reader.kind.name: one[None] for reader, one in zip(counting.readers, found, strict=True)}
    else:
        counted = dict(found[0])
    total = next(iter(counted.values())).total
    if n is not None and total != n:
        raise InputError(f"n must be the number of records that count; found {total}, and n={n} was given")
    return counted


def _priced(
    what: What,
    alpha: Any,
    epsilon: float | None,
    n: int | None,
    counting: Counting,
    candidates: Candidates,
    by_class: bool,
    shifted: bool,
    options: dict[str, Any],
) -> PricedRelease:
    name = what.kind.name
    several = isinstance(alpha, Sequence) and not isinstance(alpha, str)
    divided = counting.group is not None and not shifted
    kinds = [several, divided, len(counting.readers) > 1, isinstance(what, Losses)]
    if sum(kinds) > 1:
        raise InputError("one of several levels, groups or classes, two sides, and losses may be asked for; found more")
    if several:
        return price_levels(alpha, epsilon, n, candidates, name, **options)
    if divided and counting.group is not None:
        by: Literal["group", "class"] = "class" if by_class else "group"
        return price_groups(counting.group.names, alpha, epsilon, candidates, name, by=by, **options)
    if len(counting.readers) > 1:
        return price_sides(alpha, epsilon, n, candidates, **options)
    if isinstance(what, Losses):
        return price_risk(alpha, epsilon, n, candidates, loss=what.loss, bound=what.bound, **options)
    return PricedRelease.single(price_threshold(alpha, epsilon, n, candidates=candidates, score=name, **options))


def _suited(
    what: What,
    candidates: AnyCandidates,
    alpha: Any,
    epsilon: float | None,
    n: int | None,
    **options: Any,
) -> Candidates:
    """The candidates to count over; those that losses belong to, as they are."""
    if isinstance(what, Regressed) and len(what.kinds) > 1:
        return suited_for_sides(candidates, alpha, epsilon, n, **options)
    if isinstance(what, Losses) and what.losses is None:
        candidates = score_kind("lac").asked(candidates)  # thresholds of 1 - p, as those of lac
    several = isinstance(alpha, Sequence) and not isinstance(alpha, str)
    suited = suited_for_levels if several else suited_candidates
    return suited(candidates, what.kind.name, alpha, epsilon, n, **options)


def group_of(
    table: Table, what: What, by: str | None, groups: Sequence[str | int] | None, by_class: bool
) -> NamedColumn | None:
    """What thresholds depend on: the label, or a column with a public list of names; None for one threshold."""
    if by_class:
        if by is not None or groups is not None:
            raise InputError("by and groups must be left out with by_class")
        if not isinstance(what, Classified):
            raise InputError("by_class needs the probabilities and the label of every record")
        _, names = what.columns(table)
        return replace(what.label_column(table, names), names=class_keys(names))
    if by is None and groups is None:
        return None
    if by is None or groups is None:
        raise InputError("by and groups must be given together: a column, and the public list of its values")
    column = group_column(table, by, tuple(groups))
    integers = is_integer(table.type_of(by))
    names = tuple(as_integer(name) if integers else canonical(name) for name in groups)  # type: ignore[misc]
    return replace(column, names=names)


def shifted_classes(table: Table, what: What, by: str | None, shift: ClassShift) -> NamedColumn:
    """The class of each record, for its weight: its label, or a column; the names are those of the weights."""
    if by is None and not isinstance(what, Classified):
        raise InputError(
            "by must name the column of each record's class with class_weights: no label is read otherwise"
        )
    if by is not None:
        return group_of(table, what, by, shift.classes, False)  # type: ignore[return-value]
    column = group_of(table, what, None, None, True)
    assert column is not None
    order = order_of(column.names, shift.classes)
    if order is None:
        known = set(map(canonical, shift.classes))
        without = [name for name in column.names if canonical(name) not in known]
        found = f"{without[0]!r} has none" if without else "some are of no class"
        raise InputError(f"class_weights must have a weight for every class, and no other; {found}")
    return replace(column, names=tuple(shift.classes[place] for place in order))


def class_histograms(
    source: Any,
    what: What,
    candidates: Candidates,
    *,
    people: People | None = None,
    skip_incomplete: bool = False,
    progress: Progress = silent,
) -> dict[str | int, ScoreHistogram]:
    """One histogram for each class, by the names under which classes are released; arguments as in `score_histogram`.

    Examples
    --------
    >>> import pyarrow
    >>> from confide.tables import Classified
    >>> table = pyarrow.table({"p_no": [0.9, 0.2], "p_yes": [0.1, 0.8], "y": ["no", "yes"]})
    >>> counts = class_histograms(table, Classified("p_*", "y"), Candidates.of([0.15, 0.5]))
    >>> {name: one.counts.tolist() for name, one in counts.items()}
    {'no': [1, 0, 0], 'yes': [0, 1, 0]}
    """
    with opened(source) as table:
        column = group_of(table, what, None, None, by_class=True)
        return dict(Counting.of(table, what, candidates, column, people, skip_incomplete).run(progress)[0])


def class_keys(names: Names) -> Names:
    """The names under which classes are released: positions as numbers, as in `predict_set`; anything else as it is.

    Examples
    --------
    >>> class_keys(("0", "1")), class_keys(("cat", "1"))
    ((0, 1), ('cat', '1'))
    """
    positions = tuple(range(len(names)))
    return positions if tuple(map(canonical, names)) == tuple(map(str, positions)) else names


def _owned(people: People | None, records_per_person: int | None) -> int:
    if people is None:
        return 1 if records_per_person is None else records_per_person
    if records_per_person not in (None, people.most):
        raise InputError("records_per_person must be left out with people, which bounds the records itself")
    return people.most
