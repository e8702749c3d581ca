"""Predictions that Spark's executors compute and write; the rows never reach the driver."""

from collections.abc import Iterator
from typing import Any

from confide.errors import InputError
from confide.support import OutputExistsError
from confide.tables.database_writers import approved, counted, exists, in_sql
from confide.tables.figures import Figures
from confide.tables.predictions import Predictions
from confide.tables.predictors import Added
from confide.tables.progress import Progress
from confide.tables.spark.connect import is_connect
from confide.tables.spark.failures import in_words
from confide.tables.spark.frames import frame_of, table_of
from confide.tables.spark.watching import watched


def predicted(expression: Any, predictions: Predictions) -> Any:
    """The kept columns with the predictions, as an Ibis table: by SQL, or in Python on the executors.

    The predictions are null where probabilities, predictions or the group cannot be used.
    """
    if all(one.in_sql for one in predictions.predictors):
        return in_sql(expression, predictions)

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

    return in_words(frame)


def _appended(keep: tuple[str, ...], predictors: tuple[Any, ...]) -> Any:
    """What every task does with its partition."""

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            columns = [batch.column(name) for name in keep]
            added = [column for one in predictors for column in one.columns(batch)[0]]
            names = [*keep, *(name for one in predictors for name in one.adds)]
            yield pa.RecordBatch.from_arrays([*columns, *added], names=names)

    return work


def write_folder(
    expression: Any, predictions: Predictions, folder: str, partition_by: tuple[str, ...], progress: Progress
) -> Figures:
    """Have the executors write Parquet files into a new folder.

    Parameters
    ----------
    folder
        A path or an address that every executor can write to.
    progress
        Its method `share`, if it has one, is told the tasks that are done.

    Raises
    ------
    OutputExistsError
        If the folder exists.
    InputError
        If rows have no prediction; then there is no new folder, or over Spark Connect, which cannot delete, an empty
        one.
    EngineError
        If the job fails; then likewise.
    """
    backend = expression.get_backend()

    def write() -> Figures:
        target = (_ConnectFolder if is_connect(backend._session) else _Folder)(backend, folder)
        if target.exists():
            raise OutputExistsError(f"output {folder!r} exists already; choose another name")
        try:
            with watched(backend._session, progress):
                writer = frame_of(predicted(expression, predictions)).write
                if partition_by and not frame_of(expression).isEmpty():  # folders by value have no place for columns
                    writer = writer.partitionBy(*partition_by)
                writer.parquet(folder)
            asked = counted(backend.read_parquet(folder), predictions)
            return approved(frame_of(asked).collect()[0].asDict(), predictions)
        except BaseException as error:
            target.delete()
            if isinstance(error, InputError):
                raise InputError(f"{error}{target.stays}") from None
            raise

    return in_words(write, f"output {folder!r}")


def write_table(expression: Any, predictions: Predictions, name: str) -> Figures:
    """Have the executors write into a new table of the cluster's catalogue."""
    backend = expression.get_backend()

    def write() -> Figures:
        if name in backend.list_tables():
            raise exists(name)
        written = backend.create_table(name, predicted(expression, predictions))
        try:
            return approved(frame_of(counted(written, predictions)).collect()[0].asDict(), predictions)
        except BaseException:
            backend.drop_table(name)
            raise

    return in_words(write, f"table {name!r}")


class _Folder:
    """A folder of whatever file system its address names, through Hadoop's interface."""

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
    """The same by data frames alone, which Spark Connect has: a folder can be emptied, and not deleted."""

    stays = "; the new folder stays, without a row, since Spark Connect cannot delete it"

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
