"""Records and a request -> a release: the calls that join candidates, counts, terms, ledger and mechanism.

request.py    `Request`: what is asked, checked once; its parts, one for each threshold
release.py    `Source`, and `release()`, the only way from records to a release
prepared.py   what a request costs; and then compared, charged, drawn and stated
calibrate.py  the calls for scores and counts; risk.py, masks.py: for losses; recalibrate.py: for an earlier release
"""

from confide.calibration.calibrate import (
    calibrate,
    calibrate_groups,
    calibrate_histogram,
    calibrate_levels,
    calibrate_sides,
    shares_of_sides,
)
from confide.calibration.claims import false_claims_losses
from confide.calibration.masks import calibrate_areas, calibrate_masks, missed_area, true_pixels
from confide.calibration.noisy_labels import (
    LabelRequest,
    NoisyLabelCounts,
    asked_of_labels,
    calibrate_noisy_labels,
    names_beside,
    warn_of_label_release,
)
from confide.calibration.options import Options, split_options
from confide.calibration.parts import (
    ThresholdRequest,
    different_levels,
    divide_budget,
    exact_shares,
    part_of_failure,
    typical_of_groups,
)
from confide.calibration.prepared import NOBODY, Payer, PreparedRelease, prepare
from confide.calibration.randomised_labels import RandomisedLabels, randomise_labels
from confide.calibration.recalibrate import recalibrate
from confide.calibration.release import Counted, Scores, Source, release, weighted_sum
from confide.calibration.request import SIDES, By, Request
from confide.calibration.risk import (
    calibrate_false_negatives,
    calibrate_losses,
    critical_thresholds,
    false_negative_thresholds,
)

__all__ = [
    "NOBODY",
    "SIDES",
    "By",
    "Counted",
    "LabelRequest",
    "NoisyLabelCounts",
    "Options",
    "Payer",
    "PreparedRelease",
    "RandomisedLabels",
    "Request",
    "Scores",
    "Source",
    "ThresholdRequest",
    "asked_of_labels",
    "calibrate",
    "calibrate_areas",
    "calibrate_false_negatives",
    "calibrate_groups",
    "calibrate_histogram",
    "calibrate_levels",
    "calibrate_losses",
    "calibrate_masks",
    "calibrate_noisy_labels",
    "calibrate_sides",
    "critical_thresholds",
    "different_levels",
    "divide_budget",
    "exact_shares",
    "false_claims_losses",
    "false_negative_thresholds",
    "missed_area",
    "names_beside",
    "part_of_failure",
    "prepare",
    "randomise_labels",
    "recalibrate",
    "release",
    "shares_of_sides",
    "split_options",
    "true_pixels",
    "typical_of_groups",
    "warn_of_label_release",
    "weighted_sum",
]  # fmt: skip


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)
