"""Counts for a population that is a known shift away: sums of whole weights, over the same candidates.

The weight of a record follows from its class, or is given with it as a public function of its covariates. Weights are
never estimated from the records that calibrate: they are part of what is asked, not of what is seen.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_positions, as_vector
from confide.candidates import Candidates
from confide.counting import ScoreHistogram
from confide.errors import InputError
from confide.planning import ClassShift, Population, RecordWeights, shifted_population
from confide.support import canonical


def population_of(
    class_weights: Any, labels: ArrayLike | None, weights: ArrayLike | None, weight_bound: float | None
) -> Population | None:
    """The population that a call asks a promise for, after a check that everything needed is given; None if none.

    Raises
    ------
    InputError, InputTypeError
        If labels are given without class weights or the other way round, or weights without their public bound.
    """
    if (class_weights is None) != (labels is None):
        raise InputError("class_weights and labels must be given together: a weight per class, and each record's class")
    if (weights is None) != (weight_bound is None):
        raise InputError(
            "weights and weight_bound must be given together: a weight per record, and a public bound of all"
        )
    return shifted_population(class_weights, weight_bound)


def weighted_counts(
    scores: NDArray[Any],
    candidates: Candidates,
    score: str | None,
    population: Population,
    labels: ArrayLike | None,
    weights: ArrayLike | None,
) -> ScoreHistogram:
    """The sums of the weights of the scores per bin; a score or a weight that cannot be used is refused.

    Examples
    --------
    >>> shift = ClassShift.of_weights({"a": 1, "b": 3})
    >>> weighted_counts(np.array([0.1, 0.6]), Candidates.of([0.5]), None, shift, ["a", "b"], None).counts
    array([1, 3])
    """
    ScoreHistogram.from_scores(scores, candidates, score)  # refuses what cannot be counted
    if isinstance(population, RecordWeights):
        given = as_vector("weights", weights, empty=True)  # type: ignore[arg-type]
        if len(given) != len(scores):
            raise InputError(f"weights must have shape ({len(scores)},), one per record; found shape {given.shape}")
        whole = population.whole(given)
    else:
        whole = np.array(population.steps)[as_positions("labels", labels, population.classes, len(scores))]  # type: ignore[arg-type]
    return ScoreHistogram.from_weights(scores, whole, candidates)


def weighted_sum(counts: Mapping[Any, ScoreHistogram], population: ClassShift) -> ScoreHistogram:
    """The same from the counts of each class, by its name.

    Examples
    --------
    >>> counts = {name: ScoreHistogram.from_scores([0.1], Candidates.of([0.5])) for name in ("a", "b")}
    >>> weighted_sum(counts, ClassShift.of_weights({"a": 1, "b": 3})).counts
    array([4, 0])
    """
    named = {canonical(name): one for name, one in counts.items()}
    steps = dict(zip(map(canonical, population.classes), population.steps, strict=True))
    total = sum(one.counts * steps[name] for name, one in named.items())
    return ScoreHistogram(next(iter(named.values())).candidates, np.asarray(total))


def refuse_weights(options: Mapping[str, Any], what: str) -> None:
    """Refuse weights where several thresholds are asked for."""
    given = sorted({"class_weights", "labels", "weights", "weight_bound", "population"} & set(options))
    if given:
        raise InputError(f"{given[0]} must be left out {what}: weights belong to one threshold for one population")
