"""Kinds of files. The kind of a file follows from its first bytes."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from confide.errors import FormatError
from confide.support.checks import OTHER_SCHEMA, SCHEMA
from confide.support.object_stores import FileLocation

# The number of bytes that tell the kind
HEAD = 2**16

# The kind and the schema of a JSON document
_DOCUMENT = re.compile(rb'\A\s*\{\s*"kind":\s*"(confide[./][a-z.-]{1,60})"(?:,\s*"schema":\s*(\d{1,3})\b)?')

# A signed message (DSSE), whose kind is in the type of its payload
_SIGNED = re.compile(rb'\A\s*\{\s*"payloadType":\s*"([^"]{1,120})"')

# Pages, requests, SQLite's databases, Parquet and Arrow files
_TITLE = " · confide</title>".encode()
_REQUEST = b"# A request to confide"
_DATABASE = b"SQLite format 3\0"
_TABLES = (b"PAR1", b"ARROW1")

# The first line of model cards in Markdown, in a comment of YAML
WRITTEN_BY = "Written by confide"

# The application id of a ledger, and its place in SQLite's header
LEDGER_ID = 0x436F6E66  # "Conf"
_APPLICATION_ID = slice(68, 72)


class FileKind(StrEnum):
    """Kinds of files, as messages call them."""

    RELEASE = "a release"
    SIGNED = "a signed release"
    EVALUATION = "an evaluation"
    WATCH = "a watch"
    CORRECTED = "a corrected release"
    PAGE = "a page"
    CARD = "a model card"
    REQUEST = "a request"
    EXPORT = "an export of a ledger"
    COUNTS = "published counts"
    CHECKPOINT = "the checkpoint of a silo's keys"
    PLAN = "a federated plan"
    ANSWER = "a silo's answer"
    SILO = "a silo's public file"
    KEYS = "private keys"
    POLICY = "a silo's policy"
    LEDGER = "a ledger"
    PREDICTIONS = "a table of predictions"
    TABLE = "a table"
    EMPTY = "an empty file"
    OTHER = "another kind of file"


# The kinds of documents by their names, after `confide/`
_DOCUMENTS = {
    "release": FileKind.RELEASE,
    "published-counts": FileKind.COUNTS,
    "federated.release": FileKind.RELEASE,
    "federated.own-share": FileKind.RELEASE,
    "federated.signed-release": FileKind.SIGNED,
    "evaluation": FileKind.EVALUATION,
    "watch": FileKind.WATCH,
    "corrected": FileKind.CORRECTED,
    "ledger": FileKind.EXPORT,
    "federated.checkpoint": FileKind.CHECKPOINT,
    "federated.plan": FileKind.PLAN,
    "federated.answer": FileKind.ANSWER,
    "federated.silo": FileKind.SILO,
    "federated.private-keys": FileKind.KEYS,
    "federated.policy": FileKind.POLICY,
}


# How to see files that `confide show` does not print
SHOWN_ELSEWHERE = {
    FileKind.PAGE: "a browser shows it",
    FileKind.CARD: "it is Markdown, which an editor shows",
    FileKind.EXPORT: "`confide ledger show LEDGER DATASET` shows the ledger itself, and the file is JSON",
    FileKind.CHECKPOINT: "the keys next to it compare it with their ledger",
    FileKind.LEDGER: "`confide ledger list FILE` shows it",
    FileKind.TABLE: "`confide evaluate` and other commands read its records",
}


def foreign_file(text: str, wanted: FileKind, remedy: str = "") -> FormatError:
    """The error about a text of another kind than expected; `remedy` is for texts that are not files of confide.

    Examples
    --------
    >>> print(foreign_file('{"kind": "confide/federated.plan", "schema": 1}', FileKind.RELEASE))
    file: must be a release; got a federated plan. `confide show` shows it
    """
    head = text[:HEAD].encode()
    kind = kind_of_content(head)
    document = _DOCUMENT.match(head)
    if kind is FileKind.OTHER and document is not None:
        name, schema = (group.decode() for group in document.groups(b"none"))
        got = f"{kind_named(name.replace('confide.', 'confide/', 1))}: kind {name!r}, schema {schema}"
        return FormatError("file", f"must be of schema {SCHEMA}", got=got, remedy=OTHER_SCHEMA)
    if kind in (wanted, FileKind.EMPTY, FileKind.OTHER):
        return FormatError("file", f"must be {wanted}", remedy=remedy)
    shown = SHOWN_ELSEWHERE.get(kind, "`confide show` shows it")
    return FormatError("file", f"must be {wanted}", got=str(kind), remedy=shown)


def kind_of(path: FileLocation) -> FileKind:
    """The kind of a file; a path that is not a regular file, or cannot be read, is of another kind.

    Tables of predictions are distinguished from other tables by their columns, in `confide.tables`.
    """
    try:
        if not path.is_file():
            return FileKind.OTHER
        with path.open("rb") as stream:
            return kind_of_content(stream.read(HEAD))
    except OSError:
        return FileKind.OTHER


def kind_of_content(head: bytes) -> FileKind:
    """The kind of a file that begins with these bytes.

    Examples
    --------
    >>> print(kind_of_content(b'{"kind": "confide/release", "schema": 1'), kind_of_content(b"p_a,p_b"), sep=", ")
    a release, another kind of file
    """
    if not head:
        return FileKind.EMPTY
    if head.startswith(_TABLES):
        return FileKind.TABLE
    if head.startswith(_DATABASE):
        return FileKind.LEDGER if int.from_bytes(head[_APPLICATION_ID], "big") == LEDGER_ID else FileKind.OTHER
    if head.lower().startswith(b"<!doctype html>"):
        return FileKind.PAGE if _TITLE in head else FileKind.OTHER
    if head.startswith(f"---\n# {WRITTEN_BY}".encode()):
        return FileKind.CARD
    if head.startswith(_REQUEST):
        return FileKind.REQUEST
    if (signed := _SIGNED.match(head)) is not None:
        return kind_named(_kind_of_payload(signed[1].decode(errors="replace")) or "")
    document = _DOCUMENT.match(head)
    return FileKind.OTHER if document is None else kind_named(document[1].decode())


def kind_stated(content: Mapping[str, Any]) -> str | None:
    """The kind that a document states: in its field `kind`, or in the type of a signed payload.

    Examples
    --------
    >>> kind_stated({"payloadType": "application/vnd.confide.federated.plan+json; schema=1"})
    'confide/federated.plan'
    """
    kind = content.get("kind")
    return _kind_of_payload(str(content.get("payloadType"))) or (kind if isinstance(kind, str) else None)


def _kind_of_payload(payload_type: str) -> str | None:
    signed = re.match(r"application/vnd\.confide\.([a-z.-]+)\+json;", payload_type)
    return None if signed is None else f"confide/{signed[1]}"


def kind_named(name: str) -> FileKind:
    """The kind of a document that states this name.

    Examples
    --------
    >>> print(kind_named("confide/release"), kind_named("confide/federated.silo"), sep=", ")
    a release, a silo's public file
    """
    return _DOCUMENTS.get(name.removeprefix("confide/"), FileKind.OTHER)
