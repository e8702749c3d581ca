"""What a document states about how it was made, read as data: claims are for `confide verify`."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from confide.errors import FormatError
from confide.support import check_versions, parse_object

_DRAWN = {
    "confide.private-evaluation",
    "confide.labelling",
    "confide.look",
    "confide.federated.answer",
    "confide.federated.silo-report",
}
"""Kinds whose own numbers came out of a sampler."""

_JOINED = {"confide.noisy-labels", "confide.federated.calibration", "confide.federated.several"}
"""Kinds that were computed from what others drew."""

_FACTS = ("kind", "score", "method")


class Made(NamedTuple):
    """The versions behind one number, or nothing where they are not stated; whether it was drawn with them."""

    versions: tuple[tuple[str, str], ...]
    drawn: bool


class Stated(NamedTuple):
    """How everything in a document was made, each way once; and pairs such as ("score", "lac") that it states."""

    made: tuple[Made, ...]
    facts: frozenset[tuple[str, str]]


def stated(content: Mapping[str, Any]) -> Stated:
    """What a document states, and what stands within it.

    Raises
    ------
    FormatError
        If what it says of versions cannot be shown.

    Examples
    --------
    >>> stated({"kind": "confide.look", "versions": {"opendp": "0.14.1"}}).made
    (Made(versions=(('opendp', '0.14.1'),), drawn=True),)
    """
    ways, facts = dict.fromkeys(_ways(content)), frozenset(_facts(content))
    return Stated(tuple(ways), facts)


def kept_by_ledger(text: str) -> Stated:
    """What a ledger's kept release states: a document, or numbers with the versions that drew them; else nothing."""
    try:
        value = parse_object(json.dumps({"kept": json.loads(text)}))["kept"]
    except (ValueError, RecursionError):
        return Stated((), frozenset())
    if isinstance(value, list) and value and isinstance(value[-1], dict) and "kind" not in value[-1]:
        return Stated((_made(value[-1], drawn=True),), frozenset())
    return stated(value) if isinstance(value, dict) else Stated((Made((), True),), frozenset())


def _ways(value: Any) -> Iterator[Made]:
    if isinstance(value, list):
        for item in value:
            yield from _ways(item)
    if not isinstance(value, dict):
        return
    kind, body = value.get("kind"), value.get("content", value)
    if isinstance(body, dict) and isinstance(kind, str):
        if kind == "confide.calibration":
            mechanism = body.get("mechanism")
            nothing = mechanism is None or (isinstance(mechanism, dict) and mechanism.get("name") == "none")
            yield _made(body.get("versions", {}), drawn=not nothing)
        elif kind in _DRAWN or kind in _JOINED:
            yield _made(body.get("versions", {}), drawn=kind in _DRAWN)
        elif kind == "confide.watch":
            looks = body.get("looks", [])
            if not isinstance(looks, list) or not all(isinstance(look, dict) for look in looks):
                raise FormatError("its looks must be a list of objects; get the original")
            for look in looks:
                yield _made(look.get("versions", {}), drawn=True)
    for item in value.values():
        yield from _ways(item)


def _made(versions: Any, *, drawn: bool) -> Made:
    return Made(tuple(sorted(check_versions("file", versions).items())), drawn)


def _facts(value: Any) -> Iterator[tuple[str, str]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        if name in _FACTS and isinstance(item, str):
            yield name, item
        yield from _facts(item)


def readable(content: Mapping[str, Any]) -> None:
    """Refuse a document of a schema that this version does not know.

    Raises
    ------
    FormatError
        If it was written by a newer version, or has no schema.
    """
    schema = content.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or not 1 <= schema <= 3:
        raise FormatError(f"it has schema {schema!r:.20}, which this version does not read; upgrade confide")
