"""Predictions on Spark: sets that SQL cannot compute, Parquet written by the executors, rows that are handed over."""

from collections.abc import Callable, Iterator
from typing import Any

from confide.errors import InputError
from confide.tables.batch_sets import SET, SIZE, BatchSets
from confide.tables.progress import Progress, silent
from confide.tables.spark.failures import in_words
from confide.tables.spark.frames import frame_of, table_of
from confide.tables.spark.watching import watched
from confide.tables.writing import approved, figures_of, proof_of


def with_python_sets(table: Any, sets: BatchSets) -> Any:
    """The table with `prediction_set` and `set_size`, computed by `mapInArrow` on the executors.

    Parameters
    ----------
    table
        An Ibis table on Spark.
    sets
        What computes the sets of a batch.

    Returns
    -------
    ibis.Table
        The table with both columns, null where probabilities or the group cannot be used.
    """

    def frame() -> Any:
        from pyspark.sql.types import ArrayType, IntegerType, LongType, StringType, StructField, StructType

        rows = frame_of(table)
        element = StringType() if isinstance(sets.names[0], str) else LongType()
        added = [StructField(SET, ArrayType(element)), StructField(SIZE, IntegerType())]
        schema = StructType([*rows.schema.fields, *added])
        return table_of(rows.mapInArrow(sets.appended, schema), table.get_backend())

    return in_words(frame)


def batches_from_executors(table: Any) -> Iterator[Any]:
    """Arrow record batches of a table on Spark, partition by partition: the driver holds one partition at a time.

    The executors' Python needs pyarrow.
    """
    import pyarrow as pa

    def packed() -> Iterator[Any]:
        rows: Iterator[Any] = frame_of(table).mapInArrow(_packer(), "batch binary").toLocalIterator()
        return rows

    rows = in_words(packed)
    while (row := in_words(lambda: next(rows, None))) is not None:
        yield from pa.ipc.open_stream(row[0])


def _packer() -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A function that travels with its code, for executors without confide: batches as bytes, one per row."""

    def pack(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        for batch in batches:
            sink = pyarrow.BufferOutputStream()
            with pyarrow.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            yield pyarrow.record_batch({"batch": pyarrow.array([sink.getvalue().to_pybytes()], pyarrow.binary())})

    return pack


def write_parquet(predicted: Any, folder: str, progress: Progress = silent) -> dict[str, float]:
    """Have the executors write predictions as Parquet files into a new folder; the rows never reach the driver.

    Parameters
    ----------
    predicted
        What `with_sets` or `with_intervals` gave, on Spark.
    folder
        A path or an address that every executor can write to.
    progress
        Its method `share`, if it has one, is told the tasks that are done.

    Returns
    -------
    dict
        The number of rows, and for sets their mean size.

    Raises
    ------
    InputError
        If the folder exists, or rows have no set or interval; in the latter case there is no new folder.
    EngineError
        If the job fails; then there is no new folder either.
    """
    backend = predicted.get_backend()

    def write() -> dict[str, float]:
        target = _Folder(backend, folder)
        if target.exists():
            raise InputError(f"output {folder!r} exists; choose another folder")
        try:
            with watched(backend._session, progress):
                frame_of(predicted).write.parquet(folder)
            figures = figures_of(backend.read_parquet(folder), proof_of(predicted))
            return approved(frame_of(figures).collect()[0].asDict())
        except BaseException:
            target.delete()
            raise

    return in_words(write, f"output {folder!r}")


class _Folder:
    """A folder of whatever file system its address names, through Hadoop's interface."""

    def __init__(self, backend: Any, address: str) -> None:
        context = backend._session.sparkContext
        self._path = context._jvm.org.apache.hadoop.fs.Path(address)
        self._system = self._path.getFileSystem(context._jsc.hadoopConfiguration())

    def exists(self) -> bool:
        return bool(self._system.exists(self._path))

    def delete(self) -> None:
        self._system.delete(self._path, True)
