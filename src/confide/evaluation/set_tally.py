"""Prediction sets of labelled records evaluated, at every level of a release: by true class, by size and by group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import Uniforms, as_labels, as_positions, as_uniforms, class_columns, refuse_other_rows
from confide.errors import InputError, InputTypeError
from confide.evaluation.parts import Subgroup
from confide.evaluation.release_parts import class_keys, evaluation_of
from confide.evaluation.result import MOST_EXAMPLES, Evaluation, Example, LevelEvaluation, shares
from confide.evaluation.subgroups import SubgroupCounts
from confide.evaluation.tally import Look, Tally
from confide.releases import UNNAMED, Calibration, GroupCalibration, Release, as_release, names_for
from confide.scores import score_kind
from confide.sets import predict_set


def evaluate_sets(
    release: Release,
    probabilities: ArrayLike,
    labels: ArrayLike,
    classes: Sequence[object] | None = None,
    *,
    groups: ArrayLike | None = None,
    u: Uniforms = None,
    examples: int = 0,
) -> Evaluation | LevelEvaluation:
    """Evaluate the sets that a release makes for labelled records; not private.

    Parameters
    ----------
    release
        One calibration, or one with several levels, each of which is evaluated, or with a threshold per group or class,
        of a classification score.
    probabilities, classes, u
        As in `predict_set`; shape (n, K).
    labels
        True classes, shape (n,): integers in [0, K), or names where the columns have some, from `classes`, a data frame
        or the release.
    groups
        The group of each record, shape (n,). Needed for thresholds per group; with any other release coverage is
        measured group by group (`Evaluation.subgroups`).
    examples
        How many records to keep as they are, at most 1000; the first ones.

    Raises
    ------
    InputError, InputTypeError
        If the release makes no sets, or an argument does not fit it.

    Examples
    --------
    >>> import confide
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([4, 2, 1], size=5000)
    >>> labels = (p.cumsum(axis=1) > rng.random((5000, 1))).argmax(axis=1)
    >>> released = confide.calibrate_levels(confide.lac_score(p, labels), [0.2, 0.1], epsilon=1.0, score="lac")
    >>> found = evaluate_sets(released, p, labels)
    >>> 0.88 < found[0.1].coverage.value < 0.93, found[0.2].mean_size < found[0.1].mean_size
    (True, True)
    """
    refuse_other_rows(probabilities=probabilities, labels=labels, groups=groups, u=u)
    p, y, names = labelled_sets(release, probabilities, labels, classes)
    if not len(y):
        raise InputError("probabilities must have at least one row; found none")
    if not 0 <= examples <= MOST_EXAMPLES:
        raise InputError(f"examples must lie between 0 and {MOST_EXAMPLES}; found {examples}")
    tally = SetTally(release, names, examples)
    tally.add(p, y, groups, u)
    return tally.result()


def labelled_sets(
    release: Release, probabilities: ArrayLike, labels: ArrayLike, classes: Sequence[object] | None
) -> tuple[NDArray[Any], NDArray[np.int64], Sequence[object]]:
    """Probabilities of shape (n, K), positions of the true classes of shape (n,), and the K class names, checked."""
    p, own = class_columns(probabilities, classes)
    n, k = p.shape
    names = names_for(release, own, k)
    return p, as_labels("labels", labels, n, k, names), range(k) if names is None else names


class SetTally(Tally):
    """Counts of sets.

    Parameters
    ----------
    release
        As in `evaluate_sets`.
    names
        The K class names, in the order of the columns.
    examples
        How many records to keep as they are.
    """

    def __init__(self, release: Release, names: Sequence[object], examples: int = 0) -> None:
        if as_release(release).by in ("side", "loss"):
            raise InputTypeError(
                f"release must have thresholds for sets of classes; found {type(release).__name__}; evaluate the "
                "scores or the intervals instead"
            )
        if any(part.score is None for part in release.parts.values()):
            raise InputError(UNNAMED)
        own = names_for(release, tuple(names), len(names)) or tuple(names)
        super().__init__(release, lambda level: SetCounts(level, own))
        self._examples = examples
        self.randomised = any(score_kind(part.score).randomised for part in release.parts.values())

    def add(
        self, probabilities: NDArray[Any], y: NDArray[np.int64], groups: ArrayLike | None = None, u: Uniforms = None
    ) -> None:
        """Count records: probabilities of shape (n, K), and positions of the true classes, int64, shape (n,)."""
        uniforms = self._uniforms(u, len(y))
        more = self._examples - len(self.levels[0].examples)
        for counts in self.levels:
            counts.add(probabilities, y, groups, uniforms, more)

    def looks(
        self, probabilities: NDArray[Any], y: NDArray[np.int64], groups: ArrayLike | None = None, u: Uniforms = None
    ) -> list[Look]:
        """Which records are covered, and the sizes of their sets, level by level."""
        uniforms = self._uniforms(u, len(y))
        masks = [counts.mask(probabilities, groups, uniforms) for counts in self.levels]
        return [Look(mask[np.arange(len(y)), y], mask.sum(axis=1)) for mask in masks]

    def _uniforms(self, u: Uniforms, n: int) -> NDArray[np.float64] | None:
        return as_uniforms("u", u, n, self.randomised) if self.randomised or u is not None else None


class SetCounts:
    """Counts of the sets of one calibration, or of one with a threshold per group or class."""

    def __init__(self, release: Calibration | GroupCalibration, names: tuple[object, ...]) -> None:
        k = len(names)
        self.release, self.names, self.examples = release, tuple(map(str, names)), list[Example]()
        self.groups: dict[str | int, float] = {}
        self.classes: list[str | int] | None = None
        if release.by == "group":
            self.groups = {name: part.coverage for name, part in release.parts.items()}
        elif release.by == "class":
            self.classes = class_keys(release, names)
        self.class_counts, self.size_counts = np.zeros((k, 3), np.int64), np.zeros((k + 1, 2), np.int64)
        self.group_counts, self.subgroups = np.zeros((len(self.groups), 3), np.int64), SubgroupCounts()

    def mask(
        self, probabilities: NDArray[Any], groups: ArrayLike | None, u: NDArray[np.float64] | None
    ) -> NDArray[np.bool_]:
        """The sets of records, bool, shape (n, K)."""
        own = groups if self.groups else None
        return predict_set(probabilities, self.release, self.classes, u=u, groups=own).mask

    def add(
        self,
        probabilities: NDArray[Any],
        y: NDArray[np.int64],
        groups: ArrayLike | None,
        u: NDArray[np.float64] | None,
        more: int,
    ) -> None:
        """Count records, and keep the first `more` of them as examples."""
        mask = self.mask(probabilities, groups, u)
        sizes, inside = mask.sum(axis=1), mask[np.arange(len(y)), y]
        place, group_names = np.zeros(0, np.int64), tuple(self.groups)
        if self.groups and groups is not None:
            place = as_positions("groups", groups, group_names, len(y))
            _count(self.group_counts, place, inside, sizes)
        elif groups is not None:
            self.subgroups.add(groups, inside, sizes)
        _count(self.class_counts, y, inside, sizes)
        _count(self.size_counts, sizes, inside)
        for i in range(min(more, len(y))):
            group = str(group_names[place[i]]) if self.groups else None
            members = tuple(self.names[k] for k in np.flatnonzero(mask[i]))
            self.examples.append(Example(members, self.names[y[i]], group))

    def covered_and_missed(self) -> NDArray[np.int64]:
        """Covered and missed records, int64, shape (parts, 2): of each group or class with a threshold, or of all."""
        if self.groups:
            counted = self.group_counts
        elif self.classes is not None:
            place = [self.classes.index(name) for name in self.release.parts]
            counted = self.class_counts[place]
        else:
            counted = self.class_counts.sum(axis=0, keepdims=True)
        return np.stack([counted[:, 1], counted[:, 0] - counted[:, 1]], axis=1)

    def result(self) -> Evaluation:
        """The evaluation of all records so far."""
        rows = zip(self.groups.items(), self.group_counts.tolist(), strict=True)
        groups = [Subgroup(str(name), n, hits, members, own) for (name, own), (n, hits, members) in rows if n]
        return evaluation_from_counts(
            self.release,
            self.names,
            self.class_counts,
            self.size_counts,
            self.examples,
            groups,
            self.subgroups.of_sets(),
        )


def evaluation_from_counts(
    release: Release,
    names: Sequence[object],
    by_class: NDArray[np.int64],
    by_size: NDArray[np.int64],
    examples: Sequence[Example] = (),
    groups: Sequence[Subgroup] = (),
    subgroups: Sequence[Subgroup] = (),
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
    groups, subgroups
        The groups that occur, for thresholds per group, and groups without thresholds of their own.

    Examples
    --------
    >>> import confide
    >>> released = confide.calibrate(np.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="lac")
    >>> by_class, by_size = np.array([[8, 7, 9], [2, 2, 3]]), np.array([[0, 0], [8, 7], [2, 2]])
    >>> found = evaluation_from_counts(released, ["cat", "dog"], by_class, by_size)
    >>> found.coverage.value, found.mean_size, found.sizes[1].name
    (0.9, 1.2, '2')
    """
    n, hits, _ = by_class.sum(axis=0).tolist()
    own: list[float | None] = [None] * len(names)
    if release.by == "class":
        own = [release.parts[key].coverage for key in class_keys(release, names)]
    rows = zip(names, by_class.tolist(), own, strict=True)
    classes = tuple(Subgroup(str(name), a, b, members, one) for name, (a, b, members), one in rows if a)
    sizes = tuple(Subgroup(str(k), a, b, k * a) for k, (a, b) in enumerate(by_size.tolist()) if a)
    counted = {"classes": classes, "sizes": sizes, "groups": tuple(groups), "examples": tuple(examples)}
    more = {**counted, "subgroups": tuple(subgroups), **shares(classes, sizes, n)}
    return evaluation_of(release, hits, n, **more)


def _count(table: NDArray[np.int64], places: NDArray[np.int64], *weights: NDArray[Any]) -> None:
    """Add to every column of a table: how many fell into each row, then the sums of the weights."""
    for column, weight in enumerate((None, *weights)):
        table[:, column] += np.bincount(places, weight, minlength=len(table)).astype(np.int64)
