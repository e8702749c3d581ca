"""Write licences and requirements of every package that confide may install to `packages.json`.

    nox -s extras && .venv/bin/python -m release.packages .venv

They are stored because the bill of materials must be the same on every machine, whatever is installed there.
"""

import itertools
import json
import sys
import tomllib
from collections import defaultdict
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
FILE = Path(__file__).with_name("packages.json")
SYSTEMS = (("linux", "Linux", "posix"), ("darwin", "Darwin", "posix"), ("win32", "Windows", "nt"))
MINORS = range(11, 16)


def licence(found: Distribution) -> str | None:
    """The licence as the package states it: an SPDX expression, or one line, or its classifiers."""
    said = found.metadata
    stated = said.get("License-Expression") or said.get("License") or ""
    if stated and "\n" not in stated and stated != "UNKNOWN":
        return stated
    named = [one.rpartition(" :: ")[2] for one in said.get_all("Classifier") or [] if one.startswith("License :: ")]
    return " or ".join(named) or None


def required(requirements: list[str], extra: str) -> list[Requirement]:
    """Requirements of an extra on any platform and Python that confide supports."""
    found = []
    for requirement in map(Requirement, requirements):
        for (system, name, os), minor in itertools.product(SYSTEMS, MINORS):
            here = {"sys_platform": system, "platform_system": name, "os_name": os, "extra": extra}
            here |= {"python_version": f"3.{minor}", "python_full_version": f"3.{minor}.9"}
            if requirement.marker is None or requirement.marker.evaluate(here):
                found.append(requirement)
                break
    return found


def main() -> None:
    """Follow the requirements of confide through all packages of the environments."""
    installed: dict[str, list[Distribution]] = defaultdict(list)
    for environment in sys.argv[1:]:
        (packages,) = (ROOT / environment).glob("lib/python3.*/site-packages")
        for found in distributions(path=[str(packages)]):
            installed[canonicalize_name(found.metadata["Name"])].append(found)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [*project["dependencies"], *itertools.chain(*project["optional-dependencies"].values())]
    waiting = required([one for one in named if not one.startswith("confide")], "")
    needs: dict[str, set[str]] = defaultdict(set)
    seen = set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        for extra in {"", *requirement.extras} - {extra for known, extra in seen if known == name}:
            seen.add((name, extra))
            for found in installed[name]:
                more = required(found.requires or [], extra)
                needs[name] |= {canonicalize_name(one.name) for one in more} - {name}
                waiting += more
    known = {}
    for name in sorted({name for name, _ in seen}):
        licences = sorted({said for found in installed[name] if (said := licence(found))})
        known[name] = {"licence": licences[0] if licences else None, "requires": sorted(needs[name])}
    FILE.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
