"""How often sets contain the truth, and how large they are, over a file. These numbers are not private."""

import math

import numpy as np
from numpy.typing import NDArray

from confide.calibration import Calibration
from confide.evaluation import CONFIDENCE, Evaluation, Shown, fingerprint, of_counts
from confide.metrics import coverage_from_counts
from confide.scores.kinds import score_kind
from confide.sets import predict_interval, predict_set
from confide.tables.parts import Label, Number, Probabilities
from confide.tables.scan import Progress, scan, silent


def of_sets(
    probabilities: Probabilities,
    label: Label,
    calibration: Calibration,
    progress: Progress = silent,
    *,
    examples: int = 0,
) -> Evaluation:
    """Evaluate prediction sets; the first `examples` rows of the file are kept as they are."""
    names = probabilities.names
    u = np.random.default_rng() if score_kind(calibration.score).randomised else None
    by_class, by_size = np.zeros((len(names), 3), np.int64), np.zeros((len(names) + 1, 2), np.int64)
    shown: list[Shown] = []
    for (p, y), _ in scan(probabilities.table, [probabilities, label], progress=progress):
        mask = predict_set(p, calibration, u=u).mask
        sizes, inside = mask.sum(axis=1), mask[np.arange(len(y)), y]
        for column, weights in enumerate((None, inside, sizes)):
            by_class[:, column] += _count(y, weights, len(names))
        for column, weights in enumerate((None, inside)):
            by_size[:, column] += _count(sizes, weights, len(names) + 1)
        for row, truth in zip(mask[: examples - len(shown)], y, strict=False):
            shown.append(Shown(tuple(names[k] for k in np.flatnonzero(row)), names[truth]))
    return of_counts(calibration, names, by_class, by_size, shown)


def of_intervals(
    prediction: Number, target: Number, calibration: Calibration, progress: Progress = silent
) -> Evaluation:
    """Evaluate prediction intervals."""
    n, hits, widths = 0, 0, 0.0
    for (f, y), _ in scan(prediction.table, [prediction, target], progress=progress):
        lower, upper = predict_interval(f, calibration)
        n, hits = n + len(y), hits + int(((lower <= y) & (y <= upper)).sum())
        with np.errstate(over="ignore"):
            widths += float((upper - lower).sum())
    return _of_hits(calibration, hits, n, widths / n if math.isfinite(widths) else math.inf)


def of_scores(column: Number, calibration: Calibration, progress: Progress = silent) -> Evaluation:
    """Evaluate the scores of the true labels: covered are those up to the threshold."""
    n = hits = 0
    for (scores,), _ in scan(column.table, [column], progress=progress):
        n, hits = n + len(scores), hits + int((scores.astype(np.float64) <= calibration.threshold).sum())
    return _of_hits(calibration, hits, n, None)


def _of_hits(calibration: Calibration, hits: int, n: int, mean_width: float | None) -> Evaluation:
    coverage = coverage_from_counts(hits, n, CONFIDENCE)
    return Evaluation(fingerprint(calibration), calibration.coverage, coverage, mean_width=mean_width)


def _count(places: NDArray[np.int64], weights: NDArray[np.number] | None, size: int) -> NDArray[np.int64]:
    return np.bincount(places, weights, minlength=size).astype(np.int64)
