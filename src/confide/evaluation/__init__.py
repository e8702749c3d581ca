"""A release and labelled records come in; coverage and sizes leave, by class, size, group and level.

As they are, which is not private:

metrics.py         coverage as a whole, by class, by group, by set size; missed area and size of masks
parts.py           a part of the records: a class, a group, a set size, an end; what the groups are that a column names
counts.py          the one counter, of records by part and outcome: what is private adds noise to the same counts
result.py          Evaluation, LevelEvaluation: what is counted, as a value, as text and as JSON
reading.py         evaluations read from JSON, every number computed again
release_parts.py   what an evaluation states of its release, which it names by its SHA-256
tally.py           what is counted at each level of a release: evaluate_sets, evaluate_intervals, evaluate_scores
worst.py           who is covered least, and who surely less than was promised

And with noise, which is:

private.py            the public question, PrivateEvaluation
private_findings.py   public lists of parts; noisy counts to intervals that hold all at once; what is printed of them
private_release.py    what is asked: records to cells, charged, cells to noisy counts
private_json.py       files, in which every number is computed again
"""

from confide.evaluation.metrics import (
    CoverageTable,
    MaskEvaluation,
    area_counts,
    class_coverage,
    coverage,
    evaluate_masks,
    evaluation_of_areas,
    false_negative_rate,
    group_coverage,
    missed_share,
    size_coverage,
)
from confide.evaluation.parts import CONFIDENCE, Subgroup, TooManyGroupsError
from confide.evaluation.private import PrivateEvaluation
from confide.evaluation.private_findings import (
    PrivateCoverage,
    PrivateFinding,
    PrivateMean,
    PrivateShare,
    interval_text,
    outwards,
    size_parts,
)
from confide.evaluation.private_release import PARTS, Asking, answer, evaluate_arrays, private_statements
from confide.evaluation.reading import load_evaluation, read_evaluation
from confide.evaluation.release_parts import division_of, fingerprint
from confide.evaluation.result import MOST_EXAMPLES, NOT_PRIVATE, Evaluation, Example, LevelEvaluation, in_words
from confide.evaluation.tally import (
    IntervalTally,
    ScoreTally,
    SetTally,
    evaluate_intervals,
    evaluate_scores,
    evaluate_sets,
    evaluation_from_counts,
)
from confide.evaluation.worst import WorstPart, surely_below, worst_parts

__all__ = [
    "Asking", "CoverageTable", "Evaluation", "Example", "LevelEvaluation", "MaskEvaluation", "PrivateCoverage",
    "PrivateEvaluation", "PrivateFinding", "PrivateMean", "PrivateShare", "Subgroup", "TooManyGroupsError",
    "WorstPart", "class_coverage", "coverage", "evaluate_intervals", "evaluate_masks", "evaluate_scores",
    "evaluate_sets", "false_negative_rate", "group_coverage", "load_evaluation", "size_coverage", "worst_parts",
]  # fmt: skip


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)
