"""Prediction intervals and scores counted: how many truths are covered, how wide intervals are, by group and side."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays.checked import as_vector
from confide.calibration.risk import RiskCalibration
from confide.errors import InputError, InputTypeError
from confide.evaluation.metrics import coverage_from_counts
from confide.evaluation.release_parts import fingerprint, kind_of, promised
from confide.evaluation.result import CONFIDENCE, SIDES, Evaluation, LevelEvaluation, Part
from confide.releases.calibration import Calibration
from confide.releases.reading import Release
from confide.releases.several import GroupCalibration, LevelCalibration, SidesCalibration, positions_of
from confide.scores.regression import refuse_infinite
from confide.sets.predict import predict_interval


def of_intervals(
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
        Anything that has thresholds of a regression score.
    predictions, difficulty
        As in `predict_interval`: shape (n,), or (n, 2) for quantiles.
    targets
        True values, finite, shape (n,).
    groups
        For thresholds per group: the group of each record, shape (n,).

    Returns
    -------
    Evaluation or LevelEvaluation
        The latter for several levels.

    Raises
    ------
    InputError, InputTypeError
        If the release makes no intervals, or an argument does not fit it.

    Examples
    --------
    >>> import confide
    >>> y = np.random.default_rng(0).normal(size=4000)
    >>> quantiles = np.tile([-1.0, 1.0], (4000, 1))
    >>> found = of_intervals(confide.calibrate_sides(quantiles, y, 0.1, 1.0), quantiles, y)
    >>> [part.name for part in found.groups], 0.88 < found.coverage.value < 0.94
    (['lower end', 'upper end'], True)
    """
    tally = IntervalTally(release)
    truth = as_vector("targets", targets)
    refuse_infinite("targets", truth)
    tally.add(np.asarray(predictions), truth, groups, difficulty)
    return tally.evaluation()


def of_scores(release: Release, scores: ArrayLike, *, groups: ArrayLike | None = None) -> Evaluation | LevelEvaluation:
    """Evaluate the conformity scores of true labels: covered are those up to the threshold; not private.

    For a bound on a loss the scores are critical thresholds (`false_negative_thresholds`, `critical_thresholds`) and
    the share beyond the released threshold, times the bound, is an unbiased estimate of the loss.

    Parameters
    ----------
    release
        Anything but thresholds per side.
    scores
        Shape (n,), of labelled records.
    groups
        For thresholds per group or class: the group, or the true class, of each record, shape (n,).

    Returns
    -------
    Evaluation or LevelEvaluation
        The latter for several levels.

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
    >>> [0.88 < part.coverage.value < 0.94 for part in of_scores(released, scores, groups=ward).groups]
    [True, True]
    """
    array = as_vector("scores", scores)
    wrong = np.flatnonzero(np.isnan(array))
    if wrong.size:
        raise InputError(f"scores must not be NaN; found {wrong.size} that are, the first at position {wrong[0]}")
    tally = ScoreTally(release)
    tally.add(array, groups)
    return tally.evaluation()


class _Tally:
    """Covered records and widths, batch by batch, for each level of a release."""

    def __init__(self, release: Release) -> None:
        self.release = release
        parts: list[Any] = list(release.parts.values()) if isinstance(release, LevelCalibration) else [release]
        self.cells = [_Cells(part) for part in parts]

    def evaluation(self) -> Evaluation | LevelEvaluation:
        """What was found."""
        found = [cells.evaluation() for cells in self.cells]
        if not isinstance(self.release, LevelCalibration):
            return found[0]
        return LevelEvaluation(fingerprint(self.release), dict(zip(self.release.parts, found, strict=True)))


