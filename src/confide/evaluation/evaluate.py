"""Evaluate a release on arrays of labelled records: sets, intervals, scores and masks."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import (
    Groups,
    Uniforms,
    as_array,
    as_label_image,
    as_labels,
    as_numeric,
    as_vector,
    class_areas,
    class_columns,
    image_by_image,
    refuse_other_rows,
    warn_of_unknown_labels,
)
from confide.core import Release, area_of, as_release, names_for
from confide.errors import InputError, InputTypeError
from confide.evaluation.comparison import (
    IntervalOutcomes,
    LabelledRecords,
    RecordComparison,
    ScoreOutcomes,
    SetOutcomes,
)
from confide.evaluation.evaluation import Evaluation
from confide.evaluation.partitions import Partition, size_parts
from confide.evaluation.private import PrivateRequest, answer
from confide.evaluation.query import CountQuery
from confide.evaluation.statements import statements_of
from confide.evaluation.tally import MOST_GROUPS, Tally
from confide.scores import refuse_infinite
from confide.sets import predict_masks
from confide.support import raise_for_rows, require


def evaluate_sets(
    release: Release,
    probabilities: ArrayLike,
    labels: ArrayLike,
    classes: Sequence[object] | None = None,
    *,
    groups: Groups | None = None,
    u: Uniforms = None,
) -> Evaluation:
    """Evaluate the sets that a release gives for labelled records; not private.

    Parameters
    ----------
    release
        Release of a classification score. If it has several levels, each is evaluated. Groups or classes may have
        their own thresholds.
    probabilities, classes, u
        As in `predict_set`; shape (n, K).
    labels
        True classes, shape (n,): integers in [0, K), or class names if the columns have names from `classes`, a data
        frame or the release. A label that is not among the classes counts as not covered; a warning states how many.
    groups
        Group of each record, shape (n,). Required for thresholds per group; if groups overlap, a data frame or a
        mapping of their columns. With any other release, coverage is also reported by group.

    Raises
    ------
    InputError, InputTypeError
        If the release does not give sets, or an argument does not fit it.

    Examples
    --------
    >>> import confide
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([4, 2, 1], size=5000)
    >>> labels = (p.cumsum(axis=1) > rng.random((5000, 1))).argmax(axis=1)
    >>> released = confide.calibrate(confide.lac_score(p, labels), [0.2, 0.1], epsilon=1.0, score="lac")
    >>> found = evaluate_sets(released, p, labels)
    >>> 0.88 < found[0.1].coverage.value < 0.93, found[0.2].mean_size < found[0.1].mean_size
    (True, True)
    """
    arrays = {"probabilities": probabilities, "labels": labels}
    return evaluate_arrays(release, None, arrays, groups, classes=classes, u=u)


def evaluate_intervals(
    release: Release,
    predictions: ArrayLike,
    targets: ArrayLike,
    *,
    groups: Groups | None = None,
    difficulty: ArrayLike | None = None,
) -> Evaluation:
    """Evaluate the intervals that a release gives for records with known targets; not private.

    Parameters
    ----------
    release
        Release of a regression score. If it has several levels, each is evaluated.
    predictions, difficulty
        As in `predict_interval`: shape (n,), or (n, 2) for quantiles.
    targets
        True values, finite, shape (n,).
    groups
        Group of each record, shape (n,). Required for thresholds per group; else coverage is also reported by group.

    Raises
    ------
    InputError, InputTypeError
        If the release does not give intervals, or an argument does not fit it.

    Examples
    --------
    >>> import confide
    >>> y = np.random.default_rng(0).normal(size=4000)
    >>> quantiles = np.tile([-1.0, 1.0], (4000, 1))
    >>> found = evaluate_intervals(confide.calibrate_sides(quantiles, y, 0.1, 1.0), quantiles, y)
    >>> found.ends.names, 0.88 < found.coverage.value < 0.94
    (('lower end', 'upper end'), True)
    """
    arrays = {"predictions": predictions, "targets": targets}
    return evaluate_arrays(release, None, arrays, groups, difficulty=difficulty)


def evaluate_scores(release: Release, scores: ArrayLike, *, groups: Groups | None = None) -> Evaluation:
    """Evaluate the nonconformity scores of true labels; not private. Scores up to the threshold are covered.

    For risk control the scores are critical thresholds (`false_negative_thresholds`, `critical_thresholds`). The share
    beyond the released threshold, times the bound of the loss, is an unbiased estimate of the loss.

    Parameters
    ----------
    release
        Any release except one with thresholds per side. If it has several levels, each is evaluated.
    scores
        Scores of labelled records, shape (n,).
    groups
        For thresholds per group or class: group or true class of each record, shape (n,). With any other release,
        coverage is also reported by group.

    Raises
    ------
    InputError, InputTypeError
        If a score is NaN, or an argument does not fit the release.

    Examples
    --------
    >>> import confide
    >>> rng = np.random.default_rng(0)
    >>> scores, ward = rng.random(4000), rng.choice(["a", "b"], 4000)
    >>> released = confide.calibrate(scores, 0.1, 1.0, groups=ward, names=["a", "b"])
    >>> [0.88 < part.value < 0.94 for part in evaluate_scores(released, scores, groups=ward).groups]
    [True, True]
    """
    return evaluate_arrays(release, None, {"scores": scores}, groups)


class ArrayOptions(TypedDict, total=False):
    """Further arguments of calls that evaluate arrays; `evaluate_sets` and the related functions describe them."""

    classes: Sequence[object] | None
    u: Uniforms
    difficulty: ArrayLike | None


Arrays: TypeAlias = Mapping[str, Any]
Compared: TypeAlias = tuple[RecordComparison, LabelledRecords]


def _sets(release: Release, arrays: Arrays, options: ArrayOptions, *, empty: bool) -> Compared:
    p, named = class_columns(arrays["probabilities"], options.get("classes"))
    n, k = p.shape
    names = names_for(release, named, k)
    # A label that is not among the classes has the position -1, and no set covers it.
    y = as_labels("labels", arrays["labels"], n, k, names, unknown=True)
    require("probabilities", n or empty, "must have at least one row", got="none")
    columns: Sequence[object] = range(k) if names is None else names
    if not empty:
        warn_of_unknown_labels("labels", y, columns)
    return SetOutcomes(release, columns), LabelledRecords(p, y, u=options.get("u"))


def _intervals(release: Release, arrays: Arrays, options: ArrayOptions, *, empty: bool) -> Compared:
    comparison = IntervalOutcomes(release)
    targets = as_vector("targets", arrays["targets"], empty=empty)
    refuse_infinite("targets", targets)
    predictions = as_array("predictions", arrays["predictions"])
    return comparison, LabelledRecords(predictions, targets, difficulty=options.get("difficulty"))


def _scores(release: Release, arrays: Arrays, options: ArrayOptions, *, empty: bool) -> Compared:
    scores = as_vector("scores", arrays["scores"], empty=empty)
    raise_for_rows("scores", np.isnan(scores), "must not be NaN", "that are")
    return ScoreOutcomes(release), LabelledRecords(scores)


@dataclass(frozen=True)
class _ArrayKind:
    """Arrays that can be evaluated: their true values, their options, and how they are checked and compared.

    Private evaluations also accept arrays without records, because their number is secret.
    """

    truth: str | None
    options: tuple[str, ...]
    compared: Callable[..., Compared]


_KINDS = {
    "probabilities": _ArrayKind("labels", ("classes", "u"), _sets),
    "predictions": _ArrayKind("targets", ("difficulty",), _intervals),
    "scores": _ArrayKind(None, (), _scores),
}


def exact_query(comparison: RecordComparison, *, grouped: bool) -> CountQuery:
    """Query without noise: by class, by each single set size at every level, and by group.

    Groups without thresholds of their own take their names from the records; at most 1000 are allowed.
    """
    partitions = comparison.class_partitions(wanted=True)
    if isinstance(comparison, SetOutcomes):
        _, statements = statements_of(comparison.release)
        partitions += [size_parts(len(comparison.classes), exact=True, statement=name) for name in statements]
    partitions += comparison.group_partitions()
    if grouped and not comparison.needs_groups:
        partitions.append(Partition("group", tuple(map(str, range(MOST_GROUPS)))))
    return CountQuery.of(comparison.release, partitions, measure=comparison.measure)


def evaluate_arrays(
    release: Release,
    request: PrivateRequest | None,
    arrays: dict[str, Any],
    groups: Groups | None,
    **options: Unpack[ArrayOptions],
) -> Evaluation:
    """Evaluate a release on the arrays of `evaluate_sets`, `evaluate_intervals` or `evaluate_scores`, by their names.

    With a request the evaluation is private.
    """
    # Arrays that belong together.
    outputs, *others = [name for name in _KINDS if name in arrays] or [""]
    kind = _KINDS.get(outputs)
    if kind is None or others or set(arrays) - {outputs, kind.truth}:
        requirement = "must be given with labels, or predictions with targets, or scores alone"
        raise InputError("probabilities", requirement, got=", ".join(arrays) or "none of them")
    if kind.truth is not None:
        require(kind.truth, kind.truth in arrays, f"must be given with {outputs}, as the true value of each record")
    for name in options.keys() - set(kind.options):
        raise InputTypeError(name, f"must be left out with {outputs}")

    # Count them without noise, or answer the request.
    as_release(release)
    refuse_other_rows(**arrays, groups=groups, u=options.get("u"), difficulty=options.get("difficulty"))
    comparison, records = kind.compared(release, arrays, options, empty=request is not None)
    if request is None:
        tally = Tally(comparison, exact_query(comparison, grouped=groups is not None))
        tally.add(records, groups)
        return tally.result()
    if (groups is not None) != (comparison.needs_groups or request.group_names is not None):
        raise InputError("groups", "must be given if and only if group_names, their public list, is given")
    return answer(request, comparison, lambda add: add(records, groups))


# Masks.


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

    def counts_of(probabilities: ArrayLike, truth: ArrayLike) -> NDArray[np.int64]:
        p = as_numeric("probabilities", probabilities)
        return area_counts(predict_masks(p, calibration), as_label_image(truth), ignore_index)

    return evaluation_of_areas(image_by_image(images, counts_of), calibration)


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
    area = area_of(calibration)
    classes = calibration.classes
    images = list(counts)
    require("images", images, "must contain at least one image", got="none")
    names = range(classes) if isinstance(classes, int) else classes or range(len(images[0]))

    # All images, and each class with true area, except the background.
    by_class = {str(name): of_class for name, of_class in zip(names, np.stack(images, axis=1), strict=True)}
    if area.background is not None:
        del by_class[str(names[area.background])]
    losses = [missed_share(image, area.background, by_class=area.by_class) for image in images]
    tables = [_covered_and_missed(losses)]
    sums = [_predicted_and_true(np.concatenate(list(by_class.values())))]

    # A class is a part of the images in which it occurs.
    occurring = {name: of_class for name, of_class in by_class.items() if of_class[:, 0].any()}
    partitions = []
    if occurring:
        partitions.append(Partition("class", tuple(occurring)))
        shares = map(_missed_shares, occurring.values())
        tables.append(tuple(chain(*map(_covered_and_missed, shares))))
        sums.append(tuple(chain(*map(_predicted_and_true, occurring.values()))))
    query = CountQuery.of(calibration, partitions, outcome="area", measure="area")
    return Evaluation(query, tuple(tables), sums=tuple(sums), release=calibration)


def _missed_shares(of_class: NDArray[np.int64]) -> NDArray[np.float64]:
    true, missed, _ = of_class[of_class[:, 0] > 0].T
    shares: NDArray[np.float64] = missed / true
    return shares


def _covered_and_missed(missed_shares: Collection[float]) -> tuple[float, ...]:
    """Sums of the covered and of the missed shares of the true area."""
    missed = math.fsum(missed_shares)
    return len(missed_shares) - missed, missed


def _predicted_and_true(areas: NDArray[np.int64]) -> tuple[float, ...]:
    true, _, predicted = areas.sum(axis=0).tolist()
    return float(predicted), float(true)
