"""The classifier: prediction sets of class names."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from confide.candidates import Candidates
from confide.errors import InputError
from confide.estimators.base import PrivateConformal
from confide.mechanisms import Neighbors
from confide.scores import Uniforms, class_score, score_kind
from confide.sets import PredictionSets, predict_set
from confide.support import Level


class PrivateConformalClassifier(ClassifierMixin, PrivateConformal):  # type: ignore[misc]
    """A classifier whose prediction sets cover the true class with probability 1 - alpha, calibrated privately.

    Parameters
    ----------
    estimator
        A classifier with `predict_proba`; by default a logistic regression. It is cloned, unless `prefit`.
    alpha, epsilon, neighbors, delta, candidates
        As in `confide.calibrate`.
    conformity_score
        A classification score such as `"lac"` or `"aps"`; see `confide.class_score`. It is not called `score`, for that
        is the method that rates the point predictions.
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

    _default = LogisticRegression

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
        self._store(locals())

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probabilities of the trained estimator, shape (n, K), in the order of `classes_`."""
        self._check_new(X)
        return self._probabilities(X)

    def predict_set(self, X: Any, *, u: Uniforms = None) -> PredictionSets:
        """Prediction sets of class names; `u` for the randomised scores."""
        return predict_set(
            self.predict_proba(X), self.calibration_, classes=self.classes_.tolist(), u=self._uniforms(u)
        )

    def _usable(self, y: NDArray[Any]) -> NDArray[Any]:
        check_classification_targets(y)
        return y

    def _train(self, X: Any, y: NDArray[Any], all_y: NDArray[Any]) -> None:
        found = np.unique(all_y if self.classes is None else np.asarray(self.classes))
        if len(found) < 2:
            raise InputError("y must hold at least two classes; found one class")
        if len(np.unique(y)) < 2:
            raise InputError(
                "y must hold at least two classes in the training part; found one class; give more records"
            )
        self.estimator_ = self._trained(X, y)
        self.classes_ = found

    def _adopt(self) -> None:
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

    def _uniforms(self, u: Uniforms) -> Uniforms:
        # Without numbers of their own, randomised scores draw fresh ones, which nobody else knows.
        return np.random.default_rng() if u is None and score_kind(self.conformity_score).randomised else u

    def _scores(self, X: Any, y: NDArray[Any]) -> NDArray[np.float64]:
        p = self._probabilities(X)
        return class_score(p, y, self.conformity_score, u=self._uniforms(None), classes=self.classes_.tolist())
