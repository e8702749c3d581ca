"""Probabilities from logits, logits that are probabilities already, and probabilities at other temperatures."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def softmax(logits: NDArray[Any]) -> NDArray[np.float64]:
    """The softmax of finite rows of any size, shape (n, K); the result of a row does not depend on its position.

    Examples
    --------
    >>> softmax(np.array([[1000.0, 1000.0, -1000.0]]))
    array([[0.5, 0.5, 0. ]])
    """
    z = np.array(logits, dtype=np.float64, order="C")
    z -= z.max(axis=1, keepdims=True)
    np.exp(z, out=z)
    z /= z.sum(axis=1, keepdims=True)
    return z


# Logits that are probabilities already: the largest number of rows that are compared, and the largest gap of their sums
# from one.
_COMPARED_ROWS = 100
_LARGEST_GAP = 0.005

# So many rows of logits look like probabilities at most once in a million times: with several numbers a row, or with
# one, for one of two classes.
_LEAST_ROWS = 3
_LEAST_ROWS_OF_ONE_NUMBER = 30


def look_like_probabilities(rows: NDArray[Any]) -> NDArray[np.bool_]:
    """Mark the first rows if all look like probabilities, not logits; shape (n, K), K = 1 for one of two classes."""
    alike = np.zeros(len(rows), dtype=np.bool_)
    first = rows[:_COMPARED_ROWS]
    one_number = rows.shape[1] == 1
    if len(first) < (_LEAST_ROWS_OF_ONE_NUMBER if one_number else _LEAST_ROWS):
        return alike
    with np.errstate(invalid="ignore", over="ignore"):
        total = first.sum(axis=1, dtype=np.float64)
        near = (first <= 1).all(axis=1) if one_number else np.abs(total - 1) < _LARGEST_GAP
        alike[: len(first)] = bool(((first >= 0).all(axis=1) & near).all())
    return alike


# Probabilities at another temperature: each to the power 1/T, rescaled so that every record sums to one.
#
# For the softmax of logits z this is the softmax of z/T (Guo, Pleiss, Sun and Weinberger, "On calibration of modern
# neural networks", ICML 2017). T > 1 flattens the probabilities of an over-confident model. T is a public number in the
# score's name, `lac(temperature=2)`: it must be chosen without the calibration records.


def tempered(p: NDArray[Any], temperature: float) -> NDArray[np.float64]:
    """p^(1/T) / sum p^(1/T) for rows of shape (n, K) with entries in [0, 1], in float64; rows of zeros stay zero.

    Each row is computed separately, so that calibration and prediction agree bit for bit.

    Examples
    --------
    >>> tempered(np.array([[0.64, 0.04, 0.0]]), 2.0)
    array([[0.8, 0.2, 0. ]])
    """
    logits = np.array(p, dtype=np.float64, order="C")
    empty = ~logits.any(axis=1)
    logits[empty] = 1.0
    with np.errstate(divide="ignore"):
        np.log(logits, out=logits)
    logits /= temperature
    powers = softmax(logits)
    powers[empty] = 0.0
    return powers
