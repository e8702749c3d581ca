"""Coverage and sizes of sets and intervals, and the losses of masks.

Coverage with its exact confidence interval, as a whole, by class, by set size. Not private: it uses labels.

What masks are worth on images whose truth is known: how much area they miss, and how large they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import (
    as_array,
    as_labels,
    as_numeric,
    as_truth,
    as_truth_image,
    class_areas,
    image_by_image,
    refuse_other_rows,
)
from confide.errors import InputError, InputTypeError
from confide.evaluation.counts import Counts
from confide.evaluation.parts import named_groups, refuse_many_groups
from confide.releases import RiskCalibration, area_of, classes_of
from confide.sets import (
    CoverageEstimate,
    PredictionIntervals,
    PredictionSets,
    Shortfall,
    exact_interval,
    mean_limit,
    predict_masks,
    share_covered,
    shortfall_at,
)
from confide.support import Level, Shown, exact_level, html_table


def coverage(
    covered: PredictionSets | PredictionIntervals | ArrayLike,
    labels: ArrayLike | None = None,
    confidence: Level = 0.95,
) -> CoverageEstimate:
    """Coverage with an exact (Clopper and Pearson 1934) two-sided confidence interval.

    Parameters
    ----------
    covered
        Prediction sets or intervals; or bool, shape (n,): whether each record's truth is in its set.
    labels
        The true labels of sets, or the targets of intervals, shape (n,). Without sets it must be left out.
    confidence
        Confidence of the interval, in (0, 1).

    Raises
    ------
    InputError, InputTypeError
        If there are no records, the labels do not fit the sets, or `covered` is neither sets, intervals nor boolean.

    Examples
    --------
    >>> sets = PredictionSets(np.array([[True, False], [True, True]]), ("cat", "dog"))
    >>> coverage(sets, ["cat", "dog"]).value, coverage([True, True]).value
    (1.0, 1.0)
    """
    if isinstance(covered, PredictionSets | PredictionIntervals):
        if labels is None:
            what = "labels" if isinstance(covered, PredictionSets) else "targets"
            raise InputTypeError(
                f"labels must be given beside {type(covered).__name__}: the true {what}, in their order"
            )
        return covered.coverage(labels, confidence)
    if isinstance(covered, tuple) and len(covered) == 2 and labels is not None:
        raise InputTypeError(
            "covered must be sets or intervals; found a pair; wrap it: confide.PredictionIntervals(lower, upper)"
        )
    if labels is not None:
        raise InputTypeError(
            f"labels must be left out beside covered of type {type(covered).__name__}: only prediction sets and "
            "intervals are compared with labels"
        )
    return share_covered(as_array("covered", covered), confidence)


@dataclass(frozen=True, eq=False, repr=False)
class CoverageTable(Shown):
    """Coverage and mean set size of parts of the records.

    Parameters
    ----------
    names
        What each part is: a class, a group or a range of set sizes.
    n, hits
        Records and covered records per part, int64.
    coverage, low, high
        Share covered (NaN for an empty part) and its exact interval, float64.
    size
        Mean set size, or mean width of intervals (NaN for an empty part), float64.
    confidence
        Confidence of each interval.
    measure
        What `size` is: `size` of sets, or `width` of intervals.
    """

    names: tuple[object, ...]
    n: NDArray[np.int64]
    hits: NDArray[np.int64]
    coverage: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    size: NDArray[np.float64]
    confidence: float
    measure: str = "size"

    @property
    def worst(self) -> float:
        """The smallest coverage of a part that has records."""
        return float(np.nanmin(self.coverage))

    def surely_below(self, level: float) -> NDArray[np.bool_]:
        """Which parts are covered less than a level, shape of `n`: by intervals that hold for all of them at once.

        Examples
        --------
        >>> class_coverage(PredictionSets(np.array([[True, False]] * 40)), [0, 1] * 20).surely_below(0.9)
        array([False,  True])
        """
        parts = max(int(np.count_nonzero(self.n)), 1)
        _, tops = exact_interval(self.hits, self.n, 1 - (1 - self.confidence) / parts)
        return np.asarray((self.n > 0) & (tops < level))

    def __str__(self) -> str:
        rows = [("part", "n", "coverage", "interval", self.measure), *self._rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(f"{cell:>{w}}" for cell, w in zip(row, widths, strict=True)) for row in rows)

    def _brief(self) -> str:
        some = np.flatnonzero(self.n)
        if not some.size:
            return f"{len(self.names)} parts, no records"
        worst = int(some[np.argmin(self.coverage[some])])
        return f"{some.size} parts, n={int(self.n.sum())}, worst {str(self.names[worst])!r} {self.coverage[worst]:.3f}"

    def _repr_html_(self) -> str:
        """The same as a table, for notebooks."""
        caption = f"Coverage, exact {100 * self.confidence:g} % intervals"
        return html_table(caption, ("part", "n", "coverage", "interval", self.measure), self._rows())

    def _rows(self) -> list[tuple[str, ...]]:
        """One row for each part that has records, as texts."""
        return [
            (str(self.names[i]), f"{self.n[i]}", f"{self.coverage[i]:.3f}", f"{self.low[i]:.3f} to {self.high[i]:.3f}",
             f"{self.size[i]:.2f}" if self.measure == "size" else f"{self.size[i]:.4g}")
            for i in np.flatnonzero(self.n)
        ]  # fmt: skip


def class_coverage(sets: PredictionSets, labels: ArrayLike, confidence: Level = 0.95) -> CoverageTable:
    """Coverage and mean set size of the records of each class.

    Examples
    --------
    >>> table = class_coverage(PredictionSets(np.array([[True, False], [True, False]])), [0, 1])
    >>> table.coverage, table.size
    (array([1., 0.]), array([1., 1.]))
    """
    k = sets.mask.shape[1]
    y = as_labels("labels", labels, len(sets), k, sets.classes)
    return _table(tuple(sets.classes or range(k)), y, sets.sizes, sets.contains(labels), confidence)


def group_coverage(
    sets: PredictionSets | PredictionIntervals, labels: ArrayLike, groups: ArrayLike, confidence: Level = 0.95
) -> CoverageTable:
    """Coverage, and mean set size or width, of the records of each group that occurs.

    Parameters
    ----------
    sets
        Prediction sets or intervals.
    labels
        The true labels of sets, or the targets of intervals, shape (n,).
    groups
        The group of each record, texts or integers, shape (n,); at most 1000 different ones.
    confidence
        Confidence of each interval of coverage.

    Raises
    ------
    InputError, InputTypeError
        If a record has no group, groups are no names, or there are more than 1000.

    Examples
    --------
    >>> table = group_coverage(PredictionSets(np.array([[True, False], [True, False]])), [0, 1], ["a", "b"])
    >>> table.names, table.worst
    (('a', 'b'), 0.0)
    """
    inside = sets.contains(labels)
    refuse_other_rows(sets=sets, groups=groups)
    names, parts = named_groups(groups, len(inside))
    refuse_many_groups(len(names))
    measured, measure = (sets.sizes, "size") if isinstance(sets, PredictionSets) else (sets.widths, "width")
    return _table(tuple(names), parts, measured, inside, confidence, measure)


def size_coverage(
    sets: PredictionSets, labels: ArrayLike, bins: Sequence[int] = (0, 1, 2, 4, 11, 101), confidence: Level = 0.95
) -> CoverageTable:
    """Coverage by set size (size-stratified coverage, Angelopoulos et al., ICLR 2021).

    Parameters
    ----------
    bins
        Increasing integers: parts are the sizes from one up to before the next, the last part is open.

    Examples
    --------
    >>> table = size_coverage(PredictionSets(np.array([[True, False], [True, True]])), [1, 1], bins=(0, 1, 2))
    >>> table.names, table.coverage
    (('0', '1', '2+'), array([nan,  0.,  1.]))
    """
    edges = np.asarray(bins)
    increasing = edges.ndim == 1 and edges.size and edges.dtype.kind in "iu" and (np.diff(edges) > 0).all()
    if not increasing or edges[0] != 0:
        raise InputError("bins must be increasing integers that begin with 0")
    inside = sets.contains(labels)
    ends = [*(edges[1:] - 1).tolist(), None]
    names = tuple(
        f"{a}+" if b is None else f"{a}" if a == b else f"{a}-{b}" for a, b in zip(edges.tolist(), ends, strict=True)
    )
    return _table(names, np.searchsorted(edges, sets.sizes, side="right") - 1, sets.sizes, inside, confidence)


def false_negative_rate(sets: PredictionSets, truth: ArrayLike) -> NDArray[np.float64]:
    """The share of its true labels that each set misses, float64, shape (n,); 0 for a record without true labels.

    Examples
    --------
    >>> false_negative_rate(PredictionSets(np.array([[True, False]])), [[True, True]])
    array([0.5])
    """
    refuse_other_rows(sets=sets, truth=truth)
    true = as_truth(truth, sets.mask.shape, sets.classes)
    rate: NDArray[np.float64] = (true & ~sets.mask).sum(axis=1) / np.maximum(true.sum(axis=1), 1)
    return rate


def _table(
    names: tuple[object, ...],
    parts: NDArray[np.int64],
    measured: NDArray[Any],
    inside: NDArray[np.bool_],
    confidence: Level,
    measure: str = "size",
) -> CoverageTable:
    level = float(exact_level("confidence", confidence))
    counts = Counts((len(names),))
    counts.add([parts], ~inside, measured)
    n, hits = counts.n, counts.held()
    some = np.where(n > 0, n, np.nan)
    low, high = exact_interval(hits, n, level)
    return CoverageTable(names, n, hits, hits / some, low, high, counts.measured / some, level, measure)


@dataclass(frozen=True, repr=False)
class MaskEvaluation(Shown):
    """Validity beside efficiency, over images. Not private.

    Parameters
    ----------
    n
        Images.
    missed_area
        The loss that was bounded, on average over images; one without true area counts with 0.
    risk
        What was promised: at most that, in expectation.
    area_ratio
        The predicted area over the true area, both summed over images; NaN without any true area.
    missed_by_class
        For each class that counts, by its name or number: the share of its pixels missed, on average over the images
        that have some; NaN if none has.
    shortfall
        Where the loss surely exceeds what was promised, and luck in calibrating does not explain it: what was found.

    Examples
    --------
    >>> print(MaskEvaluation(20, 0.08, 0.1, 1.4, {"tumour": 0.08}))
    missed area 0.0800 on average over 20 images (promised: at most 0.1 in expectation)
    predicted area: 1.40 times the true area
    missed by class: tumour 0.0800
    """

    n: int
    missed_area: float
    risk: float
    area_ratio: float
    missed_by_class: dict[str | int, float]
    shortfall: Shortfall | None = None

    def __str__(self) -> str:
        broken = "" if self.shortfall is None else f"{self.shortfall.sentence}\n"
        parts = ", ".join(f"{name} {missed:.4f}" for name, missed in self.missed_by_class.items())
        return (
            f"{broken}missed area {self.missed_area:.4f} on average over {self.n} images (promised: at most "
            f"{self.risk:.6g} in expectation)\npredicted area: {self.area_ratio:.2f} times the true area\n"
            f"missed by class: {parts}"
        )

    def _brief(self) -> str:
        return f"missed area {self.missed_area:.4f}, {self.risk:.6g} promised, n={self.n}, not private"


def evaluate_masks(
    images: Iterable[tuple[ArrayLike, ArrayLike]], calibration: RiskCalibration, *, ignore_index: int = -100
) -> MaskEvaluation:
    """How much true area the masks of a calibration miss, and how large they are. Not private.

    Parameters
    ----------
    images, ignore_index
        As in `calibrate_masks`: other images than those.
    calibration
        From `calibrate_masks`.

    Examples
    --------
    >>> import confide
    >>> rng = np.random.default_rng(0)
    >>> images = [(p, rng.random(p.shape) < p) for p in rng.random((3000, 1, 4, 4))]
    >>> found = evaluate_masks(images[2000:], confide.calibrate_masks(images[:2000], 0.1, 1.0))
    >>> 0.05 < found.missed_area < 0.12, 1 < found.area_ratio < 2
    (True, True)
    """

    def counts(probabilities: ArrayLike, truth: ArrayLike) -> NDArray[np.int64]:
        p = as_numeric("probabilities", probabilities)
        return area_counts(predict_masks(p, calibration), as_truth_image(truth), ignore_index)

    return evaluation_of_areas(image_by_image(images, counts), calibration)


def area_counts(mask: Any, truth: Any, ignore_index: int) -> NDArray[np.int64]:
    """Pixels of each class of an image: true, missed and predicted, int64, shape (K, 3); numpy's or a tensor's.

    Examples
    --------
    >>> area_counts(np.array([[True, False, True]]), np.array([1, 1, 0]), -100)
    array([[2, 1, 2]])
    """
    found = []
    for own, (true, counted) in zip(mask, class_areas(mask, truth, ignore_index), strict=True):
        inside = own if counted is None else own & counted
        found.append((int(true.sum()), int((true & ~own).sum()), int(inside.sum())))
    return np.array(found, np.int64)


def missed_share(counts: NDArray[np.int64], background: int | None, *, by_class: bool) -> float:
    """The share of an image's true area that is missed, of what `area_counts` gives; 0 without any."""
    true, missed, _ = np.delete(counts, background, axis=0).T if background is not None else counts.T
    if not true.any():
        return 0.0
    return float((missed[true > 0] / true[true > 0]).mean() if by_class else missed.sum() / true.sum())


