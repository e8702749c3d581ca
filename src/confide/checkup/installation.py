"""Installed packages and advisories about them.

Versions come from package metadata. The module also checks file hashes and whether the sampler draws.
"""

import base64
import hashlib
import json
import operator
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from confide.errors import MissingExtraError
from confide.support import has_locks, needs_extra

if TYPE_CHECKING:
    from packaging.requirements import Requirement


RANGE = "comparing versions"
_COMPARED = {">=": operator.ge, "<": operator.lt}


class VersionSet(NamedTuple):
    """Versions behind one number, empty if they are not stated, and whether they drew the number."""

    versions: tuple[tuple[str, str], ...]
    drawn: bool


class Statements(NamedTuple):
    """Distinct version sets in a document, and facts such as ("score", "lac") that it states."""

    made: tuple[VersionSet, ...]
    facts: frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Advisory:
    """A defect of some versions of a package.

    Parameters
    ----------
    id
        Identifier: package and number of its public report.
    package, versions
        Package with the defect, and affected versions, as pip writes ranges.
    concerns
        Affected files: `{"drawn": True}` for all numbers that these versions drew; lists by `score`, `method` or `kind`
        for files that state one of these values or a value that begins with it; empty for the installation only.
    what, releases, remedy
        Description of the defect, affected releases, and what to do.
    reference
        Source of the report.
    """

    id: str
    package: str
    versions: str
    concerns: Mapping[str, Any]
    what: str
    releases: str
    remedy: str
    reference: str

    def affects(self, version: str | None) -> bool:
        """Whether a version has the defect; a string that is not a version does not.

        Unlike in ranges of pip, pre-releases of the first version without the defect count as affected.

        Examples
        --------
        >>> first = advisories()[0]
        >>> [first.affects(version) for version in ("0.14.1", "0.14.2a1", "0.14.2", "unreleased", None)]
        [True, True, False, False, False]
        """
        with needs_extra(RANGE, "standard"):
            from packaging.specifiers import SpecifierSet
            from packaging.version import Version
        if version is None or not is_version(version):
            return False
        ends = [(_COMPARED[one.operator], Version(one.version)) for one in SpecifierSet(self.versions)]
        return all(compared(Version(version), end) for compared, end in ends)

    def concerns_file(self, stated: Statements) -> bool:
        """Whether the statements of a file match the advisory."""
        if self.concerns.get("drawn"):
            return any(made.drawn and self._of(made) for made in stated.made)
        begins = [(name, text) for name in ("kind", "score", "method") for text in self.concerns.get(name, ())]
        said = any(name == fact and value.startswith(text) for name, text in begins for fact, value in stated.facts)
        return said and any(map(self._of, stated.made))

    def fields(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)

    def _of(self, made: VersionSet) -> bool:
        return self.affects(dict(made.versions).get(self.package))


def is_version(text: str) -> bool:
    """Whether a string is a package version, so that it can be compared with ranges.

    Examples
    --------
    >>> is_version("0.16.0"), is_version("unreleased")
    (True, False)
    """
    with needs_extra(RANGE, "standard"):
        from packaging.version import InvalidVersion, Version
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


@lru_cache(maxsize=1)
def advisories() -> tuple[Advisory, ...]:
    """All advisories of this version of confide; there is no network access."""
    text = files("confide.checkup").joinpath("advisories.json").read_text(encoding="utf-8")
    return tuple(Advisory(**entry) for entry in json.loads(text)["advisories"])


NEEDED = ("numpy", "scipy", "opendp")
CHECKED = ("confide", "opendp")
"""Packages whose files are compared with the hashes in their metadata."""

UNLOCKS = {
    "standard": "the command line, tables, estimators, pages, federations",
    "pandas": "data frames of pandas",
    "frames": "data frames of any library that narwhals supports",
    "plots": "pictures",
    "speed": "compiled loops for scores of many classes",
    "arrays": "arrays of any library by the array API",
    "jax": "arrays of JAX",
    "torch": "tensors, models and loaders of PyTorch",
    "monai": "transforms, metrics and loaders of MONAI",
    "onnx": "graphs with prediction sets",
    "mlflow": "models of an MLflow registry that serve sets",
    "accounting": "tighter totals in a ledger, by dp-accounting",
    "postgres": "tables and ledgers on PostgreSQL",
    "spark": "tables on Spark",
    "ray": "tables on Ray",
    "flower": "federations over Flower",
    "nvflare": "federations over NVIDIA FLARE",
    "experiments": "the figures of the documentation",
}
_MOST_NAMED = 5


@dataclass(frozen=True)
class Package:
    """An installed package.

    Parameters
    ----------
    name, version
        Name, and version or None if the package is not installed.
    wanted
        Version range that confide requires, empty for any.
    supported
        Whether the version is in the range.
    files
        For confide and OpenDP, whether the files match their hashes: "as installed", "editable", "not known", or
        "changed: ..." with the first names.
    """

    name: str
    version: str | None
    wanted: str = ""
    supported: bool = True
    files: str = ""

    def __str__(self) -> str:
        version = "not installed" if self.version is None else self.version
        range_ = "" if self.supported else f", outside of {self.wanted}"
        return f"{version}{range_}{f', files {self.files}' if self.files else ''}"


