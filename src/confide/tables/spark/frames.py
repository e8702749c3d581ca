"""Between Ibis tables and Spark's data frames."""

from typing import Any

from confide.errors import InputError
from confide.tables.spark.connect import is_connect

Frame = Any
"""A `pyspark.sql.DataFrame`."""


def frame_of(table: Any) -> Frame:
    """The data frame that an Ibis table on Spark stands for; nothing is computed yet."""
    backend = table.get_backend()
    if backend.name != "pyspark":
        raise InputError(f"the table must be one of Spark; it is one of {backend.name}")
    return backend.raw_sql(backend.compile(table))


def table_of(frame: Frame, backend: Any) -> Any:
    """An Ibis table over a data frame, on the same connection."""
    from ibis.util import gen_name

    name = gen_name("confide_spark")
    frame.createOrReplaceTempView(name)
    return backend.table(name)


def functions_of(frame: Frame) -> Any:
    """The functions that make columns for a frame: those of Java's session, or of Spark Connect."""
    if is_connect(frame.sparkSession):
        from pyspark.sql.connect import functions as of_connect

        return of_connect
    from pyspark.sql import functions

    return functions
