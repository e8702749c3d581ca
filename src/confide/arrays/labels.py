"""The true labels of records: their positions among the classes, or errors; and names of classes."""

import warnings
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays.checked import as_array, is_null, one_per_record
from confide.errors import CoverageWarning, InputError, InputTypeError, replaced_errors
from confide.support import (
    as_integer,
    caller_stacklevel,
    first_names,
    known_positions,
    positions,
    raise_for_rows,
    require,
)


def as_labels(
    name: str, data: ArrayLike, n: int, k: int, classes: Sequence[object] | None = None, *, unknown: bool = False
) -> NDArray[np.int64]:
    """Labels as class indices: integers in [0, k), or members of `classes`; shape (n,).

    With `classes`, labels are matched by name (`confide.support.names`), so that [10, 20] or ["cat", "dog"] work. Other
    labels raise an error, or with `unknown` have the index -1. An error is always raised for missing labels, labels of
    a type that no class name has, and integers that seem to count from 1 while classes have no names.
    """
    array = one_per_record(name, as_array(name, data))
    require(name, len(array) == n, "must have as many entries as there are rows", f"{len(array)} for {n} rows")
    if classes is None:
        return _class_numbers(name, array, k, unknown=unknown)
    names = class_names(classes, k)
    values = _as_list(data, array)
    if n:
        _refuse_other_types(name, array.dtype, names)
    return _places_or_minus_one(name, values, names) if unknown else known_positions(name, values, names, "classes")


def _places_or_minus_one(name: str, values: list[Any], names: Sequence[object]) -> NDArray[np.int64]:
    """The position of each value among names, -1 for other values; missing ones raise an error."""
    places = positions(name, values, names)
    missing = np.zeros(len(values), dtype=np.bool_)
    for i in np.flatnonzero(places < 0):
        missing[i] = is_missing(values[i]) or values[i] == ""
    remedy = "Add them; coverage of the other records alone says nothing about records without a label"
    raise_for_rows(name, missing, "must not be missing", "missing", remedy)
    return places


def _class_numbers(name: str, array: NDArray[Any], k: int, *, unknown: bool) -> NDArray[np.int64]:
    """Integers that count the classes from 0, int64; with `unknown`, -1 for those of k and above."""
    if array.size and array.dtype.kind not in "iu":
        remedy = "Add missing labels, and for class names pass classes=[...]"
        if array.dtype.kind == "b":
            remedy = "Pass classes=[False, True], in the order of the columns, or integers"
        raise InputTypeError(name, f"must be integers from 0 to {k - 1}", got=f"dtype {array.dtype}", remedy=remedy)
    must = f"must lie between 0 and {k - 1}"
    remedy = "Check the order and the number of the classes"
    raise_for_rows(name, (array < 0) | ((array >= k) & (not unknown)), must, "outside", remedy)
    from_one = array.size and array.min() > 0 and array.max() == k
    remedy = f"Subtract 1 if they count from 1; if {k} is a class that the model never learned, pass classes=[...]"
    require(name, not from_one, f"must count the classes from 0 to {k - 1}", f"some of {k} and none of 0", remedy)
    return np.where(array < k, array, -1).astype(np.int64, copy=False)


def is_missing(value: Any) -> bool:
    """Whether a value is missing: None, pandas.NA, or NaN and NaT, which differ from themselves."""
    return is_null(value) or bool(value != value)


def _refuse_other_types(name: str, dtype: np.dtype[Any], names: Sequence[object]) -> None:
    """Reject labels of a type that no class name has: whatever they are, none would be among the classes."""
    if dtype.kind in "iufb":
        fits = any(map(_reads_as_number, names))
    elif dtype.kind in "UT":
        fits = any(isinstance(item, str | int) for item in names)
    else:
        fits = dtype.kind == "O" or not all(isinstance(item, str | Real) for item in names)
    if not fits:
        remedy = "Write them as the classes are named"
        if dtype.kind in "iu":
            remedy = "If they count the classes from 0, pass [classes[i] for i in labels], or columns without names"
        must = f"must name the {len(names)} classes, {first_names(names)}"
        raise InputError(name, must, got=f"dtype {dtype}", remedy=remedy)


def _reads_as_number(name: object) -> bool:
    return as_integer(name) is not None if isinstance(name, str) else isinstance(name, Real)


def warn_of_unknown_labels(name: str, places: NDArray[np.int64], names: Sequence[object]) -> None:
    """Warn of labels that are not among the classes (place -1), in calls whose results are not private."""
    at = np.flatnonzero(places < 0)
    if at.size:
        warnings.warn(
            f"{name}: {at.size} of {len(places)} are not among the {len(names)} classes, {first_names(names)}, the "
            f"first at position {at[0]}: the model never learned them, and these records count as never covered "
            "(score +inf). If they are classes by another name, correct their names",
            CoverageWarning,
            stacklevel=caller_stacklevel(),
        )


def as_positions(
    name: str, data: ArrayLike, names: Sequence[object], n: int, *, unknown: bool = False
) -> NDArray[np.int64]:
    """The position of every record's group, or class, in a public list of their names, shape (n,).

    With `unknown`, a name that is not in the list has the position -1.
    """
    array = as_array(name, data)
    require(name, array.shape == (n,), f"must have shape ({n},), one entry per record", f"shape {array.shape}")
    values = _as_list(data, array)
    return _places_or_minus_one(name, values, names) if unknown else known_positions(name, values, names)


def class_names(classes: Sequence[object], k: int) -> tuple[object, ...]:
    """The names of the k classes, all different."""
    array = as_array("classes", classes)
    if array.ndim != 1:
        raise InputTypeError("classes", "must be a sequence of names", got=type(classes).__name__)
    names = tuple(_as_list(classes, array))
    require("classes", len(names) == k, "must name every column", f"{len(names)} names for {k} columns")
    no_names = InputTypeError("classes", "must be texts or numbers", got="names that cannot be compared")
    with replaced_errors(lambda error: no_names if isinstance(error, TypeError) else None):
        different = len(set(names))
    require("classes", different == k, "must differ from one another", f"{k - different} repeated")
    return names


def _as_list(data: object, array: NDArray[Any]) -> list[Any]:
    """Plain Python values; numpy does not read a list, because it would turn [1, "a"] into texts."""
    values = list(data) if isinstance(data, list | tuple) else array.tolist()
    return [value.item() if isinstance(value, np.generic) else value for value in values]
