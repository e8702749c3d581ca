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

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from confide.arrays import ExperimentalUniforms
    from confide.calibration import (
        calibrate,
        calibrate_false_negatives,
        calibrate_groups,
        calibrate_histogram,
        calibrate_levels,
        calibrate_losses,
        calibrate_masks,
        calibrate_noisy_labels,
        calibrate_sides,
        false_claims_losses,
        randomise_labels,
        recalibrate,
    )
    from confide.candidates import Candidates
    from confide.checkup import Checkup, doctor
    from confide.counting import ScoreHistogram
    from confide.errors import (
        BudgetError,
        ConfideDeprecationWarning,
        ConfideError,
        CoverageWarning,
        EarlierReleaseWarning,
        FormatError,
        InputError,
        InputTypeError,
        LedgerError,
        OtherDataError,
        OtherDataWarning,
        RetrainedWarning,
        SimilarNameWarning,
    )
    from confide.estimators import (
        PrivateConformalClassifier,
        PrivateConformalRegressor,
        pipeline_intervals,
        pipeline_sets,
    )
    from confide.evaluation import (
        CoverageTable,
        Evaluation,
        LevelEvaluation,
        MaskEvaluation,
        PrivateEvaluation,
        class_coverage,
        coverage,
        evaluate_intervals,
        evaluate_masks,
        evaluate_scores,
        evaluate_sets,
        false_negative_rate,
        group_coverage,
        load_evaluation,
        size_coverage,
    )
    from confide.guarantee import Guarantee
    from confide.ledger import Dataset, Ledger, Schedule, budget_plan
    from confide.mechanisms import PrivacyStatement
    from confide.planning import ClassShift, Plan, plan
    from confide.plots import (
        plot_coverage,
        plot_intervals,
        plot_price,
        plot_sizes,
        plot_thresholds,
        plot_watch,
    )
    from confide.releases import (
        Calibration,
        GroupCalibration,
        LevelCalibration,
        NoisyLabelCalibration,
        RiskCalibration,
        SidesCalibration,
        load,
    )
    from confide.reports import report
    from confide.scores import (
        absolute_residual_score,
        all_scores,
        aps_score,
        class_score,
        cqr_score,
        gamma_score,
        interval_score,
        lac_score,
        margin_score,
        normalised_residual_score,
        raps_score,
        saps_score,
        score_name,
        top_k_score,
        tune_raps,
        tune_temperature,
    )
    from confide.sets import (
        CoverageEstimate,
        PredictionIntervals,
        PredictionSets,
        predict_interval,
        predict_labels,
        predict_masks,
        predict_set,
    )
    from confide.tables import evaluate
    from confide.watching import Watch, WatchPower, watch, watch_power

    __version__: str

__all__ = [
    "BudgetError", "Calibration", "Candidates", "Checkup", "ClassShift", "ConfideDeprecationWarning",
    "ConfideError", "CoverageEstimate", "CoverageTable", "CoverageWarning", "Dataset", "EarlierReleaseWarning",
    "Evaluation", "ExperimentalUniforms", "FormatError", "GroupCalibration", "Guarantee", "InputError",
    "InputTypeError", "Ledger", "LedgerError", "LevelCalibration", "LevelEvaluation", "MaskEvaluation",
    "NoisyLabelCalibration", "OtherDataError", "OtherDataWarning", "Plan", "PredictionIntervals", "PredictionSets",
    "PrivacyStatement", "PrivateConformalClassifier", "PrivateConformalRegressor", "PrivateEvaluation",
    "RetrainedWarning", "RiskCalibration", "Schedule", "ScoreHistogram", "SidesCalibration", "SimilarNameWarning",
    "Watch", "WatchPower", "absolute_residual_score", "all_scores", "aps_score", "budget_plan", "calibrate",
    "calibrate_false_negatives", "calibrate_groups", "calibrate_histogram", "calibrate_levels", "calibrate_losses",
    "calibrate_masks", "calibrate_noisy_labels", "calibrate_sides", "class_coverage", "class_score", "coverage",
    "cqr_score", "doctor", "evaluate", "evaluate_intervals", "evaluate_masks", "evaluate_scores", "evaluate_sets",
    "false_claims_losses", "false_negative_rate", "gamma_score", "group_coverage", "interval_score", "lac_score",
    "load", "load_evaluation", "margin_score", "normalised_residual_score", "pipeline_intervals", "pipeline_sets",
    "plan", "plot_coverage", "plot_intervals", "plot_price", "plot_sizes", "plot_thresholds", "plot_watch",
    "predict_interval", "predict_labels", "predict_masks", "predict_set", "randomise_labels", "raps_score",
    "recalibrate", "report", "saps_score", "score_name", "size_coverage", "top_k_score", "tune_raps",
    "tune_temperature", "watch", "watch_power",
]  # fmt: skip

_ROOMS = {
    "arrays": "ExperimentalUniforms",
    "calibration": (
        "calibrate calibrate_false_negatives calibrate_groups calibrate_histogram calibrate_levels "
        "calibrate_losses calibrate_masks calibrate_noisy_labels calibrate_sides false_claims_losses randomise_labels "
        "recalibrate"
    ),
    "candidates": "Candidates",
    "checkup": "Checkup doctor",
    "counting": "ScoreHistogram",
    "errors": (
        "BudgetError ConfideDeprecationWarning ConfideError CoverageWarning EarlierReleaseWarning FormatError "
        "InputError InputTypeError LedgerError OtherDataError OtherDataWarning RetrainedWarning SimilarNameWarning"
    ),
    "estimators": "PrivateConformalClassifier PrivateConformalRegressor pipeline_intervals pipeline_sets",
    "evaluation": (
        "CoverageTable Evaluation LevelEvaluation MaskEvaluation PrivateEvaluation class_coverage "
        "coverage evaluate_intervals evaluate_masks evaluate_scores evaluate_sets false_negative_rate group_coverage "
        "load_evaluation size_coverage"
    ),
    "guarantee": "Guarantee",
    "ledger": "Dataset Ledger Schedule budget_plan",
    "mechanisms": "PrivacyStatement",
    "planning": "ClassShift Plan plan",
    "plots": "plot_coverage plot_intervals plot_price plot_sizes plot_thresholds plot_watch",
    "releases": (
        "Calibration GroupCalibration LevelCalibration NoisyLabelCalibration RiskCalibration SidesCalibration load"
    ),
    "reports": "report",
    "scores": (
        "absolute_residual_score all_scores aps_score class_score cqr_score gamma_score interval_score "
        "lac_score margin_score normalised_residual_score raps_score saps_score score_name top_k_score "
        "tune_raps tune_temperature"
    ),
    "sets": (
        "CoverageEstimate PredictionIntervals PredictionSets predict_interval predict_labels predict_masks predict_set"
    ),
    "watching": "Watch WatchPower watch watch_power",
    "tables": "evaluate",
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """A name is imported from its room, and a room with all that it needs, when it is first asked for."""
    if name == "__version__":
        from importlib.metadata import version

        found: Any = version("confide")
    elif name in _ROOM_OF:
        found = getattr(import_module(f"confide.{_ROOM_OF[name]}"), name)
    elif name in _ROOMS:
        found = import_module(f"confide.{name}")
    else:
        raise AttributeError(f"module 'confide' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted([*__all__, "__version__"])
