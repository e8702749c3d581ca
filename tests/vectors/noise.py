"""Noise on integers, intervals that include it, and bets of a monitor: sums and integrals with 60 digits."""

import math
from functools import lru_cache
from typing import Any

from tests.vectors.form import case, mp, real, refused

ABOUT = {
    "noise": "Discrete Laplace noise: P(z) = tanh(epsilon/2) exp(-epsilon |z|), sums of it, its generating function.",
    "evaluations": "Intervals for a coverage: from counts, and from counts with noise.",
    "watches": "E-values of a watch: what bets against the promised coverage are worth.",
}
ARITHMETIC = {
    "noise": "sums with 60 digits",
    "evaluations": "ends bisected in sums of binomials and noise with 60 digits, or in doubles where n is secret",
    "watches": "60 digits",
}


@lru_cache(maxsize=4096)
def law(epsilon: float, noises: int, value: int) -> Any:
    """P(the sum of so many noises = value), by convolution."""
    r = mp.exp(-real(epsilon))
    if noises == 1:
        return (1 - r) / (1 + r) * r ** abs(value)
    reach = int(80 / epsilon) + abs(value)
    return sum(law(epsilon, 1, abs(z)) * law(epsilon, noises - 1, abs(value - z)) for z in range(-reach, reach + 1))


def log_mgf(s: Any, epsilon: float) -> Any:
    """ln E exp(s Z), by its sum."""
    e = real(epsilon)
    return mp.log(mp.tanh(e / 2) * (1 + 1 / (mp.exp(e - s) - 1) + 1 / (mp.exp(e + s) - 1)))


def noise() -> list[dict[str, Any]]:
    made = []
    for epsilon, noises, values in (
        (1.0, 1, [-3, 0, 1, 20]), (0.1, 1, [0, 5, -50]), (2.0, 2, [0, 1, -4]), (1.0, 3, [0, 2]),
    ):  # fmt: skip
        given = {"epsilon": epsilon, "noises": noises, "values": values}
        expected = [law(epsilon, noises, value) for value in values]
        text = f"how likely {noises} noises add up to each value"
        name = f"law-{epsilon:g}-{noises}"
        source = "theory-after-release.md; Ghosh, Roughgarden and Sundararajan, STOC 2009"
        made.append(case(name, "noise_law", text, source, given, expected, {"absolute": 1e-13}))
    for epsilon, s in ((1.0, 0.5), (1.0, -0.9), (0.1, 0.01), (3.0, 0.0)):
        text = "ln E exp(s Z) of one noise"
        source = "theory-after-release.md"
        expected = log_mgf(real(s), epsilon)
        given = {"epsilon": epsilon, "s": s}
        made.append(case(f"mgf-{epsilon:g}-{s:g}", "log_mgf", text, source, given, expected, {"absolute": 1e-13}))
    text = "s beyond epsilon, where no mean exists"
    return [*made, refused("mgf-refused", "log_mgf", text, "theory-after-release.md", {"epsilon": 1.0, "s": 1.0})]


def binomial(n: int, p: Any) -> list[Any]:
    return [mp.binomial(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)]


def bisected(fits: Any) -> Any:
    """The largest p in [0, 1] that fits, within 1e-15."""
    low, high = mp.mpf(0), mp.mpf(1)
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def clopper_pearson(hits: int, n: int, confidence: float) -> list[Any]:
    """Both ends of the exact interval."""
    error = (1 - real(confidence)) / 2

    def low(k: int) -> Any:
        return mp.mpf(0) if k == 0 else bisected(lambda p: sum(binomial(n, p)[k:]) <= error)

    return [low(hits), 1 - low(n - hits)]


def evaluations() -> list[dict[str, Any]]:
    made = []
    for hits, n, confidence in ((90, 100, 0.95), (9, 10, 0.9), (0, 7, 0.95), (25, 25, 0.99)):
        text = "the interval of Clopper and Pearson for a coverage"
        given = {"hits": hits, "n": n, "confidence": confidence}
        expected = clopper_pearson(hits, n, confidence)
        source = "Clopper and Pearson, Biometrika 1934"
        made.append(case(f"exact-{hits}-{n}", "coverage_of_counts", text, source, given, expected, {"absolute": 1e-9}))
    source = "theory-after-release.md, Theorem 1"
    for covered, size, epsilon, error in ((45, 50, 1.0, 0.05), (18, 20, 0.5, 0.1), (-2, 6, 1.0, 0.05)):
        given = {"covered": covered, "size": size, "epsilon": epsilon, "error": error}
        expected = one_count(covered, size, epsilon, error)
        text = "an interval from one noisy count of covered records of a public number"
        name = f"noisy-{covered}-{size}"
        made.append(case(name, "noisy_interval", text, source, given, expected, {"absolute": 1e-7}))
    for covered, missed, epsilon, error in ((27, 4, 2.0, 0.05), (12, 1, 4.0, 0.1)):
        given = {"covered": covered, "missed": missed, "epsilon": epsilon, "error": error, "guess": "9/10"}
        expected = two_counts(covered, missed, epsilon, error, 9, 10)
        text = "an interval from noisy counts of covered and of missed records, n secret: within a hundredth"
        name = f"noisy-secret-{covered}-{missed}"
        made.append(case(name, "noisy_interval_secret", text, source, given, expected, {"absolute": 0.01}))
    text = "a count that is no integer"
    given = {"covered": 1.5, "size": 6, "epsilon": 1.0, "error": 0.05}
    return [*made, refused("noisy-refused", "noisy_interval", text, "docs/bad-input.md", given)]


