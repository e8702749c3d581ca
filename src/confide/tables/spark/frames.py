"""Between Ibis tables and Spark's data frames."""

from typing import Any

from confide.errors import InputError

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
