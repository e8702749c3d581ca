"""Calibration data from a file: batch by batch into counts, the only thing that is kept of it."""

from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import NDArray

from confide.candidates import Candidates
from confide.histogram import ScoreHistogram
from confide.scores.classification import lac_score
from confide.scores.regression import absolute_residual_score
from confide.tables.parts import Label, Number, Part, Probabilities
from confide.tables.scan import Progress, scan, silent
from confide.tables.source import Table


def from_score(column: Number, candidates: Candidates, name: str | None, progress: Progress = silent) -> ScoreHistogram:
    """Counts of a column of scores."""
    return _counts(column.table, [column], lambda arrays: arrays[0], candidates, name, progress)


def from_probabilities(
    probabilities: Probabilities, label: Label, candidates: Candidates, progress: Progress = silent
) -> ScoreHistogram:
    """Counts of LAC scores, one minus the probability of the label."""
    return _counts(
        probabilities.table,
        [probabilities, label],
        lambda arrays: lac_score(arrays[0], arrays[1]),
        candidates,
        "lac",
        progress,
    )


def from_predictions(
    prediction: Number, target: Number, candidates: Candidates, progress: Progress = silent
) -> ScoreHistogram:
    """Counts of absolute residuals."""
    return _counts(
        prediction.table,
        [prediction, target],
        lambda arrays: absolute_residual_score(arrays[0], arrays[1]),
        candidates,
        "absolute_residual",
        progress,
    )


def _counts(
    table: Table,
    parts: Sequence[Part],
    score: Callable[[list[NDArray[Any]]], NDArray[Any]],
    candidates: Candidates,
    name: str | None,
    progress: Progress,
) -> ScoreHistogram:
    histogram = ScoreHistogram.empty(candidates)
    for arrays, _ in scan(table, parts, progress=progress):
        histogram = histogram + ScoreHistogram.from_scores(score(arrays), candidates, name)
    return histogram
