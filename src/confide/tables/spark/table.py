"""Tables of Spark: counts, predictions and files of its executors, and rows sent to the driver.

Counts per bin are one Spark job: every partition counts its rows, and the sums of the counts are returned. The result
of an action is exact for any number of retries of a task, because a lost or killed task contributes nothing to it.
"""

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.support import OutputExistsError
from confide.tables.arrow import ColumnRef, or_empty_batch
from confide.tables.bin_counts import Counters, Counts, Job, read_columns, scored_rows
from confide.tables.databases import IbisTable
from confide.tables.failures import RowErrors, engine_errors_in_fixed_words
from confide.tables.predictors import Added
from confide.tables.spark.session import (
    Frame,
    backend_of,
    frame_of,
    functions_of,
    is_connect,
    open_session,
    run_on_spark,
    spark_table,
    table_of,
)
from confide.tables.table import Progress
from confide.tables.writers import Predictions, Summary, checked_summary

_GROUP = "spark.jobGroup.id"
_SECONDS = 0.5


@contextmanager
def report_progress(session: Any, progress: Any) -> Iterator[None]:
    """Call `progress.share(done, total)`, if there is such a method, twice a second while jobs of the block run.

    Spark learns of later stages during the job, so the total can grow. The reported share never falls.

    Parameters
    ----------
    session
        A `pyspark.sql.SparkSession`.
    progress
        A `Progress`.
    """
    report = getattr(progress, "share", None)
    if report is None:
        yield
        return
    if is_connect(session):
        with _report_server_progress(session, report):
            yield
        return
    context, group, done = session.sparkContext, f"confide-{uuid4().hex}", threading.Event()
    before = context.getLocalProperty(_GROUP)
    context.setLocalProperty(_GROUP, group)

    def watch() -> None:
        reached, of = 0, 1
        while not done.wait(_SECONDS):
            try:
                now, total = tasks(context.statusTracker(), group)
            except Exception:
                return  # the job itself reports the error
            if total and now * of >= reached * total:
                reached, of = now, total
                report(now, total)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        context.setLocalProperty(_GROUP, before)


@contextmanager
def _report_server_progress(session: Any, report: Any) -> Iterator[None]:
    """Report progress from a server of Spark Connect; an older server reports nothing."""

    def on_progress(stages: Any, **_: Any) -> None:
        known = list(stages or ())
        if total := sum(stage.num_tasks for stage in known):
            report(sum(stage.num_completed_tasks for stage in known), total)

    if not hasattr(session, "registerProgressHandler"):
        yield
        return
    session.registerProgressHandler(on_progress)
    try:
        yield
    finally:
        session.removeProgressHandler(on_progress)


def tasks(tracker: Any, group: str) -> tuple[int, int]:
    """The number of completed tasks, and of all known tasks, of the jobs of a group.

    Parameters
    ----------
    tracker
        A `pyspark.StatusTracker`.
    group
        The jobs' group.
    """
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = {stage for job in jobs if job is not None for stage in job.stageIds}
    known = [info for stage in stages if (info := tracker.getStageInfo(stage)) is not None]
    return sum(info.numCompletedTasks for info in known), sum(info.numTasks for info in known)


def batches_from_executors(table: Any) -> Iterator[Any]:
    """Arrow record batches of a table on Spark, partition by partition: the driver holds one partition at a time.

    The executors' Python needs pyarrow.
    """
    import pyarrow as pa

    def packed() -> Iterator[Any]:
        rows: Iterator[Any] = frame_of(table).mapInArrow(_packer(), "batch binary").toLocalIterator()
        return rows

    rows = run_on_spark(packed)
    while (row := run_on_spark(lambda: next(rows, None))) is not None:
        yield from pa.ipc.open_stream(row[0])


