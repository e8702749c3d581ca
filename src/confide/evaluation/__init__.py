"""A release and labelled records come in; coverage and sizes leave, by class, size, group and level.

As they are, which is not private:

metrics.py         coverage as a whole, by class, by group, by set size
parts.py           a part of the records: a class, a group, a set size, an end
result.py          Evaluation, LevelEvaluation: what is counted, as a value and as JSON
reading.py         evaluations read from JSON, every number computed again
release_parts.py   what an evaluation states of its release, which it names by its SHA-256
tally.py           counting batch by batch, level by level
set_tally.py       evaluate_sets; covered_tally.py: evaluate_intervals and evaluate_scores
masks.py           MaskEvaluation: missed area and size of the masks of images
subgroups.py       groups without thresholds of their own
words.py           what is printed
worst.py           who is covered least, and who surely less than was promised

And with noise, which is:

private.py            the public question, PrivateEvaluation
private_parts.py      public lists of parts, and how they share a budget
private_counts.py     records to cells, cells to noisy counts
private_findings.py   noisy counts to intervals that hold all at once
private_release.py    what is asked, charged before it is drawn; private_arrays.py: of arrays
private_json.py       files, in which every number is computed again; private_words.py: what is printed
"""

from confide.evaluation.covered_tally import IntervalTally, ScoreTally, evaluate_intervals, evaluate_scores
from confide.evaluation.masks import MaskEvaluation, area_counts, evaluate_masks, evaluation_of_areas, missed_share
from confide.evaluation.metrics import (
    CoverageTable,
    class_coverage,
    coverage,
    false_negative_rate,
    group_coverage,
    size_coverage,
)
from confide.evaluation.parts import CONFIDENCE, Subgroup
from confide.evaluation.private import PrivateEvaluation
from confide.evaluation.private_arrays import evaluate_arrays
from confide.evaluation.private_findings import PrivateCoverage, PrivateFinding, PrivateMean, PrivateShare
from confide.evaluation.private_parts import size_parts
from confide.evaluation.private_release import PARTS, Asking, answer, private_statements
from confide.evaluation.private_words import interval_text, outwards
from confide.evaluation.reading import load_evaluation, read_evaluation
from confide.evaluation.release_parts import division_of, fingerprint
from confide.evaluation.result import MOST_EXAMPLES, NOT_PRIVATE, Evaluation, Example, LevelEvaluation
from confide.evaluation.set_tally import SetTally, evaluate_sets, evaluation_from_counts
from confide.evaluation.subgroups import TooManyGroupsError
from confide.evaluation.words import in_words
from confide.evaluation.worst import WorstPart, surely_below, worst_parts

__all__ = [
    "CONFIDENCE", "MOST_EXAMPLES", "NOT_PRIVATE", "PARTS", "Asking", "CoverageTable", "Evaluation", "Example",
    "IntervalTally", "LevelEvaluation", "MaskEvaluation", "PrivateCoverage", "PrivateEvaluation",
    "PrivateFinding", "PrivateMean", "PrivateShare", "ScoreTally", "SetTally", "Subgroup", "TooManyGroupsError",
    "WorstPart", "answer", "area_counts", "class_coverage", "coverage", "division_of", "evaluate_arrays",
    "evaluate_intervals", "evaluate_masks", "evaluate_scores", "evaluate_sets", "evaluation_from_counts",
    "evaluation_of_areas", "false_negative_rate", "fingerprint", "group_coverage", "in_words", "interval_text",
    "load_evaluation", "missed_share", "outwards", "private_statements", "read_evaluation", "size_coverage",
    "size_parts", "surely_below", "worst_parts",
]  # fmt: skip


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)
