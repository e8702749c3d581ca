"""Where a ledger lies: in a file, or on a PostgreSQL server."""

from dataclasses import dataclass
from pathlib import Path

from confide.errors import InputError, InputTypeError
from confide.support import names_object, names_server, shown_address


@dataclass(frozen=True, repr=False)
class Server:
    """The address of a ledger on a PostgreSQL server. As a text it has neither password nor options.

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


def place_of(place: str | Path | Server) -> Path | Server:
    """A file's path, or a server's address.

    Raises
    ------
    InputTypeError
        If it is neither.
    InputError
        If it is an address of an object store, which keeps no ledger.
    """
    if isinstance(place, Server):
        return place
    if not isinstance(place, str | Path):
        raise InputTypeError(f"ledger's path must be a path; found {type(place).__name__}")
    if names_object(place):
        raise InputError(
            "ledger must be a file of this machine, or postgresql://ROLE@HOST/DB, which every machine can charge: an "
            "object store cannot keep it, since two jobs could both spend what is left"
        )
    return Server(place) if isinstance(place, str) and names_server(place) else Path(place)


def file_of(place: str | Path | Server | None) -> Path | None:
    """The file of this machine in which a ledger lies; None for a server's, and without a ledger."""
    found = None if place is None else place_of(place)
    return found if isinstance(found, Path) else None