def _packer() -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A function that is sent with its code, for executors without confide: batches as bytes, one per row.

    They have at most 16 MiB (or one row), because Spark Connect sends no larger ones.
    """

    def pack(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        for batch in batches:
            rows = max(1, batch.num_rows * 2**24 // max(batch.nbytes, 1))
            for start in range(0, batch.num_rows, rows):
                sink = pyarrow.BufferOutputStream()
                with pyarrow.ipc.new_stream(sink, batch.schema) as writer:
                    writer.write_batch(batch.slice(start, rows))
                yield pyarrow.record_batch({"batch": pyarrow.array([sink.getvalue().to_pybytes()], pyarrow.binary())})

    return pack


_SCHEMA = "reason int, place int, bin int, n long"


def count_in_java(table: Any, job: Job, progress: Progress) -> Counts:
    """Count scores that SQL computes, on the JVM of the executors, without Python.

    Parameters
    ----------
    table
        An Ibis table on Spark.
    job
        The counting job.
    progress
        Called with the number of rows at the end; its method `share`, if it has one, is called with the completed
        tasks.

    Returns
    -------
    tuple
        Counts per group and bin, int64, with the shape of the job, and rows per reason.
    """

    def frame() -> Frame:
        rows = scored_rows(table, job.columns)
        grouped_from = _with_bins(frame_of(rows), job.edges)
        grouped = grouped_from.groupBy("reason", "group", "bin")
        if job.columns.weight is None:
            return grouped.count()
        f = functions_of(grouped_from)
        return grouped.agg(f.sum("weight"), f.count(f.lit(1)))

    return _gathered(frame, job, progress)


def count_in_python(table: Any, job: Job, progress: Progress) -> Counts:
    """Count scores that SQL cannot compute, such as APS, in Python on the executors.

    Arrow batches are the input, and counts the output. The executors' Python needs confide, numpy and pyarrow. A
    partition returns one small batch of counts.
    """

    def frame() -> Frame:
        rows = read_columns(table, job.columns)
        counts = frame_of(rows).mapInArrow(_counter(job), _SCHEMA)
        return counts.groupBy("reason", "place", "bin").sum("n")

    return _gathered(frame, job, progress)


def _gathered(frame: Callable[[], Frame], job: Job, progress: Progress) -> Counts:
    """Counts from a frame of rows (reason, row, bin, count), in which a bin may occur several times.

    A row may have several counts, which belong to this row of the job's counts and the next ones.
    """

    def work() -> list[Any]:
        query = frame()
        with report_progress(query.sparkSession, progress):
            collected: list[Any] = query.collect()
        return collected

    found, counts = RowErrors(), np.zeros(job.shape, dtype=np.int64)
    for reason, row, place, *numbers in run_on_spark(work):
        if reason:
            found.add(reason, numbers[-1])
        else:
            counts[row : row + len(numbers), place] += numbers
    progress(int(counts[-job.groups :].sum()))
    return counts, found


def _with_bins(frame: Frame, edges: NDArray[np.float64]) -> Frame:
    """The frame with the number of edges below each usable score, as `bin`; other rows have neither bin nor group.

    With Spark Connect they are searched in SQL, because servers need not have Spark's library of models.
    """
    f = functions_of(frame)
    usable = f.col("reason") == 0
    frame = frame.withColumn("group", f.when(usable, f.col("group")))
    if not len(edges):
        return frame.withColumn("bin", f.when(usable, f.lit(0)))
    if is_connect(frame.sparkSession):
        return frame.withColumn("bin", f.when(usable, f.expr(search_sql("score", edges))))
    return _in_buckets(frame, edges)


def _in_buckets(frame: Frame, edges: NDArray[np.float64]) -> Frame:
    """Search by Spark's Bucketizer, which runs on the JVM.

    Its buckets are closed on the left and ours on the right, so it gets the negated scores and edges. Adding 0 turns
    -0.0, which it would put below 0.0, into 0.0.
    """
    from pyspark.ml.feature import Bucketizer
    from pyspark.sql.functions import col, lit, when

    usable = col("reason") == 0
    splits = [-np.inf, *(-edges[::-1] + 0.0).tolist(), np.inf]
    mirrored = frame.withColumn("mirrored", when(usable, -col("score") + lit(0.0)))
    bucketizer = Bucketizer(splits=splits, inputCol="mirrored", outputCol="bucket", handleInvalid="keep")
    buckets = bucketizer.transform(mirrored)
    return buckets.withColumn("bin", when(usable, (lit(len(edges)) - col("bucket")).cast("int")))


def search_sql(score: str, edges: NDArray[np.float64]) -> str:
    """SQL that counts the edges below a score, by a binary search in an array that Spark folds into one value.

    Examples
    --------
    >>> search_sql("s", np.array([0.1, 0.5, 0.9]))
    "aggregate(array(2, 1), 0, (p, w) -> IF(get(CAST(split('0.1,0.5,0.9', ',') AS ARRAY<DOUBLE>), p + w - 1) < s, p + w, p))"
    """  # noqa: E501
    steps = ", ".join(str(2**power) for power in reversed(range(len(edges).bit_length())))
    held = f"CAST(split('{','.join(map(repr, edges.tolist()))}', ',') AS ARRAY<DOUBLE>)"
    return f"aggregate(array({steps}), 0, (p, w) -> IF(get({held}, p + w - 1) < {score}, p + w, p))"


def _counter(job: Job) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The work of a task on its partition."""

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        counters = Counters(job)
        for batch in batches:
            if batch.num_rows:
                counters.add(batch, None)
        counts = counters.counts()
        rows = [(0, int(i), int(j), int(counts[i, j])) for i, j in zip(*np.nonzero(counts), strict=True)]
        rows += [(reason, 0, 0, n) for reason, n in counters.errors.counts().items()]
        names = [column.split()[0] for column in _SCHEMA.split(", ")]
        kinds = [pa.int32(), pa.int32(), pa.int32(), pa.int64()]
        columns = zip(*rows, strict=True) if rows else [()] * len(names)
        yield pa.record_batch([pa.array(c, k) for c, k in zip(columns, kinds, strict=True)], names=names)

    return work


