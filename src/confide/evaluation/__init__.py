"""What was found on labelled records: coverage and sizes, by class, size, group and level. Not private: it uses labels.

An evaluation names the release that it belongs to by its SHA-256, keeps counts, and computes every interval again when
it is read.
"""

from confide.evaluation.interval_tally import of_intervals, of_scores
from confide.evaluation.reading import load_evaluation, read_evaluation
from confide.evaluation.release_parts import fingerprint, of_counts
from confide.evaluation.result import (
    CONFIDENCE,
    MOST_EXAMPLES,
    Evaluation,
    LevelEvaluation,
    Part,
    Shown,
)
from confide.evaluation.set_tally import of_sets

__all__ = [
    "CONFIDENCE",
    "MOST_EXAMPLES",
    "Evaluation",
    "LevelEvaluation",
    "Part",
    "Shown",
    "fingerprint",
    "load_evaluation",
    "of_counts",
    "of_intervals",
    "of_scores",
    "of_sets",
    "read_evaluation",
]
