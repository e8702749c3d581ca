"""Effect of a threshold on invented numbers."""

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from confide.core import FALSE_NEGATIVES, Release, Threshold, meaning_of_infinity
from confide.reports.page import number
from confide.scores import SCORES, Score, interval_ends, score_kind, set_mask

LABELS, FLATNESS = ("A", "B", "C", "D", "E"), (0.0, 1.0, 1.7, 2.7, 4.1)
SURENESS = tuple(0.05 * 1.15**k for k in range(44))
"""Invented records have probabilities proportional to exp(-sureness * flatness), from nearly uniform to certain."""
_AWAY = 2
"""Distance in records between a shown extreme record and the nearest record with another set."""
PREDICTION, QUANTILES, DIFFICULTY = 10.0, (8.0, 12.0), 1.0


@dataclass(frozen=True)
class InventedRecord:
    """Invented probabilities of a record as strings, each with whether its label is in the set, and the set."""

    called: str
    labels: tuple[tuple[str, bool], ...]
    answer: str


@dataclass(frozen=True)
class WorkedExample:
    """Result for invented model output: an interval, or sets of records of which the model is more or less sure."""

    given: str
    answer: str = ""
    note: str = ""
    records: tuple[InventedRecord, ...] = ()


def rule(release: Release) -> str | None:
    """Sentence about the contents of a set; None for several thresholds and for losses of other programs."""
    if release.loss is not None:
        return _rule(replace(release.first, score="lac")) if release.loss == FALSE_NEGATIVES else None
    return _rule(release.first) if release.by is None else None


def _rule(part: Threshold) -> str:
    kind, threshold = score_kind(part.score), part.threshold
    if part.excludes_nothing:
        return f"The threshold is {number(threshold)}: {meaning_of_infinity(part.score)}."
    sentence = kind.sentence(threshold, number)
    if kind.temperature is None:
        return sentence
    return (
        f"{sentence} Probabilities here are the model’s at temperature {number(kind.temperature)}: each to the power "
        f"1/{number(kind.temperature)}, rescaled so that they add up to one."
    )


def worked_example(release: Release) -> WorkedExample | None:
    """Example for a release; None for scores that only another program can compute."""
    named = list(release.by_name.items())
    name, chosen = named[-1 if release.by == "level" else 0]
    if release.overlap is not None:  # a record in the first group of every column
        firsts = dict(named[piece.start] for piece in release.overlap.slices)
        name, chosen = ", ".join(firsts), max(firsts.values(), key=lambda part: part.threshold)
    if release.loss is not None:
        if release.loss != FALSE_NEGATIVES:
            return None
        return _sets(
            set_mask(_invented(), "lac", chosen.threshold),
            "Suppose the model gives five labels, several of which may be true, these probabilities.",
        )
    if release.by == "side":
        lower, _ = interval_ends([QUANTILES], "cqr_low", release.parts["low"].threshold)
        _, upper = interval_ends([QUANTILES], "cqr_high", release.parts["high"].threshold)
        return _interval(lower, upper, SCORES["cqr"], "")
    where = f" ({name})" if name else ""
    kind = score_kind(chosen.score)
    if kind.task == "classification":
        u = np.full(len(SURENESS), 0.5) if kind.randomised else None
        inside = set_mask(_invented(), str(chosen.score), chosen.threshold, u=u)
        drawn = " and each record’s public random number is 0.5" if kind.randomised else ""
        return _sets(inside, f"Suppose the model gives five labels these probabilities{drawn}{where}.")
    if kind.task == "regression" and kind.score is not None and kind.family not in ("cqr_low", "cqr_high"):
        predictions = [QUANTILES] if kind.score.quantiles else [PREDICTION]
        difficulty = [DIFFICULTY] if kind.score.difficulty else None
        ends = interval_ends(predictions, str(chosen.score), chosen.threshold, difficulty=difficulty)
        return _interval(*ends, kind.score, where)
    return None


def _invented() -> NDArray[np.float64]:
    """Probabilities of records of which the model is increasingly sure, shape (len(SURENESS), 5)."""
    odds = np.exp(-np.outer(SURENESS, FLATNESS))
    shares: NDArray[np.float64] = odds / odds.sum(axis=1, keepdims=True)
    return shares


def _sets(mask: NDArray[np.bool_], given: str) -> WorkedExample:
    """At most three records with different sets, the surest first; none is more extreme than necessary."""
    starts = [0, *(np.flatnonzero((mask[1:] != mask[:-1]).any(axis=1)) + 1).tolist(), len(mask)]
    places = [(start + end) // 2 for start, end in pairwise(starts)]
    places[0], places[-1] = max(places[0], starts[1] - _AWAY), min(places[-1], starts[-2] + _AWAY)
    some = sorted({0, len(places) // 2, len(places) - 1}, reverse=True)
    called = {1: ("rather sure",), 2: ("surer", "less sure"), 3: ("sure", "less sure", "unsure")}[len(some)]
    records = zip(called, (places[k] for k in some), strict=True)
    shares = _invented()
    if not mask[places].any(axis=1).all():
        note = "The empty set: no label fits its record as well as true labels fitted in the calibration."
    elif len(some) > 1:
        note = "Sets are large if the model is unsure, and small if it is sure."
    else:
        note = "With this threshold all invented records have the same set."
    shown = tuple(_record(name, shares[at], mask[at]) for name, at in records)
    return WorkedExample(given, note=note, records=shown)


def _record(called: str, shares: NDArray[np.float64], mask: NDArray[np.bool_]) -> InventedRecord:
    held = mask.tolist()
    members = [name for name, inside in zip(LABELS, held, strict=True) if inside]
    labels = tuple((probability_text(p), inside) for p, inside in zip(shares.tolist(), held, strict=True))
    return InventedRecord(called, labels, "{" + ", ".join(members) + "}" if members else "the empty set")


def probability_text(p: float) -> str:
    """Format a probability with up to five digits, so that neither it nor its complement is rounded to zero.

    Examples
    --------
    >>> probability_text(0.623), probability_text(0.99588), probability_text(0.00214), probability_text(1e-12)
    ('0.62', '0.9959', '0.0021', '0')
    """
    digits = 1 - math.floor(math.log10(max(min(p, 1 - p), 1e-9)))
    return f"{round(p):d}" if digits > 6 else f"{p:.{min(max(digits, 2), 5)}f}"


def _interval(lower: np.ndarray, upper: np.ndarray, score: Score, where: str) -> WorkedExample:
    low, high = float(lower[0]), float(upper[0])
    answer = f"from {number(low)} to {number(high)}" if low <= high else "empty: the quantiles are too far apart"
    given = f"the model predicts {PREDICTION:g} for a record"
    if score.quantiles:
        given = f"the model’s quantiles for a record are {QUANTILES[0]:g} and {QUANTILES[1]:g}"
    elif score.difficulty:
        given += f" of difficulty {DIFFICULTY:g}"
    return WorkedExample(f"Suppose {given}{where}.", answer)
