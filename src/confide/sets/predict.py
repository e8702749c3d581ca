"""From a threshold to prediction sets {y : score(x, y) <= threshold} and intervals.

A release whose threshold is +inf, or nearly so, causes a `CoverageWarning` whenever it is applied.
"""

from __future__ import annotations

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
from confide.errors import InputError, InputTypeError
from confide.scores import interval_ends, score_kind, set_mask, unregistered
from confide.sets.prediction_intervals import PredictionIntervals, warn_of_intervals
from confide.sets.prediction_sets import PredictionSets, warn_of_empty_sets
from confide.support import column_order


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
        From a classification score; it may have one threshold per class or per group.
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
    empty = sets.mask.view(np.uint8).max(axis=1, initial=0) == 0  # in half the time of counting
    warn_of_empty_sets(int(empty.sum()), len(sets))
    return sets


def sets_of(
    probabilities: ArrayLike,
    calibration: Release,
    classes: Sequence[object] | None = None,
    *,
    u: Uniforms = None,
    groups: Groups | None = None,
    score: str | None = None,
    out: NDArray[np.bool_] | None = None,
) -> PredictionSets:
    """Sets without a warning about empty ones, which would reveal something about private records."""
    name = _score_of(calibration, "classification", score)
    refuse_other_rows(probabilities=probabilities, groups=groups, u=u)
    p, names = _match_columns(probabilities, calibration, classes)
    limits = calibration.limits(len(p), groups=groups, classes=p.shape[1] if names is None else names)
    per_class = calibration.by == "class"
    mask = set_mask(p, name, limits, u=u, per_class=per_class, out=out) if p.shape[1] else _no_sets()
    refuse_other_sums("probabilities", p)
    warn_about(calibration)
    return PredictionSets(mask, names, calibration.promised, calibration, row_index(probabilities))


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
        From a regression score. It may have one threshold for each side of CQR (`calibrate_sides`).
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
        negative threshold, possible with CQR, can give lower > upper: the empty interval. `promised` is the coverage
        that the calibration guarantees: for groups the least of theirs.

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
    difficulty: ArrayLike | None = None,
    groups: Groups | None = None,
    score: str | None = None,
) -> PredictionIntervals:
    """Intervals without a warning about their widths, which would reveal something about private records."""
    refuse_other_rows(predictions=predictions, difficulty=difficulty, groups=groups)
    index = row_index(predictions)
    if isinstance(calibration, Release) and calibration.by == "side":
        if difficulty is not None or groups is not None:
            raise InputError("difficulty", "difficulty and groups must be left out for thresholds per side")
        lower, _ = interval_ends(predictions, "cqr_low", calibration.parts["low"].threshold)
        _, upper = interval_ends(predictions, "cqr_high", calibration.parts["high"].threshold)
        warn_about(calibration)
        return PredictionIntervals(lower, upper, calibration.promised, calibration, index)
    name = _score_of(calibration, "regression", score)
    limits = calibration.limits(_records("predictions", predictions), groups=groups)
    ends = interval_ends(predictions, name, limits, difficulty=difficulty)
    warn_about(calibration)
    return PredictionIntervals(*ends, calibration.promised, calibration, index)


def _records(name: str, predictions: ArrayLike) -> int:
    """The number of records of predictions: shape (n,), (n, 1), or (n, 2) for quantiles."""
    array = as_array(name, predictions)
    return len(array if array.ndim == 2 else one_per_record(name, array))


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
    mask = set_mask(p, "lac", calibration.threshold) if p.shape[1] else _no_sets()
    warn_about(calibration)
    return PredictionSets(mask, names, index=row_index(probabilities))


def predict_masks(probabilities: ArrayLike, calibration: Release) -> NDArray[np.bool_]:
    """The pixels {1 - p <= threshold} of each class of one image: bool, shape `(K, *pixels)`, that of `probabilities`.

    Parameters
    ----------
    probabilities
        Shape `(K, *pixels)`, also if K is 1, values in [0, 1]. The size may differ from that of other images.
    calibration
        From `calibrate_masks`.

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
    if p.ndim < 2:
        raise InputError("probabilities", "must have shape (classes, *pixels)", got=str(p.shape))
    names_for(calibration, None, len(p))
    rows = p.reshape(1, -1)
    mask = set_mask(rows, "lac", calibration.threshold) if p.size else np.zeros(rows.shape, np.bool_)
    warn_about(calibration)
    return mask.reshape(p.shape)


def _match_columns(
    probabilities: ArrayLike, calibration: Release, classes: Sequence[object] | None
) -> tuple[NDArray[Any], tuple[object, ...] | None]:
    """The probabilities and the names of their columns; those of a data frame in the order of the calibration."""
    known = calibration.classes
    listed = isinstance(probabilities, list | tuple) and not probabilities
    if listed or getattr(probabilities, "shape", None) == (0,):  # [] has no columns, and stands for no records
        width = known if classes is None else tuple(classes)
        probabilities = np.zeros((0, width if isinstance(width, int) else len(width or ())))
        if width is None:
            return probabilities, None
    p, own = class_columns(probabilities, classes)
    names = names_for(calibration, own, p.shape[1])
    if classes is None and own is not None and isinstance(known, tuple):
        return in_order(p, column_order("classes", known, own)), known
    return p, names


def _no_sets() -> NDArray[np.bool_]:
    """The mask for no records, if the classes are unknown."""
    return np.zeros((0, 0), dtype=np.bool_)


def _score_of(calibration: Any, task: str, said: str | None) -> str:
    """The score to compute: the one of the calibration, or, if it has no score name, the given one."""
    if not isinstance(calibration, Release) or calibration.by in ("level", "side") or calibration.loss is not None:
        got = type(calibration).__name__
        if isinstance(calibration, Release):
            got = f"one by {calibration.by}" if calibration.loss is None else "a bound on a loss"
        must = "must be a confide.Release with one threshold, or one per group or class"
        of_level = isinstance(calibration, Threshold) or got == "one by level"
        raise InputTypeError("calibration", must, got, "Choose a level by release.at(alpha)" if of_level else "")
    if calibration.score is None and said is None:
        raise InputError(*UNNAMED)
    if calibration.score is not None and said not in (None, calibration.score):
        raise InputError(
            "score", f"must be left out: the calibration was made for {calibration.score!r}", got=repr(said)
        )
    name = str(calibration.score or said)
    kind = score_kind(name)
    if kind.score is None:
        raise unregistered(name)
    if kind.task != task:
        caller = "predict_set" if task == "classification" else "predict_interval"
        hint = "use predict_interval" if kind.task == "regression" else "use predict_set"
        raise InputError(
            "calibration", f"was made for the score {name!r}, which {caller} does not compute", remedy=hint
        )
    return name
