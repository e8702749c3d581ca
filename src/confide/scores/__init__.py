"""Nonconformity scores: one record to one number, larger means less conforming."""

from confide.scores.class_sets import set_mask, smallest_probability
from confide.scores.classification import (
    all_scores,
    aps_score,
    class_score,
    lac_score,
    margin_score,
    own_class_scores,
    raps_score,
    saps_score,
    top_k_score,
)
from confide.scores.kinds import ScoreKind, unregistered
from confide.scores.library import LIBRARY
from confide.scores.named_scores import NamedScores, name_of_scores
from confide.scores.names import HOTTEST, kind_of_task, score_kind, score_name
from confide.scores.ranked import magic
from confide.scores.regression import (
    absolute_residual_score,
    cqr_score,
    gamma_score,
    interval_ends,
    interval_score,
    normalised_residual_score,
    refuse_infinite,
)
from confide.scores.score import SCORES, Score, register_score
