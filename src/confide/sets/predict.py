"""From a threshold to prediction sets {y : score(x, y) <= threshold} and intervals."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import Uniforms, as_probabilities, class_names
from confide.errors import InputError, InputTypeError
from confide.releases import (
    FALSE_NEGATIVES,
    Calibration,
    GroupCalibration,
    LevelCalibration,
    RiskCalibration,
    SidesCalibration,
    parts_of,
)
from confide.scores import interval_ends, score_kind, set_mask
from confide.sets.prediction_intervals import PredictionIntervals
from confide.sets.prediction_sets import PredictionSets


def predict_set(
    probabilities: ArrayLike,
    calibration: Calibration | GroupCalibration,
    classes: Sequence[object] | None = None,
    *,
    u: Uniforms = None,
    groups: ArrayLike | None = None,
    score: str | None = None,
    out: NDArray[np.bool_] | None = None,
) -> PredictionSets:
    """Prediction sets {y : score(x, y) <= threshold} for new records, with the score that the calibration names.

    Parameters
    ----------
    probabilities
        Shape (n, K), values in [0, 1], any float dtype; n may be 0. NaN and values outside are refused.
    calibration
        Made from a classification score; a `GroupCalibration` has one threshold per class or per group.
    classes
        The K class names, kept with the sets.
    u
        For randomised scores, where fresh numbers are drawn by default: numbers in [0, 1], shape (n,), one per record
        and independent of it. The same record gets the same set again only with the same number.
    groups
        For thresholds per group: the group of each record, shape (n,).
    score
        Only for a calibration without a name: the score it was made for (default `"lac"`).
    out
        A bool array of shape (n, K) that receives the mask.

    Raises
    ------
    InputError
        If the calibration was made for another score, or the probabilities are not valid.

    Examples
    --------
    >>> import confide
    >>> rng = np.random.default_rng(0)
    >>> calibration = confide.calibrate(rng.random(2000) / 2, alpha=0.1, epsilon=1.0, score="lac")
    >>> confide.predict_set([[0.9, 0.1], [0.6, 0.6]], calibration).labels()
    [[0], [0, 1]]
    """
    name = _score_of(calibration, "classification", score or "lac")
    p = as_probabilities("probabilities", probabilities, check=False)
    names = None if classes is None else class_names(classes, p.shape[1])
    if isinstance(calibration, GroupCalibration) and calibration.by == "class" and groups is None:
        thresholds = calibration.class_thresholds(names, p.shape[1])
        mask = set_mask(p, name, thresholds, u=u, per_class=True, out=out)
    else:
        mask = set_mask(p, name, _thresholds(calibration, groups, len(p)), u=u, out=out)
    return PredictionSets(mask, names, min(part.coverage for part in parts_of(calibration).values()))


def predict_interval(
    predictions: ArrayLike,
    calibration: Calibration | GroupCalibration | SidesCalibration,
    *,
    difficulty: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    score: str | None = None,
) -> PredictionIntervals:
    """Prediction intervals {y : score(x, y) <= threshold} for new records, with the score that the calibration names.

    The ends are rounded outwards, so that every y whose computed score is at most the threshold lies between them.

    Parameters
    ----------
    predictions
        Finite: shape (n,), or shape (n, 2) with lower and upper quantiles for CQR; n may be 0.
    calibration
        Made from a regression score. A `SidesCalibration` has one threshold for each side of CQR.
    difficulty
        For `normalised_residual`: positive numbers, shape (n,).
    groups
        For thresholds per group: the group of each record, shape (n,).
    score
        Only for a calibration without a name: the score it was made for (default `"absolute_residual"`).

    Returns
    -------
    PredictionIntervals
        The pair (lower, upper), float64, shape (n,) each, which unpacks as such; infinite if the threshold is. A
        negative threshold, possible with CQR, can give lower > upper: the empty interval.

    Examples
    --------
    >>> import confide
    >>> rng = np.random.default_rng(0)
    >>> calibration = confide.calibrate(rng.random(2000), alpha=0.1, epsilon=1.0, score="absolute_residual")
    >>> lower, upper = confide.predict_interval([10.0], calibration)
    >>> bool(8.9 < lower[0] < 9.2 and 10.8 < upper[0] < 11.1)
    True
    """
    if isinstance(calibration, SidesCalibration):
        if difficulty is not None or groups is not None:
            raise InputError("difficulty and groups must be left out for thresholds per side")
        low, high = calibration.low, calibration.high
        lower, _ = interval_ends(predictions, "cqr_low", low.threshold)
        _, upper = interval_ends(predictions, "cqr_high", high.threshold)
        return PredictionIntervals(lower, upper)
    name = _score_of(calibration, "regression", score or "absolute_residual")
    threshold = _thresholds(calibration, groups, len(np.asarray(predictions)))
    return PredictionIntervals(*interval_ends(predictions, name, threshold, difficulty=difficulty))


def predict_labels(probabilities: ArrayLike, calibration: RiskCalibration) -> PredictionSets:
    """Multilabel sets {k : 1 - p_k <= threshold} for new records.

    Examples
    --------
    >>> import confide
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random((4000, 3))
    >>> released = confide.calibrate_false_negatives(p, rng.random(p.shape) < p, 0.1, 1.0)
    >>> predict_labels([[0.9, 0.5, 0.01]], released).labels()
    [[0, 1]]
    """
    if not isinstance(calibration, RiskCalibration) or calibration.loss != FALSE_NEGATIVES:
        raise InputTypeError("calibration must come from calibrate_false_negatives")
    return PredictionSets(set_mask(probabilities, "lac", calibration.threshold))


def _thresholds(
    calibration: Calibration | GroupCalibration, groups: ArrayLike | None, n: int
) -> float | NDArray[np.float64]:
    """One threshold, or that of each of n records."""
    if isinstance(calibration, GroupCalibration):
        return calibration.look_up(groups, n)
    if groups is not None:
        raise InputError("groups must be left out: the calibration has no thresholds per group")
    return calibration.threshold


def _score_of(calibration: Any, task: str, unnamed: str) -> str:
    """The score to compute: the one that the calibration names, or `unnamed`; another task is refused."""
    if not isinstance(calibration, Calibration | GroupCalibration):
        hint = "; choose one of its levels" if isinstance(calibration, LevelCalibration) else ""
        raise InputTypeError(f"calibration must be a confide.Calibration; found {type(calibration).__name__}{hint}")
    if calibration.score is None:
        return unnamed
    other = score_kind(calibration.score).task
    if other != task:
        caller = "predict_set" if task == "classification" else "predict_interval"
        hint = {"regression": "use predict_interval", "classification": "use predict_set"}.get(
            other, "compute that score for every label and compare it with calibration.threshold"
        )
        raise InputError(
            f"calibration was made for the score {calibration.score!r}, which {caller} does not compute; {hint}"
        )
    return calibration.score
