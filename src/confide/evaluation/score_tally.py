"""Scores of labelled records counted: how many lie at or below their threshold, by group."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_vector
from confide.errors import InputError, InputTypeError
from confide.evaluation.covered_counts import CoveredCounts
from confide.evaluation.result import Evaluation, LevelEvaluation
from confide.evaluation.tally import Tally
from confide.releases import Calibration, GroupCalibration, Release, RiskCalibration, SidesCalibration


def evaluate_scores(
    release: Release, scores: ArrayLike, *, groups: ArrayLike | None = None
) -> Evaluation | LevelEvaluation:
    """Evaluate the conformity scores of true labels: covered are those up to the threshold; not private.

    For a bound on a loss the scores are critical thresholds (`false_negative_thresholds`, `critical_thresholds`) and
    the share beyond the released threshold, times the bound, is an unbiased estimate of the loss.

    Parameters
    ----------
    release
        Anything but thresholds per side.
    scores
        Shape (n,), of labelled records.
    groups
        For thresholds per group or class: the group, or the true class, of each record, shape (n,).

    Returns
    -------
    Evaluation or LevelEvaluation
        The latter for several levels.

    Raises
    ------
    InputError, InputTypeError
        If a score is NaN, or an argument does not fit the release.

    Examples
    --------
    >>> import confide
    >>> rng = np.random.default_rng(0)
    >>> scores, ward = rng.random(4000), rng.choice(["a", "b"], 4000)
    >>> released = confide.calibrate_groups(scores, ward, ["a", "b"], 0.1, 1.0)
    >>> [0.88 < part.coverage.value < 0.94 for part in evaluate_scores(released, scores, groups=ward).groups]
    [True, True]
    """
    array = as_vector("scores", scores)
    wrong = np.flatnonzero(np.isnan(array))
    if wrong.size:
        raise InputError(f"scores must not be NaN; found {wrong.size} that are, the first at position {wrong[0]}")
    tally = ScoreTally(release)
    tally.add(array, groups)
    return tally.result()


class ScoreTally(Tally[CoveredCounts]):
    """Counts of scores."""

    def __init__(self, release: Release) -> None:
        if isinstance(release, SidesCalibration):
            raise InputTypeError("release must have one threshold per record; evaluate the intervals instead")
        super().__init__(release, CoveredCounts)

    def add(self, scores: NDArray[Any], groups: ArrayLike | None = None) -> None:
        """Count scores, shape (n,)."""
        for counts in self.levels:
            counts.count(scores.astype(np.float64) <= _thresholds(counts, groups, len(scores)), groups)


def _thresholds(counts: CoveredCounts, groups: ArrayLike | None, n: int) -> NDArray[np.float64] | float:
    """The threshold of each record."""
    release = counts.release
    if isinstance(release, GroupCalibration):
        return np.array([part.threshold for part in release.parts.values()])[counts.places(groups, n)]
    if groups is not None:
        raise InputError("groups must be left out: the release has no thresholds per group or class")
    one: Calibration = release.calibration if isinstance(release, RiskCalibration) else release
    return one.threshold
