"""The core: the request of a release, its design, the release itself, and everything that states it.

The public API       calibrate.py, counted.py, risk.py, masks.py, choose.py and recalibrate.py with their options.py;
                     plan.py, year_plan.py
A request            request.py, divided by budget.py among thresholds, each of which has terms.py; rules.py,
                     losses.py, population.py
A design             design.py: tuning.py finds slopes by reference_laws.py and answer_law.py, target_search.py the
                     target rank, promise.py guarantee and privacy loss; expected.py and pilot.py compute what typical
                     scores and samples lead to
From records         steps.py: sources.py, account.py
A release            release.py of thresholds.py, each a threshold.py; fingerprint.py
About a release      description.py, facts.py, remarks.py
Files                documents.py, files.py, published_counts.py
"""

from importlib import import_module
from typing import TYPE_CHECKING

from confide.core import documents
from confide.core.account import Payer, check_payer, entry_checksums, open_account
from confide.core.answer_law import flat_for
from confide.core.budget import Budget, different_levels, exact_shares, levels_of_sides, part_of_failure
from confide.core.calibrate import calibrate, calibrate_sides, is_several, shares_of_sides
from confide.core.choose import CHOICE_ARGUMENTS, Choice, choose_score
from confide.core.counted import calibrate_counts, calibrate_histogram
from confide.core.description import OVERLAP, any_shares
from confide.core.design import histogram_size
from confide.core.documents import Document, load, register_kind
from confide.core.expected import candidates_of, records_needed, terms_of
from confide.core.facts import about_facts, class_list, facts_of, making_section
from confide.core.fingerprint import ModelFingerprint
from confide.core.losses import FALSE_NEGATIVES, MissedAreaLoss, critical_score, kind_asked, limit_text
from confide.core.masks import MaskOptions, TrueAreas, calibrate_areas, calibrate_masks, true_pixels
from confide.core.options import Choices, GroupOptions, Options, refuse_weights, split_options
from confide.core.pilot import OnPilot, Pilot, answered_on_pilot, share_of_pilot
from confide.core.plan import Plan, excess_text, make_plan, plan, plan_of, records_of_design
from confide.core.population import (
    ClassShift,
    Population,
    RecordWeights,
    rounding_text,
    shifted_population,
    weighted_sum,
)
from confide.core.published_counts import PublishedCounts
from confide.core.recalibrate import RENEWED, recalibrate, renewed
from confide.core.reference_laws import law_of, typical_law
from confide.core.release import (
    UNNAMED,
    Release,
    area_of,
    as_release,
    load_release,
    names_among,
    names_for,
    refuse_overlapping,
    reminder_due,
)
from confide.core.remarks import remarks, too_large, uncompared, warn_about
from confide.core.request import ABOUT, FROM_LOGITS, Request
from confide.core.risk import (
    calibrate_false_negatives,
    calibrate_losses,
    critical_thresholds,
    false_negative_thresholds,
)
from confide.core.rules import COMBINATIONS, REQUIREMENTS, check_combinations, check_together, unusual
from confide.core.sources import Batches, GivenCounts, GroupedScores, Source, source_of
from confide.core.steps import prepare, rehearse, release
from confide.core.terms import Terms, typical_of_groups
from confide.core.threshold import Threshold, level_reached, meaning_of_infinity
from confide.core.thresholds import BOTH_SIDES, SIDES, By, Key
from confide.core.tuning import LONGEST, PARTS

if TYPE_CHECKING:
    from confide.core.files import read_request, stated_request
    from confide.core.year_plan import IN_WORDS, RULES, BudgetPlan, PlannedReleases, best_of, budget_plan, by_rules

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
    "year_plan": ("IN_WORDS", "RULES", "BudgetPlan", "PlannedReleases", "best_of", "budget_plan", "by_rules"),
    "files": ("read_request", "stated_request"),
}


def __getattr__(name: str) -> object:
    for module, names in _LATER.items():
        if name in names:
            return getattr(import_module(f"confide.core.{module}"), name)
    raise AttributeError(f"module 'confide.core' has no attribute {name!r}")
