"""Exact laws of the thresholds of a plan, on random data sets with known laws of scores."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats

from confide.core import Plan
from confide.selection import selection_law


def answer(made: Plan, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Counts of these scores over the candidates, and the law of the one that is chosen; shapes (m,)."""
    m, mechanism = made.candidates.size, made.mechanism
    counts = np.bincount(np.searchsorted(made.candidates.edges, scores), minlength=m)
    law = np.zeros(m)
    if mechanism is None:
        law[-1] = 1.0
        return counts, law
    utilities = mechanism.utilities(counts)
    weights = np.exp((utilities - utilities.max()) / mechanism.scale)
    kept = weights > 1e-13
    law[kept] = selection_law(weights[kept])
    return counts, law


@dataclass(frozen=True)
class Law:
    """A law of scores: how n of them are drawn, and P(score <= v); continuous unless said."""

    draw: Callable[[np.random.Generator, int], np.ndarray]
    cdf: Callable[[np.ndarray], np.ndarray]
    continuous: bool = True


UNIFORM = Law(lambda g, n: g.random(n), lambda v: np.clip(v, 0, 1))


def residuals(scale: float = 1.0) -> Law:
    """Sizes of normal errors."""
    return Law(
        lambda g, n: np.abs(g.normal(size=n)) * scale,
        np.errstate(over="ignore")(lambda v: stats.halfnorm.cdf(v, scale=scale)),
    )


def _mixture(parts: list[tuple[float, float, float]]) -> Law:
    """Even on windows (weight, low, high); one value where low = high."""

    def draw(g: np.random.Generator, n: int) -> np.ndarray:
        which = g.choice(len(parts), n, p=[weight for weight, _, _ in parts])
        low, high = (np.array([part[i] for part in parts])[which] for i in (1, 2))
        return low + (high - low) * g.random(n)

    def cdf(v: np.ndarray) -> np.ndarray:
        total = np.zeros(np.shape(v))
        for weight, low, high in parts:
            total += weight * (np.clip((v - low) / (high - low), 0, 1) if high > low else v >= low)
        return total

    return Law(draw, cdf, continuous=all(low < high for _, low, high in parts))


def _steps(weights: dict[float, float]) -> Law:
    return _mixture([(weight, value, value) for value, weight in weights.items()])


HARD_IN_UNIT = {
    "93 % near 1e-5, 7 % near .9999": _mixture([(0.93, 0.9e-5, 1.1e-5), (0.07, 0.99985, 0.99995)]),
    "90 % near .01, 10 % near .99": _mixture([(0.9, 0.009, 0.011), (0.1, 0.985, 0.995)]),
    "all within 1e-6 of 1e-5": _mixture([(1.0, 0.95e-5, 1.05e-5)]),
    "crowded near 0": Law(lambda g, n: g.random(n) ** 8, lambda v: np.clip(v, 0, 1) ** (1 / 8)),
    "crowded near 1": Law(lambda g, n: g.random(n) ** (1 / 20), lambda v: np.clip(v, 0, 1) ** 20),
    "two values, 85 % and 15 %": _steps({0.2: 0.85, 0.8: 0.15}),
    "two values, 92 % and 8 %": _steps({0.2: 0.92, 0.8: 0.08}),
    "log-uniform over 8 decades": Law(
        lambda g, n: 10.0 ** (-8 * g.random(n)), lambda v: np.clip(1 + np.log10(np.maximum(v, 1e-300)) / 8, 0, 1)
    ),
    "12 % at 1, the rest even": _mixture([(0.88, 0.0, 1.0), (0.12, 1.0, 1.0)]),
    "a staircase of ten steps": _steps({k / 10: 0.1 for k in range(1, 11)}),
    "half even, half within 1e-4 of .5": _mixture([(0.5, 0.0, 1.0), (0.5, 0.49995, 0.50005)]),
}
"""The first four kinds were looked at when the reference laws of plans were chosen, the others were not."""

