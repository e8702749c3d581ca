"""What is known against versions: a list that people can read, and what of it concerns a package or a file."""

import json
import operator
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from confide.checkup.stated import Made, Stated
from confide.support import needs_extra

RANGE = "comparing versions"
_COMPARED = {">=": operator.ge, "<": operator.lt}


@dataclass(frozen=True)
class Advisory:
    """A defect of some versions of a package.

    Parameters
    ----------
    id
        Its name: the package and the number of its public report.
    package, versions
        Whose defect, and in which versions, as pip writes ranges.
    concerns
        Which files: `{"drawn": True}` for all that was drawn with these versions; lists by `score`, `method` or `kind`
        for those that state one of these, or something that begins so; nothing for the installation alone.
    what, releases, remedy
        What goes wrong, which releases are concerned, and what to do.
    reference
        Where it stands.
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
        """Whether a version is among those with the defect; a text that is no version is not.

        What was published before the version that has no defect may have it, unlike in ranges of pip.

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

    def concerns_file(self, stated: Stated) -> bool:
        """Whether a file states that it was made so."""
        if self.concerns.get("drawn"):
            return any(made.drawn and self._of(made) for made in stated.made)
        begins = [(name, text) for name in ("kind", "score", "method") for text in self.concerns.get(name, ())]
        said = any(name == fact and value.startswith(text) for name, text in begins for fact, value in stated.facts)
        return said and any(map(self._of, stated.made))

    def fields(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    def _of(self, made: Made) -> bool:
        return self.affects(dict(made.versions).get(self.package))


def is_version(text: str) -> bool:
    """Whether a text is a version of a package, so that it can be compared with ranges.

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
    """All that are known to this version of confide, which asks no network."""
    text = files("confide.checkup").joinpath("advisories.json").read_text(encoding="utf-8")
    return tuple(Advisory(**entry) for entry in json.loads(text)["advisories"])
