"""Prediction sets counted: by true class, by size, by group, at every level of a release."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays.checked import as_labels, as_probabilities, as_uniforms, class_names
from confide.errors import InputError, InputTypeError
from confide.evaluation.release_parts import class_keys, fingerprint, of_counts
from confide.evaluation.result import MOST_EXAMPLES, Evaluation, LevelEvaluation, Part, Shown
from confide.releases.calibration import Calibration
from confide.releases.reading import Release, parts_of
from confide.releases.several import GroupCalibration, LevelCalibration, positions_of
from confide.scores.classification import Uniforms
from confide.scores.kinds import score_kind
from confide.sets.predict import predict_set


def of_sets(
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
        One calibration, or one with several levels, or with a threshold per group or class, of a classification score.
    probabilities, classes, u
        As in `predict_set`; shape (n, K).
    labels
        True classes, shape (n,): integers in [0, K), or members of `classes`.
    groups
        For thresholds per group: the group of each record, shape (n,).
    examples
        How many records to keep as they are, at most 1000; the first ones.

    Returns
    -------
    Evaluation or LevelEvaluation
        The latter for several levels.

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
    >>> found = of_sets(released, p, labels)
    >>> 0.88 < found[0.1].coverage.value < 0.93, found[0.2].mean_size < found[0.1].mean_size
    (True, True)
    """
    p = as_probabilities("probabilities", probabilities, check=False)
    n, k = p.shape
    names = None if classes is None else class_names(classes, k)
    y = as_labels("labels", labels, n, k, names)
    if n == 0:
        raise InputError("probabilities must have at least one row; found none")
    if not 0 <= examples <= MOST_EXAMPLES:
        raise InputError(f"examples must lie between 0 and {MOST_EXAMPLES}; found {examples}")
    tally = SetTally(release, range(k) if names is None else names, examples)
    tally.add(p, y, groups, u)
    return tally.evaluation()


class SetTally:
    """What is counted while labelled records pass, batch by batch.

    Parameters
    ----------
    release
        As in `of_sets`.
    names
        The K class names, in the order of the columns.
    examples
        How many records to keep as they are.
    """

    def __init__(self, release: Release, names: Sequence[object], examples: int = 0) -> None:
        if not isinstance(release, Calibration | GroupCalibration | LevelCalibration):
            raise InputTypeError(
                f"release must have thresholds for sets of classes; found {type(release).__name__}; evaluate the "
                "scores or the intervals instead"
            )
        self._release, self._names, self._examples = release, tuple(names), examples
        self.randomised = any(score_kind(part.score or "lac").randomised for part in parts_of(release).values())
        parts = list(release.parts.values()) if isinstance(release, LevelCalibration) else [release]
        self._counts = [_Counts(part, self._names) for part in parts]

    def add(
        self, probabilities: NDArray[Any], y: NDArray[np.int64], groups: ArrayLike | None = None, u: Uniforms = None
    ) -> None:
        """Count records: probabilities of shape (n, K), and positions of the true classes, int64, shape (n,)."""
        shares = as_uniforms("u", u, len(y), self.randomised) if self.randomised or u is not None else None
        more = self._examples - len(self._counts[0].shown)
        for counts in self._counts:
            counts.add(probabilities, y, groups, shares, more)

    def evaluation(self) -> Evaluation | LevelEvaluation:
        """What was found."""
        if not isinstance(self._release, LevelCalibration):
            return self._counts[0].evaluation()
        levels = dict(zip(self._release.parts, (counts.evaluation() for counts in self._counts), strict=True))
        return LevelEvaluation(fingerprint(self._release), levels)


class _Counts:
    """Counts of the sets of one calibration, or of one with a threshold per group or class."""

    def __init__(self, release: Calibration | GroupCalibration, names: tuple[object, ...]) -> None:
        k = len(names)
        self.release, self.names, self.shown = release, tuple(map(str, names)), list[Shown]()
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
        mask = predict_set(probabilities, self.release, self.classes, u=u, groups=groups).mask
        sizes, inside = mask.sum(axis=1), mask[np.arange(len(y)), y]
        place = np.zeros(0, np.int64)
        if self.groups and groups is not None:
            place = positions_of("groups", groups, self.groups, len(y))
            _count(self.group_counts, place, inside, sizes)
        _count(self.class_counts, y, inside, sizes)
        _count(self.size_counts, sizes, inside)
        for i in range(min(more, len(y))):
            group = str(self.groups[place[i]]) if self.groups else None
            self.shown.append(Shown(tuple(self.names[k] for k in np.flatnonzero(mask[i])), self.names[y[i]], group))

    def evaluation(self) -> Evaluation:
        rows = zip(self.groups, self.own, self.group_counts.tolist(), strict=True)
        groups = [Part(str(name), n, hits, members, own) for name, own, (n, hits, members) in rows if n]
        return of_counts(self.release, self.names, self.class_counts, self.size_counts, self.shown, groups)


def _count(table: NDArray[np.int64], places: NDArray[np.int64], *weights: NDArray[Any]) -> None:
    """Add to every column of a table: how many fell into each row, then the sums of the weights."""
    for column, weight in enumerate((None, *weights)):
        table[:, column] += np.bincount(places, weight, minlength=len(table)).astype(np.int64)
