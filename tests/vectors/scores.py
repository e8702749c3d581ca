"""Scores, from exact fractions; powers of a temperature from 60 digits."""

from fractions import Fraction
from typing import Any

from confide.scores import score_kind
from tests.vectors.form import case, mp, real, refused

ABOUT = "From the outputs of a model to conformity scores: larger means stranger."
ARITHMETIC = "exact fractions; softmax and temperatures with 60 digits"

FEW = 2**24
"""Fractions with smaller denominators are sums that floats hold exactly."""
EIGHTHS = [0.5, 0.25, 0.125, 0.125]
EVEN = [0.25, 0.25, 0.25, 0.25]
SURE = [1.0, 0.0, 0.0]
TENTHS = [0.7, 0.2, 0.1]
ROWS = {"eighths": EIGHTHS, "even": EVEN, "sure": SURE, "tenths": TENTHS}
NAMES = {
    "lac": "1 - p_y (Sadinle, Lei and Wasserman, JASA 2019)",
    "aps": "the mass of all classes at least as likely (Romano, Sesia and Candès, NeurIPS 2020)",
    "raps(penalty=0.125,k_reg=2)": "APS and a penalty for ranks beyond k_reg (Angelopoulos et al., ICLR 2021)",
    "saps(penalty=0.25)": "the largest probability and a penalty for ranks (Huang et al., ICML 2024)",
    "margin": "the likeliest other class minus the class itself",
    "top_k": "the number of classes at least as likely",
}
RANDOMISED = ("aps_randomised", "raps_randomised(penalty=0.125,k_reg=2)", "saps_randomised(penalty=0.25)")


def rounded(p: float, classes: int) -> Fraction:
    """A probability as a multiple of 2^(b-52), classes < 2^b, halves to even: sums of them do not depend on order."""
    steps = Fraction(2) ** (52 - classes.bit_length())
    return Fraction(round(Fraction(p) * steps)) / steps


def score(name: str, row: list[float], label: int, u: float = 1.0) -> Fraction:
    """One score as an exact fraction."""
    kind, own = score_kind(name), row[label]
    rank = sum(p >= own for p in row)
    penalty, k_reg = (Fraction(kind.parameters.get(key, 0.0)) for key in ("penalty", "k_reg"))
    match kind.family:
        case "lac":
            return 1 - Fraction(own)
        case "top_k":
            return Fraction(rank)
        case "margin":
            return Fraction(max(p for i, p in enumerate(row) if i != label)) - Fraction(own)
        case "saps":
            largest = Fraction(max(row))
            return Fraction(u) * largest if rank == 1 else largest + (rank - 2 + Fraction(u)) * penalty
    mass = sum(rounded(p, len(row)) for p in row if p >= own)
    group = sum(rounded(p, len(row)) for p in row if p == own)
    return mass - group + Fraction(u) * group + max(rank - k_reg, Fraction(0)) * penalty


def regression(name: str, prediction: Any, target: float, difficulty: float | None = None) -> Fraction:
    """One regression score as an exact fraction."""
    y = Fraction(target)
    if name.startswith("cqr"):
        below, above = Fraction(prediction[0]) - y, y - Fraction(prediction[1])
        return {"cqr": max(below, above), "cqr_low": below, "cqr_high": above}[name]
    residual = abs(y - Fraction(prediction))
    by = {"normalised_residual": difficulty, "gamma": prediction}.get(name, 1.0)
    return residual / Fraction(by)


def tolerance_for(values: list[Fraction]) -> Any:
    """None where floats hold everything that is added up, else what some roundings take."""
    return 0 if all(value.denominator <= FEW for value in values) else {"absolute": 1e-12}


def _case(name: str, operation: str, text: str, source: str, given: dict[str, Any], exact: list[Fraction]) -> Any:
    once = given["score"] in ("lac", "margin", "absolute_residual", "cqr", "cqr_low", "cqr_high")  # rounded once
    return case(name, operation, text, source, given, list(map(float, exact)), 0 if once else tolerance_for(exact))


def _tempered(row: list[float], temperature: float) -> list[Any]:
    powers = [mp.mpf(0) if p == 0 else real(p) ** (1 / real(temperature)) for p in row]
    return [one / sum(powers) for one in powers]


def _softmax(row: list[float]) -> list[Any]:
    powers = [mp.exp(real(z)) for z in row]
    return [one / sum(powers) for one in powers]