def one_count(covered: int, n: int, epsilon: float, error: float) -> list[Any]:
    """The largest p with P(C + Z >= covered) <= error/2, and the same for missed records."""
    r = mp.exp(-real(epsilon))

    def beyond(z: int) -> Any:
        return r**z / (1 + r) if z > 0 else 1 - r ** (1 - z) / (1 + r)

    def low(x: int) -> Any:
        tails = [beyond(x - c) for c in range(n + 1)]
        return bisected(lambda p: sum(b * t for b, t in zip(binomial(n, p), tails, strict=True)) <= real(error) / 2)

    return [low(covered), 1 - low(n - covered)]


def two_counts(x: int, y: int, epsilon: float, error: float, a: int, size: int) -> list[float]:
    """The same for T = (1-w) x - w y with w = a/size and every n near x + y: doubles, and sums over all terms."""
    reach = math.ceil(45 / epsilon)
    one = [float(law(epsilon, 1, z)) for z in range(-reach, reach + 1)]
    total = [
        sum(one[i] * one[k - i] for i in range(max(0, k - 2 * reach), min(k, 2 * reach) + 1))
        for k in range(4 * reach + 1)
    ]
    beta, near = 0.02 * error, 0
    while sum(v for i, v in enumerate(total) if abs(i - 2 * reach) > near) > beta:
        near += 1
    numbers = [n for n in range(x + y - near, x + y + near + 1) if n >= 0]

    def low(t: int, a: int) -> float:
        tail: dict[int, float] = {}
        span = size * reach
        mass = [0.0] * (2 * span + 2)
        for i, p in enumerate(one):
            for k, q in enumerate(one):
                mass[(size - a) * (i - reach) - a * (k - reach) + span] += p * q
        for v in range(2 * span, -1, -1):
            tail[v - span] = tail.get(v - span + 1, 0.0) + mass[v]

        def chance(p: float) -> float:
            def of(n: int) -> float:
                terms = (math.comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1))
                needed = (max(-span, min(span + 1, t - size * c + a * n)) for c in range(n + 1))
                return sum(b * tail.get(v, 0.0) for b, v in zip(terms, needed, strict=True))

            return max(of(n) for n in numbers)

        bottom, top = 0.0, 1.0
        for _ in range(20):
            middle = (bottom + top) / 2
            bottom, top = (middle, top) if chance(middle) <= (error - beta) / 2 else (bottom, middle)
        return bottom

    t = (size - a) * x - a * y
    return [round(low(t, a), 5), round(1 - low(-t, size - a), 5)]


def bet(p0: float, p1: float, epsilon: float, per_person: int = 1) -> tuple[Any, Any, Any]:
    """s, u and the price of a bet that coverage is p1 and not p0."""
    s = mp.log(real(p0) / real(p1)) / per_person
    u = mp.log((1 - real(p1)) / (1 - real(p0))) / per_person
    return s, u, log_mgf(s, epsilon) + log_mgf(u, epsilon)


def watches() -> list[dict[str, Any]]:
    made = []
    source = "theory-after-release.md, section 4; Ville 1939"
    for p0, p1, epsilon, per_person, counts in (
        (0.9, 0.85, 1.0, 1, [[90, 10], [80, 20], [-1, 3]]),
        (0.9, 0.87, 0.5, 1, [[90, 10], [70, 30]]),
        (0.88, 0.8, 1.0, 3, [[88, 12]]),
    ):
        s, u, price = bet(p0, p1, epsilon, per_person)
        given = {"p0": p0, "p1": p1, "epsilon": epsilon, "per_person": per_person, "counts": counts}
        text = "the logarithm of what noisy counts of covered and missed records multiply a stake by"
        expected = [-s * x + u * y - price for x, y in counts]
        name = f"bet-{p0:g}-{p1:g}-{per_person}"
        made.append(case(name, "log_e_value", text, source, given, expected, {"absolute": 1e-10}))
    for look, looks in ((1, 52), (52, 52), (1000, 12)):
        given = {"look": look, "looks": looks}
        expected = [real(looks) / ((looks + look - 1) * (looks + look)), real(looks) / (looks + look)]
        text = "what enters at a look, and what has not entered after it"
        made.append(case(f"stake-{look}-{looks}", "stake", text, source, given, expected, {"relative": 1e-14}))
    for name, counts in {"kept": [[91, 9], [88, 12], [90, 11]], "fallen": [[60, 40]] * 6}.items():
        given = {"p0": 0.9, "bets": [0.85, 0.8], "epsilon": 1.0, "looks": 12, "counts": counts}
        text = "the logarithm of the e-process after each look, two bets; it alarms at ln(1/error)"
        made.append(case(f"course-{name}", "evidence", text, source, given, _course(**given), {"absolute": 1e-9}))
    return made


def _course(p0: float, bets: list[float], epsilon: float, looks: int, counts: list[list[int]]) -> list[Any]:
    held, found = [mp.mpf(0)] * len(bets), []
    for look, (x, y) in enumerate(counts, 1):
        entering = real(looks) / ((looks + look - 1) * (looks + look))
        for i, p1 in enumerate(bets):
            s, u, price = bet(p0, p1, epsilon)
            held[i] = (held[i] + entering) * mp.exp(-s * x + u * y - price)
        found.append(mp.log(sum(held) / len(bets) + real(looks) / (looks + look)))
    return found
