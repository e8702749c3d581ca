"""Location of a ledger, a file or a PostgreSQL server, and the errors of both."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

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


Failure = TypeVar("Failure", bound=ConfideError)

_BUSY = "is in use by other processes for too long"

# SQLite's codes and a server's SQLSTATEs, each as an error, what is wrong (of a file, said of its name) and the remedy
FAILURES: dict[int | str, tuple[type[ConfideError], str, str]] = {
    sqlite3.SQLITE_BUSY: (LedgerError, _BUSY, "Try again"),
    sqlite3.SQLITE_LOCKED: (LedgerError, _BUSY, "Try again"),
    sqlite3.SQLITE_FULL: (LedgerError, "cannot grow: the disk is full", "Free some space"),
    sqlite3.SQLITE_READONLY: (LedgerError, "cannot be written: it is read-only", ""),
    sqlite3.SQLITE_CANTOPEN: (LedgerError, "cannot be opened", "Check that its folder exists and is writable"),
    sqlite3.SQLITE_PERM: (LedgerError, "cannot be opened: permission denied", ""),
    sqlite3.SQLITE_IOERR: (LedgerError, "cannot be read or written: the disk reports an error or is full", ""),
    sqlite3.SQLITE_TOOBIG: (FormatError, "contains a row that is too large", "Restore it from a backup"),
    "55P03": (LedgerError, f"it {_BUSY}", "Try again"),
    "57014": (LedgerError, "the server did not answer in time", "Try again"),
    "25006": (LedgerError, "the server is a standby and cannot be written", "Name the primary"),
    "53100": (LedgerError, "it cannot grow: the server's disk is full", ""),
    "42501": (LedgerError, "the role may not do that: limits are the owner's, and charging needs a charging role", ""),
}


def failure(place: Path | Server, code: int | str) -> ConfideError:
    """One line about an error of SQLite or a server. Its own text is not shown, because it may quote a row."""
    kind: type[ConfideError]
    if code in FAILURES:
        kind, requirement, remedy = FAILURES[code]
    elif isinstance(place, Server):
        kind = LedgerError
        requirement = f"the server reports an error (SQLSTATE {code})"
        remedy = ""
    else:
        kind = FormatError
        requirement = "is damaged or not a ledger"
        remedy = "Restore it from a backup"
    return ledger_error(kind, place, requirement, remedy)


def ledger_error(kind: type[Failure], place: Path | Server, requirement: str, remedy: str = "") -> Failure:
    """An error about the ledger at a place, which begins the line."""
    colon = ":" if isinstance(place, Server) else ""
    return kind("ledger", f"{str(place)!r}{colon} {requirement}", remedy=remedy)
