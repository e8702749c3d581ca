"""Tables that this process reads by its embedded DuckDB: files, folders, data in memory, streams, DuckDB databases.

Records are never spilled to disk, and no extension is loaded from the network. DuckDB is imported when a table is
opened.
"""

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from copy import copy
from functools import cached_property
from typing import Any

from confide.errors import InputError
from confide.tables.arrow import (
    ColumnRef,
    describe_type,
    fits_csv,
    is_integer,
    is_number,
    is_temporal,
    is_text,
    list_element,
    or_empty_batch,
)
from confide.tables.expressions import identifier, incomplete_sql, select
from confide.tables.table import ContributionBound, Progress, Table
from confide.tables.writers import Predictions, Summary, write_duckdb

_OFFLINE: Mapping[str, Any] = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
_SETTINGS = (
    "SET temp_directory = ''",  # records are never spilled to disk
    "SET enable_progress_bar = false",
    "SET python_enable_replacements = false",
)
_FIRST = 1000
ROWS = "confide_rows"
"""The name of data in memory, and of a file's rows with the types of its columns."""


@contextmanager
def embedded(path: str = ":memory:", *, write: bool = True) -> Iterator[Any]:
    """A connection to a DuckDB of this process."""
    import duckdb

    with closing(duckdb.connect(path, read_only=not write, config=dict(_OFFLINE))) as connection:
        for setting in _SETTINGS:
            connection.execute(setting)
        yield connection


