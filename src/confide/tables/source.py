"""The records of a table as a source of releases: the columns that count, and the pass over the rows that counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any

from confide.arrays import GroupColumns
from confide.candidates import Candidates
from confide.core import ClassShift, Population, RecordWeights, Request, check_together, weighted_sum
from confide.counting import ScoreHistogram
from confide.errors import InputError
from confide.scores import ScoreKind
from confide.support import DEBUG, as_integer, canonical_name, check_types, log_event, order_of, require, several
from confide.tables.bin_counts import Job, count_rows
from confide.tables.columns import ColumnSpec
from confide.tables.deferred import pa
from confide.tables.named_columns import GroupedColumns, NamedColumn, Names, group_column, one_column
from confide.tables.number_columns import WeightColumn, refuse_first_rows
from confide.tables.people import ContributionBound
from confide.tables.readers import ClassReader
from confide.tables.record_columns import RecordColumns
from confide.tables.table import Progress, Table, no_progress

# By the name of a group; without groups the name is None.
Histograms = Mapping[Any, ScoreHistogram]


@dataclass(frozen=True)
class Columns:
    """The columns of each record of a table: those of its score, its group, its weight and its person.

    Parameters
    ----------
    what
        The columns of the score.
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

    what: ColumnSpec
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

    @classmethod
    def split(cls, what: ColumnSpec, options: Mapping[str, Any]) -> tuple["Columns", dict[str, Any]]:
        """The columns among the options of a call, and the other options."""
        names = {field.name for field in fields(cls)}
        rest = {name: value for name, value in options.items() if name not in names}
        return cls(what, **{name: value for name, value in options.items() if name in names}), rest

    def check(self, population: Population | None) -> None:
        """Check that the columns fit the population of a request: with weights there is one threshold."""
        if population is None:
            check_together(by=self.by, groups=self.groups)
        elif self.groups is not None or self.by_class:
            must = "groups and by_class must be left out with weights, which are for a single threshold"
            raise InputError("groups", must)
        elif isinstance(population, RecordWeights) and self.by is not None:
            raise InputError("by", "must be left out with weights of records")

    @property
    def names(self) -> tuple[str | int, ...] | GroupColumns:
        """The public names of groups, or the columns of groups that overlap, as a request takes them."""
        if isinstance(self.groups, Mapping):
            return GroupColumns(self.groups)
        if self.groups is not None and not isinstance(self.by, str):
            raise InputError("groups", "must be a mapping from each column of by to the list of its values")
        return tuple(self.groups or ())

    def source(
        self,
        table: Table,
        population: Population | None = None,
        *,
        progress: Progress = no_progress,
        n: int | None = None,
    ) -> "TableSource":
        """The records of a table. The columns are looked up now, and rows are read when they are counted."""
        group = self._group(table, population)
        weight = WeightColumn.of(table, self.weights, population) if isinstance(population, RecordWeights) else None
        if self.people is not None:
            table.check_people(self.people)
        groups = (None,) if group is None else group.each
        records = tuple(
            RecordColumns(reader, column, weight, self.people)
            for reader in self.what.readers(table)
            for column in groups
        )
        return TableSource(table, self, records, self.what.kinds * len(groups), group, progress, n)

    def _group(self, table: Table, population: Population | None) -> NamedColumn | GroupedColumns | None:
        """The column that a threshold or a class weight depends on; None if neither does."""
        if isinstance(population, ClassShift):
            return self._class_weight_column(table, population)
        if self.by_class:
            return self.what._class_column(table)
        if self.by is None:
            return None
        names = self.names
        if isinstance(names, GroupColumns):
            return GroupedColumns.of(table, self.by, names)
        return _named_column(table, one_column(self.by), names)

    def _class_weight_column(self, table: Table, shift: ClassShift) -> NamedColumn:
        """The column of each record's class, with the names of the weights: a named column, or the label."""
        if self.by is not None:
            return _named_column(table, one_column(self.by), tuple(shift.classes))
        must = "must name the column of each record's class with class_weights: no label is read otherwise"
        require("by", self.what._labelled, must)
        column = self.what._class_column(table)
        order = order_of(column.names, shift.classes)
        if order is None:
            weighted = set(map(canonical_name, shift.classes))
            without = [name for name in column.names if canonical_name(name) not in weighted]
            remedy = f"{without[0]!r} has none" if without else "some are of no class"
            raise InputError("class_weights", "must have a weight for every class, and no other", remedy=remedy)
        return replace(column, names=tuple(shift.classes[place] for place in order), others=False)


