"""What went wrong with a table, in fixed words: the engines' own texts may quote records, and go no further."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from confide.errors import ConfideError, FormatError, InputError
from confide.tables.formats import Format


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
        raise FormatError(f"{names} {_of_file(str(error), form)}") from None


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
        raise InputError(f"{missing} is not installed; {brings}") from None
    except Exception as error:
        raise EngineError(f"the engine failed at {doing}: {_of_engine(error)}") from None


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
