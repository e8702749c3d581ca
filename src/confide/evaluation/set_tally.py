"""Prediction sets of labelled records evaluated, at every level of a release."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_labels, as_probabilities, as_uniforms, class_names
from confide.errors import InputError, InputTypeError
from confide.evaluation.result import MOST_EXAMPLES, Evaluation, LevelEvaluation
from confide.evaluation.set_counts import SetCounts
from confide.evaluation.tally import Tally
from confide.releases import Calibration, GroupCalibration, LevelCalibration, Release, parts_of
from confide.scores import Uniforms, score_kind


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
    >>> found = evaluate_sets(released, p, labels)
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
    return tally.result()


class SetTally(Tally[SetCounts]):
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
        if not isinstance(release, Calibration | GroupCalibration | LevelCalibration):
            raise InputTypeError(
                f"release must have thresholds for sets of classes; found {type(release).__name__}; evaluate the "
                "scores or the intervals instead"
            )
        super().__init__(release, lambda level: SetCounts(level, tuple(names)))
        self._examples = examples
        self.randomised = any(score_kind(part.score or "lac").randomised for part in parts_of(release).values())

    def add(
        self, probabilities: NDArray[Any], y: NDArray[np.int64], groups: ArrayLike | None = None, u: Uniforms = None
    ) -> None:
        """Count records: probabilities of shape (n, K), and positions of the true classes, int64, shape (n,)."""
        uniforms = as_uniforms("u", u, len(y), self.randomised) if self.randomised or u is not None else None
        more = self._examples - len(self.levels[0].examples)
        for counts in self.levels:
            counts.add(probabilities, y, groups, uniforms, more)
