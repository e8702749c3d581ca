"""What cannot be used: rows of a table, files and engines. Never what they hold.

Rows are counted, with why, and where the first of them is. What went wrong with a file or an engine is said in fixed
words: the engines' own texts may quote records, and go no further.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import ConfideError, FormatError, InputError
from confide.tables.file_formats import Format

_NAMED = 3
"""So many columns are named one by one; of more, the first stands for all."""

_SKIP = "Records with missing values are left out by skip_incomplete"


@dataclass(frozen=True)
class Rows:
    """How rows are counted in messages, as whoever opens the source elsewhere counts them.

    Parameters
    ----------
    first
        The number of the first.
    in_words
        How they are counted.
    """

    first: int = 0
    in_words: str = "rows count from 0"


@dataclass(frozen=True)
class ColumnError:
    """What is wrong with one column in a batch, also in records in which another column comes first.

    Parameters
    ----------
    reason
        The requirement that is broken, counted from 1.
    requirement
        The same, in words about this column.
    wrong
        The records, boolean, shape (n,).
    missing
        Whether some of them lack a value.
    hints
        How many of them would be right if something were done about them, by what that is.
    """

    reason: int
    requirement: str
    wrong: NDArray[np.bool_]
    missing: bool = False
    hints: Mapping[str, int] = field(default_factory=dict)


class RowErrors:
    """Counts the records that break requirements while a table passes by, in whatever order its batches come.

    Examples
    --------
    >>> reasons = RowErrors()
    >>> reasons.note(np.array([0, 1], np.int8), start=100)
    >>> reasons.refuse(["column 'score' must hold a number"])
    Traceback (most recent call last):
    confide.errors.InputError: table: column 'score' must hold a number in every row; 1 does not, row 101 ...
    """

    def __init__(self) -> None:
        self._found: dict[int, tuple[int, int | None]] = {}
        self._named: dict[tuple[int, str], tuple[int, int | None]] = {}
        self._hints: dict[tuple[int, str], int] = {}
        self.missing = False

    def note(self, reasons: NDArray[np.integer], start: int | None, column_errors: Sequence[ColumnError] = ()) -> None:
        """Record what is wrong in a batch, 0 for nothing, that begins at row `start` if rows have an order.

        `reasons` has the first reason of each record; `column_errors` name all columns of which more can be said, if
        there is anything wrong with them.
        """
        for reason in np.unique(reasons[reasons != 0]).tolist():
            self.add(reason, *_counted(reasons == reason, start))
        for one in column_errors:
            _add(self._named, (one.reason, one.requirement), *_counted(one.wrong, start))
            self.missing |= one.missing
            for hint, number in one.hints.items():
                self._hints[one.reason, hint] = self._hints.get((one.reason, hint), 0) + number

    def add(self, reason: int, number: int, first: int | None = None) -> None:
        """Record a number of rows with one reason."""
        _add(self._found, reason, number, first)

    def merge(self, other: "RowErrors") -> None:
        """Record what another has found."""
        for reason, (number, first) in other._found.items():
            self.add(reason, number, first)
        for named, (number, first) in other._named.items():
            _add(self._named, named, number, first)
        for hint, number in other._hints.items():
            self._hints[hint] = self._hints.get(hint, 0) + number
        self.missing |= other.missing

    def counts(self) -> dict[int, int]:
        """Rows per reason."""
        return {reason: number for reason, (number, _) in self._found.items()}

    def __bool__(self) -> bool:
        return bool(self._found)

    def refuse(self, requirements: Sequence[str], rows: Rows = Rows(), *, skips: bool = False) -> None:
        """Raise if anything was found, with the requirements that are broken in their order.

        `skips` says that records with missing values can be left out.
        """
        if not self._found:
            return
        parts = []
        for reason in sorted({*self._found, *(reason for reason, _ in self._named)}):
            named = {words: found for (one, words), found in self._named.items() if one == reason}
            if not 0 < len(named) <= _NAMED:
                named = {requirements[reason - 1]: self._found.get(reason) or max(named.values())}
            parts += [
                f"{words} in every row; {_which(count, first, rows)}" for words, (count, first) in sorted(named.items())
            ]
            parts += [f"{number} would {hint}" for (one, hint), number in self._hints.items() if one == reason]
        where = f" ({rows.in_words})" if any(first is not None for _, first in self._found.values()) else ""
        raise InputError("table", "; ".join(parts) + where, remedy=_SKIP if skips and self.missing else "")


def _add(counts: dict[Any, tuple[int, int | None]], key: Any, number: int, first: int | None) -> None:
    count, before = counts.get(key, (0, first))
    some = [row for row in (before, first) if row is not None]
    if number:
        counts[key] = (count + number, min(some) if some else None)


def _counted(wrong: NDArray[np.bool_], start: int | None) -> tuple[int, int | None]:
    """How many rows are wrong, and the first of them."""
    places = np.flatnonzero(wrong)
    return len(places), None if start is None or not len(places) else start + int(places[0])


def _which(count: int, first: int | None, rows: Rows) -> str:
    words = "1 does not" if count == 1 else f"{count} do not"
    if first is None:
        return words
    return f"{words}, row {first + rows.first}" if count == 1 else f"{words}, the first is row {first + rows.first}"


class EngineError(ConfideError):
    """A database or a cluster failed, or refused the query."""


@contextmanager
def of_files(names: str, form: Format) -> Iterator[None]:
    """Replace every error of reading files by one that says no more than is safe."""
    import duckdb
    import pyarrow as pa

    try:
        yield
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except (duckdb.Error, pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise FormatError("path", f"{names} {_of_file(str(error), form)}") from None


def _of_file(text: str, form: Format) -> str:
    if text.startswith("Out of Memory"):
        return "needs more memory to read than there is"
    sniffing = "Error when sniffing file" in text
    if form.kind != "csv" or not ("CSV Error" in text or sniffing):
        return f"cannot be read: it is truncated, damaged or not {form.in_words}"
    if sniffing:
        return (
            "cannot be read: its lines do not look like one CSV table; they must have the same number of values, "
            "separated and quoted alike, and end alike"
        )
    line = re.search(r"\A[A-Za-z ]*Error: CSV Error on Line: ([0-9]{1,15})$", text.partition("\n")[0])
    where = f" on line {line[1]}" if line else ""
    if "Invalid unicode" in text or "not utf-8 encoded" in text:
        return (
            f"cannot be read{where}: it is not UTF-8 text; save it anew as UTF-8 (in Excel: Save as, CSV UTF-8), or "
            "convert it, as Latin-1 by iconv -f latin1 -t utf-8 OLD > NEW"
        )
    if text.startswith("Conversion Error"):
        return (
            f"cannot be read{where}: a value does not fit the type that the first rows of its column have; "
            "leave that column out with keep, or write CSV, which keeps every column as it is"
        )
    return (
        f"cannot be read{where}: a line has more or fewer values than the header has names, or a quote does not close"
    )


_BRING = (
    "the extras confide[postgres] and confide[spark] bring what these engines need, and ibis-framework[NAME] what the "
    "engine of that name needs"
)


@contextmanager
def of_engine(doing: str = "the query", brings: str = _BRING) -> Iterator[None]:
    """Replace every error of an engine, or of its driver, by one that says no more than is safe."""
    try:
        yield
    except (ConfideError, KeyboardInterrupt, MemoryError):
        raise
    except ImportError as error:
        missing = f"the package {error.name.partition('.')[0]!r}" if error.name else "a package that Ibis needs"
        raise InputError("source", f"{missing} is not installed", remedy=brings) from None
    except Exception as error:
        raise EngineError("engine", f"failed at {doing}: {_of_engine(error)}") from None


_STATES = {
    "42501": "the role has no right to read the table",
    "42P01": "there is no such table",
    "3D000": "there is no such database",
    "28P01": "the password was refused",
    "28000": "the role was refused",
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
    "OperationNotDefinedError": (
        "Ibis cannot do with it what was asked (people need numbered rows, skip_incomplete a filter of lists)"
    ),
}


def _of_engine(error: Exception) -> str:
    """A known cause by its SQLSTATE or type; never the error's text."""
    state = getattr(error, "sqlstate", None)
    kind = type(error).__name__
    return _STATES.get(state or "") or _TYPES.get(kind, f"its driver reports {kind}")
