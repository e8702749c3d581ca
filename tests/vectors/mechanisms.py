"""Mechanisms: the meaning of a statement, utilities, the law of the answer, and its privacy loss between neighbours."""

import math
from fractions import Fraction
from typing import Any

import confide
from tests.vectors.form import case, mp, real, refused

ABOUT = {
    "plans": "From a request to the statement of a mechanism, and what the numbers of a statement mean.",
    "utilities": "From counts per bin to integer utilities, one for each candidate.",
    "laws": "From utilities to the probabilities of the answer.",
    "losses": "How far the answers to two neighbouring histograms can be told apart.",  # codespell:ignore told
}
ARITHMETIC = {
    "plans": "exact fractions; the requests alone (`plan`) are what the library chose, for which no formula stands",
    "utilities": "exact fractions, from the formula of section 2",
    "laws": "exact polynomials with fractions, or with 60 digits",
    "losses": "the laws with 60 digits",
}

PUBLIC = {"rate": "0", "offset": "9", "left": 3, "right": 1, "scale": 4.0}
STATEMENTS: dict[str, dict[str, Any]] = {
    "public-n": PUBLIC,
    "public-n-sixteenths": {"rate": "0", "offset": "151/16", "left": 2, "right": 3, "scale": 80.0},
    "public-n-rise": {**PUBLIC, "flat": "5/2", "rise": 7},
    "secret-n": {"rate": "9/10", "offset": "5/2", "left": 9, "right": 11, "scale": 200.0},
    "secret-n-head-start": {"rate": "9/10", "offset": "5/2", "left": 9, "right": 11, "scale": 200.0, "head_start": 90},
    "secret-n-fading": {"rate": "4/5", "offset": "11/5", "left": 2, "right": 1, "scale": 15.0}
    | {"head_start": 40, "fade": 7, "flat": "3/16", "rise": 30},
}
COUNTS = {
    "spread": [2, 3, 1, 4, 2, 0],
    "one bin": [0, 0, 12, 0, 0, 0],
    "beyond": [0, 0, 0, 0, 0, 12],
    "few": [1, 0, 1, 0, 0, 0],
}


def unit_of(statement: dict[str, Any]) -> int:
    return math.lcm(Fraction(statement["rate"]).denominator, Fraction(statement["offset"]).denominator)


def heights(statement: dict[str, Any], m: int) -> list[int]:
    """Candidate j of m is rise (j - flat)_+ / (m - flat) ahead, rounded down."""
    flat, rise = Fraction(statement.get("flat", "0")), statement.get("rise", 0)
    return [math.floor(rise * max(j - flat, Fraction(0)) / (m - flat)) for j in range(1, m + 1)]


def ahead(statement: dict[str, Any], n: int) -> int:
    return max(0, statement.get("head_start", 0) - statement.get("fade", 0) * n)


def utilities(statement: dict[str, Any], counts: list[int]) -> list[int]:
    """u_j = h_j - max(r (A_j - T)_+, l (T - B_j)_+), and for +inf h_m - r (A_m - T)_+ + h(n), in steps of 1/unit."""
    n, m, unit = sum(counts), len(counts), unit_of(statement)
    target = Fraction(statement["rate"]) * (n + 1) + Fraction(statement["offset"])
    made = []
    for j, high in enumerate(heights(statement, m)):
        beyond = max(sum(counts[:j]) - target, Fraction(0))
        short = max(target - sum(counts[: j + 1]), Fraction(0))
        right, left = statement["right"] * unit * beyond, statement["left"] * unit * short
        u = high - max(right, left) if j < m - 1 else high - right + ahead(statement, n)
        assert u == int(u)
        made.append(int(u))
    return made


def ranges(statement: dict[str, Any]) -> tuple[int, int]:
    """Range distances of replacing and of adding a record (Theorem 1), in integers."""
    unit, left, right, rate = unit_of(statement), statement["left"], statement["right"], Fraction(statement["rate"])
    fade = statement.get("fade", 0) if statement.get("head_start", 0) else 0
    terms = unit * left, unit * right + fade, rate * unit * (left + right), (1 - rate) * unit * (left + right) + fade
    return unit * (left + right), int(max(terms))


