"""Regression scores, from the numbers that a model predicts, and the intervals {y : score(x, y) <= threshold}.

With t+ the float above the threshold t: a rounded |y - f| is at most t only if y <= f + t+ exactly, and then y is also
at most the rounded f + t+. So every y whose computed score is at most t lies between the ends, and the ends exceed
such y by the width of a float or two.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_numeric, as_vector
from confide.errors import InputError
from confide.scores.kinds import ScoreKind, score_kind


def interval_score(
    predictions: ArrayLike, targets: ArrayLike, score: str = "absolute_residual", *, difficulty: ArrayLike | None = None
) -> NDArray[np.float64]:
    """The conformity score of each record's target, for any of the regression scores.

    Parameters
    ----------
    predictions
        Finite numbers: shape (n,), or shape (n, 2) with lower and upper quantiles for `cqr`, `cqr_low`, `cqr_high`.
    targets
        Shape (n,), finite numbers.
    score
        `absolute_residual`, `normalised_residual`, `gamma`, `cqr`, `cqr_low` or `cqr_high`.
    difficulty
        For `normalised_residual`: positive numbers, shape (n,).

    Returns
    -------
    numpy.ndarray
        float64, shape (n,).

    Raises
    ------
    InputError, InputTypeError
        If a value is not finite, lengths differ, or a divisor is not positive.

    Examples
    --------
    >>> interval_score([[1.0, 2.0], [1.0, 2.0]], [1.5, 4.0], "cqr")
    array([-0.5,  2. ])
    """
    kind = regression_kind(score)
    center, scale = centers(kind, predictions, difficulty)
    y = finite_vector("targets", targets)
    if len(center) != len(y):
        raise InputError(f"targets must have as many entries as predictions; found {len(y)} for {len(center)}")
    with np.errstate(over="ignore", under="ignore"):
        if kind.family in ("cqr", "cqr_low", "cqr_high"):
            below, above = center[:, 0] - y, y - center[:, 1]
            chosen = {"cqr": np.maximum(below, above), "cqr_low": below, "cqr_high": above}
            return chosen[kind.family]
        residual: NDArray[np.float64] = np.abs(y - center)
        return residual if scale is None else residual / scale


def interval_ends(
    predictions: ArrayLike, score: str, threshold: float | NDArray[np.float64], *, difficulty: ArrayLike | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower and upper ends of {y : score(x, y) <= threshold}, float64, shape (n,) each; see the module's text.

    A negative CQR threshold can make an interval empty: then its lower end lies above its upper one. `cqr_low` leaves
    the upper end infinite, `cqr_high` the lower one.

    Examples
    --------
    >>> lower, upper = interval_ends([10.0], "gamma", 0.5)
    >>> lower.round(6), upper.round(6)
    (array([5.]), array([15.]))
    """
    kind = regression_kind(score)
    center, scale = centers(kind, predictions, difficulty)
    with np.errstate(over="ignore", under="ignore"):
        reach: Any = np.nextafter(np.asarray(threshold, dtype=np.float64), np.inf)
        if center.ndim == 2:
            lower, upper = center[:, 0] - reach, center[:, 1] + reach
            if kind.family == "cqr_low":
                upper = np.full(len(center), np.inf)
            if kind.family == "cqr_high":
                lower = np.full(len(center), -np.inf)
            return lower, upper
        if scale is not None:
            reach = np.nextafter(reach * scale, np.inf)
        return center - reach, center + reach


