"""Calibration: compute releases from records and a request.

request.py       `Request`: all public parameters, validated once; one part for each threshold
threshold_request.py  the part for one threshold, and its shares of level, budget and failure probability
renewal.py       the request of an earlier release, which a renewal repeats
sources.py       `Source`: records, wherever they are stored, as counts
release.py       `release()`, the only function that makes a release: price, compare, charge, draw
calibrate.py     functions for scores and counts; risk.py: functions for losses, masks and claims
choose.py        the private choice of a model or score on a share of the records
recalibrate.py   the function that renews an earlier release
published_counts.py  the function that calibrates with noisy counts that another engine made
"""

from confide.calibration.calibrate import (
    LedgerOptions,
    Options,
    calibrate,
    calibrate_groups,
    calibrate_histogram,
    calibrate_levels,
    calibrate_sides,
    shares_of_sides,
    split_options,
)
from confide.calibration.choose import Choice, choose_score
from confide.calibration.published_counts import calibrate_counts
from confide.calibration.recalibrate import recalibrate
from confide.calibration.release import (
    NO_PAYER,
    Payer,
    PreparedRelease,
    prepare,
    prepare_thresholds,
    release,
)
from confide.calibration.request import SIDES, By, Request
from confide.calibration.risk import (
    MaskOptions,
    calibrate_areas,
    calibrate_false_negatives,
    calibrate_losses,
    calibrate_masks,
    critical_thresholds,
    false_negative_thresholds,
    missed_area,
    true_pixels,
)
from confide.calibration.sources import Batches, GivenCounts, Scores, Source, first_and_all, weighted_sum
from confide.calibration.threshold_request import (
    ThresholdRequest,
    different_levels,
    divide_budget,
    exact_shares,
    levels_of_sides,
    most_groups,
    part_of_failure,
)
