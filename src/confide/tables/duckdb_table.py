"""Tables that this process reads by its embedded DuckDB: files, folders, data in memory, streams, DuckDB databases.

Records are never spilled to disk, and no extension is loaded from the network. DuckDB is imported when a table is
opened.
"""

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from copy import copy
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, partial
from typing import Any, Self

from confide.errors import InputError
from confide.support import require
from confide.tables.arrow import ColumnRef, is_number, is_text, list_element, or_empty_batch
from confide.tables.deferred import duckdb, ibis, pa
from confide.tables.expressions import identifier, incomplete_sql, select, text
from confide.tables.people import ContributionBound
from confide.tables.table import Table

_SETTINGS: Mapping[str, Any] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",  # records are never spilled to disk
}

# So many cells of a column of CSV are looked at, to reject other forms of numbers.
_FIRST = 1000

# The name under which data in memory are registered.
ROWS = "confide_rows"

# The name of the cells in queries of Ibis, before the query of the cells takes its place.
_CELLS = "confide_cells"

# Numbers whose digits are separated in groups, the last of three digits; no number that begins with 0.
_THOUSANDS = r"[-+]?[1-9][0-9]{0,2}(SEPARATOR[0-9]{2,3})*SEPARATOR[0-9]{3}([.,][0-9]*)?".replace(
    "SEPARATOR", r"[,.'\x{2019} \x{a0}\x{2009}\x{202f}]"
)


@dataclass(frozen=True)
class _FirstCells:
    others: int = 0  # cells that are neither empty nor numbers
    decimals: int = 0  # of these, numbers with a decimal comma
    thousands: int = 0  # of these, numbers whose digits are separated in groups
    integers: bool = False  # whether all cells that are not empty are integers


@contextmanager
def embedded(path: str | None = None) -> Iterator[Any]:
    """A connection to a DuckDB of this process: in memory, or to a database file, which is only read."""
    with closing(duckdb.connect(path or ":memory:", read_only=bool(path), config=dict(_SETTINGS))) as connection:
        connection.execute("SET enable_progress_bar = false")  # not a setting of all connections
        yield connection


