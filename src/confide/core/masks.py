"""Risk control for segmentation: the share of an image's true area that a mask misses, one record per image.

A pixel of class k is in the mask at the threshold t if 1 - p_k <= t. Therefore the missed share of true pixels
decreases with t and ends at 0. The critical threshold of an image (risk.py) is the score of one of its true pixels,
chosen at random. Only this number of an image is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import (
    ExperimentalUniforms,
    as_label_image,
    as_numeric,
    as_uniforms,
    class_areas,
    first_and_all,
    image_by_image,
)
from confide.candidates import AnyCandidates
from confide.core.losses import MissedAreaLoss
from confide.core.options import Options, split_options
from confide.core.release import Release
from confide.core.request import Request
from confide.core.risk import stated_risk
from confide.core.sources import Batches
from confide.core.steps import release
from confide.errors import InputError
from confide.support import Level, bisect, class_count, one_of, public_classes

AVERAGES = ("pixels", "classes")

# The number of images whose thresholds are counted at once.
_BATCH = 1000


class MaskOptions(Options, total=False):
    """Further options of calibrations of masks; see `calibrate_masks`."""

    background: int | None
    average: str
    ignore_index: int
    classes: Iterable[Any] | int | None
    candidates: AnyCandidates
    u: ExperimentalUniforms | None


_OF_MASKS = tuple(sorted(MaskOptions.__optional_keys__ - Options.__optional_keys__))


def calibrate_masks(
    images: Iterable[tuple[ArrayLike, ArrayLike]],
    risk: Level | None = None,
    epsilon: float | None = None,
    *,
    background: int | None = None,
    average: str = "pixels",
    ignore_index: int = -100,
    classes: Iterable[Any] | int | None = None,
    candidates: AnyCandidates = None,
    u: ExperimentalUniforms | None = None,
    **options: Unpack[Options],
) -> Release:
    """Release a threshold at which masks miss at most `risk` of an image's true area, in expectation.

    Images are read once, and each is one record. Memory does not grow with their number. Sizes may differ. For several
    images of a person, state the largest number as `records_per_person`.

    Parameters
    ----------
    images
        Pairs (probabilities, truth), one per image; a generator is read once. Probabilities have shape `(K, *pixels)`,
        also if K is 1, and values in [0, 1]. The truth contains class numbers, shape `(*pixels)`, or one mask per
        class, shape `(K, *pixels)`, of 0 and 1; masks may overlap.
    risk
        Bound on the expected share of the true area that is missed, in (0, 1).
    epsilon, candidates, **options
        As in `calibrate`.
    background
        The class whose pixels do not count as area, usually 0; by default every class counts. Not for a single channel.
    average
        `pixels`: every true pixel has equal weight. `classes`: every class that occurs in the image has equal weight,
        however small it is.
    ignore_index
        Pixels with this class number are ignored.
    classes
        The names of the channels, or their number, public; required only if there may be no image.
    u
        Random numbers are drawn by default; give others only in experiments.

    Returns
    -------
    Release
        For `predict_masks`. An image without any true pixel has no loss, and counts as a record.

    Raises
    ------
    InputError, InputTypeError
        If an image cannot be used; the message contains its position. Then nothing was released.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> images = ((p, rng.random(p.shape) < p) for p in rng.random((2000, 1, 8, 8)))
    >>> released = calibrate_masks(images, 0.1, 1.0)
    >>> released.loss, released.risk <= 0.1 + 1e-12, 0.6 < released.threshold < 0.8
    ('missed_area', True, True)
    """

    def pixels(probabilities: ArrayLike, truth: ArrayLike, area: MissedAreaLoss, ignored: int) -> tuple[int, list[Any]]:
        p = as_numeric("probabilities", probabilities)
        return len(p), true_pixels(p, as_label_image(truth), area, ignored)

    return calibrate_areas(
        images, pixels, risk, epsilon, background=background, average=average, ignore_index=ignore_index,
        classes=classes, candidates=candidates, u=u, **options,
    )  # fmt: skip


def calibrate_areas(
    images: Iterable[tuple[Any, Any]],
    pixels: Callable[[Any, Any, MissedAreaLoss, int], tuple[int, list[Any]]],
    risk: Level | None = None,
    epsilon: float | None = None,
    **options: Unpack[MaskOptions],
) -> Release:
    """Calibrate masks from pairs of any type; `pixels` returns the number of classes, and what `true_pixels` does."""
    stated = stated_risk(risk, options)
    payer, fields = split_options("calibrate_masks", options, *_OF_MASKS)

    # The request, which is checked before an image is read.
    average = one_of("average", fields.pop("average", "pixels"), AVERAGES)
    area = MissedAreaLoss(fields.pop("background", None), average == "classes")
    ignored = fields.pop("ignore_index", -100)
    u = fields.pop("u", None)
    classes = fields.pop("classes", None)
    request = Request(alpha=stated, epsilon=epsilon, loss=area.name, **fields)
    class_names = None if classes is None else public_classes("classes", classes)

    # The first image shows the number of classes.
    first, areas = first_and_all(image_by_image(images, lambda p, truth: pixels(p, truth, area, ignored)))
    if class_names is None:
        if first is None:
            raise InputError("classes", "must be given, their names or number: there is no image that shows how many")
        class_names = first[0]
    number = class_count(class_names)
    area.check(number)

    def thresholds() -> Iterator[float]:
        for i, (k, areas_by_class) in enumerate(areas):
            if k != number:
                raise InputError("images", f"must have the same {number} classes", got=f"{k} in image {i}")
            yield critical_area(areas_by_class, float(as_uniforms("u", u, 1, needed=True)[0]), by_class=area.by_class)

    # One critical threshold for each image.
    records = Batches(_arrays(thresholds()), "images must hold at least one; found none")
    return release(records, replace(request, classes=class_names), payer)


def true_pixels(p: Any, truth: Any, area: MissedAreaLoss, ignore_index: int) -> list[Any]:
    """The probabilities of the true pixels of each class except the background, as numpy arrays or on their device."""
    by_class = [p[k][true] for k, (true, _) in enumerate(class_areas(p, truth, ignore_index)) if k != area.background]
    if not bool((p >= 0).all()) or not bool((p <= 1).all()):
        must = "of every pixel must lie in [0, 1]"
        remedy = "Apply softmax or sigmoid to logits"
        raise InputError("probabilities", must, got="NaN or values outside", remedy=remedy)
    return by_class


def critical_area(areas: Sequence[NDArray[Any]], u: float, *, by_class: bool = False) -> float:
    """The critical threshold of an image: the smallest at which its masks miss at most the share u; 0 without area."""
    classes = [pixels for pixels in areas if len(pixels)]
    if not classes:
        return 0.0

    # All true pixels are alike: one quantile of their probabilities.
    pools = classes if by_class else [np.concatenate(classes)]
    if len(pools) == 1:
        (pool,) = pools
        rank = max(int(np.ceil(len(pool) * (1 - u))), 1)  # the number of true pixels that must be inside
        return 1.0 - float(np.partition(pool, len(pool) - rank)[len(pool) - rank])

    # Every class has the same weight: the largest probability below which the missed share is at most u. At the lowest
    # one nothing is missed, and the share grows with the probability.
    pools = [np.sort(pixels) for pixels in pools]
    cuts = np.unique(np.concatenate(pools))

    def misses_more(place: int) -> bool:
        missed = sum(int(np.searchsorted(pixels, cuts[place])) / len(pixels) for pixels in pools) / len(pools)
        return missed > u

    return 1.0 - float(cuts[bisect(misses_more, 0, len(cuts)) - 1])


def _arrays(values: Iterator[float]) -> Iterator[NDArray[np.float64]]:
    while batch := list(islice(values, _BATCH)):
        yield np.array(batch)
