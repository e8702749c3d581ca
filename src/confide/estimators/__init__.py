"""A model and records come in; estimators leave: trained, calibrated privately on held-out records, predicting sets.

The constructor stores its parameters untouched; what is learned ends in an underscore. No calibration record, score or
count is kept: `calibration_` is all that calibrating leaves behind. The training records of the model are not
protected. The conformity score is the parameter `conformity_score`: scikit-learn keeps a parameter as an attribute of
its own name, and `score` is the method by which `cross_val_score` and others rate every estimator.
"""

from confide.support import needs_extra

with needs_extra("an estimator", "standard"):
    from confide.estimators.base import SecondReleaseWarning
    from confide.estimators.classifier import PrivateConformalClassifier
    from confide.estimators.pipelines import FittedStepWarning, pipeline_intervals, pipeline_sets
    from confide.estimators.regressor import PrivateConformalRegressor

__all__ = [
    "FittedStepWarning", "PrivateConformalClassifier", "PrivateConformalRegressor", "SecondReleaseWarning",
    "pipeline_intervals", "pipeline_sets",
]  # fmt: skip


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)
