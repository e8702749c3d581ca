"""Errors about rows of a table, which are counted; and errors of files and engines, whose own texts may quote records.

No message contains a value: for rows it has a reason and the first row's number, for files and engines fixed words.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.errors import ConfideError, FormatError, InputError, replaced_errors
from confide.support import store_reason
from confide.tables.file_formats import Format

# So many columns are named one by one; of more columns, the first stands for all.
_MOST_NAMED = 3

_SKIP = "Records with missing values are left out by skip_incomplete; results are then about complete records alone"

# A number of records, and the first of them if rows have an order.
RowCount: TypeAlias = tuple[int, int | None]


@dataclass(frozen=True)
class Rows:
    """How messages count rows, in the way that other programs count those of the same source."""

    first: int = 0  # the number of the first row
    in_words: str = "rows count from 0"


@dataclass(frozen=True)
class ColumnError:
    """The error of one column in a batch, including records in which another column is reported first."""

    reason: int  # the broken requirement, counted from 1
    requirement: str  # the same, in words about this column
    wrong: NDArray[np.bool_]  # the records, shape (n,)
    missing: bool = False  # whether some of these records lack a value
    hints: Mapping[str, int] = field(default_factory=dict)  # records that a correction would make usable, by correction


class RowErrors:
    """Count the records that break requirements while a table is read, in any order of its batches."""

    def __init__(self) -> None:
        self._by_reason: dict[int, RowCount] = {}
        self._by_column: dict[tuple[int, str], RowCount] = {}  # by reason and requirement
        self._hints: Counter[tuple[int, str]] = Counter()  # by reason and correction
        self.missing = False

    def note(self, reasons: NDArray[np.integer], start: int | None, column_errors: Sequence[ColumnError] = ()) -> None:
        """Record the first reason of each record of a batch (0 for none), which begins at row `start` of an order."""
        for reason in np.unique(reasons[reasons != 0]).tolist():
            self.add(reason, *_counted(reasons == reason, start))
        for error in column_errors:
            _increase(self._by_column, (error.reason, error.requirement), *_counted(error.wrong, start))
            self.missing |= error.missing
            self._hints.update({(error.reason, hint): number for hint, number in error.hints.items()})

    def add(self, reason: int, number: int, first: int | None = None) -> None:
        """Record a number of rows with one reason."""
        _increase(self._by_reason, reason, number, first)

    def merge(self, other: "RowErrors") -> None:
        """Add the errors that another object has recorded."""
        for reason, (number, first) in other._by_reason.items():
            self.add(reason, number, first)
        for column, (number, first) in other._by_column.items():
            _increase(self._by_column, column, number, first)
        self._hints.update(other._hints)
        self.missing |= other.missing

    def counts(self) -> dict[int, int]:
        """Rows per reason."""
        return {reason: number for reason, (number, _) in self._by_reason.items()}

    def to_json(self) -> str:
        """The errors as text, without rows, as an engine's workers return them."""
        return json.dumps(
            {
                "reasons": list(self.counts().items()),
                "columns": [[*key, number] for key, (number, _) in self._by_column.items()],
                "hints": [[*key, number] for key, number in self._hints.items()],
                "missing": self.missing,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> "RowErrors":
        """The errors of a text of `to_json`."""
        errors, fields = cls(), json.loads(text)
        for reason, number in fields["reasons"]:
            errors.add(reason, number)
        errors._by_column = {(reason, words): (number, None) for reason, words, number in fields["columns"]}
        errors._hints.update({(reason, hint): number for reason, hint, number in fields["hints"]})
        errors.missing = fields["missing"]
        return errors

    def __bool__(self) -> bool:
        return bool(self._by_reason)

    def refuse(self, requirements: Sequence[str], rows: Rows = Rows(), *, skips: bool = False) -> None:
        """Raise if there are errors; `skips` states that records with missing values can be left out."""
        if not self._by_reason:
            return
        sentences = []
        for reason in sorted({*self._by_reason, *(reason for reason, _ in self._by_column)}):
            # Name few columns one by one
            columns = {words: counted for (of_reason, words), counted in self._by_column.items() if of_reason == reason}
            if not 0 < len(columns) <= _MOST_NAMED:
                columns = {requirements[reason - 1]: self._by_reason.get(reason) or max(columns.values())}
            sentences += [
                f"{words} in every row; {_which(*counted, rows)}" for words, counted in sorted(columns.items())
            ]
            # State how many records a correction would make usable
            hints = sorted((hint, number) for (of_reason, hint), number in self._hints.items() if of_reason == reason)
            sentences += [f"{number} would {hint}" for hint, number in hints]
        where = f" ({rows.in_words})" if any(first is not None for _, first in self._by_reason.values()) else ""
        raise InputError("table", "; ".join(sentences) + where, remedy=_SKIP if skips and self.missing else "")


def _increase(counts: dict[Any, RowCount], key: Any, number: int, first: int | None) -> None:
    if number:
        before, earlier = counts.get(key, (0, None))
        counts[key] = (before + number, min((row for row in (earlier, first) if row is not None), default=None))


def _counted(wrong: NDArray[np.bool_], start: int | None) -> RowCount:
    places = np.flatnonzero(wrong)
    return len(places), None if start is None or not len(places) else start + int(places[0])


def _which(count: int, first: int | None, rows: Rows) -> str:
    words = "1 does not" if count == 1 else f"{count} do not"
    if first is None:
        return words
    return f"{words}, row {first + rows.first}" if count == 1 else f"{words}, the first is row {first + rows.first}"


# Errors of files, of engines and of libraries that read records: their texts may quote records.

NOT_UTF8 = (
    "it is not UTF-8 text; save it again as UTF-8 (in Excel: Save as, CSV UTF-8), or convert it, as Latin-1 by "
    "iconv -f latin1 -t utf-8 OLD > NEW (for Unicode text of Excel, -f utf-16)"
)


@contextmanager
def file_errors_in_fixed_words(names: str, form: Format) -> Iterator[None]:
    """Replace every error of reading files by one that cannot quote data."""
    import duckdb
    import pyarrow as pa

    def instead(error: Exception) -> BaseException | None:
        if isinstance(error, duckdb.InterruptException):
            return KeyboardInterrupt()
        if isinstance(error, duckdb.Error) and (reason := store_reason(error)) is not None:
            return InputError("path", f"{names} cannot be read: {reason}")
        if isinstance(error, duckdb.Error | pa.ArrowException | OSError | UnicodeDecodeError):
            return FormatError("path", f"{names} {_fault_of_file(str(error), form)}")
        return None

    with replaced_errors(instead):
        yield


def _fault_of_file(text: str, form: Format) -> str:
    """What is wrong with a file; only numbers are taken from the error's text."""
    if text.startswith("Out of Memory"):
        return "needs more memory to read than there is"
    row = re.search(r"\A[A-Za-z ]*Error: CSV Error on Line: ([0-9]{1,15})$", text.partition("\n")[0])  # counts records
    where = f" in row {row[1]}, as in a spreadsheet" if row else ""
    if form.kind == "csv" and re.search("Invalid unicode|not utf-8 encoded|codec can't decode", text):
        return f"cannot be read{where}: {NOT_UTF8}"
    if form.kind != "csv" or "CSV Error" not in text:
        return f"cannot be read: it is truncated, damaged or not {form.in_words}"
    if row and (cells := re.search(r"^Expected Number of Columns: ([0-9]+) Found: ([0-9]+)$", text, re.MULTILINE)):
        values = "1 value" if cells[2] == "1" else f"{cells[2]} values"
        return f"cannot be read: row {row[1]}, as in a spreadsheet, has {values}, and there are {cells[1]} column names"
    return f"cannot be read{where}: it has more or fewer values than the header has names, or a quote does not close"


class EngineError(ConfideError):
    """A database or a cluster failed or rejected the query."""


_BRING = (
    "the extras confide[postgres] and confide[spark] install the packages for these engines, and ibis-framework[NAME] "
    "those for the engine of that name"
)

# Known causes, by SQLSTATE and by the type of an error.
_STATES = {
    "42501": "the role has no right to read the table",
    "42P01": "there is no such table",
    "3D000": "there is no such database",
    "28P01": "the password was rejected",
    "28000": "the role was rejected",
    "22003": "a number exceeds double precision",
    "57014": "the query was cancelled",
    "53100": "the server's disk is full",
    "53200": "the server is out of memory",
}
_TYPES = {
    "OperationalError": "no connection, or it was lost",
    "IOException": "a file is missing or cannot be read",
    "OutOfMemoryException": "it needs more memory than there is",
    "TableNotFound": "there is no such table",
    "NumericValueOutOfRange": "a number exceeds double precision",
    **dict.fromkeys(
        ("ArrowInvalid", "ArrowTypeError", "DataError"),
        "a column has a type, or a value such as an infinite date, that Arrow lacks: name the columns to keep",
    ),
    "OperationNotDefinedError": (
        "Ibis cannot do this with it (people need numbered rows, skip_incomplete a filter of lists)"
    ),
}


@contextmanager
def engine_errors_in_fixed_words(doing: str = "the query", brings: str = _BRING) -> Iterator[None]:
    """Replace every error of an engine, or of its driver, by one that cannot quote data."""

    def instead(error: Exception) -> ConfideError | None:
        if isinstance(error, ConfideError | MemoryError):
            return None
        if isinstance(error, ImportError):
            missing = f"the package {error.name.partition('.')[0]!r}" if error.name else "a package that Ibis needs"
            return InputError("source", f"{missing} is not installed", remedy=brings)
        return EngineError("engine", f"failed at {doing}: {_fault_of_engine(error)}")

    with replaced_errors(instead):
        yield


def _fault_of_engine(error: Exception) -> str:
    """A known cause by its SQLSTATE or type; never the error's text."""
    state, kind = getattr(error, "sqlstate", None), type(error).__name__
    return _STATES.get(state or "") or _TYPES.get(kind, f"its driver reports {kind}")


_LIBRARIES = ("duckdb", "ibis", "numpy", "pandas", "polars", "psycopg", "py4j", "pyarrow", "pyspark", "sqlite3")


def is_of_library(error: BaseException) -> bool:
    """Whether an error comes from a library that reads records, and not from a caller's own code."""
    return type(error).__module__.partition(".")[0].lstrip("_") in _LIBRARIES or isinstance(error, UnicodeError)


def columns_of(name: str, columns: Sequence[str]) -> str:
    """A table and the first few columns that are read of it, in words.

    Examples
    --------
    >>> columns_of("the table", ["p", "y"]), columns_of("the table", [])
    ("columns 'p', 'y' of the table", 'the table')
    """
    shown = ", ".join(map(repr, columns[:_MOST_NAMED]))
    return f"{'column' if len(columns) == 1 else 'columns'} {shown} of {name}" if columns else name


def unreadable(name: str, columns: Sequence[str] = ()) -> InputError:
    """The error about values of a table, or of these columns of it, that a library cannot read."""
    return InputError(
        "table",
        f"{columns_of(name, columns)} must hold values of one type that Arrow has",
        got="others, or texts that are not UTF-8",
        remedy="Convert them to one type, or leave the column out",
    )


@contextmanager
def library_errors_in_fixed_words(name: str) -> Iterator[None]:
    """Replace the errors of libraries by one that cannot quote data, and remove them from the chains of other errors.

    Errors of a caller's own code, such as a generator of batches, pass unchanged.
    """

    def instead(error: Exception) -> BaseException | None:
        kind = type(error).__name__
        if kind == "InterruptException":
            return KeyboardInterrupt()
        if kind == "OutOfMemoryException":
            return InputError("table", f"{name} needs more memory to read than there is")
        if is_of_library(error) and not isinstance(error, MemoryError):
            return unreadable(name)
        # The library's own error: cut the errors of other libraries out of its chain
        link: BaseException | None = error
        while isinstance(link, ConfideError):
            link.__cause__ = link.__cause__ if isinstance(link.__cause__, ConfideError) else None
            link.__context__ = link.__context__ if isinstance(link.__context__, ConfideError) else None
            link = link.__cause__ or link.__context__
        return None

    with replaced_errors(instead):
        yield