HARD_RESIDUALS = {
    "half normal, half of it six decades below": Law(
        lambda g, n: np.abs(g.normal(size=n)) * np.where(g.random(n) < 0.5, 1e-6, 1.0),
        lambda v: (stats.halfnorm.cdf(v) + stats.halfnorm.cdf(np.asarray(v) * 1e6)) / 2,
    ),
    "93 % normal, 7 % six decades above": Law(
        lambda g, n: np.abs(g.normal(size=n)) * np.where(g.random(n) < 0.07, 1e6, 1.0),
        lambda v: 0.93 * stats.halfnorm.cdf(v) + 0.07 * stats.halfnorm.cdf(np.asarray(v) / 1e6),
    ),
    "Cauchy": Law(lambda g, n: np.abs(g.standard_cauchy(n)), stats.halfcauchy.cdf),
    "log-normal over decades": Law(
        lambda g, n: np.exp(3 * g.normal(size=n)), lambda v: stats.norm.cdf(np.log(np.maximum(v, 1e-300)) / 3)
    ),
    "85 % exactly 0": Law(
        lambda g, n: np.abs(g.normal(size=n)) * (g.random(n) < 0.15),
        lambda v: 0.85 + 0.15 * stats.halfnorm.cdf(v),
        continuous=False,
    ),
    "whole numbers": Law(
        lambda g, n: g.poisson(2.0, n).astype(float), lambda v: stats.poisson.cdf(np.floor(v), 2.0), continuous=False
    ),
    "log-uniform over 8 decades": Law(
        lambda g, n: 10.0 ** (8 * g.random(n) - 4), lambda v: np.clip((4 + np.log10(np.maximum(v, 1e-300))) / 8, 0, 1)
    ),
}


@dataclass(frozen=True)
class Outcome:
    """Means over data sets.

    Parameters
    ----------
    coverage, excess
        Of fresh scores; its excess over 1 - alpha in units of 1/(n epsilon).
    error
        The standard error of the excess, without what the control variate gains.
    infinite, beyond
        Chances of +inf, and of a threshold beyond the largest score.
    """

    coverage: float
    excess: float
    error: float
    infinite: float
    beyond: float


def outcome(made: Plan, law: Law, runs: int, seed: int = 1) -> Outcome:
    """The plan on data sets of made.n scores, exactly over the noise.

    For continuous scores the coverage of the plain threshold, whose mean is known, is a control variate.
    """
    rng, n, level, rank = np.random.default_rng(seed), made.n, float(made.terms.level), made.nonprivate_rank
    covers, rows = np.append(law.cdf(made.candidates.edges), 1.0), []
    for _ in range(runs):
        scores = np.sort(law.draw(rng, n))
        counts, chances = answer(made, scores)
        plain = float(law.cdf(scores[rank - 1])) if rank <= n else 1.0
        rows.append((chances @ covers, plain, chances[-1], chances[np.flatnonzero(counts)[-1] + 1 :].sum()))
    private, plain, infinite, beyond = np.array(rows).T
    coverage = float(private.mean())
    if law.continuous and rank <= n:
        coverage -= float(np.cov(private, plain)[0, 1] / plain.var(ddof=1) * (plain.mean() - rank / (n + 1)))
    per_rank, error = n * made.terms.epsilon, float(private.std(ddof=1)) / math.sqrt(runs)
    excess, error = (coverage - level) * per_rank, error * per_rank
    return Outcome(coverage, excess, error, float(infinite.mean()), float(beyond.mean()))


def threshold_ratio(made: Plan, law: Law, runs: int, seed: int = 1) -> float:
    """Geometric mean of the threshold over the plain one, where it is not beyond the largest of the positive scores."""
    rng, total, weight = np.random.default_rng(seed), 0.0, 0.0
    for _ in range(runs):
        scores = np.sort(law.draw(rng, made.n))
        counts, chances = answer(made, scores)
        kept = np.flatnonzero(chances[: np.flatnonzero(counts)[-1] + 1] > 1e-12)
        total += chances[kept] @ np.log(made.candidates.values[kept] / scores[made.nonprivate_rank - 1])
        weight += chances[kept].sum()
    return math.exp(total / weight)


def size_ratio(made: Plan, every: np.ndarray, scores: np.ndarray) -> tuple[float, float]:
    """Mean set size, exactly over the noise, and that of the plain threshold; `every` are sorted scores of all classes.

    Both in units of the number of scores.
    """
    values, rank = made.candidates.values, made.nonprivate_rank
    sizes = np.searchsorted(every, values, side="right")
    _, law = answer(made, scores)
    plain = math.inf if rank > len(scores) else float(np.partition(scores, rank - 1)[rank - 1])
    return float(law @ sizes), float(np.searchsorted(every, plain, side="right"))
