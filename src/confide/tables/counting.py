"""Histograms of scores: of a table in one pass, and of batches, on one machine or on several that return only counts.

    a table          score_histogram(source, columns)  -> ScoreHistogram
    one process      score_batches(batches, scores)    -> ScoreHistogram
    many processes   count_batches(batches, scores)    -> small Arrow table   on each executor
                     merge_counts(tables)              -> ScoreHistogram      on the driver

A batch is what the engine supplies: an Arrow record batch (Spark's `mapInArrow`), an Arrow table or a mapping of
arrays (Ray Data's `map_batches`), or the output of a torch DataLoader. Memory holds one batch and m counts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.arrays import as_host_array, as_numeric
from confide.candidates import Candidates
from confide.counting import ScoreHistogram
from confide.errors import InputError, InputTypeError
from confide.scores import score_kind
from confide.support import check_names, require, require_extra
from confide.tables.arrow import first_length
from confide.tables.bin_counts import Counts, Job, count_stream
from confide.tables.columns import ColumnSpec, ScoreColumn
from confide.tables.data import as_record_batches
from confide.tables.deferred import pa
from confide.tables.open_table import as_open_table
from confide.tables.people import ContributionBound
from confide.tables.readers import RecordReader, ScoreReader
from confide.tables.record_columns import RecordColumns
from confide.tables.source import Columns
from confide.tables.table import Progress, TableColumns, no_progress


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
    columns = Columns(what, people=people, skip_incomplete=skip_incomplete)
    with as_open_table(source) as table:
        records = columns.source(table, progress=progress)
        must = "must be one of cqr, cqr_low and cqr_high to be counted"
        require("score", len(records.kinds) == 1, must, remedy="cqr_sides stands for two")
        return records.histograms(candidates)[0][None]


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
    names = check_names("names", names)
    columns = Columns(what, by=group, groups=names, people=people, skip_incomplete=skip_incomplete)
    with as_open_table(source) as table:
        counted = columns.source(table, progress=progress).histograms(candidates)[0]
    return dict(zip(names, counted.values(), strict=True))


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
    columns = Columns(what, by_class=True, people=people, skip_incomplete=skip_incomplete)
    with as_open_table(source) as table:
        return dict(columns.source(table, progress=progress).histograms(candidates)[0])


Scores: TypeAlias = ColumnSpec | str | Callable[[Any], Any] | None
"""The scores of a batch: the columns to compute them from, the column of scores, a function, or the batch itself."""

COUNT_SCHEMA = "bin int, count long"
"""The transmitted columns in the notation of Spark's `mapInArrow`: the position of a candidate (or minus a reason), and
the number of records in its bin."""

# The most requirements of a record: bins below 0, of as many reasons, count the records that break them.
_MOST_REASONS = 7


def score_batches(
    batches: Iterable[Any], scores: Scores = None, *, score: str | None = None, candidates: Candidates | None = None
) -> ScoreHistogram:
    """Count the scores of all batches in one pass, with memory for one batch and m counts.

    Histograms of several calls over the same candidates can be added (`+`), so each worker may make one.

    Parameters
    ----------
    batches
        Arrow record batches or tables, mappings of arrays, or arrays and tensors of shape (n,).
    scores
        `ClassColumns`, `TargetColumns` or `LossColumns`, which name the columns that a score is computed from; the name
        of the column of scores; a function from a batch to its scores, shape (n,), where NaN marks a record without
        one; or None if the batches themselves are scores.
    score
        The score's name, for a column or a function. It determines the valid range and the default candidates.
    candidates
        The public candidates, by default the score's list for any number of records. Those of `plan(...).request` fit
        the request, so that the release is the planned one.

    Raises
    ------
    InputError
        After the last batch, if records have no usable score: how many, why, and the position of the first. Also if a
        column does not exist.
    InputTypeError
        If scores are not numbers.

    Examples
    --------
    >>> import pyarrow as pa
    >>> batches = [pa.record_batch({"s": [0.1, 0.5]}), pa.record_batch({"s": [0.7]})]
    >>> score_batches(batches, "s", candidates=Candidates.of([0.5])).counts
    array([2, 1])
    >>> score_batches([np.array([0.1, 0.5]), np.array([0.7])], candidates=Candidates.of([0.5])).counts
    array([2, 1])
    """
    counts = _counted(batches, scores, score, candidates)
    counts.errors.refuse(counts.job.columns.requirements)
    return counts.histograms()[None]


def count_batches(
    batches: Iterable[Any], scores: Scores = None, *, score: str | None = None, candidates: Candidates | None = None
) -> Any:
    """Count scores into an Arrow record batch with the columns `bin` and `count`, which an executor returns.

    **Private**, like a histogram. Only bins that are not empty have a row. If records have no usable score, only their
    numbers are returned, in bins below 0. `merge_counts` rejects all of them at once. An error here would make one task
    fail repeatedly.

    Parameters
    ----------
    batches, scores, score, candidates
        As in `score_batches`.

    Returns
    -------
    pyarrow.RecordBatch
        `bin` int32 below m, `count` int64.

    Examples
    --------
    >>> candidates = Candidates.of([0.5, 0.6])
    >>> count_batches([np.array([0.1, 0.5, 0.7])], candidates=candidates).to_pydict()
    {'bin': [0, 2], 'count': [2, 1]}
    >>> count_batches([np.array([0.1, 0.5, np.nan])], candidates=candidates).to_pydict()
    {'bin': [-1], 'count': [1]}
    """
    counts = _counted(batches, scores, score, candidates)
    (of_bins,) = counts.array
    rows = {-reason: n for reason, n in counts.errors.counts().items()}
    rows = rows or {int(place): int(of_bins[place]) for place in np.flatnonzero(of_bins)}
    bins = pa.array(list(rows), pa.int32())
    return pa.record_batch({"bin": bins, "count": pa.array(list(rows.values()), pa.int64())})


def merge_counts(
    tables: Iterable[Any], *, score: str | None = None, candidates: Candidates | None = None
) -> ScoreHistogram:
    """Merge the counts that executors returned into a histogram.

    Parameters
    ----------
    tables
        Arrow tables or record batches with columns `bin` and `count`, as from `count_batches` or summed by an engine.
        A bin may occur in any number of rows.
    score, candidates
        As in `count_batches`. The candidates must be the same, because bins refer to them.

    Raises
    ------
    InputError
        If records had no usable score (how many, and why), or the tables are not counts over these candidates.

    Examples
    --------
    >>> candidates = Candidates.of([0.5])
    >>> tables = [count_batches([np.array(scores)], candidates=candidates) for scores in ([0.1], [0.2, 0.9])]
    >>> merge_counts(tables, candidates=candidates).counts
    array([2, 1])
    """
    chosen = score_kind(score).candidates() if candidates is None else candidates
    total = np.zeros(_MOST_REASONS + chosen.size, dtype=np.int64)
    for table in tables:
        bins = _whole_numbers(table, "bin")
        counts = _whole_numbers(table, "count")
        require("tables", len(bins) == len(counts), "must have one count for each bin")
        if len(bins) and not (bins.min() >= -_MOST_REASONS and bins.max() < chosen.size and counts.min() >= 0):
            must = f"must hold counts over {chosen.size} candidates, bins 0 to {chosen.size - 1}"
            raise InputError("tables", must, got="others: pass the candidates that the executors counted over")
        np.add.at(total, bins + _MOST_REASONS, counts)
    unusable = int(total[:_MOST_REASONS].sum())
    require(
        "tables",
        not unusable,
        "every record must have a usable score",
        remedy=f"{unusable} do not: a number is missing or out of range, a label is none of the classes, or a list "
        "has another length; call score_batches on a worker for details",
    )
    return ScoreHistogram(chosen, total[_MOST_REASONS:])


def _counted(batches: Iterable[Any], scores: Scores, score: str | None, candidates: Candidates | None) -> Counts:
    require_extra("a batch", "standard", "pyarrow")
    what = ScoreColumn(scores, score) if isinstance(scores, str) else scores
    kind = what.kind if isinstance(what, ColumnSpec) else score_kind(score)
    if isinstance(what, ColumnSpec) and score not in (None, kind.name):
        raise InputError("score", f"must be left out or be {kind.name!r}, which is computed", got=repr(score))
    chosen = kind.candidates() if candidates is None else candidates
    # The first batch shows the columns that a score is computed from; a function's scores need no columns
    if isinstance(what, ColumnSpec):
        arriving = (piece for batch in batches for piece in as_record_batches(batch, "the batches"))
        first = next(arriving, None)
        pieces: Iterator[Any] = arriving if first is None else chain([first], arriving)
        if first is None:
            reader: RecordReader = ScoreReader(score=kind.name, column="score")
        else:
            reader, *others = what.readers(_Columns("the batches", first.schema, first=first))
            must = "must be one score, such as cqr_low: batches are counted for one"
            require("score", not others, must, got=repr(kind.name))
    else:
        reader = ScoreReader(score=score, column="scores")
        pieces = (_computed_scores(batch, what) for batch in batches)
    (counts,) = count_stream(pieces, [Job(RecordColumns(reader), chosen)], no_progress, threads=1)
    return counts


@dataclass(eq=False)
class _Columns(TableColumns):
    """The columns of batches, by the first of them."""

    first: Any = field(kw_only=True)

    def first_length(self, column: str) -> int | None:
        return first_length(self.first.column(column))


def _computed_scores(batch: Any, scores: Any) -> Any:
    """The scores of one batch as a column of an Arrow batch; missing scores are NaN."""
    computed = batch if scores is None else scores(batch)
    if isinstance(computed, Mapping) or hasattr(computed, "schema"):
        raise InputError("scores", "must name the column of scores, or be a function that computes them", got="columns")
    array = as_numeric("scores", as_host_array(computed))
    require("scores", array.ndim == 1, "must be one-dimensional", got=f"shape {array.shape}")
    return pa.record_batch({"scores": array})


def _whole_numbers(table: Any, name: str) -> NDArray[np.int64]:
    array = as_numeric(name, table[name] if isinstance(table, Mapping) else table.column(name))
    if array.dtype.kind not in "iu":
        raise InputTypeError(name, "must hold whole numbers, none of them missing", got=f"dtype {array.dtype}")
    return array.astype(np.int64)
