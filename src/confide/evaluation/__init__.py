"""Evaluate a release on labelled records: coverage and sizes, by class, size, group and level.

counts.py             counts of records by part and outcome; names of groups
parts.py              Part: coverage of a part of the records, private or not; the least covered part of each kind
values.py             Evaluation, LevelEvaluation: text, JSON, and a reader that recomputes every number
evaluate.py           counts at each level of a release: evaluate_sets, evaluate_intervals, evaluate_scores
metrics.py            coverage of sets and intervals in all, by class, by group, by set size
masks.py              missed area and size of masks

Private evaluations, which add noise to the counts:

intervals.py          public lists of parts; simultaneous intervals from noisy counts
count_query.py        the public query, and the privacy of its noisy counts
private_evaluation.py PrivateEvaluation: findings from noisy counts, its files
private_release.py    order of a private evaluation: check, count, charge, draw, store
"""

from typing import TypeAlias

from confide.evaluation.count_query import CountPrivacy
from confide.evaluation.counts import TooManyGroupsError, too_many_groups
from confide.evaluation.evaluate import (
    IntervalTally,
    ScoreTally,
    SetTally,
    division_of,
    evaluate_intervals,
    evaluate_scores,
    evaluate_sets,
    evaluation_from_counts,
    fingerprint,
)
from confide.evaluation.intervals import PrivateFinding, PrivateMean, size_parts
from confide.evaluation.masks import MaskEvaluation, area_counts, evaluate_masks, evaluation_of_areas, missed_share
from confide.evaluation.metrics import (
    CoverageTable,
    class_coverage,
    coverage,
    false_negative_rate,
    group_coverage,
    size_coverage,
)
from confide.evaluation.parts import CONFIDENCE, Part, WorstPart, format_interval_ends, interval_text, surely_below
from confide.evaluation.private_evaluation import PrivateEvaluation, load_evaluation, private_facts
from confide.evaluation.private_release import PARTS, PrivateRequest, answer, evaluate_arrays, private_statements
from confide.evaluation.values import (
    MOST_EXAMPLES,
    NOT_PRIVATE,
    Evaluation,
    Example,
    LevelEvaluation,
    described,
    promise_text,
    read_evaluation,
    total_facts,
    worst_facts,
    worst_parts,
)

PrivateCoverage: TypeAlias = Part
PrivateShare: TypeAlias = Part
Subgroup: TypeAlias = Part

__all__ = [
    "CoverageTable",
    "Evaluation",
    "Example",
    "LevelEvaluation",
    "MaskEvaluation",
    "Part",
    "PrivateCoverage",
    "PrivateEvaluation",
    "PrivateFinding",
    "PrivateMean",
    "PrivateRequest",
    "PrivateShare",
    "Subgroup",
    "TooManyGroupsError",
    "WorstPart",
    "class_coverage",
    "coverage",
    "evaluate_intervals",
    "evaluate_masks",
    "evaluate_scores",
    "evaluate_sets",
    "false_negative_rate",
    "group_coverage",
    "load_evaluation",
    "size_coverage",
    "worst_parts",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