@dataclass(eq=False)
class DuckTable(Table):
    """Rows that an embedded DuckDB reads.

    Parameters
    ----------
    connection
        The connection to DuckDB.
    source
        The SQL expression after FROM.
    in_words
        The context in which DuckDB's errors are replaced by errors in fixed words.
    renew
        Called before every query, for data that must be registered again, with the columns in question or None for all.
    stated_rows
        Returns the number of rows, if the source states it.
    """

    connection: Any
    source: str
    in_words: Callable[[], AbstractContextManager[None]] = nullcontext
    _: KW_ONLY
    renew: Callable[[Collection[str] | None], object] = lambda names: None
    stated_rows: Callable[[], int | None] = lambda: None
    _sorts: bool = field(default=False, init=False)
    _needed: tuple[ColumnRef, ...] = field(default=(), init=False)

    takes_entries = True
    distinguishes_case = False

    # Few threads read plain columns: reading is not the bottleneck, and every thread holds a row group.
    threads = 2

    def batches(self, columns: Sequence[ColumnRef], rows: int) -> Generator[Any]:
        """Arrow record batches of at most `rows` rows (at least 2048), in the order of the rows."""
        expressions = [f"{self._expression(read)} AS {identifier(read.alias)}" for read in columns]
        with self.in_words():
            self.renew({name for read in (*columns, *self._needed) for name in (read.column, read.at) if name})
            # Lists and sorting use every core
            busy = self._sorts or any(read.form in ("numbers", "entry") for read in columns)
            self.connection.execute("RESET threads" if busy else f"SET threads = {self.threads}")
            query = select(", ".join(expressions) or "1 AS nothing", self.source)
            reader = self.connection.sql(query).to_arrow_reader(rows)
            yield from or_empty_batch(reader, reader.schema)

    def row_count(self) -> int | None:
        """The number of rows if the source states it, for progress bars; None for CSV."""
        with self.in_words():
            return self.stated_rows()

    def counted_rows(self) -> int | None:
        """The number of rows, counted if the source does not state it."""
        stated = self.row_count()
        return self._count() if stated is None else stated

    def _count(self, rest: str = "") -> int:
        return int(self._answer(select("count(*)", self.source, rest))[0][0])

    def _answer(self, query: str) -> Any:
        """The rows of the answer to a query, which may read every column."""
        with self.in_words():
            self.renew(None)
            return self.connection.sql(query).fetchall()

    def first_length(self, column: str) -> int | None:
        """The length of the first list that is not null."""
        length = f"len({identifier(column)})"
        lengths = self._answer(select(length, self.source, f"WHERE {length} IS NOT NULL LIMIT 1"))
        return lengths[0][0] if lengths else None

    def holds_numbers(self, column: str) -> bool:
        """Whether a column can be read as numbers; in CSV every column, because bad cells are counted."""
        return is_number(self.type_of(column)) or self._is_cell(column)

    def holds_integers(self, column: str) -> bool:
        """Whether a column holds integers; in CSV whether its first cells do."""
        return super().holds_integers(column) or (self._is_cell(column) and self._first_forms[column].integers)

    def check_number(self, column: str) -> None:
        """Reject a column that cannot be read as numbers, and in CSV one with other marks in its first cells."""
        super().check_number(column)
        form = self._first_forms[column] if self._is_cell(column) else _FirstCells()
        if form.decimals == form.others > form.thousands and self.decimal == ".":
            must = f"{column!r} holds numbers with a decimal comma"
            raise InputError("column", must, remedy="Read them with decimal=',' or write a point")
        must = f"{column!r} holds numbers whose digits are separated in groups, as thousands are in 1,000 or 1.000,5"
        require("column", not form.thousands, must, remedy="Write them without separators of thousands")

    @cached_property
    def _first_forms(self) -> dict[str, "_FirstCells"]:
        columns = [name for name in self.schema.names if self._is_cell(name)]
        with self.in_words():
            forms = self._first_cells(", ".join(map(self._forms_expression, columns)))
        return {name: _FirstCells(**fields) for name, fields in zip(columns, forms, strict=True)}

    def _forms_expression(self, column: str) -> str:
        """The fields of `_FirstCells` of a column, as a struct of SQL."""
        cell = self._cell(column)
        other = f"{cell} IS NOT NULL AND {self._number(column, self.type_of(column))} IS NULL"
        decimal = f"TRY_CAST({_point(cell)} AS DOUBLE) IS NOT NULL"
        thousands = f"regexp_full_match(trim({cell}), {text(_THOUSANDS)})"
        integers = f"bool_and(regexp_full_match({cell}, '-?[0-9]+'))"
        return (
            f"{{others: count(*) FILTER ({other}), decimals: count(*) FILTER ({other} AND {decimal}), "
            f"thousands: count(*) FILTER ({other} AND {thousands}), integers: COALESCE({integers}, false)}}"
        )

    def _first_cells(self, expressions: str) -> Any:
        first_rows = select("*", self.source, f"LIMIT {_FIRST}")
        return self.connection.sql(select(expressions, f"({first_rows})")).fetchall()[0]

    def bound_contributions(self, people: ContributionBound) -> Self:
        """The table with a bounded number of rows of each person; sorting uses every core."""
        # The query that bounds the rows of each person, over the cells, becomes the source
        rows = ibis.table(ibis.Schema.from_pyarrow(self.schema), name=_CELLS)
        limited = people.limit(rows, texts=self.texts)
        cells = ", ".join(f"{self._cell(name)} AS {identifier(name)}" for name in self.schema.names)
        source = f"({ibis.to_sql(limited, dialect='duckdb')})"
        source = source.replace(identifier(_CELLS), f"({select(cells, self.source)})")
        bounded = copy(self)
        bounded.schema = limited.schema().to_pyarrow()
        bounded.source = source
        bounded.renew = lambda _: self.renew(None)
        bounded.stated_rows = lambda: None
        bounded._sorts = True
        bounded.ordered = False
        return bounded

    def drop_missing(self, reads: Sequence[ColumnRef]) -> "DuckTable":
        """The table without the rows that lack a value."""
        wrong = incomplete_sql(reads, self.schema, texts=self.texts)
        complete = copy(self)
        complete._needed = (*self._needed, *reads)
        complete.source = f"({select('*', self.source, f'WHERE NOT {wrong}')})"
        complete.ordered = False
        self._count_left_out = partial(self._count, f"WHERE {wrong}")
        return complete

    def lacks_values(self, reads: Sequence[ColumnRef]) -> bool:
        """Whether some row lacks a value; in CSV a cell that is no number need not be a missing one."""
        cells = [read for read in reads if self._is_cell(read.column)]
        return not self.texts or self._count(f"WHERE {incomplete_sql(cells, self.schema, texts=True)}") > 0

    def _is_cell(self, column: str) -> bool:
        return self.texts and is_text(self.type_of(column))

    def _cell(self, column: str) -> str:
        """A column; in CSV with empty texts as null.

        Without the NULLIF, DuckDB passes a cast to its CSV reader, which fails where TRY_CAST returns null
        (duckdb/duckdb#23818).
        """
        return f"NULLIF({identifier(column)}, '')" if self._is_cell(column) else identifier(column)

    def _expression(self, read: ColumnRef) -> str:
        """The SQL expression for a column. A CSV cell is converted to a number here only."""
        column, kind = identifier(read.column), self.type_of(read.column)
        match read.form:
            case "number":
                return self._number(read.column, kind)
            case "label" if pa.types.is_integer(kind):
                return f"TRY_CAST({column} AS BIGINT)"
            case "label":
                return f"CAST({self._cell(read.column)} AS VARCHAR)"
            case "numbers":
                return f"CAST({column} AS {_precision(list_element(kind))}[])"
            case "entry":
                at = identifier(str(read.at))
                entry = f"CASE WHEN {at} >= 0 AND {at} < len({column}) THEN {column}[{at} + 1] END"
                return f"CAST({entry} AS {_precision(list_element(kind))})"
            case "length":
                return f"CAST(len({column}) AS BIGINT)"
            case "text":  # for a CSV cell
                return column if is_text(kind) or is_number(kind) else f"CAST({column} AS VARCHAR)"
        return self._cell(read.column)

    def _number(self, column: str, kind: Any) -> str:
        """A column as FLOAT if it has this type, otherwise as DOUBLE; values that are not numbers become null.

        The digits of a decimal, and the halves of a large integer, are read as text, so that they are rounded once.
        """
        if kind in (pa.float32(), pa.float64()):
            return identifier(column)
        cell = self._cell(column)
        if self.decimal == "," and is_text(kind):
            cell = _point(cell)
        return f"TRY_CAST({f'CAST({cell} AS VARCHAR)' if pa.types.is_decimal(kind) else cell} AS DOUBLE)"


def _point(cell: str) -> str:
    """A cell with a point in place of its comma; a cell with a point is then not a number."""
    return f"translate({cell}, ',.', '.x')"


def _precision(kind: Any) -> str:
    """The number type of SQL in which the entries of a list are read."""
    return "FLOAT" if kind == pa.float32() else "DOUBLE"
