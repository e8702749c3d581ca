"""How far a long run is, for whoever watches."""

from collections.abc import Callable
from typing import Any, TypeAlias

Progress: TypeAlias = Callable[[int], None]
"""Told the number of rows of every batch. If it has a method `share(done, total)`, that is told the tasks of Spark."""


def silent(rows: int) -> None:
    """Show no progress."""


def expected_rows(table: Any, *, streamed: bool) -> int | None:
    """About how many rows an engine will hand over: DuckDB counts, PostgreSQL's planner estimates; else None.

    A database that answers with counts (`streamed` false) hands over no rows, and says nothing until it is done:
    PostgreSQL has no view of how far a SELECT is.

    Examples
    --------
    >>> import ibis, pyarrow
    >>> expected_rows(ibis.memtable(pyarrow.table({"s": [0.1, 0.5]})), streamed=True)
    2
    """
    from confide.tables.engine_failures import fixed_words

    backend = table.get_backend()
    with fixed_words():
        if backend.name == "duckdb":
            return int(table.count().to_pyarrow().as_py())
        if backend.name == "postgres" and streamed:
            with backend.con.transaction(), backend.con.cursor() as cursor:
                plan = cursor.execute(f"EXPLAIN (FORMAT JSON) {backend.compile(table)}").fetchone()[0]
            return int(plan[0]["Plan"]["Plan Rows"])
    return None
