"""Tables of engines that Ibis supports.

An engine counts where its rows are, by a GROUP BY over the bins, if its arithmetic in double precision is that of this
process. The others supply their rows in Arrow batches, and so does every engine for scores that SQL cannot compute.
"""

import hashlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from copy import copy
from decimal import Decimal
from functools import partial
from typing import Any, Self

from confide.core import LONGEST
from confide.errors import InputError, replaced_errors
from confide.tables.arrow import ColumnRef, describe_type, is_number, or_empty_batch
from confide.tables.bin_counts import Counts, Job
from confide.tables.deferred import pa
from confide.tables.engine_counts import grouped_counts
from confide.tables.expressions import exact, incomplete_expression
from confide.tables.failures import columns_of, engine_errors_in_fixed_words
from confide.tables.people import ContributionBound
from confide.tables.table import Progress, Table

# The engines that count: they read the text of a number as the double next to it, and have NaN and infinities.
# Of SQLite, whose columns hold values of any type, each value has to be looked at.
ENGINES = ("postgres", "datafusion", "polars", "snowflake", "bigquery", "databricks")


class IbisTable(Table):
    """An Ibis table expression.

    Parameters
    ----------
    name
        The name in messages.
    expression
        The Ibis table.
    schema
        Its `pyarrow.Schema`, if the expression does not have the types.
    """

    local = False
    ordered = False
    any_thread = False

    def __init__(self, name: str, expression: Any, schema: Any = None) -> None:
        with engine_errors_in_fixed_words():
            if schema is None:
                expression = _with_arrow_types(expression)
                schema = expression.schema().to_pyarrow()
        super().__init__(name, schema)
        self.expression = expression

    @property
    def backend(self) -> Any:
        """The Ibis connection."""
        return self.expression.get_backend()

    @property
    def engine(self) -> str:
        """Ibis's name of the engine."""
        return str(self.backend.name)

    @property
    def most_candidates(self) -> int | None:  # type: ignore[override]
        """A tree of comparisons has at most so many; PostgreSQL searches in an array."""
        return None if self.engine == "postgres" or self.engine not in ENGINES else LONGEST

    def batches(self, columns: Sequence[ColumnRef], rows: int) -> Generator[Any]:
        """Arrow record batches; from PostgreSQL through a server-side cursor."""
        names = list(dict.fromkeys(read.column for read in columns))
        with engine_errors_in_fixed_words(f"reading {columns_of(self.name, names)}"):
            selected = self.expression.select(**{read.alias: self._read(read) for read in columns})
            if self.engine == "sqlite":
                yield from _sqlite_batches(selected, columns, rows)
                return
            with closing(selected.to_pyarrow_batches(chunk_size=rows)) as batches:
                yield from or_empty_batch(batches, batches.schema)

    def _read(self, read: ColumnRef) -> Any:
        column = self.expression[read.column]
        kind = column.type()
        if self.engine == "sqlite":  # its texts of numbers have 15 digits
            return column
        if read.form == "number" and kind.is_decimal():
            return exact(column)
        if kind.is_decimal() and kind.precision is None:  # any number of digits, or NaN
            return column.cast("string")
        return column.cast("int64") if read.form == "label" and kind.is_unsigned_integer() else column

    def row_count(self) -> int | None:
        """The number of rows that PostgreSQL's planner expects; None for other engines."""
        if self.engine != "postgres":
            return None
        with engine_errors_in_fixed_words(), self.backend.con.transaction(), self.backend.con.cursor() as cursor:
            compiled = self.backend.compile(self.expression)
            plan = cursor.execute(f"EXPLAIN (FORMAT JSON) {compiled}").fetchone()[0]
        return int(plan[0]["Plan"]["Plan Rows"])

    def first_length(self, column: str) -> int | None:
        """The length of the first list that is not null."""
        with engine_errors_in_fixed_words():
            lengths = self.expression.select(k=self.expression[column].length())
            first = lengths.filter(lengths.k.notnull()).limit(1).to_pyarrow().to_pylist()
        return first[0]["k"] if first else None

    def head(self, rows: int) -> "IbisTable":
        """The first few rows, by LIMIT."""
        with engine_errors_in_fixed_words():
            return type(self)(self.name, self.expression.limit(rows))

    def bound_contributions(self, people: ContributionBound) -> Self:
        """The table with a bounded number of rows of each person."""
        with engine_errors_in_fixed_words():
            if self.engine == "sqlite":
                self.backend.con.create_function("md5", 1, _md5, deterministic=True)
            bounded = copy(self)
            bounded.expression = people.limit(self.expression)
            return bounded

    def drop_missing(self, reads: Sequence[ColumnRef]) -> Self:
        """The table without the rows that lack a value."""
        with engine_errors_in_fixed_words():
            wrong = incomplete_expression(self.expression, reads, nan=self.engine != "sqlite")
            left_out = self.expression.filter(wrong).count()
            self._count_left_out = engine_errors_in_fixed_words()(lambda: int(left_out.to_pyarrow().as_py()))
            complete = copy(self)
            complete.expression = self.expression.filter(~wrong)
            return complete

    def count(self, jobs: Sequence[Job], progress: Progress) -> list[Counts] | None:
        """Count by a GROUP BY; None for engines that cannot count exactly, and for scores that SQL cannot compute.

        PostgreSQL expects as many groups as there are different scores, and then counts in one process. With a UNION
        ALL, here of no rows, PostgreSQL expects 200 groups and shares the work among its processes.
        """
        engine = self.engine
        if engine not in ENGINES or not all(job.columns.reader.in_sql for job in jobs):
            return None
        with engine_errors_in_fixed_words():
            rows = self.expression
            if engine == "postgres":
                rows = rows.union(rows.filter(False))
            return [grouped_counts(rows, job, progress) for job in jobs]


