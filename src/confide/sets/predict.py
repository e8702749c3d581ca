"""Sets, masks and intervals for new records, from a release and model outputs.

In this order: sets of classes, intervals, and the score that a release compares with.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import (
    Groups,
    Uniforms,
    as_array,
    as_numeric,
    class_columns,
    in_order,
    one_per_record,
    refuse_other_rows,
    refuse_other_sums,
    row_index,
)
from confide.core import FALSE_NEGATIVES, UNNAMED, Release, Threshold, area_of, names_for, warn_about
from confide.errors import CoverageWarning, InputError, InputTypeError
from confide.scores import ScoreKind, interval_ends, score_kind, set_mask, unregistered
from confide.sets.prediction_intervals import PredictionIntervals
from confide.sets.prediction_sets import PredictionSets
from confide.support import caller_stacklevel, column_order, require


def predict_set(
    probabilities: ArrayLike,
    calibration: Release,
    classes: Sequence[object] | None = None,
    *,
    u: Uniforms = None,
    groups: Groups | None = None,
    score: str | None = None,
    out: NDArray[np.bool_] | None = None,
) -> PredictionSets:
    """Prediction sets {y : score(x, y) <= threshold} for new records, with the score that the calibration states.

    Parameters
    ----------
    probabilities
        Shape (n, K), values in [0, 1], any float dtype; n may be 0, also as []. NaN, values outside, and rows that do
        not sum to one raise an error. The columns of a data frame are matched with the calibration's classes by name,
        and put in their order.
    calibration
        A release for a classification score; it may have one threshold per class or per group.
    classes
        The K class names, in the order of the columns; by default those of a data frame, else those of the calibration.
        They are stored with the sets. A data frame whose columns have these names may have them in another order.
    u
        For randomised scores: numbers in [0, 1], shape (n,), one per record and independent of it. By default they are
        drawn. The same record gets the same set again only with the same number.
    groups
        For thresholds per group: the group of each record, shape (n,).
    score
        Only for a calibration without a score name: the score of the calibration.
    out
        A bool array of shape (n, K) that receives the mask.

    Raises
    ------
    InputError
        If the calibration is for another score or other classes, or has no score name, or the probabilities are not
        valid.

    Warns
    -----
    CoverageWarning
        If a threshold is +inf or nearly so (`confide.core.remarks`), here and in `predict_interval` and
        `predict_labels`; in `predict_interval` also if intervals are far wider than the range of the predictions. Here
        also if more than 1 % of the sets are empty.

    Examples
    --------
    >>> import confide
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([4.0, 1.0], 2000)
    >>> y = (p[:, 1] > rng.random(2000)).astype(int)
    >>> calibration = confide.calibrate(confide.lac_score(p, y), alpha=0.1, epsilon=1.0)
    >>> confide.predict_set([[0.99, 0.01], [0.5, 0.5]], calibration, classes=["well", "ill"]).labels()
    [['well'], ['well', 'ill']]
    """
    sets = sets_of(probabilities, calibration, classes, u=u, groups=groups, score=score, out=out)
    empty = sets.mask.view(np.uint8).max(axis=1, initial=0) == 0  # takes half the time of counting
    warn_of_empty_sets(int(empty.sum()), len(sets), calibration.score or score)
    return sets


def sets_of(
    probabilities: ArrayLike,
    calibration: Release,
    classes: Sequence[object] | None,
    *,
    u: Uniforms,
    groups: Groups | None,
    score: str | None = None,
    out: NDArray[np.bool_] | None = None,
) -> PredictionSets:
    """Sets without a warning about empty ones, which would reveal something about private records."""
    # Check the arguments, and put the columns in the order of the calibration.
    kind = score_of_task(calibration, "classification", score)
    refuse_other_rows(probabilities=probabilities, groups=groups, u=u)
    p, names = _match_columns(probabilities, calibration, classes)

    # Compare each score with the limit of its record or class.
    limits = calibration.limits(len(p), groups=groups, classes=p.shape[1] if names is None else names)
    mask = _mask_of(p, str(kind.name), limits, u=u, per_class=calibration.by == "class", out=out)
    refuse_other_sums("probabilities", p)
    warn_about(calibration)
    return PredictionSets(mask, names, calibration.promised, calibration, row_index(probabilities))


def predict_labels(
    probabilities: ArrayLike, calibration: Release, classes: Sequence[object] | None = None
) -> PredictionSets:
    """Multilabel sets {k : 1 - p_k <= threshold} for new records; rows need not sum to one.

    `classes` are the names of the labels, as in `predict_set`.

    Examples
    --------
    >>> import confide
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random((4000, 3))
    >>> released = confide.calibrate_false_negatives(p, rng.random(p.shape) < p, 0.1, 1.0)
    >>> predict_labels([[0.9, 0.5, 0.01]], released).labels()
    [[0, 1]]
    """
    if not isinstance(calibration, Release) or calibration.loss != FALSE_NEGATIVES:
        raise InputTypeError("calibration", "must come from calibrate_false_negatives")
    p, names = _match_columns(probabilities, calibration, classes)
    mask = _mask_of(p, "lac", calibration.threshold)
    warn_about(calibration)
    # Without a promise: it is about the loss, and sets state coverage.
    return PredictionSets(mask, names, index=row_index(probabilities))


def predict_masks(probabilities: ArrayLike, calibration: Release) -> NDArray[np.bool_]:
    """The pixels {1 - p <= threshold} of each class of one image: bool, shape `(K, *pixels)`, that of `probabilities`.

    Parameters
    ----------
    probabilities
        Shape `(K, *pixels)`, also if K is 1, values in [0, 1]. The size may differ from that of other images.
    calibration
        A release of `calibrate_masks`.

    Raises
    ------
    InputError, InputTypeError
        If the calibration is of another kind or for another number of classes, or values are not probabilities.

    Examples
    --------
    >>> import confide
    >>> rng = np.random.default_rng(0)
    >>> images = [(p, rng.random(p.shape) < p) for p in rng.random((2000, 1, 4, 4))]
    >>> predict_masks([[[0.9, 0.05]]], confide.calibrate_masks(images, 0.1, 1.0))
    array([[[ True, False]]])
    """
    area_of(calibration)
    p = as_numeric("probabilities", probabilities)
    require("probabilities", p.ndim >= 2, "must have shape (classes, *pixels)", got=str(p.shape))
    names_for(calibration, None, len(p))
    mask = _mask_of(p.reshape(1, -1), "lac", calibration.threshold)
    warn_about(calibration)
    return mask.reshape(p.shape)


def _mask_of(
    p: NDArray[Any],
    score: str,
    limits: float | NDArray[np.float64],
    *,
    u: Uniforms = None,
    per_class: bool = False,
    out: NDArray[np.bool_] | None = None,
) -> NDArray[np.bool_]:
    """The sets of all classes whose scores are within the limits; a model without classes has no scores."""
    if not p.shape[1]:
        return np.zeros(p.shape, np.bool_)
    return set_mask(p, score, limits, u=u, per_class=per_class, out=out)


def _match_columns(
    probabilities: ArrayLike, calibration: Release, classes: Sequence[object] | None
) -> tuple[NDArray[Any], tuple[object, ...] | None]:
    """The probabilities and the names of their columns; those of a data frame in the order of the calibration."""
    # [] stands for no records; it gets the columns of the stated classes.
    stated = calibration.classes
    if _is_empty_vector(probabilities):
        columns = stated if classes is None else tuple(classes)
        if columns is None:
            return np.zeros((0, 0)), None
        probabilities = np.zeros((0, columns if isinstance(columns, int) else len(columns)))

    # Columns of a data frame are matched by name; `classes` states the order of the columns.
    p, given = class_columns(probabilities, classes)
    names = names_for(calibration, given, p.shape[1])
    if classes is None and given is not None and isinstance(stated, tuple):
        return in_order(p, column_order("classes", stated, given)), stated
    return p, names


def _is_empty_vector(array: Any) -> bool:
    is_empty_list = isinstance(array, list | tuple) and not array
    return is_empty_list or getattr(array, "shape", None) == (0,)


_FEWEST_SETS = 100
"""Of fewer sets one empty set is already more than 1 %."""


def warn_of_empty_sets(empty: int, records: int, score: str | None) -> None:
    """Warn if more than 1 % of the sets are empty, with advice that depends on the score."""
    if records < _FEWEST_SETS or 100 * empty <= records:
        return
    other = "" if score_kind(score).randomised else "compare the randomised score, such as 'aps', or "
    warnings.warn(
        f"{empty:,} of {records:,} sets are empty ({100 * empty / records:.2g} %), and an empty set never contains the "
        f"true label. If every record needs a label, {other}take a smaller alpha",
        CoverageWarning,
        stacklevel=caller_stacklevel(),
    )


# Intervals.


def predict_interval(
    predictions: ArrayLike,
    calibration: Release,
    *,
    difficulty: ArrayLike | None = None,
    groups: Groups | None = None,
    score: str | None = None,
) -> PredictionIntervals:
    """Prediction intervals {y : score(x, y) <= threshold} for new records, with the score that the calibration states.

    The ends are rounded outwards, so that every y whose computed score is at most the threshold lies between them.

    Parameters
    ----------
    predictions
        Finite: shape (n,) or (n, 1), or shape (n, 2) with lower and upper quantiles for CQR; n may be 0.
    calibration
        A release for a regression score. It may have one threshold for each side of CQR (`calibrate_sides`).
    difficulty
        For `normalised_residual`: positive numbers, shape (n,).
    groups
        For thresholds per group: the group of each record, shape (n,).
    score
        Only for a calibration without a score name: the score of the calibration.

    Returns
    -------
    PredictionIntervals
        The pair (lower, upper), float64, shape (n,) each, which can be unpacked; infinite if the threshold is. A
        negative threshold, possible with CQR, can give lower > upper: the empty interval. `promised` is the guaranteed
        coverage, for groups that of the group with the least.

    Examples
    --------
    >>> import confide
    >>> rng = np.random.default_rng(0)
    >>> calibration = confide.calibrate(rng.random(2000), alpha=0.1, epsilon=1.0, score="absolute_residual")
    >>> lower, upper = confide.predict_interval([10.0], calibration)
    >>> bool(8.9 < lower[0] < 9.2 and 10.8 < upper[0] < 11.1)
    True
    """
    intervals = intervals_of(predictions, calibration, difficulty=difficulty, groups=groups, score=score)
    warn_of_intervals(as_numeric("predictions", predictions), *intervals)
    return intervals


def intervals_of(
    predictions: ArrayLike,
    calibration: Release,
    *,
    difficulty: ArrayLike | None,
    groups: Groups | None,
    score: str | None = None,
) -> PredictionIntervals:
    """Intervals without a warning about their widths, which would reveal something about private records."""
    # Two thresholds, one for each end; or one, or that of each group.
    refuse_other_rows(predictions=predictions, difficulty=difficulty, groups=groups)
    if isinstance(calibration, Release) and calibration.by == "side":
        if difficulty is not None or groups is not None:
            raise InputError("difficulty", "difficulty and groups must be left out for thresholds per side")
        lower, _ = interval_ends(predictions, "cqr_low", calibration["low"].threshold)
        _, upper = interval_ends(predictions, "cqr_high", calibration["high"].threshold)
    else:
        name = str(score_of_task(calibration, "regression", score).name)
        array = as_array("predictions", predictions)
        records = len(array if array.ndim == 2 else one_per_record("predictions", array))
        limits = calibration.limits(records, groups=groups)
        lower, upper = interval_ends(predictions, name, limits, difficulty=difficulty)
    warn_about(calibration)
    return PredictionIntervals(lower, upper, calibration.promised, calibration, row_index(predictions))


# Warnings about uninformative intervals.

_FEWEST = 10
"""The spread of fewer predictions is not estimated."""

_WIDE = 20.0
"""A width in units of that spread: intervals of a model that explains 0.1 % of the variance are so wide."""

_FIRST = 1000
"""Number of records that are examined before all."""


def warn_of_widths(records: int, width: float, least: float, most: float) -> None:
    """Warn if intervals are uninformative: the narrowest has `width`; the other numbers describe the predictions.

    There is no warning for equal predictions, or for infinite intervals, which have another warning.
    """
    spread = most - least
    if records < _FEWEST or not math.isfinite(width) or not 0 < spread < math.inf or width <= _WIDE * spread:
        return
    times = width / spread
    often = f"{times:.0f}" if times < 1e5 else f"{times:.0e}"
    warnings.warn(
        f"the intervals are at least {often} times as wide as the predictions are spread, from the least to the "
        "largest: they say next to nothing. Either there were too few calibration records, or the model's predictions "
        "hardly differ",
        CoverageWarning,
        stacklevel=caller_stacklevel(),
    )


def warn_of_intervals(predictions: NDArray[np.float64], lower: NDArray[np.float64], upper: NDArray[np.float64]) -> None:
    """Warn for arrays: predictions of shape (n,), or (n, 2) with quantiles, and the ends of their intervals.

    If an interval among the first records is narrow enough, so is one of all: with more records the narrowest interval
    is no wider, and the range of predictions is no smaller.
    """
    if not len(predictions):
        return
    first = slice(_FIRST)
    width, least, most = _narrowest(predictions[first], lower[first], upper[first])
    if width > _WIDE * (most - least):
        warn_of_widths(len(predictions), *_narrowest(predictions, lower, upper))


def _narrowest(
    predictions: NDArray[np.float64], lower: NDArray[np.float64], upper: NDArray[np.float64]
) -> tuple[float, float, float]:
    """The width of the narrowest interval, and the least and the largest prediction."""
    centres = predictions if predictions.ndim == 1 else predictions.mean(axis=1)
    with np.errstate(invalid="ignore", over="ignore"):
        width = float((upper - lower).min())
    return width, float(centres.min()), float(centres.max())


# The score of a release.


def score_of(calibration: Release, given: str | None = None) -> ScoreKind:
    """The score to compute for new records: the one of the calibration, or, if it names none, the given one."""
    score = calibration.first.score
    if score is None and given is None:
        raise InputError(*UNNAMED)
    if score is not None and given not in (None, score):
        raise InputError("score", f"must be left out: the calibration was made for {score!r}", got=repr(given))
    kind = score_kind(score or given)
    if kind.score is None:
        raise unregistered(kind.name)
    return kind


def score_of_task(calibration: Any, task: str, given: str | None = None) -> ScoreKind:
    """The score of a calibration that must make sets, or intervals."""
    # Each record needs one threshold.
    must = "must be a confide.Release with one threshold, or one per group or class"
    choose_level = "Choose a level by release.at(alpha)"
    if not isinstance(calibration, Release):
        remedy = choose_level if isinstance(calibration, Threshold) else ""
        raise InputTypeError("calibration", must, type(calibration).__name__, remedy)
    if calibration.loss is not None:
        raise InputTypeError("calibration", must, "a bound on a loss")
    if calibration.by in ("level", "side"):
        remedy = choose_level if calibration.by == "level" else ""
        raise InputTypeError("calibration", must, f"one by {calibration.by}", remedy)

    # The score must be for the task of the caller.
    kind = score_of(calibration, given)
    callers = {"classification": "predict_set", "regression": "predict_interval"}
    must = f"was made for the score {kind.name!r}, which {callers[task]} does not compute"
    require("calibration", kind.task == task, must, remedy=f"use {callers[kind.task]}")
    return kind
