"""Data frames of Apache Spark, also of Spark Connect: counts, rows and sets of the executors, by `mapInArrow`.

You open the session and the frame, and write the frame of sets. The driver, or the server of Spark Connect, receives
counts. Columns are read by their position and only if they are needed, so their names may contain any character, and
other columns may have any type. The result of an action is exact for any number of retries of a task, because a lost
or killed task contributes nothing to it. The executors' Python needs confide, numpy and pyarrow.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

import msgspec
import numpy as np

from confide.errors import ConfideError, FormatError, InputError, replaced_errors
from confide.support import require_extra
from confide.tables.arrow import ColumnRef, is_number, is_text, list_element, or_empty_batch
from confide.tables.bin_counts import Counts, Job, count_stream
from confide.tables.deferred import ibis, pa
from confide.tables.expressions import incomplete_expression
from confide.tables.failures import EngineError, columns_of
from confide.tables.people import PERSON_ERROR_COLUMN, ContributionBound
from confide.tables.predictors import Predictions
from confide.tables.row_errors import RowErrors, Rows
from confide.tables.table import Progress, Table, no_progress

Frame: TypeAlias = Any
"""A `pyspark.sql.DataFrame`, of a session with Java or of Spark Connect."""

Result = TypeVar("Result")
Work: TypeAlias = Callable[[Iterator[Any]], Iterator[Any]]
"""The work of a task on the Arrow batches of its partition."""


# The name of the rows in queries, before Spark's own takes its place.
_ROWS = "confide_rows"

# Counts of a partition: of a bin of a group, by its position in the counts of the job; or errors, with count 0.
_COUNTED = "place INT, errors STRING, n BIGINT"

# Up to so many counts of a job, partitions send theirs to the driver; more are summed on the executors.
_FEW_COUNTS = 2**14


class SparkTable(Table):
    """The rows of a data frame.

    Parameters
    ----------
    frame
        The data frame.
    names
        The names of its columns in order; by default its own.
    """

    local = False
    ordered = False
    any_thread = False
    takes_entries = True

    def __init__(self, frame: Frame, names: Sequence[str] | None = None) -> None:
        require_extra("a Spark frame", "spark", "pyspark", "pandas", "pyarrow")
        self._fields = _fields(frame)
        names = [field.name for field in self._fields] if names is None else names
        super().__init__("the data frame", _arrow_schema(self._fields, names))
        self._frame = frame.toDF(*(f"c{place}" for place in range(len(names))))

    def type_of(self, column: str) -> Any:
        """The Arrow type of a column; raises `InputError` for a name of several columns."""
        if (number := self.schema.names.count(column)) > 1:
            raise InputError("column", f"{column!r} must be one column of {self.name}", got=f"{number} of that name")
        return super().type_of(column)

    def batches(self, columns: Sequence[ColumnRef], rows: int) -> Generator[Any]:
        """Arrow record batches, partition by partition: the driver holds one partition at a time."""
        frame = self._read(columns)
        aliases = [read.alias for read in columns]
        packed = in_words(frame.mapInArrow(_packing(), "batch binary").toLocalIterator, columns)

        def arriving() -> Iterator[Any]:
            while (row := in_words(lambda: next(packed, None), columns)) is not None:
                yield from (batch.rename_columns(aliases) for batch in pa.ipc.open_stream(row[0]))

        yield from or_empty_batch(arriving(), _arrow_schema(_fields(frame, columns), aliases))

    def count(self, jobs: Sequence[Job], progress: Progress) -> list[Counts]:
        """Count on the executors, for one job after the other."""
        return [self._count(job, progress) for job in jobs]

    def _count(self, job: Job, progress: Progress) -> Counts:
        """The counts of a job: every partition returns its bins that are not empty, and its errors."""
        reads = job.columns.reads
        counted = self._read(reads).mapInArrow(_counting(job, reads), _COUNTED)
        if np.prod(job.shape) > _FEW_COUNTS:
            counted = counted.groupBy("place", "errors").sum("n")
        answer = in_words(counted.toArrow, reads)
        # Partitions return the errors in a row of their own
        counts = Counts.none(job)
        place, texts, n = (column.combine_chunks() for column in answer.columns)
        for text in texts.drop_null().to_pylist():
            counts.errors.merge(msgspec.json.decode(text, type=RowErrors))
        np.add.at(counts.array.reshape(-1), place.to_numpy(), n.to_numpy())
        progress(counts.records)
        return counts

    def predicted(self, predictions: Predictions) -> Frame:
        """The frame of the kept columns with predictions, computed on the executors when the frame is."""
        from pyspark.sql.pandas.types import from_arrow_type
        from pyspark.sql.types import StructField, StructType

        # The types of the added columns are those for a batch without rows
        reads = tuple(dict.fromkeys([*predictions.kept, *predictions.reads]))
        frame = self._read(reads)
        fields = _fields(frame, reads)
        schema = _arrow_schema(fields, [read.alias for read in reads])
        added, _ = predictions.read(pa.RecordBatch.from_pylist([], schema=schema))
        # The kept columns are read first
        kinds = [field.dataType for field in fields[: len(predictions.keep)]]
        kinds += [from_arrow_type(column.type) for column in added]
        columns = StructType(list(map(StructField, predictions.names, kinds)))
        return frame.mapInArrow(_predicting(predictions, reads), columns)

    def first_length(self, column: str) -> int | None:
        """The length of the first list that is not null."""
        name = self._name(column)
        lists = self._frame.filter(f"{name} IS NOT NULL").selectExpr(f"array_size({name})").limit(1)
        rows = in_words(lists.collect, [ColumnRef(column)])
        return rows[0][0] if rows else None

    def head(self, rows: int) -> "SparkTable":
        """The first few rows."""
        return self._with_frame(self._frame.limit(rows))

    def bound_contributions(self, people: ContributionBound) -> "SparkTable":
        """The table with a bounded number of rows of each person, by a window over that person's rows."""
        order = tuple(map(self._name, people.order))
        limited = replace(people, person=self._name(people.person), order=order).limit(self._rows())
        return SparkTable(self._query(limited), [*self.schema.names, PERSON_ERROR_COLUMN])

    def drop_missing(self, reads: Sequence[ColumnRef]) -> "SparkTable":
        """The table without the rows that lack a value."""
        rows = self._rows()
        wrong = incomplete_expression(rows, [replace(read, column=self._name(read.column)) for read in reads])
        incomplete = self._query(rows.filter(wrong))
        self._count_left_out = lambda: int(in_words(incomplete.count))
        return self._with_frame(self._query(rows.filter(~wrong)))

    def _with_frame(self, frame: Frame) -> "SparkTable":
        changed = copy(self)
        changed._frame = frame
        return changed

    def _name(self, column: str) -> str:
        """The name of a column in the frame, which states its position."""
        self.type_of(column)
        return f"c{self.schema.names.index(column)}"

    def _rows(self) -> Any:
        return ibis.table(ibis.Schema.from_pyarrow(_arrow_schema(self._fields, self._frame.columns)), name=_ROWS)

    def _query(self, rows: Any) -> Frame:
        query = str(ibis.to_sql(rows, dialect="databricks")).replace("{", "{{").replace("}", "}}")
        query = query.replace(f"`{_ROWS}`", "{rows}")
        return in_words(lambda: self._frame.sparkSession.sql(query, rows=self._frame))

    def _read(self, columns: Sequence[ColumnRef]) -> Frame:
        expressions = [f"{self._expression(read)} AS c{place}" for place, read in enumerate(columns)]
        return in_words(lambda: self._frame.selectExpr(*expressions), columns)

    def _expression(self, read: ColumnRef) -> str:
        """A column in the form in which it is read."""
        name = self._name(read.column)
        kind = self.type_of(read.column)
        field = self._fields[self.schema.names.index(read.column)]
        if _arrow_type(field.dataType) is None:
            must = "must have a type that Arrow has"
            remedy = "Convert it, or leave it out with keep"
            raise InputError("column", f"{read.column!r} {must}", got=field.dataType.simpleString(), remedy=remedy)
        match read.form:
            case "number":
                return _exact(name, kind)
            case "numbers":
                return _exact(name, list_element(kind), "array<{}>")
            case "entry":
                return _exact(f"get({name}, try_cast({self._name(str(read.at))} AS INT))", list_element(kind))
            case "length":
                return f"CAST(array_size({name}) AS BIGINT)"
            case "text" if not (is_text(kind) or is_number(kind)):
                return f"CAST({name} AS STRING)"
        return name


