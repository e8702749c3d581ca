"""The bill of materials of a release, as CycloneDX 1.6 JSON, and SHA256SUMS over all published files.

    python -m release.sbom dist      next to the wheel and the sdist in this folder

The same packages give the same bytes: pins and hashes come from requirements/, licences and requirements from
`packages.json`. There is no time, and the serial number is derived from the hashes of the packages.
"""

import hashlib
import json
import re
import sys
import tomllib
import uuid
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, Property, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from release.packages import FILE, ROOT

PINNED = ("dev.txt", "extras.txt", "cuda.txt")
SPACE = uuid.UUID("3d0e4c4e-8d0c-5c0b-9a57-6f6a2f5b2a10")  # of serial numbers of these bills

Pin = tuple[str, str]  # name and version


@dataclass(frozen=True)
class Project:
    """Contents of pyproject.toml: requirements by extra; the extra "" is always required."""

    name: str
    version: str
    description: str
    licence: str
    requirements: dict[str, list[Requirement]]

    def required(self, extra: str) -> set[str]:
        """Names of the packages that an extra requires, including its own extras."""
        found: set[str] = set()
        for requirement in self.requirements[extra]:
            if requirement.name == self.name:
                found |= set().union(*(self.required(other) for other in requirement.extras))
            else:
                found.add(canonicalize_name(requirement.name))
        return found


def project() -> Project:
    """Read pyproject.toml."""
    said = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    by_extra = {"": said["dependencies"]} | said["optional-dependencies"]
    parsed = {extra: [Requirement(one) for one in lines] for extra, lines in by_extra.items()}
    return Project(said["name"], said["version"], said["description"], said["license"], parsed)


def pins(files: Iterable[str]) -> dict[str, dict[Pin, list[str]]]:
    """The pinned versions of each package with the hashes of their files."""
    found: dict[str, dict[Pin, list[str]]] = defaultdict(dict)
    for file in files:
        text = (ROOT / "requirements" / file).read_text(encoding="utf-8")
        for name, version, rest in re.findall(r"^([\w.-]+)==(\S+)(.*\n(?:[ ].*\n)*)", text, flags=re.MULTILINE):
            found[name][name, version] = re.findall(r"--hash=sha256:(\w+)", rest)
    return found


def reached(names: Iterable[str], needs: dict[str, set[str]]) -> set[str]:
    """All packages that these require, including themselves."""
    found, waiting = set(), list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += needs.get(name, ())
    return found


def sha256(values: Iterable[str]) -> list[HashType]:
    return [HashType(alg=HashAlgorithm.SHA_256, content=value) for value in values]


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def itself(known: Project, files: Iterable[Path] = ()) -> Component:
    """The released component, with the hashes of its files."""
    refers = [
        ExternalReference(type=ExternalReferenceType.DISTRIBUTION, url=XsUri(path.name), hashes=sha256([digest(path)]))
        for path in files
    ]
    purl = PackageURL("pypi", name=known.name, version=known.version)
    return Component(
        name=known.name, version=known.version, description=known.description, type=ComponentType.LIBRARY, purl=purl,
        bom_ref=str(purl), licenses=[LicenseFactory().make_from_string(known.licence)], external_references=refers,
    )  # fmt: skip


def package(pin: Pin, hashes: Iterable[str], licence: str | None, extras: set[str]) -> Component:
    """A required package: always, or with one of these extras."""
    name, version = pin
    purl = PackageURL("pypi", name=name, version=version)
    files = ExternalReference(
        type=ExternalReferenceType.DISTRIBUTION, url=XsUri(f"https://pypi.org/simple/{name}/"), hashes=sha256(hashes)
    )
    return Component(
        name=name, version=version, type=ComponentType.LIBRARY, purl=purl, bom_ref=str(purl),
        external_references=[files],
        scope=ComponentScope.REQUIRED if "" in extras else ComponentScope.OPTIONAL,
        licenses=[LicenseFactory().make_from_string(licence)] if licence else [],
        properties=[Property(name="confide:extra", value=extra) for extra in sorted(extras - {""})],
    )  # fmt: skip


def bill(files: list[Path]) -> Bom:
    """The whole bill: the release, its contents and its requirements."""
    known, said = project(), json.loads(FILE.read_text(encoding="utf-8"))
    needs = {name: set(one["requires"]) for name, one in said.items()}
    needs["torch"] |= set(pins(["cuda.txt"]))  # of the build with CUDA
    bom = Bom(serial_number=uuid.uuid5(SPACE, " ".join(map(digest, files))))
    root = bom.metadata.component = itself(known, files)
    extras: dict[Pin, set[str]] = defaultdict(set)
    hashes: dict[Pin, list[str]] = {}
    edges: dict[Pin, set[Pin]] = defaultdict(set)
    direct: set[Pin] = set()
    there = pins(PINNED)
    for extra in known.requirements:
        for name in reached(known.required(extra), needs):
            for pin, found in there.get(name, {}).items():
                extras[pin].add(extra)
                hashes[pin] = found
                edges[pin] |= {other for need in needs.get(name, ()) for other in there.get(need, {})}
        direct |= {pin for name in known.required(extra) for pin in there[name]}
    parts = {pin: package(pin, hashes[pin], said.get(pin[0], {}).get("licence"), extras[pin]) for pin in sorted(extras)}
    for component in parts.values():
        bom.components.add(component)
    bom.register_dependency(root, [parts[pin] for pin in sorted(direct)])
    for pin, component in parts.items():
        bom.register_dependency(component, [parts[other] for other in sorted(edges[pin])])
    return bom


def text(bom: Bom) -> str:
    """The bill as JSON, without the time at which it was written."""
    content = json.loads(JsonV1Dot6(bom).output_as_string())
    del content["metadata"]["timestamp"]
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


def main() -> None:
    """Write the bill of a release and the checksums of its files."""
    folder, known = Path(sys.argv[1]), project()
    files = sorted([*folder.glob(f"*-{known.version}-*.whl"), *folder.glob(f"*-{known.version}.tar.gz")])
    if len(files) != 2:
        found = [path.name for path in files]
        sys.exit(
            f"expected one wheel and one sdist of {known.version} in {folder}, found {found}; nox -s dist makes them"
        )
    written = folder / f"{known.name}-{known.version}.cdx.json"
    written.write_text(text(bill(files)), encoding="utf-8")
    sums = [f"{digest(path)}  {path.name}\n" for path in [*files, written]]
    (folder / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")


if __name__ == "__main__":
    main()
