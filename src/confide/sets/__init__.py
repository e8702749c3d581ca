"""A release and model outputs for new records come in; prediction sets and intervals leave.

predict.py          predict_set, predict_interval, predict_labels, predict_masks
prediction_sets.py  PredictionSets: a mask with class names, as lists, Arrow and data frames
prediction_intervals.py  PredictionIntervals: lower and upper ends
drawn_intervals.py  intervals on matplotlib axes
widths.py           intervals that are far wider than predictions are spread
coverage.py         the share of records that they cover, with its exact interval
promise.py          whether that breaks the promise, or luck in calibrating explains it
"""

from confide.sets.coverage import CoverageEstimate, coverage_from_counts, exact_interval, share_covered
from confide.sets.drawn_intervals import draw_intervals
from confide.sets.predict import intervals_of, predict_interval, predict_labels, predict_masks, predict_set
from confide.sets.prediction_intervals import PredictionIntervals
from confide.sets.prediction_sets import PredictionSets
from confide.sets.promise import (
    CHANCE,
    Shortfall,
    count_limit,
    count_shortfall,
    has_law,
    mean_limit,
    sentence_of,
    shortfall_at,
)
from confide.sets.widths import warn_of_widths

__all__ = [
    "CHANCE", "CoverageEstimate", "PredictionIntervals", "PredictionSets", "Shortfall", "count_limit",
    "count_shortfall", "coverage_from_counts", "draw_intervals", "exact_interval", "has_law", "intervals_of",
    "mean_limit", "predict_interval", "predict_labels", "predict_masks", "predict_set", "sentence_of", "share_covered",
    "shortfall_at", "warn_of_widths",
]  # fmt: skip


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)
