"""What is installed, from metadata alone; whether files are those that were installed; whether the sampler draws."""

import base64
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from confide.checkup.advisories import RANGE
from confide.errors import MissingExtraError
from confide.support import has_locks, needs_extra

if TYPE_CHECKING:
    from packaging.requirements import Requirement

NEEDED = ("numpy", "scipy", "opendp")
CHECKED = ("confide", "opendp")
"""Whose files are compared with the list that came with them."""

UNLOCKS = {
    "standard": "the command line, tables, estimators, pages, federations",
    "pandas": "data frames of pandas",
    "frames": "data frames of any library that narwhals knows",
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
        The version is None if it is not installed.
    wanted
        The versions that confide asks for, empty for any.
    supported
        Whether the version is one of them.
    files
        Of confide and OpenDP, whether the installed files are those that were installed: "as installed", "editable",
        "not known", or "changed: ..." with the first names.
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
    """An optional part of confide: the extra that brings it, what it unlocks, and the packages that it needs."""

    extra: str
    unlocks: str
    packages: tuple[Package, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """Packages that are not installed."""
        return tuple(one.name for one in self.packages if one.version is None)

    @property
    def unsupported(self) -> tuple[Package, ...]:
        """Packages in versions that confide does not ask for."""
        return tuple(one for one in self.packages if one.version is not None and not one.supported)

    def __str__(self) -> str:
        if self.missing:
            return f"no: {self.unlocks}; pip install 'confide[{self.extra}]'"
        odd = [f"{one.name} {one}" for one in self.unsupported]
        return "; ".join([f"yes: {self.unlocks}", *odd])


def packages() -> tuple[Package, ...]:
    """Confide itself and what it always needs."""
    wanted = {one.name: one for one in _requirements("")}
    found = [Package("confide", _version("confide"), files=_files("confide"))]
    for name in NEEDED:
        made = _package(wanted[name]) if name in wanted else Package(name, _version(name))
        found.append(Package(name, made.version, made.wanted, made.supported, _files(name) if name in CHECKED else ""))
    return tuple(found)


def parts() -> tuple[Part, ...]:
    """What is optional."""
    declared = metadata.metadata("confide").get_all("Provides-Extra") or []
    return tuple(
        Part(extra, UNLOCKS.get(extra, "more"), tuple(sorted(map(_package, _requirements(extra)), key=_name)))
        for extra in [*(one for one in UNLOCKS if one in declared), *(one for one in declared if one not in UNLOCKS)]
    )


def sampler() -> str:
    """Whether the secure sampler is there and draws."""
    from confide.noisy_counts import draw_counts
    from confide.selection import check_sampler

    try:
        check_sampler()
        drawn = set(draw_counts([0] * 64, 1.0).tolist())  # all alike: less than once in 10^21
    except MissingExtraError:
        return "not installed: releases can be applied, and none can be made"
    except (ImportError, OSError) as error:
        return f"broken: {type(error).__name__} when OpenDP is loaded"
    return "draws; it cannot be seeded" if len(drawn) > 1 else "broken: it draws the same number again and again"


def locks() -> str:
    """Whether one process at a time can hold a file, which watches need."""
    return "there (fcntl)" if has_locks() else "no fcntl: looks of a watch are refused here; ledgers are safe"


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
    """What an extra asks for beyond what is always needed; without one, what is."""
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
    """Whether a package's files have the hashes that its list of files states."""
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return ""
    origin = json.loads(found.read_text("direct_url.json") or "{}")
    if origin.get("dir_info", {}).get("editable"):
        return "editable: those of a working tree, which nobody has hashed"
    listed = [(file, file.hash.value) for file in found.files or () if file.hash and file.hash.mode == "sha256"]
    if not listed:
        return "not known: the installation has no list of hashes"
    changed = [str(file) for file, stated in listed if _digest(file) != stated]
    if not changed:
        return f"as installed ({len(listed)} hashes)"
    more = f" and {len(changed) - _MOST_NAMED} more" if len(changed) > _MOST_NAMED else ""
    return f"changed: {', '.join(sorted(changed)[:_MOST_NAMED])}{more}"


def _digest(file: metadata.PackagePath) -> str | None:
    """The hash as a list of files states it; None if the file is not there."""
    try:
        with Path(str(file.locate())).open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").digest()
    except OSError:
        return None
    return base64.urlsafe_b64encode(found).decode().rstrip("=")
