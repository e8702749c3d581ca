"""How a CSV file is written: its delimiter, its quotes, and the column names of its first line."""

import csv
import gzip
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from confide.errors import FormatError, InputError
from confide.tables.expressions import select, text
from confide.tables.failures import Rows

DELIMITERS = ",;\t|"


@dataclass(frozen=True)
class Dialect:
    """A CSV file's dialect, as DuckDB's sniffer finds it from the first rows.

    Parameters
    ----------
    types
        Column names, and the DuckDB type that each has in the first rows.
    options
        How DuckDB has to read it, with every column as text.
    skip
        Lines before the column names.
    """

    types: dict[str, str]
    options: str
    skip: int = 0


def csv_rows(skip: int = 0) -> Rows:
    """How rows are counted: as a spreadsheet shows them."""
    return Rows(2 + skip, f"rows as in a spreadsheet, where the column names are row {1 + skip}")


def sniff(connection: Any, path: Path, pattern: str, packing: str) -> Dialect:
    """Find the dialect of a CSV file; `pattern` is its name, with DuckDB's special characters escaped.

    `packing` is `gzip` or `none`, told by us, since DuckDB would not tell it from every name.

    Raises
    ------
    FormatError
        If there is no line of column names (without this check the first record would be taken for the names, and
        would be printed wherever names are), if two columns have one name, or if a line has other cells than the names.
    """
    import duckdb

    sniffed = f"sniff_csv({text(pattern)}, compression={text(packing)})"
    query = select("Delimiter, Quote, Escape, SkipRows, HasHeader, Columns", sniffed)
    try:
        found = connection.sql(query).fetchall()
    except duckdb.Error:
        refuse_ragged(path, packing)
        raise
    delimiter, quote, escape, skip, has_header, columns = found[0]
    if len(columns) == 1 and any(mark in columns[0]["name"] for mark in DELIMITERS):
        refuse_ragged(path, packing)
    if not has_header:
        raise FormatError(
            f"file {str(path)!r} must start with a line of column names; found none that can be told from the values "
            "(names that all look like numbers cannot be)"
        )
    quote, escape = (mark if mark and mark != "(empty)" else '"' for mark in (quote, escape))
    refuse_repeated(f"file {str(path)!r}", _header(path, packing, int(skip), delimiter, quote))
    types = {column["name"]: column["type"] for column in columns}
    as_text = ", ".join(f"{text(name)}: 'VARCHAR'" for name in types)
    return Dialect(
        types,
        f"auto_detect=false, compression={text(packing)}, header=true, skip={int(skip)}, delim={text(delimiter)}, "
        f"quote={text(quote)}, escape={text(escape)}, columns={{{as_text}}}",
        int(skip),
    )


def refuse_repeated(name: str, names: Sequence[str]) -> None:
    """Refuse column names that occur twice; names that differ in case only are the same to DuckDB."""
    seen: dict[str, str] = {}
    for one in filter(None, names):
        if one.lower() in seen:
            first = seen[one.lower()]
            alike = "" if one == first else f" (and {first!r}; upper and lower case do not tell them apart)"
            raise FormatError(
                f"{name} must give every column a name of its own; {one!r} occurs twice{alike}; rename one"
            )
        seen[one.lower()] = one


def refuse_ragged(path: Path, packing: str) -> None:
    """Refuse the first line that has more or fewer cells than there are column names, if there is one."""
    with suppress(csv.Error, EOFError, zlib.error), _opened(path, packing) as stream:
        header = stream.readline()
        rows = csv.reader(chain([header], stream), delimiter=max(DELIMITERS, key=header.count))
        names = next(rows, [])
        for row in rows:
            if row and len(row) != len(names):
                values = "1 value" if len(row) == 1 else f"{len(row)} values"
                raise FormatError(
                    f"file {str(path)!r} cannot be read: line {rows.line_num} has {values}, and there are {len(names)} "
                    "column names"
                )


def _header(path: Path, packing: str, skip: int, delimiter: str, quote: str) -> list[str]:
    """The cells of the line of column names; none where Python's reader does not know such a dialect."""
    with suppress(csv.Error, TypeError), _opened(path, packing) as stream:
        for _ in range(skip):
            stream.readline()
        return next(csv.reader(stream, delimiter=delimiter, quotechar=quote), [])
    return []


def _opened(path: Path, packing: str) -> TextIO:
    if packing == "gzip":
        return gzip.open(path, "rt", encoding="utf-8-sig", errors="replace", newline="")
    return path.open(encoding="utf-8-sig", errors="replace", newline="")


def sniff_all(connection: Any, paths: Sequence[Path], patterns: Sequence[str], packing: str) -> Dialect:
    """The dialect of files that are written alike; the types of the first."""
    dialects = [sniff(connection, path, pattern, packing) for path, pattern in zip(paths, patterns, strict=True)]
    for path, dialect in zip(paths, dialects, strict=True):
        if dialect.options != dialects[0].options:
            raise InputError(
                f"file {str(path)!r} must have the column names and the dialect of {str(paths[0])!r}; it has others"
            )
    return dialects[0]
