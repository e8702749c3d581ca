"""The two kinds of stores behind one interface, and what goes on when a server was lost."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from confide.ledger.chain import NOTHING, Chain, Head, Row
from confide.ledger.events import Event
from confide.ledger.place import Server
from confide.ledger.postgres_store import NothingWrittenError, PostgresStore
from confide.ledger.store import Store as FileStore
from confide.support import tell

P = ParamSpec("P")
T = TypeVar("T")
_PAUSE = 0.2


class Writer(Protocol):
    """Appends records within a transaction, to `records`; `by` is who writes, where the store knows it."""

    records: list[tuple[str, Event]]
    head: Head

    @property
    def by(self) -> str | None:
        """Who writes."""

    def append(self, event: Event) -> None:
        """Append one record."""

    def rows(self) -> list[Row]:
        """All records as they are stored."""


class Store(Protocol):
    """Records of one ledger: read in a consistent snapshot, appended in transactions that nobody interleaves."""

    def read(self) -> list[tuple[str, Event]]:
        """All records with their times, checked against their seals."""

    def chain(self, known: Head = NOTHING) -> Chain:
        """The same, with the head; refused if the record that is `known` as the last one before is not there."""

    def rows(self) -> list[Row]:
        """All records as they are stored."""

    def writing(self, known: Head = NOTHING) -> AbstractContextManager[Writer]:
        """A transaction, durable when the block ends without an error; refused as `chain` is."""

    def held(self, token: str) -> AbstractContextManager[None]:
        """Held by one process at a time; the others wait."""


def open_store(place: Path | Server, *, create: bool, timeout: float) -> Store:
    """The store of a place; a missing file is made if `create` is true, a server's ledger never."""
    if isinstance(place, Server):
        return PostgresStore(place, timeout=timeout)
    return FileStore(place, create=create, timeout=timeout)


class _Waiting(Protocol):
    @property
    def timeout(self) -> float: ...


L = TypeVar("L", bound=_Waiting)


def tried_again(method: Callable[Concatenate[L, P], T]) -> Callable[Concatenate[L, P], T]:
    """A method that is called again, until the ledger's timeout, while a lost server has certainly written nothing."""

    @wraps(method)
    def call(ledger: L, /, *arguments: P.args, **options: P.kwargs) -> T:
        end = time.monotonic() + ledger.timeout
        while True:
            try:
                return method(ledger, *arguments, **options)
            except NothingWrittenError:
                if time.monotonic() > end:
                    raise
                tell("ledger", "server asked again", after=method.__name__)
                time.sleep(_PAUSE)

    return call
