"""A table of Spark: what its executors count, compute and write, and what they hand over."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.tables.batch_columns import one_at_least
from confide.tables.failures import of_engine
from confide.tables.figures import Figures
from confide.tables.findings import Findings
from confide.tables.ibis_table import IbisTable
from confide.tables.predictions import Predictions
from confide.tables.progress import Progress
from confide.tables.spark.counts import count_in_java, count_in_python
from confide.tables.spark.frames import table_of
from confide.tables.spark.rows import batches_from_executors
from confide.tables.spark.session import backend_of, is_path, open_session, spark_table
from confide.tables.spark.writing import write_folder, write_table
from confide.tables.stream_counts import Job
from confide.tables.table import Read


@contextmanager
def open_spark(master: str, source: str) -> Iterator["SparkTable"]:
    """A table on a cluster; the Spark session ends with the block, unless it was there before.

    Parameters
    ----------
    master
        As in `open_session`.
    source
        A Parquet file, a folder or a glob of them, or an address such as `s3a://bucket/folder`, as the *executors*
        see it; or the name of a table of the cluster's catalogue.

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
    writes_tables = True

    @classmethod
    def of_frame(cls, frame: Any) -> "SparkTable":
        """A table over a `pyspark.sql.DataFrame`."""
        with of_engine():
            return cls("the data frame", table_of(frame, backend_of(frame.sparkSession)))

    def batches(self, columns: Sequence[Read], rows: int) -> Generator[Any]:
        """Arrow record batches, partition by partition: the driver holds one partition at a time."""
        with of_engine():
            selected = self.expression.select(**{read.alias: self._read(read) for read in columns})
            yield from one_at_least(batches_from_executors(selected), selected.schema().to_pyarrow())

    def count(self, job: Job, progress: Progress) -> tuple[NDArray[np.int64], Findings]:
        """Counts that the executors make."""
        with of_engine():
            return (count_in_java if job.reading.in_sql else count_in_python)(self.expression, job, progress)

    def write_table(self, predictions: Predictions, name: str, progress: Progress) -> Figures:
        """A new table of the catalogue, or a new folder of Parquet files if that is what the name says."""
        with of_engine(f"writing table {name!r}"):
            if is_path(name):
                return write_folder(self.expression, predictions, name, (), progress)
            return write_table(self.expression, predictions, name)

    def write_folder(
        self, predictions: Predictions, folder: str, partition_by: tuple[str, ...], progress: Progress
    ) -> Figures:
        """A new folder of Parquet files."""
        with of_engine(f"writing {folder!r}"):
            return write_folder(self.expression, predictions, folder, partition_by, progress)
