"""Images with a truth for every pixel: where each class is true, in numpy or on a tensor's own device.

Nothing here but indexing, comparing and counting, which arrays of numpy and tensors of torch write alike.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays.checked import as_array, as_numeric
from confide.errors import InputError

Found = TypeVar("Found")


def image_by_image(images: Iterable[tuple[Any, Any]], work: Callable[[Any, Any], Found]) -> Iterator[Found]:
    """What is found of each pair (probabilities, truth); what is refused names the image."""
    for i, image in enumerate(images):
        if not isinstance(image, tuple | list) or len(image) != 2:
            raise InputError(f"images must be pairs (probabilities, truth); found {type(image).__name__} at image {i}")
        try:
            found = work(*image)
        except InputError as refused:
            raise type(refused)(f"{refused} (image {i}, counted from 0)") from None
        yield found


def class_areas(p: Any, truth: Any, ignore_index: int) -> Iterator[tuple[Any, Any]]:
    """Class by class, the pixels where it is true and those that count, or None if all do: bool, shape `(*spatial)`.

    Parameters
    ----------
    p
        Of one image, shape `(K, *spatial)`: what there is for each class.
    truth
        Class numbers 0 to K-1, of shape `(*spatial)` or `(1, *spatial)`; or one mask per channel, 1 where it is true,
        0 elsewhere, shape `(K, *spatial)`. With one channel both say where it is true. Of any number type.
    ignore_index
        Pixels of this number are left out.

    Raises
    ------
    InputError
        If the shapes do not fit, or pixels hold other numbers: how many.

    Examples
    --------
    >>> [true.tolist() for true, _ in class_areas(np.zeros((2, 3)), np.array([1, 0, 1]), -100)]
    [[False, True, False], [True, False, True]]
    """
    shape, found = tuple(p.shape), tuple(truth.shape)
    k, where = (shape or (0,))[0], shape[1:]
    if len(shape) < 2 or k == 0 or 0 in where:
        raise InputError(f"probabilities of an image must have shape (classes, *pixels); found {shape}")
    if found == shape:
        masks = truth
    elif found in (where, (1, *where)) and k == 1:
        masks = truth.reshape(shape)
    elif found in (where, (1, *where)):
        truth = truth.reshape(where)
        yield from _of_numbers(k, truth, ignore_index)
        return
    else:
        raise InputError(
            f"the truth of an image must have the shape of its pixels, {where}, or one mask per class, {shape}; found "
            f"{found}; resize one to the other"
        )
    for mask in masks:
        true, left_out = mask == 1, mask == ignore_index
        other = _size(mask) - int((true | left_out | (mask == 0)).sum())
        if other:
            raise InputError(
                f"masks must hold 1 where a class is true and 0 elsewhere; {other} of {_size(mask)} pixels of one hold "
                "something else; binarise them, or name what marks pixels without a truth as ignore_index"
            )
        yield true, (~left_out if bool(left_out.any()) else None)


def as_truth_image(truth: ArrayLike) -> NDArray[Any]:
    """A truth of pixels as an array of numbers or of bool."""
    array = as_array("truth", truth)
    return array if array.dtype == np.bool_ else as_numeric("truth", array)


def _of_numbers(k: int, truth: Any, ignore_index: int) -> Iterator[tuple[Any, Any]]:
    left_out = truth == ignore_index
    known, counts = int(left_out.sum()), ~left_out if bool(left_out.any()) else None
    for number in range(k):
        true = (truth == number) if counts is None else (truth == number) & counts
        known += int(true.sum())
        yield true, counts
    if known != _size(truth):
        raise InputError(
            f"the truth of an image must hold the number of a class, 0 to {k - 1}; {_size(truth) - known} of "
            f"{_size(truth)} pixels do not; name what marks pixels without a truth as ignore_index"
        )


def _size(array: Any) -> int:
    total = 1
    for length in array.shape:
        total *= int(length)
    return total
