"""Counting while labelled records pass, batch by batch: counts for each level of a release."""

from collections.abc import Callable
from typing import Any

from confide.evaluation.release_parts import fingerprint
from confide.evaluation.result import Evaluation, LevelEvaluation
from confide.releases import LevelCalibration, Release


class Tally:
    """The counts of every level of a release, which has one level if it is not a release of several."""

    def __init__(self, release: Release, counts: Callable[[Any], Any]) -> None:
        self.release = release
        levels: Any = release.parts.values() if isinstance(release, LevelCalibration) else [release]
        self.levels = [counts(one) for one in levels]

    def result(self) -> Evaluation | LevelEvaluation:
        """The evaluation of all records so far."""
        found = [counts.result() for counts in self.levels]
        if not isinstance(self.release, LevelCalibration):
            one: Evaluation = found[0]
            return one
        return LevelEvaluation(fingerprint(self.release), dict(zip(self.release.parts, found, strict=True)))
