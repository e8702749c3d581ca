"""How a CSV file is written: its delimiter, its quotes, and the column names of its first line."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confide.errors import FormatError, InputError
from confide.tables.sql import select, text


@dataclass(frozen=True)
class Dialect:
    """A CSV file's dialect, as DuckDB's sniffer finds it from the first rows.

    Parameters
    ----------
    types
        Column names, and the DuckDB type that each has in the first rows.
    options
        How DuckDB has to read it, with every column as text.
    """

    types: dict[str, str]
    options: str


def sniff(connection: Any, path: Path, pattern: str, packing: str) -> Dialect:
    """Find the dialect of a CSV file; `pattern` is its name, with DuckDB's special characters escaped.

    `packing` is `gzip` or `none`, told by us, since DuckDB would not tell it from every name.

    Raises
    ------
    FormatError
        If there is no line of column names. (Without this check the first record would be taken for the names, and
        would be printed wherever names are.)
    """
    sniffed = f"sniff_csv({text(pattern)}, compression={text(packing)})"
    found = connection.sql(select("Delimiter, Quote, Escape, SkipRows, HasHeader, Columns", sniffed)).fetchall()
    delimiter, quote, escape, skip, has_header, columns = found[0]
    if not has_header:
        raise FormatError(
            f"file {str(path)!r} must start with a line of column names; found none that can be told from the values "
            "(names that all look like numbers cannot be)"
        )
    quote, escape = (mark if mark and mark != "(empty)" else '"' for mark in (quote, escape))
    types = {column["name"]: column["type"] for column in columns}
    as_text = ", ".join(f"{text(name)}: 'VARCHAR'" for name in types)
    return Dialect(
        types,
        f"auto_detect=false, compression={text(packing)}, header=true, skip={int(skip)}, delim={text(delimiter)}, "
        f"quote={text(quote)}, escape={text(escape)}, columns={{{as_text}}}",
    )


def sniff_all(connection: Any, paths: Sequence[Path], patterns: Sequence[str], packing: str) -> Dialect:
    """The dialect of files that are written alike; the types of the first."""
    dialects = [sniff(connection, path, pattern, packing) for path, pattern in zip(paths, patterns, strict=True)]
    for path, dialect in zip(paths, dialects, strict=True):
        if dialect.options != dialects[0].options:
            raise InputError(
                f"file {str(path)!r} must have the column names and the dialect of {str(paths[0])!r}; it has others"
            )
    return dialects[0]