def prediction_table(expression: Any, predictions: Predictions) -> Any:
    """The kept columns with the predictions, as an Ibis table, computed in Python on the executors.

    The predictions are null if probabilities, predictions or the group cannot be used.
    """

    def frame() -> Any:
        from pyspark.sql.types import (
            ArrayType,
            DoubleType,
            IntegerType,
            LongType,
            StringType,
            StructField,
            StructType,
        )

        types: dict[Added, Any] = {
            "texts": ArrayType(StringType()),
            "integers": ArrayType(LongType()),
            "size": IntegerType(),
            "number": DoubleType(),
        }
        reads = {read.alias: expression[read.column] for one in predictions.predictors for read in one.reads}
        rows = frame_of(expression.select(*predictions.keep, **reads))
        added = [
            StructField(name, types[kind])
            for one in predictions.predictors
            for name, kind in zip(one.adds, one.kinds, strict=True)
        ]
        kept = [rows.schema[name] for name in predictions.keep]
        made = rows.mapInArrow(_appended(predictions.keep, predictions.predictors), StructType([*kept, *added]))
        return table_of(made, expression.get_backend())

    return run_on_spark(frame)


def _appended(keep: tuple[str, ...], predictors: tuple[Any, ...]) -> Any:
    """The work of a task on its partition."""

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            columns = [batch.column(name) for name in keep]
            added = [column for one in predictors for column in one.read(batch)[0]]
            names = [*keep, *(name for one in predictors for name in one.adds)]
            yield pa.RecordBatch.from_arrays([*columns, *added], names=names)

    return work


def write_folder(expression: Any, predictions: Predictions, folder: str, progress: Progress) -> Summary:
    """Let the executors write Parquet files into a new folder.

    Parameters
    ----------
    folder
        A path or an address that every executor can write to.
    progress
        Its method `share`, if it has one, is called with the completed tasks.

    Raises
    ------
    OutputExistsError
        If the folder exists.
    InputError
        If rows have no prediction. Then there is no new folder, or, over Spark Connect, which cannot delete, an empty
        one.
    EngineError
        If the job fails; the folder is as for `InputError`.
    """
    backend = expression.get_backend()

    def write() -> Summary:
        target = (_ConnectFolder if is_connect(backend._session) else _Folder)(backend, folder)
        if target.exists():
            raise OutputExistsError("output", f"{folder!r} exists already", remedy="Choose another name")
        try:
            with report_progress(backend._session, progress):
                frame_of(prediction_table(expression, predictions)).write.parquet(folder)
            query = _count_expression(backend.read_parquet(folder), predictions)
            return checked_summary(frame_of(query).collect()[0].asDict(), predictions)
        except BaseException as error:
            target.delete()
            if isinstance(error, InputError):
                raise InputError(
                    error.argument, f"{error.requirement}{target.stays}", error.got, error.remedy
                ) from None
            raise

    return run_on_spark(write, "output", f"output {folder!r}")


