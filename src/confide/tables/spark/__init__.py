"""Apache Spark: the same tables, counts and sets, on a cluster.

    session.py    from a Spark master, a server of Spark Connect, or an existing session to an Ibis table
    table.py      rows to counts per bin: on the JVM of the executors, or in Python for scores that SQL cannot
                  compute; predictions that the executors compute and write; rows sent to the driver

The driver, or the server of Spark Connect, gets m counts per group. Executors, and the shuffle files between them, get
the records of the table.
"""

from confide.tables.spark.session import is_path, names_spark, open_session
from confide.tables.spark.table import SparkTable, open_spark
