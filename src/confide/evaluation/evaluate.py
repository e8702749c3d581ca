"""Count labelled records for an evaluation: sets, intervals or scores, at every level of a release, batch by batch.

Prediction sets are counted by true class, size and group. Intervals and scores are counted in all, by group and side.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import (
    Groups,
    Uniforms,
    as_array,
    as_labels,
    as_uniforms,
    as_vector,
    class_columns,
    refuse_other_rows,
    warn_of_unknown_labels,
)
from confide.core import UNNAMED, Release, as_release, names_for, warn_about
from confide.errors import InputError, InputTypeError
from confide.evaluation.counts import SIDE_OUTCOMES, Counts, NamedCounts, RecordOutcomes, outcomes_of
from confide.evaluation.intervals import OTHER
from confide.evaluation.parts import CONFIDENCE, SIDES, Division, Measure, Part, exact_parts, mean_of
from confide.evaluation.values import MOST_EXAMPLES, Evaluation, Example, LevelEvaluation, shares
from confide.scores import refuse_infinite, score_kind
from confide.sets import count_shortfall, coverage_from_counts, intervals_of, sets_of
from confide.support import raise_for_rows


def fingerprint(release: Release) -> str:
    """SHA-256 of a release's JSON, hexadecimal."""
    return hashlib.sha256(release.to_json().encode()).hexdigest()


def division_of(release: Release) -> Division | None:
    """Kind of the parts that have their own thresholds in a release; None for one threshold."""
    return None if release.by == "level" else release.by


def class_keys(release: Release, names: Sequence[object]) -> list[str | int]:
    """Classes of a release in the order of the columns; column names may be the strings of integer classes.

    Raises
    ------
    InputError
        If the columns have other classes, unless the release has 0 to K-1 and the columns K names.
    """
    by_text = {str(key): key for key in release.parts}
    texts = [str(name) for name in names]
    if len(by_text) == len(release.parts) and sorted(texts) == sorted(by_text):
        return [by_text[text] for text in texts]
    if set(release.parts) == set(range(len(texts))):
        return list(range(len(texts)))
    some = ", ".join(list(by_text)[:10]) + (", ..." if len(by_text) > 10 else "")
    raise InputError(
        "classes",
        f"must be the {len(release.parts)} calibrated classes ({some})",
        got=f"{len(texts)} columns or other names",
        remedy="Give the names in the order of the columns",
    )


def evaluation_of(release: Release, hits: int, n: int) -> Evaluation:
    """Evaluation of a release from the number of records and of covered records, without further parts."""
    covered, short = coverage_from_counts(hits, n, CONFIDENCE), count_shortfall(release, hits, n)
    division = division_of(release)
    return Evaluation(fingerprint(release), release.promised, covered, by=division, shortfall=short)


