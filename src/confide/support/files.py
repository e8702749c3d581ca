"""Files: what a file is and what may be written over it, written whole or not at all, by one process at a time."""

import os
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path, PurePath
from typing import TypeVar

from confide.errors import ConfideError, FormatError, InputError
from confide.support.object_stores import ObjectPath, Place, as_place

# What a file is, told by its first bytes; and so what may be written over it: an earlier output of the same kind.


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
    SIGNED = "a signed release"
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
    "federated.signed-release": Kind.SIGNED,
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


def foreign_file(text: str, wanted: Kind, remedy: str = "") -> FormatError:
    """The refusal of a text of another kind than is wanted; the remedy is for one that `confide` did not write.

    Examples
    --------
    >>> print(foreign_file('{"kind": "confide.federated.plan", "schema": 1}', Kind.RELEASE))
    file: must be a release; got a federated plan. `confide show` shows it
    """
    found = kind_of_content(text[:HEAD].encode())
    if found in (wanted, Kind.EMPTY, Kind.OTHER):
        return FormatError("file", f"must be {wanted}", remedy=remedy)
    elsewhere = SHOWN_ELSEWHERE.get(found, "`confide show` shows it")
    return FormatError("file", f"must be {wanted}", got=str(found), remedy=elsewhere[0].upper() + elsewhere[1:])


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
        raise InputError("output", f"{str(path)!r} must end in .html or .htm: a page is written in HTML")


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
            "output",
            f"{str(path)!r} is {found}, and {kind} may replace nothing but {kind}",
            remedy="Choose another name",
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
            raise InputError(
                "output", f"{str(path)!r} would replace the input {str(one)!r}", remedy="Choose another name"
            )


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


WAIT = 60.0
_AGAIN = 0.05


def has_locks() -> bool:
    """Whether the system has locks that end with their process; Windows has none."""
    try:
        import fcntl  # noqa: F401
    except ImportError:
        return False
    return True


@contextmanager
def locked(path: Path, what: str, wait: float = WAIT) -> Iterator[None]:
    """Hold the lock of a file: an empty file NAME.lock beside it, which stays; the lock ends with its process.

    `what` is the file in messages.

    Raises
    ------
    InputError
        If another process or thread holds it for longer than `wait` seconds, or the folder cannot be written.
    """
    import fcntl

    try:
        handle = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise InputError(what, f"{str(path)!r} cannot be locked: {error.strerror}") from None
    try:
        until = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > until:
                    raise InputError(
                        what,
                        f"{str(path)!r} is in use by another process, which has not ended in {wait:g} seconds",
                        remedy="Try again later",
                    ) from None
                time.sleep(_AGAIN)
        yield
    finally:
        os.close(handle)


MOST_BYTES = 10_000_000

Document = TypeVar("Document")


class OutputExistsError(InputError):
    """An output file exists already and may not be overwritten."""


@contextmanager
def new_file(
    path: str | Place, *, overwrite: bool, kind: Kind = Kind.OTHER, what_is: Callable[[Place], Kind] = kind_of
) -> Iterator[Path]:
    """A temporary path beside `path`, moved into place when the block succeeds and removed when it does not.

    For an object of a store it lies in the folder for temporary files, and is sent when the block succeeds.

    Raises
    ------
    OutputExistsError
        If `path` exists and `overwrite` is false, checked before the work and again at the end.
    InputError
        If the folder does not exist or cannot be written; or if `path` exists and is no file of this `kind`, which
        `what_is` tells: nothing is replaced but an earlier output of the same kind.
    """
    path = as_place(path)
    refuse_existing(path, overwrite=overwrite, kind=kind, what_is=what_is)
    if isinstance(path, ObjectPath):
        with tempfile.TemporaryDirectory(prefix="confide-") as folder:  # ours alone
            part = Path(folder) / "part"
            part.touch(0o600)
            yield part
            refuse_existing(path, overwrite=overwrite, kind=kind, what_is=what_is)  # perhaps since then
            path.write(part)
        return
    part = path.parent / f".confide-{os.urandom(8).hex()}.part"  # known before it exists: an interruption removes it
    try:
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield part
        part.chmod(0o666 & ~_umask())
        if overwrite:
            if path.exists():  # perhaps since then
                refuse_replacing(path, kind, what_is)
            part.replace(path)
        else:
            try:
                os.link(part, path)
            except FileExistsError:
                raise _exists(path) from None
    except OSError as error:
        raise InputError("output", f"{str(path)!r} cannot be written: {error.strerror}") from None
    finally:
        with suppress(FileNotFoundError, NotADirectoryError):
            part.unlink()


def refuse_existing(
    path: Place, *, overwrite: bool, kind: Kind = Kind.OTHER, what_is: Callable[[Place], Kind] = kind_of
) -> None:
    """Refuse an output that exists, unless it may be overwritten and is of this kind; a folder is always refused."""
    try:
        folder, exists = path.is_dir(), path.exists()
    except OSError as error:
        raise InputError("output", f"{str(path)!r} cannot be written: {error.strerror}") from None
    if folder:
        raise InputError("output", f"{str(path)!r} is a folder", remedy="Name a file")
    if exists and not overwrite:
        raise _exists(path)
    if exists:
        refuse_replacing(path, kind, what_is)


def write_text(path: str | Place, text: str, *, overwrite: bool, durable: bool = False) -> None:
    """Write a text file, or an object of a store, atomically; what it says decides what it may replace.

    Of a `durable` file either the old text or the new one is on disk whatever happens, and when this returns the new.
    """
    with new_file(path, overwrite=overwrite, kind=kind_of_content(text.encode()[:HEAD])) as part:
        part.write_text(text, encoding="utf-8")
        if durable:
            to_disk(part)
    if durable:
        to_disk(Path(str(path)).parent)


def read_text(path: str | Place) -> str:
    """Read a small text file, or such an object of a store."""
    path = as_place(path)
    try:
        if isinstance(path, ObjectPath):
            if path.info().size and path.info().size > MOST_BYTES:
                raise FormatError("path", f"{str(path)!r} has more than {MOST_BYTES} bytes and is not a calibration")
            return path.read_text()
        if path.stat().st_size > MOST_BYTES:
            raise FormatError("path", f"{str(path)!r} has more than {MOST_BYTES} bytes and is not a calibration")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise FormatError("path", f"{str(path)!r} is not a text file") from None
    except OSError as error:
        raise InputError("path", f"{str(path)!r} cannot be read: {error.strerror}") from None
    except ConfideError:
        raise
    except ValueError:
        raise InputError("path", f"{str(path)!r} cannot be read: no file has such a name") from None


def read_as(path: str | Place, reader: Callable[[str], Document]) -> Document:
    """What a reader of texts makes of a small text file; what is wrong with the text is said of the file."""
    text = read_text(path)
    try:
        return reader(text)
    except FormatError as error:
        where = f"{error.requirement} (file {str(path)!r})"
        raise FormatError(error.argument, where, error.got, error.remedy) from None


def to_disk(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _exists(path: Place) -> OutputExistsError:
    return OutputExistsError(
        "output", f"{str(path)!r} exists already", remedy="Choose another name or give overwrite=True"
    )


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
