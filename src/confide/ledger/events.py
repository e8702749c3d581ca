"""The records of a ledger. They are only ever appended, and each is sealed together with the one before it.

A seal is SHA-256 of the previous seal and the record: damage to any record, or a record taken out, is found when the
ledger is read. It is no signature, and it cannot tell that records at the very end are missing or that an old copy of
the whole file was put back.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from confide.errors import FormatError
from confide.ledger.composition import check_delta
from confide.ledger.cost import Cost, Group, check_name
from confide.mechanisms import NEIGHBORS, Neighbors
from confide.support import one_of, parse_object

MOST_RELEASE = 1_000_000
"""Characters of a kept release."""

FIRST_SEAL = "0" * 64


@dataclass(frozen=True)
class Opened:
    """A data set was named, with the relation it is accounted under and perhaps a keyed fingerprint."""

    dataset: str
    neighbors: Neighbors
    fingerprint: str | None


@dataclass(frozen=True)
class Limited:
    """A data set got a limit (epsilon at dp_delta), or lost it (None)."""

    dataset: str
    epsilon: float | None
    dp_delta: float


@dataclass(frozen=True)
class Charged:
    """A release was paid for. The token tells charges apart."""

    dataset: str
    token: str
    request: str
    cost: Cost


@dataclass(frozen=True)
class Released:
    """The release that a charge paid for."""

    token: str
    text: str


Event: TypeAlias = Opened | Limited | Charged | Released


def seal(previous: str, made: str, body: str) -> str:
    """The seal of a record: SHA-256 of the previous seal, its time and its body, in hexadecimal."""
    return hashlib.sha256("\n".join((previous, made, body)).encode()).hexdigest()


def write_event(event: Event) -> str:
    """An event as one line of JSON."""
    content: dict[str, Any]
    match event:
        case Opened(dataset, neighbors, fingerprint):
            content = {"kind": "opened", "dataset": dataset, "neighbors": neighbors, "fingerprint": fingerprint}
        case Limited(dataset, epsilon, dp_delta):
            content = {"kind": "limited", "dataset": dataset, "epsilon": epsilon, "dp_delta": dp_delta}
        case Charged(dataset, token, request, cost):
            content = {
                "kind": "charged",
                "dataset": dataset,
                "token": token,
                "request": request,
                "epsilon": cost.epsilon,
                "neighbors": cost.neighbors,
                "mechanism": cost.mechanism,
                "rho": cost.rho,
                "group": None if cost.group is None else list(cost.group),
            }
        case Released(token, text):
            content = {"kind": "released", "token": token, "text": text}
    return json.dumps(content, allow_nan=False)


def read_event(body: str) -> Event:
    """Read what `write_event` wrote, and refuse everything else.

    Raises
    ------
    FormatError
        If the record is not one of the four, lacks a field, has one too many or one that cannot be used.

    Examples
    --------
    >>> read_event(write_event(Limited("patients", 2.0, 0.0)))
    Limited(dataset='patients', epsilon=2.0, dp_delta=0.0)
    """
    try:
        content = parse_object(body)
        kind = content.pop("kind")
        return _READERS[kind](content)
    except (ValueError, TypeError, KeyError):
        raise FormatError("the ledger holds a record that cannot be read; restore it from a backup") from None


def _opened(content: dict[str, Any]) -> Opened:
    name, neighbors, fingerprint = _values(content, "dataset", "neighbors", "fingerprint")
    mark = None if fingerprint is None else _hexadecimal(fingerprint)
    return Opened(check_name("dataset", name), one_of("neighbors", neighbors, NEIGHBORS), mark)


def _limited(content: dict[str, Any]) -> Limited:
    name, epsilon, dp_delta = _values(content, "dataset", "epsilon", "dp_delta")
    limit = None if epsilon is None else Cost(epsilon, "add_remove", "limit").epsilon
    return Limited(check_name("dataset", name), limit, check_delta(dp_delta))


def _charged(content: dict[str, Any]) -> Charged:
    keys = ("dataset", "token", "request", "epsilon", "neighbors", "mechanism", "rho", "group")
    name, token, request, epsilon, neighbors, mechanism, rho, group = _values(content, *keys)
    where = None if group is None else Group(*group)
    cost = Cost(epsilon, neighbors, mechanism, rho, where)
    return Charged(check_name("dataset", name), _hexadecimal(token), _hexadecimal(request), cost)


def _released(content: dict[str, Any]) -> Released:
    token, text = _values(content, "token", "text")
    return Released(_hexadecimal(token), check_release(text))


_READERS: dict[str, Callable[[dict[str, Any]], Event]] = {
    "opened": _opened,
    "limited": _limited,
    "charged": _charged,
    "released": _released,
}


def check_release(text: Any) -> str:
    """A release is a text of at most a million characters, none of them half of a surrogate pair."""
    if not isinstance(text, str) or len(text) > MOST_RELEASE:
        raise FormatError(f"release must be a text of at most {MOST_RELEASE} characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise FormatError("release must be a text that UTF-8 can hold") from None
    return text


def _values(content: dict[str, Any], *keys: str) -> tuple[Any, ...]:
    if content.keys() != set(keys):
        raise ValueError
    return tuple(content[key] for key in keys)


def _hexadecimal(text: Any) -> str:
    if not isinstance(text, str) or not 32 <= len(text) <= 64 or set(text) - set("0123456789abcdef"):
        raise ValueError
    return text
