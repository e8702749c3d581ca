"""`PrivateConformalRegressor`: prediction intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin, clone
from sklearn.linear_model import Ridge
from sklearn.utils.validation import _num_samples

from confide.arrays import as_numeric, as_vector, refuse_other_rows, row_index
from confide.errors import InputError, InputTypeError
from confide.estimators.base import PrivateConformal
from confide.scores import interval_score
from confide.sets import PredictionIntervals, predict_interval
from confide.support import Level, require


@dataclass(eq=False, repr=False)
class PrivateConformalRegressor(RegressorMixin, PrivateConformal):  # type: ignore[misc]
    """A regressor whose prediction intervals cover the target with probability 1 - alpha, calibrated privately.

    Parameters
    ----------
    estimator
        A regressor; by default a ridge regression. For `conformity_score="cqr"` a pair of regressors for the lower and
        the upper quantile. Cloned and trained, unless `prefit`; for fitted ones there is a `RetrainedWarning`.
        For absolute residuals a mapping of names to regressors, of which one is chosen privately on a share of the
        calibration records (`confide.choose_score`); it needs `largest_size`.
    conformity_score
        `"absolute_residual"`, `"gamma"`, `"normalised_residual"` or `"cqr"`.
    difficulty_estimator
        For `"normalised_residual"`: a regressor with positive predictions, trained on the absolute residuals of the
        training records (already fitted with `prefit`).
    alpha, epsilon, confidence_level, calibration_size, prefit, group_names, partition, neighbors, delta
        As for `PrivateConformalClassifier`.
    candidates, random_state
        As for `PrivateConformalClassifier`.
    unit
        A public typical size of the target or of an error, as in `confide.calibrate`.
    ledger, dataset, again, about, choice_share, largest_size, probe
        As for `PrivateConformalClassifier`.

    Attributes
    ----------
    calibration_, estimator_, estimators_, n_releases_
        As for `PrivateConformalClassifier`.
    difficulty_estimator_
        The trained difficulty estimator, if there is one.

    Notes
    -----
    Every `fit` is a release. For `cross_validate` and `GridSearchCV` see `PrivateConformalClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = PrivateConformalRegressor(alpha=0.2, epsilon=2.0, random_state=0).fit(X[:400], y[:400])
    >>> lower, upper = model.predict_interval(X[400:])
    >>> bool(((lower <= y[400:]) & (y[400:] <= upper)).mean() > 0.6)
    True
    """

    _: KW_ONLY
    conformity_score: str = "absolute_residual"
    difficulty_estimator: Any = None
    unit: float | None = None

    _default = Ridge

    def predict_interval(
        self, X: Any, *, groups: ArrayLike | None = None, alpha: Level | None = None
    ) -> PredictionIntervals:
        """Prediction intervals, with the index of a data frame X; they unpack as lower and upper ends, shape (n,) each.

        `groups` as in `confide.predict_interval`; `alpha` selects one of several levels. X may have no rows.
        """
        self._check_new(X)
        refuse_other_rows(X=X, groups=groups)
        ends = predict_interval(self._centers(X), self._compared(alpha), difficulty=self._difficulty(X), groups=groups)
        return PredictionIntervals(*ends, ends.promised, ends.calibration, row_index(X))

    def _usable(self, y: NDArray[Any]) -> NDArray[Any]:
        return as_numeric("y", y)

    def _inner(self) -> dict[str, Any]:
        if not isinstance(self.estimator, tuple):
            return super()._inner()
        return {f"estimator_{i}": estimator for i, estimator in enumerate(self.estimator)}

    def _train(self, X: Any, y: NDArray[Any], arguments: dict[str, dict[str, Any]]) -> None:
        if not isinstance(self.conformity_score, str):
            raise InputTypeError("conformity_score", "must be one name", got=type(self.conformity_score).__name__)
        if isinstance(self.estimator, Mapping) and self.conformity_score != "absolute_residual":
            raise InputError("conformity_score", "must be 'absolute_residual' with several regressors")
        pair = isinstance(self.estimator, tuple)
        must = "must be one regressor; a pair (lower, upper) of quantiles is for the score 'cqr'"
        require("estimator", not pair or self.conformity_score == "cqr", must, got="a pair")
        super()._train(X, y, arguments)
        if self.difficulty_estimator is not None:
            self.difficulty_estimator_ = clone(self.difficulty_estimator).fit(X, np.abs(y - self._point(X)))

    def _adopt(self) -> None:
        super()._adopt()
        if self.difficulty_estimator is not None:
            self.difficulty_estimator_ = self.difficulty_estimator

    def _centers(self, X: Any) -> NDArray[np.float64]:
        """What the score compares with a target: predictions, shape (n,), or both quantiles, shape (n, 2)."""
        if self.conformity_score != "cqr":
            return self._point(X)
        columns = self._columns(X)
        require("estimator", columns.shape[1] == 2, "must be a pair of regressors (lower, upper) for the score 'cqr'")
        return columns

    def _point(self, X: Any) -> NDArray[Any]:
        return np.asarray(self._columns(X).mean(axis=1))

    def _columns(self, X: Any) -> NDArray[np.float64]:
        fitted = self.estimator_ if isinstance(self.estimator_, tuple) else (self.estimator_,)
        return np.column_stack([_predicted(estimator, X) for estimator in fitted])

    def _difficulty(self, X: Any) -> NDArray[np.float64] | None:
        if self.conformity_score != "normalised_residual":
            return None
        if self.difficulty_estimator is None:
            raise InputError("difficulty_estimator", "must be given for the score 'normalised_residual'")
        return _predicted(self.difficulty_estimator_, X)

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        centers = self._centers(X)
        difficulty = self._difficulty(X)
        return centers if difficulty is None else np.column_stack([centers, difficulty])

    def _sizes(self, X: Any) -> NDArray[np.float64]:
        # The width of an interval is 0 + 2 * threshold for every record.
        return np.tile([0.0, 2.0], (_num_samples(X), 1))

    def _scores(self, X: Any, y: NDArray[Any]) -> NDArray[np.float64]:
        return interval_score(self._centers(X), y, self.conformity_score, difficulty=self._difficulty(X))


def _predicted(estimator: Any, X: Any) -> NDArray[np.float64]:
    """The predictions of a regressor as floats, shape (n,), also from shape (n, 1); none for no records."""
    predictions = estimator.predict(X) if _num_samples(X) else []
    return as_vector("predictions", predictions, empty=True).astype(np.float64)
