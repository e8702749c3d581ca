"""Certificates: the guarantee of a target rank, from sums with 60 digits and from all data sets of small cases."""

import math
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from tests.exact import climbed
from tests.vectors.form import case, mp, real, refused
from tests.vectors.mechanisms import law, utilities

ABOUT = "From target ranks, slopes and rivals to statements about coverage; ranks without privacy; other exact laws."
ARITHMETIC = (
    "60 digits and exact fractions; `sharp_loss` a concave maximum by an iteration in doubles, bracketed by its "
    "duality gap; `certificate` the least coverage of all multisets of points"
)


def tail(deficit: Any, slope: Any, rivals: Any) -> Any:
    """Theorem 2: the largest probability that the answer misses the target by so many ranks."""
    p, rivals = mp.exp(-real(slope) * deficit), real(rivals)
    return rivals * p / (1 + rivals * p)


def rank_at_least(k: int, given: dict[str, Any]) -> Any:
    """P(R >= k) of the random rank."""
    if k > math.ceil(given["target"]):
        return mp.mpf(0)
    return 1 - tail(real(given["target"]) - k + 1, given["slope"], given["rivals"])


def binomial_at_least(k: int, n: int, p: float) -> Any:
    """P(Bin(n, p) >= k)."""
    q = real(p)
    return sum((mp.binomial(n, i) * q**i * (1 - q) ** (n - i) for i in range(max(k, 0), n + 1)), mp.mpf(0))


def cases() -> list[dict[str, Any]]:
    """All cases."""
    return [*_tails(), *_ranks(), *_sharp(), *_small(), *_without_privacy(), *_other_laws()]


def _tails() -> list[dict[str, Any]]:
    made = []
    for deficit, slope, rivals in ((1.0, 0.5, 9.0), (5.0, 1.0, 99.0), (10.0, 1.0, 99.0), (60.0, 0.5, 3.6)):
        given = {"deficit": deficit, "slope": slope, "rivals": rivals}
        text = "how likely the answer misses the target by `deficit` ranks or more, at most"
        expected = tail(real(deficit), slope, rivals)
        name = f"tail-{deficit:g}-{rivals:g}"
        made.append(case(name, "tail", text, "theory.md, Theorem 2", given, expected, {"relative": 1e-5}))
    for slope, rivals in ((0.25, 999.0), (0.7, 3.6)):
        given = {"slope": slope, "rivals": rivals}
        text = "the integral of the tail over all deficits"
        expected = mp.log(1 + real(rivals)) / real(slope)
        name = f"overshoot-{rivals:g}"
        source = "theory.md, after Theorem 2"
        made.append(case(name, "mean_overshoot", text, source, given, expected, {"relative": 1e-12}))
    for name, logs in {
        "even": [0.0] * 9,
        "doubling": [k * math.log(2) for k in range(12)],
        "late": [0.0] * 5 + [0.5 * k for k in range(1, 20)],
    }.items():
        weights = [mp.exp(real(one)) for one in logs]
        text = "G: how much all candidates left of one weigh, relative to that one; rounded up"
        expected = max(sum(weights[:g]) / weights[g] for g in range(1, len(weights)))
        given = {"log_weights": logs}
        made.append(case(f"rivals-{name}", "rivals", text, "theory.md, section 2", given, expected, {"above": 1e-10}))
    return made


def _ranks() -> list[dict[str, Any]]:
    made = []
    for n, target, slope, rivals, level in ((30, 28.0, 0.8, 9.0, 0.8), (100, 95.5, 1.2, 36.5, 0.9)):
        given = {"n": n, "target": target, "slope": slope, "rivals": rivals}
        source = "theory.md, Theorem 2"
        top = math.ceil(target)
        at_least = [rank_at_least(k, given) for k in range(1, n + 2)]
        text = "E min(R, n+1) / (n+1): marginal coverage by the random-rank lemma alone"
        name, covered, close = f"marginal-{n}", sum(at_least) / (n + 1), {"absolute": 1e-10}
        made.append(case(name, "marginal_coverage", text, f"{source}a", given, covered, close))
        chances = [at_least[k - 1] - rank_at_least(k + 1, given) for k in range(1, top + 1)]
        fails = sum(chance * binomial_at_least(k, n, level) for k, chance in enumerate(chances, 1) if k <= n)
        text = "how likely the coverage given the calibration data is below a level, at most"
        name, given, failure = f"conditional-{n}", {**given, "level": level}, 1 - at_least[0] + fails
        made.append(case(name, "conditional_failure", text, f"{source}b", given, failure, close))
    return made


