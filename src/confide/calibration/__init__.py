"""Scores or counts -> releases: the calls that join candidates, counts, plan, ledger and mechanism."""

from confide.calibration.calibrate import calibrate
from confide.calibration.claims import false_claims_losses
from confide.calibration.counted import calibrate_histogram
from confide.calibration.groups import calibrate_groups, price_groups
from confide.calibration.levels import calibrate_levels, price_levels
from confide.calibration.masks import calibrate_areas, calibrate_masks, missed_area, true_pixels
from confide.calibration.noisy_labels import (
    LabelRequest,
    NoisyLabelCounts,
    asked_of_labels,
    calibrate_noisy_labels,
    names_beside,
    warn_of_label_release,
)
from confide.calibration.options import OF_CALIBRATE, check_options
from confide.calibration.priced import PricedRelease
from confide.calibration.randomised_labels import RandomisedLabels, randomise_labels
from confide.calibration.recalibrate import recalibrate
from confide.calibration.renewal import Renewal
from confide.calibration.risk import (
    calibrate_false_negatives,
    calibrate_losses,
    critical_thresholds,
    false_negative_thresholds,
    price_risk,
)
from confide.calibration.shares import different_levels, divide_budget, exact_shares, part_of_failure, typical_of_groups
from confide.calibration.shifted import population_of, refuse_weights, weighted_counts, weighted_sum
from confide.calibration.sides import calibrate_sides, price_sides, suited_for_sides
from confide.calibration.suited import suited_candidates, suited_for_levels
from confide.calibration.threshold import price_threshold

__all__ = [
    "OF_CALIBRATE", "LabelRequest", "NoisyLabelCounts", "PricedRelease", "RandomisedLabels", "Renewal",
    "asked_of_labels", "calibrate", "calibrate_areas", "calibrate_false_negatives", "calibrate_groups",
    "calibrate_histogram", "calibrate_levels", "calibrate_losses", "calibrate_masks", "calibrate_noisy_labels",
    "calibrate_sides", "check_options", "critical_thresholds", "different_levels", "divide_budget", "exact_shares",
    "false_claims_losses", "false_negative_thresholds", "missed_area", "names_beside", "part_of_failure",
    "population_of", "price_groups", "price_levels", "price_risk", "price_sides", "price_threshold",
    "randomise_labels", "recalibrate", "refuse_weights", "suited_candidates", "suited_for_levels",
    "suited_for_sides", "true_pixels", "typical_of_groups", "warn_of_label_release", "weighted_counts",
    "weighted_sum",
]  # fmt: skip


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)