class LevelCounts:
    """Counts at one level of a release.

    Parameters
    ----------
    release
        A calibration, or a release with a threshold per group, class or side.
    classes
        The K class names of sets, which are counted by class and size; empty for intervals and scores.
    """

    def __init__(self, release: Any, classes: Sequence[object]) -> None:
        self.release, self.by, self.classes = release, division_of(release), tuple(map(str, classes))
        self.names = tuple(release.parts) if release.needs_groups(sets=bool(classes)) else ()
        k = len(classes)
        self.all, self.own = Counts(outcomes=4 if self.by == "side" else 2), Counts((len(self.names),))
        self.by_class, self.by_size, self.subgroups = Counts((k + 1,)), Counts((k + 1,)), NamedCounts()
        self.measured, self.examples = False, list[Example]()

    def places(self, groups: Groups | None, n: int) -> NDArray[np.int64] | None:
        """Position of each record's group or true class among those with a threshold; None for one threshold.

        If groups overlap: the positions of all its groups, shape (n, columns).
        """
        if not self.names:
            return None
        if groups is None:
            raise InputError("groups", f"must be given, because the release has one threshold per {self.by}")
        places: NDArray[np.int64] = self.release.places(groups, n)
        return places

    def add(self, look: RecordOutcomes, groups: Groups | None, truth: NDArray[np.int64] | None = None) -> None:
        """Count records: their coverage and sizes, their groups and, for sets, the positions of their true classes.

        A position of -1 stands for a label that is not among the classes.
        """
        outcome = outcomes_of([look])
        self.measured = look.size is not None
        place = self.places(groups, len(outcome))
        if place is not None:
            for column in np.atleast_2d(place.T):
                self.own.add([column], outcome, look.size)
        elif groups is not None:
            self.subgroups.add_groups(groups, ~look.covered, look.size)  # type: ignore[arg-type]  # a mapping raises
        self.all.add([], outcome, look.size if truth is None else None)
        if truth is not None and look.size is not None:
            self.by_class.add([np.where(truth < 0, len(self.classes), truth)], outcome, look.size)
            self.by_size.add([look.size], outcome)

    def keep(self, mask: NDArray[np.bool_], truth: NDArray[np.int64], groups: Groups | None) -> None:
        """Store the first records as examples, as many as `mask` has rows."""
        place = self.places(groups, len(truth)) if len(mask) else None
        for i, inside in enumerate(mask):
            members = tuple(self.classes[k] for k in np.flatnonzero(inside))
            group = None if place is None else ", ".join(str(self.names[own]) for own in np.atleast_1d(place[i]))
            self.examples.append(Example(members, OTHER if truth[i] < 0 else self.classes[truth[i]], group))

    def covered_and_missed(self) -> NDArray[np.int64]:
        """Covered and missed records, int64, shape (parts, 2): of each group or class with a threshold, or in all."""
        if self.names:
            return self.own.cells
        if self.by == "class" and self.classes:
            keys = class_keys(self.release, self.classes)
            return self.by_class.cells[[keys.index(name) for name in self.release.parts]]
        covered = self.all.with_outcomes()
        return np.array([[covered, self.all.n - covered]])

    def result(self) -> Evaluation:
        """Evaluation of all records so far."""
        measure: Measure | None = None
        if self.measured:
            measure = "members" if self.classes else "mean_width"
        promised = [part.coverage for part in self.release.parts.values()]
        own = exact_parts(self.names, self.own.rows(), promised, measure) if self.names else ()
        if self.by == "side":
            held = [int(self.all.with_outcomes(SIDE_OUTCOMES[end])) for end in SIDES]
            own = exact_parts(SIDES, [(int(self.all.n), hits, 0.0) for hits in held], promised)
        named = exact_parts(self.subgroups.names, self.subgroups.rows(), measure=measure)
        subgroups = tuple(sorted(named, key=lambda part: part.name))
        if self.classes:
            by_class, by_size = (np.array(counts.rows()).astype(np.int64) for counts in (self.by_class, self.by_size))
            return evaluation_from_counts(
                self.release, self.classes, by_class, by_size[:, :2], self.examples, own, subgroups
            )
        ((n, hits, width),) = self.all.rows()
        mean = mean_of(width, n) if self.measured else None
        found = replace(evaluation_of(self.release, hits, n), mean_width=mean, subgroups=subgroups)
        return replace(found, classes=own) if self.by == "class" else replace(found, groups=own)


class Tally:
    """Counts at every level of a release; a release without levels has one."""

    def __init__(self, release: Release, classes: Sequence[object] = ()) -> None:
        self.release = release
        self.levels = [LevelCounts(release.at(alpha), classes) for alpha in release.levels]

    def record_outcomes(self, *arrays: Any) -> list[RecordOutcomes]:
        """Coverage and sizes of records at each level, without counting them; arguments are those of `add`."""
        raise NotImplementedError

    def _count(self, outcomes: Sequence[RecordOutcomes], groups: Groups | None) -> None:
        for counts, seen in zip(self.levels, outcomes, strict=True):
            counts.add(seen, groups)

    def result(self) -> Evaluation | LevelEvaluation:
        """Evaluation of all records so far."""
        found = [counts.result() for counts in self.levels]
        if self.release.by != "level":
            one: Evaluation = found[0]
            return one
        return LevelEvaluation(fingerprint(self.release), dict(zip(self.release.parts, found, strict=True)))


def _refuse_by(release: Release, kinds: Collection[str], requirement: str, *, remedy: str) -> None:
    """Refuse a release whose thresholds are of a kind that a tally cannot count."""
    kind = release.by if as_release(release).loss is None else "loss"
    if kind in kinds:
        raise InputTypeError("release", f"must have {requirement}", got=f"those of a {kind}", remedy=remedy)


def evaluate_sets(
    release: Release,
    probabilities: ArrayLike,
    labels: ArrayLike,
    classes: Sequence[object] | None = None,
    *,
    groups: Groups | None = None,
    u: Uniforms = None,
    examples: int = 0,
) -> Evaluation | LevelEvaluation:
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
        mapping of their columns. With any other release, coverage is also reported by group (`Evaluation.subgroups`).
    examples
        Number of records to store as examples, 0 to 1000; the first ones are used.

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
    as_release(release)
    refuse_other_rows(probabilities=probabilities, labels=labels, groups=groups, u=u)
    p, y, names = labelled_sets(release, probabilities, labels, classes)
    if not len(y):
        raise InputError("probabilities", "must have at least one row", got="none")
    if not 0 <= examples <= MOST_EXAMPLES:
        raise InputError("examples", f"must be from 0 to {MOST_EXAMPLES}", got=str(examples))
    warn_of_unknown_labels("labels", y, names)
    tally = SetTally(release, names, examples)
    tally.add(p, y, groups, u)
    return tally.result()