def above(exact: Fraction) -> float:
    """The smallest float not below a fraction."""
    value = float(exact)
    return value if Fraction(value) >= exact else math.nextafter(value, math.inf)


def scale_for(distance: int, epsilon: float) -> float:
    """The smallest float scale with distance/scale <= epsilon."""
    scale = above(Fraction(distance) / Fraction(epsilon))
    assert Fraction(distance) <= Fraction(scale) * Fraction(epsilon)
    return scale


def exact_law(weights: list[Any]) -> list[Any]:
    """w_j/sum w."""
    return [w / sum(weights) for w in weights]


def law(utilities: list[int], scale: float) -> list[Any]:
    """The law with 60 digits."""
    best = max(utilities)
    return exact_law([mp.exp((u - best) / real(scale)) for u in utilities])


def plans() -> list[dict[str, Any]]:
    made = []
    for distance, epsilon in ((20, 1.0), (1, 0.1), (7, 3.3), (160, 1e-3), (3, 0.7)):
        text = "the smallest float at which range distance over scale, computed exactly, is at most epsilon"
        given = {"range_distance": distance, "epsilon": epsilon}
        expected = scale_for(distance, epsilon)
        made.append(case(f"scale-{distance}-{epsilon:g}", "scale", text, "theory.md, Lemma 1", given, expected))
    for name, statement in STATEMENTS.items():
        unit, (replace, add) = unit_of(statement), ranges(statement)
        n, m, scale = 12, 6, Fraction(statement["scale"])
        expected = {
            "unit": unit,
            "slope_left": float(unit * statement["left"] / scale),
            "slope_right": float(unit * statement["right"] / scale),
            "target": str(Fraction(statement["rate"]) * (n + 1) + Fraction(statement["offset"])),
            "heights": heights(statement, m),
            "head_start": ahead(statement, n),
            "replace_one": above(replace / scale),
            "add_remove": above(add / scale),
        }
        given = {"statement": statement, "n": n, "m": m}
        text = "what the numbers of a statement mean: steps of ranks, slopes in log-odds, target, heights, losses"
        made.append(case(f"statement-{name}", "statement", text, "theory.md, section 2 and Theorem 1", given, expected))
    for name, request in REQUESTS.items():
        text = "a request, and the statement that the library chooses for it"
        made.append(case(f"plan-{name}", "plan", text, "theory.md, section 5", request, chosen(**request)))
    for name, request in {
        "alpha-0": {"alpha": "0", "epsilon": 1.0, "n": 100},
        "alpha-1": {"alpha": "1", "epsilon": 1.0, "n": 100},
        "epsilon-0": {"alpha": "1/10", "epsilon": 0.0, "n": 100},
        "n-0": {"alpha": "1/10", "epsilon": 1.0, "n": 0},
    }.items():
        text = "a request that nobody can answer"  # codespell:ignore nobody
        made.append(refused(f"plan-refused-{name}", "plan", text, "docs/bad-input.md", request))
    return made


REQUESTS: dict[str, dict[str, Any]] = {
    "public-n": {"alpha": "1/10", "epsilon": 1.0, "n": 1000, "neighbors": "replace_one", "candidates": 100},
    "secret-n": {"alpha": "1/10", "epsilon": 1.0, "n": 1000, "candidates": 100},
    "few": {"alpha": "1/20", "epsilon": 2.0, "n": 500, "neighbors": "replace_one", "candidates": 50},
    "too-few": {"alpha": "1/10", "epsilon": 1.0, "n": 8, "neighbors": "replace_one"},
}


