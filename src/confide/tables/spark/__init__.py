"""Apache Spark: the same tables, counts and sets, on a cluster.

    table.py      a table of Spark: what it counts and writes itself
    session.py    a Spark master, or a session that exists, to an Ibis table
    connect.py    the same over Spark Connect, where there is no Java
    counts.py     rows to counts per bin: in the executors' own machine code, or in Python for scores that SQL cannot
    writing.py    predictions that the executors compute and write; rows.py: rows handed over to the driver
    frames.py     between Ibis tables and Spark's data frames
    watching.py   which share of its tasks is done
    failures.py   Spark's errors, which may quote records, in fixed words

The driver, or the server of Spark Connect, sees m counts per group. Executors, and the shuffle files between them, see
what the table holds.
"""

from confide.tables.spark.session import is_path, names_spark, open_session
from confide.tables.spark.table import SparkTable, open_spark

__all__ = ["SparkTable", "is_path", "names_spark", "open_session", "open_spark"]


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)
