"""The words of each engine's SQL: names, texts and numbers, none of them pasted.

Everything else in a counting query (CASE, comparisons, windows, GROUP BY) is the same text everywhere. Numbers are
texts that are cast, for a bare 0.1 is a decimal number in some engines.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from confide.errors import InputError
from confide.support import one_of

MOST_BYTES = 1_000_000
"""Of one query, where an engine has a limit."""


@dataclass(frozen=True)
class SqlDialect:
    """How one engine writes what differs from engine to engine.

    Parameters
    ----------
    name
        What it is called, also by dbt.
    double, string
        Its types for double precision and for texts of any length.
    quote
        What stands around the name of a column.
    escapes
        What stands for a character within a text.
    md5
        The hash of a text as hexadecimal digits, of `{}`.
    fence
        Keeps its optimiser from computing a score anew for every comparison.
    searches
        Whether bins are found by a binary search in an array, for large trees of CASE take it long to read.
    folds
        Whether names that are not quoted are upper-case.
    limited
        Whether a query may have no more than `MOST_BYTES`.
    run
        Whether the tests run it; others are parsed, and run after a translation to DuckDB.
    """

    name: str
    double: str = "DOUBLE"
    string: str = "VARCHAR"
    quote: str = '"'
    escapes: Mapping[str, str] = field(default_factory=lambda: {"'": "''"})
    md5: str = "md5({})"
    fence: str = ""
    searches: bool = False
    folds: bool = False
    limited: bool = False
    run: bool = True

    def identifier(self, name: str) -> str:
        """The name of a column, quoted.

        Where unquoted names are upper-case a plain name is, too; one that is typed in double quotes stays as it is.

        Examples
        --------
        >>> DIALECTS["postgres"].identifier("true label"), DIALECTS["snowflake"].identifier("label")
        ('"true label"', '"LABEL"')
        >>> DIALECTS["snowflake"].identifier('"label"')
        '"label"'
        """
        if self.folds:
            typed = len(name) > 2 and name[0] == name[-1] == '"'
            name = name[1:-1] if typed else name.upper() if _is_plain(name) else name
        _check(name, "a column or table", "a name")
        if self.quote == '"':
            return '"' + name.replace('"', '""') + '"'
        if not {"`", "\\"}.isdisjoint(name):  # BigQuery reads a backslash there as the beginning of an escape
            raise InputError(f"names of columns must not hold a backtick or a backslash in {self.name}; found {name!r}")
        return f"`{name}`"

    def relation(self, table: str) -> str:
        """The name of a table, each part between points quoted.

        Examples
        --------
        >>> DIALECTS["bigquery"].relation("project.clinic.records")
        '`project`.`clinic`.`records`'
        """
        return ".".join(self.identifier(part) for part in table.split("."))

    def text(self, value: str) -> str:
        r"""A text.

        Examples
        --------
        >>> DIALECTS["duckdb"].text("it's"), DIALECTS["bigquery"].text("it's")
        ("'it''s'", "'it\\'s'")
        """
        _check(value, "a class or group", "a text")
        return "'" + "".join(self.escapes.get(letter, letter) for letter in value) + "'"

    def number(self, value: float) -> str:
        """A number in double precision: the shortest text that reads back as it, cast.

        Examples
        --------
        >>> DIALECTS["postgres"].number(0.1), DIALECTS["bigquery"].number(float("inf"))
        ("CAST('0.1' AS DOUBLE PRECISION)", "CAST('inf' AS FLOAT64)")
        """
        return f"CAST('{float(value)!r}' AS {self.double})"

    def as_number(self, column: str) -> str:
        """A column in double precision."""
        return f"CAST({self.identifier(column)} AS {self.double})"

    def as_text(self, column: str) -> str:
        """A column as text: the digits of an integer, and texts as they are."""
        return f"CAST({self.identifier(column)} AS {self.string})"


def _is_plain(name: str) -> bool:
    return name.isascii() and name.isidentifier()


def _check(name: str, of: str, what: str) -> None:
    if not name or not name.isprintable():
        raise InputError(f"{what} of {of} in SQL must be printable and not empty; found {name!r}")


_BACKSLASHES = {"'": "\\'", "\\": "\\\\"}
_ALL = (
    SqlDialect("duckdb"),
    SqlDialect("postgres", double="DOUBLE PRECISION", fence="OFFSET 0"),
    SqlDialect("spark", string="STRING", quote="`", escapes=_BACKSLASHES, searches=True),
    SqlDialect("databricks", string="STRING", quote="`", escapes=_BACKSLASHES, searches=True, run=False),
    SqlDialect("snowflake", escapes={"'": "''", "\\": "\\\\"}, folds=True, limited=True, run=False),
    SqlDialect(
        "bigquery", double="FLOAT64", string="STRING", quote="`", escapes=_BACKSLASHES, md5="TO_HEX(MD5({}))",
        limited=True, run=False,
    ),
)  # fmt: skip
DIALECTS: Mapping[str, SqlDialect] = MappingProxyType({one.name: one for one in _ALL})
"""The engines that a query is written for, by their names."""


def dialect_of(name: str) -> SqlDialect:
    """The dialect of this name.

    Examples
    --------
    >>> dialect_of("snowflake").run
    False
    """
    return DIALECTS[one_of("dialect", name, tuple(DIALECTS))]
