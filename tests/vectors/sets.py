"""Sets and intervals, from exact scores; ends of intervals by rounding exact sums."""

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

from tests.vectors.form import case, refused
from tests.vectors.scores import EIGHTHS, EVEN, SURE, TENTHS, score

ABOUT = "From a threshold and the outputs of a model to prediction sets and intervals."
ARITHMETIC = "exact fractions; an end of an interval is an exact sum that is rounded as IEEE 754 says"
SAMPLES = Path(__file__).parents[1] / "releases" / "samples" / "0.1"
REACHED = "{y : score(x, y) <= threshold}: a class whose score is the threshold is in the set"
WIDENED = (
    "every y whose computed score is at most the threshold lies between the ends: the next float above the threshold "
    "is added and subtracted (above its product with a divisor, the next float once more)"
)


def included(name: str, row: list[float], threshold: Any, u: float = 1.0) -> list[int]:
    """The classes of one record's set; the threshold may be one for each class."""
    limits = threshold if isinstance(threshold, list) else [threshold] * len(row)
    scores = [score(name, row, y, u) for y in range(len(row))]
    return [y for y, (s, t) in enumerate(zip(scores, limits, strict=True)) if t == "+inf" or s <= Fraction(t)]


def next_up(value: float) -> float:
    return math.nextafter(value, math.inf)


def nearest(exact: Fraction) -> float:
    """The float next to a fraction; beyond the largest one infinity."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def ends(name: str, prediction: Any, threshold: Any, difficulty: float | None) -> list[float]:
    """Both ends of one interval."""
    if threshold == "+inf":
        return [-math.inf, math.inf]
    low, high = prediction if isinstance(prediction, list) else (prediction, prediction)
    reach = next_up(threshold)
    by = {"normalised_residual": difficulty, "gamma": prediction}.get(name)
    if by is not None:
        reach = next_up(nearest(Fraction(reach) * Fraction(by)))
    below, above = nearest(Fraction(low) - Fraction(reach)), nearest(Fraction(high) + Fraction(reach))
    return [-math.inf if name == "cqr_high" else below, math.inf if name == "cqr_low" else above]


def cases() -> list[dict[str, Any]]:
    """All of them."""
    made = []
    for name, score_name, row, threshold in (
        ("lac-tie", "lac", EIGHTHS, 0.75),
        ("lac-below-tie", "lac", EIGHTHS, math.nextafter(0.75, 0)),
        ("lac-rounded", "lac", TENTHS, 1 - 0.2),
        ("lac-all", "lac", EIGHTHS, "+inf"),
        ("lac-none", "lac", EIGHTHS, 0.25),
        ("aps-tie", "aps", EIGHTHS, 0.75),
        ("aps-empty", "aps", EIGHTHS, 0.4),
        ("aps-equal-classes", "aps", EVEN, 0.5),
        ("aps-full", "aps", EVEN, 1.0),
        ("raps", "raps(penalty=0.125,k_reg=2)", EIGHTHS, 0.75),
        ("saps", "saps(penalty=0.25)", EIGHTHS, 0.5),
        ("top-k", "top_k", EIGHTHS, 2.0),
        ("margin", "margin", EIGHTHS, 0.25),
        ("margin-one", "margin", SURE, 0.0),
    ):
        given = {"score": score_name, "threshold": threshold, "probabilities": [row]}
        made.append(
            case(name, "sets", f"{score_name}, one record", REACHED, given, [included(score_name, row, threshold)])
        )
    for u in (0.0, 0.5, 1.0):
        given = {"score": "aps_randomised", "threshold": 0.5, "probabilities": [EIGHTHS, EVEN], "u": [u, u]}
        expected = [included("aps_randomised", row, 0.5, u) for row in (EIGHTHS, EVEN)]
        made.append(case(f"aps-randomised-{u}", "sets", f"each record's own number is {u}", REACHED, given, expected))
    limits = [0.25, 0.75, "+inf", 0.5]
    given = {"score": "lac", "class_thresholds": limits, "probabilities": [EIGHTHS, EVEN]}
    expected = [included("lac", row, limits) for row in (EIGHTHS, EVEN)]
    made.append(case("lac-class-thresholds", "sets", "one threshold for each class", REACHED, given, expected))
    for name, kind, predictions, threshold, difficulty in (
        ("absolute-residual", "absolute_residual", [1.0, -2.5], 0.5, None),
        ("absolute-residual-rounded", "absolute_residual", [0.1, 1e16], 0.3, None),
        ("absolute-residual-all", "absolute_residual", [1.0], "+inf", None),
        ("absolute-residual-overflows", "absolute_residual", [1.7e308], 1e308, None),
        ("normalised-residual", "normalised_residual", [1.0, 2.0], 0.5, [1.0, 0.1]),
        ("gamma", "gamma", [10.0, 0.3], 0.5, None),
        ("cqr", "cqr", [[1.0, 2.0], [0.1, 0.3]], 0.25, None),
        ("cqr-empty", "cqr", [[1.0, 1.5]], -0.5, None),
        ("cqr-low", "cqr_low", [[1.0, 2.0]], 0.25, None),
        ("cqr-high", "cqr_high", [[1.0, 2.0]], 0.25, None),
    ):
        widths = difficulty or [None] * len(predictions)
        given = {"score": kind, "threshold": threshold, "predictions": predictions}
        given |= {} if difficulty is None else {"difficulty": difficulty}
        expected = [ends(kind, one, threshold, width) for one, width in zip(predictions, widths, strict=True)]
        made.append(case(f"interval-{name}", "intervals", f"{kind}, lower and upper ends", WIDENED, given, expected))
    return made + _of_releases() + _refusals()


def _of_releases() -> list[dict[str, Any]]:
    made = []
    for sample in ("slopes-replace_one", "none", "infinite-without-data"):
        text = (SAMPLES / f"{sample}.json").read_text(encoding="utf-8")
        threshold = _threshold(text)
        given = {"release": text, "probabilities": [EIGHTHS, [*TENTHS, 0.0], [0.05, 0.05, 0.05, 0.85]]}
        expected = [included("lac", row, threshold) for row in given["probabilities"]]
        made.append(case(f"release-{sample}", "sets_of_release", "a file and new records", REACHED, given, expected))
    return made


def _threshold(text: str) -> Any:
    """The threshold of a file, by its line."""
    line = next(one for one in text.splitlines() if one.startswith('  "threshold": ')).split(": ")[1].rstrip(",")
    return "+inf" if line == '"+inf"' else float(line)


def _refusals() -> list[dict[str, Any]]:
    damaged = (
        (SAMPLES / "slopes-replace_one.json").read_text(encoding="utf-8").replace('"threshold": 0', '"threshold": 1')
    )
    given = {
        "damaged-release": (
            "sets_of_release",
            "a release whose threshold was changed",
            {"release": damaged, "probabilities": [EIGHTHS]},
        ),
        "other-score": (
            "intervals",
            "intervals of a score for classes",
            {"score": "lac", "threshold": 0.5, "predictions": [1.0]},
        ),
        "not-positive": (
            "intervals",
            "a divisor of -1",
            {"score": "normalised_residual", "threshold": 0.5, "predictions": [1.0], "difficulty": [-1.0]},
        ),
    }
    source = "docs/bad-input.md"
    return [refused(f"refused-{name}", op, text, source, one) for name, (op, text, one) in given.items()]
