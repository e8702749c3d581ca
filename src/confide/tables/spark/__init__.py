"""Apache Spark: the same tables, counts and sets, on a cluster.

    session.py    a Spark master, a server of Spark Connect, or a session that exists, to an Ibis table
    table.py      rows to counts per bin: in the executors' own machine code, or in Python for scores that SQL cannot;
                  predictions that the executors compute and write; rows handed over to the driver

The driver, or the server of Spark Connect, sees m counts per group. Executors, and the shuffle files between them, see
what the table holds.
"""

from confide.tables.spark.session import is_path, names_spark, open_session
from confide.tables.spark.table import SparkTable, open_spark
