"""A request to calibrate on a table: its columns, its pass over the rows, and the names that come from the table."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any, Unpack

from confide.arrays import GroupColumns
from confide.candidates import AnyCandidates, Candidates
from confide.core import (
    ClassShift,
    Options,
    Payer,
    Population,
    RecordWeights,
    Release,
    Request,
    check_combinations,
    check_together,
    is_several,
    prepare,
    refuse_weights,
    release,
    renewed,
    shares_of_sides,
    shifted_population,
    split_options,
    weighted_sum,
)
from confide.counting import ScoreHistogram
from confide.errors import InputError
from confide.scores import kind_of_task
from confide.support import (
    DEBUG,
    Level,
    as_integer,
    canonical_name,
    check_types,
    log_event,
    order_of,
    positive_integer,
    several,
)
from confide.tables.arrow import is_integer
from confide.tables.bin_counts import Job
from confide.tables.columns import SIDES, ColumnSpec
from confide.tables.counting import Counting
from confide.tables.named_columns import (
    GroupedColumns,
    NamedColumn,
    Names,
    WeightColumn,
    group_column,
    one_column,
)
from confide.tables.open_table import as_open_table
from confide.tables.predictors import release_class_names
from confide.tables.table import ContributionBound, Progress, Table, no_progress
from confide.tables.unread import CountsFiles, UnreadTable, bounded


@dataclass(frozen=True)
class Columns:
    """The columns of each record of a table in addition to its score: its group, its weight, its person.

    Parameters
    ----------
    by, groups
        The column of each record's group, and the public list of its values. With class weights: the column of its
        class. For groups that overlap: the columns, and a mapping from each of them to the public list of its values.
    by_class
        Whether there is a threshold for each class.
    weights
        The column of each record's weight.
    people
        The bound on the number of records that count for each person.
    skip_incomplete
        Whether records with missing values are left out.
    """

    by: str | Sequence[str] | None = None
    groups: Sequence[str | int] | Mapping[str, Sequence[str | int]] | None = None
    by_class: bool = False
    weights: str | None = None
    people: ContributionBound | None = None
    skip_incomplete: bool = False

    def __post_init__(self) -> None:
        check_types(self, by_class=bool, weights=str, people=ContributionBound, skip_incomplete=bool)
        if self.groups is not None and not isinstance(self.groups, Mapping):
            several("groups", self.groups)
        if self.by_class and (self.by is not None or self.groups is not None):
            raise InputError("by", "by and groups must be left out with by_class")

    def check(self, population: Population | None) -> None:
        """Check that the columns fit the population of a request: with weights there is one threshold."""
        if population is None:
            check_together(by=self.by, groups=self.groups)
        elif self.groups is not None or self.by_class:
            raise InputError(
                "groups", "groups and by_class must be left out with weights: they belong to one threshold"
            )
        elif isinstance(population, RecordWeights) and self.by is not None:
            raise InputError("by", "must be left out with weights of records")

    @property
    def names(self) -> tuple[str | int, ...] | GroupColumns:
        """The public names of groups, or the columns of groups that overlap, as a request takes them."""
        if not isinstance(self.groups, Mapping):
            if self.groups is not None and not isinstance(self.by, str):
                raise InputError("groups", "must be a mapping from each column of by to the list of its values")
            return tuple(self.groups or ())
        return GroupColumns(self.groups)

    def group(
        self, table: Table, what: ColumnSpec, population: Population | None
    ) -> NamedColumn | GroupedColumns | None:
        """The column that a threshold or a class weight depends on; None if neither does."""
        if isinstance(population, ClassShift):
            return class_weight_column(table, what, None if self.by is None else one_column(self.by), population)
        if self.by_class:
            return what._class_column(table)
        if self.by is None:
            return None
        names = self.names
        if isinstance(names, GroupColumns):
            return GroupedColumns.of(table, self.by, names)
        return named_column(table, one_column(self.by), names)

    def counting(
        self,
        table: Table,
        what: ColumnSpec,
        group: NamedColumn | GroupedColumns | None,
        population: Population | None,
    ) -> Counting:
        """Build the counting pass, with the column of each record's weight if the population has weights."""
        weight = WeightColumn.of(table, self.weights, population) if isinstance(population, RecordWeights) else None
        return Counting.of(table, what, group, self.people, self.skip_incomplete, weight)


