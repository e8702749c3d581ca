"""A ledger on a PostgreSQL server for many machines, with the guarantees of a ledger file.

A writer holds the lock of the table of charges. A commit is on the server's disk when it is acknowledged; a server
configured otherwise raises an error. The server numbers and dates new rows, and names their role (schema.py).
"""

import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from confide.errors import FormatError, InputError, LedgerError
from confide.ledger.location import OTHER_LEDGER, NotWrittenError, Server, StandbyError, failure, ledger_error
from confide.ledger.rows import AddedRow, Connection
from confide.ledger.schema import TABLES, check_role, create_on_server, grant
from confide.support import SCHEMA, log_event, needs_extra

# Hosts of this machine, to which a connection needs no encryption
_LOCAL = ("", "localhost", "127.0.0.1", "::1")

# Detects a lost peer within half a minute
_ALIVE = {"keepalives_idle": "10", "keepalives_interval": "5", "keepalives_count": "3", "tcp_user_timeout": "30000"}

# SQLSTATEs of a server that shuts down, starts, or has ended this session
_GONE = ("57P01", "57P02", "57P03", "57P05", "25P03")

# Prevents other roles from placing functions or tables in the search path that the owner would use
_PATH = "SET search_path = confide, pg_catalog, pg_temp"

# Milliseconds that a statement may take, and that a transaction may be idle, beyond the wait for other processes
_STATEMENT = 30_000
_IDLE = 60_000

# Seconds before a lost server is asked again
_PAUSE = 0.2


def waits_for_server(end: float, *, after: str) -> bool:
    """Whether there is time to ask a lost server again, which is now up to the caller; `end` on the monotonic clock."""
    if time.monotonic() > end:
        return False
    log_event("ledger", "server asked again", after=after)
    time.sleep(_PAUSE)
    return True


@contextmanager
def transaction(place: Server, timeout: float, *, write: bool) -> Iterator[Connection]:
    """A transaction that reads one state, or that writes alone; it is durable when the block ends without an error.

    If the connection is lost in the commit, a new connection checks whether the server has the last row that was added.

    Raises
    ------
    NotWrittenError
        If the server was lost, and nothing was written.
    LedgerError
        If the server rejects it, or if it is unknown whether it wrote. Then release nothing.
    """
    with connected(place, timeout) as raw:
        connection = Connection(raw, on_server=True)
        if not write:
            raw.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield connection
            return
        _begin(raw, place, timeout)
        # If the connection is lost in the block, nothing was written
        yield connection
        try:
            _commit(raw, place)
        except connection_errors() as error:
            if not lost(raw, error) or connection.added is None:
                raise
        else:
            return
    # The connection was lost in the commit: it is unknown whether the row was written
    _settle(place, timeout, connection.added)


def _begin(connection: Any, place: Server, timeout: float) -> None:
    # Waits are bounded, also that of the server for a lost client
    wait = math.ceil(timeout * 1000)
    connection.execute(
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; "  # each statement after the lock sees what is committed
        f"SET LOCAL lock_timeout = {wait}; SET LOCAL statement_timeout = {wait + _STATEMENT}; "
        f"SET LOCAL idle_in_transaction_session_timeout = {wait + _IDLE}"
    )
    # A commit must be on the disk when it is acknowledged
    names = ("synchronous_commit", "fsync", "full_page_writes")
    settings = ", ".join(f"current_setting('{name}')" for name in names)
    synchronous, *durable = connection.execute(f"SELECT {settings}").fetchone()
    if durable != ["on", "on"]:
        requirement = "the server runs with fsync or full_page_writes off and may lose charges"
        raise ledger_error(LedgerError, place, requirement, "Switch them on")
    if synchronous != "remote_apply":
        connection.execute("SET LOCAL synchronous_commit = on")
    connection.execute("SELECT confide.lock_ledger()")


def _commit(connection: Any, place: Server) -> None:
    """Commit, and raise an error if the wait for the standby was cancelled: the server only warns of it."""
    warnings: list[str] = []
    connection.add_notice_handler(lambda notice: warnings.append(notice.severity_nonlocalized))
    connection.execute("COMMIT")
    if "WARNING" in warnings:
        requirement = (
            "the wait for the standby was cancelled: the charge stands on this server alone, and nothing may be "
            "released for it"
        )
        raise ledger_error(StandbyError, place, requirement, "Try again when the standby is back")


def _settle(place: Server, timeout: float, row: AddedRow) -> None:
    """Check until the timeout whether a commit without an acknowledgement succeeded."""
    # Ask again while the server is away; that its standby has not confirmed is an answer
    end = time.monotonic() + timeout
    while True:
        try:
            written = _holds(place, timeout, row)
            break
        except StandbyError:
            raise
        except LedgerError:
            if not waits_for_server(end, after="commit"):
                requirement = (
                    "the connection was lost, and it is unknown whether the last rows were written: count them as "
                    "charged, release nothing, and check with `confide ledger show` when the server is back"
                )
                raise ledger_error(LedgerError, place, requirement) from None
    if not written:
        raise _lost_error(place)


def _holds(place: Server, timeout: float, row: AddedRow) -> bool:
    """Whether a row is on the server, and on its standby."""
    with connected(place, timeout) as connection:
        # With the lock held, every earlier transaction has ended
        _begin(connection, place, timeout)
        if connection.execute(f"SELECT seal FROM {row.table} WHERE id = %s", (row.number,)).fetchone() != (row.seal,):
            return False
        # The row may be on this server alone, because the wait for its standby ended with the lost connection. A commit
        # waits for the standby if it writes, and then for all that was written before: write to its log alone.
        connection.execute("SELECT pg_logical_emit_message(true, 'confide', '')")
        _commit(connection, place)
        return True


