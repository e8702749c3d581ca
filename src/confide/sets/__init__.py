"""A release and model outputs for new records come in; prediction sets and intervals leave.

predict.py          predict_set, predict_interval, predict_labels, predict_masks
prediction_sets.py  PredictionSets: a mask with class names, as lists, Arrow and data frames
prediction_intervals.py  PredictionIntervals: lower and upper ends
drawn_intervals.py  intervals on matplotlib axes
widths.py           intervals that are far wider than predictions are spread
coverage.py         the share of records that they cover, with its exact interval
"""

from confide.sets.coverage import CoverageEstimate, coverage_from_counts, exact_interval, share_covered
from confide.sets.drawn_intervals import draw_intervals
from confide.sets.predict import predict_interval, predict_labels, predict_masks, predict_set
from confide.sets.prediction_intervals import PredictionIntervals
from confide.sets.prediction_sets import PredictionSets
from confide.sets.widths import warn_of_widths

__all__ = [
    "CoverageEstimate", "PredictionIntervals", "PredictionSets", "coverage_from_counts", "draw_intervals",
    "exact_interval", "predict_interval", "predict_labels", "predict_masks", "predict_set", "share_covered",
    "warn_of_widths",
]  # fmt: skip


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)
