"""Prediction sets with a finite-sample coverage guarantee and a differential-privacy guarantee.

    scores -> histogram over public candidates -> private selection -> Calibration -> prediction sets

Examples
--------
>>> import numpy as np, confide
>>> rng = np.random.default_rng(0)
>>> probabilities, labels = rng.dirichlet(np.ones(3), 2000), rng.integers(0, 3, 2000)
>>> scores = confide.lac_score(probabilities, labels)
>>> calibration = confide.calibrate(scores, alpha=0.1, epsilon=1.0, score="lac")
>>> sets = confide.predict_set(probabilities[:5], calibration)
>>> sets.mask.shape
(5, 3)
"""

from typing import TYPE_CHECKING, Any

from confide.calibrate import calibrate, calibrate_histogram
from confide.calibration import Calibration
from confide.candidates import Candidates
from confide.errors import (
    BudgetError,
    ConfideError,
    CoverageWarning,
    FormatError,
    InputError,
    InputTypeError,
    LedgerError,
)
from confide.guarantee.statement import Guarantee
from confide.histogram import ScoreHistogram
from confide.metrics import CoverageEstimate, coverage
from confide.planning import Plan, plan
from confide.privacy import PrivacyStatement
from confide.scores import absolute_residual_score, lac_score
from confide.sets import PredictionSets, predict_interval, predict_set

if TYPE_CHECKING:
    from confide.ledger import Dataset, Ledger

__all__ = [
    "BudgetError",
    "Calibration",
    "Candidates",
    "ConfideError",
    "CoverageEstimate",
    "CoverageWarning",
    "Dataset",
    "FormatError",
    "Guarantee",
    "InputError",
    "InputTypeError",
    "Ledger",
    "LedgerError",
    "Plan",
    "PredictionSets",
    "PrivacyStatement",
    "ScoreHistogram",
    "absolute_residual_score",
    "calibrate",
    "calibrate_histogram",
    "coverage",
    "lac_score",
    "plan",
    "predict_interval",
    "predict_set",
]


def __getattr__(name: str) -> Any:
    """The ledger, imported when it is first asked for."""
    if name in ("Dataset", "Ledger"):
        import confide.ledger

        return getattr(confide.ledger, name)
    raise AttributeError(f"module 'confide' has no attribute {name!r}")
