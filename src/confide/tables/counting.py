"""Histograms of a table's scores, in one pass that keeps only counts; and public samples, which are kept whole."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.arrays import GroupColumns
from confide.candidates import Candidates
from confide.core import ClassShift, Pilot, Population, RecordWeights, check_together
from confide.counting import ScoreHistogram
from confide.errors import InputError
from confide.scores import ScoreKind
from confide.support import as_integer, canonical_name, check_types, order_of, require, several
from confide.tables.arrow import ColumnRef, is_integer, number_column
from confide.tables.bin_counts import Job, count_rows
from confide.tables.columns import ColumnSpec
from confide.tables.named_columns import GroupedColumns, NamedColumn, Names, WeightColumn, group_column, one_column
from confide.tables.number_columns import refuse_first_rows
from confide.tables.open_table import as_open_table
from confide.tables.readers import ClassReader, JoinedColumns, RecordColumns, checked_batches
from confide.tables.table import ContributionBound, Progress, Table, no_progress

# By the name of a group; without groups the name is None.
Histograms = Mapping[Any, ScoreHistogram]


@dataclass(frozen=True)
class Counting:
    """A counting pass over a table. Columns are looked up when it is created, rows are read when it runs."""

    table: Table
    records: tuple[RecordColumns, ...]  # several if there are several scores, or columns of groups that overlap
    kinds: tuple[ScoreKind, ...]
    group: NamedColumn | GroupedColumns | None = None  # if groups overlap, with a column for each of `records`
    skip_incomplete: bool = False  # left out before the records of a person are bounded

    @classmethod
    def of(
        cls,
        table: Table,
        what: ColumnSpec,
        group: NamedColumn | GroupedColumns | None = None,
        people: ContributionBound | None = None,
        skip_incomplete: bool = False,
        weight: WeightColumn | None = None,
    ) -> "Counting":
        """Look up the columns of a table."""
        if people is not None:
            table.check_people(people)
        groups = (group,) if group is None else group.each
        records = tuple(
            RecordColumns(reader, column, weight, people) for reader in what.readers(table) for column in groups
        )
        return cls(table, records, what.kinds * len(groups), group, skip_incomplete)

    @property
    def all_count(self) -> bool:
        """Whether every row of the table is a record that counts."""
        return not self.skip_incomplete and self.records[0].people is None

    @property
    def in_sql(self) -> bool:
        """Whether engines can count the scores."""
        return all(columns.reader.in_sql for columns in self.records)

    @property
    def rows(self) -> Table:
        """The rows that count."""
        whole = replace(self.records[0], group=self.group)
        return whole.counting(self.table, skip_incomplete=self.skip_incomplete)

    def run(self, candidates: Candidates | None = None, progress: Progress = no_progress) -> list[Histograms]:
        """Count the histograms of each score, by group; default candidates fit the score."""
        table = self.rows
        # Sums of rows are checked here if the count reads one entry of each row
        for reader in (columns.reader for columns in self.records):
            if isinstance(reader, ClassReader) and reader.in_sql and (reader.by_entry or not table.local):
                refuse_first_rows(self.table, reader.probabilities)
        # Count, in the engine if it can
        lists = [kind.candidates() if candidates is None else candidates for kind in self.kinds]
        jobs = [Job(columns, of_score.edges) for columns, of_score in zip(self.records, lists, strict=True)]
        counted = table.count_all(jobs, progress) or count_rows(table, jobs, progress)
        # Refuse records without a usable score
        for (_, errors), columns in zip(counted, self.records, strict=True):
            if errors:
                skips = not self.skip_incomplete and table.lacks_values(columns.reads)
                errors.refuse(columns.requirements, table.rows, skips=skips)
        return [
            job.histograms(of_score, counts) for (counts, _), of_score, job in zip(counted, lists, jobs, strict=True)
        ]


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
                "groups", "groups and by_class must be left out with weights, which are for a single threshold"
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

    def counting(self, table: Table, what: ColumnSpec, population: Population | None) -> Counting:
        """Build the counting pass, with the column of each record's weight if the population has weights."""
        group = self._group(table, what, population)
        weight = WeightColumn.of(table, self.weights, population) if isinstance(population, RecordWeights) else None
        return Counting.of(table, what, group, self.people, self.skip_incomplete, weight)

    def _group(
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


def split_columns(options: Mapping[str, Any]) -> tuple[Columns, dict[str, Any]]:
    """Split options into the columns and the other options."""
    names = [field.name for field in fields(Columns)]
    columns = Columns(**{name: options[name] for name in names if name in options})
    return columns, {name: value for name, value in options.items() if name not in names}


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


def score_histogram(
    source: Any,
    what: ColumnSpec,
    candidates: Candidates | None = None,
    *,
    people: ContributionBound | None = None,
    skip_incomplete: bool = False,
    progress: Progress = no_progress,
) -> ScoreHistogram:
    """Count a table's scores over public candidates. **Private**, like every histogram.

    Parameters
    ----------
    source
        A source that `open_table` opens, or its result.
    what
        The columns: `ScoreColumn`, `ClassColumns`, `TargetColumns` or `LossColumns`.
    candidates
        Public candidate thresholds; by default the score's list for any number of records, as in `score_batches`.
    people
        The bound on the number of records that count for each person.
    skip_incomplete
        Leave out records with a missing value in a column that is read, instead of raising an error. The privacy
        statement still holds (`expressions.py` has the rule and the proof). `left_out()` of an open table returns their
        number.
    progress
        Called with the number of rows of every batch; of Spark and databases that count, once with all rows.

    Raises
    ------
    InputError
        If rows have no usable score (how many, and why), or if columns do not fit. A table without rows has no counts.
    EngineError
        If the engine fails.

    Examples
    --------
    >>> import pyarrow
    >>> from confide.tables import ScoreColumn
    >>> score_histogram(pyarrow.table({"s": [0.1, 0.5, 0.6]}), ScoreColumn("s"), Candidates.of([0.5, 1.0])).counts
    array([2, 1, 0])
    """
    with as_open_table(source) as table:
        counting = Counting.of(table, what, people=people, skip_incomplete=skip_incomplete)
        if len(counting.records) != 1:
            raise InputError(
                "score", "must be one of cqr, cqr_low and cqr_high to be counted", remedy="cqr_sides stands for two"
            )
        return counting.run(candidates, progress)[0][None]


def group_histograms(
    source: Any,
    what: ColumnSpec,
    group: str,
    names: Sequence[str | int],
    candidates: Candidates | None = None,
    *,
    people: ContributionBound | None = None,
    skip_incomplete: bool = False,
    progress: Progress = no_progress,
) -> dict[str | int, ScoreHistogram]:
    """Count one histogram per group, in the same pass.

    Parameters
    ----------
    group
        The column of each row's group, texts or integers.
    names
        All groups, public. Rows of another group raise an error.
    source, what, candidates, people, skip_incomplete, progress
        As in `score_histogram`.

    Examples
    --------
    >>> import pyarrow
    >>> from confide.tables import ScoreColumn
    >>> table = pyarrow.table({"s": [0.1, 0.5, 0.6], "g": ["a", "b", "a"]})
    >>> {name: h.total for name, h in group_histograms(table, ScoreColumn("s"), "g", ["a", "b", "c"]).items()}
    {'a': 2, 'b': 1, 'c': 0}
    """
    with as_open_table(source) as table:
        column = group_column(table, group, tuple(names))
        counting = Counting.of(table, what, column, people, skip_incomplete)
        return dict(counting.run(candidates, progress)[0])


def class_histograms(
    source: Any,
    what: ColumnSpec,
    candidates: Candidates,
    *,
    people: ContributionBound | None = None,
    skip_incomplete: bool = False,
    progress: Progress = no_progress,
) -> dict[str | int, ScoreHistogram]:
    """Count one histogram per class, by the names under which classes are released; arguments as in `score_histogram`.

    Examples
    --------
    >>> import pyarrow
    >>> from confide.tables import ClassColumns
    >>> table = pyarrow.table({"p_no": [0.9, 0.2], "p_yes": [0.1, 0.8], "y": ["no", "yes"]})
    >>> counts = class_histograms(table, ClassColumns("p_*", "y"), Candidates.of([0.15, 0.5]))
    >>> {name: histogram.counts.tolist() for name, histogram in counts.items()}
    {'no': [1, 0, 0], 'yes': [0, 1, 0]}
    """
    with as_open_table(source) as table:
        return dict(
            Counting.of(table, what, what._class_column(table), people, skip_incomplete).run(candidates, progress)[0]
        )


def read_numbers(table: Table) -> NDArray[np.float64]:
    """All columns of an open table of numbers, such as outputs of a model: float64, shape (rows, columns).

    Raises
    ------
    InputError
        If a column holds something else, or lacks values.

    Examples
    --------
    >>> import pyarrow
    >>> with as_open_table(pyarrow.table({"p_no": [0.9, 0.5], "p_yes": [0.1, 0.5]})) as table:
    ...     read_numbers(table).tolist()
    [[0.9, 0.1], [0.5, 0.5]]
    """
    for name in table.columns:
        table.check_number(name)
    with closing(table.batches([ColumnRef(name) for name in table.columns], 2**14)) as batches:
        rows = [np.column_stack([number_column(batch, name) for name in table.columns]) for batch in batches]
    numbers = np.concatenate(rows).astype(np.float64)
    for name, others in zip(table.columns, np.isnan(numbers).sum(axis=0), strict=True):
        require("column", not others, f"{name!r} must hold numbers", got=f"{others:,} missing or other values")
    return numbers


def read_pilot(
    source: Any, what: ColumnSpec, *, skip_incomplete: bool = False, progress: Progress = no_progress
) -> Pilot:
    """Read a PUBLIC sample for a plan. Never pass private records, because a plan reveals properties of the sample.

    Parameters
    ----------
    source
        A source that `open_table` opens, or its result.
    what
        The columns: scores; probabilities and labels, for which the plan also reports set sizes; or predictions and
        targets.
    skip_incomplete
        Leave out records with a missing value in a column that is read, instead of raising an error. `left_out()` of an
        open table returns their number.
    progress
        As in `score_histogram`.

    Raises
    ------
    InputError
        If rows cannot be used: how many, and why; and for losses and two sides, which have no one score.

    Examples
    --------
    >>> import pyarrow
    >>> from confide.tables import ScoreColumn
    >>> read_pilot(pyarrow.table({"s": [0.1, 0.5, 0.99]}), ScoreColumn("s", "lac")).scores
    array([0.1 , 0.5 , 0.99])
    """
    if "score" not in what._requested:
        raise InputError("pilot", "must have one score per record: no losses, and no scores of two sides")
    with as_open_table(source) as table:
        (sample,) = read_scores(table, [what], skip_incomplete=skip_incomplete, progress=progress)
        table.check_rows(len(sample["scores"]))
    width = float(sample["widths"].mean()) if "widths" in sample else None
    return Pilot(sample["scores"], sample.get("class_scores"), width, what.kind.name)


def read_scores(
    source: Any, specs: Sequence[ColumnSpec], *, skip_incomplete: bool = False, progress: Progress = no_progress
) -> list[dict[str, NDArray[Any]]]:
    """Read the scores of the same records from several column specifications, in one pass over the rows. **Private**.

    Each result has the arrays of all records by their names in `ColumnSpec._scores_read`: `scores`, shape (n,), of
    classes also `class_scores`, shape (n, K), and of CQR the `widths` of predicted intervals, shape (n,).

    With `skip_incomplete` a record counts if no column that is read lacks a value. A table without records gives empty
    arrays: the existence of private records is secret.
    """
    with as_open_table(source) as table:
        # Join the columns of all scores, each read once
        wholes = dict.fromkeys(what._whole for what in specs)
        readers = {what: reader for what in wholes for reader in what.readers(table)}
        joined = JoinedColumns(tuple(map(RecordColumns, readers.values())))
        counting = joined.counting(table, skip_incomplete=skip_incomplete)
        checked = checked_batches(counting, joined, progress, skips=not skip_incomplete, shows_types=True)
        read: list[list[dict[str, NDArray[Any]]]] = [[] for _ in specs]
        with closing(checked) as batches:
            for _, inputs in batches:
                arrays = dict(zip(readers, inputs, strict=True))
                for what, scores in zip(specs, read, strict=True):
                    scores.append(what._scores_read(readers[what._whole], arrays[what._whole]))
    return [{name: np.concatenate([batch[name] for batch in scores]) for name in scores[0]} for scores in read]
