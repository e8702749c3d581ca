"""Apache Spark: the same tables, counts and sets, on a cluster.

    session.py    a master and a path, or a session that exists, to an Ibis table
    counts.py     rows with a score to counts per bin, in the executors' own machine code: no Python there
    sets.py       prediction sets that SQL cannot compute; Parquet written by the executors; rows handed over
    python.py     the same for scores that SQL cannot compute, in Arrow batches on the executors
    frames.py     between Ibis tables and Spark's data frames
    watching.py   which share of its tasks is done
    failures.py   Spark's errors, which may quote records, in fixed words

The driver sees m counts per group. Executors, and the shuffle files between them, see what the table holds.
"""

from confide.tables.spark.counts import count_table
from confide.tables.spark.failures import in_words
from confide.tables.spark.python import count_in_batches
from confide.tables.spark.session import is_path, open_session, open_spark, spark_table
from confide.tables.spark.sets import batches_from_executors, with_python_sets, write_parquet

__all__ = [
    "batches_from_executors",
    "count_in_batches",
    "count_table",
    "in_words",
    "is_path",
    "open_session",
    "open_spark",
    "spark_table",
    "with_python_sets",
    "write_parquet",
]