@contextmanager
def lock(place: Server, names: Sequence[str], timeout: float) -> Iterator[None]:
    """Lock names on the server, for as long as its connection lives; errors within the block are not the ledger's."""
    with _closing(_connect(place, timeout)) as connection:
        with _failures(place, connection):
            limits = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")
            connection.execute("; ".join(["BEGIN", *(f"SET LOCAL {name} = 0" for name in limits)]))
            for name in sorted(set(names)):
                connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"confide.ledger {name}",))
        yield


def check(place: Server, timeout: float) -> None:
    """Check that a server has a ledger of this version."""
    with connected(place, timeout) as connection:
        _check(connection, place)


def _check(connection: Any, place: Server) -> None:
    tables = connection.execute(
        "SELECT relname FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace WHERE nspname = 'confide'"
    )
    names = {name for (name,) in tables.fetchall()}
    if not names:
        raise ledger_error(LedgerError, place, "there is none", "The owner creates one with `confide ledger init`")
    if "record" in names or not {"ledger", *TABLES} <= names:
        raise ledger_error(FormatError, place, "it is a ledger of an earlier version", OTHER_LEDGER)
    (schema,) = connection.execute("SELECT schema FROM confide.ledger").fetchone()
    if schema != SCHEMA:
        raise ledger_error(FormatError, place, f"it is a ledger of schema {schema}, not {SCHEMA}", OTHER_LEDGER)


def make_server_ledger(
    address: str, *, charge_roles: Sequence[str] = (), read_roles: Sequence[str] = (), timeout: float = 30.0
) -> Server:
    """Create a ledger on a server, or let more roles use an existing one; the role of the address is its owner.

    Parameters
    ----------
    address
        `postgresql://owner@host/database`. A database contains one ledger, in a schema `confide` of its own.
    charge_roles
        Roles that may charge and read, and never change rows. Those that do not exist are created without login.
    read_roles
        Roles that may read everything except the ledger's key.
    """
    place = Server(address)
    for role in (*charge_roles, *read_roles):
        check_role(role)
    with connected(place, timeout) as connection:
        # One process at a time creates it
        connection.execute("BEGIN")
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('confide.ledger'))")
        if connection.execute("SELECT to_regnamespace('confide')").fetchone() == (None,):
            create_on_server(connection)
        _check(connection, place)
        owns = "SELECT pg_has_role(session_user, nspowner, 'MEMBER') FROM pg_namespace WHERE nspname = 'confide'"
        if connection.execute(owns).fetchone() != (True,):
            raise ledger_error(LedgerError, place, "the role of this address is not its owner")
        grant(connection, charge_roles, read_roles)
        # If the connection is lost here, the same command may be run again
        connection.execute("COMMIT")
    return place


@contextmanager
def connected(place: Server, timeout: float) -> Iterator[Any]:
    """A connection, whose errors within the block are errors of the ledger."""
    with _closing(_connect(place, timeout)) as connection, _failures(place, connection):
        connection.execute(_PATH)
        yield connection


def _connect(place: Server, timeout: float) -> Any:
    with needs_extra("a ledger on PostgreSQL", "postgres"):
        import psycopg
    try:
        return psycopg.connect(_dsn(place, timeout), autocommit=True, prepare_threshold=None)
    except psycopg.Error:
        requirement = "the server cannot be reached, or rejects this role"
        remedy = "Check host, port, database, role, password (in a file that PGPASSFILE names) and encryption"
        raise ledger_error(NotWrittenError, place, requirement, remedy) from None


@contextmanager
def _closing(connection: Any) -> Iterator[Any]:
    try:
        yield connection
    finally:
        with suppress(connection_errors()):
            connection.close()


@contextmanager
def _failures(place: Server, connection: Any) -> Iterator[None]:
    """Errors of the server as one line without its own text, which may contain data."""
    try:
        yield
    except connection_errors() as error:
        if lost(connection, error):
            raise _lost_error(place) from None
        raise failure(place, getattr(error, "sqlstate", None) or "unknown") from None


def _dsn(place: Server, timeout: float) -> str:
    """The address with default options: timeouts, detection of a lost peer, and encryption."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    try:
        given = conninfo_to_dict(place.url)
    except psycopg.ProgrammingError:
        requirement = "its address cannot be read"
        raise ledger_error(InputError, place, requirement, "Write postgresql://user@host/database") from None
    defaults = {**_ALIVE, "connect_timeout": str(max(2, math.ceil(timeout))), "fallback_application_name": "confide"}
    # Encryption, unless all hosts are this machine or sockets, or the environment decides
    hosts = str(given.get("host") or os.environ.get("PGHOST", "")).split(",")
    if "PGSSLMODE" not in os.environ and not all(host in _LOCAL or host.startswith("/") for host in hosts):
        defaults["sslmode"] = "require"
    options: dict[str, Any] = {**defaults, **given, "client_encoding": "utf8"}
    text: str = make_conninfo(**options)
    return text


def connection_errors() -> type[Exception]:
    """The errors of psycopg, which is imported when a server is used."""
    import psycopg

    error: type[Exception] = psycopg.Error
    return error


def lost(connection: Any, error: Exception) -> bool:
    """Whether an error means that the connection is gone."""
    state = getattr(error, "sqlstate", None) or ""
    return bool(connection.broken or connection.closed or state[:2] == "08" or state in _GONE)


def _lost_error(place: Server) -> NotWrittenError:
    return ledger_error(NotWrittenError, place, "the connection was lost, and nothing was charged", "Try again")
