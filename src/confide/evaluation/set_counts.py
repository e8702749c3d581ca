"""Counts of prediction sets: by true class, by size and by group; and the evaluation that they make."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_positions
from confide.evaluation.metrics import coverage_from_counts
from confide.evaluation.release_parts import class_keys, division_of, fingerprint, promised_coverage
from confide.evaluation.result import CONFIDENCE, Evaluation, Example, Subgroup, shares
from confide.releases import Calibration, GroupCalibration, Release
from confide.sets import predict_set


class SetCounts:
    """Counts of the sets of one calibration, or of one with a threshold per group or class."""

    def __init__(self, release: Calibration | GroupCalibration, names: tuple[object, ...]) -> None:
        k = len(names)
        self.release, self.names, self.examples = release, tuple(map(str, names)), list[Example]()
        self.groups: tuple[str | int, ...] = ()
        self.own: list[float] = []
        self.classes: list[str | int] | None = None
        if isinstance(release, GroupCalibration) and release.by == "group":
            self.groups, self.own = tuple(release.parts), [part.coverage for part in release.parts.values()]
        elif isinstance(release, GroupCalibration):
            self.classes = class_keys(release, names)
        self.class_counts, self.size_counts = np.zeros((k, 3), np.int64), np.zeros((k + 1, 2), np.int64)
        self.group_counts = np.zeros((len(self.groups), 3), np.int64)

    def add(
        self,
        probabilities: NDArray[Any],
        y: NDArray[np.int64],
        groups: ArrayLike | None,
        u: NDArray[np.float64] | None,
        more: int,
    ) -> None:
        """Count records, and keep the first `more` of them as examples."""
        mask = predict_set(probabilities, self.release, self.classes, u=u, groups=groups).mask
        sizes, inside = mask.sum(axis=1), mask[np.arange(len(y)), y]
        place = np.zeros(0, np.int64)
        if self.groups and groups is not None:
            place = as_positions("groups", groups, self.groups, len(y))
            _count(self.group_counts, place, inside, sizes)
        _count(self.class_counts, y, inside, sizes)
        _count(self.size_counts, sizes, inside)
        for i in range(min(more, len(y))):
            group = str(self.groups[place[i]]) if self.groups else None
            self.examples.append(
                Example(tuple(self.names[k] for k in np.flatnonzero(mask[i])), self.names[y[i]], group)
            )

    def result(self) -> Evaluation:
        """The evaluation of all records so far."""
        rows = zip(self.groups, self.own, self.group_counts.tolist(), strict=True)
        groups = [Subgroup(str(name), n, hits, members, own) for name, own, (n, hits, members) in rows if n]
        return evaluation_from_counts(
            self.release, self.names, self.class_counts, self.size_counts, self.examples, groups
        )


def evaluation_from_counts(
    release: Release,
    names: Sequence[object],
    by_class: NDArray[np.int64],
    by_size: NDArray[np.int64],
    examples: Sequence[Example] = (),
    groups: Sequence[Subgroup] = (),
) -> Evaluation:
    """An evaluation of sets from counts.

    Parameters
    ----------
    release
        What the sets were made with: one calibration, or one with a threshold per group or class.
    names
        The K class names.
    by_class
        int64, shape (K, 3): records, covered records and labels in sets, by true class.
    by_size
        int64, shape (K + 1, 2): records and covered records, by set size.
    groups
        The groups that occur, for thresholds per group.

    Examples
    --------
    >>> import confide
    >>> released = confide.calibrate(np.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="lac")
    >>> by_class, by_size = np.array([[8, 7, 9], [2, 2, 3]]), np.array([[0, 0], [8, 7], [2, 2]])
    >>> found = evaluation_from_counts(released, ["cat", "dog"], by_class, by_size)
    >>> found.coverage.value, found.mean_size, found.sizes[1].name
    (0.9, 1.2, '2')
    """
    n, hits, by = int(by_class[:, 0].sum()), int(by_class[:, 1].sum()), division_of(release)
    own: list[float | None] = [None] * len(names)
    if isinstance(release, GroupCalibration) and by == "class":
        own = [release.parts[key].coverage for key in class_keys(release, names)]
    rows = zip(names, by_class.tolist(), own, strict=True)
    classes = tuple(Subgroup(str(name), a, b, members, one) for name, (a, b, members), one in rows if a)
    sizes = tuple(Subgroup(str(k), a, b, k * a) for k, (a, b) in enumerate(by_size.tolist()) if a)
    return Evaluation(
        fingerprint(release),
        promised_coverage(release),
        coverage_from_counts(hits, n, CONFIDENCE),
        classes=classes,
        sizes=sizes,
        groups=tuple(groups),
        by=by,
        examples=tuple(examples),
        **shares(classes, sizes, n),
    )


def _count(table: NDArray[np.int64], places: NDArray[np.int64], *weights: NDArray[Any]) -> None:
    """Add to every column of a table: how many fell into each row, then the sums of the weights."""
    for column, weight in enumerate((None, *weights)):
        table[:, column] += np.bincount(places, weight, minlength=len(table)).astype(np.int64)