def _count_expression(written: Any, predictions: Predictions) -> Any:
    """An expression with one row: the number of rows, of rows without a prediction, of members of sets, of empty sets.

    For intervals it has half of the smallest width, and the smallest and the largest centre.
    """
    proof = written[predictions.proof]
    found = {"rows": written.count(), "missing": proof.isnull().sum()}
    if predictions.counts_members:
        found |= {"members": proof.cast("int64").sum(), "empty": (proof == 0).sum()}
    if predictions.ends is not None:
        low, high = (written[name] / 2 for name in predictions.ends)  # sums of halves do not overflow
        found |= {"half": (high - low).min(), "least": (high + low).min(), "most": (high + low).max()}
    return written.aggregate(**found)


class _Folder:
    """A folder of any file system that Hadoop supports, through Hadoop's interface."""

    stays = ""

    def __init__(self, backend: Any, address: str) -> None:
        context = backend._session.sparkContext
        self._path = context._jvm.org.apache.hadoop.fs.Path(address)
        self._system = self._path.getFileSystem(context._jsc.hadoopConfiguration())

    def exists(self) -> bool:
        return bool(self._system.exists(self._path))

    def delete(self) -> None:
        self._system.delete(self._path, True)


class _ConnectFolder:
    """A folder through data frames only, for Spark Connect; it can be emptied but not deleted."""

    stays = "; the new folder stays, without a row, because Spark Connect cannot delete it"

    def __init__(self, backend: Any, address: str) -> None:
        self._session, self._address = backend._session, address

    def exists(self) -> bool:
        from pyspark.errors import AnalysisException

        try:
            _ = self._session.read.schema("nothing int").parquet(self._address).schema
        except AnalysisException as error:
            if "PATH_NOT_FOUND" in str(error):
                return False
            raise
        return True

    def delete(self) -> None:
        self._session.range(0).write.mode("overwrite").parquet(self._address)


@contextmanager
def open_spark(master: str, source: str) -> Iterator["SparkTable"]:
    """A table on a cluster; the Spark session ends with the block, unless it existed before.

    Parameters
    ----------
    master
        As in `open_session`.
    source
        A Parquet file, a folder or a glob of them, or an address such as `s3a://bucket/folder`, as seen by the
        *executors*; or the name of a table of the cluster's catalogue.

    Raises
    ------
    InputError
        As `open_session`, or if there is no such table.
    """
    with open_session(master) as session:
        yield SparkTable(f"table {source!r}", spark_table(session, source))


class SparkTable(IbisTable):
    """An Ibis table on Spark."""

    writes_folders = True

    @classmethod
    def of_frame(cls, frame: Any) -> "SparkTable":
        """A table over a `pyspark.sql.DataFrame`."""
        with engine_errors_in_fixed_words():
            return cls("the data frame", table_of(frame, backend_of(frame.sparkSession)))

    def batches(self, columns: Sequence[ColumnRef], rows: int) -> Generator[Any]:
        """Arrow record batches, partition by partition: the driver holds one partition at a time."""
        with engine_errors_in_fixed_words():
            selected = self.expression.select(**{read.alias: self._read(read) for read in columns})
            yield from or_empty_batch(batches_from_executors(selected), selected.schema().to_pyarrow())

    def count(self, job: Job, progress: Progress) -> tuple[NDArray[np.int64], RowErrors]:
        """Count on the executors."""
        with engine_errors_in_fixed_words():
            return (count_in_java if job.columns.in_sql else count_in_python)(self.expression, job, progress)

    def write_folder(self, predictions: Predictions, folder: str, progress: Progress) -> Summary:
        """Write a new folder of Parquet files."""
        with engine_errors_in_fixed_words(f"writing {folder!r}"):
            return write_folder(self.expression, predictions, folder, progress)
