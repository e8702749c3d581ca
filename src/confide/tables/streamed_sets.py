"""Prediction sets that are computed in this process while a table is read, and written without keeping them.

For scores that SQL cannot compute, on engines that run no Python of ours: DuckDB and PostgreSQL. Memory holds a batch.
"""

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from confide.errors import InputError
from confide.tables.batch_sets import SET, SIZE, BatchSets
from confide.tables.expressions import existing_column
from confide.tables.progress import Progress
from confide.tables.sql import identifier, select
from confide.tables.tally import Tally

_CELLS = 2**22
_LEAST, _MOST = 2**8, 2**16


@dataclass(frozen=True, eq=False)
class StreamedSets:
    """A table with `prediction_set` and `set_size` that can be read in batches and written, and not be asked further.

    Filters and joins belong in front: `with_sets(table.filter(...), ...)`.

    Parameters
    ----------
    table
        The Ibis table with the probabilities.
    sets
        What computes the sets of a batch.
    columns
        The columns to read or write, in this order.
    """

    table: Any
    sets: BatchSets
    columns: tuple[str, ...]

    def select(self, *names: str) -> "StreamedSets":
        """The same with these columns only."""
        for name in names:
            if name not in self.columns:
                existing_column(self.table, name)
        return replace(self, columns=names)

    def drop(self, *names: str) -> "StreamedSets":
        """The same without these columns."""
        return replace(self, columns=tuple(name for name in self.columns if name not in names))

    def get_backend(self) -> Any:
        """The engine of the table, as Ibis knows it."""
        return self.table.get_backend()

    @property
    def kept(self) -> list[str]:
        """The table's own columns among `columns`."""
        return [name for name in self.columns if name not in (SET, SIZE)]

    @property
    def rows(self) -> int:
        """Rows per batch: 32 MB of probabilities in double precision."""
        return min(_MOST, max(_LEAST, _CELLS // len(self.sets.names)))

    def batches(self) -> Generator[Any]:
        """Record batches of `columns`."""
        from confide.tables.reading import arrow_batches

        read = dict.fromkeys([*self.kept, *self.sets.columns])
        with closing(arrow_batches(self.table.select(*read), self.rows)) as batches:
            for batch in self.sets.appended(batches):
                yield batch.select(list(self.columns))


def write_duckdb(predicted: StreamedSets, name: str, progress: Progress) -> dict[str, float]:
    """Write into a new DuckDB table, in a transaction of a second connection to the same database."""
    import pyarrow as pa

    tally, quoted = Tally(SIZE), identifier(name)
    with predicted.get_backend().con.cursor() as writing, closing(predicted.batches()) as batches:
        writing.execute("BEGIN")
        try:
            for batch in batches:
                first = not tally.rows
                tally.add(batch)
                writing.register("confide_batch", pa.Table.from_batches([batch]))
                rows = select("*", "confide_batch")
                writing.execute(f"CREATE TABLE {quoted} AS {rows}" if first else f"INSERT INTO {quoted} {rows}")
                writing.unregister("confide_batch")
                progress(batch.num_rows)
            figures = tally.figures()
            writing.execute("COMMIT")
        except BaseException:
            writing.execute("ROLLBACK")
            raise
    return figures


def write_postgres(predicted: StreamedSets, name: str, progress: Progress) -> dict[str, float]:
    """Write into a new PostgreSQL table, in one transaction: a server-side cursor reads, COPY writes.

    The table's own columns go through as text, which the server reads back as the same values.
    """
    import pyarrow as pa

    backend, sets = predicted.get_backend(), predicted.sets
    connection, source = backend.con, f"({backend.compile(predicted.table)}) AS source"
    schema = predicted.table.select(*sets.columns).schema().to_pyarrow()
    kept = [identifier(column) for column in predicted.kept]
    target, columns = identifier(name), ", ".join([*kept, SET, SIZE])
    element = "text" if isinstance(sets.names[0], str) else "bigint"
    reads = ", ".join([*(f"{column}::text" for column in kept), *map(identifier, sets.columns)])
    if not {SET, SIZE} <= set(predicted.columns):
        raise InputError(f"columns must include {SET} and {SIZE} to be written")
    tally = Tally(SIZE)
    with connection.transaction(), connection.cursor() as writing:
        writing.execute(f"CREATE TABLE {target} AS {select(', '.join(kept), source)} WITH NO DATA")
        writing.execute(f"ALTER TABLE {target} ADD COLUMN {SET} {element}[], ADD COLUMN {SIZE} integer")
        with connection.cursor(name="confide_reading") as reading:
            reading.execute(select(reads, source))
            while rows := reading.fetchmany(predicted.rows):
                fields = zip(*(row[len(kept) :] for row in rows), strict=True)
                arrays = [pa.array(values, field.type) for values, field in zip(fields, schema, strict=True)]
                found = sets.columns_of(pa.RecordBatch.from_arrays(arrays, schema=schema))
                tally.add(pa.RecordBatch.from_arrays(found, names=[SET, SIZE]))
                members, sizes = (column.to_pylist() for column in found)
                with writing.copy(f"COPY {target} ({columns}) FROM STDIN") as copy:
                    for row, one, size in zip(rows, members, sizes, strict=True):
                        copy.write_row([*row[: len(kept)], one, size])
                progress(len(rows))
        return tally.figures()
