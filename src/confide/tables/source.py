"""One file, opened for reading: its columns, and queries on it that stream."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confide.errors import InputError
from confide.tables.arrow_file import arrow_rows, arrow_schema, arrow_stream
from confide.tables.csv_dialect import sniff
from confide.tables.failures import check_readable, fixed_words
from confide.tables.formats import Format, file_format
from confide.tables.sql import in_words, select, text

_SETTINGS = (
    "SET threads = 1",  # reading is not the bottleneck, and every thread holds a row group in memory
    "SET temp_directory = ''",  # records are never spilled to disk
    "SET enable_progress_bar = false",
    "SET python_enable_replacements = false",
)
_OFFLINE: Mapping[str, Any] = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
_ARROW = "arrow_source"


@dataclass(frozen=True)
class Table:
    """A file opened for reading.

    Parameters
    ----------
    path
        The file.
    format
        Its format.
    columns
        Column names in file order, each with its DuckDB type (for CSV the type that the first rows suggest; queries
        see texts).
    """

    path: Path
    format: Format
    columns: dict[str, str]
    _connection: Any
    _source: str

    def stream(self, expressions: Sequence[str], rows: int) -> Iterator[Any]:
        """Arrow record batches of at most `rows` rows (at least 2048), in file order."""
        with fixed_words(self.path, self.format):
            yield from self._run(select(", ".join(expressions), self._source)).to_arrow_reader(rows)

    def first(self, expression: str) -> Any:
        """The first value of an expression that is not null; None if there is none."""
        with fixed_words(self.path, self.format):
            rows = self._run(select(expression, self._source, f"WHERE {expression} IS NOT NULL LIMIT 1")).fetchall()
        return rows[0][0] if rows else None

    def row_count(self) -> int | None:
        """The number of rows if the file states it, for progress bars; None for CSV."""
        with fixed_words(self.path, self.format):
            if self.format == "parquet":
                query = select("sum(num_rows)", f"parquet_file_metadata({text(str(self.path))})")
                return int(self._run(query).fetchall()[0][0])
            return arrow_rows(self.path) if self.format == "arrow" else None

    def _run(self, query: str) -> Any:
        if self.format == "arrow":  # its stream can be read once
            self._connection.register(_ARROW, arrow_stream(self.path))
        return self._connection.sql(query)

    def kind(self, name: str) -> str:
        """The DuckDB type of a column.

        Raises
        ------
        InputError
            If there is no such column; the message lists those that exist.
        """
        if name not in self.columns:
            raise InputError(f"column {name!r} is not in {str(self.path)!r}; {self.existing()}")
        return self.columns[name]

    def existing(self) -> str:
        """The columns that exist, in words."""
        shown = [f"{name} ({in_words(kind)})" for name, kind in list(self.columns.items())[:40]]
        more = f" and {len(self.columns) - 40} more" if len(self.columns) > 40 else ""
        return f"its columns are {', '.join(shown)}{more}"


@contextmanager
def open_table(path: Path) -> Iterator[Table]:
    """Open a Parquet, CSV, Arrow or Feather file.

    Raises
    ------
    InputError
        If the extension is not known or the file is missing.
    FormatError
        If the file is empty, truncated or of another format than its extension says.
    """
    kind = file_format(path)
    check_readable(path)
    import duckdb

    with fixed_words(path, kind):
        connection = duckdb.connect(":memory:", config=dict(_OFFLINE))
    try:
        with fixed_words(path, kind):
            for setting in _SETTINGS:
                connection.execute(setting)
            columns, source = _describe(connection, path, kind)
        yield Table(path, kind, columns, connection, source)
    finally:
        connection.close()


def _describe(connection: Any, path: Path, kind: Format) -> tuple[dict[str, str], str]:
    if kind == "csv":
        dialect = sniff(connection, path)
        return dialect.columns, dialect.source
    if kind == "arrow":
        schema = arrow_schema(path)
        names = list(schema.names)
        connection.register(_ARROW, schema.empty_table())
        source = _ARROW
    else:
        source = f"read_parquet({text(str(path))})"
        names = _top_level(connection.sql(select("name, num_children", f"parquet_schema({text(str(path))})")))
    relation = connection.sql(select("*", source))
    if relation.columns != names:
        raise InputError(
            f"file {str(path)!r} must have column names that differ in more than upper and lower case; rename them"
        )
    return dict(zip(names, map(str, relation.types), strict=True)), source


def _top_level(schema: Any) -> list[str]:
    """Column names from a Parquet schema, which lists every node before its children, the root first."""
    names, inside = [], 0
    for name, children in schema.fetchall()[1:]:
        if inside == 0:
            names.append(name)
        inside += (children or 0) - (1 if inside else 0)
    return names
