"""Conformal risk control with privacy: a bound on the expectation of a monotone bounded loss (Theorem R1).

A loss L(t) does not increase with the threshold t and ends at 0. Each record becomes one number, the critical threshold
S = inf{t : L(t) <= bound * u} with u uniform. Then P(S > t | record) = L(t)/bound: the expected loss is at most `risk`
exactly if the threshold covers S with probability 1 - risk/bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import (
    ExperimentalUniforms,
    Uniforms,
    as_label_image,
    as_numeric,
    as_true_labels,
    as_uniforms,
    class_areas,
    class_columns,
    first_and_all,
    image_by_image,
    refuse_other_rows,
)
from confide.candidates import AnyCandidates, Candidates
from confide.core.calibrate import Options, split_options
from confide.core.losses import FALSE_NEGATIVES, MissedAreaLoss, check_bound
from confide.core.release import Release
from confide.core.request import Request
from confide.core.sources import Batches, Scores
from confide.core.steps import release
from confide.errors import InputError, InputTypeError
from confide.support import Level, bisect, class_count, one_of, public_classes, raise_for_rows


def calibrate_false_negatives(
    probabilities: ArrayLike,
    truth: ArrayLike,
    risk: Level | None = None,
    epsilon: float | None = None,
    *,
    u: Uniforms = None,
    classes: Sequence[object] | None = None,
    candidates: AnyCandidates = None,
    **options: Unpack[Options],
) -> Release:
    """Release a threshold for multilabel sets {k : 1 - p_k <= threshold} with expected false-negative rate <= `risk`.

    Parameters
    ----------
    probabilities
        Shape (n, K), values in [0, 1]: one probability per label. Rows need not sum to one.
    truth
        The true labels: bool, or 1 and 0, shape (n, K). A record without true labels has no loss. The columns of data
        frames are matched by name.
    risk
        Bound on the expected share of true labels that a set misses, in (0, 1).
    u
        By default a fresh random number is drawn for each record. Your own numbers, shape (n,), in [0, 1), must be
        uniform, independent of the data, and stored with their records like a column: if a record is removed, the
        others keep theirs. `confide.ExperimentalUniforms` draws reproducible numbers.
    epsilon, classes, candidates, **options
        As in `calibrate`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random((4000, 6))
    >>> released = calibrate_false_negatives(p, rng.random(p.shape) < p, 0.1, 1.0)
    >>> released.risk <= 0.1 + 1e-12, 0.6 < released.threshold < 0.9
    (True, True)
    """
    stated = stated_risk(risk, options)
    payer, fields = split_options("calibrate_false_negatives", options)
    p, names = class_columns(probabilities, classes, check=True)
    refuse_other_rows(probabilities=probabilities, truth=truth, u=u)
    scores = _false_negative_thresholds(p, as_true_labels(truth, p.shape, names), u)
    class_names = p.shape[1] if names is None else names
    request = Request(
        alpha=stated, epsilon=epsilon, loss=FALSE_NEGATIVES, classes=class_names, candidates=candidates, **fields
    )
    return release(Scores({None: scores}), request, payer)


def calibrate_losses(
    losses: ArrayLike,
    candidates: Candidates,
    risk: float | None = None,
    epsilon: float | None = None,
    *,
    u: Uniforms = None,
    loss: str,
    bound: float = 1.0,
    classes: Sequence[object] | int | None = None,
    **options: Unpack[Options],
) -> Release:
    """Release a threshold at which the expectation of a monotone bounded loss is at most `risk`.

    The problem is that of Angelopoulos, Bates, Fisch, Lei and Schuster, "Conformal risk control", ICLR 2024.

    Parameters
    ----------
    losses
        Shape (n, m-1): the loss of every record at every finite candidate, in [0, bound], not increasing along rows.
        At the candidate +inf the loss is 0.
    candidates
        The m public candidates.
    risk
        Bound on the expected loss, in (0, bound).
    u
        As in `calibrate_false_negatives`.
    loss
        The name of the loss, recorded in the release.
    bound
        The largest value of the loss, positive.
    epsilon, classes, **options
        As in `calibrate`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> candidates = Candidates.unit(101)
    >>> losses = np.clip(rng.random((3000, 1)) - candidates.edges, 0, 1)
    >>> released = calibrate_losses(losses, candidates, 0.1, 1.0, loss="shortfall")
    >>> 0.5 < released.threshold < 0.65
    True
    """
    stated = stated_risk(risk, options)
    payer, fields = split_options("calibrate_losses", options)
    bound = check_bound(loss, bound)
    refuse_other_rows(losses=losses, u=u)
    scores = critical_thresholds(losses, candidates, u=u, bound=bound)
    fields |= {"loss": loss, "bound": bound, "classes": classes}
    request = Request(alpha=stated, epsilon=epsilon, candidates=candidates, **fields)
    return release(Scores({None: scores}), request, payer)


def false_negative_thresholds(probabilities: ArrayLike, truth: ArrayLike, *, u: Uniforms = None) -> NDArray[np.float64]:
    """Critical thresholds of the false-negative rate: for each record the score 1 - p of one true label, chosen by u.

    With T true labels the threshold is the ceil(T (1-u))-th smallest of their scores; without true labels it is 0.
    float64, shape (n,).
    """
    p, names = class_columns(probabilities, None, check=True)
    refuse_other_rows(probabilities=probabilities, truth=truth, u=u)
    return _false_negative_thresholds(p, as_true_labels(truth, p.shape, names), u)


def _false_negative_thresholds(p: NDArray[Any], true: NDArray[np.bool_], u: Uniforms) -> NDArray[np.float64]:
    shares = as_uniforms("u", u, len(p), True)
    # The scores of the true labels first, in order, and the one at the rank that u picks.
    scores = np.where(true, 1.0 - p.astype(np.float64), np.inf)
    scores.sort(axis=1)
    count = true.sum(axis=1)
    picked = np.maximum(np.ceil(count * (1 - shares)).astype(np.int64), 1) - 1
    return np.where(count > 0, scores[np.arange(len(p)), picked], 0.0)


def critical_thresholds(
    losses: ArrayLike, candidates: Candidates, *, u: Uniforms = None, bound: float = 1.0
) -> NDArray[np.float64]:
    """The first candidate with a loss of at most bound * u (drawn by default), float64, shape (n,); +inf if none."""
    if not isinstance(candidates, Candidates):
        must = "must be the confide.Candidates that the losses belong to, column by column"
        remedy = "Candidates.unit(1000) makes 1000 equally spaced candidates"
        raise InputTypeError("candidates", must, got=type(candidates).__name__, remedy=remedy)
    array = as_numeric("losses", losses)
    if array.ndim != 2 or array.shape[1] != candidates.size - 1:
        raise InputError("losses", f"must have shape (n, {candidates.size - 1})", got=f"shape {array.shape}")
    invalid = ~((array >= 0) & (array <= bound)).all(axis=1) | (array[:, 1:] > array[:, :-1]).any(axis=1)
    must = f"losses must lie in [0, {bound:g}] and not increase along rows"
    raise_for_rows("losses", invalid, must, "rows that do not", place="row")
    shares = as_uniforms("u", u, len(array), True)
    # The first candidate at which the loss is small enough.
    small = array <= bound * shares[:, None]
    first = np.where(small.any(axis=1), small.argmax(axis=1), candidates.size - 1)
    return candidates.values[first]


def stated_risk(risk: Level | None, options: Mapping[str, Any]) -> Level:
    """Return the bound on a loss; raises an error if it is missing, or if `alpha` is given instead."""
    if "alpha" in options or risk is None:
        got = "alpha" if "alpha" in options else ""
        must = "must be given, the bound on the expected loss"
        raise InputTypeError("risk", must, got=got, remedy="Write risk=0.1 for 10 %")
    return risk


# Masks: the share of an image's true area that a mask misses, one record per image.
#
# A pixel of class k is in the mask at the threshold t if 1 - p_k <= t. Therefore the missed share of true pixels
# decreases with t and ends at 0. The critical threshold of an image is the score of one of its true pixels, chosen at
# random. Only this number of an image is stored.

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
    *,
    background: int | None = None,
    average: str = "pixels",
    ignore_index: int = -100,
    classes: Iterable[Any] | int | None = None,
    candidates: AnyCandidates = None,
    u: ExperimentalUniforms | None = None,
    **options: Unpack[Options],
) -> Release:
    """Calibrate masks from pairs of any type; `pixels` returns the number of classes, and what `true_pixels` does."""
    stated = stated_risk(risk, options)
    payer, fields = split_options("calibrate_masks", options, *_OF_MASKS)

    # The request, which is checked before an image is read.
    area = MissedAreaLoss(background, one_of("average", average, AVERAGES) == "classes")
    request = Request(alpha=stated, epsilon=epsilon, loss=area.name, candidates=candidates, **fields)
    class_names = None if classes is None else public_classes("classes", classes)

    # The first image shows the number of classes.
    first, areas = first_and_all(image_by_image(images, lambda p, truth: pixels(p, truth, area, ignore_index)))
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
