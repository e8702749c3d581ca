"""Errors without values: rows that cannot be used, and failures of files, of engines and of packages that read records.

The texts of other packages may quote records, so that they are replaced. Of such a text, only numbers of rows and cells
are taken.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import msgspec
import numpy as np
from numpy.typing import NDArray

from confide.errors import ConfideError, FormatError, InputError, replaced_errors
from confide.support import store_reason
from confide.tables.file_formats import Format

# So many columns are named in an error. Of more columns with unusable rows, the requirement states the kind.
_MOST_NAMED = 3

_SKIP = "Records with missing values are left out by skip_incomplete; results are then about complete records alone"


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


@dataclass(frozen=True, order=True)
class _RowCount:
    """A number of rows, and the first of them if rows have an order."""

    number: int = 0
    first: int | None = None

    @classmethod
    def of(cls, wrong: NDArray[np.bool_], start: int | None) -> "_RowCount":
        """The rows that `wrong` marks in a batch, which begins at row `start` of an order."""
        places = np.flatnonzero(wrong)
        return cls(len(places), None if start is None or not len(places) else start + int(places[0]))

    def __add__(self, other: "_RowCount") -> "_RowCount":
        firsts = [row for row in (self.first, other.first) if row is not None]
        return _RowCount(self.number + other.number, min(firsts, default=None))

    def in_words(self, rows: Rows) -> str:
        words = "1 does not" if self.number == 1 else f"{self.number} do not"
        if self.first is None:
            return words
        return f"{words}, {'row' if self.number == 1 else 'the first is row'} {self.first + rows.first}"


@dataclass
class _Broken:
    reported: _RowCount = _RowCount()  # rows that break no earlier requirement
    columns: dict[str, _RowCount] = field(default_factory=dict)  # by the requirement in words about a column
    hints: dict[str, int] = field(default_factory=Counter)  # rows that a correction would make usable, by correction

    def merge(self, other: "_Broken") -> None:
        self.reported += other.reported
        for words, count in other.columns.items():
            self.columns[words] = self.columns.get(words, _RowCount()) + count
        self.hints = Counter(self.hints) + Counter(other.hints)

    def sentences(self, requirement: str, rows: Rows) -> list[str]:
        """How many rows break it, in which columns, and how many would not after a correction."""
        columns = self.columns
        if not 0 < len(columns) <= _MOST_NAMED:
            columns = {requirement: self.reported if self.reported.number else max(columns.values())}
        return [
            *(f"{words} in every row; {count.in_words(rows)}" for words, count in sorted(columns.items())),
            *(f"{number} would {hint}" for hint, number in sorted(self.hints.items())),
        ]


@dataclass
class RowErrors:
    """Count the rows that break requirements while a table is read, in any order of its batches."""

    by_reason: dict[int, _Broken] = field(default_factory=dict)
    missing: bool = False  # whether some of these rows lack a value

    def note(self, reasons: NDArray[np.integer], start: int | None, column_errors: Sequence[ColumnError] = ()) -> None:
        """Record the first reason of each record of a batch (0 for none), which begins at row `start` of an order."""
        for reason in np.unique(reasons[reasons != 0]).tolist():
            self._broken(reason).reported += _RowCount.of(reasons == reason, start)
        for error in column_errors:
            self.missing |= error.missing
            if error.wrong.any():
                of_column = {error.requirement: _RowCount.of(error.wrong, start)}
                self._broken(error.reason).merge(_Broken(columns=of_column, hints=dict(error.hints)))

    def add(self, reason: int, number: int) -> None:
        """Record a number of rows with one reason."""
        if number:
            self._broken(reason).reported += _RowCount(number)

    def merge(self, other: "RowErrors") -> None:
        """Add the errors that another object has recorded."""
        for reason, broken in other.by_reason.items():
            self._broken(reason).merge(broken)
        self.missing |= other.missing

    def _broken(self, reason: int) -> _Broken:
        return self.by_reason.setdefault(reason, _Broken())

    def counts(self) -> dict[int, int]:
        """Rows per reason."""
        return {reason: broken.reported.number for reason, broken in self.by_reason.items() if broken.reported.number}

    def to_json(self) -> str:
        """The errors as text, as an engine's workers return them."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str) -> "RowErrors":
        """The errors of a text of `to_json`."""
        return msgspec.json.decode(text, type=cls)

    def __bool__(self) -> bool:
        return bool(self.counts())

    def refuse(self, requirements: Sequence[str], rows: Rows = Rows(), *, skips: bool = False) -> None:
        """Raise if there are errors; `skips` states that records with missing values can be left out."""
        if not self:
            return
        sentences: list[str] = []
        for reason, broken in sorted(self.by_reason.items()):
            sentences += broken.sentences(requirements[reason - 1], rows)
        ordered = any(broken.reported.first is not None for broken in self.by_reason.values())
        must = "; ".join(sentences) + (f" ({rows.in_words})" if ordered else "")
        raise InputError("table", must, remedy=_SKIP if skips and self.missing else "")


# Files, engines, and the packages that read records.

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


# The packages that read records.
_READERS = ("duckdb", "ibis", "numpy", "pandas", "polars", "psycopg", "py4j", "pyarrow", "pyspark", "sqlite3")


def columns_of(name: str, columns: Sequence[str]) -> str:
    """A table and the first few columns that are read of it, in words.

    Examples
    --------
    >>> columns_of("the table", ["p", "y"]), columns_of("the table", [])
    ("columns 'p', 'y' of the table", 'the table')
    """
    if not columns:
        return name
    shown = ", ".join(map(repr, columns[:_MOST_NAMED]))
    return f"{'column' if len(columns) == 1 else 'columns'} {shown} of {name}"


def unreadable(name: str, columns: Sequence[str] = ()) -> InputError:
    """The error about values of a table, or of these columns of it, that no package can read."""
    return InputError(
        "table",
        f"{columns_of(name, columns)} must hold values of one type that Arrow has",
        got="others, or texts that are not UTF-8",
        remedy="Convert them to one type, or leave the column out",
    )


@contextmanager
def library_errors_in_fixed_words(name: str) -> Iterator[None]:
    """Replace the errors of packages that read records, and remove these errors from the chains of confide's own.

    Errors of a caller's own code, such as a generator of batches, pass unchanged.
    """

    def instead(error: Exception) -> BaseException | None:
        kind = type(error).__name__
        if kind == "InterruptException":
            return KeyboardInterrupt()
        if kind == "OutOfMemoryException":
            return InputError("table", f"{name} needs more memory to read than there is")
        of_reader = type(error).__module__.partition(".")[0].lstrip("_") in _READERS
        if (of_reader or isinstance(error, UnicodeError)) and not isinstance(error, MemoryError):
            return unreadable(name)
        _cut_chain(error)
        return None

    with replaced_errors(instead):
        yield


def _cut_chain(error: BaseException) -> None:
    """Remove other errors from the causes and contexts of an error of confide; no other error is changed."""
    link: BaseException | None = error
    while isinstance(link, ConfideError):
        link.__cause__ = link.__cause__ if isinstance(link.__cause__, ConfideError) else None
        link.__context__ = link.__context__ if isinstance(link.__context__, ConfideError) else None
        link = link.__cause__ or link.__context__