def cases() -> list[dict[str, Any]]:
    """All of them."""
    made = []
    for name, source in NAMES.items():
        short = name.split("(")[0]
        for what, row in ROWS.items():
            given = {"score": name, "probabilities": [row] * len(row), "labels": list(range(len(row)))}
            text = f"{short} of every class of one record, probabilities {what}"
            exact = [score(name, row, y) for y in given["labels"]]
            made.append(_case(f"{short}-{what}", "class_score", text, source, given, exact))
    for name in RANDOMISED:
        short = name.split("(")[0]
        for u in (0.0, 0.5):
            given = {"score": name, "probabilities": [EIGHTHS] * 4, "labels": [0, 1, 2, 3], "u": [u] * 4}
            text = f"{short}, where each record's own number is {u}; classes that tie share one score"
            exact = [score(name, EIGHTHS, y, u) for y in range(4)]
            made.append(_case(f"{short}-u-{u}", "class_score", text, NAMES_OF[short], given, exact))
    for name, row, temperature in (("lac", [0.64, 0.04, 0.32], 2), ("lac", [0.5, 0.3, 0.2], 0.5)):
        given = {"score": f"{name}(temperature={temperature})", "probabilities": [row] * 3, "labels": [0, 1, 2]}
        warm = [1 - p for p in _tempered(row, temperature)]
        made.append(
            case(
                f"{name}-temperature-{temperature}",
                "class_score",
                "probabilities to the power 1/T, rescaled",
                "Guo, Pleiss, Sun and Weinberger, ICML 2017",
                given,
                warm,
                {"absolute": 1e-12},
            )
        )
    warm = _tempered(TENTHS, 2)
    made.append(
        case(
            "aps-temperature-2",
            "class_score",
            "APS at a temperature",
            "Guo et al., ICML 2017; Romano et al., 2020",
            {"score": "aps(temperature=2)", "probabilities": [TENTHS] * 3, "labels": [0, 1, 2]},
            [warm[0], warm[0] + warm[1], sum(warm)],
            {"absolute": 1e-12},
        )
    )
    for name in ("lac", "aps"):
        exact = [[float(score(name, row, y)) for y in range(4)] for row in (EIGHTHS, EVEN)]
        given = {"score": name, "probabilities": [EIGHTHS, EVEN]}
        made.append(case(f"all-{name}", "all_scores", "the scores of all classes", NAMES[name], given, exact))
    for what, logits in (("small", [1.0, 0.0, -1.0]), ("large", [1000.0, 1000.0, -1000.0]), ("one", [3.5])):
        text = "logits to probabilities, however large"
        given = {"logits": [logits]}
        expected = [_softmax(logits)]
        made.append(case(f"softmax-{what}", "softmax", text, "softmax", given, expected, {"absolute": 1e-14}))
    return made + _regressions() + _refusals()


NAMES_OF = {f"{name.split('(')[0]}_randomised": source for name, source in NAMES.items()}


def _regressions() -> list[dict[str, Any]]:
    halves: dict[str, Any] = {"predictions": [1.0, 2.0, -4.0], "targets": [1.5, 0.0, -4.0]}
    pairs: dict[str, Any] = {"predictions": [[1.0, 2.0], [1.0, 2.0], [0.0, 0.0]], "targets": [1.5, 4.0, -0.5]}
    source = {
        "absolute_residual": "|y - f(x)| (Lei et al., JASA 2018)",
        "normalised_residual": "|y - f(x)|/sigma(x) (Papadopoulos, Gammerman and Vovk 2008)",
        "gamma": "|y - f(x)|/f(x) (Cordier et al., COPA 2023)",
        "cqr": "max(lower - y, y - upper) (Romano, Patterson and Candès, NeurIPS 2019, equation 6)",
        "cqr_low": "lower - y (the same, Theorem 2)",
        "cqr_high": "y - upper (the same, Theorem 2)",
    }
    tenths: dict[str, Any] = {"predictions": [0.1, 0.2, 1e300], "targets": [0.3, 0.1, -1e300]}
    given = [
        ("absolute-residual", {"score": "absolute_residual", **halves}),
        ("absolute-residual-rounded-once", {"score": "absolute_residual", **tenths}),
        ("normalised-residual", {"score": "normalised_residual", **halves, "difficulty": [1.0, 4.0, 0.5]}),
        ("gamma", {"score": "gamma", "predictions": [1.0, 2.0], "targets": [1.5, 0.0]}),
        ("cqr", {"score": "cqr", **pairs}),
        ("cqr-low", {"score": "cqr_low", **pairs}),
        ("cqr-high", {"score": "cqr_high", **pairs}),
    ]
    made = []
    for name, one in given:
        kind, widths = str(one["score"]), one.get("difficulty", [None] * 3)
        exact = [regression(kind, *record) for record in zip(one["predictions"], one["targets"], widths, strict=False)]
        made.append(_case(name, "interval_score", f"{kind} of {len(exact)} records", source[kind], one, exact))
    return made


def _refusals() -> list[dict[str, Any]]:
    given = {
        "label-beyond": (
            "class_score",
            "a label that is no class",
            {"score": "lac", "probabilities": [TENTHS], "labels": [3]},
        ),
        "label-negative": (
            "class_score",
            "a negative label",
            {"score": "lac", "probabilities": [TENTHS], "labels": [-1]},
        ),
        "above-one": (
            "class_score",
            "a probability above 1",
            {"score": "aps", "probabilities": [[1.5, -0.5]], "labels": [0]},
        ),
        "sum": ("class_score", "rows that sum to 0.6", {"score": "aps", "probabilities": [[0.3, 0.3]], "labels": [0]}),
        "lengths": (
            "class_score",
            "two records, one label",
            {"score": "lac", "probabilities": [TENTHS] * 2, "labels": [0]},
        ),
        "u-beyond": (
            "class_score",
            "a random number above 1",
            {"score": "aps_randomised", "probabilities": [TENTHS], "labels": [0], "u": [1.5]},
        ),
        "one-class": (
            "class_score",
            "a margin among one class",
            {"score": "margin", "probabilities": [[1.0]], "labels": [0]},
        ),
        "difficulty": (
            "interval_score",
            "a divisor of 0",
            {"score": "normalised_residual", "predictions": [1.0], "targets": [1.0], "difficulty": [0.0]},
        ),
        "gamma-negative": (
            "interval_score",
            "a negative prediction under gamma",
            {"score": "gamma", "predictions": [-1.0], "targets": [1.0]},
        ),
    }
    source = "docs/bad-input.md"
    return [refused(f"refused-{name}", op, text, source, one) for name, (op, text, one) in given.items()]