def _named_column(table: Table, column: str, names: Names) -> NamedColumn:
    """A column with a public list of names, which are integers if the column holds those, or all can be in CSV."""
    group = group_column(table, column, names)
    in_csv = table.texts and all(as_integer(name) is not None for name in names)
    integers = in_csv or pa.types.is_integer(table.type_of(column))
    return replace(group, names=tuple(as_integer(name) if integers else canonical_name(name) for name in names))  # type: ignore[misc]


@dataclass(frozen=True)
class TableSource:
    """The records of a table as a source of releases; its columns are looked up before the budget is charged."""

    table: Table
    columns: Columns
    records: tuple[RecordColumns, ...]  # several if there are several scores, or columns of groups that overlap
    kinds: tuple[ScoreKind, ...]  # of each of `records`
    group: NamedColumn | GroupedColumns | None = None  # if groups overlap, with a column for each of `records`
    progress: Progress = no_progress
    stated: int | None = None  # the public number of records, if the caller states it

    @property
    def reading_is_visible(self) -> bool:
        """Whether an engine counts; its logs or its timing may reveal something."""
        return not self.table.local

    @property
    def n(self) -> int | None:
        """The number of records that count, if it is available before they are counted."""
        every_row_counts = not self.columns.skip_incomplete and self.columns.people is None
        if self.stated is not None or not (every_row_counts and self.table.local):
            return self.stated
        return self.table.counted_rows() or None  # the count reports an empty table

    @property
    def in_sql(self) -> bool:
        """Whether engines can count the scores."""
        return all(columns.reader.in_sql for columns in self.records)

    @property
    def rows(self) -> Table:
        """The rows that count."""
        whole = replace(self.records[0], group=self.group)
        return whole.counting(self.table, skip_incomplete=self.columns.skip_incomplete)

    def histograms(self, candidates: Candidates | None = None) -> list[Histograms]:
        """The counts of each score, by group; default candidates fit the score.

        `InputError` reports the rows without a usable score.
        """
        table = self.rows
        # Sums of rows are checked here if the count reads one entry of each row
        for reader in (columns.reader for columns in self.records):
            if isinstance(reader, ClassReader) and reader.in_sql and (reader.by_entry or not table.local):
                refuse_first_rows(self.table, reader.probabilities)
        # Count, in the engine if it can
        jobs = [
            Job(columns, kind.candidates() if candidates is None else candidates)
            for columns, kind in zip(self.records, self.kinds, strict=True)
        ]
        counted = table.count(jobs, self.progress) or count_rows(table, jobs, self.progress)
        # Refuse records without a usable score
        for counts, columns in zip(counted, self.records, strict=True):
            if counts.errors:
                counts.errors.refuse(columns.requirements, table.rows, skips=table.lacks_values(columns.reads))
        return [counts.histograms() for counts in counted]

    def count(self, request: Request, candidates: Candidates) -> Mapping[Any, ScoreHistogram]:
        """Count by row of the request; raises `InputError` if the number of records is not the stated one."""
        by_score = self.histograms(candidates)
        # Name the histograms: by group of every column, by score, or by group
        if isinstance(self.group, GroupedColumns):
            values = chain.from_iterable(histograms.values() for histograms in by_score)
            counted = dict[Any, ScoreHistogram](zip(self.group.columns.names, values, strict=True))
        elif len(by_score) > 1:
            counted = {kind.name: of_all[None] for kind, of_all in zip(self.kinds, by_score, strict=True)}
        else:
            counted = dict(by_score[0])
        # Compare the number of records with the stated one
        total = next(iter(counted.values())).total
        if self.stated is not None and total != self.stated:
            raise InputError("n", f"must be the number of counted records, {total}", got=str(self.stated))
        log_event("tables", "counted", DEBUG, table=self.table.name, rows=total if request.public_n else "secret")
        if request.public_n:
            self.table.check_rows(total)
        # Match them with the rows of the request
        if isinstance(request.population, ClassShift):
            return {None: weighted_sum(counted, request.population)}
        by_name = {None if name is None else canonical_name(name): histogram for name, histogram in counted.items()}
        return {row: by_name[None if row is None else canonical_name(row)] for row in request.rows}
