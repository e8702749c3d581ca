"""The regressor: prediction intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin, clone
from sklearn.linear_model import Ridge
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from confide.arrays import as_numeric, as_vector, refuse_other_rows, row_index
from confide.candidates import AnyCandidates
from confide.errors import InputError, InputTypeError
from confide.estimators.base import PrivateConformal, rows_of
from confide.mechanisms import Neighbors
from confide.scores import interval_score
from confide.sets import PredictionIntervals, predict_interval
from confide.support import Level

if TYPE_CHECKING:
    from confide.ledger import Dataset, Ledger


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
    alpha, epsilon, calibration_size, prefit, group_names, partition, neighbors, delta, candidates, random_state
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

    _default = Ridge

    def __init__(
        self,
        estimator: Any = None,
        alpha: Level | Sequence[Level] = 0.1,
        epsilon: float = 1.0,
        *,
        conformity_score: str = "absolute_residual",
        difficulty_estimator: Any = None,
        calibration_size: float = 0.5,
        prefit: bool = False,
        group_names: Sequence[str | int] | Mapping[str, Sequence[str | int]] | None = None,
        partition: str | None = None,
        neighbors: Neighbors = "add_remove",
        delta: Level | None = None,
        candidates: AnyCandidates = None,
        unit: float | None = None,
        ledger: Ledger | None = None,
        dataset: str | Dataset | None = None,
        again: bool = False,
        about: Mapping[str, str] | None = None,
        choice_share: Level = "1/5",
        largest_size: float | None = None,
        probe: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.alpha = alpha
        self.epsilon = epsilon
        self.conformity_score = conformity_score
        self.difficulty_estimator = difficulty_estimator
        self.calibration_size = calibration_size
        self.prefit = prefit
        self.group_names = group_names
        self.partition = partition
        self.neighbors = neighbors
        self.delta = delta
        self.candidates = candidates
        self.unit = unit
        self.ledger = ledger
        self.dataset = dataset
        self.again = again
        self.about = about
        self.choice_share = choice_share
        self.largest_size = largest_size
        self.probe = probe
        self.random_state = random_state

    def predict_interval(
        self, X: Any, *, groups: ArrayLike | None = None, alpha: Level | None = None
    ) -> PredictionIntervals:
        """Prediction intervals, with the index of a data frame X; they unpack as lower and upper ends, shape (n,) each.

        `groups` as in `confide.predict_interval`, `alpha` is one of several levels. X may have no rows.
        """
        self._check_new(X)
        refuse_other_rows(X=X, groups=groups)
        ends = predict_interval(self._centers(X), self._compared(alpha), difficulty=self._difficulty(X), groups=groups)
        return PredictionIntervals(*ends, ends.promised, ends.calibration, row_index(X))

    @available_if(lambda self: self.difficulty_estimator is not None)  # type: ignore[untyped-decorator, unused-ignore]
    def predict_difficulty(self, X: Any) -> NDArray[np.float64]:
        """The estimated difficulty of each record, shape (n,)."""
        self._check_new(X)
        return _predicted(self.difficulty_estimator_, X)

    def _usable(self, y: NDArray[Any]) -> NDArray[Any]:
        return as_numeric("y", y)

    def _inner(self) -> dict[str, Any]:
        if not isinstance(self.estimator, tuple):
            return super()._inner()
        return {f"estimator_{i}": estimator for i, estimator in enumerate(self.estimator)}

    def _train(self, X: Any, y: NDArray[Any], given: dict[str, dict[str, Any]]) -> None:
        if not isinstance(self.conformity_score, str):
            raise InputTypeError("conformity_score", "must be one name", got=type(self.conformity_score).__name__)
        if isinstance(self.estimator, Mapping) and self.conformity_score != "absolute_residual":
            raise InputError("conformity_score", "must be 'absolute_residual' with several regressors")
        trained = self._trained(X, y, given)
        self._take([tuple(trained)] if isinstance(self.estimator, tuple) else trained)
        if self.difficulty_estimator is not None:
            self.difficulty_estimator_ = clone(self.difficulty_estimator).fit(X, np.abs(y - self._point(X)))

    def _adopt(self) -> None:
        for estimator in self._inner().values():
            check_is_fitted(estimator)
        self._take([*self.estimator.values()] if isinstance(self.estimator, Mapping) else [self.estimator])
        if self.difficulty_estimator is not None:
            self.difficulty_estimator_ = self.difficulty_estimator

    def _centers(self, X: Any) -> NDArray[np.float64]:
        if not rows_of(X):
            return np.zeros(0)
        if self.conformity_score != "cqr":
            return self._point(X).astype(np.float64)
        if not isinstance(self.estimator_, tuple) or len(self.estimator_) != 2:
            raise InputError("estimator", "must be a pair of regressors (lower, upper) for the score 'cqr'")
        return np.column_stack([_predicted(estimator, X) for estimator in self.estimator_])

    def _point(self, X: Any) -> NDArray[Any]:
        if not isinstance(self.estimator_, tuple):
            return as_vector("predictions", super()._point(X), empty=True)
        return np.asarray(np.mean([_predicted(estimator, X) for estimator in self.estimator_], axis=0))

    def _difficulty(self, X: Any) -> NDArray[np.float64] | None:
        if self.conformity_score != "normalised_residual":
            return None
        if self.difficulty_estimator is None:
            raise InputError("difficulty_estimator", "must be given for the score 'normalised_residual'")
        return _predicted(self.difficulty_estimator_, X) if rows_of(X) else np.zeros(0)

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        centers, difficulty = self._centers(X), self._difficulty(X)
        return centers if difficulty is None else np.column_stack([centers, difficulty])

    def _sizes(self, X: Any, n: int) -> NDArray[np.float64]:
        """Base and slope of the widths."""
        return np.tile([0.0, 2.0], (n, 1))

    def _scores(self, X: Any, y: NDArray[Any]) -> NDArray[np.float64]:
        return interval_score(self._centers(X), y, self.conformity_score, difficulty=self._difficulty(X))


def _predicted(estimator: Any, X: Any) -> NDArray[np.float64]:
    """The predictions of a regressor as floats, shape (n,), also from shape (n, 1)."""
    return as_vector("predictions", estimator.predict(X), empty=True).astype(np.float64)
