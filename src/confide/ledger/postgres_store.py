"""Records on a PostgreSQL server for many machines, with the guarantees of a ledger file.

A writer holds the table's lock from before it reads the records until its transaction ends, so that no other process
charges between its check and its charge. A commit is on the server's disk when it is acknowledged; a server configured
otherwise raises an error. The server numbers, dates and hashes new records (postgres_schema.py).

If the connection is lost before the commit was requested, nothing was written. If it is lost afterwards, the result is
unknown at first. The store checks, behind the same lock, whether the record is there. If it cannot check, it raises an
error, and nothing is released.
"""

import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from confide.errors import ConfideError, FormatError, InputError, LedgerError
from confide.ledger import postgres_schema
from confide.ledger.events import Event, write_event
from confide.ledger.log import NotWrittenError, Row, Server, StandbyError, failure, ledger_error
from confide.ledger.store import OTHER_LEDGER
from confide.support import log_event, needs_extra

LEAST_VERSION = 120000
_LOCAL = ("", "localhost", "127.0.0.1", "::1")
_ALIVE = {"keepalives_idle": "10", "keepalives_interval": "5", "keepalives_count": "3", "tcp_user_timeout": "30000"}
"""Detects a lost peer within half a minute."""
_ALL = "SELECT id, made, body, seal FROM confide.record WHERE id >= %s ORDER BY id"
_SHOWN = "SELECT id, made, body, seal FROM confide.shown WHERE id >= %s ORDER BY id"
_PATH = "SET search_path = pg_catalog, pg_temp"
"""Prevents other roles from placing functions in the search path that the owner would run."""
_PAUSE = 0.2
_LOST = "the connection was lost, and nothing was charged; try again"
_ALONE = (
    "the wait for the standby was cancelled: the charge stands on this server alone, and nothing may be released for "
    "it; try again when the standby is back"
)
_UNKNOWN = (
    "the connection was lost, and it is unknown whether the last records were written: count them as charged, "
    "release nothing, and check with `confide ledger show` when the server is back"
)