class TableOptions(Options, total=False):
    """Further options of `calibrate_table`, which documents them."""

    by: str | Sequence[str] | None
    groups: Sequence[str | int] | Mapping[str, Sequence[str | int]] | None
    by_class: bool
    weights: str | None
    people: ContributionBound | None
    skip_incomplete: bool
    classes: Any
    share_low: Level
    shares: Sequence[Level] | None


def split_columns(options: Mapping[str, Any]) -> tuple[Columns, dict[str, Any]]:
    """Split options into the columns and the other options."""
    names = [field.name for field in fields(Columns)]
    columns = Columns(**{name: options[name] for name in names if name in options})
    return columns, {name: value for name, value in options.items() if name not in names}


@dataclass(frozen=True)
class TableSource:
    """The records of a table as a source of releases; its columns were looked up before the budget is charged."""

    counting: Counting
    progress: Progress = no_progress
    stated: int | None = None  # the public number of records, if the caller states it

    @property
    def reading_is_visible(self) -> bool:
        """Whether an engine counts; its logs or its timing may reveal something."""
        return not self.counting.table.local

    @property
    def n(self) -> int | None:
        """The number of records that count, if it is available before they are counted."""
        table = self.counting.table
        if self.stated is not None or not (self.counting.all_count and table.local):
            return self.stated
        return table.counted_rows() or None  # the count reports an empty table

    def count(self, request: Request, candidates: Candidates) -> Mapping[Any, ScoreHistogram]:
        """Count by row of the request; raises `InputError` if the number of records is not the stated one."""
        table, by_score = self.counting.table, self.counting.run(candidates, self.progress)
        overlapping = self.counting.overlapping
        # Name the histograms: by group of every column, by score, or by group
        if overlapping is not None:
            values = chain.from_iterable(histograms.values() for histograms in by_score)
            counted = dict[Any, ScoreHistogram](zip(overlapping.columns.names, values, strict=True))
        elif len(by_score) > 1:
            counted = {kind.name: of_all[None] for kind, of_all in zip(self.counting.kinds, by_score, strict=True)}
        else:
            counted = dict(by_score[0])
        # Compare the number of records with the stated one
        total = next(iter(counted.values())).total
        if self.stated is not None and total != self.stated:
            raise InputError(
                "n", "must be the number of records that count", got=f"{total}, and n={self.stated} was given"
            )
        log_event("tables", "counted", DEBUG, table=table.name, rows=total if request.public_n else "secret")
        if request.public_n:
            table.check_rows(total)
        # Match them with the rows of the request
        if isinstance(request.population, ClassShift):
            return {None: weighted_sum(counted, request.population)}
        by_name = {None if name is None else canonical_name(name): histogram for name, histogram in counted.items()}
        return {row: by_name[None if row is None else canonical_name(row)] for row in request.rows}


