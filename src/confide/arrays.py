"""The door for arrays: numpy in, clear refusals out. Inputs are never modified, and no value appears in a message.

Anything that offers numpy's array protocol is accepted: numpy arrays of any layout, lists, pandas, polars and Arrow
columns.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.errors import InputError, InputTypeError


def as_numeric(name: str, data: Any) -> NDArray[Any]:
    """A numeric numpy array (float16, float32, float64 or integer), missing values as NaN."""
    if isinstance(data, np.ma.MaskedArray):
        data = np.ma.filled(data.astype(np.float64), np.nan)
    if hasattr(data, "isna") and hasattr(data, "to_numpy"):  # pandas: nullable columns hold pandas.NA
        try:
            data = data.to_numpy(dtype=data.dtype if _is_numpy_dtype(data) else np.float64, na_value=np.nan)
        except TypeError:
            data = data.to_numpy()
        except ValueError:
            raise InputTypeError(f"{name} must hold numbers; found a column that does not") from None
    try:
        array = np.asarray(data)
        if array.dtype == object:
            array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise InputTypeError(f"{name} must be an array of numbers; found {type(data).__name__}") from None
    if array.dtype.kind not in "fiu":
        raise InputTypeError(f"{name} must hold real numbers; found dtype {array.dtype}")
    return array


def _is_numpy_dtype(data: Any) -> bool:
    return isinstance(getattr(data, "dtype", None), np.dtype) and data.dtype.kind in "fiu"


def as_vector(name: str, data: ArrayLike) -> NDArray[Any]:
    """A non-empty one-dimensional numeric array."""
    array = as_numeric(name, data)
    if array.ndim != 1:
        raise InputError(f"{name} must be one-dimensional; found shape {array.shape}")
    if array.size == 0:
        raise InputError(f"{name} must not be empty; found no values")
    return array


def as_probabilities(name: str, data: ArrayLike) -> NDArray[Any]:
    """A non-empty array of shape (n, K) with values in [0, 1]. Rows need not sum to one."""
    array = as_numeric(name, data)
    if array.ndim != 2 or array.size == 0:
        raise InputError(f"{name} must have shape (n, classes), neither of them 0; found shape {array.shape}")
    rows = max(1, 2**18 // array.shape[1])
    bad, first = 0, -1
    for start in range(0, len(array), rows):
        block = array[start : start + rows]
        if not (block.min() >= 0 and block.max() <= 1):  # NaN fails both
            wrong = np.flatnonzero(~((block >= 0) & (block <= 1)).all(axis=1))
            first = start + int(wrong[0]) if first < 0 else first
            bad += wrong.size
    if bad:
        raise InputError(
            f"{name} must lie in [0, 1]; found {bad} row(s) with NaN or values outside, the first at row {first}; "
            "apply softmax to logits and drop incomplete rows"
        )
    return array


def as_labels(name: str, data: ArrayLike, n: int, k: int, classes: Sequence[object] | None = None) -> NDArray[np.int64]:
    """Labels as class indices: integers in [0, k), or members of `classes`; shape (n,).

    With `classes`, labels are looked up by value, so that [10, 20] or ["cat", "dog"] work.
    """
    array = np.asarray(data)
    if array.ndim != 1:
        raise InputError(f"{name} must be one-dimensional; found shape {array.shape}")
    if len(array) != n:
        raise InputError(f"{name} must have as many entries as there are rows; found {len(array)} for {n} rows")
    if classes is not None:
        return _look_up(name, array, class_names(classes, k))
    if array.dtype.kind not in "iu":
        raise InputTypeError(
            f"{name} must be integers from 0 to {k - 1}; found dtype {array.dtype}; for class names pass classes=[...]"
        )
    wrong = np.flatnonzero((array < 0) | (array >= k))
    if wrong.size:
        raise InputError(
            f"{name} must lie between 0 and {k - 1}; found {wrong.size} outside, the first at position {wrong[0]}; "
            "check the order and the number of the classes"
        )
    return array.astype(np.int64)


def class_names(classes: Sequence[object], k: int) -> tuple[object, ...]:
    """The names of the k classes, all different."""
    names = tuple(np.asarray(classes).tolist())
    if len(names) != k:
        raise InputError(f"classes must name every column; found {len(names)} names for {k} columns")
    if len(set(names)) != k:
        raise InputError(f"classes must differ from one another; found {k - len(set(names))} repeated")
    return names


def _look_up(name: str, labels: NDArray[Any], names: tuple[object, ...]) -> NDArray[np.int64]:
    position = {label: i for i, label in enumerate(names)}
    index = np.fromiter((position.get(label, -1) for label in labels.tolist()), dtype=np.int64, count=len(labels))
    wrong = np.flatnonzero(index < 0)
    if wrong.size:
        raise InputError(
            f"{name} must be among the {len(names)} classes; found {wrong.size} that are not, "
            f"the first at position {wrong[0]}"
        )
    return index
