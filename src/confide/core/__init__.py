"""The core: what is asked of a release, its design, the release itself, and everything that states it.

Functions of the public API live in calibrate.py, risk.py, recalibrate.py, given_counts.py, choose.py, plan.py.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from confide.core import documents
from confide.core.account import Payer, check_payer, entry_checksums
from confide.core.calibrate import (
    Options,
    calibrate,
    calibrate_histogram,
    calibrate_sides,
    is_several,
    refuse_weights,
    shares_of_sides,
    split_options,
)
from confide.core.choice import LONGEST, PARTS, flat_for, histogram_size, law_of, typical_law
from confide.core.choose import CHOICE_ARGUMENTS, Choice, choose_score
from confide.core.documents import Document, load, register_kind
from confide.core.expected import (
    OnPilot,
    Pilot,
    answered_on_pilot,
    chance_text,
    share_of_pilot,
)
from confide.core.facts import about_facts, facts_of, making_section
from confide.core.fingerprint import ModelFingerprint
from confide.core.given_counts import calibrate_counts
from confide.core.keys import SIDES, By, Key
from confide.core.losses import FALSE_NEGATIVES, MissedAreaLoss, critical_score, kind_asked, limit_text
from confide.core.needed import candidates_of, plan_of, records_needed, records_of_design, terms_of
from confide.core.plan import Plan, excess_text, make_plan, needed_by_scores, plan
from confide.core.population import ClassShift, Population, RecordWeights, rounding_text, shifted_population
from confide.core.published_counts import PublishedCounts
from confide.core.recalibrate import RENEWED, recalibrate, renewed
from confide.core.release import (
    OVERLAP,
    Release,
    any_shares,
    area_of,
    as_release,
    load_release,
    names_for,
    refuse_overlapping,
    reminder_due,
)
from confide.core.request import Request, different_levels, exact_shares, levels_of_sides, part_of_failure
from confide.core.risk import (
    MaskOptions,
    calibrate_areas,
    calibrate_false_negatives,
    calibrate_losses,
    calibrate_masks,
    critical_thresholds,
    false_negative_thresholds,
    true_pixels,
)
from confide.core.rules import (
    ALONE,
    COMBINATIONS,
    check_combinations,
    check_together,
    unusual,
)
from confide.core.sources import Batches, GivenCounts, Scores, first_and_all, weighted_sum
from confide.core.steps import prepare, rehearse, release
from confide.core.terms import Budget, Choices, Terms, typical_of_groups
from confide.core.texts import remarks, too_large, uncompared, warn_about
from confide.core.threshold import Threshold, level_reached, meaning_of_infinity
from confide.core.words import (
    ABOUT,
    FROM_LOGITS,
    UNNAMED,
    class_list,
    names_among,
)

if TYPE_CHECKING:
    from confide.core.budgets import IN_WORDS, RULES, BudgetPlan, PlannedReleases, best_of, budget_plan, by_rules
    from confide.core.files import read_request, stated_request

__all__ = [
    "BudgetPlan",
    "Choices",
    "ClassShift",
    "Document",
    "ModelFingerprint",
    "OnPilot",
    "Pilot",
    "Plan",
    "PlannedReleases",
    "PublishedCounts",
    "RecordWeights",
    "Release",
    "Terms",
    "Threshold",
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


# Modules that are imported when they are first used: a calibration needs neither ledgers nor msgspec.
_LATER = {
    "budgets": ("IN_WORDS", "RULES", "BudgetPlan", "PlannedReleases", "best_of", "budget_plan", "by_rules"),
    "files": ("read_request", "stated_request"),
}


def __getattr__(name: str) -> object:
    for module, names in _LATER.items():
        if name in names:
            return getattr(import_module(f"confide.core.{module}"), name)
    raise AttributeError(f"module 'confide.core' has no attribute {name!r}")
