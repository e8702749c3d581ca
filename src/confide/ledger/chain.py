"""From stored rows to records: every seal is checked, and how far the chain reaches is told as its head."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from confide.errors import FormatError, LedgerError
from confide.ledger.events import FIRST_SEAL, Event, Moved, read_event, seal
from confide.ledger.place import Server

Row: TypeAlias = tuple[str, str, str]
"""When a record was made, its body, its seal."""


class Head(NamedTuple):
    """The last record: its number, counted from 1 (0 if there is none), and its seal."""

    number: int
    seal: str


NOTHING = Head(0, FIRST_SEAL)
"""Of a ledger without records, and of whoever has read none."""


OPEN = "this open ledger"
"""Who remembers what it has read."""


class Chain(NamedTuple):
    """Records with their times, and all seals. A record that may not be seen has a seal only."""

    records: list[tuple[str, Event]]
    seals: list[str]

    @property
    def head(self) -> Head:
        """How far it reaches."""
        return Head(len(self.seals), self.seals[-1]) if self.seals else NOTHING


def read_chain(rows: Iterable[tuple[int, str, str | None, str]]) -> Chain:
    """Check and read rows (number, made, body, seal) in their order.

    A body that may not be seen is None: of that record the seal is taken as it is.

    Raises
    ------
    FormatError
        If a record was changed or taken out, or cannot be read.
    """
    last, chain = FIRST_SEAL, Chain([], [])
    for expected, (number, made, body, sealed) in enumerate(rows, 1):
        last = sealed if body is None else seal(last, made, body)
        if number != expected or sealed != last:
            raise FormatError("the ledger was altered or damaged: a seal does not match; restore it from a backup")
        chain.seals.append(sealed)
        if body is not None:
            chain.records.append((made, read_event(body)))
    return chain


def refuse_forgotten(place: Path | Server, seals: Sequence[str], known: Head, who: str) -> None:
    """Refuse a ledger that lacks the record that was the last one before, which `who` remembers.

    Raises
    ------
    LedgerError
        With what to do.
    """
    if known.number > len(seals) or (known.number and seals[known.number - 1] != known.seal):
        raise LedgerError(
            f"ledger {str(place)!r} has {len(seals)} records, and not the one numbered {known.number} that {who} "
            "remembers: a backup was put back, or it is another ledger; what was charged since is not in it. Charge "
            "nothing before the newest ledger is back, or what is missing was added up"
        )


def moved_to(records: Iterable[tuple[str, Event]]) -> str | None:
    """Where the ledger of these records was moved to; None if it was not."""
    return next((event.to for _, event in records if isinstance(event, Moved)), None)


def refuse_moved(records: Iterable[tuple[str, Event]]) -> None:
    """Refuse to write where a ledger was moved away.

    Raises
    ------
    LedgerError
        With the place where it goes on.
    """
    if (to := moved_to(records)) is not None:
        raise LedgerError(f"the ledger was moved to {to!r} and is charged there only; name that one")
