"""`Statement`: what is promised about a release as a whole, at one of its levels, or about one end of its intervals."""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from confide.core import Release

Outcome: TypeAlias = Literal["covered", "levels", "sides", "area"]
"""Outcome of a record: covered or missed; the first level that covers it, or none; which ends of its interval hold; the
shares of a true area that a mask covers and misses."""

SIDE_OUTCOMES = {"": (0,), "lower end": (0, 2), "upper end": (0, 1)}
"""Outcomes of sides in which each statement holds; 0: both ends hold, 1: lower fails, 2: upper fails, 3: both fail."""

SIDES = tuple(SIDE_OUTCOMES)

_SIDE_OF_END: dict[str, Literal["low", "high"]] = {"lower end": "low", "upper end": "high"}

_LEVEL = "alpha "


@dataclass(frozen=True)
class Statement:
    """A promise by its name in files: "" for a release as a whole, `alpha 1/10` for a level, or an end of intervals.

    Examples
    --------
    >>> Statement("alpha 1/10").alpha, Statement("alpha 1/10").label, Statement("lower end").alpha
    (Fraction(1, 10), 'alpha 0.1', None)
    """

    name: str

    @property
    def alpha(self) -> Fraction | None:
        """The miscoverage level; None unless the promise is that of one of several levels."""
        level = re.fullmatch(rf"{_LEVEL}(\d+/[1-9]\d*)", self.name)
        return None if level is None else Fraction(level[1])

    @property
    def label(self) -> str:
        """The name for people."""
        return self.name if self.alpha is None else f"{_LEVEL}{float(self.alpha):g}"

    def part_of(self, release: Release) -> Release:
        """The part of a release that makes this promise: of one level, of one side, or all of it."""
        if self.name in _SIDE_OF_END:
            return release.alone(_SIDE_OF_END[self.name])
        return release if self.alpha is None else release.at(self.alpha)


def statements_of(release: Release) -> tuple[Outcome, dict[str, float]]:
    """Outcome of an evaluation of a release, and the promised coverage of each of its statements."""
    if release.by == "level":
        return "levels", {f"{_LEVEL}{alpha}": part.coverage for alpha, part in release.parts.items()}
    if release.by == "side":
        stated = release.promised, *(threshold.coverage for threshold in release.parts.values())
        return "sides", dict(zip(SIDES, stated, strict=True))
    return "covered", {"": release.promised}