def _sharp() -> list[dict[str, Any]]:
    made = []
    for x, slope, rivals in ((1.0, 0.72, 9.0), (0.5, 0.72, 9.0), (1.0, 1.5, 99.0)):
        given = {"x": x, "slope": slope, "rivals": rivals}
        text = "L(x): how many points at or below rank ceil(T) + 1 are missed, at most"
        source = "theory.md, section 4"
        name = f"sharp-{x:g}-{rivals:g}"
        reached = round(climbed(**given, gap=1e-6)[0], 6) - 1e-6
        made.append(case(name, "sharp_loss", text, source, given, reached, {"above": 1e-5}))
    return made


@lru_cache(maxsize=4096)
def _law_of(counts: tuple[int, ...], offset: str, left: int, right: int, scale: float) -> list[float]:
    statement = {"rate": "0", "offset": offset, "left": left, "right": right}
    return [float(p) for p in law(utilities(statement, list(counts)), scale)]


def least_coverage(n: int, m: int, statement: dict[str, Any]) -> float:
    """The least coverage from n records over all multisets of n + 1 points in m bins: each point in turn is new."""
    least = 1.0
    for cuts in combinations_with_replacement(range(n + 2), m - 1):
        points = np.diff([0, *cuts, n + 1])
        covered = 0.0
        for bin_, count in enumerate(points):
            if count:
                rest = tuple(int(v) - (i == bin_) for i, v in enumerate(points))
                terms = (statement[key] for key in ("offset", "left", "right", "scale"))
                covered += count * sum(_law_of(rest, *terms)[bin_:])
        least = min(least, covered / (n + 1))
    return least


def _small() -> list[dict[str, Any]]:
    made = []
    for n, m, statement in (
        (4, 3, {"offset": "4", "left": 3, "right": 1, "scale": 2.0}),
        (5, 3, {"offset": "4", "left": 1, "right": 1, "scale": 1.0}),
        (5, 3, {"offset": "9/2", "left": 2, "right": 1, "scale": 3.0}),
    ):
        given = {"n": n, "m": m, "statement": {"rate": "0", **statement}}
        least = least_coverage(n, m, statement)
        text = "no certificate may state more than the least coverage over every multiset of n + 1 points"
        name = f"certificate-{n}-{statement['offset'].replace('/', '-')}"
        for kind, slack in (("sharp", 0.3), ("two-sided", 0.15)):
            source = "theory.md, Theorem C2" if kind == "sharp" else "theory-one-number.md, Theorem T1"
            both = {**given, "certificate": kind}
            made.append(case(f"{name}-{kind}", "certificate", text, source, both, least, {"below": slack}))
    return made


ALPHAS = ("1/10", "0.1", "0.05", "1/3", "0.2", "0.07", "1/100", "0.3", "0.55", "999/1000")


def _without_privacy() -> list[dict[str, Any]]:
    made = []
    for alpha, n in zip(ALPHAS, (99, 100, 19, 2, 4, 99, 98, 9, 19, 1), strict=True):
        rank = -((-(1 - Fraction(alpha)) * (n + 1)) // 1)
        text = "the rank ceil((n+1)(1-alpha)) of split conformal prediction, by fractions; +inf where it exceeds n"
        expected = int(rank) if rank <= n else "+inf"
        given = {"alpha": alpha, "n": n}
        source = "Vovk, Gammerman and Shafer 2005; Lei et al., JASA 2018"
        name = f"rank-{alpha.replace('/', '-of-')}-{n}"
        made.append(case(name, "split_rank", text, source, given, expected))
    for alpha in ("0", "1", "-1/10", "one tenth"):
        name = f"rank-refused-{alpha.replace('/', '-of-').replace(' ', '-')}"
        given = {"alpha": alpha, "n": 10}
        made.append(refused(name, "split_rank", "no level of miscoverage", "docs/bad-input.md", given))
    return made


def _other_laws() -> list[dict[str, Any]]:
    made = []
    for eta in (0.001, 1.0, 4.0, 30.0):
        k = real(eta) / (1 - mp.exp(-real(eta)))
        text = "the zCDP loss of a range: k - 1 - ln k with k = eta/(1 - e^-eta), rounded up"
        expected = k - 1 - mp.log(k)
        source = "theory.md, Lemma 1a"
        made.append(case(f"zcdp-{eta:g}", "zcdp", text, source, {"range": eta}, expected, {"above": 1e-14}))
    return made