class PostgresStore:
    """The records of one ledger on a server; `timeout` is in seconds, for waiting on others and on the server."""

    def __init__(self, place: Server, *, timeout: float) -> None:
        self.place, self.timeout = place, timeout

    def since(self, number: int) -> list[Row]:
        """The records from this number on as they are stored, in one consistent snapshot; not checked yet.

        A role that may only read does not get the ledger's key.
        """
        with self._connection() as connection:
            return _rows(connection, _ALL if self._state(connection).sees_all else _SHOWN, number)

    @contextmanager
    def writing(self, number: int) -> Iterator["Writer"]:
        """A transaction that no other process can interleave. It is durable when the block ends without an error.

        Raises
        ------
        NotWrittenError
            If the server was lost, and nothing was written.
        LedgerError
            If the server rejects it, or if it is unknown whether it wrote. Then release nothing.
        """
        with self._connection() as connection:
            state = self._state(connection)
            state.refuse_forgetful(self.place)
            self._begin(connection)
            writer = Writer(connection, state.role, _rows(connection, _ALL, number))
            yield writer
            try:
                self._commit(connection)
            except connection_errors() as error:
                if not lost(connection, error) or writer.last is None:
                    raise
            else:
                return
        assert writer.last is not None
        self._settle(writer.last)

    def _commit(self, connection: Any) -> None:
        """Commit, and raise an error if the wait for the standby was cancelled: the server only warns of it."""
        warnings: list[str] = []
        connection.add_notice_handler(lambda notice: warnings.append(notice.severity_nonlocalized))
        connection.execute("COMMIT")
        if "WARNING" in warnings:
            raise ledger_error(StandbyError, self.place, _ALONE)

    @contextmanager
    def lock(self, token: str) -> Iterator[None]:
        """Lock a token on the server; the lock ends with its connection."""
        with self._connection() as connection:
            connection.execute(
                f"BEGIN; SET LOCAL lock_timeout = {math.ceil(self.timeout * 1000)}; "
                "SET LOCAL idle_in_transaction_session_timeout = 0"
            )
            connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"confide.ledger {token}",))
            yield

    def _settle(self, last: Row) -> None:
        """Find out whether a commit without an acknowledgement succeeded, by checking until the timeout."""
        end = time.monotonic() + self.timeout
        while True:
            try:
                there = self._holds(last)
                break
            except StandbyError:
                raise
            except LedgerError:
                if time.monotonic() > end:
                    raise ledger_error(LedgerError, self.place, _UNKNOWN) from None
                log_event("ledger", "server asked again", after="commit")
                time.sleep(_PAUSE)
        if not there:
            raise ledger_error(NotWrittenError, self.place, _LOST)

    def _holds(self, last: Row) -> bool:
        """Whether a record is there, and on the standby. With the lock held, every earlier transaction has ended.

        A record that can be read may be on this server alone, because the wait for its standby ended with the lost
        connection. A commit waits for the standby only if it writes, and then for all that was written before it.
        """
        with self._connection() as connection:
            self._begin(connection)
            found = connection.execute("SELECT seal FROM confide.record WHERE id = %s", (last[0],)).fetchone()
            if found != (last[3],):
                return False
            connection.execute("SELECT pg_logical_emit_message(true, 'confide', '')")  # only in the write-ahead log
            self._commit(connection)
            return True

    def _begin(self, connection: Any) -> None:
        wait = math.ceil(self.timeout * 1000)
        connection.execute(
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; "  # each statement after the lock sees what is committed
            f"SET LOCAL lock_timeout = {wait}; SET LOCAL statement_timeout = {wait + 30_000}; "
            f"SET LOCAL idle_in_transaction_session_timeout = {wait + 60_000}"  # for a lost client
        )
        if connection.execute("SELECT current_setting('synchronous_commit')").fetchone() != ("remote_apply",):
            connection.execute("SET LOCAL synchronous_commit = on")
        connection.execute("SELECT confide.lock_ledger()")

    def _state(self, connection: Any) -> "_State":
        """The rights of the role, after checking that the ledger's triggers are unchanged."""
        found = connection.execute(postgres_schema.STATE).fetchone()
        if found is None or found[1] is None or not found[1].startswith("confide"):
            raise ledger_error(
                LedgerError, self.place, "there is none; the owner creates one with `confide ledger init`"
            )
        role, comment, version, fsync, whole_pages, sees_all, owns, ruled, triggers, functions = found
        if comment != postgres_schema.MARK:
            has = f"it has the schema {comment[:40]!r}, not {postgres_schema.MARK!r}. {OTHER_LEDGER}"
            raise ledger_error(FormatError, self.place, has)
        if version < LEAST_VERSION:
            raise ledger_error(LedgerError, self.place, "the server is older than PostgreSQL 12; upgrade it")
        if ruled or not postgres_schema.guards_unchanged(triggers or {}, functions or {}):
            saying = "the triggers that guard its records were changed; compare it with a backup"
            raise ledger_error(FormatError, self.place, saying)
        return _State(role, sees_all, owns, fsync == "on" and whole_pages == "on")

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        with connected(self.place, self.timeout) as connection:
            yield connection


class _State:
    def __init__(self, role: str, sees_all: bool, owns: bool, durable: bool) -> None:
        self.role, self.sees_all, self.owns, self.durable = role, sees_all, owns, durable

    def refuse_forgetful(self, place: Server) -> None:
        if not self.durable:
            saying = "the server runs with fsync or full_page_writes off and may lose charges; switch them on"
            raise ledger_error(LedgerError, place, saying)
        if not self.sees_all:
            raise ledger_error(LedgerError, place, f"role {self.role!r} may read but not charge")


class Writer:
    """Appends records within a transaction, in the name of a role."""

    def __init__(self, connection: Any, by: str, rows: list[Row]) -> None:
        self._connection, self.by, self.rows = connection, by, rows
        self.last: Row | None = None

    def append(self, event: Event) -> Row:
        """Append one record; the server numbers, dates and hashes it."""
        body = write_event(event)
        if "\\u0000" in body.replace("\\\\", ""):
            raise InputError("release", "must not contain the character U+0000, which PostgreSQL cannot store")
        added = self._connection.execute(
            "INSERT INTO confide.record (body) VALUES (%s) RETURNING id, made, seal", (body,)
        ).fetchone()
        if added is None:
            raise LedgerError("ledger", "the ledger's server accepted a record and stored none")
        number, made, sealed = added
        self.last = (number, made, body, sealed)
        return self.last


