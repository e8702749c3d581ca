"""`PrivateConformalClassifier`: prediction sets of class names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples

from confide.arrays import GroupColumns, Uniforms, class_columns, refuse_other_rows, refuse_other_sums, row_index
from confide.core import By, GroupedScores, Request, Source
from confide.errors import InputError, InputTypeError
from confide.estimators.base import PrivateConformal
from confide.scores import all_scores, own_class_scores
from confide.sets import PredictionSets, predict_set
from confide.support import Classes, Level, public_classes, require


@dataclass(eq=False, repr=False)
class PrivateConformalClassifier(ClassifierMixin, PrivateConformal):  # type: ignore[misc]
    """A classifier whose prediction sets cover the true class with probability 1 - alpha, calibrated privately.

    Parameters
    ----------
    estimator
        A classifier with `predict_proba`; by default a logistic regression. It is cloned and trained, unless `prefit`;
        if it is already fitted, there is a `RetrainedWarning`. From a mapping of names to classifiers, one is chosen
        privately on a share of the calibration records (`confide.choose_score`).
    alpha, epsilon, neighbors, delta, candidates, ledger, dataset, again, about
        As in `confide.calibrate`; several levels give nested thresholds, as there. `alpha` is 0.1 by default.
    confidence_level
        The guaranteed coverage, 1 - alpha, instead of `alpha`; also several.
    conformity_score
        A classification score such as `"lac"` or `"aps"`; see `confide.class_score`. It is not called `score`, because
        `score` is the method that rates point predictions. From several names one is chosen privately, as for
        `estimator`.
    calibration_size
        Share of the records that is held out for calibration: the probability of each record, drawn independently.
    prefit
        Whether `estimator` is already fitted: then all records given to `fit` calibrate.
    classes
        All class names, public. By default those of the training part, or of the fitted estimator with `prefit`. A
        calibration label that is not among them has the score +inf: it counts as not covered, and is not revealed.
    by_class
        Release a threshold for every class of `classes_`, as in `confide.calibrate` with `by="class"`.
    group_names, partition
        Release a threshold for each of these public groups, the `names` and `partition` of `confide.calibrate`;
        `fit` and `predict_set` then require the group of each record.
    choice_share, largest_size
        As in `confide.choose_score`, for several classifiers or scores. The choice has the privacy loss epsilon as
        well, and does not add to that of the threshold, because no record is used for both.
    probe
        PUBLIC records, rows like those of X, never records that calibrate: the release then states the fingerprint of
        the model by its outputs for them. Every prediction compares, and raises an error after the model was retrained.
    random_state
        Seed of the split, which is random by default. The noise that protects privacy cannot be seeded.

    Attributes
    ----------
    calibration_
        The `confide.Release`, of one threshold or of several levels, groups or classes: the only result of the
        calibration records. Its privacy statement is about a record of the calibration part;
        `docs/limits.md` states the consequences for a record given to `fit`. The model, `classes_` and
        everything else that is trained are not private.
    classes_
        The class names, sorted.
    estimator_
        The trained classifier; of several the chosen one.
    estimators_, conformity_score_
        All trained classifiers by name; the chosen score. Only if there are several to choose from.
    n_releases_
        The number of calibrations that this estimator has released.

    Notes
    -----
    Every `fit` is a release with a privacy loss of its own. `cross_validate` and `GridSearchCV` fit clones, whose
    losses add up without a warning: `GridSearchCV(..., cv=3)` over two values makes seven releases. Search over the
    inner estimator instead (`PrivateConformalClassifier(GridSearchCV(...))`), which trains on the training part alone
    and makes one release. With `ledger` and `dataset`, a second release of the same request raises `OtherDataError`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = PrivateConformalClassifier(LogisticRegression(max_iter=2000), alpha=0.1, epsilon=1.0, random_state=0)
    >>> sets = model.fit(X[:1500], y[:1500]).predict_set(X[1500:])
    >>> bool(sets.contains(y[1500:]).mean() > 0.8), bool(sets.sizes.mean() < 2)
    (True, True)
    """

    _: KW_ONLY
    conformity_score: str | Sequence[str] = "lac"
    classes: Any = None
    by_class: bool = False

    _default = LogisticRegression

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probabilities of the trained estimator, shape (n, K), in the order of `classes_`."""
        self._check_new(X)
        return self._probabilities(X)

    def predict_set(
        self, X: Any, *, u: Uniforms = None, groups: ArrayLike | None = None, alpha: Level | None = None
    ) -> PredictionSets:
        """Prediction sets of class names; `u` and `groups` as in `confide.predict_set`; `alpha` selects a level.

        X may have no rows.
        """
        self._check_new(X)
        refuse_other_rows(X=X, groups=groups, u=u)
        sets = predict_set(
            self._probabilities(X), self._compared(alpha), classes=self.classes_.tolist(), u=u, groups=groups
        )
        return replace(sets, index=row_index(X))

    def _usable(self, y: NDArray[Any]) -> NDArray[Any]:
        if len(y):
            check_classification_targets(y)
        return y

    def _parts(self) -> tuple[tuple[Any, ...] | GroupColumns, By | None]:
        if not self.by_class:
            return super()._parts()
        either = "by_class and group_names must not be given together: thresholds are per class, or group"
        require("by_class", self.group_names is None, either)
        return tuple(self.classes_.tolist()), "class"

    def _public_classes(self) -> Classes:
        return public_classes("classes", self.classes_)

    def _train(self, X: Any, y: NDArray[Any], arguments: dict[str, dict[str, Any]]) -> None:
        # Two classes or more, of records that have a weight; all estimators have the same weights.
        for estimator in self._inner().values():
            _refuse_without_probabilities(estimator)
        trained = np.unique(y)
        weights = next(iter(arguments.values())).get("sample_weight")
        weighed = trained if weights is None else np.unique(y[np.asarray(weights) > 0])
        if len(weighed) < 2:
            got = "one class" if weights is None else "one class of positive sample_weight"
            must = "must contain at least two classes in the training part"
            raise InputError("y", must, got=got, remedy="Give more records")

        # The stated classes may have more names than the training part.
        names = trained if self.classes is None else np.unique(np.asarray(self.classes))
        if missing := len(set(trained.tolist()) - set(names.tolist())):
            must = "must name every label of the training part"
            raise InputError("classes", must, got=f"{missing} more", remedy="Add them")
        super()._train(X, y, arguments)
        self.classes_ = names

    def _adopt(self) -> None:
        # All estimators have the same classes, and so does the statement.
        super()._adopt()
        fitted = self._inner().values()
        for estimator in fitted:
            _refuse_without_probabilities(estimator)
        if len({tuple(estimator.classes_) for estimator in fitted}) > 1:
            raise InputError("estimator", "must have the same classes in all fitted estimators")
        fitted_classes = np.asarray(next(iter(fitted)).classes_)
        if self.classes is not None and set(np.asarray(self.classes).tolist()) != set(fitted_classes.tolist()):
            must = "must be those of the fitted estimator with prefit=True"
            raise InputError("classes", must, remedy="Leave them out")
        self.classes_ = fitted_classes

    def _probabilities(self, X: Any) -> NDArray[np.float64]:
        if not _num_samples(X):
            return np.zeros((0, len(self.classes_)))
        p, _ = class_columns(self.estimator_.predict_proba(X), self.estimator_.classes_)
        if len(self.estimator_.classes_) == len(self.classes_):
            return p
        # A class that the training part lacked has probability 0.
        full = np.zeros((len(p), len(self.classes_)), dtype=p.dtype)
        full[:, np.searchsorted(self.classes_, self.estimator_.classes_)] = p
        return full

    _outputs = _probabilities

    def _codes(self, y: NDArray[Any]) -> NDArray[np.int64]:
        """Position of each label among the classes; -1 for a label that is not among them."""
        positions = {label: i for i, label in enumerate(self.classes_.tolist())}
        return np.array([positions.get(label, -1) for label in y.tolist()], dtype=np.int64)

    def _source(self, X: Any, y: NDArray[Any], groups: ArrayLike | None, request: Request) -> Source:
        if request.by != "class":
            return super()._source(X, y, groups, request)
        return GroupedScores(self._scores(X, y), y, self._codes(y))

    def _scores(self, X: Any, y: NDArray[Any]) -> NDArray[np.float64]:
        p = self._probabilities(X)
        refuse_other_sums("probabilities", p)
        return own_class_scores(p, self._codes(y), self._score_name)

    def _sizes(self, X: Any) -> NDArray[np.float64]:
        return all_scores(self._probabilities(X), self._score_name)


def _refuse_without_probabilities(estimator: Any) -> None:
    if not hasattr(estimator, "predict_proba"):
        wrap = "wrap it in sklearn.calibration.CalibratedClassifierCV, which estimates probabilities"
        remedy = f"{type(estimator).__name__} has none: {wrap}"
        raise InputTypeError("estimator", "must have predict_proba", remedy=remedy)
