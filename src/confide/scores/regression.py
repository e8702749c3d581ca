"""Regression scores, computed from a model's predictions, and the intervals {y : score(x, y) <= threshold}.

Let t+ be the float above the threshold t. A rounded |y - f| is at most t only if y <= f + t+ exactly, and then y is
also at most the rounded f + t+. Therefore every y whose computed score is at most t lies between the ends. An end lies
at most two floats beyond the last such y.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import all_valid, as_array, as_numeric, as_vector, finite, refuse_other_rows
from confide.errors import InputError
from confide.scores.kinds import ScoreKind
from confide.scores.named_scores import NamedScores
from confide.scores.names import kind_of_task
from confide.support import raise_for_rows


def regression_kind(score: str) -> ScoreKind:
    """The kind of a regression score; raises an error for every other name."""
    return kind_of_task(score, "regression", "a regression score, such as 'absolute_residual' or 'cqr'")


def interval_score(
    predictions: ArrayLike, targets: ArrayLike, score: str = "absolute_residual", *, difficulty: ArrayLike | None = None
) -> NamedScores:
    """The nonconformity score of each record's target, for any of the regression scores.

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
    NamedScores
        A numpy array, float64, shape (n,), with its score's name, which `calibrate` records.

    Raises
    ------
    InputError, InputTypeError
        If a value is not finite, lengths differ, or a divisor is not positive.

    Examples
    --------
    >>> interval_score([[1.0, 2.0], [1.0, 2.0]], [1.5, 4.0], "cqr")
    array([-0.5,  2. ])
    """
    # One target for each prediction.
    refuse_other_rows(predictions=predictions, targets=targets, difficulty=difficulty)
    kind = regression_kind(score)
    inputs = _Inputs(kind, predictions, difficulty)
    y = as_vector("targets", targets, empty=True)
    if len(inputs) != len(y):
        raise InputError("targets", "must have as many entries as predictions", got=f"{len(y)} for {len(inputs)}")

    # Compute block by block, and check each block on the way.
    out = np.empty(len(y))

    def work(rows: slice) -> bool:
        predicted, difficulty = inputs.block(rows)
        target = _float64(y[rows])
        with np.errstate(all="ignore"):
            out[rows] = kind.target_scores(predicted, target, **difficulty)
        return inputs.are_valid(predicted, **difficulty) and finite(target)

    if not all_valid(work, len(y)):
        inputs.refuse()
        refuse_infinite("targets", y)
    return NamedScores.of(out, score)


def interval_ends(
    predictions: ArrayLike, score: str, threshold: float | NDArray[np.float64], *, difficulty: ArrayLike | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower and upper ends of {y : score(x, y) <= threshold}, float64, shape (n,) each; see the module docstring.

    A negative CQR threshold can make an interval empty: then its lower end lies above its upper one. `cqr_low` leaves
    the upper end infinite, `cqr_high` the lower one.

    Examples
    --------
    >>> lower, upper = interval_ends([10.0], "gamma", 0.5)
    >>> lower.round(6), upper.round(6)
    (array([5.]), array([15.]))
    """
    # The float above each threshold, so that rounding moves no end inwards.
    kind = regression_kind(score)
    if as_array("predictions", predictions).shape in ((0,), (0, 1), (0, 2)):
        return np.empty(0), np.empty(0)
    inputs = _Inputs(kind, predictions, difficulty)
    lower, upper = np.empty((2, len(inputs)))
    with np.errstate(over="ignore"):
        reach = np.broadcast_to(np.nextafter(np.asarray(threshold, dtype=np.float64), np.inf), (len(inputs),))

    # Compute block by block, and check each block on the way.
    def work(rows: slice) -> bool:
        predicted, difficulty = inputs.block(rows)
        with np.errstate(all="ignore"):
            lower[rows], upper[rows] = kind.interval(predicted, reach[rows], **difficulty)
        return inputs.are_valid(predicted, **difficulty)

    if not all_valid(work, len(inputs)):
        inputs.refuse()
    return lower, upper


# Predictions and difficulties, checked block by block.


