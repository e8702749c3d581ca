"""One record to one number, the conformity score: larger means stranger."""

from confide.scores.classification import lac_score
from confide.scores.regression import absolute_residual_score

__all__ = ["absolute_residual_score", "lac_score"]