def labelled_sets(
    release: Release, probabilities: ArrayLike, labels: ArrayLike, classes: Sequence[object] | None
) -> tuple[NDArray[Any], NDArray[np.int64], Sequence[object]]:
    """Check labelled records: probabilities (n, K), positions of the true classes (n,), and the K class names.

    A label that is not among the classes has the position -1: no set covers it.
    """
    p, own = class_columns(probabilities, classes)
    n, k = p.shape
    names = names_for(release, own, k)
    return p, as_labels("labels", labels, n, k, names, unknown=True), range(k) if names is None else names


class SetTally(Tally):
    """Counts of sets.

    Parameters
    ----------
    release
        As in `evaluate_sets`.
    names
        The K class names, in the order of the columns.
    examples
        Number of records to store as examples.
    """

    def __init__(self, release: Release, names: Sequence[object], examples: int = 0) -> None:
        _refuse_by(
            release, ("side", "loss"), "thresholds for sets of classes", remedy="Evaluate the scores or the intervals"
        )
        if any(part.score is None for part in release.parts.values()):
            raise InputError(*UNNAMED)
        own = names_for(release, tuple(names), len(names)) or tuple(names)
        super().__init__(release, own)
        self._examples = examples
        self.randomised = any(score_kind(part.score).randomised for part in release.parts.values())

    def add(
        self, probabilities: NDArray[Any], y: NDArray[np.int64], groups: Groups | None = None, u: Uniforms = None
    ) -> None:
        """Count records: probabilities of shape (n, K), and positions of the true classes, -1 for none, shape (n,)."""
        more = self._examples - len(self.levels[0].examples)
        for counts, mask in zip(self.levels, self._masks(probabilities, groups, u), strict=True):
            counts.add(_seen(mask, y), groups, y)
            counts.keep(mask[:more], y, groups)

    def record_outcomes(
        self, probabilities: NDArray[Any], y: NDArray[np.int64], groups: Groups | None = None, u: Uniforms = None
    ) -> list[RecordOutcomes]:
        """Coverage of records and sizes of their sets, level by level."""
        return [_seen(mask, y) for mask in self._masks(probabilities, groups, u)]

    def _masks(self, probabilities: NDArray[Any], groups: Groups | None, u: Uniforms) -> Iterator[NDArray[np.bool_]]:
        """Sets of records at each level, bool, shape (n, K)."""
        uniforms = None
        if self.randomised or u is not None:
            uniforms = as_uniforms("u", u, len(probabilities), self.randomised)
        for counts in self.levels:
            keys = class_keys(counts.release, counts.classes) if counts.by == "class" else None
            own = groups if counts.names else None
            yield sets_of(probabilities, counts.release, keys, u=uniforms, groups=own).mask


def _seen(mask: NDArray[np.bool_], y: NDArray[np.int64]) -> RecordOutcomes:
    return RecordOutcomes(mask[np.arange(len(y)), y] & (y >= 0), mask.sum(axis=1))


def evaluation_from_counts(
    release: Release,
    names: Sequence[object],
    by_class: NDArray[np.int64],
    by_size: NDArray[np.int64],
    examples: Sequence[Example] = (),
    groups: Sequence[Part] = (),
    subgroups: Sequence[Part] = (),
) -> Evaluation:
    """Make an evaluation of sets from counts.

    Parameters
    ----------
    release
        The release that gave the sets: a calibration, or one with a threshold per group or class.
    names
        The K class names.
    by_class
        int64, shape (K, 3): records, covered records and labels in sets, by true class. With a last row for the
        records whose label is not among the classes, shape (K + 1, 3).
    by_size
        int64, shape (K + 1, 2): records and covered records, by set size.
    groups, subgroups
        Parts for groups with their own thresholds, and for groups without.

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
    own: list[float | None] = [None] * len(by_class)
    if release.by == "class":
        promised = [release.parts[key].coverage for key in class_keys(release, names)]
        own = list((*promised, 0.0)[: len(by_class)])
    classes = exact_parts([*names, OTHER][: len(by_class)], by_class.tolist(), own, "members")
    counted = [(a, b, size * a) for size, (a, b) in enumerate(by_size.tolist())]
    sizes = exact_parts(range(len(counted)), counted, measure="members")
    return replace(
        evaluation_of(release, hits, n),
        classes=classes,
        sizes=sizes,
        groups=tuple(groups),
        examples=tuple(examples),
        subgroups=tuple(subgroups),
        **shares(classes, sizes, n),
    )


def evaluate_intervals(
    release: Release,
    predictions: ArrayLike,
    targets: ArrayLike,
    *,
    groups: Groups | None = None,
    difficulty: ArrayLike | None = None,
) -> Evaluation | LevelEvaluation:
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
    >>> [part.name for part in found.groups], 0.88 < found.coverage.value < 0.94
    (['lower end', 'upper end'], True)
    """
    as_release(release)
    refuse_other_rows(predictions=predictions, targets=targets, groups=groups, difficulty=difficulty)
    tally = IntervalTally(release)
    tally.add(as_array("predictions", predictions), checked_targets(targets), groups, difficulty)
    return tally.result()