def chosen(**request: Any) -> dict[str, Any] | None:
    """The library's choice; None if it answers +inf without the data."""
    options = {"alpha": Fraction(request.pop("alpha")), **request}
    if "candidates" in options:
        options["candidates"] = confide.Candidates.unit(options["candidates"])
    mechanism = confide.plan(options.pop("alpha"), options.pop("epsilon"), **options).mechanism
    if mechanism is None:
        return None
    names = ("rate", "offset", "left", "right", "scale", "head_start", "fade", "flat", "rise")
    texts = ("rate", "offset", "flat")
    return {key: str(getattr(mechanism, key)) if key in texts else getattr(mechanism, key) for key in names}


def utility_cases() -> list[dict[str, Any]]:
    made = []
    for name, statement in STATEMENTS.items():
        for what, counts in COUNTS.items():
            if "secret" not in name and sum(counts) < 9:
                continue  # a public n is at least the target rank
            given = {"statement": statement, "counts": counts}
            text = f"{name.replace('-', ' ')}, scores {what}"
            place = "theory.md, section 2"
            title, expected = f"{name}-{what.replace(' ', '-')}", utilities(statement, counts)
            made.append(case(title, "utilities", text, place, given, expected))
    nothing = {"statement": STATEMENTS["secret-n-fading"], "counts": [0, 0, 0]}
    expected = utilities(nothing["statement"], nothing["counts"])
    text = "no records at all, which a secret n may be"
    return [*made, case("secret-n-no-records", "utilities", text, "theory.md, section 2", nothing, expected)]


def laws() -> list[dict[str, Any]]:
    made = []
    vectors = {
        "two": ([0, -1], 1.0),
        "even": ([5, 5, 5, 5], 3.0),
        "target": (utilities(STATEMENTS["public-n"], COUNTS["spread"]), 4.0),
        "fading": (utilities(STATEMENTS["secret-n-fading"], COUNTS["spread"]), 15.0),
        "far": ([0, -700, -50, -3], 1.0),
        "large": ([2**53 - 1, 2**53 - 2, 2**53 - 3], 2.5),
        "twelve": ([-(k % 5) for k in range(12)], 1.75),
    }
    source = "w_j / sum w (McSherry and Talwar, FOCS 2007)"
    for name, (values, scale) in vectors.items():
        given = {"utilities": values, "scale": scale}
        text = f"the exact law of the choice among {len(values)} candidates"
        expected = law(values, scale)
        made.append(case(name, "law", text, source, given, expected, {"absolute": 1e-12}))
    for shares in (["1", "1/2"], ["1/3", "1", "1", "1/7"], ["1/2", "1/4", "1/8", "1/16", "1"], ["1"]):
        given = {"weights": shares}
        text = "the same as rational numbers, for weights that are rational"
        expected = exact_law([Fraction(w) for w in shares])
        name = f"rational-{len(shares)}"
        made.append(case(name, "law_of_weights", text, source, given, expected, {"absolute": 1e-13}))
    return made


def losses() -> list[dict[str, Any]]:
    made = []
    pairs = {
        "public-n": ([2, 3, 1, 4, 2, 0], [2, 2, 1, 5, 2, 0]),
        "public-n-rise": ([12, 0, 0, 0, 0, 0], [11, 0, 0, 0, 0, 1]),
        "secret-n": ([2, 3, 1, 4, 2, 0], [2, 3, 1, 4, 3, 0]),
        "secret-n-fading": ([1, 1, 0, 0, 0, 0], [1, 1, 0, 1, 0, 0]),
    }
    for name, (one, other) in pairs.items():
        statement, scale = STATEMENTS[name], STATEMENTS[name]["scale"]
        replace, add = ranges(statement)
        bound = above((replace if sum(one) == sum(other) else add) / Fraction(scale))
        given = {"statement": statement, "counts": one, "neighbour": other}
        pair = [law(utilities(statement, counts), scale) for counts in (one, other)]
        ratio = max(abs(mp.log(p / q)) for p, q in zip(*pair, strict=True))
        assert ratio <= bound
        text = "the largest log-ratio of the two laws, and what Theorem 1 states at most"
        expected = {"log_ratio": ratio, "at_most": bound}
        made.append(case(name, "loss", text, "theory.md, Theorem 1", given, expected, {"absolute": 1e-9}))
    return made
