"""Location of a ledger, a file or a PostgreSQL server, and the errors of both."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from confide.errors import ConfideError, FormatError, InputTypeError, LedgerError
from confide.support import names_object, names_server, require, shown_address

# Locations


@dataclass(frozen=True, repr=False)
class Server:
    """The address of a ledger on a PostgreSQL server.

    Its text has neither password nor options.

    Examples
    --------
    >>> Server("postgresql://clinic:secret@db.example/budget?sslmode=verify-full")
    Server('postgresql://clinic@db.example/budget')
    """

    url: str

    def __str__(self) -> str:
        return shown_address(self.url)

    def __repr__(self) -> str:
        return f"Server({str(self)!r})"


def parse_location(place: str | Path | Server) -> Path | Server:
    """A file's path, or a server's address."""
    if isinstance(place, Server):
        return place
    if not isinstance(place, str | Path):
        raise InputTypeError("path", "must be a path", got=type(place).__name__)
    must = (
        "must be a file of this machine, or postgresql://ROLE@HOST/DB, which every machine can "
        "charge: an object store cannot hold a ledger, because two jobs could both spend what is left"
    )
    require("ledger", not names_object(place), must)
    return Server(place) if isinstance(place, str) and names_server(place) else Path(place)


def file_of(place: str | Path | Server | None) -> Path | None:
    """The file of a ledger on this machine; None for a server, and without a ledger."""
    location = None if place is None else parse_location(place)
    return location if isinstance(location, Path) else None


# Errors

# The remedy for a ledger of an earlier version, which never counts as empty
OTHER_LEDGER = (
    "Its charges still count: keep the file, begin a new ledger with another name, and enter what was spent with "
    "`confide ledger init --spent EPSILON`"
)

# The remedy for a damaged ledger
RESTORE = "Restore the ledger from a backup"


class NotWrittenError(LedgerError):
    """The server was lost, and certainly nothing was written: the operation may be repeated."""


class StandbyError(LedgerError):
    """A row is on the server, but perhaps on no standby: nothing may be released for it."""


class MissingRecordsError(LedgerError):
    """A ledger lacks a row that was there: it is an older copy, continued from one, or another ledger."""


class _Failure(NamedTuple):
    """An error, what is wrong (of a file, said of its name), and the remedy."""

    kind: type[ConfideError]
    requirement: str
    remedy: str = ""


_BUSY = "is in use by other processes for too long"
_RESTORE_IT = "Restore it from a backup"

# By SQLite's codes and a server's SQLSTATEs
_FAILURES: dict[int | str, _Failure] = {
    sqlite3.SQLITE_BUSY: _Failure(LedgerError, _BUSY, "Try again"),
    sqlite3.SQLITE_LOCKED: _Failure(LedgerError, _BUSY, "Try again"),
    sqlite3.SQLITE_FULL: _Failure(LedgerError, "cannot grow: the disk is full", "Free some space"),
    sqlite3.SQLITE_READONLY: _Failure(LedgerError, "cannot be written: it is read-only"),
    sqlite3.SQLITE_CANTOPEN: _Failure(LedgerError, "cannot be opened", "Check that its folder exists and is writable"),
    sqlite3.SQLITE_PERM: _Failure(LedgerError, "cannot be opened: permission denied"),
    sqlite3.SQLITE_IOERR: _Failure(LedgerError, "cannot be read or written: the disk reports an error or is full"),
    sqlite3.SQLITE_TOOBIG: _Failure(FormatError, "contains a row that is too large", _RESTORE_IT),
    "55P03": _Failure(LedgerError, f"it {_BUSY}", "Try again"),
    "57014": _Failure(LedgerError, "the server did not answer in time", "Try again"),
    "25006": _Failure(LedgerError, "the server is a standby and cannot be written", "Name the primary"),
    "53100": _Failure(LedgerError, "it cannot grow: the server's disk is full"),
    "42501": _Failure(
        LedgerError, "the role may not do that: limits are the owner's, and charging needs a charging role"
    ),
}


def failure(place: Path | Server, code: int | str) -> ConfideError:
    """One line about an error of SQLite or a server. Its own text is not shown, because it may quote a row."""
    if code in _FAILURES:
        return ledger_error(_FAILURES[code].kind, place, _FAILURES[code].requirement, _FAILURES[code].remedy)
    if isinstance(place, Server):
        return ledger_error(LedgerError, place, f"the server reports an error (SQLSTATE {code})")
    return ledger_error(FormatError, place, "is damaged or not a ledger", _RESTORE_IT)


Error = TypeVar("Error", bound=ConfideError)


def ledger_error(kind: type[Error], place: Path | Server, requirement: str, remedy: str = "") -> Error:
    """An error about the ledger at a place, which begins the line."""
    colon = ":" if isinstance(place, Server) else ""
    return kind("ledger", f"{str(place)!r}{colon} {requirement}", remedy=remedy)
