"""Records in SQLite: durable when a transaction ends, atomic across processes, and checked when read.

A ledger is one table of records in a database in WAL mode with `synchronous=FULL`. A committed record survives a crash
of the process or the machine. A new ledger is built in a temporary file next to its path and linked there as a whole.
No connection outlives an operation, so that handles may be shared between threads and processes.
"""

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from confide.errors import FormatError, InputError, LedgerError
from confide.ledger.events import Event, entry_hash, write_event
from confide.ledger.log import Row, failure
from confide.ledger.state import EMPTY_CHECKPOINT, Checkpoint
from confide.support import LEDGER_ID, SCHEMA, OutputExistsError, has_locks, locked, new_file, to_disk

APPLICATION_ID = LEDGER_ID
MOST_BYTES = 2**30
_RESTORE = "Restore the ledger from a backup"
OTHER_LEDGER = (
    "Its charges still count: keep it for the version that made it, and begin a new ledger and calibrate again with "
    "records that it has not charged"
)
"""The remedy for a ledger of another schema, which never counts as empty."""
MOST_TEXT = 16_000_000

_TABLE = """CREATE TABLE record (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  made TEXT NOT NULL,
  body TEXT NOT NULL,
  seal TEXT NOT NULL
) STRICT"""
_NO_UPDATE = "CREATE TRIGGER no_update BEFORE UPDATE ON record BEGIN SELECT RAISE(ABORT, 'append-only'); END"
_NO_DELETE = "CREATE TRIGGER no_delete BEFORE DELETE ON record BEGIN SELECT RAISE(ABORT, 'append-only'); END"
_INSERT = "INSERT INTO record (made, body, seal) VALUES (?, ?, ?)"
_TABLES = {"record": _TABLE, "no_update": _NO_UPDATE, "no_delete": _NO_DELETE}


class Store:
    """The records of one ledger file, which is created if it is missing and `create` is true; `timeout` in seconds."""

    def __init__(self, path: Path, *, create: bool, timeout: float) -> None:
        self.path, self.timeout = path, timeout
        if create and not path.exists():
            _create(path)
        _check_header(path)

    def since(self, number: int) -> list[Row]:
        """The records from this number on as they are stored, in one consistent snapshot; not checked yet."""
        with self._connection(write=False) as connection:
            return _rows(connection, number)

    @contextmanager
    def writing(self, number: int) -> Iterator["Writer"]:
        """A transaction that no other process can interleave. When the block ends without an error, it is on disk."""
        with self._connection(write=True) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield Writer(connection, _rows(connection, number))
            connection.execute("COMMIT")

    @contextmanager
    def lock(self, token: str) -> Iterator[None]:
        """Lock the whole file, for every token; nothing is locked on a system without file locks."""
        with ExitStack() as stack:
            if has_locks():
                try:
                    stack.enter_context(locked(self.path.resolve(), "ledger", self.timeout))
                except InputError as error:
                    raise LedgerError(error.argument, error.requirement, remedy=error.remedy) from None
            yield

    @contextmanager
    def _connection(self, *, write: bool) -> Iterator[sqlite3.Connection]:
        try:
            with closing(self._connect(write=write)) as connection:
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_TEXT)
                for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "synchronous=FULL", "fullfsync=ON"):
                    connection.execute(f"PRAGMA {pragma}")
                if not write:
                    connection.execute("PRAGMA query_only=ON")
                _check_database(connection)
                yield connection
        except sqlite3.Error as error:
            raise failure(self.path, _code(error)) from None
        except UnicodeDecodeError:  # a damaged text, or a message of SQLite with one
            raise failure(self.path, sqlite3.SQLITE_CORRUPT) from None

    def _connect(self, *, write: bool) -> sqlite3.Connection:
        # A reader needs WAL's shared memory file. If it cannot be created, an unused file is read as immutable. Only a
        # connection that may write removes -wal and -shm when it is the last to close.
        wal = self.path.with_name(self.path.name + "-wal")
        fixed = not write and _size(wal) == 0 and not os.access(self.path.parent, os.W_OK)
        may_write = write or (not fixed and os.access(self.path, os.W_OK))
        mode = "mode=rw" if may_write else "mode=ro&immutable=1" if fixed else "mode=ro"
        uri = f"{self.path.absolute().as_uri()}?{mode}"
        return sqlite3.connect(uri, uri=True, timeout=self.timeout, isolation_level=None)


