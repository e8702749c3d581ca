"""One record to one number, the conformity score: larger means stranger."""

from confide.scores.classification import (
    all_scores,
    aps_score,
    class_score,
    lac_score,
    margin_score,
    raps_score,
    saps_score,
    top_k_score,
)
from confide.scores.kinds import score_name
from confide.scores.regression import (
    absolute_residual_score,
    cqr_score,
    gamma_score,
    interval_score,
    normalised_residual_score,
)
from confide.scores.tuning import RapsParameters, tune_raps

__all__ = [
    "RapsParameters",
    "absolute_residual_score",
    "all_scores",
    "aps_score",
    "class_score",
    "cqr_score",
    "gamma_score",
    "interval_score",
    "lac_score",
    "margin_score",
    "normalised_residual_score",
    "raps_score",
    "saps_score",
    "score_name",
    "top_k_score",
    "tune_raps",
]
