"""What a file is, told by its first bytes; and so what may be written over it: an earlier output of the same kind."""

import os
import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import PurePath

from confide.errors import InputError
from confide.support.object_stores import ObjectPath, Place, as_place

HEAD = 2**16
_DOCUMENT = re.compile(rb'\A\s*\{\s*"kind":\s*"(confide\.[a-z.-]{1,60})"')
_TITLE = " · confide</title>".encode()
_DATABASE = b"SQLite format 3\0"
_TABLES = (b"PAR1", b"ARROW1")
LEDGER_ID = 0x436F6E66  # "Conf"
"""The number by which SQLite's header marks a ledger."""


class Kind(StrEnum):
    """What a file is, in words."""

    RELEASE = "a release"
    EVALUATION = "an evaluation"
    WATCH = "a watch"
    PRIVATE_EVALUATION = "a private evaluation"
    PAGE = "a page"
    AUDIT = "the findings of an audit"
    EXPORT = "an export of a ledger"
    SCHEDULE = "a schedule"
    COUNTING = "a counting plan"
    LABELLING = "a statement about labels"
    HEAD = "a ledger's head"
    PLAN = "a federated plan"
    ANSWER = "a silo's answer"
    OPENING = "a coordinator's opening"
    PART = "an opener's part"
    REPORT = "a silo's report"
    SILO = "a silo's public file"
    KEYS = "private keys"
    POLICY = "a silo's policy"
    LEDGER = "a ledger"
    PREDICTIONS = "a table of predictions"
    TABLE = "a table"
    EMPTY = "an empty file"
    OTHER = "another kind of file"


_DOCUMENTS = {
    "calibration": Kind.RELEASE,
    "groups": Kind.RELEASE,
    "levels": Kind.RELEASE,
    "sides": Kind.RELEASE,
    "risk": Kind.RELEASE,
    "noisy-labels": Kind.RELEASE,
    "labelling": Kind.LABELLING,
    "federated.calibration": Kind.RELEASE,
    "federated.several": Kind.RELEASE,
    "federated.own-share": Kind.RELEASE,
    "evaluation": Kind.EVALUATION,
    "watch": Kind.WATCH,
    "private-evaluation": Kind.PRIVATE_EVALUATION,
    "audit": Kind.AUDIT,
    "ledger": Kind.EXPORT,
    "schedule": Kind.SCHEDULE,
    "counting-plan": Kind.COUNTING,
    "ledger-head": Kind.HEAD,
    "federated.plan": Kind.PLAN,
    "federated.plans": Kind.PLAN,
    "federated.answer": Kind.ANSWER,
    "federated.opening": Kind.OPENING,
    "federated.part": Kind.PART,
    "federated.silo-report": Kind.REPORT,
    "federated.silo": Kind.SILO,
    "federated.private-keys": Kind.KEYS,
    "federated.policy": Kind.POLICY,
}


SHOWN_ELSEWHERE = {
    Kind.PAGE: "a browser shows it",
    Kind.AUDIT: "`confide audit` printed them, and the file is JSON",
    Kind.EXPORT: "`confide ledger show LEDGER DATASET` shows the ledger itself, and the file is JSON",
    Kind.HEAD: "`confide ledger check LEDGER --head FILE` compares it with the ledger",
    Kind.LEDGER: "`confide ledger list FILE` shows it",
    Kind.TABLE: "`confide evaluate` and other commands read its records",
}
"""What shows a kind of file that `confide show` does not show."""


def mistaken(text: str, wanted: Kind) -> str | None:
    """What is said of the text of a file where one of another kind is wanted; None if `confide` did not write it.

    Examples
    --------
    >>> mistaken('{"kind": "confide.federated.plan", "schema": 1}', Kind.RELEASE)
    'it is a federated plan, not a release; `confide show` shows it'
    """
    found = kind_of_content(text[:HEAD].encode())
    if found in (wanted, Kind.EMPTY, Kind.OTHER):
        return None
    return f"it is {found}, not {wanted}; {SHOWN_ELSEWHERE.get(found, '`confide show` shows it')}"


def kind_of(path: Place) -> Kind:
    """What a file is; what is no regular file, or cannot be read, is of another kind.

    Tables of predictions are told from other tables by their columns, which `confide.tables` looks at.
    """
    try:
        if not path.is_file():
            return Kind.OTHER
        with path.open("rb") as stream:
            return kind_of_content(stream.read(HEAD))
    except OSError:
        return Kind.OTHER


def kind_of_content(head: bytes) -> Kind:
    """What a file is that begins with these bytes.

    Examples
    --------
    >>> print(kind_of_content(b'{"kind": "confide.levels", "schema": 1'), kind_of_content(b"p_a,p_b"), sep=", ")
    a release, another kind of file
    """
    if not head:
        return Kind.EMPTY
    if head.startswith(_TABLES):
        return Kind.TABLE
    if head.startswith(_DATABASE):
        return Kind.LEDGER if int.from_bytes(head[68:72], "big") == LEDGER_ID else Kind.OTHER
    if head[:15].lower() == b"<!doctype html>":
        return Kind.PAGE if _TITLE in head else Kind.OTHER
    document = _DOCUMENT.match(head)
    return Kind.OTHER if document is None else kind_named(document[1].decode())


def kind_named(name: str) -> Kind:
    """What a document is that states this kind.

    Examples
    --------
    >>> print(kind_named("confide.levels"), kind_named("confide.federated.silo"), sep=", ")
    a release, a silo's public file
    """
    return _DOCUMENTS.get(name.removeprefix("confide."), Kind.OTHER)


def refuse_other_than_html(path: str | Place) -> None:
    """Refuse the name of another kind of file for a page, which is written in HTML.

    Raises
    ------
    InputError
        If it ends in anything but .html or .htm.
    """
    if PurePath(str(path)).suffix.lower() not in ("", ".html", ".htm"):
        raise InputError(f"output {str(path)!r} must end in .html or .htm: a page is written in HTML")


def refuse_replacing(path: Place, kind: Kind, what_is: Callable[[Place], Kind] = kind_of) -> None:
    """Refuse to write over a file that is no earlier output of the same kind; an empty file holds nothing to lose.

    Raises
    ------
    InputError
        If the file is something else.
    """
    found = what_is(path)
    if found not in (kind, Kind.EMPTY) or kind is Kind.OTHER:
        raise InputError(
            f"output {str(path)!r} is {found}, and {kind} may replace nothing but {kind}; choose another name"
        )


def refuse_input(path: Place, inputs: Iterable[str | Place | None]) -> None:
    """Refuse to write over a file that is read, whatever it is called: by another path or by a link.

    Raises
    ------
    InputError
        If the output is one of the inputs.
    """
    for one in inputs:
        if one is not None and same_place(path, as_place(one)):
            raise InputError(f"output {str(path)!r} would replace the input {str(one)!r}; choose another name")


def same_place(path: Place, other: Place) -> bool:
    """Whether two names are of one file, by another path or a link, or of one object, by another address.

    Examples
    --------
    >>> same_place(as_place("s3://bucket/x.csv"), as_place("s3a://bucket/x.csv"))
    True
    """
    if isinstance(path, ObjectPath) or isinstance(other, ObjectPath):
        return isinstance(path, ObjectPath) and isinstance(other, ObjectPath) and path.where == other.where
    try:
        return path.samefile(other)
    except OSError:  # one of them does not exist, perhaps not yet
        return os.path.realpath(path) == os.path.realpath(other)
