"""Opening the store of a location, and repeating operations after a lost server."""

import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from confide.ledger.log import Log, NotWrittenError, Server
from confide.ledger.postgres_store import PostgresStore
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
