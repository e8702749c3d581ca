"""Files below a path, the versions that made them, and `doctor`, which joins files and installation.

The statements of a document about versions are read without checks; `confide verify` checks claims.
"""

import json
import os
import platform
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from confide.checkup.installation import (
    Advisory,
    Package,
    Part,
    Statements,
    VersionSet,
    advisories,
    is_version,
    locks,
    packages,
    parts,
    sampler,
)
from confide.errors import ConfideError, FormatError, InputError
from confide.federated import check_integrity
from confide.ledger import Ledger
from confide.support import (
    Described,
    FileKind,
    Section,
    aligned,
    check_checksum,
    check_versions,
    kind_of,
    parse_object,
    versions_text,
)

_DRAWN = {
    "confide.private-evaluation",
    "confide.labelling",
    "confide.look",
    "confide.federated.answer",
    "confide.federated.silo-report",
}
"""Kinds whose own numbers were drawn by a sampler."""

_JOINED = {"confide.noisy-labels", "confide.federated.calibration", "confide.federated.several"}
"""Kinds that were computed from drawn numbers of others."""

_FACTS = ("kind", "score", "method")


def stated(content: Mapping[str, Any]) -> Statements:
    """Versions and facts that a document states, including the documents in it.

    Raises
    ------
    FormatError
        If its statement about versions cannot be displayed.

    Examples
    --------
    >>> stated({"kind": "confide.look", "versions": {"opendp": "0.14.1"}}).made
    (VersionSet(versions=(('opendp', '0.14.1'),), drawn=True),)
    """
    ways, facts = dict.fromkeys(_ways(content)), frozenset(_facts(content))
    return Statements(tuple(ways), facts)


def statements_of_stored(text: str) -> Statements:
    """Statements of a stored release: a document, or numbers with the versions that drew them; else nothing."""
    try:
        value = parse_object(json.dumps({"kept": json.loads(text)}))["kept"]
    except (ValueError, RecursionError):
        return Statements((), frozenset())
    if isinstance(value, list) and value and isinstance(value[-1], dict) and "kind" not in value[-1]:
        return Statements((_made(value[-1], drawn=True),), frozenset())
    return stated(value) if isinstance(value, dict) else Statements((VersionSet((), True),), frozenset())


def _ways(value: Any) -> Iterator[VersionSet]:
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
                raise FormatError("looks", "must be a list of objects", remedy="Get the original")
            for look in looks:
                yield _made(look.get("versions", {}), drawn=True)
    for item in value.values():
        yield from _ways(item)


def _made(versions: Any, *, drawn: bool) -> VersionSet:
    return VersionSet(tuple(sorted(check_versions("file", versions).items())), drawn)


