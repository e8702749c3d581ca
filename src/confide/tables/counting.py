"""Histograms of a table's scores, in one pass that keeps only counts; and public samples, which are kept whole.

PostgreSQL and Spark count where the rows are stored.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confide.candidates import Candidates
from confide.core import Pilot
from confide.counting import ScoreHistogram
from confide.errors import InputError
from confide.scores import ScoreKind, all_scores
from confide.tables.arrow import ColumnRef, number_column
from confide.tables.bin_counts import Job, count_rows
from confide.tables.columns import ClassColumns, ColumnSpec, LossColumns, TargetColumns
from confide.tables.named_columns import GroupedColumns, NamedColumn, WeightColumn, group_column
from confide.tables.open_table import as_open_table
from confide.tables.readers import ClassReader, refuse_first_rows
from confide.tables.records import JoinedColumns, RecordColumns, checked_batches
from confide.tables.table import ContributionBound, Progress, Table, no_progress

Histograms = Mapping[Any, ScoreHistogram]
"""Histograms by the name of a group; without groups the name is None."""


@dataclass(frozen=True)
class Counting:
    """A counting pass over a table. Columns are looked up when it is created, rows are read when it runs.

    Parameters
    ----------
    table
        The table to read.
    records
        The columns of each record; several if there are several scores, or columns of groups that overlap.
    kinds
        The name and range of each score.
    skip_incomplete
        Whether records with missing values are left out, before the records of a person are bounded.
    """

    table: Table
    records: tuple[RecordColumns, ...]
    kinds: tuple[ScoreKind, ...]
    skip_incomplete: bool = False
    overlapping: GroupedColumns | None = None
    """The columns of groups that overlap, one for each of `records`; or None."""

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
        several = group if isinstance(group, GroupedColumns) else None
        groups = (group,) if group is None else group.each
        records = tuple(RecordColumns(one, own, weight, people) for one in what.readers(table) for own in groups)
        kinds = what.kinds if isinstance(what, TargetColumns) else (what.kind,)
        return cls(table, records, kinds * len(groups), skip_incomplete, several)

    @property
    def all_count(self) -> bool:
        """Whether every row of the table is a record that counts."""
        return not self.skip_incomplete and self.records[0].people is None

    @property
    def in_sql(self) -> bool:
        """Whether engines can count the scores."""
        return all(one.in_sql for one in self.records)

    @property
    def rows(self) -> Table:
        """The rows that count."""
        whole = self.records[0] if self.overlapping is None else replace(self.records[0], group=self.overlapping)
        return whole.counting(self.table, skip_incomplete=self.skip_incomplete)

    def run(self, candidates: Candidates | None = None, progress: Progress = no_progress) -> list[Histograms]:
        """Count the histograms of each score, by group; default candidates fit the score.

        Raises
        ------
        InputError
            If rows have no usable score (how many, and why).
        EngineError
            If the engine fails.
        """
        table = self.rows
        for reader in (one.reader for one in self.records):
            if isinstance(reader, ClassReader) and reader.in_sql and (reader.by_entry or not table.local):
                refuse_first_rows(self.table, reader.probabilities)
        lists = [kind.candidates() if candidates is None else candidates for kind in self.kinds]
        jobs = [Job(one, chosen.edges) for one, chosen in zip(self.records, lists, strict=True)]
        counted = table.count_all(jobs, progress) or count_rows(table, jobs, progress)
        found: list[Histograms] = []
        for (counts, errors), columns, chosen, job in zip(counted, self.records, lists, jobs, strict=True):
            errors.refuse(columns.requirements, table.rows, skips=not self.skip_incomplete)
            found.append(job.histograms(chosen, counts))
        return found


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
        Called with the number of rows of every batch. Its method `share`, if it has one, is called with the number of
        completed tasks of Spark and the number of all known tasks.

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
        if others:
            raise InputError("column", f"{name!r} must hold numbers", got=f"{others:,} missing or other values")
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
    if isinstance(what, LossColumns) or (isinstance(what, TargetColumns) and len(what.kinds) > 1):
        raise InputError("pilot", "must have one score per record: no losses, and no scores of two sides")
    with as_open_table(source) as table:
        (found,) = read_scores(table, [what], skip_incomplete=skip_incomplete, progress=progress)
        table.check_rows(len(found.scores))
    return Pilot(found.scores, found.class_scores, found.width, what.kind.name)


class ScoresRead(NamedTuple):
    """The scores of all records from one column specification. **Private**, unless the records are public."""

    scores: NDArray[np.float64]
    """Shape (n,)."""
    class_scores: NDArray[np.float64] | None
    """For classes: the scores of all of them, shape (n, K)."""
    width: float | None
    """For CQR: the mean width of the predicted intervals; crossing quantiles have width 0."""


def read_scores(
    source: Any,
    specs: Sequence[ColumnSpec],
    *,
    skip_incomplete: bool = False,
    progress: Progress = no_progress,
) -> list[ScoresRead]:
    """Read the scores of the same records from several column specifications, in one pass over the rows.

    A table without records gives empty arrays: the existence of private records is secret.

    Parameters
    ----------
    source
        A source that `open_table` opens, or its result.
    specs
        The columns of each; every one has one score per record.
    skip_incomplete
        Leave out records with a missing value in any column that is read.

    Raises
    ------
    InputError
        If rows cannot be used: how many, and why.

    Examples
    --------
    >>> import pyarrow
    >>> from confide.tables import ScoreColumn
    >>> table = pyarrow.table({"a": [0.1, None, 0.9], "b": [0.2, 0.5, None]})
    >>> [one.scores for one in read_scores(table, [ScoreColumn("a"), ScoreColumn("b")], skip_incomplete=True)]
    [array([0.1]), array([0.2])]
    """
    # Whichever score: all probabilities of a record are read.
    reads = [replace(what, score="aps_deterministic") if isinstance(what, ClassColumns) else what for what in specs]
    scores, of_classes, widths = [[np.zeros(0)] for _ in specs], [list[Any]() for _ in specs], [0.0 for _ in specs]
    rows = 0
    with as_open_table(source) as table:
        for classes, what in zip(of_classes, specs, strict=True):
            if isinstance(what, ClassColumns):
                classes.append(np.zeros((0, len(what.columns(table)[1]))))
        readers = {read: reader for read in dict.fromkeys(reads) for reader in read.readers(table)}
        joined = JoinedColumns(tuple(map(RecordColumns, readers.values())))
        counting = joined.counting(table, skip_incomplete=skip_incomplete)
        with closing(checked_batches(counting, joined, progress, skips=not skip_incomplete)) as batches:
            for batch, found in batches:
                rows += batch.num_rows
                arrays = dict(zip(readers, found, strict=True))
                for k, (what, read) in enumerate(zip(specs, reads, strict=True)):
                    if isinstance(what, ClassColumns):
                        place = arrays[read][1]
                        of_classes[k].append(all_scores(arrays[read][0], what.score))
                        of_record = of_classes[k][-1][np.arange(batch.num_rows), place]
                        scores[k].append(np.where(place < 0, np.inf, of_record))
                        continue
                    scores[k].append(readers[read].score_of(arrays[read]))
                    if isinstance(what, TargetColumns) and what.kind.family == "cqr":
                        widths[k] += float(np.maximum(np.diff(arrays[read][0], axis=1), 0).sum())
    joined_classes = [np.concatenate(classes) if classes else None for classes in of_classes]
    of_intervals = [isinstance(what, TargetColumns) and what.kind.family == "cqr" for what in specs]
    mean_widths = [wide / max(rows, 1) if given else None for wide, given in zip(widths, of_intervals, strict=True)]
    return list(map(ScoresRead, map(np.concatenate, scores), joined_classes, mean_widths))
