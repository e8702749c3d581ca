"""A ledger in an SQLite file: durable when a transaction ends, and checked when it is opened.

The database is in WAL mode with `synchronous=FULL`: a committed row survives a crash of the process or the machine. No
connection outlives an operation, so that handles may be shared between threads and processes.
"""

import errno
import hashlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from confide.errors import FormatError, InputError, LedgerError
from confide.ledger.location import OTHER_LEDGER, RESTORE, failure
from confide.ledger.rows import Connection
from confide.ledger.schema import first_row, guards, statements
from confide.support import LEDGER_ID, SCHEMA, OutputExistsError, has_locks, log_event, new_file, to_disk

# The size of SQLite's header, and the largest file
_LEAST_BYTES = 100
MOST_BYTES = 2**33

# SQLite rejects longer values, such as those of a damaged file
MOST_TEXT = 16_000_000

_PRAGMAS = ("trusted_schema=OFF", "cell_size_check=ON", "synchronous=FULL", "fullfsync=ON", "foreign_keys=ON")
_STATEMENTS = statements(server=False) | guards()


# Opening


def check(path: Path, *, create: bool) -> None:
    """Create a missing file if `create` is true, and check that it is a ledger before it is opened for use."""
    if create and not path.exists():
        _create(path)
    try:
        size = _size_of_readable(path)
    except OSError as error:
        raise LedgerError("ledger", f"{str(path)!r} cannot be read: {error.strerror}") from None
    application = _application(path) if size >= _LEAST_BYTES else None
    if application is None:
        raise FormatError("path", "must name a ledger", got=repr(str(path)))
    if application != LEDGER_ID:
        raise FormatError("path", "must name a ledger, not a database of another program", got=repr(str(path)))
    if size > MOST_BYTES:
        must = f"must name a ledger of at most {MOST_BYTES} bytes"
        raise FormatError("path", must, got=repr(str(path)), remedy="Begin a new one")


def _size_of_readable(path: Path) -> int:
    """The size of a file in bytes; raises an error also for a folder, and for a file that may not be read."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    size = path.stat().st_size
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return size


def _application(path: Path) -> int | None:
    """The number of the program whose database a file is; None if it is no database.

    SQLite reads the file as immutable, because to open a foreign database might change it, and because any other way to
    open and close the file would release the locks of all connections of this process: another process could then write
    at the same time as a thread of this one.
    """
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            connection.execute("PRAGMA writable_schema=ON")  # also if pages are in the log, which is not read here
            return int(connection.execute("PRAGMA application_id").fetchone()[0])
    except sqlite3.Error:
        return None


def _create(path: Path) -> None:
    """Create an empty ledger, which is on disk when this returns."""
    try:
        # Built in a temporary file next to its path, and linked there as a whole
        with new_file(path, overwrite=False) as temporary:
            with closing(sqlite3.connect(temporary, isolation_level=None)) as connection:
                connection.execute("PRAGMA journal_mode=WAL")
                for statement in (*_STATEMENTS.values(), first_row()):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id={LEDGER_ID}")
                connection.execute(f"PRAGMA user_version={SCHEMA}")
            to_disk(temporary)
    except OutputExistsError:
        # Another process was faster
        return
    except sqlite3.Error as error:
        raise failure(path, _code(error)) from None
    except InputError as error:
        raise LedgerError("ledger", f"{str(path)!r} cannot be created: {error}") from None
    to_disk(path.parent)
    log_event("ledger", "created", file=path.name)


# Transactions


@contextmanager
def transaction(path: Path, timeout: float, *, write: bool, by: str | None) -> Iterator[Connection]:
    """A transaction that reads one state; one that writes, in the name of `by`, begins when no other process writes."""
    with _failures(path), closing(_connect(path, timeout, write=write)) as connection:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_TEXT)
        for pragma in _PRAGMAS if write else (*_PRAGMAS, "query_only=ON"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        _check_tables(connection)
        yield Connection(connection, on_server=False, by=by)
        connection.execute("COMMIT")


@contextmanager
def _failures(path: Path) -> Iterator[None]:
    """Errors of SQLite as one line without its own text, which may contain data."""
    try:
        yield
    except sqlite3.Error as error:
        raise failure(path, _code(error)) from None
    except UnicodeDecodeError:  # a damaged text, or a message of SQLite with one
        raise failure(path, sqlite3.SQLITE_CORRUPT) from None


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)) & 0xFF


def _connect(path: Path, timeout: float, *, write: bool) -> sqlite3.Connection:
    # A reader needs WAL's shared memory file. If it cannot be created, an unused file is read as immutable. Only a
    # connection that may write removes -wal and -shm when it is the last to close.
    wal = path.with_name(path.name + "-wal")
    fixed = not write and _size(wal) == 0 and not os.access(path.parent, os.W_OK)
    may_write = write or (not fixed and os.access(path, os.W_OK))
    mode = "mode=rw" if may_write else "mode=ro"
    if fixed:
        mode = "mode=ro&immutable=1"
    uri = f"{path.absolute().as_uri()}?{mode}"
    return sqlite3.connect(uri, uri=True, timeout=timeout, isolation_level=None)


def _size(path: Path) -> int:
    """The size of a file in bytes; 0 if it does not exist, or another process removes it at this moment."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _check_tables(connection: sqlite3.Connection) -> None:
    """Check that a file has the schema, the tables and the triggers of a ledger."""
    tables = connection.execute("SELECT name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite~_%' ESCAPE '~'")
    statements_of_file = dict(tables.fetchall())
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != SCHEMA or "record" in statements_of_file:
        stated = f"a ledger of schema {version}" if version != SCHEMA else "a ledger of an earlier version"
        raise FormatError("ledger.schema", f"must be {SCHEMA}", got=stated, remedy=OTHER_LEDGER)
    if connection.execute("PRAGMA application_id").fetchone()[0] != LEDGER_ID:
        raise FormatError("ledger", "must be a ledger, not a database of another program", remedy=RESTORE)
    if statements_of_file != _STATEMENTS:
        raise FormatError("ledger", "must have the tables of a ledger", remedy=RESTORE)


# Locks


@contextmanager
def lock(path: Path, names: Sequence[str], timeout: float) -> Iterator[None]:
    """Lock names by files next to the ledger, removed at the end. On a system without file locks nothing is locked.

    The lock of a process that is killed ends; its empty file remains until the same name is locked again.
    """
    # The same for every name of the file
    real = path.resolve()
    with ExitStack() as stack:
        # An open connection, so that the transactions meanwhile need not write the log back into the file
        with _failures(path):
            keeper = stack.enter_context(closing(_connect(path, timeout, write=True)))
            keeper.execute("SELECT schema FROM ledger")
        # In one order, so that no two processes wait for each other
        for name in sorted(set(names)) if has_locks() else ():
            digest = hashlib.sha256(name.encode()).hexdigest()[:32]
            stack.enter_context(_locked(real.with_name(f"{real.name}-{digest}.lock")))
        yield


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    import fcntl

    while True:
        try:
            handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise LedgerError("ledger", f"{str(file)!r} cannot be locked: {error.strerror}") from None
        fcntl.flock(handle, fcntl.LOCK_EX)
        if _is_open(handle, file):
            break
        # Its last holder has removed the file while this process waited
        os.close(handle)
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
        os.close(handle)


def _is_open(handle: int, file: Path) -> bool:
    """Whether a handle is that of the file with this name."""
    try:
        return os.path.samestat(os.fstat(handle), file.stat())
    except FileNotFoundError:
        return False
