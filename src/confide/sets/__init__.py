"""Prediction sets and intervals, made from a release and model outputs for new records.

coverage.py              coverage of labelled records with exact limits
shortfall.py             `Shortfall`: coverage below the promise, and whether luck in calibrating explains it
records.py               what sets and intervals share
prediction_sets.py       `PredictionSets`: a mask with class names
prediction_intervals.py  `PredictionIntervals`: lower and upper ends
predict.py               `predict_set`, `predict_labels`, `predict_masks`, `predict_interval`, and their warnings
"""

from confide.sets.coverage import (
    CHANCE,
    CoverageEstimate,
    count_limit,
    coverage_from_counts,
    exact_interval,
    mean_limit,
    share_covered,
)
from confide.sets.predict import (
    intervals_of,
    predict_interval,
    predict_labels,
    predict_masks,
    predict_set,
    score_of,
    score_of_task,
    sets_of,
    warn_of_empty_sets,
    warn_of_widths,
)
from confide.sets.prediction_intervals import PredictionIntervals
from confide.sets.prediction_sets import PredictionSets, holds_class
from confide.sets.shortfall import Shortfall, count_shortfall, has_law, sentence_of, shortfall_at