# The bytes of a packed batch, because Spark Connect sends no larger rows.
_PACKED_BYTES = 2**24


def _packing() -> Work:
    """Batches as bytes, one per row, of a bounded size or of one record."""

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            rows = max(1, batch.num_rows * _PACKED_BYTES // max(batch.nbytes, 1))
            for start in range(0, batch.num_rows, rows):
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, batch.schema) as writer:
                    writer.write_batch(batch.slice(start, rows))
                yield pa.record_batch({"batch": pa.array([sink.getvalue().to_pybytes()], pa.binary())})

    return work


def _counting(job: Job, reads: Sequence[ColumnRef]) -> Work:
    aliases = [read.alias for read in reads]

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        named = (batch.rename_columns(aliases) for batch in batches)
        (counts,) = count_stream(named, [job], no_progress, ordered=False, threads=1)
        places = np.flatnonzero(counts.array)
        errors = [msgspec.json.encode(counts.errors).decode() if counts.errors else None]
        yield pa.record_batch(
            {
                "place": pa.array([*places, 0], pa.int32()),
                "errors": pa.array([None] * len(places) + errors, pa.string()),
                "n": pa.array([*counts.array.ravel()[places], 0], pa.int64()),
            }
        )

    return work


def _predicting(predictions: Predictions, reads: Sequence[ColumnRef]) -> Work:
    """The kept columns of a partition, which are read first, with predictions; rows without one fail the job."""
    aliases = [read.alias for read in reads]

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        errors = RowErrors()
        start = 0
        for batch in (batch.rename_columns(aliases) for batch in batches):
            added, reasons = predictions.read(batch)
            if reasons.any():
                errors.note(reasons, start, predictions.column_errors(batch))
            start += batch.num_rows
            if not errors:
                columns = batch.columns[: len(predictions.keep)]
                yield pa.RecordBatch.from_arrays([*columns, *added], names=predictions.names)
        errors.refuse(predictions.requirements, Rows(0, "rows count from 0 in one partition"), skips=True)

    return work


