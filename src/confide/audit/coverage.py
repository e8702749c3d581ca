"""(4) Coverage: exactly, on every small set of exchangeable points, and by simulation on nasty distributions."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from confide.audit.exact_loss import ROUNDING
from confide.audit.finding import Finding
from confide.audit.subject import Data, Scores, Subject


@dataclass(frozen=True)
class Nasty:
    """A law of scores in [0, 1] on which quantile estimates go wrong, with its distribution function."""

    sample: Callable[[np.random.Generator, int], Scores]
    cdf: Callable[[float], float]


RECORDS = 500
"""Calibration records in the simulation, for subjects that do not bring a larger instance of their own."""


def _atoms(values: tuple[float, float], first: float) -> Nasty:
    return Nasty(
        lambda rng, n: np.where(rng.random(n) < first, values[0], values[1]),
        lambda t: first * (t >= values[0]) + (1 - first) * (t >= values[1]),
    )


NASTY: dict[str, Nasty] = {
    "uniform": Nasty(lambda rng, n: rng.random(n), lambda t: min(max(t, 0.0), 1.0)),
    "atoms 85/15": _atoms((0.2, 0.9), 0.85),
    "all ties": Nasty(lambda rng, n: np.full(n, 0.5), lambda t: float(t >= 0.5)),
    "heavy tail": Nasty(
        lambda rng, n: np.minimum(rng.pareto(0.3, n) / 1e6, 1.0),
        lambda t: 1.0 if t >= 1 else 1 - (1 + max(t, 0.0) * 1e6) ** -0.3,
    ),
    "one value in a hundred differs": _atoms((0.0, 1.0), 0.99),
}


def check_exact_coverage(subject: Subject) -> Finding:
    """The smallest coverage over every multiset of exchangeable points; each point in turn is the new one."""
    claim, law = subject.small_coverage, subject.law
    assert claim is not None
    assert law is not None

    @cache
    def covers(data: Data) -> list[float]:
        thresholds = law(subject.scores(data)).items()
        return [sum(p for t, p in thresholds if t >= atom) for atom in subject.atoms]

    public = subject.claims.neighbors == "replace_one"
    worst = 1.0
    for n in range(subject.records if public else 1, subject.records + 1):
        for points in subject.datasets(n + 1):
            covered = sum(
                count * covers(tuple(c - (i == atom) for i, c in enumerate(points)))[atom]
                for atom, count in enumerate(points)
                if count
            )
            worst = min(worst, covered / (n + 1))
    detail = f"smallest over all sets of up to {subject.records + 1} points with {len(subject.atoms)} values"
    return Finding(subject.name, "exact coverage", claim, worst, worst >= claim - ROUNDING, detail)


def check_coverage(subject: Subject, name: str, repeats: int, level: float, rng: np.random.Generator) -> Finding:
    """The mean coverage of thresholds from fresh calibration data of a nasty law, against the claim."""
    claim = subject.claims.coverage
    assert claim is not None
    n, draw = subject.runnable or (RECORDS, subject.draw)
    law = NASTY[name]
    mean = float(np.mean([law.cdf(draw(law.sample(rng, n))) for _ in range(repeats)]))
    p = mean_p_value(mean, claim, repeats)
    detail = f"{name}: {repeats} calibrations of {n} records, p-value {p:.2g} (least allowed {level:.2g})"
    return Finding(subject.name, "coverage", claim, mean, p >= level, detail)


def mean_p_value(mean: float, claim: float, repeats: int) -> float:
    """P(a mean of `repeats` independent values in [0, 1] with expectation `claim` is at most `mean`), at most.

    exp(-repeats KL(mean || claim)), Hoeffding 1963, Theorem 1: whatever the law of the values.

    Examples
    --------
    >>> f"{mean_p_value(0.85, 0.9, 1000):.1e}", mean_p_value(0.91, 0.9, 1000)
    ('4.9e-06', 1.0)
    """
    if mean >= claim:
        return 1.0
    far = (1 - mean) * math.log((1 - mean) / (1 - claim))
    near = mean * math.log(mean / claim) if mean > 0 else 0.0
    return math.exp(-repeats * (near + far))
