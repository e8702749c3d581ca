"""A silo's own records as counts over the candidates of a plan: one row of them, or one for each group."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_positions, as_vector, refuse_other_rows
from confide.counting import ScoreHistogram
from confide.errors import InputError, InputTypeError
from confide.federated.plan import FederatedPlan
from confide.federated.several_plans import AnyPlan
from confide.scores import named_by
from confide.support import Name

Scores = ArrayLike | ScoreHistogram | Mapping[Any, ScoreHistogram]
"""Scores, their counts over the candidates of a plan, or for groups the counts of each by its name."""


def count_for(plan: AnyPlan, scores: Scores, groups: ArrayLike | None = None) -> NDArray[np.int64]:
    """Counts over the candidates of the plan, int64, shape (m,); for groups or classes shape (groups, m).

    Raises
    ------
    InputError, InputTypeError
        If these are no scores that the plan is for, or `groups` are missing, too many or unknown to it.
    """
    one = plan if isinstance(plan, FederatedPlan) else plan.first
    if isinstance(plan, FederatedPlan) or plan.by == "level":
        if groups is not None or isinstance(scores, Mapping):
            raise InputError("groups must be left out: the plan has no thresholds for groups or classes")
        return _histogram(one, scores).counts
    names: tuple[Name, ...] = tuple(plan.parts)
    if isinstance(scores, Mapping):
        if groups is not None or set(scores) != set(names):
            raise InputError(
                f"scores must be counted for the {len(names)} groups of the plan, by their names, without groups"
            )
        return np.array([_histogram(one, scores[name]).counts for name in names])
    if groups is None or isinstance(scores, ScoreHistogram):
        what = "the class" if plan.by == "class" else "the group"
        raise InputError(f"groups must be given, {what} of each score: the plan has a threshold for each")
    _check_named(one, scores)
    array = as_vector("scores", scores, empty=True)
    refuse_other_rows(scores=scores, groups=groups)
    place = as_positions("groups", groups, names, len(array))
    ScoreHistogram.from_scores(array, one.candidates, one.score)  # names a bad score by its place among all of them
    return np.array([_histogram(one, array[place == i]).counts for i in range(len(names))])


def _histogram(plan: FederatedPlan, scores: ArrayLike | ScoreHistogram) -> ScoreHistogram:
    _check_named(plan, scores)
    if not isinstance(scores, ScoreHistogram):
        return ScoreHistogram.from_scores(scores, plan.candidates, plan.score)
    if scores.candidates != plan.candidates:
        raise InputTypeError("scores must be counted over the candidates of the plan; found others")
    return scores


def _check_named(plan: FederatedPlan, scores: ArrayLike | ScoreHistogram) -> None:
    try:
        named_by(scores, plan.score, plan.classes)
    except InputError as error:
        raise InputError(f"scores must be those that the plan is for: {error}") from None
