"""Errors without values: failures of files, of engines and of packages that read records.

The texts of other packages may quote records, so that they are replaced. Of such a text, only numbers of rows and cells
are taken.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from confide.errors import ConfideError, FormatError, InputError, replaced_errors
from confide.support import store_reason
from confide.tables.deferred import duckdb, pa
from confide.tables.file_formats import Format
from confide.tables.row_errors import MOST_NAMED

NOT_UTF8 = (
    "it is not UTF-8 text; save it again as UTF-8 (in Excel: Save as, CSV UTF-8), or convert it, as Latin-1 by "
    "iconv -f latin1 -t utf-8 OLD > NEW (for Unicode text of Excel, -f utf-16)"
)


def file_errors_in_fixed_words(names: str, form: Format) -> AbstractContextManager[None]:
    """Replace every error of reading files by one that cannot quote data."""

    def instead(error: Exception) -> BaseException | None:
        if isinstance(error, duckdb.InterruptException):
            return KeyboardInterrupt()
        if isinstance(error, duckdb.Error) and (reason := store_reason(error)) is not None:
            return InputError("path", f"{names} cannot be read: {reason}")
        if isinstance(error, duckdb.Error | pa.ArrowException | OSError | UnicodeDecodeError):
            return FormatError("path", f"{names} {_fault_of_file(str(error), form)}")
        return None

    return replaced_errors(instead)


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
    state = getattr(error, "sqlstate", None)
    kind = type(error).__name__
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
    shown = ", ".join(map(repr, columns[:MOST_NAMED]))
    return f"{'column' if len(columns) == 1 else 'columns'} {shown} of {name}"


def unreadable(name: str, columns: Sequence[str] = ()) -> InputError:
    """The error about values of a table, or of these columns of it, that no package can read."""
    return InputError(
        "table",
        f"{columns_of(name, columns)} must hold values of one type that Arrow has",
        got="others, or texts that are not UTF-8",
        remedy="Convert them to one type, or leave the column out",
    )


def library_errors_in_fixed_words(name: str) -> AbstractContextManager[None]:
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

    return replaced_errors(instead)


def _cut_chain(error: BaseException) -> None:
    """Remove other errors from the causes and contexts of an error of confide; no other error is changed."""
    link: BaseException | None = error
    while isinstance(link, ConfideError):
        link.__cause__ = link.__cause__ if isinstance(link.__cause__, ConfideError) else None
        link.__context__ = link.__context__ if isinstance(link.__context__, ConfideError) else None
        link = link.__cause__ or link.__context__
