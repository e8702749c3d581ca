"""The scikit-learn front: estimators that train a model, calibrate it privately on held-out records, and predict sets.

The constructor stores its parameters untouched; what is learned ends in an underscore. No calibration record, score or
count is kept: `calibration_` is all that calibrating leaves behind. The training records of the model are not
protected. The conformity score is the parameter `conformity_score`, for `score` is a method of every estimator.
"""

import warnings
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import train_test_split
from sklearn.utils import column_or_1d, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_consistent_length, check_is_fitted, validate_data

from confide.calibrate import calibrate
from confide.candidates import Candidates
from confide.errors import InputError
from confide.privacy import Neighbors
from confide.rationals import Level
from confide.scores.classification import Uniforms, class_score
from confide.scores.regression import interval_score
from confide.sets import PredictionSets, predict_interval, predict_set

Self = TypeVar("Self", bound="_PrivateConformal")


class SecondReleaseWarning(UserWarning):
    """An estimator was calibrated again: a second release, whose loss adds up with the first on shared records."""


class _PrivateConformal(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """What the classifier and the regressor share: splitting, fitting, and counting releases."""

    def fit(self: Self, X: Any, y: ArrayLike) -> Self:
        """Train on one part of the records and calibrate on the other; with `prefit`, calibrate on all of them.

        Parameters
        ----------
        X
            Shape (n, features), whatever the estimator accepts.
        y
            Shape (n,).
        """
        target = self._check(X, y, reset=True)
        if self.prefit:
            if self.estimator is None:
                raise InputError("estimator must be a fitted estimator with prefit=True; found None")
            self._adopt(target)
            return self._release(X, target)
        rows = np.arange(len(target))
        train, held = train_test_split(rows, test_size=self.calibration_size, random_state=self.random_state)
        self._train(_rows(X, train), target[train], target)
        return self._release(_rows(X, held), target[held])

    def calibrate(self: Self, X: Any, y: ArrayLike) -> Self:
        """Calibrate again, on held-out records that the model was not trained on. Every call is a release of its own.

        Warns
        -----
        SecondReleaseWarning
            Whenever the estimator was calibrated before: on records used twice, the losses add up.
        """
        if self.prefit and not hasattr(self, "n_releases_"):
            return self.fit(X, y)
        check_is_fitted(self)
        return self._release(X, self._check(X, y, reset=False))

    def predict(self, X: Any) -> NDArray[Any]:
        """The point predictions of the trained estimator, shape (n,)."""
        self._check_new(X)
        point: NDArray[Any] = self._point(X)
        return point

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "calibration_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = self.estimator if not isinstance(self.estimator, tuple) else self.estimator[0]
        tags.input_tags = get_tags(self._default() if inner is None else inner).input_tags
        return tags

    def _release(self: Self, X: Any, y: NDArray[Any]) -> Self:
        releases = getattr(self, "n_releases_", 0)
        if releases:
            warnings.warn(
                f"this is release number {releases + 1} of this estimator: on records that were used before, the "
                "privacy losses add up",
                SecondReleaseWarning,
                stacklevel=3,
            )
        self.calibration_ = calibrate(
            self._scores(X, y),
            self.alpha,
            self.epsilon,
            score=self._score_name(),
            candidates=self.candidates,
            neighbors=self.neighbors,
            delta=self.delta,
        )
        self.n_releases_ = releases + 1
        return self

    def _check_new(self, X: Any) -> None:
        check_is_fitted(self)
        if getattr(X, "ndim", 2) == 1:
            raise InputError("X must be two-dimensional; found one dimension. Reshape your data with X.reshape(1, -1)")
        validate_data(self, X, reset=False, skip_check_array=True)

    def _check_pair(self, X: Any, y: ArrayLike, *, reset: bool) -> NDArray[Any]:
        validate_data(self, X, reset=reset, skip_check_array=True)
        if y is None:
            raise ValueError(f"requires y to be passed, but the target y is None; {type(self).__name__} needs labels")
        target: NDArray[Any] = column_or_1d(y, warn=True)
        check_consistent_length(X, target)
        assert_all_finite(target, input_name="y", estimator_name=type(self).__name__)
        return target


class PrivateConformalClassifier(ClassifierMixin, _PrivateConformal):  # type: ignore[misc]
    """A classifier whose prediction sets cover the true class with probability 1 - alpha, calibrated privately.

    Parameters
    ----------
    estimator
        A classifier with `predict_proba`; by default a logistic regression. It is cloned, unless `prefit`.
    alpha, epsilon, neighbors, delta, candidates
        As in `confide.calibrate`.
    conformity_score
        A classification score such as `"lac"` or `"aps"`; see `confide.class_score`.
    calibration_size
        Share of the records, or their number, that is held out for calibration.
    prefit
        Whether `estimator` is fitted already: then all records given to `fit` calibrate.
    classes
        All class names, sorted. They are released as `classes_`; by default they are read from y.
    random_state
        Seed of the split. The noise that protects privacy cannot be seeded.

    Attributes
    ----------
    calibration_
        The `confide.Calibration`: all that is kept of the calibration records.
    classes_
        The class names, sorted.
    estimator_
        The trained classifier.
    n_releases_
        How many calibrations this estimator has released.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = PrivateConformalClassifier(LogisticRegression(max_iter=2000), alpha=0.1, epsilon=1.0, random_state=0)
    >>> sets = model.fit(X[:1500], y[:1500]).predict_set(X[1500:])
    >>> bool(sets.contains(y[1500:]).mean() > 0.8), bool(sets.sizes.mean() < 2)
    (True, True)
    """

    def __init__(
        self,
        estimator: Any = None,
        alpha: Level = 0.1,
        epsilon: float = 1.0,
        *,
        conformity_score: str = "lac",
        calibration_size: float = 0.5,
        prefit: bool = False,
        classes: Any = None,
        neighbors: Neighbors = "add_remove",
        delta: Level | None = None,
        candidates: Candidates | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.alpha = alpha
        self.epsilon = epsilon
        self.conformity_score = conformity_score
        self.calibration_size = calibration_size
        self.prefit = prefit
        self.classes = classes
        self.neighbors = neighbors
        self.delta = delta
        self.candidates = candidates
        self.random_state = random_state

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probabilities of the trained estimator, shape (n, K), in the order of `classes_`."""
        self._check_new(X)
        return self._probabilities(X)

    def predict_set(self, X: Any, *, u: Uniforms = None) -> PredictionSets:
        """Prediction sets of class names; `u` for the randomised scores."""
        return predict_set(
            self.predict_proba(X), self.calibration_, classes=self.classes_.tolist(), u=self._uniforms(u)
        )

    def _default(self) -> Any:
        return LogisticRegression()

    def _check(self, X: Any, y: ArrayLike, *, reset: bool) -> NDArray[Any]:
        target = self._check_pair(X, y, reset=reset)
        check_classification_targets(target)
        return target

    def _train(self, X: Any, y: NDArray[Any], all_y: NDArray[Any]) -> None:
        found = np.unique(all_y if self.classes is None else np.asarray(self.classes))
        if len(found) < 2:
            raise InputError("y must hold at least two classes; found one class")
        if len(np.unique(y)) < 2:
            raise InputError(
                "y must hold at least two classes in the training part; found one class; give more records"
            )
        self.estimator_ = clone(self._default() if self.estimator is None else self.estimator).fit(X, y)
        self.classes_ = found

    def _adopt(self, y: NDArray[Any]) -> None:
        check_is_fitted(self.estimator)
        self.estimator_, self.classes_ = self.estimator, np.asarray(self.estimator.classes_)

    def _probabilities(self, X: Any) -> NDArray[np.float64]:
        p = np.asarray(self.estimator_.predict_proba(X))
        if len(self.estimator_.classes_) == len(self.classes_):
            return p
        # A class that the training part lacked has probability 0.
        full = np.zeros((len(p), len(self.classes_)), dtype=p.dtype)
        full[:, np.searchsorted(self.classes_, self.estimator_.classes_)] = p
        return full

    def _point(self, X: Any) -> Any:
        return self.estimator_.predict(X)

    def _uniforms(self, u: Uniforms) -> Uniforms:
        from confide.scores.kinds import score_kind

        # Without numbers of their own, randomised scores draw fresh ones, which nobody else knows.
        return np.random.default_rng() if u is None and score_kind(self._score_name()).randomised else u

    def _scores(self, X: Any, y: NDArray[Any]) -> NDArray[np.float64]:
        p = self._probabilities(X)
        return class_score(p, y, self._score_name(), u=self._uniforms(None), classes=self.classes_.tolist())

    def _score_name(self) -> str:
        return str(self.conformity_score)


def _has_difficulty(self: Any) -> bool:
    return self.difficulty_estimator is not None


class PrivateConformalRegressor(RegressorMixin, _PrivateConformal):  # type: ignore[misc]
    """A regressor whose prediction intervals cover the target with probability 1 - alpha, calibrated privately.

    Parameters
    ----------
    estimator
        A regressor; by default a ridge regression. For `conformity_score="cqr"` a pair of regressors for the lower and
        the upper quantile. Cloned, unless `prefit`.
    conformity_score
        `"absolute_residual"`, `"gamma"`, `"normalised_residual"` or `"cqr"`.
    difficulty_estimator
        For `"normalised_residual"`: a regressor with positive predictions, trained on the absolute residuals of the
        training records (fitted already with `prefit`).
    alpha, epsilon, calibration_size, prefit, neighbors, delta, candidates, random_state
        As for `PrivateConformalClassifier`.

    Attributes
    ----------
    calibration_, estimator_, n_releases_
        As for `PrivateConformalClassifier`.
    difficulty_estimator_
        The trained difficulty estimator, if there is one.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = PrivateConformalRegressor(alpha=0.2, epsilon=2.0, random_state=0).fit(X[:400], y[:400])
    >>> lower, upper = model.predict_interval(X[400:])
    >>> bool(((lower <= y[400:]) & (y[400:] <= upper)).mean() > 0.6)
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        alpha: Level = 0.1,
        epsilon: float = 1.0,
        *,
        conformity_score: str = "absolute_residual",
        difficulty_estimator: Any = None,
        calibration_size: float = 0.5,
        prefit: bool = False,
        neighbors: Neighbors = "add_remove",
        delta: Level | None = None,
        candidates: Candidates | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.alpha = alpha
        self.epsilon = epsilon
        self.conformity_score = conformity_score
        self.difficulty_estimator = difficulty_estimator
        self.calibration_size = calibration_size
        self.prefit = prefit
        self.neighbors = neighbors
        self.delta = delta
        self.candidates = candidates
        self.random_state = random_state

    def predict_interval(self, X: Any) -> tuple[Any, Any]:
        """Lower and upper ends, shape (n,) each: numpy arrays, or pandas Series with the index of a data frame X."""
        self._check_new(X)
        ends = predict_interval(self._centers(X), self.calibration_, difficulty=self._difficulty(X))
        if not hasattr(X, "iloc"):
            return ends
        import pandas as pd

        lower, upper = (pd.Series(end, X.index, name=name) for end, name in zip(ends, ("lower", "upper"), strict=True))
        return lower, upper

    @available_if(_has_difficulty)  # type: ignore[untyped-decorator, unused-ignore]
    def predict_difficulty(self, X: Any) -> NDArray[np.float64]:
        """The estimated difficulty of each record, shape (n,)."""
        self._check_new(X)
        return np.asarray(self.difficulty_estimator_.predict(X), dtype=np.float64)

    def _default(self) -> Any:
        return Ridge()

    def _check(self, X: Any, y: ArrayLike, *, reset: bool) -> NDArray[Any]:
        target = self._check_pair(X, y, reset=reset)
        if target.dtype.kind not in "fiu":
            target = target.astype(np.float64)
        return target

    def _train(self, X: Any, y: NDArray[Any], all_y: NDArray[Any]) -> None:
        if isinstance(self.estimator, tuple):
            self.estimator_: Any = tuple(clone(one).fit(X, y) for one in self.estimator)
        else:
            self.estimator_ = clone(self._default() if self.estimator is None else self.estimator).fit(X, y)
        if self.difficulty_estimator is not None:
            residuals = np.abs(y - self._point(X))
            self.difficulty_estimator_ = clone(self.difficulty_estimator).fit(X, residuals)

    def _adopt(self, y: NDArray[Any]) -> None:
        for one in self.estimator if isinstance(self.estimator, tuple) else (self.estimator,):
            check_is_fitted(one)
        self.estimator_ = self.estimator
        if self.difficulty_estimator is not None:
            self.difficulty_estimator_ = self.difficulty_estimator

    def _centers(self, X: Any) -> NDArray[np.float64]:
        if self._score_name() != "cqr":
            return np.asarray(self._point(X), dtype=np.float64)
        if not isinstance(self.estimator_, tuple) or len(self.estimator_) != 2:
            raise InputError("estimator must be a pair of regressors (lower, upper) for the score 'cqr'")
        return np.column_stack([one.predict(X) for one in self.estimator_])

    def _point(self, X: Any) -> Any:
        if isinstance(self.estimator_, tuple):
            return np.mean([one.predict(X) for one in self.estimator_], axis=0)
        return self.estimator_.predict(X)

    def _difficulty(self, X: Any) -> NDArray[np.float64] | None:
        if self._score_name() != "normalised_residual":
            return None
        if self.difficulty_estimator is None:
            raise InputError("difficulty_estimator must be given for the score 'normalised_residual'")
        return np.asarray(self.difficulty_estimator_.predict(X), dtype=np.float64)

    def _scores(self, X: Any, y: NDArray[Any]) -> NDArray[np.float64]:
        return interval_score(self._centers(X), y, self._score_name(), difficulty=self._difficulty(X))

    def _score_name(self) -> str:
        return str(self.conformity_score)


def _rows(X: Any, index: NDArray[np.int64]) -> Any:
    """Some rows of a data frame, a sparse matrix, an array or a list."""
    if hasattr(X, "iloc"):
        return X.iloc[index]
    if hasattr(X, "tocsr"):
        return X.tocsr()[index]
    if hasattr(X, "shape") and hasattr(X, "__getitem__"):
        return X[index]
    return np.asarray(X)[index]