def centers(
    kind: ScoreKind, predictions: ArrayLike, difficulty: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """The checked predictions, and the positive divisor of the residual where the score has one."""
    if kind.family == "normalised_residual":
        if difficulty is None:
            raise InputError("difficulty must be given for normalised_residual: one positive number per record")
        f, scale = finite_vector("predictions", predictions), finite_vector("difficulty", difficulty)
        if len(f) != len(scale):
            raise InputError(f"difficulty must have as many entries as predictions; found {len(scale)} for {len(f)}")
        return f, _positive("difficulty", scale)
    if difficulty is not None:
        raise InputError(f"difficulty must be left out: the score {kind.name!r} does not use it")
    if kind.family in ("cqr", "cqr_low", "cqr_high"):
        return _quantile_pairs(predictions), None
    f = finite_vector("predictions", predictions)
    return f, _positive("predictions", f) if kind.family == "gamma" else None


def regression_kind(score: str) -> ScoreKind:
    """The kind of a regression score; every other name is refused."""
    kind = score_kind(score)
    if kind.task != "regression":
        raise InputError(f"score must be a regression score such as 'absolute_residual' or 'cqr'; found {score!r}")
    return kind


def _quantile_pairs(predictions: ArrayLike) -> NDArray[np.float64]:
    pairs = as_numeric("predictions", predictions).astype(np.float64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
        raise InputError(f"predictions must have shape (n, 2), lower and upper quantiles; found shape {pairs.shape}")
    wrong = np.flatnonzero(~np.isfinite(pairs).all(axis=1))
    if wrong.size:
        raise InputError(
            f"predictions must be finite; found {wrong.size} rows that are not, the first at row {wrong[0]}"
        )
    return pairs


def _positive(name: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
    wrong = np.flatnonzero(values <= 0)
    if wrong.size:
        raise InputError(
            f"{name} must be positive for this score; found {wrong.size} that are not, the first at position {wrong[0]}"
        )
    return values


def finite_vector(name: str, data: ArrayLike) -> NDArray[np.float64]:
    """A non-empty float64 vector without NaN or infinities."""
    array = as_vector(name, data).astype(np.float64, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not np.isfinite(array.sum())  # one pass without a temporary; overflow only costs a second look
    if suspicious and not np.isfinite(array).all():
        wrong = np.flatnonzero(~np.isfinite(array))
        raise InputError(f"{name} must be finite; found {wrong.size} NaN or infinite, the first at position {wrong[0]}")
    return array


def absolute_residual_score(predictions: ArrayLike, targets: ArrayLike) -> NDArray[np.float64]:
    """Absolute residual |y - f(x)|.

    Lei, G'Sell, Rinaldo, Tibshirani and Wasserman, "Distribution-free predictive inference for regression", JASA 2018.
    Parameters and errors as in `interval_score`.

    Examples
    --------
    >>> absolute_residual_score([1.0, 2.0], [1.5, 0.0])
    array([0.5, 2. ])
    """
    return interval_score(predictions, targets, "absolute_residual")


def normalised_residual_score(predictions: ArrayLike, targets: ArrayLike, difficulty: ArrayLike) -> NDArray[np.float64]:
    """Residual in units of an estimated difficulty, |y - f(x)| / sigma(x).

    Papadopoulos, Gammerman and Vovk, "Normalized nonconformity measures for regression conformal prediction", 2008;
    Lei et al., JASA 2018, section 5.2. sigma comes from other data than the calibration records.

    Examples
    --------
    >>> normalised_residual_score([1.0, 2.0], [1.5, 0.0], [1.0, 4.0])
    array([0.5, 0.5])
    """
    return interval_score(predictions, targets, "normalised_residual", difficulty=difficulty)


def gamma_score(predictions: ArrayLike, targets: ArrayLike) -> NDArray[np.float64]:
    """Residual relative to the prediction, |y - f(x)| / f(x), for positive predictions.

    Cordier, Blot, Lacombe, Morzadec, Capitaine and Brunel, "Flexible and systematic uncertainty estimation with
    conformal prediction via the MAPIE library", COPA 2023.

    Examples
    --------
    >>> gamma_score([1.0, 2.0], [1.5, 0.0])
    array([0.5, 1. ])
    """
    return interval_score(predictions, targets, "gamma")


def cqr_score(quantiles: ArrayLike, targets: ArrayLike) -> NDArray[np.float64]:
    """Conformalized quantile regression, max(lower(x) - y, y - upper(x)); negative inside.

    Romano, Patterson and Candes, "Conformalized quantile regression", NeurIPS 2019, equation 6; the one-sided scores
    of its Theorem 2 are `cqr_low` and `cqr_high`.

    Examples
    --------
    >>> cqr_score([[1.0, 2.0], [1.0, 2.0]], [1.5, 4.0])
    array([-0.5,  2. ])
    """
    return interval_score(quantiles, targets, "cqr")
