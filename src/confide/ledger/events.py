"""The records of a ledger. They are only appended, and each contains a hash over itself and the hash before it.

The hash (seal) is SHA-256 of the previous hash and the record. Reading a ledger therefore detects damage to any record,
and records that were taken out. A hash is not a signature. It cannot show that records at the very end are missing, or
that an old copy of the whole file was put back.
"""

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from confide.errors import FormatError
from confide.ledger.composition import check_delta
from confide.ledger.cost import Cost, Group, check_name
from confide.ledger.identity import is_hexadecimal
from confide.mechanisms import NEIGHBORS, Neighbors
from confide.support import parse_object, shapes

MOST_RELEASE = 1_000_000
"""Most characters of a stored release."""

FIRST_HASH = "0" * 64


@dataclass(frozen=True)
class OpenedEvent:
    """A data set was opened: name, adjacency, and an optional keyed fingerprint."""

    dataset: str
    neighbors: Neighbors
    fingerprint: str | None


@dataclass(frozen=True)
class LimitedEvent:
    """The limit of a data set was set (epsilon at dp_delta) or removed (None); `by` set it, if a server knows."""

    dataset: str
    epsilon: float | None
    dp_delta: float
    by: str | None = None


@dataclass(frozen=True)
class ChargedEvent:
    """A charge. The token identifies it; `by` is the account that charged, if a server knows."""

    dataset: str
    token: str
    request: str
    cost: Cost
    by: str | None = None


@dataclass(frozen=True)
class ReleasedEvent:
    """The release of a charge, and an optional keyed fingerprint of the mechanism's input."""

    token: str
    text: str
    fingerprint: str | None = None


@dataclass(frozen=True)
class KeyedEvent:
    """The key of the ledger, with which it computes fingerprints of data. It never leaves the ledger."""

    key: str


Event: TypeAlias = OpenedEvent | LimitedEvent | ChargedEvent | ReleasedEvent | KeyedEvent


def entry_hash(previous: str, made: str, body: str) -> str:
    """The hash of a record: SHA-256 of the previous hash, its time and its body, in hexadecimal."""
    return hashlib.sha256("\n".join((previous, made, body)).encode()).hexdigest()


def write_event(event: Event) -> str:
    """An event as one line of JSON."""
    kind = type(event).__name__.removesuffix("Event").lower()
    return json.dumps({"kind": kind, **_EVENTS[kind].json(event)}, allow_nan=False)


def read_event(body: str) -> Event:
    """Read the output of `write_event`.

    Raises
    ------
    FormatError
        If the record has none of the five kinds, lacks a field, or has an unknown or invalid one.

    Examples
    --------
    >>> read_event(write_event(LimitedEvent("patients", 2.0, 0.0)))
    LimitedEvent(dataset='patients', epsilon=2.0, dp_delta=0.0, by=None)
    """
    content = _parsed(body)
    kind = content.pop("kind", None)
    if not isinstance(kind, str) or kind not in _EVENTS:
        raise _unreadable()
    event: Event = _EVENTS[kind].of(content, f"record.{kind}")
    return event


def _parsed(body: str) -> dict[str, Any]:
    try:
        return parse_object(body)
    except (ValueError, TypeError):
        raise _unreadable() from None


def _unreadable() -> FormatError:
    return FormatError("record", "must be a record of a ledger", remedy="Restore the ledger from a backup")


def check_release(text: Any) -> str:
    """Check that a release is a text of at most a million characters without lone surrogates."""
    if not isinstance(text, str) or len(text) > MOST_RELEASE:
        raise FormatError("release", f"must be a text of at most {MOST_RELEASE} characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise FormatError("release", "must be a text that UTF-8 can encode") from None
    return text


def _charged(by: str | None, **values: Any) -> ChargedEvent:
    dataset, token, request = (values.pop(name) for name in ("dataset", "token", "request"))
    return ChargedEvent(dataset, token, request, Cost(**values), by)


def _group(pair: tuple[str, ...]) -> Group:
    partition, cell = pair
    return Group(partition, cell)


def _digits(least: int = 32) -> shapes.Field:
    fits = shapes.reads_if(lambda text: is_hexadecimal(text, least=least))
    return shapes.Field(f"{least} to 64 hexadecimal digits", (str,), fits)


_NAME = shapes.Field("a name", (str,), lambda text: check_name("name", text))
_LOSS = shapes.number(0, 1e12)
_BY = shapes.nullable(_NAME)
_COST: shapes.Shape = {
    "epsilon": shapes.or_infinite(_LOSS),
    "neighbors": shapes.choice(*NEIGHBORS),
    "mechanism": _NAME,
    "rho": shapes.nullable(_LOSS),
    "group": shapes.nullable(shapes.Field("a partition and a cell", (list,), _group, list, entry=_NAME)),
}
_EVENTS: shapes.Shape = {
    "opened": shapes.record(
        OpenedEvent,
        {"dataset": _NAME, "neighbors": shapes.choice(*NEIGHBORS), "fingerprint": shapes.nullable(_digits())},
    ),
    "limited": shapes.record(
        LimitedEvent,
        {
            "dataset": _NAME,
            "epsilon": shapes.nullable(_LOSS),
            "dp_delta": shapes.Field("a failure probability", (float, int), check_delta),
            "by": _BY,
        },
    ),
    "charged": shapes.record(
        _charged,
        {
            "dataset": _NAME,
            "token": _digits(),
            "request": _digits(),
            "by": _BY,
            **{name: replace(field, attribute=f"cost.{name}") for name, field in _COST.items()},
        },
    ),
    "released": shapes.record(
        ReleasedEvent,
        {
            "token": _digits(),
            "text": shapes.Field("a release", (str,), check_release),
            "fingerprint": shapes.nullable(_digits(64)),
        },
    ),
    "keyed": shapes.record(KeyedEvent, {"key": _digits(64)}),
}
"""How each record is written and read; its hash depends on the order of its fields."""
