"""The state of a ledger: one fold over its records, which checks every hash and defines the meaning of a record.

A process reads a whole ledger once. Afterwards it reads new records, and checks that the last record read before is
still there. It therefore detects an older copy that was put back under an open ledger.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from confide.errors import FormatError, LedgerError
from confide.ledger.account import Account, Entry
from confide.ledger.composition import Limit
from confide.ledger.events import (
    FIRST_HASH,
    ChargedEvent,
    Event,
    KeyedEvent,
    LimitedEvent,
    OpenedEvent,
    ReleasedEvent,
    entry_hash,
    read_event,
)
from confide.ledger.identity import name_key
from confide.ledger.log import Row, Server
from confide.support import Described, Section


class Checkpoint(NamedTuple):
    """The head of a ledger at some time: the number of its last record from 1 (0 if there is none), and its hash.

    A stored checkpoint detects a ledger without this record: an older copy that was put back, a ledger that continued
    from such a copy, or another ledger.
    """

    number: int
    record_hash: str


EMPTY_CHECKPOINT = Checkpoint(0, FIRST_HASH)
"""The checkpoint of a ledger without records, and before any reading."""

OPEN = "this open ledger"
"""Name of the reader in messages."""


class State(Described):
    """A ledger at one moment. It does not change: `after` returns the next state.

    Parameters
    ----------
    checkpoint_to_check
        A record of an earlier reading that must be among the records. A copied or pickled state contains only its head:
        neither the ledger's key nor its releases.
    """

    def __init__(self, checkpoint_to_check: Checkpoint = EMPTY_CHECKPOINT) -> None:
        self.checkpoint_to_check = checkpoint_to_check
        self.records: list[tuple[str, Event]] = []
        self.hashes: list[str] = []
        self.key: str | None = None
        self._has_key = False  # a ledger has a key before its first charge
        self._opened: dict[str, Account] = {}
        self._entries: dict[str, dict[str, Entry]] = {}
        self._owner: dict[str, str] = {}
        self._names: set[str] = set()

    def __reduce__(self) -> tuple[Any, ...]:
        return State, (max(self.head, self.checkpoint_to_check),)

    def _section(self) -> Section:
        spent = tuple((account.dataset, account.summary) for account in self.accounts.values())
        return Section("Ledger", "" if spent else "no data sets", spent)

    def _brief(self) -> str:
        return f"{len(self.hashes)} records"

    @property
    def head(self) -> Checkpoint:
        """The number and hash of the last record."""
        return Checkpoint(len(self.hashes), self.hashes[-1]) if self.hashes else EMPTY_CHECKPOINT

    @cached_property
    def accounts(self) -> Mapping[str, Account]:
        """The accounts by data set, in the order of their opening."""
        return {
            name: replace(account, entries=tuple(self._entries[name].values()))
            for name, account in self._opened.items()
        }

    def entry(self, token: str) -> Entry | None:
        """The charge with this token; None if there is none."""
        return self._entries[self._owner[token]][token] if token in self._owner else None

    def charged_to(self, token: str) -> str | None:
        """The data set of the charge with this token; None if there is none."""
        return self._owner.get(token)

    def after(self, rows: Iterable[Row]) -> "State":
        """The state after these rows; the first may be the last row already read.

        Raises
        ------
        FormatError
            If a record was changed or taken out, cannot be read, or contradicts those before.
        """
        new = [row for row in rows if row[0] != self.head.number]
        if not new:
            return self
        after = State(self.checkpoint_to_check)
        after.records, after.hashes = [*self.records], [*self.hashes]
        after.key, after._has_key = self.key, self._has_key
        after._opened, after._owner, after._names = {**self._opened}, {**self._owner}, {*self._names}
        after._entries = {name: {**entries} for name, entries in self._entries.items()}
        for row in new:
            after._add(*row)
        return after

    def caught_up(self, rows: Sequence[Row], whole: Callable[[], Iterable[Row]], place: Path | Server) -> "State":
        """The current state of a ledger.

        Parameters
        ----------
        rows
            Its rows from the last one already read, inclusive.
        whole
            Reads all rows; called if that row is not among `rows`.
        place
            The location of the ledger, for messages.

        Raises
        ------
        LedgerError
            If the ledger lacks a record that was read before.
        FormatError
            As in `after`.
        """
        if self.hashes and (not rows or (rows[0][0], rows[0][3]) != self.head):
            check_checkpoint(place, State().after(whole()).hashes, self.head, OPEN)
        state = self.after(rows)
        check_checkpoint(place, state.hashes, self.checkpoint_to_check, OPEN)
        return state

    def _add(self, number: int, made: str, body: str | None, record_hash: str) -> None:
        last = self.head
        expected = record_hash if body is None else entry_hash(last.record_hash, made, body)
        if number != last.number + 1 or record_hash != expected:
            must = "must have the seal of its content: the ledger was altered or damaged"
            raise FormatError(f"records[{last.number}]", must, remedy="Restore the ledger from a backup")
        self.hashes.append(record_hash)
        if body is None:  # the key, which this role may not read
            self._has_key = True
        else:
            event = read_event(body)
            self._evolve(made, event)
            self.records.append((made, event))

    def _evolve(self, made: str, event: Event) -> None:
        match event:
            case OpenedEvent(dataset, neighbors, fingerprint):
                _require(name_key(dataset) not in self._names)
                self._names.add(name_key(dataset))
                self._opened[dataset] = Account(dataset, neighbors, fingerprint, None, ())
                self._entries[dataset] = {}
            case LimitedEvent(dataset, epsilon, dp_delta):
                _require(dataset in self._opened)
                limit = None if epsilon is None else Limit(epsilon, dp_delta)
                self._opened[dataset] = replace(self._opened[dataset], limit=limit)
            case ChargedEvent(dataset, token, request, cost, by):
                _require(self._has_key and dataset in self._opened and token not in self._owner)
                _require(cost.neighbors == self._opened[dataset].neighbors)
                self._owner[token] = dataset
                self._entries[dataset][token] = Entry(token, made, request, cost, None, by=by)
            case ReleasedEvent(token, text, fingerprint):
                _require(token in self._owner)
                entries = self._entries[self._owner[token]]
                _require(entries[token].release is None)
                entries[token] = replace(entries[token], release=text, fingerprint=fingerprint)
            case KeyedEvent(key):
                _require(not self._has_key)
                self.key, self._has_key = key, True


class MissingRecordsError(LedgerError):
    """A ledger lacks a stored checkpoint: it is an older copy, continued from one, or another ledger."""


def check_checkpoint(place: Path | Server, hashes: list[str], known: Checkpoint, who: str) -> None:
    """Check that a ledger has the record of a checkpoint, which `who` stores.

    Raises
    ------
    MissingRecordsError
        If it has not, with the remedy.
    """
    if known.number > len(hashes) or (known.number and hashes[known.number - 1] != known.record_hash):
        raise MissingRecordsError(
            "ledger",
            f"{str(place)!r} has {len(hashes)} records and lacks record {known.number} of {who}: a backup was put "
            "back, or it is another ledger; later charges are missing",
            remedy="Charge nothing before you put the newest ledger back, or add the missing charges up",
        )


def _require(condition: bool) -> None:
    if not condition:
        raise FormatError("records", "must not contradict each other", remedy="Restore the ledger from a backup")