def evaluation_of_areas(counts: Iterable[NDArray[np.int64]], calibration: RiskCalibration) -> MaskEvaluation:
    """The evaluation of what `area_counts` gives for each image."""
    area, known = area_of(calibration), classes_of(calibration)
    images = list(counts)
    if not images:
        raise InputError("images must hold at least one; found none")
    names = tuple(range(known)) if isinstance(known, int) else tuple(known or range(len(images[0])))
    counted = [k for k in range(len(names)) if k != area.background]
    table = np.stack(images)[:, counted]
    true, _, predicted = table.sum(axis=0).T
    occurs = table[:, :, 0] > 0
    with np.errstate(invalid="ignore"):
        shares = np.where(occurs, table[:, :, 1] / np.maximum(table[:, :, 0], 1), 0).sum(axis=0) / occurs.sum(axis=0)
        ratio = predicted.sum() / true.sum() if true.any() else np.nan
    losses = [missed_share(one, area.background, by_class=area.by_class) for one in images]
    missed = float(np.mean(losses))
    covered = 1 - missed / calibration.bound
    return MaskEvaluation(
        n=len(images),
        missed_area=missed,
        risk=calibration.risk,
        area_ratio=float(ratio),
        missed_by_class={names[k]: float(share) for k, share in zip(counted, shares, strict=True)},
        shortfall=shortfall_at(calibration, covered, mean_limit(covered, len(images)), len(images)),
    )
