"""Checks of probabilities and of true classes: sums of rows, logits and their softmax, and areas of classes in images.

The areas use only indexing, comparing and counting, which have the same syntax for numpy arrays and torch tensors.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays.checked import as_array, as_numeric
from confide.errors import InputError
from confide.support import require

# Rows of probabilities that do not sum to one: logits, percentages, some of the classes, or answers to K questions.

# The number of rows and of entries that are checked at most. A systematic error is in every row.
CHECKED_ROWS, _CHECKED_ENTRIES = 1000, 2**20

# The largest change of a sum by half precision, and by each entry that a softmax in float32 or half precision loses
_HALF_PRECISION, _LOST_BY_ENTRY = 0.01, 2.0**-24

# The largest change of a sum by rounding to decimals: beyond it numbers are no probabilities
_MOST_ROUNDED = 0.4

SUM_TO_ONE = "sum to one"
SUM_REMEDY = (
    "apply softmax to a model's raw outputs and give every class; numbers that are not probabilities need a score of "
    "your own, with its own name"
)


def far_from_one(p: NDArray[Any], rows: int = CHECKED_ROWS) -> NDArray[np.bool_]:
    """Whether the sum of each of the first `rows` rows is further from 1 than its precision explains (`far_sums`).

    Rows with NaN are checked elsewhere.

    Examples
    --------
    >>> far_from_one(np.array([[0.9, 0.9, 0.9], [0.33, 0.33, 0.33], [0.5, 0.25, 0.25]]))
    array([ True, False, False])
    """
    first = p[: checked_rows(p.shape[1], rows)].astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        far: NDArray[np.bool_] = far_sums(np, first)
    return far


def far_sums(xp: Any, p: Any) -> Any:
    """Whether each row has a sum that rounding cannot explain; `xp` has the functions of the array API standard.

    Half precision changes a sum by less than 0.01, and a softmax in float32 or half precision can lose 2^-24 in each
    entry. If all entries of a row have at most six decimals, each can also have lost half a unit of the last one, and
    nonzero entries can have gained it, but the sum by at most 0.4. So rows of zeros are never probabilities.

    Examples
    --------
    >>> far_sums(np, np.array([[0.0, 0.0, 0.0], [0.3, 0.3, 0.38], [0.3, 0.3, 0.381]]))
    array([ True, False,  True])
    """
    # Rows that floating-point numbers do not explain
    k = p.shape[1]
    gap, slack = xp.sum(p, axis=1) - 1, _HALF_PRECISION + min(k * _LOST_BY_ENTRY, _MOST_ROUNDED)
    distance = xp.abs(gap)
    far = distance > slack
    if not bool(xp.any(far)):
        return far

    # Of these, the rows that no number of decimals explains: all entries can lose half a unit, nonzero ones gain it
    relative_error = _relative_error(xp, p)
    for decimals in range(2, 7):
        scaled, half_unit = p * 10**decimals, 0.5 * 10.0**-decimals
        is_rounded = xp.all(xp.abs(scaled - xp.round(scaled)) <= relative_error * scaled, axis=1)
        nonzero = xp.sum(xp.where(p >= half_unit, xp.ones_like(p), xp.zeros_like(p)), axis=1)
        change = xp.where(gap < 0, xp.full_like(gap, k), nonzero) * half_unit
        far = far & ~(is_rounded & (distance <= slack + change) & (distance <= slack + _MOST_ROUNDED))
    return far


def _relative_error(xp: Any, p: Any) -> float:
    """An upper bound on the relative error of the entries: that of bfloat16 or float16 if they can be such numbers."""
    digits = 53 if p.dtype == xp.float64 else 24
    for bits in (8, 11):
        scaled = p * (2.0 ** (digits - bits) + 1)
        if bool(xp.all(scaled - (scaled - p) == p)):  # p, rounded to so many bits
            return 2.0**-bits
    return 1e-6


def checked_rows(k: int, rows: int = CHECKED_ROWS) -> int:
    """The number of rows of k entries that are checked; it is smaller for very many entries.

    Examples
    --------
    >>> checked_rows(10), checked_rows(2**20)
    (1000, 1)
    """
    return min(rows, max(1, _CHECKED_ENTRIES // max(k, 1)))


def refuse_other_sums(name: str, p: NDArray[Any]) -> None:
    """Reject probabilities whose first rows do not sum to one, not even approximately.

    Examples
    --------
    >>> refuse_other_sums("probabilities", np.array([[0.5, 0.5], [0.33, 0.67]]))
    """
    is_far = far_from_one(p)
    far = np.flatnonzero(is_far)
    if far.size:
        raise other_sums(name, far.size, int(far[0]), len(is_far))


def other_sums(name: str, count: int, first: int, rows: int) -> InputError:
    """The error for probabilities if `count` of so many rows do not sum to one."""
    return InputError(
        name,
        f"must {SUM_TO_ONE} in every row",
        got=f"{count} of the first {rows} rows that do not, the first at row {first}",
        remedy=SUM_REMEDY,
    )


# Logits to probabilities, in double precision.

_COMPARED_ROWS, _NEAR_ONE = 100, 0.005

# So many rows of logits look like probabilities at most once in a million times: several numbers a row, or one
_LEAST_ROWS, _LEAST_ROWS_OF_ONE = 3, 30


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


def look_like_probabilities(rows: NDArray[Any]) -> NDArray[np.bool_]:
    """The first rows to reject as logits: all if all are probabilities; shape (n, K), K = 1 for one of two classes.

    Examples
    --------
    >>> look_like_probabilities(np.array([[0.5, 0.5], [0.1, 0.9], [1.0, 0.0]]))
    array([ True,  True,  True])
    >>> look_like_probabilities(np.array([[0.5, 0.5], [0.1, 0.9], [3.0, -2.0]]))
    array([False, False, False])
    """
    alike, first = np.zeros(len(rows), dtype=np.bool_), rows[:_COMPARED_ROWS]
    of_pair = rows.shape[1] == 1
    if len(first) < (_LEAST_ROWS_OF_ONE if of_pair else _LEAST_ROWS):
        return alike
    with np.errstate(invalid="ignore", over="ignore"):
        total = first.sum(axis=1, dtype=np.float64)
        near = (first <= 1).all(axis=1) if of_pair else np.abs(total - 1) < _NEAR_ONE
        alike[: len(first)] = bool(((first >= 0).all(axis=1) & near).all())
    return alike


# Images with a true class for every pixel.

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
    """Class by class, the pixels where it is true and those that count, or None if all do: bool, shape `(*spatial)`.

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
        If the shapes do not fit, or pixels have other numbers: how many.

    Examples
    --------
    >>> [true.tolist() for true, _ in class_areas(np.zeros((2, 3)), np.array([1, 0, 1]), -100)]
    [[False, True, False], [True, False, True]]
    """
    # Class numbers, unless truth has one mask per class
    shape, given = tuple(p.shape), tuple(truth.shape)
    k, spatial = (shape or (0,))[0], shape[1:]
    has_pixels = len(shape) >= 2 and k and 0 not in spatial
    require("probabilities", has_pixels, "must have shape (classes, *pixels)", str(shape))
    if given != shape:
        must = f"must have the shape of its pixels, {spatial}, or one mask per class, {shape}"
        require("truth", given in (spatial, (1, *spatial)), must, str(given), "Resize one to the other")
        if k > 1:
            yield from _areas_of_numbers(k, truth.reshape(spatial), ignore_index)
            return

    # Masks, or the one class of one channel
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
    left_out = truth == ignore_index
    known, counts = int(left_out.sum()), ~left_out if bool(left_out.any()) else None
    for number in range(k):
        true = (truth == number) if counts is None else (truth == number) & counts
        known += int(true.sum())
        yield true, counts
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