@dataclass(frozen=True)
class TableRequest:
    """A request to calibrate on a table. It is checked before the table is opened; its classes are named afterwards."""

    what: ColumnSpec
    columns: Columns
    request: Request
    payer: Payer
    n: int | None = None
    previous: Release | None = None

    def __post_init__(self) -> None:
        self.payer.check(divided=self.is_divided)
        if self.n is not None and (self.is_divided or not self.request.public_n):
            raise InputError("n", "must be left out: the number of records, or of those in each group, is secret")

    @property
    def is_divided(self) -> bool:
        """Whether there is a threshold for each group or class, whose names may come from the table."""
        return self.request.disjoint or self.columns.by_class

    @classmethod
    def of(
        cls,
        what: ColumnSpec,
        alpha: Level | Sequence[Level],
        epsilon: float | None = None,
        *,
        n: int | None = None,
        candidates: AnyCandidates = None,
        class_weights: Mapping[Any, Any] | ClassShift | None = None,
        weight_bound: float | None = None,
        **options: Unpack[TableOptions],
    ) -> "TableRequest":
        """Build the request from the arguments of `calibrate_table`."""
        # Divide the options into columns, the payer and fields of a request
        if what._labelled:
            _ = kind_of_task(str(what.kind.name), "classification", "a classification score, such as 'lac' or 'aps'")
        columns, rest = split_columns(options)
        payer, request_options = split_options("calibrate_table", rest, "partition", "share_low", "shares", "classes")
        if "classes" in request_options and what._classified is not None:
            raise InputError("classes", "must be left out: they are those of the columns of probabilities")
        what = what._over(candidates)
        if columns.people is not None:
            request_options["records_per_person"] = columns.people.bound(request_options.get("records_per_person"))
        # Refuse what does not fit together
        if n is not None:
            positive_integer("n", n)
        check_together(weights=columns.weights, weight_bound=weight_bound)
        population = shifted_population(class_weights, weight_bound)
        columns.check(population)
        request_options |= _divided(what, alpha, columns, population)
        if population is not None:
            refuse_weights(request_options.get("by"), ["weights" if class_weights is None else "class_weights"])
        if columns.by_class:
            check_combinations({**request_options, "by": "class"})
        # Derive the remaining fields
        if (low := request_options.pop("share_low", None)) is not None:
            if request_options.get("by") != "side" or "shares" in request_options:
                raise InputError(
                    "share_low", "must be left out: it divides the loss between two sides, instead of shares"
                )
            request_options["shares"] = shares_of_sides(low)
        request_options["about"] = {**what._outputs, **(request_options.get("about") or {})} or None
        request = Request(alpha=alpha, epsilon=epsilon, candidates=candidates, population=population, **request_options)
        return cls(what, columns, request, payer, n)

    @classmethod
    def again(
        cls,
        previous: Release,
        what: ColumnSpec,
        *,
        n: int | None = None,
        epsilon: float | None = None,
        candidates: AnyCandidates = None,
        **options: Unpack[TableOptions],
    ) -> "TableRequest":
        """Build the request from the arguments of `recalibrate_table`."""
        # Renew the request of the release, with the columns that are given
        columns, rest = split_columns(options)
        payer, request_options = split_options("recalibrate_table", rest, "partition")
        request_options["about"] = {**what._outputs, **(request_options.get("about") or {})} or None
        request = renewed(previous, epsilon=epsilon, candidates=candidates, **request_options)
        # Refuse columns that would change what the release states
        if columns.people is not None and columns.people.most != request.records_per_person:
            raise InputError(
                "people",
                f"must bound the records of each person by {request.records_per_person}, as in previous",
                got=str(columns.people.most),
            )
        if columns.by_class or columns.groups is not None:
            raise InputError("groups", "groups and by_class must be left out: they are those of previous")
        weighted = isinstance(request.population, RecordWeights)
        if (columns.weights is not None) != weighted:
            raise InputError(
                "weights", "weights, the column, must be given for a release whose records have weights, and only then"
            )
        what = _of_the_release(what._with_score(SIDES if request.by == "side" else previous.first.score), request)
        return cls(what, _again(columns, request), request, payer, n, previous)

    def check_limit(self) -> None:
        """Check the ledger's limit; for classes and groups, whose names come from the table, as if there were one."""
        bills = {key: step.bill for key, step in prepare(self.request, self.n).items()}
        with self._charged.account(self.request, bills).alone() as account:
            account.check_limit()

    @property
    def _charged(self) -> Payer:
        people, payer = self.columns.people, self.payer
        return payer if people is None else replace(payer, dataset=people.payer(payer.dataset))

    def release(self, source: Any, progress: Progress = no_progress) -> Release:
        """Make the release from the table of this name, from an open table, or from the files of its counts."""
        with ExitStack() as opening:
            if isinstance(source, CountsFiles):
                table: Table = UnreadTable(self.what, self.columns, files=source.paths)
            else:
                table = opening.enter_context(as_open_table(source))
            counting, request = self._counting(table)
            counted = bounded(request, table.most_candidates, self.n) if counting.in_sql else request
            released = release(TableSource(counting, progress, self.n), counted, self._charged)
        return released if counted is request else replace(released, request=request.stated())

    def query(self, dialect: str, table: str) -> str:
        """The query that counts for the request; no table is read."""
        unread = UnreadTable(self.what, self.columns, table, dialect)
        counting, request = self._counting(unread)
        prepare(request, self.n)
        edges = bounded(request, unread.most_candidates, self.n).counted_over(self.n).edges
        rows = counting.rows
        assert isinstance(rows, UnreadTable)
        return rows.query([Job(columns, edges) for columns in counting.records])

    def _counting(self, table: Table) -> tuple[Counting, Request]:
        """The counting pass, and the request with the names of classes and groups, which may come from the table."""
        what, columns, request = self.what, self.columns, self.request
        group = columns.group(table, what, request.population)
        counting = columns.counting(table, what, group, request.population)
        # The fields that are known from the columns
        from_table: dict[str, Any] = {}
        if (classified := what._classified) is not None:
            probabilities, classes = classified.columns(table)
            from_table["classes"] = classes
        if group is not None and request.population is None:
            names = group.columns if isinstance(group, GroupedColumns) else group.names
            from_table |= {"by": "class" if columns.by_class else "group", "names": names}
        # A renewal already states them, so that the table's must agree
        if self.previous is not None:
            if classified is not None:
                release_class_names(self.previous, probabilities, classes)
            if columns.by_class and order_of(from_table["names"], tuple(request.terms)) is None:
                raise InputError("what", f"must have the {len(request.terms)} classes of previous", got="others")
            return counting, request
        changes = {name: value for name, value in from_table.items() if getattr(request, name) != value}
        return counting, replace(request, **changes) if changes else request


