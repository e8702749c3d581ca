"""What a threshold does, in words and on invented numbers, for readers who will use the sets."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from confide.releases import (
    FALSE_NEGATIVES,
    Calibration,
    GroupCalibration,
    LevelCalibration,
    Release,
    RiskCalibration,
    SidesCalibration,
    everything,
    parts_of,
)
from confide.reports.numbers import number
from confide.scores import interval_ends, score_kind, set_mask

INVENTED = (("A", 0.62), ("B", 0.21), ("C", 0.12), ("D", 0.04), ("E", 0.01))
PREDICTION, QUANTILES, DIFFICULTY = 10.0, (8.0, 12.0), 1.0


@dataclass(frozen=True)
class WorkedExample:
    """A set, with its labels (name, invented probability, whether inside), or an interval, for invented output."""

    given: str
    answer: str
    labels: tuple[tuple[str, float, bool], ...] = ()


def rule(release: Release) -> str | None:
    """One sentence: what is in the set; None for several thresholds and for losses that their own program computes."""
    if isinstance(release, RiskCalibration):
        lac = replace(release.calibration, score="lac")
        return _rule(lac) if release.loss == FALSE_NEGATIVES else None
    return _rule(release) if isinstance(release, Calibration) else None


def _rule(calibration: Calibration) -> str:
    t, family = calibration.threshold, score_kind(calibration.score).family
    if math.isinf(t):
        return f"The threshold is +∞: {everything(calibration.score)}."
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


def worked_example(release: Release) -> WorkedExample | None:
    """The example for a release; None for scores that only their own program can compute."""
    parts = list(parts_of(release).items())
    name, chosen = parts[-1] if isinstance(release, LevelCalibration) else parts[0]
    match release:
        case RiskCalibration():
            if release.loss != FALSE_NEGATIVES:
                return None
            return _set(
                set_mask(_invented(), "lac", release.threshold),
                "Suppose the model gives five labels, several of which may be true, these probabilities.",
            )
        case SidesCalibration():
            lower, _ = interval_ends([QUANTILES], "cqr_low", release.low.threshold)
            _, upper = interval_ends([QUANTILES], "cqr_high", release.high.threshold)
            return _interval(lower, upper, "cqr", "")
    where = f" ({name})" if isinstance(release, LevelCalibration | GroupCalibration) else ""
    kind = score_kind(chosen.score)
    if kind.task == "classification":
        u = np.array([0.5]) if kind.randomised else None
        inside = set_mask(_invented(), str(chosen.score), chosen.threshold, u=u)
        drawn = " and the record’s public random number is 0.5" if kind.randomised else ""
        return _set(inside, f"Suppose the model gives five labels these probabilities{drawn}{where}.")
    if kind.task == "regression" and kind.family not in ("cqr_low", "cqr_high"):
        predictions = [QUANTILES] if kind.family == "cqr" else [PREDICTION]
        difficulty = [DIFFICULTY] if kind.family == "normalised_residual" else None
        ends = interval_ends(predictions, str(chosen.score), chosen.threshold, difficulty=difficulty)
        return _interval(*ends, kind.family or "", where)
    return None


def _invented() -> NDArray[np.float64]:
    """The probabilities of one record, shape (1, 5)."""
    return np.array([[p for _, p in INVENTED]])


def _set(mask: NDArray[np.bool_], given: str) -> WorkedExample:
    labels = tuple((name, p, held) for (name, p), held in zip(INVENTED, mask[0].tolist(), strict=True))
    members = [name for name, _, held in labels if held]
    return WorkedExample(given, "{" + ", ".join(members) + "}" if members else "the empty set", labels)


def _interval(lower: np.ndarray, upper: np.ndarray, family: str, where: str) -> WorkedExample:
    low, high = float(lower[0]), float(upper[0])
    answer = f"from {number(low)} to {number(high)}" if low <= high else "empty: the quantiles are too far apart"
    given = {
        "cqr": f"the model’s quantiles for a record are {QUANTILES[0]:g} and {QUANTILES[1]:g}",
        "normalised_residual": f"the model predicts {PREDICTION:g} for a record of difficulty {DIFFICULTY:g}",
    }.get(family, f"the model predicts {PREDICTION:g} for a record")
    return WorkedExample(f"Suppose {given}{where}.", answer)
