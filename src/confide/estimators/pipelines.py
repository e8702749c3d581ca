"""Sets and intervals of pipelines that end with one of these estimators; scikit-learn's pipelines provide neither."""

import warnings
from collections.abc import Iterator
from typing import Any, TypeVar

from numpy.typing import ArrayLike
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from confide.arrays import Uniforms
from confide.errors import InputTypeError
from confide.estimators.classifier import PrivateConformalClassifier
from confide.estimators.regressor import PrivateConformalRegressor
from confide.sets import PredictionIntervals, PredictionSets
from confide.support import Level, caller_stacklevel

_Estimator = TypeVar("_Estimator")


class FittedStepWarning(UserWarning):
    """A pipeline fitted a step before the estimator; if on its calibration records, the guarantees are void."""


def pipeline_sets(
    model: Any, X: Any, *, u: Uniforms = None, groups: ArrayLike | None = None, alpha: Level | None = None
) -> PredictionSets:
    """The prediction sets of a pipeline or a search that ends with a `PrivateConformalClassifier`.

    Parameters
    ----------
    model
        A fitted `Pipeline`, also nested; a fitted search such as `GridSearchCV`, whose best estimator is used; or the
        estimator itself.
    X
        Shape (n, features), as the first step accepts it.
    u, groups, alpha
        As for the estimator's `predict_set`.

    Raises
    ------
    InputTypeError
        If the pipeline or the search does not end with such an estimator.

    Warns
    -----
    FittedStepWarning
        If a step before the estimator has to be fitted. `fit` of the pipeline fitted it on the records that calibrate,
        too. Then one record changes the scores of all, and neither the privacy loss nor the coverage that the release
        states holds. Put the steps inside the estimator, or, fitted on other records, in a `FrozenEstimator`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import Normalizer
    >>> X, y = load_digits(return_X_y=True)
    >>> model = make_pipeline(Normalizer(), PrivateConformalClassifier(epsilon=2.0, random_state=0))
    >>> sets = pipeline_sets(model.fit(X[:1500], y[:1500]), X[1500:])
    >>> len(sets), sets.promised
    (297, 0.9)
    """
    last, rows = _last(model, X, PrivateConformalClassifier)
    return last.predict_set(rows, u=u, groups=groups, alpha=alpha)


def pipeline_intervals(
    model: Any, X: Any, *, groups: ArrayLike | None = None, alpha: Level | None = None
) -> PredictionIntervals:
    """The prediction intervals of a pipeline or a search that ends with a `PrivateConformalRegressor`.

    Parameters, errors and warnings as in `pipeline_sets`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import Normalizer
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = make_pipeline(Normalizer(), PrivateConformalRegressor(alpha=0.2, epsilon=2.0, random_state=0))
    >>> lower, upper = pipeline_intervals(model.fit(X[:400], y[:400]), X[400:])
    >>> bool((lower < upper).all())
    True
    """
    last, rows = _last(model, X, PrivateConformalRegressor)
    return last.predict_interval(rows, groups=groups, alpha=alpha)


def _last(model: Any, X: Any, kind: type[_Estimator]) -> tuple[_Estimator, Any]:
    """The last estimator of a model, and the rows after the steps before it."""
    # One of these estimators, fitted.
    *steps, last = _steps(model)
    if not isinstance(last, kind):
        must = f"must be a {kind.__name__}, or a pipeline or a search that ends with one"
        raise InputTypeError("model", must, got=f"one that ends with {type(last).__name__}")
    check_is_fitted(last)

    # Steps that were fitted may have seen the records that calibrate.
    suspects = [step for step in steps if not isinstance(step, FrozenEstimator) and get_tags(step).requires_fit]
    if suspects:
        name = type(suspects[0]).__name__
        warnings.warn(
            f"the step {name} was fitted before the estimator was calibrated: if on records that calibrate, as "
            f"fit of the pipeline does, neither the privacy loss nor the coverage of the release holds; put it inside, "
            f"{kind.__name__}(make_pipeline({name}(), ...)), or, fitted on other records, in a FrozenEstimator",
            FittedStepWarning,
            stacklevel=caller_stacklevel(),
        )
    for step in steps:
        X = step.transform(X)
    return last, X


def _steps(model: Any) -> Iterator[Any]:
    """The steps of a model in their order, including those of nested pipelines and searches; the last one is last."""
    if isinstance(model, Pipeline):
        for _, step in model.steps:
            yield from _steps(step)
    elif hasattr(model, "best_estimator_"):
        yield from _steps(model.best_estimator_)
    elif model is not None and model != "passthrough":
        yield model
