"""Evaluate a release on labelled records: coverage and sizes, by class, size, group and level.

statements.py    what is promised: by a release as a whole, at each level, about each end of intervals
partitions.py    `Partition`: the public parts into which records are divided
query.py         the public question: partitions, statements and outcomes, and its privacy
parts.py         `Part`: coverage of a part of the records; `CoverageTable`: the parts of one kind
count_tables.py  counts as arrays: whether they agree, and what they state about each part
mean_sizes.py    means of set sizes and interval widths, also from noisy shares of bins
finding.py       `Finding`: what the counts state about one promise
evaluation.py    `Evaluation`: counts with their question, as a value and as a file
comparison.py    comparison of records with a release: which sets, intervals or scores cover
tally.py         counts of the outcomes
private.py       `PrivateRequest`: the query and the order of a private evaluation
evaluate.py      evaluation of arrays: `evaluate_sets`, `evaluate_intervals`, `evaluate_scores`, `evaluate_masks`
metrics.py       coverage of sets and intervals in all, by class, by group, by set size
"""

from confide.evaluation.comparison import (
    IntervalOutcomes,
    LabelledRecords,
    RecordComparison,
    ScoreOutcomes,
    SetOutcomes,
)
from confide.evaluation.count_tables import CountTables
from confide.evaluation.evaluate import (
    ArrayOptions,
    area_counts,
    evaluate_arrays,
    evaluate_intervals,
    evaluate_masks,
    evaluate_scores,
    evaluate_sets,
    evaluation_of_areas,
    exact_query,
)
from confide.evaluation.evaluation import NOT_PRIVATE, Evaluation
from confide.evaluation.finding import Finding
from confide.evaluation.metrics import class_coverage, coverage, false_negative_rate, group_coverage, size_coverage
from confide.evaluation.partitions import Partition, size_names, size_parts
from confide.evaluation.parts import CoverageTable, Part
from confide.evaluation.private import PARTS, PrivateRequest, answer
from confide.evaluation.query import CountPrivacy, CountQuery
from confide.evaluation.tally import Tally, TooManyGroupsError, too_many_groups
from confide.sets import CoverageEstimate

__all__ = [
    "CountQuery", "CoverageEstimate", "CoverageTable", "Evaluation", "Finding", "Part", "Partition",
    "PrivateRequest", "TooManyGroupsError", "class_coverage", "coverage", "evaluate_intervals", "evaluate_masks",
    "evaluate_scores", "evaluate_sets", "false_negative_rate", "group_coverage", "size_coverage",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