def make_server_ledger(
    address: str, *, charge_roles: Sequence[str] = (), read_roles: Sequence[str] = (), timeout: float = 30.0
) -> Server:
    """Create a ledger on a server, or let more roles use an existing one; the role of the address is its owner.

    Parameters
    ----------
    address
        `postgresql://owner@host/database`. A database contains one ledger, in a schema `confide` of its own.
    charge_roles
        Roles that may charge and read, and never change records. Those that do not exist are created without login.
    read_roles
        Roles that may read everything except the ledger's key.

    Raises
    ------
    LedgerError, InputError
        If the server rejects it, or a name is invalid.
    """
    place = Server(address)
    for role in (*charge_roles, *read_roles):
        postgres_schema.check_role(role)
    store = PostgresStore(place, timeout=timeout)
    with connected(place, timeout) as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('confide.ledger'))")
        if connection.execute("SELECT to_regnamespace('confide')").fetchone() == (None,):
            postgres_schema.create(connection)
        state = store._state(connection)
        state.refuse_forgetful(place)
        if not state.owns:
            raise ledger_error(LedgerError, place, f"role {state.role!r} is not its owner")
        postgres_schema.grant(connection, charge_roles, read_roles)
        commit_ledger(connection, place)
    return place


def commit_ledger(connection: Any, place: Server) -> None:
    """Commit the new ledger."""
    try:
        connection.execute("COMMIT")
    except connection_errors() as error:
        if lost(connection, error):
            raise ledger_error(
                LedgerError, place, "the connection was lost at the end; run the same command again"
            ) from None
        raise


def _rows(connection: Any, query: str, number: int) -> list[Row]:
    rows: list[Row] = connection.execute(query, (number,)).fetchall()
    return rows


@contextmanager
def connected(place: Server, timeout: float) -> Iterator[Any]:
    """A connection; an error of the server is one line without its own text, which may contain data."""
    with needs_extra("a ledger on PostgreSQL", "postgres"):
        import psycopg
    try:
        connection = psycopg.connect(_dsn(place, timeout), autocommit=True, prepare_threshold=None)
    except psycopg.Error as error:
        raise _unreachable(place, error) from None
    try:
        connection.execute(_PATH)
        yield connection
    except psycopg.Error as error:
        raise _failure(place, error, gone=lost(connection, error)) from None
    finally:
        with suppress(psycopg.Error):
            connection.close()


def _dsn(place: Server, timeout: float) -> str:
    """The address with default options: timeouts, detection of a lost peer, and encryption."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    try:
        given = conninfo_to_dict(place.url)
    except psycopg.ProgrammingError:
        raise ledger_error(
            InputError, place, "its address cannot be read; write postgresql://user@host/database"
        ) from None
    own = {**_ALIVE, "connect_timeout": str(max(2, math.ceil(timeout))), "fallback_application_name": "confide"}
    hosts = str(given.get("host") or os.environ.get("PGHOST", "")).split(",")
    if "PGSSLMODE" not in os.environ and not all(host in _LOCAL or host.startswith("/") for host in hosts):
        own["sslmode"] = "require"
    chosen: dict[str, Any] = {**own, **given, "client_encoding": "utf8"}
    written: str = make_conninfo(**chosen)
    return written


def connection_errors() -> type[Exception]:
    """The errors of psycopg."""
    import psycopg

    error: type[Exception] = psycopg.Error
    return error


def lost(connection: Any, error: Exception) -> bool:
    """Whether an error means that the connection is gone."""
    state = getattr(error, "sqlstate", None) or ""
    return bool(connection.broken or connection.closed or state[:2] == "08" or state in _GONE)


_GONE = ("57P01", "57P02", "57P03", "57P05", "25P03")


def _failure(place: Server, error: Exception, *, gone: bool) -> ConfideError:
    if gone:
        return ledger_error(NotWrittenError, place, _LOST)
    return failure(place, getattr(error, "sqlstate", None) or "unknown")


def _unreachable(place: Server, error: Exception) -> ConfideError:
    saying = (
        "the server cannot be reached, or rejects this role; check host, port, database, role, password "
        "(in a file that PGPASSFILE names) and encryption"
    )
    return ledger_error(NotWrittenError, place, saying)
