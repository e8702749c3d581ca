"""Evaluate a release on labelled records: coverage and sizes, by class, size, group and level.

query.py       the public question: outcomes, and partitions in tables; partition.py divides records into parts,
               count_privacy.py states the privacy of noisy counts
parts.py       Part: coverage of a part of the records; CoverageTable: the parts of one kind
means.py       means of sizes and widths, from sums or from noisy shares
consistency.py Example: a record that is shown; counts without noise agree with each other
evaluation.py  Evaluation: counts with their question; Finding: what they state about one promise
files.py       evaluations as JSON
tally.py       comparison of records with a release, and their counts
evaluate.py    evaluate_sets, evaluate_intervals, evaluate_scores; the order of a private evaluation
metrics.py     coverage of sets and intervals in all, by class, by group, by set size
masks.py       missed area and size of masks
"""

from confide.evaluation.consistency import Example
from confide.evaluation.evaluate import (
    PARTS,
    PrivateRequest,
    answer,
    evaluate_arrays,
    evaluate_intervals,
    evaluate_scores,
    evaluate_sets,
    exact_query,
)
from confide.evaluation.evaluation import NOT_PRIVATE, Evaluation, Finding
from confide.evaluation.masks import area_counts, evaluate_masks, evaluation_of_areas
from confide.evaluation.metrics import class_coverage, coverage, false_negative_rate, group_coverage, size_coverage
from confide.evaluation.partition import Partition, size_parts
from confide.evaluation.parts import CoverageTable, Part
from confide.evaluation.query import CountPrivacy, CountQuery
from confide.evaluation.tally import (
    IntervalOutcomes,
    RecordComparison,
    ScoreOutcomes,
    SetOutcomes,
    Tally,
    TooManyGroupsError,
    too_many_groups,
)
from confide.sets import CoverageEstimate

__all__ = [
    "CountQuery",
    "CoverageEstimate",
    "CoverageTable",
    "Evaluation",
    "Example",
    "Finding",
    "Part",
    "Partition",
    "PrivateRequest",
    "TooManyGroupsError",
    "class_coverage",
    "coverage",
    "evaluate_intervals",
    "evaluate_masks",
    "evaluate_scores",
    "evaluate_sets",
    "false_negative_rate",
    "group_coverage",
    "size_coverage",
]


def __dir__() -> list[str]:
    return sorted(__all__)
