"""The records of a ledger. They are only ever appended, and each is sealed together with the one before it.

A seal is SHA-256 of the previous seal and the record: damage to any record, or a record taken out, is found when the
ledger is read. It is no signature, and it cannot tell that records at the very end are missing or that an old copy of
the whole file was put back.
"""

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from confide.errors import FormatError
from confide.ledger.composition import check_delta
from confide.ledger.cost import Cost, Group, check_name, finite_loss
from confide.ledger.identity import is_hexadecimal
from confide.ledger.schedule import Schedule, schedule_of
from confide.mechanisms import NEIGHBORS, Neighbors
from confide.support import one_of, parse_object

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
    content = {"kind": type(event).__name__.lower(), **asdict(event)}
    content |= content.pop("cost", {})
    if isinstance(event, Charged) and not event.joined:
        del content["joined"]
    if isinstance(event, Charged) and not event.cost.private:
        content["epsilon"] = "+inf"
    if isinstance(event, Released) and event.fingerprint is None:
        del content["fingerprint"]
    if content.get("by", "") is None:
        del content["by"]
    return json.dumps(content, allow_nan=False)


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
    try:
        content = parse_object(body)
        return _READERS[content.pop("kind")](**content)
    except (ValueError, TypeError, KeyError):
        raise FormatError("the ledger holds a record that cannot be read; restore it from a backup") from None


def _opened(dataset: Any, neighbors: Any, fingerprint: Any) -> Opened:
    mark = None if fingerprint is None else _hexadecimal(fingerprint)
    return Opened(check_name("dataset", dataset), one_of("neighbors", neighbors, NEIGHBORS), mark)


def _limited(dataset: Any, epsilon: Any, dp_delta: Any, by: Any = None) -> Limited:
    limit = None if epsilon is None else finite_loss("limit", epsilon)
    return Limited(check_name("dataset", dataset), limit, check_delta(dp_delta), _who(by))


def _charged(
    dataset: Any,
    token: Any,
    request: Any,
    epsilon: Any,
    neighbors: Any,
    mechanism: Any,
    rho: Any,
    group: Any,
    joined: Any = None,
    by: Any = None,
) -> Charged:
    if joined not in (None, True):
        raise ValueError
    loss = math.inf if epsilon == "+inf" else finite_loss("epsilon", epsilon)
    cost = Cost(loss, neighbors, mechanism, rho, None if group is None else Group(*group))
    return Charged(
        check_name("dataset", dataset), _hexadecimal(token), _hexadecimal(request), cost, joined is True, _who(by)
    )


def _released(token: Any, text: Any, fingerprint: Any = None) -> Released:
    mark = None if fingerprint is None else _hexadecimal(fingerprint, least=64)
    return Released(_hexadecimal(token), check_release(text), mark)


def _keyed(key: Any) -> Keyed:
    return Keyed(_hexadecimal(key, least=64))


def _followed(dataset: Any, schedule: Any) -> Followed:
    return Followed(check_name("dataset", dataset), schedule_of(schedule))


def _moved(to: Any) -> Moved:
    if not isinstance(to, str):
        raise TypeError
    return Moved(to)


def _who(by: Any) -> str | None:
    return None if by is None else check_name("by", by)


_READERS: dict[str, Callable[..., Event]] = {
    "opened": _opened,
    "limited": _limited,
    "charged": _charged,
    "released": _released,
    "keyed": _keyed,
    "followed": _followed,
    "moved": _moved,
}
"""By keyword: a field that is lacking, or one too many, is a TypeError."""


def check_release(text: Any) -> str:
    """A release is a text of at most a million characters, none of them half of a surrogate pair."""
    if not isinstance(text, str) or len(text) > MOST_RELEASE:
        raise FormatError(f"release must be a text of at most {MOST_RELEASE} characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise FormatError("release must be a text that UTF-8 can hold") from None
    return text


def _hexadecimal(text: Any, least: int = 32) -> str:
    if not is_hexadecimal(text, least=least):
        raise ValueError
    return str(text)
