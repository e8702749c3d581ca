"""Coverage of prediction sets and intervals with exact confidence intervals, in all and by part.

Not private, because it uses labels.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import Groups, as_array, as_labels, as_true_labels, columns_by_name, group_name, refuse_other_rows
from confide.errors import InputTypeError
from confide.evaluation.count_tables import PartCounts
from confide.evaluation.mean_sizes import mean_of
from confide.evaluation.partitions import OTHER, size_names
from confide.evaluation.parts import CoverageTable, TableKind
from confide.evaluation.query import Measure
from confide.evaluation.tally import MOST_GROUPS, Counts, group_names, too_many_groups
from confide.sets import CoverageEstimate, PredictionIntervals, PredictionSets, share_covered
from confide.support import Level, exact_level, require


def coverage(
    covered: PredictionSets | PredictionIntervals | ArrayLike, labels: ArrayLike | None = None, confidence: Level = 0.95
) -> CoverageEstimate:
    """Coverage with an exact (Clopper and Pearson 1934) two-sided confidence interval.

    Parameters
    ----------
    covered
        Prediction sets or intervals; or bool, shape (n,), true if the set of a record contains its true label.
    labels
        True labels of sets, or targets of intervals, shape (n,). Must be left out if `covered` is boolean.
    confidence
        Confidence of the interval, in (0, 1).

    Raises
    ------
    InputError, InputTypeError
        If there are no records, the labels do not fit the sets, or `covered` is not sets, intervals or boolean.

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
                "labels", f"must be given with {type(covered).__name__}, as the true {what} in the same order"
            )
        return covered.coverage(labels, confidence)
    if labels is not None:
        must = "must be sets or intervals if labels are given"
        remedy = "Leave the labels out, or wrap a pair of arrays: confide.PredictionIntervals(lower, upper)"
        raise InputTypeError("covered", must, got=type(covered).__name__, remedy=remedy)
    return share_covered(as_array("covered", covered), confidence)


def class_coverage(sets: PredictionSets, labels: ArrayLike, confidence: Level = 0.95) -> CoverageTable:
    """Coverage and mean set size of the records of each class, and of records whose label is none of the classes.

    Examples
    --------
    >>> table = class_coverage(PredictionSets(np.array([[True, False], [True, False]])), [0, 1])
    >>> table.coverage, table.size
    (array([1., 0.]), array([1., 1.]))
    """
    k = sets.mask.shape[1]
    y = as_labels("labels", labels, len(sets), k, sets.classes, unknown=True)
    names = tuple(sets.classes or range(k))
    if (y < 0).any():
        names = (*names, OTHER)
        y = np.where(y < 0, k, y)
    return _table("class", names, y, sets.sizes, sets.contains(labels), confidence)


def group_coverage(
    sets: PredictionSets | PredictionIntervals, labels: ArrayLike, groups: Groups, confidence: Level = 0.95
) -> CoverageTable:
    """Coverage, and mean set size or width, of the records of each group that occurs.

    Parameters
    ----------
    sets
        Prediction sets or intervals.
    labels
        True labels of sets, or targets of intervals, shape (n,).
    groups
        Group of each record, strings or integers, shape (n,); at most 1000 different groups. For groups that overlap, a
        data frame or a mapping of columns: the table has the groups of every column, `column=value`.
    confidence
        Confidence of each interval of coverage.

    Raises
    ------
    InputError, InputTypeError
        If a record has no group, a group is not a name, or there are more than 1000.

    Examples
    --------
    >>> table = group_coverage(PredictionSets(np.array([[True, False], [True, False]])), [0, 1], ["a", "b"])
    >>> table.names, table.worst
    (('a', 'b'), Part('b': 0.000 (95 % interval 0.000 to 0.975, n=1)))
    """
    # What is measured.
    inside = sets.contains(labels)
    refuse_other_rows(sets=sets, groups=groups)
    measure: Measure = "size" if isinstance(sets, PredictionSets) else "width"
    measured: NDArray[Any] = sets.sizes if isinstance(sets, PredictionSets) else sets.widths

    # One column of groups, or several that overlap: then every record counts once for each.
    columns = groups if isinstance(groups, Mapping) else columns_by_name("groups", groups)
    if columns is None:
        names, parts = group_names(groups, len(inside))  # type: ignore[arg-type]
    else:
        names, parts = _groups_of_columns(columns, len(inside))
        measured = np.tile(measured, len(columns))
        inside = np.tile(inside, len(columns))
    if len(names) > MOST_GROUPS:
        raise too_many_groups()
    return _table("group", names, parts, measured, inside, confidence, measure)


def _groups_of_columns(columns: Mapping[str, ArrayLike], n: int) -> tuple[list[str], NDArray[np.int64]]:
    """Names `column=value` of all columns, and the position of each record's group among them, column by column."""
    names = list[str]()
    places = []
    for column, values in columns.items():
        distinct, place = group_names(values, n)
        places.append(place + len(names))
        names += [group_name(column, name) for name in distinct]
    return names, np.concatenate(places)


def size_coverage(
    sets: PredictionSets, labels: ArrayLike, bins: Sequence[int] = (0, 1, 2, 4, 11, 101), confidence: Level = 0.95
) -> CoverageTable:
    """Coverage by set size (size-stratified coverage, Angelopoulos et al., ICLR 2021).

    Parameters
    ----------
    sets, labels
        Sets of classes, and the true class of each record.
    bins
        Increasing integers that begin with 0. Each part contains the sizes from one integer to just below the next; the
        last part has no upper end.
    confidence
        Confidence level of the interval of each part.

    Examples
    --------
    >>> table = size_coverage(PredictionSets(np.array([[True, False], [True, True]])), [1, 1], bins=(0, 1, 2))
    >>> table.names, table.coverage
    (('0', '1', '2+'), array([nan,  0.,  1.]))
    """
    # The bins.
    edges = np.asarray(bins)
    increasing = edges.ndim == 1 and edges.size and edges.dtype.kind in "iu" and (np.diff(edges) > 0).all()
    require("bins", increasing and edges[0] == 0, "must be increasing integers that begin with 0")

    # The bin of each set.
    places = np.searchsorted(edges, sets.sizes, side="right") - 1
    return _table("size", size_names(edges.tolist()), places, sets.sizes, sets.contains(labels), confidence)


def false_negative_rate(sets: PredictionSets, truth: ArrayLike) -> NDArray[np.float64]:
    """Share of its true labels that each set misses, float64, shape (n,); 0 for a record without true labels.

    Examples
    --------
    >>> false_negative_rate(PredictionSets(np.array([[True, False]])), [[True, True]])
    array([0.5])
    """
    refuse_other_rows(sets=sets, truth=truth)
    true = as_true_labels(truth, sets.mask.shape, sets.classes)
    rate: NDArray[np.float64] = (true & ~sets.mask).sum(axis=1) / np.maximum(true.sum(axis=1), 1)
    return rate


def _table(
    kind: TableKind,
    names: Sequence[object],
    places: NDArray[np.int64],
    measured: NDArray[Any],
    inside: NDArray[np.bool_],
    confidence: Level,
    measure: Measure = "size",
) -> CoverageTable:
    """Coverage of the parts: `places` has the part of each record, `measured` the size of its set or interval."""
    level = float(exact_level("confidence", confidence))
    counts = Counts((len(names), 2), (len(names), 1))
    counts.add([places], ~inside, [measured])
    hits, missed = counts.cells.T
    means = list(map(mean_of, counts.sums[:, 0].tolist(), (hits + missed).tolist()))
    return CoverageTable(kind, PartCounts(names, hits, missed, means=means, measure=measure).parts(1 - level))
