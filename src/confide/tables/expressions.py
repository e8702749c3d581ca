"""Columns as expressions of Ibis and in SQL: exact numbers, names, and records with missing values.

**The rule of missing values.** A record is complete if no column that is read of it is missing. A value is missing if
it is null, NaN in a column of numbers, an empty text, or a list that contains null or NaN; in a column of numbers of a
CSV also if it is a mark by which programs write a missing number, such as NA, N/A or NULL. Values that are
present but cannot be used are not missing values and raise an error as usual. Examples are a probability of 1.5, a
label that is not a class, or `abc` in a column of numbers.

**Why the privacy statement holds.** The completeness of a record follows from that record alone. Let f leave out the
incomplete records of a table. Suppose that the tables D and D' differ by one record r, with D' = D + r. Then f(D') is
f(D) + r if r is complete, and f(D) if not: two tables that differ by at most one record. Therefore a mechanism that is
epsilon-private in f(D) for adding or removing one record is epsilon-private in D. The same holds person by person,
with at most as many records of each. Under `replace_one` the number of records that count is public. The statement is
then about replacing a complete record by another complete one. The number of complete records is not secret. The
completeness of the last record is not secret either from an attacker with all other records.

*Checked by* `test_leaving_out_keeps_neighbours`.
"""

from collections.abc import Sequence
from typing import Any

from confide.errors import InputError
from confide.support import as_integer, canonical_name
from confide.tables.arrow import ColumnRef, is_text, list_element
from confide.tables.deferred import ibis, pa


def text(value: str) -> str:
    """A string literal.

    Examples
    --------
    >>> text("it's")
    "'it''s'"
    """
    return "'" + value.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """A quoted column name.

    Examples
    --------
    >>> identifier("true label")
    '"true label"'
    """
    return '"' + name.replace('"', '""') + '"'


def select(what: str, source: str, rest: str = "") -> str:
    """A query, from parts that were quoted by `text` and `identifier`.

    Examples
    --------
    >>> select(identifier("score"), "source", "LIMIT 1")
    'SELECT "score" FROM source LIMIT 1'
    """
    return f"SELECT {what} FROM {source} {rest}"  # noqa: S608


def exact(column: Any) -> Any:
    """A column in double precision, correctly rounded.

    Engines divide the digits of a decimal, and add the halves of a large integer, in floating point, which rounds
    twice; through text the number is read once. Single precision and integers of 64 bits are converted exactly or
    rounded once by every engine.
    """
    kind = column.type()
    if kind.is_float64():
        return column
    if kind.is_decimal():
        column = column.cast("string")
    return column.cast("float64")


def number(value: float) -> Any:
    """A double-precision constant that reaches the engine unchanged.

    In SQL, 0.1 is a decimal number. The constant is therefore a cast of the shortest text that reads back as the float.
    """
    return ibis.literal(repr(float(value))).cast("float64")


def position(column: Any, names: Sequence[str | int]) -> Any:
    """The position of a value among the names, counted from 0; null if there is none (positions are not checked)."""
    if tuple(names) == tuple(range(len(names))) and column.type().is_integer():
        return column.cast("int64")
    return ibis.cases(*zip(matches(column, names), range(len(names)), strict=True), else_=ibis.null("int64"))


def matches(column: Any, names: Sequence[str | int]) -> list[Any]:
    """For each name, whether the value of a column is this name."""
    values = [as_column_value(column, name) for name in names]
    return [ibis.literal(False) if value is None else column == value for value in values]


def as_column_value(column: Any, name: str | int) -> str | int | None:
    """A name as a value of the column's type: a text or an integer; None if it cannot be such a value."""
    kind = column.type()
    if kind.is_string():
        return canonical_name(name)
    if kind.is_integer():
        return as_integer(name)
    raise InputError("column", f"{column.get_name()!r} must hold texts or integers", got=str(kind.name))


# Records with missing values, by the rule above.

# The forms in which a column is read as numbers.
_NUMBERS = ("number", "numbers", "entry", "length")

# The marks of missing numbers in CSV, in lower case; the last is that of PostgreSQL and MySQL.
_MARKS = "('nan', 'na', 'n/a', '<na>', '#n/a', 'null', 'none', '\\n')"


def incomplete_sql(reads: Sequence[ColumnRef], schema: Any, *, texts: bool) -> str:
    """A condition in DuckDB's SQL for a record that lacks a value; with `texts` every cell arrives as text."""
    wrong = [
        _missing_sql(column, schema.field(column).type, texts, numeric) for column, numeric in _columns(reads).items()
    ]
    return f"({' OR '.join(wrong) or 'false'})"


def _missing_sql(column: str, kind: Any, texts: bool, numeric: bool) -> str:
    name = identifier(column)
    if texts:
        return f"(COALESCE({name}, '') = ''{f' OR lower(trim({name})) IN {_MARKS}' if numeric else ''})"
    if list_element(kind) is not None:
        lists = f"CAST({name} AS DOUBLE[])"
        nan = f"list_contains({lists}, CAST('nan' AS DOUBLE))"
        return f"({name} IS NULL OR list_count({lists}) < len({lists}) OR {nan})"
    if pa.types.is_floating(kind):
        return f"({name} IS NULL OR isnan({name}))"
    return f"(COALESCE(CAST({name} AS VARCHAR), '') = '')" if is_text(kind) else f"({name} IS NULL)"


def incomplete_expression(table: Any, reads: Sequence[ColumnRef], *, nan: bool = True) -> Any:
    """Whether a record is incomplete, as an Ibis expression, for engines other than DuckDB (Ibis imports slowly).

    Set `nan` to false for an engine without a function for NaN: SQLite stores NaN as null.
    """
    wrong = ibis.literal(False)
    for column in _columns(reads):
        wrong |= _missing_expression(table[column], nan)
    return wrong


def _missing_expression(column: Any, nan: bool) -> Any:
    kind = column.type()
    missing = column.isnull()
    if kind.is_array():
        floats = nan and kind.value_type.is_floating()
        holes = column.filter(lambda entry: entry.isnull() | entry.isnan() if floats else entry.isnull())
        return missing | (holes.length() > 0).fill_null(False)
    if kind.is_floating() and nan:
        return missing | column.isnan().fill_null(False)
    text = column.cast("string") if kind.is_unknown() else column  # of a table that was never read
    return missing | (text == "").fill_null(False) if text.type().is_string() else missing


def _columns(reads: Sequence[ColumnRef]) -> dict[str, bool]:
    """The columns, and whether each is read as numbers."""
    numeric = {read.column for read in reads if read.form in _NUMBERS}
    return {read.column: read.column in numeric for read in reads}
