"""Opening the store of a location, repeating operations after a lost server, and moving a ledger.

A ledger is moved as a whole: every record with its hash, and the key. There are never two that can be charged.

The records are written to the target in a transaction that is invisible to others. Then a last record with the new
location closes the source, on disk. Then the transaction ends. An interruption before the closing leaves the source
unchanged. An interruption after it leaves a closed source and perhaps no target: no charge is possible, and repeating
the same move continues it. A closed ledger can still be read.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from confide.errors import InputError, LedgerError
from confide.ledger import postgres_store, store
from confide.ledger.events import MovedEvent
from confide.ledger.log import Log, NotWrittenError, Row, Server, parse_location
from confide.ledger.postgres_store import PostgresStore
from confide.ledger.state import State, check_not_moved
from confide.ledger.store import Store as FileStore
from confide.support import log_event

P = ParamSpec("P")
T = TypeVar("T")
_PAUSE = 0.2


def open_log(place: Path | Server, *, create: bool, timeout: float) -> Log:
    """Open the store of a location; a missing file is created if `create` is true, a server's ledger never."""
    if isinstance(place, Server):
        return PostgresStore(place, timeout=timeout)
    return FileStore(place, create=create, timeout=timeout)


class _Waiting(Protocol):
    @property
    def timeout(self) -> float: ...


L = TypeVar("L", bound=_Waiting)


def retried(method: Callable[Concatenate[L, P], T]) -> Callable[Concatenate[L, P], T]:
    """Repeat a method until the ledger's timeout, while a lost server has certainly written nothing."""

    @wraps(method)
    def call(ledger: L, /, *arguments: P.args, **options: P.kwargs) -> T:
        end = time.monotonic() + ledger.timeout
        while True:
            try:
                return method(ledger, *arguments, **options)
            except NotWrittenError:
                if time.monotonic() > end:
                    raise
                log_event("ledger", "server asked again", after=method.__name__)
                time.sleep(_PAUSE)

    return call


def move(
    source: str | Path | Server,
    target: str | Path | Server,
    *,
    charge_roles: Sequence[str] = (),
    read_roles: Sequence[str] = (),
    timeout: float = 30.0,
) -> int:
    """Move a ledger between files and servers, and return its number of records.

    Parameters
    ----------
    source
        A ledger; on a server, with the address of its owner.
    target
        A file that does not exist; or the address of a server's database with no ledger yet, or an empty one.
    charge_roles, read_roles
        On a server: the roles that may charge, and may read, as in `make_server_ledger`.
    timeout
        Seconds to wait for other processes, and for a server.

    Raises
    ------
    LedgerError
        If the source was already moved elsewhere, or one of them cannot be used.
    InputError
        If the target exists with other contents.

    Examples
    --------
    >>> import tempfile
    >>> from confide.ledger import Cost, Ledger
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     old, new = Path(folder) / "budget.db", Path(folder) / "moved.db"
    ...     _ = Ledger(old).charge("patients", Cost(1.0, "add_remove", "slopes"), "0" * 64)
    ...     print(move(old, new), Ledger(new).account("patients").spent().epsilon)
    3 1.0
    """
    old, new = parse_location(source), parse_location(target)
    if not isinstance(new, Server) and (charge_roles or read_roles):
        raise InputError("charge_roles", "charge_roles and read_roles must be left out: a file has no roles")
    to = name_of(new)
    if name_of(old) == to:
        raise InputError("target", "must be another location than the source")
    log = open_log(old, create=False, timeout=timeout)
    rows = log.since(0)
    closed = State().after(rows).moved_to
    if closed not in (None, to):
        raise LedgerError("ledger", f"was moved to {closed!r} before", remedy="Move that one")
    if closed is not None:
        rows = _whole(old, rows)[:-1]
        if _there(new, rows, timeout):
            return len(rows)
        with _filled(new, timeout, charge_roles, read_roles) as fill:
            fill(rows)
        return len(rows)
    with _filled(new, timeout, charge_roles, read_roles) as fill, log.writing(0) as writing:
        rows = list(writing.rows)
        check_not_moved(State().after(rows))
        fill(rows)
        writing.append(MovedEvent(to))
    return len(rows)


def name_of(place: Path | Server) -> str:
    """The location as written in the last record of a moved ledger."""
    return str(place) if isinstance(place, Server) else str(place.resolve())


def _filled(
    place: Path | Server, timeout: float, charge_roles: Sequence[str], read_roles: Sequence[str]
) -> AbstractContextManager[Callable[[Iterable[Row]], None]]:
    if isinstance(place, Server):
        return postgres_store.filled_ledger(place, timeout=timeout, charge_roles=charge_roles, read_roles=read_roles)
    return store.new_ledger_file(place)


def _there(place: Path | Server, rows: list[Row], timeout: float) -> bool:
    """Whether the target already has these records from before an interruption; it may have more since."""
    if isinstance(place, Path) and not place.exists():
        return False
    if isinstance(place, Server) and not postgres_store.has_ledger(place, timeout=timeout):
        return False
    there = _whole(place, open_log(place, create=False, timeout=timeout).since(0))
    return bool(rows) and there[: len(rows)] == rows


def _whole(place: Path | Server, rows: list[Row]) -> list[Row]:
    if any(body is None for _, _, body, _ in rows):
        raise LedgerError("ledger", f"{str(place)!r} may be read whole by its owner only: it contains a key")
    return rows
