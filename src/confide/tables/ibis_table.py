"""Tables of engines that Ibis speaks to: PostgreSQL, SQLite, and any other of its back ends.

PostgreSQL counts where the rows live, by a GROUP BY over the bins. Every other engine hands its rows over in Arrow
batches, and this process computes and counts as it does for files, so that the counts are the same whatever the
engine's dialect.
"""

import hashlib
from collections.abc import Generator, Sequence
from contextlib import closing
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.tables.batch_columns import one_at_least
from confide.tables.complete import incomplete_expression
from confide.tables.database_writers import write_postgres
from confide.tables.expressions import exact
from confide.tables.failures import of_engine
from confide.tables.figures import Figures
from confide.tables.findings import Findings
from confide.tables.group_by import grouped_counts
from confide.tables.people import People
from confide.tables.predictions import Predictions
from confide.tables.progress import Progress
from confide.tables.stream_counts import Job
from confide.tables.table import Read, Table


class IbisTable(Table):
    """An Ibis table expression.

    Parameters
    ----------
    name
        What it is called in messages.
    expression
        The Ibis table.
    """

    local = False
    ordered = False
    any_thread = False

    def __init__(self, name: str, expression: Any) -> None:
        with of_engine():
            schema = expression.schema().to_pyarrow()
        super().__init__(name, schema)
        self.expression, self._incomplete = expression, None
        self.writes_tables = self.writes_tables or self.backend.name == "postgres"

    @property
    def backend(self) -> Any:
        """The connection, as Ibis knows it."""
        return self.expression.get_backend()

    def batches(self, columns: Sequence[Read], rows: int) -> Generator[Any]:
        """Arrow record batches: from PostgreSQL by a server-side cursor."""
        with of_engine():
            selected = self.expression.select(**{read.alias: self._read(read) for read in columns})
            with closing(selected.to_pyarrow_batches(chunk_size=rows)) as batches:
                yield from one_at_least(batches, batches.schema)

    def _read(self, read: Read) -> Any:
        column = self.expression[read.column]
        kind = column.type()
        if read.form == "number" and kind.is_decimal():
            return exact(column)
        return column.cast("int64") if read.form == "label" and kind.is_unsigned_integer() else column

    def row_count(self) -> int | None:
        """About how many rows PostgreSQL's planner expects; None elsewhere."""
        if self.backend.name != "postgres":
            return None
        with of_engine(), self.backend.con.transaction(), self.backend.con.cursor() as cursor:
            compiled = self.backend.compile(self.expression)
            plan = cursor.execute(f"EXPLAIN (FORMAT JSON) {compiled}").fetchone()[0]
        return int(plan[0]["Plan"]["Plan Rows"])

    def first_length(self, column: str) -> int | None:
        """The length of the first list that is not null."""
        with of_engine():
            lengths = self.expression.select(k=self.expression[column].length())
            first = lengths.filter(lengths.k.notnull()).limit(1).to_pyarrow().to_pylist()
        return first[0]["k"] if first else None

    def head(self, rows: int) -> "IbisTable":
        """Some rows, by LIMIT."""
        with of_engine():
            return type(self)(self.name, self.expression.limit(rows))

    def limited(self, people: People) -> "IbisTable":
        """At most so many rows of each person."""
        with of_engine():
            if self.backend.name == "sqlite":
                self.backend.con.create_function("md5", 1, _md5, deterministic=True)
            return type(self)(self.name, people.limit(self.expression))

    def complete(self, reads: Sequence[Read]) -> "IbisTable":
        """The rows that lack no value."""
        with of_engine():
            made, wrong = copy(self), incomplete_expression(self.expression, reads)
            made.expression, self._incomplete = self.expression.filter(~wrong), wrong
            return made

    def left_out(self) -> int:
        """How many rows lack a value that was read, as the engine counts them now."""
        if self._incomplete is None:
            return 0
        with of_engine():
            return int(self.expression.filter(self._incomplete).count().to_pyarrow().as_py())

    def count(self, job: Job, progress: Progress) -> tuple[NDArray[np.int64], Findings] | None:
        """Counts by a GROUP BY in PostgreSQL; None for other engines, and for scores that SQL cannot compute."""
        if self.backend.name != "postgres" or not job.reading.in_sql:
            return None
        with of_engine():
            return grouped_counts(self.expression, job.reading, job.group, job.edges, progress, job.weight)

    def write_table(self, predictions: Predictions, name: str, progress: Progress) -> Figures:
        """A new table of PostgreSQL."""
        return write_postgres(self.expression, predictions, name, progress)


def _md5(text: str | None) -> str | None:
    """The function of that name, which SQLite does not have."""
    return None if text is None else hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
