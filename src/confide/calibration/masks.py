"""Risk control for segmentation: the share of an image's true area that a mask misses, one record per image.

A pixel of class k is in the mask at the threshold t if 1 - p_k <= t, so the share of true pixels that a mask misses
falls with t and ends at 0: Theorem 1 of docs/theory-risk.md. The critical threshold of an image is the score of one of
its true pixels, picked at random, and that number is all that is kept of an image.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import ExperimentalUniforms, as_numeric, as_truth_image, as_uniforms, class_areas, image_by_image
from confide.calibration.options import Options, split_options
from confide.calibration.release import Counted, release
from confide.calibration.request import Request
from confide.calibration.risk import stated_risk
from confide.candidates import AnyCandidates
from confide.counting import ScoreHistogram
from confide.errors import InputError
from confide.releases import MissedAreaLoss, RiskCalibration, critical_score
from confide.support import Classes, Level, one_of, public_classes

AVERAGES = ("pixels", "classes")
_AT_ONCE = 1000


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
) -> RiskCalibration:
    """A threshold at which masks miss at most `risk` of an image's true area, in expectation.

    One pass, one record per image: memory does not grow with their number. Sizes may differ. For several images of a
    person, state the largest number as `records_per_person`.

    Parameters
    ----------
    images
        Pairs (probabilities, truth), one per image; a generator is read once. Probabilities have shape `(K, *pixels)`,
        also if K is 1, and values in [0, 1]. The truth holds class numbers, shape `(*pixels)`, or one mask per class,
        shape `(K, *pixels)`, of 0 and 1, also overlapping ones.
    risk
        Bound on the expected share of the true area that is missed, in (0, 1).
    epsilon, candidates, **options
        As in `calibrate`.
    background
        The class whose pixels are no area, mostly 0; by default every class is one. Not for a single channel.
    average
        `pixels`: every true pixel counts alike. `classes`: every class that occurs in the image does, however small.
    ignore_index
        Pixels of this truth are left out.
    classes
        The names of the channels, or their number, public; needed only if there may be no image.
    u
        Fresh numbers are drawn by default; others are for experiments.

    Returns
    -------
    RiskCalibration
        For `predict_masks`. An image without any true pixel has no loss, and is a record like others.

    Raises
    ------
    InputError, InputTypeError
        If an image cannot be used, which one; then nothing was released.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> images = ((p, rng.random(p.shape) < p) for p in rng.random((2000, 1, 8, 8)))
    >>> released = calibrate_masks(images, 0.1, 1.0)
    >>> released.loss, released.risk <= 0.1 + 1e-12, 0.6 < released.threshold < 0.8
    ('missed_area', True, True)
    """
    area = missed_area(background, average)

    def found(probabilities: ArrayLike, truth: ArrayLike) -> tuple[int, list[Any]]:
        p = as_numeric("probabilities", probabilities)
        return len(p), true_pixels(p, as_truth_image(truth), area, ignore_index)

    areas = image_by_image(images, found)
    return calibrate_areas(areas, area, risk, epsilon, classes=classes, candidates=candidates, u=u, **options)


def calibrate_areas(
    areas: Iterable[tuple[int, list[Any]]],
    area: MissedAreaLoss,
    risk: Level | None = None,
    epsilon: float | None = None,
    *,
    classes: Iterable[Any] | int | None = None,
    candidates: AnyCandidates = None,
    u: ExperimentalUniforms | None = None,
    **options: Unpack[Options],
) -> RiskCalibration:
    """The same of what `true_pixels` gives for each image, with the number of its classes.

    Examples
    --------
    >>> areas = ((1, [np.linspace(0, 1, 11)]) for _ in range(1000))
    >>> 0.8 < calibrate_areas(areas, MissedAreaLoss(), 0.1, 1.0).threshold <= 1
    True
    """
    stated = stated_risk(risk, options)
    payer, asked = split_options("calibrate_masks", options)
    request = Request(alpha=stated, epsilon=epsilon, loss=area.name, candidates=candidates, **asked)
    score = critical_score(area.name)
    histogram = ScoreHistogram.empty(request.counted_over(known_later=request.public_n))
    known = None if classes is None else public_classes("classes", classes)
    waiting: list[float] = []
    for i, (k, own) in enumerate(areas):
        number = k if known is None else _number(known)
        if number != k:
            raise InputError(f"images must have the same {number} classes; found {k} in image {i}")
        known = k if known is None else known
        waiting.append(critical_area(own, float(as_uniforms("u", u, 1, needed=True)[0]), by_class=area.by_class))
        if len(waiting) == _AT_ONCE:
            histogram, waiting = histogram + _counted(waiting, histogram, score), []
    histogram = histogram + _counted(waiting, histogram, score)
    if known is None:
        raise InputError("classes must be given, their names or number: there is no image that shows how many")
    area.check(_number(known))
    if request.public_n and histogram.total == 0:
        raise InputError("images must hold at least one; found none")
    released: RiskCalibration = release(Counted({None: histogram}), replace(request, classes=known), payer)
    return released


def true_pixels(p: Any, truth: Any, area: MissedAreaLoss, ignore_index: int) -> list[Any]:
    """The probabilities of the true pixels of each class, of numpy or on their device; without the background's.

    Examples
    --------
    >>> true_pixels(np.array([[0.9, 0.2], [0.1, 0.8]]), np.array([0, 1]), MissedAreaLoss(background=0), -100)
    [array([0.8])]
    """
    own = [p[k][true] for k, (true, _) in enumerate(class_areas(p, truth, ignore_index)) if k != area.background]
    if not bool((p >= 0).all()) or not bool((p <= 1).all()):
        raise InputError(
            "probabilities of every pixel must lie in [0, 1]; found NaN or values outside; apply softmax or sigmoid to "
            "logits"
        )
    return own


def critical_area(own: Sequence[NDArray[Any]], u: float, *, by_class: bool = False) -> float:
    """The critical threshold of an image: the smallest at which its masks miss at most the share u; 0 without area.

    Examples
    --------
    >>> critical_area([np.array([0.75, 0.5, 0.25])], 0.5)
    0.5
    >>> critical_area([np.array([0.75]), np.array([0.5, 0.25])], 0.5, by_class=True)
    0.25
    """
    classes = [one for one in own if len(one)]
    if not classes:
        return 0.0
    pools = classes if by_class else [np.concatenate(classes)]
    if len(pools) == 1:
        (pool,) = pools
        rank = max(int(np.ceil(len(pool) * (1 - u))), 1)  # so many true pixels have to be inside
        return 1.0 - float(np.partition(pool, len(pool) - rank)[len(pool) - rank])
    pools = [np.sort(one) for one in pools]
    cuts = np.unique(np.concatenate(pools))
    low, high = 0, len(cuts) - 1  # at the lowest cut nothing is missed; the missed share grows with the cut
    while low < high:
        middle = (low + high + 1) // 2
        missed = sum(int(np.searchsorted(one, cuts[middle])) / len(one) for one in pools) / len(pools)
        low, high = (middle, high) if missed <= u else (low, middle - 1)
    return 1.0 - float(cuts[low])


def missed_area(background: int | None, average: str) -> MissedAreaLoss:
    """The loss that is asked for."""
    if background is not None and (not isinstance(background, int) or isinstance(background, bool) or background < 0):
        raise InputError(f"background must be the number of a class, or None; found {background!r}")
    return MissedAreaLoss(background, one_of("average", average, AVERAGES) == "classes")


def _number(known: Classes) -> int:
    return known if isinstance(known, int) else len(known)


def _counted(scores: list[float], histogram: ScoreHistogram, score: str) -> ScoreHistogram:
    return ScoreHistogram.from_scores(np.array(scores), histogram.candidates, score)
