"""Estimators for scikit-learn: trained, calibrated privately on held-out records, and predicting sets or intervals.

No calibration record, score or count is stored: `calibration_` is the only result of calibrating. The training records
of the model are not protected.
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
    return sorted(__all__)
