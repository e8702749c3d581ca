"""Counting while labelled records pass, batch by batch: counts for each level of a release."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.evaluation.release_parts import fingerprint
from confide.evaluation.result import Evaluation, LevelEvaluation
from confide.releases import Release


@dataclass(frozen=True)
class Look:
    """What is seen of n records at one level of a release, before anything is counted.

    Parameters
    ----------
    covered
        bool, shape (n,).
    size
        The sizes of their sets, or the widths of their intervals, shape (n,); None of scores.
    ends
        Whether the lower and the upper end of their intervals hold, if each has a threshold of its own.
    """

    covered: NDArray[np.bool_]
    size: NDArray[Any] | None = None
    ends: tuple[NDArray[np.bool_], NDArray[np.bool_]] | None = None


class Tally:
    """The counts of every level of a release, which has one level if it is not a release of several."""

    def __init__(self, release: Release, counts: Callable[[Any], Any]) -> None:
        self.release = release
        self.levels = [counts(release.at(alpha)) for alpha in release.levels]

    def looks(self, *arrays: Any) -> list[Look]:
        """What is seen of records, whose arrays `add` would take, level by level; nothing is counted."""
        raise NotImplementedError

    def result(self) -> Evaluation | LevelEvaluation:
        """The evaluation of all records so far."""
        found = [counts.result() for counts in self.levels]
        if self.release.by != "level":
            one: Evaluation = found[0]
            return one
        return LevelEvaluation(fingerprint(self.release), dict(zip(self.release.parts, found, strict=True)))
