"""The dialect of CSV: its column names, and the options by which DuckDB reads every cell as text."""

import csv
import gzip
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import chain
from typing import Any

from confide.errors import FormatError
from confide.support import FileLocation
from confide.tables.expressions import text
from confide.tables.file_formats import file_format
from confide.tables.row_errors import Rows

DELIMITERS = ",;\t|"

# Taken for the separator of a file with one column, whose cells can contain every other one.
_NO_DELIMITER = "\x1f"

CSV_ROWS = Rows(2, "rows as in a spreadsheet, where the column names are row 1")


@dataclass(frozen=True)
class CsvDialect:
    """The column names of CSV, and the options with which DuckDB reads every column as text."""

    names: tuple[str, ...]
    options: str


def dialect_of(place: FileLocation) -> CsvDialect:
    """The dialect of a file."""
    stream = place.open("rb")
    unpacked: Any = gzip.GzipFile(fileobj=stream) if file_format(place).compressed else stream
    with stream, TextIOWrapper(unpacked, "utf-8-sig", newline="") as lines:
        return csv_dialect(f"file {str(place)!r}", lines)


def csv_dialect(source: str, lines: Iterable[str]) -> CsvDialect:
    """The dialect of CSV by its first lines: the separator is that which gives the most column names."""
    # Choose the separator
    lines = iter(lines)
    first = next(lines, "")
    cells = {mark: len(next(csv.reader([first], delimiter=mark), [])) for mark in DELIMITERS}
    delimiter = max(cells, key=cells.__getitem__) if max(cells.values()) > 1 else _NO_DELIMITER
    # Without column names the first record would be taken for them, and be printed wherever names are
    rows = csv.reader(chain([first], lines), delimiter=delimiter)
    names = next(rows, [])
    record = next(rows, [])
    numbers = list(map(_is_number, names))
    over_numbers = any(_is_number(cell) and not number for cell, number in zip(record, numbers, strict=False))
    if not any(names) or (any(numbers) and not over_numbers):
        got = "none that can be distinguished from the values (names that all look like numbers cannot be)"
        raise FormatError("path", f"{source} must start with a line of column names", got=got)
    # The options by which DuckDB reads every cell as text
    names = [name or f"column{place}" for place, name in enumerate(names)]
    _refuse_repeated(source, names)
    as_text = ", ".join(f"{text(name)}: 'VARCHAR'" for name in names)
    options = f"delim={text(delimiter)}, quote='\"', escape='\"', columns={{{as_text}}}"
    return CsvDialect(tuple(names), f"auto_detect=false, header=true, {options}")


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True


def _refuse_repeated(source: str, names: Sequence[str]) -> None:
    """Reject column names that occur twice; names that differ in case only are the same to DuckDB."""
    earlier: dict[str, str] = {}
    for name in names:
        if (first := earlier.get(name.lower())) is not None:
            similar = "" if name == first else f" (and {first!r}; upper and lower case do not distinguish them)"
            must = f"{source} must give every column a different name"
            raise FormatError("path", must, got=f"{name!r} twice{similar}", remedy="Rename one")
        earlier[name.lower()] = name