def _fields(frame: Frame, columns: Sequence[ColumnRef] = ()) -> list[Any]:
    """The names and types of a frame, for which Spark Connect asks its server."""
    return list(in_words(lambda: frame.schema.fields, columns))


def _arrow_type(kind: Any) -> Any:
    """The type of Arrow for a type of Spark, or None."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_type

    try:
        return to_arrow_type(kind)
    except PySparkException:
        return None


def _arrow_schema(fields: Sequence[Any], names: Sequence[str]) -> Any:
    """The types of Arrow for fields of Spark under these names; null for a type that Arrow does not have."""
    kinds = (_arrow_type(field.dataType) or pa.null() for field in fields)
    return pa.schema(list(zip(names, kinds, strict=True)))


def _exact(column: str, kind: Any, within: str = "{}") -> str:
    """A column of decimals, or of lists of them, as double precision, rounded once: through text."""
    if not pa.types.is_decimal(kind):
        return column
    return f"CAST(CAST({column} AS {within.format('STRING')}) AS {within.format('DOUBLE')})"


_LOGS = "the reason is in its logs, which may quote records, so show them to the owner of the data only"

# Texts in errors of Spark, and what they mean.
_DAMAGED_FILE = ("CANNOT_READ_FILE", "is not a Parquet file", "FAILED_READ_FILE")
_WORDS = {
    ("PATH_NOT_FOUND",): "the path does not exist, or not where Spark looks for it",
    ("TABLE_OR_VIEW_NOT_FOUND",): "there is no table of that name",
    _DAMAGED_FILE: "a file is damaged, or is not a Parquet file",
    ("No module named 'confide'",): "the executors' Python has no confide; install it there, or ship an environment",
    ("PYTHON_VERSION_MISMATCH",): "the executors run another version of Python than this process",
    ("OutOfMemoryError", "MEMORY_LIMIT_EXCEEDED"): "the executors or the driver need more memory",
    ("UNAUTHENTICATED",): "the server rejected the token",
    ("PERMISSION_DENIED", "INSUFFICIENT_PERMISSIONS"): "the user has no right to do that",
    ("UNAVAILABLE", "Connection refused", "SparkContext was shut down", "stopped SparkContext"): (
        "the connection to Spark was lost"
    ),
}


def in_words(work: Callable[[], Result], columns: Sequence[ColumnRef] = ()) -> Result:
    """Run a function on Spark; every error is replaced by one that cannot quote data and names the columns read.

    pyspark logs an error's text before it raises it, so its logger is turned off meanwhile.
    """
    names = list(dict.fromkeys(read.column for read in columns))
    with _quiet(), replaced_errors(lambda error: _refusal_of(error, names)):
        return work()


def _refusal_of(error: Exception, columns: Sequence[str]) -> ConfideError | None:
    if isinstance(error, ConfideError):
        return None
    text = f"{type(error).__name__} {error}"
    where = f"{columns_of('the data frame', columns)} cannot be computed"
    for marks, words in _WORDS.items():
        if any(mark in text for mark in marks):
            kind = FormatError if marks == _DAMAGED_FILE else InputError
            return kind("source", f"{where}: {words}")
    spark = type(error).__module__.partition(".")[0] in ("pyspark", "py4j")
    reason = f"a Spark job failed; {_LOGS}" if spark else f"its driver reports {type(error).__name__}"
    return EngineError("source", f"{where}: {reason}")


@contextmanager
def _quiet() -> Iterator[None]:
    from pyspark.logger import PySparkLogger

    loggers = [PySparkLogger.getLogger(name) for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger")]
    were_disabled = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, was_disabled in zip(loggers, were_disabled, strict=True):
            logger.disabled = was_disabled
