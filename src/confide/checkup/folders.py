"""All files below a path: which are ours, how they say they were made, and which cannot be read or are damaged."""

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from confide.checkup.advisories import Advisory, is_version
from confide.checkup.stated import Made, Stated, kept_by_ledger, readable, stated
from confide.errors import ConfideError, FormatError, InputError
from confide.federated import check_integrity
from confide.ledger import Ledger
from confide.releases import check_checksum
from confide.support import Kind, kind_of, parse_object, versions_text

MOST_BYTES = 200_000_000
_LOOKED_AT = {
    Kind.RELEASE, Kind.PRIVATE_EVALUATION, Kind.WATCH, Kind.LABELLING, Kind.ANSWER, Kind.REPORT, Kind.EXPORT,
    Kind.LEDGER,
}  # fmt: skip
"""What states how it was made. Keys, plans and policies are not opened."""

UNKNOWN = "versions not stated: made by 0.1 or a development version"


@dataclass(frozen=True)
class Found:
    """A file of ours.

    Parameters
    ----------
    path, kind
        Where it is, and what it is.
    made
        The versions with which it was made, each way once.
    advisories
        The names of what is known against them.
    wrong
        Why it cannot be used; empty if nothing is known.
    """

    path: str
    kind: str
    made: tuple[Made, ...] = ()
    advisories: tuple[str, ...] = ()
    wrong: str = ""

    @property
    def making(self) -> str:
        """With what it was made, for people."""
        texts = []
        for made in self.made:
            how = "" if made.drawn else " (nothing was drawn with them)"
            texts.append(f"{versions_text(dict(made.versions))}{how}" if made.versions else UNKNOWN)
        return "; ".join(dict.fromkeys(texts)) or "nothing in it was made with noise"

    @property
    def doubt(self) -> str:
        """Why no advisory can be excluded; empty if versions are stated, or if its kind did not state them in 0.1."""
        if self.kind == Kind.RELEASE and self.made and not any(made.versions for made in self.made):
            return "no versions are stated: no advisory can be excluded"
        for made in self.made:
            versions = dict(made.versions)
            needed = ("confide", "opendp") if made.drawn else ("confide",)
            if versions and (odd := [name for name in needed if not is_version(versions.get(name, ""))]):
                return f"no usable version of {', '.join(odd)} is stated: no advisory can be excluded"
        return ""


def look(paths: Sequence[str | Path], known: Sequence[Advisory]) -> tuple[tuple[Found, ...], int]:
    """Our files below these paths, and how many others there are. Links to folders are not followed.

    Raises
    ------
    InputError
        If a path does not exist.
    """
    found, others, seen = [], 0, set()
    for start in paths:
        if not os.path.lexists(start):
            raise InputError(f"path {str(start)!r} does not exist")
        for path, failed in _below(Path(start)):
            place = os.path.realpath(path)
            if place in seen:
                continue
            seen.add(place)
            one = Found(str(path), "unreadable", wrong=failed) if failed else _one(path, known)
            found += [] if one is None else [one]
            others += one is None
    return tuple(found), others


def _below(start: Path) -> Iterator[tuple[Path, str]]:
    """Files, each with why it cannot be opened, in order of their names."""
    failed: list[OSError] = []
    if not start.is_dir():
        yield start, _refusal(start)
        return
    for folder, folders, names in os.walk(start, onerror=failed.append):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            yield path, _refusal(path)
    for error in failed:
        yield Path(error.filename), f"cannot be read: {error.strerror}"


def _refusal(path: Path) -> str:
    """Why a file cannot be opened; what is no regular file, as a link to nowhere or a pipe, is none of ours."""
    if not path.is_file():
        return ""
    try:
        path.open("rb").close()
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return ""


def _one(path: Path, known: Sequence[Advisory]) -> Found | None:
    kind = kind_of(path)
    if kind not in _LOOKED_AT:
        return None
    try:
        said = _of_ledger(path) if kind is Kind.LEDGER else _of_document(path, kind)
    except (ConfideError, OSError) as error:
        return Found(str(path), str(kind), wrong=_short(error))
    hits = tuple(one.id for one in known if one.concerns_file(said))
    return Found(str(path), str(kind), said.made, hits)


def _of_document(path: Path, kind: Kind) -> Stated:
    if path.stat().st_size > MOST_BYTES:
        raise FormatError(f"it has more than {MOST_BYTES:,} bytes: no file of confide has")
    try:
        content = parse_object(path.read_text(encoding="utf-8"), integer_bits=2**14)
    except (ValueError, MemoryError):
        raise FormatError("it is cut off or damaged: not valid JSON") from None
    readable(content)
    _check(content, kind)
    return stated(content)


def _check(content: dict[str, Any], kind: Kind) -> None:
    """Refuse a document whose checksum or signature does not fit. An export of a ledger has neither."""
    if "signature" in content:
        check_integrity(content)
    elif kind is not Kind.EXPORT:
        check_checksum(content)


def _of_ledger(path: Path) -> Stated:
    """What a ledger keeps, read from a copy: SQLite writes beside a ledger that is only read."""
    with TemporaryDirectory() as folder:
        copy = Path(folder, "copy.ledger")
        for ending in ("", "-wal"):
            if (beside := path.with_name(path.name + ending)).is_file():
                shutil.copyfile(beside, copy.with_name(copy.name + ending))
        try:
            accounts = Ledger(copy, create=False).accounts()
        except ConfideError as error:
            raise FormatError(str(error).replace(str(copy), str(path))) from None
    made: dict[Made, None] = {}
    facts: set[tuple[str, str]] = set()
    for account in accounts.values():
        for entry in account.entries:
            if entry.release is not None:
                said = kept_by_ledger(entry.release)
                made |= dict.fromkeys(said.made)
                facts |= said.facts
    return Stated(tuple(made), frozenset(facts))


def _short(error: Exception) -> str:
    text = f"{error.strerror}" if isinstance(error, OSError) else str(error)
    return text.splitlines()[0] if text else type(error).__name__
