"""A ledger moves to another place, whole: every record with its seal, and the key. At no moment are there two.

The records are put where they go in a transaction that nobody sees; then the source is closed by a last record that
says where it went, on disk; then the transaction ends. An interruption before the closing leaves the source as it was.
One after it leaves a closed source and perhaps no target: nobody can charge, and the same move, asked for again, goes
on from there. A closed ledger can still be read.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from confide.errors import InputError, LedgerError
from confide.ledger import postgres_store, store
from confide.ledger.chain import Row, moved_to
from confide.ledger.events import Moved
from confide.ledger.place import Server, place_of
from confide.ledger.stores import open_store


def move(
    source: str | Path | Server,
    target: str | Path | Server,
    *,
    charge_roles: Sequence[str] = (),
    read_roles: Sequence[str] = (),
    timeout: float = 30.0,
) -> int:
    """Move a ledger between files and servers, and return how many records it has.

    Parameters
    ----------
    source
        A ledger; of a server's, the address of its owner.
    target
        A file that does not exist; or the address of a server's database that holds no ledger yet, or an empty one.
    charge_roles, read_roles
        On a server: who may charge there, and who may read; as for `make_server_ledger`.
    timeout
        Seconds to wait for other processes, and for a server.

    Raises
    ------
    LedgerError
        If the source was moved to another place, or one of them cannot be used.
    InputError
        If the target exists and holds anything else.

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
    old, new = place_of(source), place_of(target)
    if not isinstance(new, Server) and (charge_roles or read_roles):
        raise InputError("charge_roles and read_roles must be left out: a file has no roles")
    to = name_of(new)
    if name_of(old) == to:
        raise InputError("target must be another place than the source")
    from_store = open_store(old, create=False, timeout=timeout)
    records = from_store.read()
    closed = moved_to(records)
    if closed not in (None, to):
        raise LedgerError(f"the ledger was moved to {closed!r} before; move that one")
    if closed is not None:
        rows = from_store.rows()[:-1]
        if _there(new, rows, timeout):
            return len(rows)
        with _filled(new, timeout, charge_roles, read_roles) as fill:
            fill(rows)
        return len(rows)
    with _filled(new, timeout, charge_roles, read_roles) as fill, from_store.writing() as writer:
        rows = writer.rows()
        fill(rows)
        writer.append(Moved(to))
    return len(rows)


def name_of(place: Path | Server) -> str:
    """The place as the last record of a moved ledger names it."""
    return str(place) if isinstance(place, Server) else str(place.resolve())


def _filled(
    place: Path | Server, timeout: float, charge_roles: Sequence[str], read_roles: Sequence[str]
) -> AbstractContextManager[Callable[[list[Row]], None]]:
    if isinstance(place, Server):
        return postgres_store.filled(place, timeout=timeout, charge_roles=charge_roles, read_roles=read_roles)
    return store.filled(place)


def _there(place: Path | Server, rows: list[Row], timeout: float) -> bool:
    """Whether the target has these records already, from before an interruption; it may have gone on since."""
    if isinstance(place, Path) and not place.exists():
        return False
    if isinstance(place, Server) and not postgres_store.has_ledger(place, timeout=timeout):
        return False
    return bool(rows) and open_store(place, create=False, timeout=timeout).rows()[: len(rows)] == rows
