"""The core: what is asked of a release, its design, the release itself, and everything that states it.

Functions of the public API live in calibrate.py, risk.py, recalibrate.py, given_counts.py, choose.py, plan.py.
"""

from confide.core import documents, forms
from confide.core.account import NO_PAYER, Payer
from confide.core.budget_plan import IN_WORDS, RULES, BudgetPlan, PlannedReleases, best_of, budget_plan, by_rules
from confide.core.calibrate import (
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
from confide.core.calibration import (
    FALSE_NEGATIVES,
    Calibration,
    Release,
    as_release,
    critical_score,
    kind_asked,
    load_release,
    meaning_of_infinity,
    parts_of,
    reminder_due,
    threshold_text,
)
from confide.core.choice import LONGEST, PARTS, answer_law, flat_for, law_of, sizes_of
from confide.core.choose import Choice, choose_score
from confide.core.design import Design, design
from confide.core.divisions import FORMS, Division
from confide.core.documents import Document, load, register_kind
from confide.core.expected import (
    OnPilot,
    Pilot,
    answered_on_pilot,
    needed_text,
    share_of_pilot,
    typical_answer,
    typical_law,
)
from confide.core.facts import about_facts, facts_of, making_facts, making_section
from confide.core.fingerprint import ModelFingerprint
from confide.core.given_counts import calibrate_counts
from confide.core.metadata import Metadata, about_of, classes_of, names_for
from confide.core.needed import candidates_of, most_needed, own_loss, records_needed, records_of_design, terms_of
from confide.core.plan import Plan, excess_text, make_plan, needed_by_scores, plan
from confide.core.population import (
    POPULATION,
    ClassShift,
    Population,
    RecordWeights,
    rounding_text,
    shifted_population,
)
from confide.core.published_counts import CountsCalibration, PublishedCounts
from confide.core.recalibrate import recalibrate
from confide.core.release import prepare, rehearse, release
from confide.core.request import (
    SIDES,
    By,
    Key,
    Request,
    different_levels,
    exact_shares,
    levels_of_sides,
    part_of_failure,
)
from confide.core.risk import (
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
from confide.core.rules import (
    ALONE,
    COMBINATIONS,
    TOGETHER,
    check_combinations,
    check_together,
    unusual,
)
from confide.core.several import (
    OVERLAP,
    GroupCalibration,
    LevelCalibration,
    MissedAreaLoss,
    OverlappingCalibration,
    RiskCalibration,
    SidesCalibration,
    any_shares,
    area_of,
    check_bound,
    refuse_overlapping,
)
from confide.core.sources import Batches, GivenCounts, Scores, Source, first_and_all, weighted_sum
from confide.core.terms import CHOICES, Budget, Choices, Terms, typical_of_groups
from confide.core.texts import remark, remarks, too_large, uncompared, warn_about, warn_of_choices
from confide.core.words import (
    ABOUT,
    FROM_LOGITS,
    UNNAMED,
    WORDS,
    check_about,
    class_list,
    names_among,
)

__all__ = [
    "BudgetPlan",
    "Calibration",
    "Choices",
    "ClassShift",
    "CountsCalibration",
    "Document",
    "GroupCalibration",
    "LevelCalibration",
    "ModelFingerprint",
    "OnPilot",
    "OverlappingCalibration",
    "Pilot",
    "Plan",
    "PlannedReleases",
    "PublishedCounts",
    "RecordWeights",
    "Release",
    "RiskCalibration",
    "SidesCalibration",
    "Terms",
    "budget_plan",
    "load",
    "load_release",
    "plan",
    "records_needed",
    "remarks",
]


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