class DuckTable(Table):
    """Rows that an embedded DuckDB reads.

    Parameters
    ----------
    name, schema
        As in `Table`; for a CSV file, the types suggested by its first rows.
    connection
        The DuckDB connection.
    source
        The SQL expression after FROM.
    in_words
        A context that replaces DuckDB's errors by errors in fixed words.
    texts
        Whether every column arrives as text, as in CSV files.
    renew
        Called before every query, for data that must be registered again: with the columns in question, or None for
        all.
    rows
        A function that returns the number of rows, or None.
    """

    takes_entries = True

    decimal = "."
    """The decimal separator in CSV: a point or a comma."""

    def __init__(
        self,
        name: str,
        schema: Any,
        connection: Any,
        source: str,
        in_words: Callable[[], AbstractContextManager[None]] = nullcontext,
        *,
        texts: bool = False,
        renew: Callable[[Collection[str] | None], object] = lambda names: None,
        rows: Callable[[], int | None] = lambda: None,
        writes_tables: bool = False,
    ) -> None:
        super().__init__(name, schema)
        self.connection, self._source, self._in_words, self._texts = connection, source, in_words, texts
        self._renew, self._rows, self.writes_tables = renew, rows, writes_tables
        self._sorts = False
        self._incomplete = ""
        self._needed: tuple[ColumnRef, ...] = ()

    def batches(self, columns: Sequence[ColumnRef], rows: int) -> Generator[Any]:
        """Arrow record batches of at most `rows` rows (at least 2048), in the order of the rows.

        One thread reads, because reading is not the bottleneck and every thread holds a row group. Lists and sorting
        use every core.
        """
        expressions = [f"{self._expression(read)} AS {identifier(read.alias)}" for read in columns]
        with self._in_words():
            self._renew({name for read in (*columns, *self._needed) for name in (read.column, read.at) if name})
            busy = self._sorts or any(read.form in ("numbers", "entry") for read in columns)
            self.connection.execute("RESET threads" if busy else "SET threads = 1")
            query = select(", ".join(expressions) or "1 AS nothing", self._source)
            reader = self.connection.sql(query).to_arrow_reader(rows)
            yield from or_empty_batch(reader, reader.schema)

    def row_count(self) -> int | None:
        """The number of rows if the source states it, for progress bars; None for CSV."""
        with self._in_words():
            return self._rows()

    def counted_rows(self) -> int | None:
        """The number of rows, counted if the source does not state it."""
        stated = self.row_count()
        if stated is not None:
            return stated
        with self._in_words():
            self._renew(None)
            return int(self.connection.sql(select("count(*)", self._source)).fetchall()[0][0])

    def first_length(self, column: str) -> int | None:
        """The length of the first list that is not null."""
        length = f"len({identifier(column)})"
        with self._in_words():
            self._renew(None)
            found = self.connection.sql(select(length, self._source, f"WHERE {length} IS NOT NULL LIMIT 1")).fetchall()
        return found[0][0] if found else None

    def write_table(self, predictions: Predictions, name: str, progress: Progress) -> Summary:
        """Write a new table of the same database."""
        return write_duckdb(self.connection, predictions, name, progress)

    def holds_numbers(self, column: str) -> bool:
        """Whether a column can be read as numbers; in CSV every column except dates, because bad cells are counted."""
        kind = self.type_of(column)
        return is_number(kind) or (self._texts and not is_temporal(kind))

    def holds_labels(self, column: str) -> bool:
        """Whether a column can be read as labels; in CSV every column."""
        return super().holds_labels(column) or self._texts

    def check_number(self, column: str) -> None:
        """Reject a column that cannot be read as numbers, and in CSV one whose first cells have a decimal comma."""
        super().check_number(column)
        if self._texts and self.decimal == "." and is_text(self.type_of(column)) and self._has_commas(column):
            raise InputError(
                "column",
                f"{column!r} holds numbers with a decimal comma",
                remedy="Read them with decimal=',' or write a point",
            )

    def _has_commas(self, column: str) -> bool:
        """Whether all first cells that are not numbers would be numbers with a point in place of the comma."""
        cell = self._cell(column)
        expressions = (
            f"count(*) FILTER (TRY_CAST({cell} AS DOUBLE) IS NULL AND {cell} IS NOT NULL), "
            f"count(*) FILTER (TRY_CAST({cell} AS DOUBLE) IS NULL AND TRY_CAST({_point(cell)} AS DOUBLE) IS NOT NULL)"
        )
        with self._in_words():
            wrong, comma = self._first_cells(expressions)
        return bool(wrong) and wrong == comma

    def _first_cells(self, expressions: str) -> Any:
        """The values of aggregate expressions over the first rows."""
        first_rows = select("*", self._source, f"LIMIT {_FIRST}")
        return self.connection.sql(select(expressions, f"({first_rows})")).fetchall()[0]

    def bound_contributions(self, people: ContributionBound) -> "DuckTable":
        """The table with a bounded number of rows of each person; sorting uses every core."""
        import ibis

        typed = ", ".join(f"{self._typed(name)} AS {identifier(name)}" for name in self.columns)
        with self._in_words():
            self._describe()
            self.connection.execute(f"CREATE OR REPLACE TEMP VIEW {ROWS}_typed AS {select(typed, self._source)}")
        rows = ibis.table(ibis.Schema.from_pyarrow(self.schema), name=f"{ROWS}_typed")
        limited = people.limit(rows)
        source = f"({ibis.to_sql(limited, dialect='duckdb')})"
        made = DuckTable(
            self.name,
            limited.schema().to_pyarrow(),
            self.connection,
            source,
            self._in_words,
            renew=lambda _: self._renew(None),
        )
        made.ordered, made._sorts, made.decimal = False, True, self.decimal
        return made

    def drop_missing(self, reads: Sequence[ColumnRef]) -> "DuckTable":
        """The table without the rows that lack a value."""
        wrong = incomplete_sql(reads, self.schema, texts=self._texts)
        made = copy(self)
        made._needed = (*self._needed, *reads)
        made._source, made.ordered = f"({select('*', self._source, f'WHERE NOT {wrong}')})", False
        self._incomplete = select("count(*)", self._source, f"WHERE {wrong}")
        return made

    def left_out(self) -> int:
        """The number of rows that lack a value in a column that is read."""
        if not self._incomplete:
            return 0
        with self._in_words():
            self._renew(None)
            return int(self.connection.sql(self._incomplete).fetchall()[0][0])

    def _describe(self) -> None:
        """Register the columns with DuckDB before the rows are queried."""
        self._renew(None)

    def _typed(self, column: str) -> str:
        """A column with its own type: a CSV cell that does not fit becomes null."""
        if not self._texts:
            return identifier(column)
        cell = self._cell(column)
        return cell if is_text(self.type_of(column)) else f"TRY_CAST({cell} AS {self._sql_type(column)})"

    def _cell(self, column: str) -> str:
        """A column; in CSV with empty texts as null.

        Without the NULLIF, DuckDB passes a cast to its CSV reader, which fails where TRY_CAST returns null
        (duckdb/duckdb#23818).
        """
        return f"NULLIF({identifier(column)}, '')" if self._texts else identifier(column)

    def _expression(self, read: ColumnRef) -> str:
        """The SQL expression for a column. A CSV cell is converted to a number here only."""
        column, kind = identifier(read.column), self.type_of(read.column)
        match read.form:
            case "number":
                return self._number(read.column, kind)
            case "label":
                return (
                    f"TRY_CAST({self._cell(read.column)} AS BIGINT)"
                    if is_integer(kind)
                    else f"CAST({column} AS VARCHAR)"
                )
            case "numbers":
                return f"CAST({column} AS {_precision(list_element(kind))}[])"
            case "entry":
                at = identifier(str(read.at))
                entry = f"CASE WHEN {at} >= 0 AND {at} < len({column}) THEN {column}[{at} + 1] END"
                return f"CAST({entry} AS {_precision(list_element(kind))})"
            case "length":
                return f"CAST(len({column}) AS BIGINT)"
            case "text":
                return self._text(read.column, kind)
            case "grouped":
                return self._typed(read.column)
        as_sniffed = self._texts and not is_text(kind)
        return f"CAST({column} AS {self._sql_type(read.column)})" if as_sniffed else column

    def _number(self, column: str, kind: Any) -> str:
        """A column as FLOAT if it has this type, otherwise as DOUBLE; values that are not numbers become null.

        The digits of a decimal, and the halves of a large integer, are read as text, so that they are rounded once.
        """
        import pyarrow as pa

        if not self._texts and kind in (pa.float32(), pa.float64()):
            return identifier(column)
        cell = self._cell(column)
        if self.decimal == "," and (self._texts or is_text(kind)):
            cell = _point(cell)
        return f"TRY_CAST({f'CAST({cell} AS VARCHAR)' if pa.types.is_decimal(kind) else cell} AS DOUBLE)"

    def _text(self, column: str, kind: Any) -> str:
        """A column as text if it does not contain numbers, for a CSV cell."""
        if self._texts or is_text(kind) or is_number(kind):
            return identifier(column)
        if not fits_csv(kind):
            raise InputError(
                "column",
                f"{column!r} holds {describe_type(kind)}, which a CSV cell cannot",
                remedy="Leave it out with keep, or write Parquet",
            )
        return f"CAST({identifier(column)} AS VARCHAR)"

    def _sql_type(self, column: str) -> str:
        return str(self._types[column])

    @cached_property
    def _types(self) -> dict[str, Any]:
        """DuckDB's names of the types that a CSV file's first rows suggest."""
        relation = self.connection.from_arrow(self.schema.empty_table())
        return dict(zip(relation.columns, relation.types, strict=True))


def _point(cell: str) -> str:
    """A cell with a point in place of its comma; a cell with a point is then not a number."""
    return f"translate({cell}, ',.', '.x')"


def _precision(kind: Any) -> str:
    import pyarrow as pa

    return "FLOAT" if kind == pa.float32() else "DOUBLE"
