"""Effect of a threshold on invented numbers."""

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from confide.core import FALSE_NEGATIVES, Release
from confide.reports.words import number
from confide.scores import interval_ends, score_kind, set_mask
from confide.support import Section, Table

# Invented records have probabilities proportional to exp(-sureness * flatness), from nearly uniform to certain
LABELS = ("A", "B", "C", "D", "E")
FLATNESS = (0.0, 1.0, 1.7, 2.7, 4.1)
SURENESS = 0.05 * 1.15 ** np.arange(44)

# Distance in records between a shown extreme record and the nearest record with another set
_AWAY = 2
# The public random number of each invented record, for randomised scores
_SHARES = np.full(len(SURENESS), 0.5)

# An invented record of a regression
PREDICTION, QUANTILES, DIFFICULTY = 10.0, (8.0, 12.0), 1.0

_TITLE = "An example, with invented numbers"


def worked_example(release: Release) -> Section | None:
    """Example for a release: an interval, or sets of records of which a model is more or less sure.

    None for scores that only another program can compute.
    """
    # One threshold: the last level, or the first group; in overlapping groups the first group of every column.
    named = list(release.by_name.items())
    name, chosen = named[-1 if release.by == "level" else 0]
    if release.overlap is not None:
        firsts = dict(named[piece.start] for piece in release.overlap.slices)
        name, chosen = ", ".join(firsts), max(firsts.values(), key=lambda first: first.threshold)
    where = f" ({name})" if name and release.by != "side" else ""
    kind = score_kind("lac" if release.loss == FALSE_NEGATIVES else chosen.score)
    one_end = release.by != "side" and kind.family in ("cqr_low", "cqr_high")
    if kind.score is None or one_end or release.loss not in (None, FALSE_NEGATIVES):
        return None

    # Sets of invented records.
    if kind.task == "classification":
        mask = set_mask(_invented(), str(kind.name), chosen.threshold, u=_SHARES if kind.randomised else None)
        drawn = " and each record’s public random number is 0.5" if kind.randomised else ""
        several = ", several of which may be true," if release.loss is not None else ""
        return _sets(mask, f"Suppose the model gives five labels{several} these probabilities{drawn}{where}.")

    # One interval, whose two ends may have thresholds of their own.
    quantiles, difficult = kind.score.quantiles, kind.score.difficulty
    output = QUANTILES if quantiles else PREDICTION
    difficulty = [DIFFICULTY] if difficult else None
    ends = [
        interval_ends([output], str(end.score), end.threshold, difficulty=difficulty)
        for end in (release.parts.values() if release.by == "side" else [chosen])
    ]
    low, high = float(ends[0][0][0]), float(ends[-1][1][0])
    premise = f"the model predicts {PREDICTION:g} for a record{f' of difficulty {DIFFICULTY:g}' if difficult else ''}"
    if quantiles:
        premise = f"the model’s quantiles for a record are {QUANTILES[0]:g} and {QUANTILES[1]:g}"
    answer = f"from {number(low)} to {number(high)}" if low <= high else "empty: the quantiles are too far apart"
    return Section(_TITLE, f"Suppose {premise}{where}. The interval is {answer}.")


def _invented() -> NDArray[np.float64]:
    odds = np.exp(-np.outer(SURENESS, FLATNESS))
    shares: NDArray[np.float64] = odds / odds.sum(axis=1, keepdims=True)
    return shares


def _sets(mask: NDArray[np.bool_], premise: str) -> Section:
    """At most three records with different sets, the surest first; none is more extreme than necessary."""
    # A record in the middle of each run of equal sets; of the first and the last run one near the others.
    starts = [0, *(np.flatnonzero((mask[1:] != mask[:-1]).any(axis=1)) + 1).tolist(), len(mask)]
    places = [(start + end) // 2 for start, end in pairwise(starts)]
    places[0], places[-1] = max(places[0], starts[1] - _AWAY), min(places[-1], starts[-2] + _AWAY)
    chosen = sorted({0, len(places) // 2, len(places) - 1}, reverse=True)
    names = {1: ("rather sure",), 2: ("surer", "less sure"), 3: ("sure", "less sure", "unsure")}[len(chosen)]

    # What the sets show.
    note = "Sets are large if the model is unsure, and small if it is sure."
    if not mask[places].any(axis=1).all():
        note = "The empty set: no label fits its record as well as true labels fitted in the calibration."
    elif len(chosen) == 1:
        note = "With this threshold all invented records have the same set."

    # The table.
    shares = _invented()
    rows = tuple(_row(name, shares[places[k]], mask[places[k]]) for name, k in zip(names, chosen, strict=True))
    table = Table(("The model is", "Set", *LABELS), rows, "Invented probabilities; labels in the set have a tick")
    return Section(_TITLE, premise, tables=(table,), notes=(note,))


def _row(name: str, shares: NDArray[np.float64], mask: NDArray[np.bool_]) -> tuple[str, ...]:
    members = ", ".join(label for label, inside in zip(LABELS, mask, strict=True) if inside)
    ticked = (probability_text(p) + " ✓" * inside for p, inside in zip(shares.tolist(), mask.tolist(), strict=True))
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