@dataclass(frozen=True)
class Part:
    """An optional part of confide: its extra, what it adds, and the packages that it needs."""

    extra: str
    unlocks: str
    packages: tuple[Package, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """Packages that are not installed."""
        return tuple(one.name for one in self.packages if one.version is None)

    @property
    def unsupported(self) -> tuple[Package, ...]:
        """Packages in versions outside of the required range."""
        return tuple(one for one in self.packages if one.version is not None and not one.supported)

    def __str__(self) -> str:
        if self.missing:
            return f"no: {self.unlocks}; pip install 'confide[{self.extra}]'"
        odd = [f"{one.name} {one}" for one in self.unsupported]
        return "; ".join([f"yes: {self.unlocks}", *odd])


def packages() -> tuple[Package, ...]:
    """Confide itself and its required packages."""
    wanted = {one.name: one for one in _requirements("")}
    found = [Package("confide", _version("confide"), files=_files("confide"))]
    for name in NEEDED:
        made = _package(wanted[name]) if name in wanted else Package(name, _version(name))
        found.append(Package(name, made.version, made.wanted, made.supported, _files(name) if name in CHECKED else ""))
    return tuple(found)


def parts() -> tuple[Part, ...]:
    """Optional parts of confide."""
    declared = metadata.metadata("confide").get_all("Provides-Extra") or []
    return tuple(
        Part(extra, UNLOCKS.get(extra, "more"), tuple(sorted(map(_package, _requirements(extra)), key=_name)))
        for extra in [*(one for one in UNLOCKS if one in declared), *(one for one in declared if one not in UNLOCKS)]
    )


def sampler() -> str:
    """Whether the secure sampler is installed and draws."""
    from confide.noisy_counts import draw_counts
    from confide.selection import check_sampler

    try:
        check_sampler()
        drawn = set(draw_counts([0] * 64, 1.0).tolist())  # all equal: less than once in 10^21
    except MissingExtraError:
        return "not installed: releases can be applied but not made"
    except (ImportError, OSError) as error:
        return f"broken: {type(error).__name__} when OpenDP is loaded"
    return "draws; it cannot be seeded" if len(drawn) > 1 else "broken: it draws the same number repeatedly"


def locks() -> str:
    """Whether files can be locked for one process, which watches need."""
    return "available (fcntl)" if has_locks() else "no fcntl: looks of a watch are not possible here; ledgers are safe"


def _name(package: Package) -> str:
    return package.name


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _package(wanted: "Requirement") -> Package:
    from packaging.version import InvalidVersion

    version = _version(wanted.name)
    try:
        supported = version is None or wanted.specifier.contains(version, prereleases=True)
    except InvalidVersion:
        supported = False
    return Package(wanted.name, version, str(wanted.specifier), supported)


def _requirements(extra: str) -> "Iterator[Requirement]":
    """Requirements of an extra beyond the required packages; without an extra, the required packages."""
    with needs_extra(RANGE, "standard"):
        from packaging.requirements import Requirement

    seen: dict[str, Requirement] = {}
    for text in metadata.requires("confide") or []:
        one = Requirement(text)
        always = one.marker is None or one.marker.evaluate({"extra": ""})
        if extra and not always and one.marker is not None and one.marker.evaluate({"extra": extra}):
            own = [each for other in sorted(one.extras) for each in _requirements(other)]
            seen.update({each.name: each for each in (own if one.name == "confide" else [one])})
        elif not extra and always:
            seen[one.name] = one
    yield from seen.values()


def _files(name: str) -> str:
    """Whether the files of a package match the hashes in its metadata."""
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return ""
    origin = json.loads(found.read_text("direct_url.json") or "{}")
    if origin.get("dir_info", {}).get("editable"):
        return "editable: a working tree, without hashes"
    listed = [(file, file.hash.value) for file in found.files or () if file.hash and file.hash.mode == "sha256"]
    if not listed:
        return "not known: the installation has no list of hashes"
    changed = [str(file) for file, stated in listed if _digest(file) != stated]
    if not changed:
        return f"as installed ({len(listed)} hashes)"
    more = f" and {len(changed) - _MOST_NAMED} more" if len(changed) > _MOST_NAMED else ""
    return f"changed: {', '.join(sorted(changed)[:_MOST_NAMED])}{more}"


def _digest(file: metadata.PackagePath) -> str | None:
    """Hash of a file in the format of package metadata; None if the file does not exist."""
    try:
        with Path(str(file.locate())).open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").digest()
    except OSError:
        return None
    return base64.urlsafe_b64encode(found).decode().rstrip("=")