class IntervalTally(_Tally):
    """Counts of intervals."""

    def __init__(self, release: Release) -> None:
        if isinstance(release, RiskCalibration):
            raise InputTypeError("release must have thresholds for intervals; evaluate critical thresholds instead")
        super().__init__(release)

    def add(
        self,
        predictions: NDArray[Any],
        targets: NDArray[Any],
        groups: ArrayLike | None = None,
        difficulty: ArrayLike | None = None,
    ) -> None:
        """Count records: predictions as in `predict_interval`, and true values of shape (n,)."""
        for cells in self.cells:
            lower, upper = predict_interval(predictions, cells.release, difficulty=difficulty, groups=groups)
            if len(lower) != len(targets):
                raise InputError(f"targets must have one entry per prediction; found {len(targets)} for {len(lower)}")
            above, below = lower <= targets, targets <= upper
            with np.errstate(over="ignore"):
                widths = upper - lower
            if isinstance(cells.release, SidesCalibration):
                cells.count_sides(above, below)
            cells.count(above & below, groups, widths)


class ScoreTally(_Tally):
    """Counts of scores."""

    def __init__(self, release: Release) -> None:
        if isinstance(release, SidesCalibration):
            raise InputTypeError("release must have one threshold per record; evaluate the intervals instead")
        super().__init__(release)

    def add(self, scores: NDArray[Any], groups: ArrayLike | None = None) -> None:
        """Count scores, shape (n,)."""
        for cells in self.cells:
            cells.count(scores.astype(np.float64) <= cells.thresholds(groups, len(scores)), groups)


class _Cells:
    """How many records are covered, in all and by group or side, and how wide their intervals are."""

    def __init__(self, release: Any) -> None:
        self.release, self.by = release, kind_of(release)
        self.names = tuple(release.parts) if isinstance(release, GroupCalibration) else ()
        self.n = self.hits = 0
        self.total: float | None = None
        self.counts = np.zeros((2 if self.by == "side" else len(self.names), 2), np.int64)
        self.widths = np.zeros(len(self.counts))

    def thresholds(self, groups: ArrayLike | None, n: int) -> NDArray[np.float64] | float:
        """The threshold of each record."""
        release = self.release
        if isinstance(release, GroupCalibration):
            return np.array([part.threshold for part in release.parts.values()])[self.places(groups, n)]
        if groups is not None:
            raise InputError("groups must be left out: the release has no thresholds per group or class")
        one: Calibration = release.calibration if isinstance(release, RiskCalibration) else release
        return one.threshold

    def places(self, groups: ArrayLike | None, n: int) -> NDArray[np.int64]:
        """The position of each record's group, or true class."""
        if groups is None:
            raise InputError(f"groups must be given: the release has one threshold per {self.by}")
        return positions_of("groups", groups, self.names, n)

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

    def count_sides(self, above: NDArray[np.bool_], below: NDArray[np.bool_]) -> None:
        """Add records of which the lower end, and the upper end, may hold."""
        self.counts[:, 0] += len(above)
        self.counts[:, 1] += [int(above.sum()), int(below.sum())]

    def evaluation(self) -> Evaluation:
        coverage = coverage_from_counts(self.hits, self.n, CONFIDENCE)
        mean = None if self.total is None else _mean(self.total, self.n)
        parts = self._parts()
        classes, groups = (parts, ()) if self.by == "class" else ((), parts)
        release = self.release
        return Evaluation(
            fingerprint(release),
            promised(release),
            coverage,
            mean_width=mean,
            classes=classes,
            groups=groups,
            by=self.by,
        )

    def _parts(self) -> tuple[Part, ...]:
        if self.by == "side":
            own, names = [self.release.low.coverage, self.release.high.coverage], list(SIDES)
        else:
            own = [self.release.parts[name].coverage for name in self.names]
            names = list(map(str, self.names))
        wide = self.total is not None and self.by != "side"
        return tuple(
            Part(name, n, hits, promised=one, mean_width=_mean(width, n) if wide else None)
            for name, one, (n, hits), width in zip(names, own, self.counts.tolist(), self.widths.tolist(), strict=True)
            if n
        )


def _mean(total: float, n: int) -> float:
    return total / n if math.isfinite(total) else math.inf