class _Inputs:
    """Predictions, block by block, and the difficulties of records for scores that have one."""

    def __init__(self, kind: ScoreKind, predictions: ArrayLike, difficulty: ArrayLike | None) -> None:
        # Predictions, or pairs of quantiles.
        assert kind.score is not None
        self.score = kind.score
        self.predictions = (
            _quantile_pairs(predictions) if self.score.quantiles else as_vector("predictions", predictions, empty=True)
        )

        # Difficulties, for the scores that have one, and for no others.
        self.difficulty: NDArray[Any] | None = None
        if self.score.difficulty:
            if difficulty is None:
                raise InputError("difficulty", f"must be given for {kind.name}: one positive number per record")
            self.difficulty = as_vector("difficulty", difficulty, empty=True)
            if len(self.difficulty) != len(self):
                lengths = f"{len(self.difficulty)} for {len(self)}"
                raise InputError("difficulty", "must have as many entries as predictions", got=lengths)
        elif difficulty is not None:
            raise InputError("difficulty", f"must be left out: the score {kind.name!r} does not use it")

    def __len__(self) -> int:
        return len(self.predictions)

    def block(self, rows: slice) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
        """Some predictions and their difficulties, if the score has them, in float64."""
        predicted = _float64(self.predictions[rows])
        return predicted, {} if self.difficulty is None else {"difficulty": _float64(self.difficulty[rows])}

    def are_valid(self, predicted: NDArray[np.float64], difficulty: NDArray[np.float64] | None = None) -> bool:
        """Whether a block is finite, and its divisors are positive."""
        if self.score.positive and predicted.min() <= 0:
            return False
        if difficulty is not None and not (finite(difficulty) and difficulty.min() > 0):
            return False
        return finite(predicted)

    def refuse(self) -> None:
        """Raise an error for predictions that are not finite, and divisors that are not finite and positive."""
        refuse_infinite("predictions", self.predictions)
        if self.score.positive:
            _refuse_nonpositive("predictions", self.predictions)
        if self.difficulty is not None:
            refuse_infinite("difficulty", self.difficulty)
            _refuse_nonpositive("difficulty", self.difficulty)


def _quantile_pairs(predictions: ArrayLike) -> NDArray[Any]:
    pairs = as_numeric("predictions", predictions)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise InputError("predictions", "must have shape (n, 2), lower and upper quantiles", got=f"shape {pairs.shape}")
    return pairs


def _float64(block: NDArray[Any]) -> NDArray[np.float64]:
    return block.astype(np.float64, copy=False)


def refuse_infinite(name: str, array: NDArray[Any]) -> None:
    """Raise an error for numbers that are not finite, with their count and the position of the first."""
    is_finite = np.isfinite(_float64(array))
    if array.ndim == 1:
        raise_for_rows(name, ~is_finite, "must be finite", "NaN or infinite")
    else:
        raise_for_rows(name, ~is_finite.all(axis=1), "must be finite", "rows with NaN or infinite values", place="row")


def _refuse_nonpositive(name: str, values: NDArray[Any]) -> None:
    raise_for_rows(name, values <= 0, "must be positive for this score", "that are not")


# Each score by its name.


def absolute_residual_score(predictions: ArrayLike, targets: ArrayLike) -> NamedScores:
    """Absolute residual `|y - f(x)|`.

    Lei, G'Sell, Rinaldo, Tibshirani and Wasserman, "Distribution-free predictive inference for regression", JASA 2018.
    Parameters and errors as in `interval_score`.

    Examples
    --------
    >>> absolute_residual_score([1.0, 2.0], [1.5, 0.0])
    array([0.5, 2. ])
    """
    return interval_score(predictions, targets, "absolute_residual")


def normalised_residual_score(predictions: ArrayLike, targets: ArrayLike, difficulty: ArrayLike) -> NamedScores:
    """Residual in units of an estimated difficulty, `|y - f(x)| / sigma(x)`.

    Papadopoulos, Gammerman and Vovk, "Normalized nonconformity measures for regression conformal prediction", 2008;
    Lei et al., JASA 2018, section 5.2. sigma must come from other data than the calibration records.

    Examples
    --------
    >>> normalised_residual_score([1.0, 2.0], [1.5, 0.0], [1.0, 4.0])
    array([0.5, 0.5])
    """
    return interval_score(predictions, targets, "normalised_residual", difficulty=difficulty)


def gamma_score(predictions: ArrayLike, targets: ArrayLike) -> NamedScores:
    """Residual relative to the prediction, `|y - f(x)| / f(x)`, for positive predictions.

    Cordier, Blot, Lacombe, Morzadec, Capitaine and Brunel, "Flexible and systematic uncertainty estimation with
    conformal prediction via the MAPIE library", COPA 2023.

    Examples
    --------
    >>> gamma_score([1.0, 2.0], [1.5, 0.0])
    array([0.5, 1. ])
    """
    return interval_score(predictions, targets, "gamma")


def cqr_score(quantiles: ArrayLike, targets: ArrayLike) -> NamedScores:
    """Conformalized quantile regression, max(lower(x) - y, y - upper(x)); negative inside.

    Romano, Patterson and Candes, "Conformalized quantile regression", NeurIPS 2019, equation 6; the one-sided scores
    of its Theorem 2 are `cqr_low` and `cqr_high`.

    Examples
    --------
    >>> cqr_score([[1.0, 2.0], [1.0, 2.0]], [1.5, 4.0])
    array([-0.5,  2. ])
    """
    return interval_score(quantiles, targets, "cqr")