def checked_targets(targets: ArrayLike, *, empty: bool = False) -> NDArray[Any]:
    """True values, finite, shape (n,); an empty array is allowed only if `empty` is true."""
    truth = as_vector("targets", targets, empty=empty)
    refuse_infinite("targets", truth)
    return truth


class IntervalTally(Tally):
    """Counts of intervals."""

    def __init__(self, release: Release) -> None:
        _refuse_by(release, ("loss",), "thresholds for intervals", remedy="Evaluate critical thresholds as scores")
        super().__init__(release)

    def add(
        self,
        predictions: NDArray[Any],
        targets: NDArray[Any],
        groups: Groups | None = None,
        difficulty: ArrayLike | None = None,
    ) -> None:
        """Count records: predictions as in `predict_interval`, and true values of shape (n,)."""
        self._count(self.record_outcomes(predictions, targets, groups, difficulty), groups)

    def record_outcomes(
        self,
        predictions: NDArray[Any],
        targets: NDArray[Any],
        groups: Groups | None = None,
        difficulty: ArrayLike | None = None,
    ) -> list[RecordOutcomes]:
        """Coverage and interval widths of records at each level; with a threshold per side also for each end."""
        seen = []
        for counts in self.levels:
            own = groups if counts.names else None
            intervals = intervals_of(predictions, counts.release, difficulty=difficulty, groups=own)
            if len(intervals.lower) != len(targets):
                found = f"{len(targets)} for {len(intervals.lower)}"
                raise InputError("targets", "must have one entry per prediction", got=found)
            above, below = intervals.lower <= targets, targets <= intervals.upper
            ends = (above, below) if counts.by == "side" else None
            seen.append(RecordOutcomes(above & below, intervals.widths, ends))
        return seen


def evaluate_scores(
    release: Release, scores: ArrayLike, *, groups: Groups | None = None
) -> Evaluation | LevelEvaluation:
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
    >>> [0.88 < part.coverage.value < 0.94 for part in evaluate_scores(released, scores, groups=ward).groups]
    [True, True]
    """
    as_release(release)
    refuse_other_rows(scores=scores, groups=groups)
    array = checked_scores(scores)
    tally = ScoreTally(release)
    tally.add(array, groups)
    return tally.result()


def checked_scores(scores: ArrayLike, *, empty: bool = False) -> NDArray[Any]:
    """Scores of true labels, not NaN, shape (n,); an empty array is allowed only if `empty` is true."""
    array = as_vector("scores", scores, empty=empty)
    raise_for_rows("scores", np.isnan(array), "must not be NaN", "that are")
    return array


class ScoreTally(Tally):
    """Counts of scores."""

    def __init__(self, release: Release) -> None:
        _refuse_by(release, ("side",), "one threshold per record", remedy="Evaluate the intervals")
        super().__init__(release)
        warn_about(release)

    def add(self, scores: NDArray[Any], groups: Groups | None = None) -> None:
        """Count scores, shape (n,)."""
        self._count(self.record_outcomes(scores, groups), groups)

    def record_outcomes(self, scores: NDArray[Any], groups: Groups | None = None) -> list[RecordOutcomes]:
        """Coverage of records, level by level."""
        exact = scores.astype(np.float64)
        return [RecordOutcomes(exact <= self._thresholds(counts, groups, len(scores))) for counts in self.levels]

    @staticmethod
    def _thresholds(counts: LevelCounts, groups: Groups | None, n: int) -> NDArray[np.float64]:
        """Threshold of each record; one value for all without groups."""
        own, place = np.array([part.threshold for part in counts.release.parts.values()]), counts.places(groups, n)
        if place is None:
            return own
        return own[place] if place.ndim == 1 else own[place].max(axis=1)