def _divided(what: ColumnSpec, alpha: Any, columns: Columns, population: Population | None) -> dict[str, Any]:
    """The division into several thresholds, as fields of a request; the names of classes come from the table later."""
    requested = what._requested
    divisions = {
        "level": is_several(alpha),
        "class": columns.by_class,
        "group": columns.by is not None and population is None,
        "side": "by" in requested,
        "loss": "loss" in requested,
    }
    if sum(divisions.values()) > 1:
        raise InputError(
            "by", "only one of several levels, groups or classes, two sides, and losses can be requested", got="more"
        )
    by: dict[str, Any] = {"by": "level"} if divisions["level"] else {}
    if divisions["group"]:
        by = {"by": "group", "names": columns.names}
    return {**by, **requested}


def _of_the_release(what: ColumnSpec, request: Request) -> ColumnSpec:
    """The same columns for the score of the release; raises `InputError` if they give another score or bound."""
    first, *_ = request.terms.values()
    what = what._over(first.spread if isinstance(first.spread, Candidates) else None)
    if {kind.name for kind in what.kinds} != {terms.score for terms in request.terms.values()}:
        raise InputError(
            "what", f"must give the score {first.score!r}, as in previous", remedy=f"It gives {what.kinds[0].name!r}"
        )
    bound = what._requested.get("bound", request.bound)
    if request.loss is not None and bound != request.bound:
        raise InputError("bound", f"must be that of previous, {request.bound:g}", got=f"{bound:g}")
    return what


def _again(columns: Columns, request: Request) -> Columns:
    """The columns with the groups or classes of the release; `by` may also name the column of each record's class."""
    if not request.disjoint and request.overlap is None:
        if columns.by is not None and not isinstance(request.population, ClassShift):
            raise InputError("by", "must be left out: previous has no thresholds per group of records")
        return columns
    if columns.by is None and request.by == "group":
        raise InputError("by", "must be given, the column of each record's group: previous has thresholds for each")
    names = tuple(request.terms) if request.overlap is None else request.overlap.columns
    return replace(columns, by_class=True) if columns.by is None else replace(columns, groups=names)


def named_column(table: Table, column: str, names: Names) -> NamedColumn:
    """A column with a public list of names, which are integers if the column holds those, or all can be in CSV."""
    group = group_column(table, column, names)
    in_csv = table.texts and all(as_integer(name) is not None for name in names)
    integers = in_csv or is_integer(table.type_of(column))
    return replace(group, names=tuple(as_integer(name) if integers else canonical_name(name) for name in names))  # type: ignore[misc]


def class_weight_column(table: Table, what: ColumnSpec, by: str | None, shift: ClassShift) -> NamedColumn:
    """The column of each record's class, for its weight: the label or a named column, with the names of the weights."""
    if by is not None:
        return named_column(table, by, tuple(shift.classes))
    if not what._labelled:
        raise InputError(
            "by", "must name the column of each record's class with class_weights: no label is read otherwise"
        )
    column = what._class_column(table)
    order = order_of(column.names, shift.classes)
    if order is None:
        known = set(map(canonical_name, shift.classes))
        without = [name for name in column.names if canonical_name(name) not in known]
        remedy = f"{without[0]!r} has none" if without else "some are of no class"
        raise InputError("class_weights", "must have a weight for every class, and no other", remedy=remedy)
    return replace(column, names=tuple(shift.classes[place] for place in order), others=False)
