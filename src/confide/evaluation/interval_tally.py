"""Prediction intervals counted: how many true values they contain, how wide they are, by group and side."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_vector
from confide.errors import InputError, InputTypeError
from confide.evaluation.covered_counts import CoveredCounts
from confide.evaluation.result import Evaluation, LevelEvaluation
from confide.evaluation.tally import Tally
from confide.releases import Release, RiskCalibration, SidesCalibration
from confide.scores import refuse_infinite
from confide.sets import predict_interval


def evaluate_intervals(
    release: Release,
    predictions: ArrayLike,
    targets: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    difficulty: ArrayLike | None = None,
) -> Evaluation | LevelEvaluation:
    """Evaluate the intervals that a release makes for records with known targets; not private.

    Parameters
    ----------
    release
        Anything that has thresholds of a regression score.
    predictions, difficulty
        As in `predict_interval`: shape (n,), or (n, 2) for quantiles.
    targets
        True values, finite, shape (n,).
    groups
        For thresholds per group: the group of each record, shape (n,).

    Returns
    -------
    Evaluation or LevelEvaluation
        The latter for several levels.

    Raises
    ------
    InputError, InputTypeError
        If the release makes no intervals, or an argument does not fit it.

    Examples
    --------
    >>> import confide
    >>> y = np.random.default_rng(0).normal(size=4000)
    >>> quantiles = np.tile([-1.0, 1.0], (4000, 1))
    >>> found = evaluate_intervals(confide.calibrate_sides(quantiles, y, 0.1, 1.0), quantiles, y)
    >>> [part.name for part in found.groups], 0.88 < found.coverage.value < 0.94
    (['lower end', 'upper end'], True)
    """
    tally = IntervalTally(release)
    truth = as_vector("targets", targets)
    refuse_infinite("targets", truth)
    tally.add(np.asarray(predictions), truth, groups, difficulty)
    return tally.result()


class IntervalTally(Tally[CoveredCounts]):
    """Counts of intervals."""

    def __init__(self, release: Release) -> None:
        if isinstance(release, RiskCalibration):
            raise InputTypeError("release must have thresholds for intervals; evaluate critical thresholds instead")
        super().__init__(release, CoveredCounts)

    def add(
        self,
        predictions: NDArray[Any],
        targets: NDArray[Any],
        groups: ArrayLike | None = None,
        difficulty: ArrayLike | None = None,
    ) -> None:
        """Count records: predictions as in `predict_interval`, and true values of shape (n,)."""
        for counts in self.levels:
            lower, upper = predict_interval(predictions, counts.release, difficulty=difficulty, groups=groups)
            if len(lower) != len(targets):
                raise InputError(f"targets must have one entry per prediction; found {len(targets)} for {len(lower)}")
            above, below = lower <= targets, targets <= upper
            with np.errstate(over="ignore"):
                widths = upper - lower
            if isinstance(counts.release, SidesCalibration):
                counts.count_sides(above, below)
            counts.count(above & below, groups, widths)
