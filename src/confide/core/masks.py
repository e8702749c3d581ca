"""Conformal risk control of masks: the share of an image's true area that a mask misses, one record per image.

A pixel of class k is in the mask at the threshold t if 1 - p_k <= t. Therefore the missed share of true pixels
decreases with t and ends at 0. The critical threshold of an image is the score of one of its true pixels, chosen at
random. Only this number of an image is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
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


@dataclass(frozen=True)
class _MaskChoices:
    """How the pixels of images are read; see `calibrate_masks`."""

    background: int | None = None
    average: str = "pixels"
    ignore_index: int = -100
    classes: Iterable[Any] | int | None = None
    u: ExperimentalUniforms | None = None


_CHOICES = tuple(field.name for field in fields(_MaskChoices))


@dataclass(frozen=True)
class TrueAreas:
    """The number of classes of an image, and the probabilities of its true pixels as `true_pixels` returns them."""

    classes: int
    by_class: Sequence[NDArray[Any]]


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

    def areas(probabilities: ArrayLike, truth: ArrayLike, area: MissedAreaLoss, ignored: int) -> TrueAreas:
        p = as_numeric("probabilities", probabilities)
        return TrueAreas(len(p), true_pixels(p, as_label_image(truth), area, ignored))

    return calibrate_areas(
        images, areas, risk, epsilon, background=background, average=average, ignore_index=ignore_index,
        classes=classes, candidates=candidates, u=u, **options,
    )  # fmt: skip


def calibrate_areas(
    images: Iterable[tuple[Any, Any]],
    areas_of: Callable[[Any, Any, MissedAreaLoss, int], TrueAreas],
    risk: Level | None = None,
    epsilon: float | None = None,
    **options: Unpack[MaskOptions],
) -> Release:
    """Calibrate masks from pairs of any type; `areas_of` selects the true pixels of one."""
    stated = stated_risk(risk, options)  # a request states the risk as its alpha
    payer, request_fields = split_options("calibrate_masks", options, *_CHOICES, "candidates")
    choices = _MaskChoices(**{name: request_fields.pop(name) for name in _CHOICES if name in request_fields})

    # The request, which is checked before an image is read.
    area = MissedAreaLoss(choices.background, one_of("average", choices.average, AVERAGES) == "classes")
    request = Request(alpha=stated, epsilon=epsilon, loss=area.name, **request_fields)
    class_names = None if choices.classes is None else public_classes("classes", choices.classes)

    # The first image shows the number of classes.
    read = image_by_image(images, lambda p, truth: areas_of(p, truth, area, choices.ignore_index))
    first, areas = first_and_all(read)
    if class_names is None:
        if first is None:
            raise InputError("classes", "must be given, their names or number: there is no image that shows how many")
        class_names = first.classes
    number = class_count(class_names)
    area.check(number)

    # One critical threshold for each image.
    thresholds = _critical_areas(areas, number, by_class=area.by_class, u=choices.u)
    records = Batches(_arrays(thresholds), "images must hold at least one; found none")
    return release(records, replace(request, classes=class_names), payer)


def _critical_areas(
    areas: Iterable[TrueAreas], classes: int, *, by_class: bool, u: ExperimentalUniforms | None
) -> Iterator[float]:
    """The critical threshold of each image; raises an error for another number of classes."""
    for i, image in enumerate(areas):
        if image.classes != classes:
            raise InputError("images", f"must have the same {classes} classes", got=f"{image.classes} in image {i}")
        share = float(as_uniforms("u", u, 1, needed=True)[0])
        yield critical_area(image.by_class, share, by_class=by_class)


def true_pixels(p: Any, truth: Any, area: MissedAreaLoss, ignore_index: int) -> list[Any]:
    """The probabilities of the true pixels of each class except the background, as numpy arrays or on their device."""
    masks = [true for true, _ in class_areas(p, truth, ignore_index)]
    if not bool((p >= 0).all()) or not bool((p <= 1).all()):
        must = "of every pixel must lie in [0, 1]"
        remedy = "Apply softmax or sigmoid to logits"
        raise InputError("probabilities", must, got="NaN or values outside", remedy=remedy)
    return [p[k][true] for k, true in enumerate(masks) if k != area.background]


def critical_area(areas: Sequence[NDArray[Any]], u: float, *, by_class: bool = False) -> float:
    """The critical threshold of an image: the smallest at which its masks miss at most the share u; 0 without area."""
    classes = [pixels for pixels in areas if len(pixels)]
    if not classes:
        return 0.0

    # One class, or all true pixels alike: one quantile of their probabilities.
    pools = classes if by_class else [np.concatenate(classes)]
    if len(pools) == 1:
        (pool,) = pools
        rank = max(int(np.ceil(len(pool) * (1 - u))), 1)  # the number of true pixels that must be inside
        lowest_inside = len(pool) - rank
        return 1.0 - float(np.partition(pool, lowest_inside)[lowest_inside])

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
