"""What a threshold does, in words and on invented numbers, for readers who will use the sets."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from confide.calibration.risk import FALSE_NEGATIVES, RiskCalibration
from confide.releases.calibration import Calibration
from confide.releases.reading import Release, parts_of
from confide.releases.several import GroupCalibration, LevelCalibration, SidesCalibration
from confide.scores.kinds import score_kind
from confide.sets.predict import predict_interval, predict_labels, predict_set

INVENTED = (("A", 0.62), ("B", 0.21), ("C", 0.12), ("D", 0.04), ("E", 0.01))
PREDICTION, QUANTILES, DIFFICULTY = 10.0, (8.0, 12.0), 1.0


@dataclass(frozen=True)
class Example:
    """A prediction set or an interval made with the released threshold from invented model output.

    Parameters
    ----------
    given
        What the model is supposed to have said.
    answer
        The set or the interval.
    labels
        For sets: name, invented probability, whether it is in the set.
    """

    given: str
    answer: str
    labels: tuple[tuple[str, float, bool], ...] = ()


def percent(level: float) -> str:
    r"""A share in per cent, without needless digits, with a space that does not break.

    Examples
    --------
    >>> percent(0.9), percent(0.999), percent(0.0712345)
    ('90\xa0%', '99.9\xa0%', '7.1235\xa0%')
    """
    return f"{100 * level:.4f}".rstrip("0").rstrip(".") + "\u00a0%"


def number(value: float) -> str:
    """A number for people: five significant digits, +inf in words of mathematics.

    Examples
    --------
    >>> number(0.912345678), number(float("inf"))
    ('0.91235', '+∞')
    """
    if math.isinf(value):
        return "+∞" if value > 0 else "−∞"
    return f"{value:.5g}".replace("-", "−")


def rule(release: Release) -> str | None:
    """One sentence: what is in the set; None for several thresholds and for losses that their own program computes."""
    if isinstance(release, RiskCalibration):
        lac = replace(release.calibration, score="lac")
        return _rule(lac) if release.loss == FALSE_NEGATIVES else None
    return _rule(release) if isinstance(release, Calibration) else None


def _rule(calibration: Calibration) -> str:
    t, family = calibration.threshold, score_kind(calibration.score).family
    if math.isinf(t):
        return "The threshold is +∞: every label is in every set, and every interval is the whole line."
    at = number(t)
    sentences = {
        "lac": f"A label is in the set if the model gives it a probability of at least {number(1 - t)}.",
        "aps": f"Labels join the set from the most probable downwards, until their probabilities add up to {at}.",
        "raps": f"Labels join the set from the most probable downwards, until their probabilities, with a penalty for "
        f"long sets, add up to {at}.",
        "saps": f"Labels join the set from the most probable downwards, until the top probability and a penalty per "
        f"further label add up to {at}.",
        "margin": f"A label is in the set if no other label is more than {at} more probable."
        if t >= 0
        else f"A label is in the set if it is more probable than every other by at least {number(-t)}.",
        "top_k": f"The {at} most probable labels are in the set.",
        "absolute_residual": f"The interval reaches from {at} below the prediction to {at} above it.",
        "normalised_residual": f"The interval reaches {at} times the record's difficulty below and above the "
        "prediction.",
        "gamma": f"The interval reaches {at} times the prediction below and above the prediction.",
        "cqr": f"The interval is the model's quantile range, widened by {at} on both sides.",
        "cqr_low": f"The interval begins {at} below the model's lower quantile.",
        "cqr_high": f"The interval ends {at} above the model's upper quantile.",
    }
    return sentences.get(family or "", f"A label is in the set if its conformity score is at most {at}.")


def example(release: Release) -> Example | None:
    """The example for a release; None for scores that only their own program can compute."""
    chosen, where = _one(release)
    if isinstance(release, RiskCalibration):
        return _labels_above(release) if release.loss == FALSE_NEGATIVES else None
    if isinstance(release, SidesCalibration):
        return _interval(*predict_interval([QUANTILES], release), *_asked("cqr"))
    kind = score_kind(chosen.score)
    if kind.task == "classification":
        p = np.array([[value for _, value in INVENTED]])
        u = np.array([0.5]) if kind.randomised else None
        inside = predict_set(p, chosen, u=u).mask[0].tolist()
        drawn = " and the record’s public random number is 0.5" if kind.randomised else ""
        return _set(inside, f"Suppose the model gives five labels these probabilities{drawn}{where}.")
    if kind.task == "regression" and kind.family not in ("cqr_low", "cqr_high"):
        quantiles = kind.family == "cqr"
        difficulty = [DIFFICULTY] if kind.family == "normalised_residual" else None
        ends = predict_interval([QUANTILES] if quantiles else [PREDICTION], chosen, difficulty=difficulty)
        given, after = _asked(kind.family or "")
        return _interval(*ends, given + where, after)
    return None


def dots(coverage: float) -> int | None:
    """How many of a hundred dots are covered; None where a hundred are too few to show the level."""
    whole = math.floor(100 * coverage + 1e-9)
    return whole if abs(100 * coverage - whole) < 1e-6 and 0 < whole < 100 else None


def _one(release: Release) -> tuple[Calibration, str]:
    """The calibration that the example uses, and how to say which it is."""
    parts = parts_of(release)
    name, chosen = next(iter(parts.items()))
    if isinstance(release, LevelCalibration):
        name, chosen = list(parts.items())[-1]
    several = isinstance(release, LevelCalibration | GroupCalibration)
    return chosen, f" ({name})" if several else ""


def _set(inside: Sequence[bool], given: str) -> Example:
    labels = tuple((name, p, held) for (name, p), held in zip(INVENTED, inside, strict=True))
    members = [name for name, _, held in labels if held]
    return Example(given, "{" + ", ".join(members) + "}" if members else "the empty set", labels)


def _labels_above(release: RiskCalibration) -> Example:
    inside = predict_labels(np.array([[p for _, p in INVENTED]]), release).mask[0].tolist()
    return _set(inside, "Suppose the model gives five labels, several of which may be true, these probabilities.")


def _asked(family: str) -> tuple[str, str]:
    if family == "cqr":
        return f"Suppose the model’s quantiles for a record are {QUANTILES[0]:g} and {QUANTILES[1]:g}", "."
    if family == "normalised_residual":
        return f"Suppose the model predicts {PREDICTION:g} for a record of difficulty {DIFFICULTY:g}", "."
    return f"Suppose the model predicts {PREDICTION:g} for a record", "."


def _interval(lower: np.ndarray, upper: np.ndarray, given: str, after: str) -> Example:
    low, high = float(lower[0]), float(upper[0])
    answer = f"from {number(low)} to {number(high)}" if low <= high else "empty: the quantiles are too far apart"
    return Example(given + after, answer)
