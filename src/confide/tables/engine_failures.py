"""What went wrong in an engine, in fixed words: engines' own texts may quote records, queries or passwords."""

from collections.abc import Iterator
from contextlib import contextmanager

from confide.errors import ConfideError, InputError


class EngineError(ConfideError):
    """A database or a cluster failed, or refused the query."""


@contextmanager
def fixed_words(doing: str = "the query") -> Iterator[None]:
    """Replace every error of an engine, or of its driver, by one that says no more than is safe."""
    try:
        yield
    except (ConfideError, KeyboardInterrupt, MemoryError):
        raise
    except ImportError as error:
        missing = f"the package {error.name.partition('.')[0]!r}" if error.name else "a package that Ibis needs"
        raise InputError(
            f"{missing} is not installed; the extras confide[postgres] and confide[spark] bring what these engines need"
        ) from None
    except Exception as error:
        raise EngineError(f"the engine failed at {doing}: {_finding(error)}") from None


def _finding(error: Exception) -> str:
    """A known cause by its SQLSTATE or type; never the error's text."""
    state = getattr(error, "sqlstate", None)
    known = {
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
    if state in known:
        return known[state]
    kind = type(error).__name__
    names = {
        "OperationalError": "no connection, or it was lost",
        "IOException": "a file is missing or cannot be read",
        "OutOfMemoryException": "it needs more memory than there is",
        "TableNotFound": "there is no such table",
        "NumericValueOutOfRange": "a number exceeds double precision",
    }
    return names.get(kind, f"its driver reports {kind}")