def _with_arrow_types(expression: Any) -> Any:
    """The table with PostgreSQL's texts in place of values that Arrow has no exact type for."""

    def has_type(kind: Any) -> bool:
        checks = (kind.is_uuid, kind.is_inet, kind.is_macaddr, kind.is_geospatial, kind.is_interval, kind.is_unknown)
        return has_type(kind.value_type) if kind.is_array() else not any(check() for check in checks)

    if expression.get_backend().name != "postgres":
        return expression
    schema = expression.schema().items()
    texts = {name: "array<string>" if kind.is_array() else "string" for name, kind in schema if not has_type(kind)}
    return expression.cast(texts) if texts else expression


def _sqlite_batches(selected: Any, columns: Sequence[ColumnRef], rows: int) -> Iterator[Any]:
    """Arrow record batches of SQLite, whose columns may hold values of other types than declared.

    In a column of numbers all values must be numbers, whatever its declared type. In other columns they must have the
    declared type.
    """
    backend = selected.get_backend()
    declared = selected.schema().to_pyarrow()
    kinds = [pa.float64() if read.form == "number" else declared.field(read.alias).type for read in columns]
    schema = pa.schema([(read.alias, kind) for read, kind in zip(columns, kinds, strict=True)])
    backend._run_pre_execute_hooks(selected)
    with closing(backend.con.execute(backend.compile(selected))) as cursor:
        fetched = iter(partial(cursor.fetchmany, rows), [])

        def batch(fetched_rows: Sequence[Sequence[Any]]) -> Any:
            values = zip(*fetched_rows, strict=True)
            arrays = [_sqlite_array(*column) for column in zip(columns, kinds, values, strict=True)]
            return pa.record_batch(arrays, schema)

        yield from or_empty_batch(map(batch, fetched), schema)


def _sqlite_array(read: ColumnRef, kind: Any, values: Sequence[Any]) -> Any:
    """Values of SQLite as an Arrow array; raises `InputError` if one of them would have to be converted."""
    # Values of another type than that of the column
    if pa.types.is_boolean(kind):
        wrong = sum(value not in (None, 0, 1) for value in values)
    else:
        stored = _stored_type(kind)
        wrong = sum(not isinstance(value, stored | None) for value in values)
    unlike = InputError(
        "table",
        f"column {read.column!r} must hold {describe_type(kind)} in every row",
        got=f"{wrong or 'some'} of another type",
        remedy="SQLite stores values of any type in a column; convert them, or leave the column out",
    )
    if wrong:
        raise unlike
    # Booleans, decimals and floats are stored as other types than Arrow's
    if read.form == "number":
        values = [None if value is None else float(value) for value in values]
    elif pa.types.is_boolean(kind) or pa.types.is_decimal(kind):
        convert = bool if pa.types.is_boolean(kind) else lambda value: Decimal(repr(value))
        values = [None if value is None else convert(value) for value in values]
    with replaced_errors(lambda error: unlike if isinstance(error, pa.ArrowException) else None):
        return pa.array(values).cast(kind) if pa.types.is_temporal(kind) else pa.array(values, kind)


def _stored_type(kind: Any) -> Any:
    """Python's type of the values of SQLite that belong into a column of a type of Arrow other than booleans."""
    if pa.types.is_integer(kind):
        return int
    if is_number(kind):
        return int | float
    return bytes if pa.types.is_binary(kind) else str


def _md5(text: str | None) -> str | None:
    """The function `md5`, which SQLite does not have."""
    return None if text is None else hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