class Writer:
    """Appends records within a transaction. A file has no roles: `by` is None."""

    by: str | None = None

    def __init__(self, connection: sqlite3.Connection, rows: list[Row]) -> None:
        self._connection, self.rows = connection, rows
        last = connection.execute("SELECT id, seal FROM record ORDER BY id DESC LIMIT 1").fetchone()
        self._head = EMPTY_CHECKPOINT if last is None else Checkpoint(*last)

    def append(self, event: Event) -> Row:
        """Append one record, with its hash."""
        made, body = datetime.now(UTC).isoformat(timespec="seconds"), write_event(event)
        self._head = Checkpoint(self._head.number + 1, entry_hash(self._head.record_hash, made, body))
        self._connection.execute(_INSERT, (made, body, self._head.record_hash))
        return self._head.number, made, body, self._head.record_hash


def _rows(connection: sqlite3.Connection, number: int) -> list[Row]:
    """Read records; reading from the beginning also checks the whole file. New records are checked by their hashes."""
    if number == 0 and connection.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
        raise FormatError("ledger", "must pass SQLite's integrity check: it is damaged", remedy=_RESTORE)
    return connection.execute("SELECT id, made, body, seal FROM record WHERE id >= ? ORDER BY id", (number,)).fetchall()


def _create(path: Path) -> None:
    """Create an empty ledger, which is on disk when this returns; an existing file was created by another process.

    Raises
    ------
    LedgerError
        If the file cannot be created.
    """
    try:
        with new_file(path, overwrite=False) as part:
            with closing(sqlite3.connect(part, isolation_level=None)) as connection:
                connection.execute("PRAGMA journal_mode=WAL")
                for statement in _TABLES.values():
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version={SCHEMA}")
            to_disk(part)
    except OutputExistsError:
        return
    except sqlite3.Error as error:
        raise failure(path, _code(error)) from None
    except InputError as error:
        raise LedgerError("ledger", f"{str(path)!r} cannot be created: {error}") from None
    to_disk(path.parent)


def _size(path: Path) -> int:
    """Size of a file in bytes; 0 if it does not exist, or another process removes it at this moment."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _check_header(path: Path) -> None:
    """Check that a file is a ledger before it is opened for use, which might change a foreign database.

    SQLite reads it as an immutable file. Opening and closing it in another way would release the locks of all
    connections of this process. Another process could then write at the same time as a thread of this one.
    """
    try:
        size = path.stat().st_size
        if path.is_dir() or not os.access(path, os.R_OK):
            code = errno.EISDIR if path.is_dir() else errno.EACCES
            raise OSError(code, os.strerror(code))
    except OSError as error:
        raise LedgerError("ledger", f"{str(path)!r} cannot be read: {error.strerror}") from None
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            connection.execute("PRAGMA writable_schema=ON")  # also if pages are in the log, which is not read here
            found = connection.execute("PRAGMA application_id").fetchone()[0] if size >= 100 else None
    except sqlite3.Error:
        found = None
    if found is None:
        raise FormatError("path", "must name a ledger", got=repr(str(path)))
    if found != APPLICATION_ID:
        raise FormatError("path", "must name a ledger, not a database of another program", got=repr(str(path)))
    if size > MOST_BYTES:
        raise FormatError(
            "path", f"must name a ledger of at most {MOST_BYTES} bytes", got=repr(str(path)), remedy="Begin a new one"
        )


def _check_database(connection: sqlite3.Connection) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != SCHEMA:
        stated = f"a ledger of schema {version}"
        raise FormatError("ledger.schema", f"must be {SCHEMA}", got=stated, remedy=OTHER_LEDGER)
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise FormatError("ledger", "must be a ledger, not a database of another program", remedy=_RESTORE)
    found = connection.execute("SELECT name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite~_%' ESCAPE '~'")
    if dict(found.fetchall()) != _TABLES:
        raise FormatError("ledger", "must have the tables of a ledger", remedy=_RESTORE)


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)) & 0xFF
