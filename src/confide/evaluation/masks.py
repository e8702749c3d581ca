"""Evaluate masks of images with known true masks: missed area and predicted area. Not private."""

import math
from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_label_image, as_numeric, class_areas, image_by_image
from confide.core import Release, area_of
from confide.errors import InputError
from confide.evaluation.evaluation import Evaluation
from confide.evaluation.partition import Partition
from confide.evaluation.query import CountQuery
from confide.sets import predict_masks


def evaluate_masks(
    images: Iterable[tuple[ArrayLike, ArrayLike]], calibration: Release, *, ignore_index: int = -100
) -> Evaluation:
    """Evaluate the missed true area and the size of the masks of a calibration. Not private.

    Parameters
    ----------
    images, ignore_index
        As in `calibrate_masks`; use images that did not calibrate.
    calibration
        Result of `calibrate_masks`.

    Examples
    --------
    >>> import confide
    >>> rng = np.random.default_rng(0)
    >>> images = [(p, rng.random(p.shape) < p) for p in rng.random((3000, 1, 4, 4))]
    >>> found = evaluate_masks(images[2000:], confide.calibrate_masks(images[:2000], 0.1, 1.0))
    >>> 0.05 < found.loss < 0.12, 1 < found.area_ratio < 2
    (True, True)
    """

    def counts(probabilities: ArrayLike, truth: ArrayLike) -> NDArray[np.int64]:
        p = as_numeric("probabilities", probabilities)
        return area_counts(predict_masks(p, calibration), as_label_image(truth), ignore_index)

    return evaluation_of_areas(image_by_image(images, counts), calibration)


def area_counts(mask: Any, truth: Any, ignore_index: int) -> NDArray[np.int64]:
    """True, missed and predicted pixels of each class of an image, shape (K, 3); for NumPy arrays and tensors."""
    counts = []
    for inside, (true, counted) in zip(mask, class_areas(mask, truth, ignore_index), strict=True):
        predicted = inside if counted is None else inside & counted
        counts.append((int(true.sum()), int((true & ~inside).sum()), int(predicted.sum())))
    return np.array(counts, np.int64)


def missed_share(counts: NDArray[np.int64], background: int | None, *, by_class: bool) -> float:
    """Share of missed true area of an image, from its `area_counts`; 0 without true area."""
    true, missed, _ = np.delete(counts, background, axis=0).T if background is not None else counts.T
    if not true.any():
        return 0.0
    return float((missed[true > 0] / true[true > 0]).mean() if by_class else missed.sum() / true.sum())


def evaluation_of_areas(counts: Iterable[NDArray[np.int64]], calibration: Release) -> Evaluation:
    """Evaluation from the `area_counts` of each image; a class is a part of the images in which it occurs."""
    # Counts of each class, except the background.
    area, known = area_of(calibration), calibration.classes
    images = list(counts)
    if not images:
        raise InputError("images", "must contain at least one image", got="none")
    names = range(known) if isinstance(known, int) else known or range(len(images[0]))
    classes = {k: np.stack([image[k] for image in images]) for k in range(len(names)) if k != area.background}

    # Covered and missed shares of the true area, of all images and of those in which a class occurs.
    losses = [missed_share(image, area.background, by_class=area.by_class) for image in images]
    shares = {k: some[:, 1] / some[:, 0] for k, counts in classes.items() if len(some := counts[counts[:, 0] > 0])}
    cells: list[tuple[float, ...]] = [
        (len(missed) - math.fsum(missed), math.fsum(missed)) for missed in (losses, *shares.values())
    ]

    # Predicted and true area of each class, and their totals.
    areas = {k: tuple(of_class[:, [2, 0]].sum(axis=0, dtype=float).tolist()) for k, of_class in classes.items()}
    total = tuple(map(math.fsum, zip(*areas.values(), strict=True)))

    # A table of all images, and one by class, if there is a class with true area.
    partitions = (Partition("class", tuple(str(names[k]) for k in shares)),) if shares else ()
    query = CountQuery.of(calibration, partitions, outcome="area", measure="area")
    tables, measured = [cells[0]], [total]
    if shares:
        tables.append(tuple(chain(*cells[1:])))
        measured.append(tuple(chain(*(areas[k] for k in shares))))
    return Evaluation(query, tuple(tables), sums=tuple(measured), release=calibration)
