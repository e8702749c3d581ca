"""Logits to probabilities, in double precision."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_LOOKED_AT, _ROUNDED = 100, 0.005
_ROWS, _PAIRS = 3, 30
"""How many rows look like probabilities by chance once in a million times, or never: of several numbers, and of one."""


def softmax(logits: NDArray[Any]) -> NDArray[np.float64]:
    """The softmax of finite rows, shape (n, K), however large: each row is computed for itself, wherever it stands.

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


def look_like_probabilities(rows: NDArray[Any]) -> NDArray[np.bool_]:
    """Which of the first rows to refuse as logits: all, if all are probabilities; shape (n, K), K = 1 for one of two.

    Examples
    --------
    >>> look_like_probabilities(np.array([[0.5, 0.5], [0.1, 0.9], [1.0, 0.0]]))
    array([ True,  True,  True])
    >>> look_like_probabilities(np.array([[0.5, 0.5], [0.1, 0.9], [3.0, -2.0]]))
    array([False, False, False])
    """
    found, first = np.zeros(len(rows), dtype=np.bool_), rows[:_LOOKED_AT]
    one = rows.shape[1] == 1
    if len(first) < (_PAIRS if one else _ROWS):
        return found
    with np.errstate(invalid="ignore", over="ignore"):
        total = first.sum(axis=1, dtype=np.float64)
        near = (first <= 1).all(axis=1) if one else np.abs(total - 1) < _ROUNDED
        found[: len(first)] = bool(((first >= 0).all(axis=1) & near).all())
    return found
