"""Calibration data from a file: batch by batch into counts, the only thing that is kept of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.candidates import Candidates
from confide.counting.histogram import ScoreHistogram
from confide.scores.classification import class_score
from confide.scores.kinds import score_kind
from confide.scores.regression import interval_score
from confide.tables.engine_findings import refuse
from confide.tables.parts import Label, Number, Part, Probabilities, one_or_pairs
from confide.tables.scan import Progress, scan, silent
from confide.tables.source import Table
from confide.tables.streamed import Counters


@dataclass(frozen=True)
class Scores:
    """What is read of each row of a file, and the score that follows from it."""

    table: Table
    parts: Sequence[Part]
    name: str | None
    of: Callable[[Sequence[NDArray[Any]]], NDArray[Any]]


def of_column(column: Number, name: str | None) -> Scores:
    """A column of scores."""
    return Scores(column.table, [column], name, lambda arrays: arrays[0])


def of_probabilities(probabilities: Probabilities, label: Label, name: str = "lac") -> Scores:
    """Any classification score of the label. Randomised ones draw fresh numbers."""
    u = np.random.default_rng() if score_kind(name).randomised else None
    return Scores(
        probabilities.table, [probabilities, label], name, lambda arrays: class_score(arrays[0], arrays[1], name, u=u)
    )


def of_predictions(predictions: Sequence[Number], target: Number, name: str = "absolute_residual") -> Scores:
    """Absolute residuals of one column, or CQR scores of lower and upper quantiles."""
    return Scores(
        target.table,
        [*predictions, target],
        name,
        lambda arrays: interval_score(one_or_pairs(arrays[: len(predictions)]), arrays[len(predictions)], name),
    )


def count(scores: Scores, candidates: Candidates, progress: Progress = silent) -> ScoreHistogram:
    """The counts of a file's scores."""
    histogram = ScoreHistogram.empty(candidates)
    for arrays, _ in scan(scores.table, scores.parts, progress=progress):
        histogram = histogram + ScoreHistogram.from_scores(scores.of(arrays), candidates, scores.name)
    return histogram


def count_groups(
    scores: Scores, group: Label, candidates: Candidates, progress: Progress = silent
) -> list[ScoreHistogram]:
    """The counts of a file's scores by group, in the order of the group's names and in the same pass."""
    import pyarrow as pa

    known = next((place for place, part in enumerate(scores.parts) if part is group), None)
    parts = scores.parts if known is not None else [*scores.parts, group]
    kind = score_kind(scores.name)
    counters = Counters(candidates.edges, kind, len(group.names))
    for arrays, _ in scan(scores.table, parts, progress=progress):
        score = np.asarray(scores.of(arrays), dtype=np.float64)
        counters.add(pa.record_batch({"score": score, "group": arrays[-1 if known is None else known]}))
    counts = counters.counts()
    refuse(counters.found, kind)
    return [ScoreHistogram(candidates, counts[place]) for place in range(len(group.names))]