def _facts(value: Any) -> Iterator[tuple[str, str]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        if name in _FACTS and isinstance(item, str):
            yield name, item
        yield from _facts(item)


def readable(content: Mapping[str, Any]) -> None:
    """Raise `FormatError` for a document with a schema that this version cannot read.

    Raises
    ------
    FormatError
        If a newer version wrote the document, or it has no schema.
    """
    schema = content.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or not 1 <= schema <= 3:
        raise FormatError(
            "schema", "must be one that this version reads", got=f"{schema!r:.20}", remedy="Upgrade confide"
        )


MOST_BYTES = 200_000_000
_LOOKED_AT = {
    FileKind.RELEASE, FileKind.SIGNED, FileKind.PRIVATE_EVALUATION, FileKind.WATCH, FileKind.LABELLING,
    FileKind.ANSWER, FileKind.REPORT, FileKind.EXPORT, FileKind.LEDGER,
}  # fmt: skip
"""Kinds that state versions. Keys, plans and policies are not opened."""

UNKNOWN = "versions not stated: made by 0.2 or a development version"


@dataclass(frozen=True)
class CheckedFile:
    """A file of confide.

    Parameters
    ----------
    path, kind
        Path and kind of the file.
    made
        Distinct version sets that made the file.
    advisories
        Identifiers of advisories that concern them.
    wrong
        Reason why the file cannot be used; empty if there is none.
    """

    path: str
    kind: str
    made: tuple[VersionSet, ...] = ()
    advisories: tuple[str, ...] = ()
    wrong: str = ""

    @property
    def making(self) -> str:
        """Text about the versions that made the file."""
        texts = []
        for made in self.made:
            how = "" if made.drawn else " (they drew no numbers)"
            texts.append(f"{versions_text(dict(made.versions))}{how}" if made.versions else UNKNOWN)
        return "; ".join(dict.fromkeys(texts)) or "no number in it has noise"

    @property
    def doubt(self) -> str:
        """Reason why no advisory can be excluded; empty if versions are stated, or if 0.2 did not state them."""
        if (
            self.kind in (FileKind.RELEASE, FileKind.SIGNED)
            and self.made
            and not any(made.versions for made in self.made)
        ):
            return "no versions are stated: no advisory can be excluded"
        for made in self.made:
            versions = dict(made.versions)
            needed = ("confide", "opendp") if made.drawn else ("confide",)
            if versions and (odd := [name for name in needed if not is_version(versions.get(name, ""))]):
                return f"no usable version of {', '.join(odd)} is stated: no advisory can be excluded"
        return ""


def find_files(paths: Sequence[str | Path], known: Sequence[Advisory]) -> tuple[tuple[CheckedFile, ...], int]:
    """Files of confide below these paths, and the number of other files. Links to folders are not followed.

    Raises
    ------
    InputError
        If a path does not exist.
    """
    found, others, seen = [], 0, set()
    for start in paths:
        if not os.path.lexists(start):
            raise InputError("path", "must exist", got=repr(str(start)))
        for path, failed in _below(Path(start)):
            place = os.path.realpath(path)
            if place in seen:
                continue
            seen.add(place)
            one = CheckedFile(str(path), "unreadable", wrong=failed) if failed else _one(path, known)
            found += [] if one is None else [one]
            others += one is None
    return tuple(found), others


def _below(start: Path) -> Iterator[tuple[Path, str]]:
    """Files in the order of their names, each with the reason why it cannot be opened, or an empty string."""
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
    """Reason why a file cannot be opened; paths that are not regular files count as other files."""
    if not path.is_file():
        return ""
    try:
        path.open("rb").close()
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return ""


def _one(path: Path, known: Sequence[Advisory]) -> CheckedFile | None:
    kind = kind_of(path)
    if kind not in _LOOKED_AT:
        return None
    try:
        said = _of_ledger(path) if kind is FileKind.LEDGER else _of_document(path, kind)
    except (ConfideError, OSError) as error:
        return CheckedFile(str(path), str(kind), wrong=_short(error))
    hits = tuple(one.id for one in known if one.concerns_file(said))
    return CheckedFile(str(path), str(kind), said.made, hits)


def _of_document(path: Path, kind: FileKind) -> Statements:
    if path.stat().st_size > MOST_BYTES:
        raise FormatError("file", f"must have at most {MOST_BYTES:,} bytes, like all files of confide")
    try:
        content = parse_object(path.read_text(encoding="utf-8"), integer_bits=2**14)
    except (ValueError, MemoryError):
        raise FormatError("file", "must be valid JSON", "a truncated or damaged file") from None
    readable(content)
    _check(content, kind)
    return stated(content)


def _check(content: dict[str, Any], kind: FileKind) -> None:
    """Raise if the checksum or signature of a document does not match. An export of a ledger has neither."""
    if "signature" in content:
        check_integrity(content)
    elif kind is not FileKind.EXPORT:
        check_checksum(content)


def _of_ledger(path: Path) -> Statements:
    """Statements of a ledger, read from a copy, because SQLite writes files next to a ledger even to read it."""
    with TemporaryDirectory() as folder:
        copy = Path(folder, "copy.ledger")
        for ending in ("", "-wal"):
            if (source := path.with_name(path.name + ending)).is_file():
                shutil.copyfile(source, copy.with_name(copy.name + ending))
        try:
            accounts = Ledger(copy, create=False).accounts()
        except ConfideError as error:
            raise FormatError(*(part.replace(str(copy), str(path)) for part in error.args)) from None
    made: dict[VersionSet, None] = {}
    facts: set[tuple[str, str]] = set()
    for account in accounts.values():
        for entry in account.entries:
            if entry.release is not None:
                said = statements_of_stored(entry.release)
                made |= dict.fromkeys(said.made)
                facts |= said.facts
    return Statements(tuple(made), frozenset(facts))


def _short(error: Exception) -> str:
    text = f"{error.strerror}" if isinstance(error, OSError) else str(error)
    return text.splitlines()[0] if text else type(error).__name__


@dataclass(frozen=True, repr=False)
class Checkup(Described):
    """Installed versions, versions that made files, and advisories about them.

    Parameters
    ----------
    python, system
        Version of Python, and the system.
    packages, parts
        Required packages, and optional parts.
    sampler, locks
        Whether the secure sampler draws, and whether files can be locked.
    advisories
        Advisories about the installed versions.
    files
        Files of confide below the given paths.
    other_files
        Number of other files.
    known
        All advisories, including those that concern only files.
    """

    python: str
    system: str
    packages: tuple[Package, ...]
    parts: tuple[Part, ...]
    sampler: str
    locks: str
    advisories: tuple[Advisory, ...]
    files: tuple[CheckedFile, ...] = ()
    other_files: int = 0
    known: tuple[Advisory, ...] = ()

    @property
    def findings(self) -> tuple[str, ...]:
        """Lines about problems, one for each; empty if there are none."""
        found = [f"{one.package} {self._version(one.package)} has {one.id}: {one.what}" for one in self.advisories]
        found += [f"{one.name}: {one}" for one in self.packages if not one.supported or one.version is None]
        found += [f"{one.name}: files {one.files}" for one in self.packages if one.files.startswith("changed")]
        found += [f"extra {p.extra}: {one.name} {one}" for p in self.parts for one in p.unsupported if not p.missing]
        if self.sampler.startswith("broken"):
            found.append(f"sampler {self.sampler}")
        found += [f"{one.path}: {one.wrong}" for one in self.files if one.wrong]
        found += [f"{one.path}: {', '.join(one.advisories)}" for one in self.files if one.advisories]
        found += [f"{one.path}: {one.doubt}" for one in self.files if one.doubt]
        return tuple(dict.fromkeys(found))

    def fields(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "python": self.python,
            "system": self.system,
            "packages": [asdict(one) for one in self.packages],
            "sampler": self.sampler,
            "locks": self.locks,
            "parts": [
                {
                    "extra": one.extra,
                    "installed": not one.missing,
                    "unlocks": one.unlocks,
                    "packages": {each.name: each.version for each in one.packages},
                }
                for one in self.parts
            ],
            "advisories": [one.fields() for one in self._concerned()],
            "installation": [one.id for one in self.advisories],
            "files": [
                {
                    "path": one.path,
                    "kind": one.kind,
                    "made": [{"versions": dict(way.versions), "drawn": way.drawn} for way in one.made],
                    "advisories": list(one.advisories),
                    "doubt": one.doubt,
                    "wrong": one.wrong,
                }
                for one in self.files
            ],
            "others": self.other_files,
            "findings": list(self.findings),
        }

    def _section(self) -> Section:
        return Section("Checkup", self._text())

    def _text(self) -> str:
        rows = [("Python", f"{self.python}, {self.system}"), *((one.name, str(one)) for one in self.packages)]
        rows += [("sampler", self.sampler), ("file locks", self.locks)]
        installed, verdict = aligned(rows), f"findings: {len(self.findings) or 'none'}"
        concerned = [
            f"{one.id}: {one.package} {one.versions}\n  {one.what}\n  concerned: {one.releases}\n"
            f"  do: {one.remedy}\n  see: {one.reference}"
            for one in self._concerned()
        ]
        if self.files or self.other_files:  # with files, the result about files comes first
            there = sum(not one.missing for one in self.parts)
            parts = f"optional parts: {there} of {len(self.parts)} are installed; doctor without files names them"
            return "\n\n".join([f"{verdict}\n\n{self._files()}", *concerned, f"{installed}\n{parts}"])
        parts = "optional parts:\n" + aligned([(f"  {one.extra}", str(one)) for one in self.parts])
        return "\n\n".join([installed, *([parts] if self.parts else []), *concerned, verdict])

    def _files(self) -> str:
        """Files grouped by the versions that made them; unusable files come first."""
        alike: dict[str, list[str]] = {}
        for one in sorted(self.files, key=lambda one: not one.wrong):
            state = f"cannot be used: {one.wrong}" if one.wrong else f"made with: {one.making}"
            hits = f"; {', '.join(one.advisories)}" if one.advisories else ""
            alike.setdefault(state, []).append(f"    {one.path}: {one.kind}{hits}")
        lines = [line for state, files in alike.items() for line in (f"  {state}", *files)]
        return "\n".join([f"files of confide: {len(self.files)}; others, not opened: {self.other_files}", *lines])

    def _concerned(self) -> list[Advisory]:
        named = {name for one in self.files for name in one.advisories} | {one.id for one in self.advisories}
        return [one for one in self.known if one.id in named]

    def _version(self, package: str) -> str | None:
        return next((one.version for one in self.packages if one.name == package), None)

    def _brief(self) -> str:
        versions = f"confide {self._version('confide')}, OpenDP {self._version('opendp')}"
        return f"{versions}, {len(self.files)} files, findings: {len(self.findings) or 'none'}"


def doctor(*paths: str | Path) -> Checkup:
    """Check the installation and files for known defects, without network access.

    Parameters
    ----------
    *paths
        Files, and folders with all files below them: releases, private evaluations, watches, statements about
        randomised labels, silos' answers and reports, ledgers and their exports. Other files are counted, not opened.

    Returns
    -------
    Checkup
        `print` shows everything; `findings` is empty if there are no known problems.

    Raises
    ------
    InputError
        If a path does not exist.
    MissingExtraError
        If `packaging`, which is part of `confide[standard]`, is not installed.

    Notes
    -----
    Checksums and signatures of files are checked. Claims are not recomputed (`confide verify` does that).

    Examples
    --------
    >>> import confide
    >>> checkup = confide.doctor()
    >>> checkup.sampler, len(checkup.files)
    ('draws; it cannot be seeded', 0)
    """
    known = advisories()
    installed = packages()
    versions: Mapping[str, str | None] = {one.name: one.version for one in installed}
    files, others = find_files(paths, known)
    return Checkup(
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        packages=installed,
        parts=parts(),
        sampler=sampler(),
        locks=locks(),
        advisories=tuple(one for one in known if one.affects(versions.get(one.package))),
        files=files,
        other_files=others,
        known=known,
    )
