"""Counts of sets, by part: while records pass, batch by batch.

Counting while labelled records pass, batch by batch: counts for each level of a release.

Prediction sets of labelled records evaluated, at every level of a release: by true class, by size and by group.

Intervals and scores of labelled records evaluated: how many are covered, in all, by group and by side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import (
    Uniforms,
    as_array,
    as_labels,
    as_positions,
    as_uniforms,
    as_vector,
    class_columns,
    refuse_other_rows,
)
from confide.errors import InputError, InputTypeError
from confide.evaluation.parts import SIDES, Subgroup, SubgroupCounts
from confide.evaluation.release_parts import class_keys, division_of, evaluation_of, fingerprint
from confide.evaluation.result import MOST_EXAMPLES, Evaluation, Example, LevelEvaluation, shares
from confide.releases import UNNAMED, Calibration, GroupCalibration, Release, as_release, names_for, warn_of
from confide.scores import refuse_infinite, score_kind
from confide.sets import intervals_of, predict_set


@dataclass(frozen=True)
class Look:
    """What is seen of n records at one level of a release, before anything is counted.

    Parameters
    ----------
    covered
        bool, shape (n,).
    size
        The sizes of their sets, or the widths of their intervals, shape (n,); None of scores.
    ends
        Whether the lower and the upper end of their intervals hold, if each has a threshold of its own.
    """

    covered: NDArray[np.bool_]
    size: NDArray[Any] | None = None
    ends: tuple[NDArray[np.bool_], NDArray[np.bool_]] | None = None


class Tally:
    """The counts of every level of a release, which has one level if it is not a release of several."""

    def __init__(self, release: Release, counts: Callable[[Any], Any]) -> None:
        self.release = release
        self.levels = [counts(release.at(alpha)) for alpha in release.levels]

    def looks(self, *arrays: Any) -> list[Look]:
        """What is seen of records, whose arrays `add` would take, level by level; nothing is counted."""
        raise NotImplementedError

    def result(self) -> Evaluation | LevelEvaluation:
        """The evaluation of all records so far."""
        found = [counts.result() for counts in self.levels]
        if self.release.by != "level":
            one: Evaluation = found[0]
            return one
        return LevelEvaluation(fingerprint(self.release), dict(zip(self.release.parts, found, strict=True)))


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
    return replace(
        evaluation_of(release, hits, n),
        classes=classes,
        sizes=sizes,
        groups=tuple(groups),
        examples=tuple(examples),
        subgroups=tuple(subgroups),
        **shares(classes, sizes, n),
    )


def _count(table: NDArray[np.int64], places: NDArray[np.int64], *weights: NDArray[Any]) -> None:
    """Add to every column of a table: how many fell into each row, then the sums of the weights."""
    for column, weight in enumerate((None, *weights)):
        table[:, column] += np.bincount(places, weight, minlength=len(table)).astype(np.int64)


def evaluate_intervals(
    release: Release,
    predictions: ArrayLike,
    targets: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    difficulty: ArrayLike | None = None,
) -> Evaluation | LevelEvaluation:
    """Evaluate the intervals that a release makes for records with known targets; not private.

    Parameters
    ----------
    release
        Anything that has thresholds of a regression score; of several levels, each is evaluated.
    predictions, difficulty
        As in `predict_interval`: shape (n,), or (n, 2) for quantiles.
    targets
        True values, finite, shape (n,).
    groups
        The group of each record, shape (n,): needed for thresholds per group, else a check group by group.

    Raises
    ------
    InputError, InputTypeError
        If the release makes no intervals, or an argument does not fit it.

    Examples
    --------
    >>> import confide
    >>> y = np.random.default_rng(0).normal(size=4000)
    >>> quantiles = np.tile([-1.0, 1.0], (4000, 1))
    >>> found = evaluate_intervals(confide.calibrate_sides(quantiles, y, 0.1, 1.0), quantiles, y)
    >>> [part.name for part in found.groups], 0.88 < found.coverage.value < 0.94
    (['lower end', 'upper end'], True)
    """
    refuse_other_rows(predictions=predictions, targets=targets, groups=groups, difficulty=difficulty)
    tally = IntervalTally(release)
    tally.add(as_array("predictions", predictions), known_targets(targets), groups, difficulty)
    return tally.result()


def known_targets(targets: ArrayLike, *, empty: bool = False) -> NDArray[Any]:
    """True values, finite, shape (n,); there may be none only where `empty` says so."""
    truth = as_vector("targets", targets, empty=empty)
    refuse_infinite("targets", truth)
    return truth


class IntervalTally(Tally):
    """Counts of intervals."""

    def __init__(self, release: Release) -> None:
        if as_release(release).by == "loss":
            raise InputTypeError("release must have thresholds for intervals; evaluate critical thresholds instead")
        super().__init__(release, CoveredCounts)

    def add(
        self,
        predictions: NDArray[Any],
        targets: NDArray[Any],
        groups: ArrayLike | None = None,
        difficulty: ArrayLike | None = None,
    ) -> None:
        """Count records: predictions as in `predict_interval`, and true values of shape (n,)."""
        for counts, seen in zip(self.levels, self.looks(predictions, targets, groups, difficulty), strict=True):
            if seen.ends is not None:
                counts.count_sides(*seen.ends)
            counts.count(seen.covered, groups, seen.size)

    def looks(
        self,
        predictions: NDArray[Any],
        targets: NDArray[Any],
        groups: ArrayLike | None = None,
        difficulty: ArrayLike | None = None,
    ) -> list[Look]:
        """Which records are covered, and how wide their intervals are, level by level; for two sides also by end."""
        seen = []
        for counts in self.levels:
            own = groups if counts.names else None
            lower, upper = intervals_of(predictions, counts.release, difficulty=difficulty, groups=own)
            if len(lower) != len(targets):
                raise InputError(f"targets must have one entry per prediction; found {len(targets)} for {len(lower)}")
            above, below = lower <= targets, targets <= upper
            with np.errstate(over="ignore"):
                widths = upper - lower
            ends = (above, below) if counts.by == "side" else None
            seen.append(Look(above & below, widths, ends))
        return seen


def evaluate_scores(
    release: Release, scores: ArrayLike, *, groups: ArrayLike | None = None
) -> Evaluation | LevelEvaluation:
    """Evaluate the conformity scores of true labels: covered are those up to the threshold; not private.

    For a bound on a loss the scores are critical thresholds (`false_negative_thresholds`, `critical_thresholds`) and
    the share beyond the released threshold, times the bound, is an unbiased estimate of the loss.

    Parameters
    ----------
    release
        Anything but thresholds per side; of several levels, each is evaluated.
    scores
        Shape (n,), of labelled records.
    groups
        For thresholds per group or class: the group, or the true class, of each record, shape (n,). With any other
        release coverage is measured group by group.

    Raises
    ------
    InputError, InputTypeError
        If a score is NaN, or an argument does not fit the release.

    Examples
    --------
    >>> import confide
    >>> rng = np.random.default_rng(0)
    >>> scores, ward = rng.random(4000), rng.choice(["a", "b"], 4000)
    >>> released = confide.calibrate_groups(scores, ward, ["a", "b"], 0.1, 1.0)
    >>> [0.88 < part.coverage.value < 0.94 for part in evaluate_scores(released, scores, groups=ward).groups]
    [True, True]
    """
    refuse_other_rows(scores=scores, groups=groups)
    array = known_scores(scores)
    tally = ScoreTally(release)
    tally.add(array, groups)
    return tally.result()


def known_scores(scores: ArrayLike, *, empty: bool = False) -> NDArray[Any]:
    """Scores of true labels, not NaN, shape (n,); there may be none only where `empty` says so."""
    array = as_vector("scores", scores, empty=empty)
    wrong = np.flatnonzero(np.isnan(array))
    if wrong.size:
        raise InputError(f"scores must not be NaN; found {wrong.size} that are, the first at position {wrong[0]}")
    return array


class ScoreTally(Tally):
    """Counts of scores."""

    def __init__(self, release: Release) -> None:
        if as_release(release).by == "side":
            raise InputTypeError("release must have one threshold per record; evaluate the intervals instead")
        super().__init__(release, CoveredCounts)
        warn_of(release)

    def add(self, scores: NDArray[Any], groups: ArrayLike | None = None) -> None:
        """Count scores, shape (n,)."""
        for counts, seen in zip(self.levels, self.looks(scores, groups), strict=True):
            counts.count(seen.covered, groups)

    def looks(self, scores: NDArray[Any], groups: ArrayLike | None = None) -> list[Look]:
        """Which records are covered, level by level."""
        exact = scores.astype(np.float64)
        return [Look(exact <= counts.thresholds(groups, len(scores))) for counts in self.levels]


class CoveredCounts:
    """How many records are covered, in all and by group or side, and how wide their intervals are."""

    def __init__(self, release: Any) -> None:
        self.release, self.by = release, division_of(release)
        self.names = tuple(release.parts) if release.disjoint else ()
        self.parts = list(release.parts.values())
        self.n = self.hits = 0
        self.total: float | None = None
        self.counts = np.zeros((2 if self.by == "side" else len(self.names), 2), np.int64)
        self.widths, self.subgroups = np.zeros(len(self.counts)), SubgroupCounts()

    def thresholds(self, groups: ArrayLike | None, n: int) -> NDArray[np.float64]:
        """The threshold of each record; one for all if there are no groups."""
        own = np.array([part.threshold for part in self.parts])
        return own[self.places(groups, n)] if self.names else own

    def places(self, groups: ArrayLike | None, n: int) -> NDArray[np.int64]:
        """The position of each record's group, or true class."""
        if groups is None:
            raise InputError(f"groups must be given: the release has one threshold per {self.by}")
        return as_positions("groups", groups, self.names, n)

    def count(
        self, covered: NDArray[np.bool_], groups: ArrayLike | None, widths: NDArray[np.float64] | None = None
    ) -> None:
        """Add records."""
        self.n, self.hits = self.n + len(covered), self.hits + int(covered.sum())
        with np.errstate(over="ignore"):
            if widths is not None:
                self.total = (self.total or 0.0) + float(widths.sum())
            if self.names:
                place, size = self.places(groups, len(covered)), len(self.names)
                self.counts[:, 0] += np.bincount(place, minlength=size)
                self.counts[:, 1] += np.bincount(place[covered], minlength=size)
                if widths is not None:
                    self.widths += np.bincount(place, widths, minlength=size)
            elif groups is not None:
                self.subgroups.add(groups, covered, widths)

    def count_sides(self, above: NDArray[np.bool_], below: NDArray[np.bool_]) -> None:
        """Add records of which the lower end, and the upper end, may hold."""
        self.counts[:, 0] += len(above)
        self.counts[:, 1] += [int(above.sum()), int(below.sum())]

    def covered_and_missed(self) -> NDArray[np.int64]:
        """Covered and missed records, int64, shape (parts, 2): of each group or class with a threshold, or of all."""
        counted = self.counts if self.names else np.array([[self.n, self.hits]])
        return np.stack([counted[:, 1], counted[:, 0] - counted[:, 1]], axis=1)

    def result(self) -> Evaluation:
        """The evaluation of all records so far."""
        mean = None if self.total is None else _mean(self.total, self.n)
        subgroups = self.subgroups.of_intervals(wide=self.total is not None)
        found = replace(evaluation_of(self.release, self.hits, self.n), mean_width=mean, subgroups=subgroups)
        parts = self._parts()
        return replace(found, classes=parts) if self.by == "class" else replace(found, groups=parts)

    def _parts(self) -> tuple[Subgroup, ...]:
        if self.by is None:
            return ()
        own = [part.coverage for part in self.parts]
        rows = zip(self.names or SIDES, own, self.counts.tolist(), self.widths.tolist(), strict=True)
        wide = self.total is not None and self.by != "side"
        return tuple(
            Subgroup(str(name), n, hits, promised=one, mean_width=_mean(width, n) if wide else None)
            for name, one, (n, hits), width in rows
            if n
        )


def _mean(total: float, n: int) -> float:
    return total / n if math.isfinite(total) else math.inf
