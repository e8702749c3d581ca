"""A table as a stream of Arrow batches, on every engine: what is in memory is a batch, or on Spark a partition."""

from collections.abc import Generator
from contextlib import closing
from typing import Any

from confide.tables.engine_failures import fixed_words


def arrow_batches(table: Any, rows: int) -> Generator[Any]:
    """Record batches of an Ibis table: from DuckDB within the process, from PostgreSQL by a server-side cursor.

    Parameters
    ----------
    table
        An Ibis table.
    rows
        Rows per batch, on DuckDB and PostgreSQL.

    Examples
    --------
    >>> import ibis, pyarrow
    >>> batches = arrow_batches(ibis.memtable(pyarrow.table({"s": [0.1, 0.5]})), 1000)
    >>> [batch.num_rows for batch in batches]
    [2]
    """
    engine = table.get_backend().name
    if engine == "pyspark":
        from confide.tables.spark import batches_from_executors

        yield from batches_from_executors(table)
        return
    with fixed_words():
        if engine == "duckdb":
            from confide.tables.streamed import duckdb_batches

            batches = duckdb_batches(table, rows)
        else:
            batches = table.to_pyarrow_batches(chunk_size=rows)
        with closing(batches):
            yield from batches
