"""Effect of a threshold on invented numbers."""

import math
from collections.abc import Sequence
from itertools import compress, pairwise

import numpy as np
from numpy.typing import NDArray

from confide.core import FALSE_NEGATIVES, Release, Threshold
from confide.reports.words import number
from confide.scores import Score, interval_ends, score_kind, set_mask
from confide.support import Section, Table

# Invented records have probabilities proportional to exp(-sureness * flatness), from nearly uniform to certain
LABELS = ("A", "B", "C", "D", "E")
FLATNESS = (0.0, 1.0, 1.7, 2.7, 4.1)
SURENESS = 0.05 * 1.15 ** np.arange(44)
_ODDS = np.exp(-np.outer(SURENESS, FLATNESS))
_PROBABILITIES: NDArray[np.float64] = _ODDS / _ODDS.sum(axis=1, keepdims=True)

# Distance in records between a shown extreme record and the nearest record with another set
_AWAY = 2
# The public random number of each invented record, for randomised scores
_SHARES = np.full(len(SURENESS), 0.5)

# An invented record of a regression
PREDICTION = 10.0
QUANTILES = (8.0, 12.0)
DIFFICULTY = 1.0

_TITLE = "An example, with invented numbers"


def worked_example(release: Release) -> Section | None:
    """Example for a release: an interval, or sets of records of which a model is more or less sure.

    None for scores that only another program can compute.
    """
    name, threshold = _shown_threshold(release)
    kind = score_kind("lac" if release.loss == FALSE_NEGATIVES else threshold.score)
    is_one_end = release.by != "side" and kind.family in ("cqr_low", "cqr_high")
    if kind.score is None or is_one_end or release.loss not in (None, FALSE_NEGATIVES):
        return None

    where = f" ({name})" if name and release.by != "side" else ""
    if kind.task != "classification":
        thresholds = list(release.parts.values()) if release.by == "side" else [threshold]
        return _interval_section(kind.score, thresholds, where)
    mask = set_mask(_PROBABILITIES, str(kind.name), threshold.threshold, u=_SHARES if kind.randomised else None)
    drawn = " and each record’s public random number is 0.5" if kind.randomised else ""
    several = ", several of which may be true," if release.loss is not None else ""
    return _set_section(mask, f"Suppose the model gives five labels{several} these probabilities{drawn}{where}.")


def _shown_threshold(release: Release) -> tuple[str, Threshold]:
    """The threshold of the example and its name: the last level, or the first group, class or side.

    A record in overlapping groups has the largest threshold of its groups; here the first group of every column.
    """
    named = list(release.by_name.items())
    if release.overlap is None:
        return named[-1 if release.by == "level" else 0]
    firsts = dict(named[column.start] for column in release.overlap.slices)
    return ", ".join(firsts), max(firsts.values(), key=lambda first: first.threshold)


def _interval_section(score: Score, thresholds: Sequence[Threshold], where: str) -> Section:
    """One interval; the first threshold is that of its lower end, the last that of its upper end."""
    # The outputs of the model.
    output = QUANTILES if score.quantiles else PREDICTION
    difficulty = [DIFFICULTY] if score.difficulty else None
    if score.quantiles:
        premise = f"the model’s quantiles for a record are {QUANTILES[0]:g} and {QUANTILES[1]:g}"
    else:
        of_difficulty = f" of difficulty {DIFFICULTY:g}" if score.difficulty else ""
        premise = f"the model predicts {PREDICTION:g} for a record{of_difficulty}"

    # The interval.
    intervals = [interval_ends([output], str(end.score), end.threshold, difficulty=difficulty) for end in thresholds]
    (low,), _ = intervals[0]
    _, (high,) = intervals[-1]
    answer = f"from {number(low)} to {number(high)}" if low <= high else "empty: the quantiles are too far apart"
    return Section(_TITLE, f"Suppose {premise}{where}. The interval is {answer}.")


def _set_section(mask: NDArray[np.bool_], premise: str) -> Section:
    """At most three records with different sets, the surest first; none is more extreme than necessary."""
    # The records by words, and what their sets show.
    records = _shown_records(mask)
    if not mask.any(axis=1).all():
        note = "The empty set: no label fits its record as well as true labels fitted in the calibration."
    elif len(records) == 1:
        note = "With this threshold all invented records have the same set."
    else:
        note = "Sets are large if the model is unsure, and small if it is sure."

    # The table.
    rows = tuple(_row(words, _PROBABILITIES[record], mask[record]) for words, record in records.items())
    table = Table(("The model is", "Set", *LABELS), rows, "Invented probabilities; labels in the set have a tick")
    return Section(_TITLE, premise, tables=(table,), notes=(note,))


def _shown_records(mask: NDArray[np.bool_]) -> dict[str, int]:
    """The rows of the shown records, by how sure the model is; the records are in the order of their sureness."""
    # Runs of records with equal sets.
    starts = (np.flatnonzero((mask[1:] != mask[:-1]).any(axis=1)) + 1).tolist()
    runs = list(pairwise([0, *starts, len(mask)]))
    if len(runs) == 1:
        return {"rather sure": _AWAY}

    # The middle of a run, or a record nearer to the others in the first and the last run.
    middles = [(start + end) // 2 for start, end in runs]
    _, first_end = runs[0]
    last_start, _ = runs[-1]
    unsure = max(middles[0], first_end - _AWAY)
    sure = min(middles[-1], last_start + _AWAY)
    if len(runs) == 2:
        return {"surer": sure, "less sure": unsure}
    return {"sure": sure, "less sure": middles[len(runs) // 2], "unsure": unsure}


def _row(name: str, probabilities: NDArray[np.float64], mask: NDArray[np.bool_]) -> tuple[str, ...]:
    members = ", ".join(compress(LABELS, mask))
    ticked = (
        probability_text(p) + " ✓" * inside for p, inside in zip(probabilities.tolist(), mask.tolist(), strict=True)
    )
    return (name, f"{{{members}}}" if members else "the empty set", *ticked)


def probability_text(p: float) -> str:
    """Format a probability with up to five digits, so that neither it nor its complement is rounded to zero.

    Examples
    --------
    >>> probability_text(0.623), probability_text(0.99588), probability_text(0.00214), probability_text(1e-12)
    ('0.62', '0.9959', '0.0021', '0')
    """
    digits = 1 - math.floor(math.log10(max(min(p, 1 - p), 1e-9)))
    return f"{round(p):d}" if digits > 6 else f"{p:.{min(max(digits, 2), 5)}f}"
