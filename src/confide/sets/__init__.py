"""Prediction sets and intervals, made from a release and model outputs for new records.

predict.py          predict_set, predict_interval, predict_labels, predict_masks
prediction_sets.py  PredictionSets: a mask with class names, as lists, Arrow and data frames
prediction_intervals.py  PredictionIntervals: lower and upper ends, plots, and warnings about their widths
promise.py          empirical coverage, and a test whether it violates the coverage guarantee
"""

from confide.sets.predict import intervals_of, predict_interval, predict_labels, predict_masks, predict_set, sets_of
from confide.sets.prediction_intervals import PredictionIntervals, draw_intervals, warn_of_widths
from confide.sets.prediction_sets import PredictionSets, warn_of_empty_sets
from confide.sets.promise import (
    CHANCE,
    CoverageEstimate,
    Shortfall,
    count_limit,
    count_shortfall,
    coverage_from_counts,
    exact_interval,
    has_law,
    mean_limit,
    sentence_of,
    share_covered,
    shortfall_at,
)
