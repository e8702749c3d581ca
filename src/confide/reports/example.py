"""Effect of a threshold on invented numbers."""

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from confide.core import FALSE_NEGATIVES, Release
from confide.reports.words import number
from confide.scores import interval_ends, score_kind, set_mask
from confide.support import Section, Table

LABELS, FLATNESS = ("A", "B", "C", "D", "E"), (0.0, 1.0, 1.7, 2.7, 4.1)
SURENESS = 0.05 * 1.15 ** np.arange(44)
"""Invented records have probabilities proportional to exp(-sureness * flatness), from nearly uniform to certain."""
_AWAY = 2
"""Distance in records between a shown extreme record and the nearest record with another set."""
PREDICTION, QUANTILES, DIFFICULTY = 10.0, (8.0, 12.0), 1.0

_TITLE = "An example, with invented numbers"


def worked_example(release: Release) -> Section | None:
    """Example for a release: an interval, or sets of records of which a model is more or less sure.

    None for scores that only another program can compute.
    """
    named = list(release.by_name.items())
    name, chosen = named[-1 if release.by == "level" else 0]
    if release.overlap is not None:  # a record in the first group of every column
        firsts = dict(named[piece.start] for piece in release.overlap.slices)
        name, chosen = ", ".join(firsts), max(firsts.values(), key=lambda part: part.threshold)
    if release.by == "side":
        lower, _ = interval_ends([QUANTILES], "cqr_low", release.parts["low"].threshold)
        _, upper = interval_ends([QUANTILES], "cqr_high", release.parts["high"].threshold)
        return _interval(f"the model’s quantiles for a record are {QUANTILES[0]:g} and {QUANTILES[1]:g}", lower, upper)
    if release.loss is not None:
        given = "Suppose the model gives five labels, several of which may be true, these probabilities."
        mask = set_mask(_invented(), "lac", chosen.threshold)
        return _sets(mask, given) if release.loss == FALSE_NEGATIVES else None
    kind, where = score_kind(chosen.score), f" ({name})" if name else ""
    if kind.task == "classification":
        u = np.full(len(SURENESS), 0.5) if kind.randomised else None
        drawn = " and each record’s public random number is 0.5" if kind.randomised else ""
        mask = set_mask(_invented(), str(chosen.score), chosen.threshold, u=u)
        return _sets(mask, f"Suppose the model gives five labels these probabilities{drawn}{where}.")
    if kind.task != "regression" or kind.score is None or kind.family in ("cqr_low", "cqr_high"):
        return None
    quantiles, difficult = kind.score.quantiles, kind.score.difficulty
    difficulty = [DIFFICULTY] if difficult else None
    ends = interval_ends(
        [QUANTILES if quantiles else PREDICTION], str(chosen.score), chosen.threshold, difficulty=difficulty
    )
    given = f"the model predicts {PREDICTION:g} for a record{f' of difficulty {DIFFICULTY:g}' if difficult else ''}"
    if quantiles:
        given = f"the model’s quantiles for a record are {QUANTILES[0]:g} and {QUANTILES[1]:g}"
    return _interval(given + where, *ends)


def _interval(given: str, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> Section:
    low, high = float(lower[0]), float(upper[0])
    answer = f"from {number(low)} to {number(high)}" if low <= high else "empty: the quantiles are too far apart"
    return Section(_TITLE, f"Suppose {given}. The interval is {answer}.")


def _invented() -> NDArray[np.float64]:
    """Probabilities of records of which the model is increasingly sure, shape (len(SURENESS), 5)."""
    odds = np.exp(-np.outer(SURENESS, FLATNESS))
    shares: NDArray[np.float64] = odds / odds.sum(axis=1, keepdims=True)
    return shares


def _sets(mask: NDArray[np.bool_], given: str) -> Section:
    """At most three records with different sets, the surest first; none is more extreme than necessary."""
    starts = [0, *(np.flatnonzero((mask[1:] != mask[:-1]).any(axis=1)) + 1).tolist(), len(mask)]
    places = [(start + end) // 2 for start, end in pairwise(starts)]
    places[0], places[-1] = max(places[0], starts[1] - _AWAY), min(places[-1], starts[-2] + _AWAY)
    some = sorted({0, len(places) // 2, len(places) - 1}, reverse=True)
    names = {1: ("rather sure",), 2: ("surer", "less sure"), 3: ("sure", "less sure", "unsure")}[len(some)]
    note = "Sets are large if the model is unsure, and small if it is sure."
    if not mask[places].any(axis=1).all():
        note = "The empty set: no label fits its record as well as true labels fitted in the calibration."
    elif len(some) == 1:
        note = "With this threshold all invented records have the same set."
    shares = _invented()
    rows = tuple(_row(name, shares[places[k]], mask[places[k]]) for name, k in zip(names, some, strict=True))
    table = Table(("The model is", "Set", *LABELS), rows, "Invented probabilities; labels in the set have a tick")
    return Section(_TITLE, given, tables=(table,), notes=(note,))


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
