"""Prediction sets and intervals, made from a release and model outputs for new records.

coverage.py              coverage of labelled records with exact limits; `Shortfall`: coverage below the promise, and
                         whether luck in calibrating explains it
prediction_sets.py       `PredictionSets`: a mask with class names; `predict_set`, `predict_labels`, `predict_masks`
prediction_intervals.py  `PredictionIntervals`: lower and upper ends; `predict_interval`; warnings about widths
"""

from confide.sets.coverage import (
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
from confide.sets.prediction_intervals import PredictionIntervals, intervals_of, predict_interval, warn_of_widths
from confide.sets.prediction_sets import (
    PredictionSets,
    predict_labels,
    predict_masks,
    predict_set,
    score_of,
    score_of_task,
    sets_of,
    warn_of_empty_sets,
)
