"""Regression scores, from the numbers that a model predicts."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_vector
from confide.errors import InputError


def absolute_residual_score(predictions: ArrayLike, targets: ArrayLike) -> NDArray[np.float64]:
    """Absolute residual |y - f(x)|.

    Lei, G'Sell, Rinaldo, Tibshirani and Wasserman, "Distribution-free predictive inference for regression", JASA 2018.

    Parameters
    ----------
    predictions, targets
        Shape (n,), finite numbers.

    Returns
    -------
    numpy.ndarray
        float64, shape (n,), non-negative.

    Raises
    ------
    InputError, InputTypeError
        If a value is not finite or lengths differ.

    Examples
    --------
    >>> absolute_residual_score([1.0, 2.0], [1.5, 0.0])
    array([0.5, 2. ])
    """
    f, y = finite_vector("predictions", predictions), finite_vector("targets", targets)
    if len(f) != len(y):
        raise InputError(f"targets must have as many entries as predictions; found {len(y)} for {len(f)}")
    with np.errstate(over="ignore"):
        score: NDArray[np.float64] = np.abs(y - f)
    return score


def finite_vector(name: str, data: ArrayLike) -> NDArray[np.float64]:
    """A non-empty float64 vector without NaN or infinities."""
    array = as_vector(name, data).astype(np.float64)
    wrong = np.flatnonzero(~np.isfinite(array))
    if wrong.size:
        raise InputError(f"{name} must be finite; found {wrong.size} NaN or infinite, the first at position {wrong[0]}")
    return array
