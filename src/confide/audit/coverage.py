"""(4) Coverage: exactly, on every small set of exchangeable points, and by simulation on nasty distributions."""

from collections.abc import Callable

import numpy as np

from confide.audit.exact_loss import ROUNDING
from confide.audit.finding import Finding
from confide.audit.subject import Data, Scores, Subject

Sampler = Callable[[np.random.Generator, int], Scores]

RECORDS = 1000
"""Calibration records in the simulation, for subjects that do not bring a larger instance of their own."""

NASTY: dict[str, Sampler] = {
    "uniform": lambda rng, n: rng.random(n),
    "atoms 85/15": lambda rng, n: np.where(rng.random(n) < 0.85, 0.2, 0.9),
    "all ties": lambda rng, n: np.full(n, 0.5),
    "heavy tail": lambda rng, n: np.minimum(rng.pareto(0.3, n) / 1e6, 1.0),
    "one value in a hundred differs": lambda rng, n: np.where(rng.random(n) < 0.99, 0.0, 1.0),
}
"""Laws of scores in [0, 1] on which quantile estimates go wrong."""


def check_exact_coverage(subject: Subject) -> Finding:
    """The smallest coverage over every multiset of exchangeable points; each point in turn is the new one."""
    claim, law = subject.small_coverage, subject.law
    assert claim is not None
    assert law is not None
    covers: dict[Data, list[float]] = {}

    def of(data: Data) -> list[float]:
        if data not in covers:
            thresholds = law(subject.scores(data))
            covers[data] = [sum(p for t, p in thresholds.items() if t >= atom) for atom in subject.atoms]
        return covers[data]

    public = subject.claims.neighbors == "replace_one"
    worst = 1.0
    for n in range(subject.records if public else 1, subject.records + 1):
        for points in subject.datasets(n + 1):
            covered = 0.0
            for atom, count in enumerate(points):
                if count:
                    covered += count * of(tuple(c - (i == atom) for i, c in enumerate(points)))[atom]
            worst = min(worst, covered / (n + 1))
    detail = f"smallest over all sets of up to {subject.records + 1} points with {len(subject.atoms)} values"
    return Finding(subject.name, "exact coverage", claim, worst, worst >= claim - ROUNDING, detail)


def check_coverage(subject: Subject, name: str, repeats: int, level: float, rng: np.random.Generator) -> Finding:
    """One new point per calibration on a nasty law: an exact binomial test of the claim."""
    from scipy.stats import binomtest

    claim = subject.claims.coverage
    assert claim is not None
    n, draw = subject.runnable or (RECORDS, subject.draw)
    hits = 0
    for _ in range(repeats):
        points = NASTY[name](rng, n + 1)
        hits += bool(points[0] <= draw(points[1:]))
    p = float(binomtest(hits, repeats, claim, alternative="less").pvalue)
    detail = f"{name}: {repeats} calibrations of {n} records, p-value {p:.2g} (least allowed {level:.2g})"
    return Finding(subject.name, "coverage", claim, hits / repeats, p >= level, detail)
