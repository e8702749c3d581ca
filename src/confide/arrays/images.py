"""Images with a true class for every pixel.

Only indexing, comparing and counting, which have the same syntax for numpy arrays and torch tensors.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays.checked import as_array, as_numeric
from confide.errors import InputError
from confide.support import require

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
    # One image of one class or more
    shape = tuple(p.shape)
    has_pixels = len(shape) >= 2 and 0 not in shape
    require("probabilities", has_pixels, "must have shape (classes, *pixels)", str(shape))
    k, *pixel_shape = shape
    spatial = tuple(pixel_shape)

    # Class numbers, unless truth has one mask per class
    given = tuple(truth.shape)
    if given != shape:
        must = f"must have the shape of its pixels, {spatial}, or one mask per class, {shape}"
        require("truth", given in (spatial, (1, *spatial)), must, str(given), "Resize one to the other")
        if k > 1:
            yield from _areas_of_numbers(k, truth.reshape(spatial), ignore_index)
            return

    # Masks, or the one class of one channel
    for mask in truth.reshape(shape):
        yield _area_of_mask(mask, ignore_index)


def _area_of_mask(mask: Any, ignore_index: int) -> tuple[Any, Any]:
    true = mask == 1
    left_out = mask == ignore_index
    pixels = math.prod(map(int, mask.shape))
    other = pixels - int((true | left_out | (mask == 0)).sum())
    remedy = (
        f"{other} of {pixels} pixels of one hold something else; binarise them, or give the value of pixels "
        "without a label as ignore_index, about which the guarantee says nothing"
    )
    require("masks", not other, "must hold 1 where a class is true and 0 elsewhere", remedy=remedy)
    return true, ~left_out if bool(left_out.any()) else None


def _areas_of_numbers(k: int, truth: Any, ignore_index: int) -> Iterator[tuple[Any, Any]]:
    # The areas, and the number of pixels with a known number
    left_out = truth == ignore_index
    known = int(left_out.sum())
    counts = ~left_out if known else None
    for number in range(k):
        true = (truth == number) if counts is None else (truth == number) & counts
        known += int(true.sum())
        yield true, counts

    # No pixel may have another one
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
