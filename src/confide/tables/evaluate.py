"""How often sets contain the truth, and how large they are, over a file. These numbers are not private."""

import math
from dataclasses import dataclass

import numpy as np

from confide.calibration import Calibration
from confide.metrics import CoverageEstimate, coverage_from_counts
from confide.sets import predict_interval, predict_set
from confide.tables.parts import Label, Number, Probabilities
from confide.tables.scan import Progress, scan, silent


@dataclass(frozen=True)
class Evaluation:
    """What was found in a file.

    Parameters
    ----------
    coverage
        Share of rows whose truth is covered, with its exact interval.
    mean_size, singletons, empty
        Mean number of classes per set, share of sets with one class, share without any; None without sets.
    mean_width
        Mean width of the intervals; None without intervals.
    """

    coverage: CoverageEstimate
    mean_size: float | None = None
    singletons: float | None = None
    empty: float | None = None
    mean_width: float | None = None


def of_sets(
    probabilities: Probabilities, label: Label, calibration: Calibration, progress: Progress = silent
) -> Evaluation:
    """Evaluate prediction sets."""
    n = hits = members = singletons = empty = 0
    for (p, y), _ in scan(probabilities.table, [probabilities, label], progress=progress):
        sets = predict_set(p, calibration)
        sizes = sets.sizes
        n, hits, members = n + len(sizes), hits + int(sets.contains(y).sum()), members + int(sizes.sum())
        singletons, empty = singletons + int((sizes == 1).sum()), empty + int((sizes == 0).sum())
    return Evaluation(coverage_from_counts(hits, n), members / n, singletons / n, empty / n)


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
    return Evaluation(coverage_from_counts(hits, n), mean_width=widths / n if math.isfinite(widths) else math.inf)


def of_scores(column: Number, calibration: Calibration, progress: Progress = silent) -> Evaluation:
    """Evaluate the scores of the true labels: covered are those up to the threshold."""
    n = hits = 0
    for (scores,), _ in scan(column.table, [column], progress=progress):
        n, hits = n + len(scores), hits + int((scores.astype(np.float64) <= calibration.threshold).sum())
    return Evaluation(coverage_from_counts(hits, n))
