"""The records of a ledger. They are only ever appended, and each is sealed together with the one before it.

A seal is SHA-256 of the previous seal and the record: damage to any record, or a record taken out, is found when the
ledger is read. It is no signature, and it cannot tell that records at the very end are missing or that an old copy of
the whole file was put back.
"""

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from confide.errors import FormatError
from confide.ledger.composition import check_delta
from confide.ledger.cost import Cost, Group, check_name
from confide.ledger.identity import is_hexadecimal
from confide.ledger.schedule import SCHEDULE, Schedule
from confide.mechanisms import NEIGHBORS, Neighbors
from confide.support import parse_object, shapes

MOST_RELEASE = 1_000_000
"""Characters of a kept release."""

FIRST_SEAL = "0" * 64

SCHEMA = 3
"""The newest. 1 had no keys, fingerprints or infinite losses, and 2 no schedules: see `schema_of`."""


@dataclass(frozen=True)
class Opened:
    """A data set was named, with the relation it is accounted under and perhaps a keyed fingerprint."""

    dataset: str
    neighbors: Neighbors
    fingerprint: str | None


@dataclass(frozen=True)
class Limited:
    """A data set got a limit (epsilon at dp_delta), or lost it (None); `by` says who set it, where that is kept."""

    dataset: str
    epsilon: float | None
    dp_delta: float
    by: str | None = None


@dataclass(frozen=True)
class Charged:
    """A release was paid for. The token tells charges apart; one that is `joined` went with the charge before it.

    `by` says who charged, where that is kept.
    """

    dataset: str
    token: str
    request: str
    cost: Cost
    joined: bool = False
    by: str | None = None


@dataclass(frozen=True)
class Released:
    """The release that a charge paid for, and perhaps the keyed fingerprint of what the mechanism saw."""

    token: str
    text: str
    fingerprint: str | None = None


@dataclass(frozen=True)
class Keyed:
    """The ledger got its key: fingerprints of data are made with it, and it never leaves the ledger."""

    key: str


@dataclass(frozen=True)
class Followed:
    """From now on charges to a data set follow a schedule."""

    dataset: str
    schedule: Schedule


@dataclass(frozen=True)
class Moved:
    """The ledger goes on in another place, and nothing more is charged here: the last record of a ledger."""

    to: str


Event: TypeAlias = Opened | Limited | Charged | Released | Keyed | Followed | Moved


def schema_of(event: Event) -> int:
    """The schema that a ledger has at least from this record on: 3 with a schedule, a move or a name, else 2."""
    later = isinstance(event, Followed | Moved) or (isinstance(event, Charged) and event.joined)
    return SCHEMA if later or getattr(event, "by", None) is not None else 2


def seal(previous: str, made: str, body: str) -> str:
    """The seal of a record: SHA-256 of the previous seal, its time and its body, in hexadecimal."""
    return hashlib.sha256("\n".join((previous, made, body)).encode()).hexdigest()


def write_event(event: Event) -> str:
    """An event as one line of JSON."""
    kind = type(event).__name__.lower()
    return json.dumps({"kind": kind, **_EVENTS[kind].json(event)}, allow_nan=False)


def read_event(body: str) -> Event:
    """Read what `write_event` wrote, and refuse everything else.

    Raises
    ------
    FormatError
        If the record is not one of the seven, lacks a field, has one too many or one that cannot be used.

    Examples
    --------
    >>> read_event(write_event(Limited("patients", 2.0, 0.0)))
    Limited(dataset='patients', epsilon=2.0, dp_delta=0.0, by=None)
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
    return FormatError("record", "must be one that a ledger holds", remedy="Restore the ledger from a backup")


def check_release(text: Any) -> str:
    """A release is a text of at most a million characters, none of them half of a surrogate pair."""
    if not isinstance(text, str) or len(text) > MOST_RELEASE:
        raise FormatError("release", f"must be a text of at most {MOST_RELEASE} characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise FormatError("release", "must be a text that UTF-8 can hold") from None
    return text


def _charged(joined: bool | None, by: str | None, **values: Any) -> Charged:
    dataset, token, request = (values.pop(name) for name in ("dataset", "token", "request"))
    return Charged(dataset, token, request, Cost(**values), bool(joined), by)


def _group(pair: tuple[str, ...]) -> Group:
    partition, cell = pair
    return Group(partition, cell)


def _digits(least: int = 32) -> shapes.Field:
    fits = shapes.within(lambda text: is_hexadecimal(text, least=least))
    return shapes.Field(f"{least} to 64 hexadecimal digits", (str,), fits)


_NAME = shapes.Field("a name", (str,), lambda text: check_name("name", text))
_LOSS = shapes.number(0, 1e12)
_BY = shapes.nullable(shapes.optional(_NAME))
_COST: shapes.Shape = {
    "epsilon": shapes.or_infinite(_LOSS),
    "neighbors": shapes.choice(*NEIGHBORS),
    "mechanism": _NAME,
    "rho": shapes.nullable(_LOSS),
    "group": shapes.nullable(shapes.Field("a partition and a cell", (list,), _group, list, entry=_NAME)),
}
_EVENTS: shapes.Shape = {
    "opened": shapes.record(
        Opened,
        {"dataset": _NAME, "neighbors": shapes.choice(*NEIGHBORS), "fingerprint": shapes.nullable(_digits())},
    ),
    "limited": shapes.record(
        Limited,
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
            "joined": shapes.nullable(shapes.optional(shapes.Field("true", (bool,), shapes.within(bool)))),
            "by": _BY,
            **{name: replace(field, attribute=f"cost.{name}") for name, field in _COST.items()},
        },
    ),
    "released": shapes.record(
        Released,
        {
            "token": _digits(),
            "text": shapes.Field("a release", (str,), check_release),
            "fingerprint": shapes.nullable(shapes.optional(_digits(64))),
        },
    ),
    "keyed": shapes.record(Keyed, {"key": _digits(64)}),
    "followed": shapes.record(Followed, {"dataset": _NAME, "schedule": SCHEDULE}),
    "moved": shapes.record(Moved, {"to": shapes.TEXT}),
}
"""How each record is written and read; the order of its fields is part of its seal."""
