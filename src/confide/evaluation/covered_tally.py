"""Intervals and scores of labelled records evaluated: how many are covered, in all, by group and by side."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_array, as_positions, as_vector, refuse_other_rows
from confide.errors import InputError, InputTypeError
from confide.evaluation.parts import SIDES, Subgroup
from confide.evaluation.release_parts import division_of, evaluation_of
from confide.evaluation.result import Evaluation, LevelEvaluation
from confide.evaluation.subgroups import SubgroupCounts
from confide.evaluation.tally import Look, Tally
from confide.releases import Release, as_release, warn_of
from confide.scores import refuse_infinite
from confide.sets import intervals_of


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
        parts = {"classes" if self.by == "class" else "groups": self._parts()}
        mean = None if self.total is None else _mean(self.total, self.n)
        subgroups = self.subgroups.of_intervals(wide=self.total is not None)
        return evaluation_of(self.release, self.hits, self.n, mean_width=mean, subgroups=subgroups, **parts)

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
