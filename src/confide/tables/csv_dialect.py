"""How a CSV file is written: its delimiter, its quotes, and the column names of its first line."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confide.errors import FormatError
from confide.tables.sql import select, text


@dataclass(frozen=True)
class Dialect:
    """A CSV file's dialect, as DuckDB's sniffer finds it from the first rows.

    Parameters
    ----------
    columns
        Column names, and the DuckDB type that each has in the first rows.
    source
        The SQL expression that reads the file with every column as text.
    """

    columns: dict[str, str]
    source: str


def sniff(connection: Any, path: Path) -> Dialect:
    """Find the dialect of a CSV file.

    Raises
    ------
    FormatError
        If there is no line of column names. (Without this check the first record would be taken for the names, and
        would be printed wherever names are.)
    """
    found = connection.sql(
        select("Delimiter, Quote, Escape, SkipRows, HasHeader, Columns", f"sniff_csv({text(str(path))})")
    ).fetchall()
    delimiter, quote, escape, skip, has_header, columns = found[0]
    if not has_header:
        raise FormatError(
            f"file {str(path)!r} must start with a line of column names; found none that can be told from the values "
            "(names that all look like numbers cannot be)"
        )
    quote, escape = (mark if mark and mark != "(empty)" else '"' for mark in (quote, escape))
    types = {column["name"]: column["type"] for column in columns}
    as_text = ", ".join(f"{text(name)}: 'VARCHAR'" for name in types)
    source = (
        f"read_csv({text(str(path))}, auto_detect=false, header=true, skip={int(skip)}, delim={text(delimiter)}, "
        f"quote={text(quote)}, escape={text(escape)}, columns={{{as_text}}})"
    )
    return Dialect(types, source)
