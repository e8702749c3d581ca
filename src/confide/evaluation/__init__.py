"""A release and labelled records come in; coverage and sizes leave, by class, size, group and level. Not private.

metrics.py         coverage with its exact interval, as a whole, by class, by group, by set size
result.py          Evaluation, LevelEvaluation: what is counted, as a value and as JSON
reading.py         evaluations read from JSON, every number computed again
release_parts.py   what an evaluation states of its release, which it names by its SHA-256
tally.py           counting batch by batch, level by level
set_tally.py       evaluate_sets; covered_tally.py: evaluate_intervals and evaluate_scores
subgroups.py       groups without thresholds of their own
worst.py           who is covered least, and who surely less than was promised
plots.py           plots in one call
"""

from confide.evaluation.covered_tally import IntervalTally, ScoreTally, evaluate_intervals, evaluate_scores
from confide.evaluation.metrics import (
    CoverageEstimate,
    CoverageTable,
    class_coverage,
    coverage,
    false_negative_rate,
    group_coverage,
    size_coverage,
)
from confide.evaluation.plots import plot_coverage, plot_intervals, plot_sizes
from confide.evaluation.reading import load_evaluation, read_evaluation
from confide.evaluation.release_parts import division_of, fingerprint, promised_coverage
from confide.evaluation.result import CONFIDENCE, MOST_EXAMPLES, Evaluation, Example, LevelEvaluation, Subgroup
from confide.evaluation.set_tally import SetTally, evaluate_sets, evaluation_from_counts
from confide.evaluation.worst import WorstPart, surely_below, worst_parts

__all__ = [
    "CONFIDENCE", "MOST_EXAMPLES", "CoverageEstimate", "CoverageTable", "Evaluation", "Example", "IntervalTally",
    "LevelEvaluation", "ScoreTally", "SetTally", "Subgroup", "WorstPart", "class_coverage", "coverage", "division_of",
    "evaluate_intervals", "evaluate_scores", "evaluate_sets", "evaluation_from_counts", "false_negative_rate",
    "fingerprint", "group_coverage", "load_evaluation", "plot_coverage", "plot_intervals", "plot_sizes",
    "promised_coverage", "read_evaluation", "size_coverage", "surely_below", "worst_parts",
]  # fmt: skip
