"""A release and model outputs for new records come in; prediction sets and intervals leave.

predict.py          predict_set, predict_interval, predict_labels, predict_masks
prediction_sets.py  PredictionSets: a mask with class names, as lists, Arrow and pandas
prediction_intervals.py  PredictionIntervals: lower and upper ends
"""

from confide.sets.predict import predict_interval, predict_labels, predict_masks, predict_set
from confide.sets.prediction_intervals import PredictionIntervals
from confide.sets.prediction_sets import PredictionSets

__all__ = [
    "PredictionIntervals", "PredictionSets", "predict_interval", "predict_labels", "predict_masks",
    "predict_set",
]  # fmt: skip
