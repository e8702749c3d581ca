"""`doctor`: the installation and files looked at together, and `Checkup`, what was found."""

import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from confide.checkup.advisories import Advisory, advisories
from confide.checkup.folders import Found, look
from confide.checkup.installation import Package, Part, locks, packages, parts, sampler
from confide.support import Shown, aligned


@dataclass(frozen=True, repr=False)
class Checkup(Shown):
    """What is installed and what was made with what, and what is known against it.

    Parameters
    ----------
    python, system
        The version of Python, and the system.
    packages, parts
        What is always needed, and what is optional.
    sampler, locks
        Whether the secure sampler draws, and files can be locked.
    advisories
        What is known against the installed versions.
    files
        The files of confide below the paths that were given.
    others
        How many other files there are.
    known
        All advisories by name, for those that concern files.
    """

    python: str
    system: str
    packages: tuple[Package, ...]
    parts: tuple[Part, ...]
    sampler: str
    locks: str
    advisories: tuple[Advisory, ...]
    files: tuple[Found, ...] = ()
    others: int = 0
    known: tuple[Advisory, ...] = ()

    @property
    def findings(self) -> tuple[str, ...]:
        """What somebody should look at, one line each; none if all is well."""
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
        """As JSON values."""
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
            "others": self.others,
            "findings": list(self.findings),
        }

    def __str__(self) -> str:
        rows = [("Python", f"{self.python}, {self.system}"), *((one.name, str(one)) for one in self.packages)]
        rows += [("sampler", self.sampler), ("file locks", self.locks)]
        installed, verdict = aligned(rows), f"findings: {len(self.findings) or 'none'}"
        concerned = [
            f"{one.id}: {one.package} {one.versions}\n  {one.what}\n  concerned: {one.releases}\n"
            f"  do: {one.remedy}\n  see: {one.reference}"
            for one in self._concerned()
        ]
        if self.files or self.others:  # who asks about files reads about them first
            there = sum(not one.missing for one in self.parts)
            parts = f"optional parts: {there} of {len(self.parts)} are installed; doctor without files names them"
            return "\n\n".join([f"{verdict}\n\n{self._files()}", *concerned, f"{installed}\n{parts}"])
        parts = "optional parts:\n" + aligned([(f"  {one.extra}", str(one)) for one in self.parts])
        return "\n\n".join([installed, *([parts] if self.parts else []), *concerned, verdict])

    def _files(self) -> str:
        """Files by what they were made with; what cannot be used comes first."""
        alike: dict[str, list[str]] = {}
        for one in sorted(self.files, key=lambda one: not one.wrong):
            state = f"cannot be used: {one.wrong}" if one.wrong else f"made with: {one.making}"
            hits = f"; {', '.join(one.advisories)}" if one.advisories else ""
            alike.setdefault(state, []).append(f"    {one.path}: {one.kind}{hits}")
        lines = [line for state, files in alike.items() for line in (f"  {state}", *files)]
        return "\n".join([f"files of confide: {len(self.files)}; others, not opened: {self.others}", *lines])

    def _concerned(self) -> list[Advisory]:
        named = {name for one in self.files for name in one.advisories} | {one.id for one in self.advisories}
        return [one for one in self.known if one.id in named]

    def _version(self, package: str) -> str | None:
        return next((one.version for one in self.packages if one.name == package), None)

    def _brief(self) -> str:
        versions = f"confide {self._version('confide')}, OpenDP {self._version('opendp')}"
        return f"{versions}, {len(self.files)} files, findings: {len(self.findings) or 'none'}"


def doctor(*paths: str | Path) -> Checkup:
    """Look at what is installed and at files, and say what is known against them. No network is asked.

    Parameters
    ----------
    *paths
        Files, and folders with all that is below them: releases, private evaluations, watches, statements about
        labels, silos' answers and reports, ledgers and their exports. Other files are counted, and not opened.

    Returns
    -------
    Checkup
        `print` shows all of it; `findings` is empty if nothing is known against it.

    Raises
    ------
    InputError
        If a path does not exist.
    MissingExtraError
        If `packaging`, which `confide[standard]` brings, is not installed.

    Notes
    -----
    Files are read as data: checksums and signatures are checked, claims are not computed again (`confide verify`).

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
    files, others = look(paths, known)
    return Checkup(
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        packages=installed,
        parts=parts(),
        sampler=sampler(),
        locks=locks(),
        advisories=tuple(one for one in known if one.affects(versions.get(one.package))),
        files=files,
        others=others,
        known=known,
    )
