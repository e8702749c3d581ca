"""The true labels of records and of pixels: their positions among the classes, or errors; and names of classes."""

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from numbers import Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays.checked import as_array, as_numeric, is_null, one_per_record
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

# True labels of records.


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
    names, values = class_names(classes, k), _as_list(data, array)
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
    got = f"integers from {array.min()} to {k}" if from_one else ""
    remedy = f"Subtract 1 if they count from 1; if {k} is a class that the model never learned, pass classes="
    require(name, not from_one, f"must count the classes from 0 to {k - 1}", got, remedy)
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
    return (_places_or_minus_one if unknown else known_positions)(name, _as_list(data, array), names)


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


# Images with a true class for every pixel. Only indexing, comparing and counting, which have the same syntax for numpy
# arrays and torch tensors.

Result = TypeVar("Result")


def image_by_image(images: Iterable[tuple[Any, Any]], work: Callable[[Any, Any], Result]) -> Iterator[Result]:
    """The results for each pair (probabilities, truth); an error names the image."""
    for i, image in enumerate(images):
        pair = isinstance(image, tuple | list) and len(image) == 2
        require("images", pair, "must be pairs (probabilities, truth)", f"{type(image).__name__} at image {i}")
        try:
            result = work(*image)
        except InputError as error:
            where = f"{error.requirement} (image {i}, counted from 0)"
            raise type(error)(error.argument, where, error.got, error.remedy) from None
        yield result


def class_areas(p: Any, truth: Any, ignore_index: int) -> Iterator[tuple[Any, Any]]:
    """For each class the pixels of this class, and the pixels that count (None: all of them): bool, shape `(*spatial)`.

    Parameters
    ----------
    p
        The probabilities of one image, shape `(K, *spatial)`.
    truth
        Class numbers 0 to K-1, of shape `(*spatial)` or `(1, *spatial)`; or one mask per channel, 1 where the class is
        true, 0 elsewhere, shape `(K, *spatial)`. With one channel both have the same meaning. Of any number type.
    ignore_index
        Pixels with this number are left out.

    Raises
    ------
    InputError
        If the shapes do not fit, or pixels have other numbers. The message states how many.

    Examples
    --------
    >>> [true.tolist() for true, _ in class_areas(np.zeros((2, 3)), np.array([1, 0, 1]), -100)]
    [[False, True, False], [True, False, True]]
    """
    # One image of one class or more.
    shape = tuple(p.shape)
    has_pixels = len(shape) >= 2 and 0 not in shape
    require("probabilities", has_pixels, "must have shape (classes, *pixels)", str(shape))
    k, *pixel_shape = shape
    spatial = tuple(pixel_shape)

    # Class numbers, unless truth has one mask per class.
    given = tuple(truth.shape)
    if given != shape:
        must = f"must have the shape of its pixels, {spatial}, or one mask per class, {shape}"
        require("truth", given in (spatial, (1, *spatial)), must, str(given), "Resize one to the other")
        if k > 1:
            yield from _areas_of_numbers(k, truth.reshape(spatial), ignore_index)
            return

    # Masks, or the one class of one channel.
    pixels = math.prod(map(int, spatial))
    for mask in truth.reshape(shape):
        true, left_out = mask == 1, mask == ignore_index
        other = pixels - int((true | left_out | (mask == 0)).sum())
        remedy = (
            f"{other} of {pixels} pixels of one hold something else; binarise them, or give the value of pixels "
            "without a label as ignore_index, about which the guarantee says nothing"
        )
        require("masks", not other, "must hold 1 where a class is true and 0 elsewhere", remedy=remedy)
        yield true, (~left_out if bool(left_out.any()) else None)


def _areas_of_numbers(k: int, truth: Any, ignore_index: int) -> Iterator[tuple[Any, Any]]:
    # The areas, and the number of pixels with a known number.
    left_out = truth == ignore_index
    known = int(left_out.sum())
    counts = ~left_out if known else None
    for number in range(k):
        true = (truth == number) if counts is None else (truth == number) & counts
        known += int(true.sum())
        yield true, counts

    # No pixel may have another one.
    pixels = math.prod(map(int, truth.shape))
    remedy = (
        f"{pixels - known} of {pixels} pixels do not; give the value of pixels without a label as ignore_index, about "
        "which the guarantee says nothing"
    )
    require("truth", known == pixels, f"must hold the number of a class, 0 to {k - 1}", remedy=remedy)


def as_label_image(truth: ArrayLike) -> NDArray[Any]:
    """The true classes of pixels as an array of numbers or of bool."""
    array = as_array("truth", truth)
    return array if array.dtype == np.bool_ else as_numeric("truth", array)
