"""What the two estimators share: splitting, fitting, calibrating, and counting releases."""

import warnings
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import train_test_split
from sklearn.utils import column_or_1d, get_tags
from sklearn.utils.validation import assert_all_finite, check_consistent_length, check_is_fitted, validate_data

from confide.calibration import calibrate
from confide.errors import InputError

Self = TypeVar("Self", bound="PrivateConformal")


class SecondReleaseWarning(UserWarning):
    """An estimator was calibrated again: a second release, whose loss adds up with the first on shared records."""


class PrivateConformal(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """What the classifier and the regressor share: splitting, fitting, and counting releases."""

    _default: type
    """The estimator that is trained if none is given."""

    def _store(self, parameters: dict[str, Any]) -> None:
        """Every parameter of the constructor untouched, under its own name."""
        self.__dict__.update({name: value for name, value in parameters.items() if name not in ("self", "__class__")})

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
            self._adopt()
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
        return self._point(X)

    def _point(self, X: Any) -> NDArray[Any]:
        return np.asarray(self.estimator_.predict(X))

    def _trained(self, X: Any, y: ArrayLike) -> Any:
        """A copy of the estimator, or of the default one, trained on some records."""
        return clone(self._default() if self.estimator is None else self.estimator).fit(X, y)

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
            score=self.conformity_score,
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

    def _check(self, X: Any, y: ArrayLike, *, reset: bool) -> NDArray[Any]:
        validate_data(self, X, reset=reset, skip_check_array=True)
        if y is None:
            raise ValueError(f"requires y to be passed, but the target y is None; {type(self).__name__} needs labels")
        target: NDArray[Any] = column_or_1d(y, warn=True)
        check_consistent_length(X, target)
        assert_all_finite(target, input_name="y", estimator_name=type(self).__name__)
        usable: NDArray[Any] = self._usable(target)
        return usable


def _rows(X: Any, index: NDArray[np.int64]) -> Any:
    """Some rows of a data frame, a sparse matrix, an array or a list."""
    if hasattr(X, "iloc"):
        return X.iloc[index]
    if hasattr(X, "tocsr"):
        return X.tocsr()[index]
    if hasattr(X, "shape") and hasattr(X, "__getitem__"):
        return X[index]
    return np.asarray(X)[index]
