"""Coverage by simulation on difficult distributions of scores, tested against the claimed mean by betting.

The bet gives a p-value for independent values in [0, 1] with any distribution. The initial wealth is 1. A bet with
fraction b that values fall below the claim c multiplies the wealth by 1 + b (c - x) for each value x. Fractions up to
1/(1-c) keep the wealth nonnegative. If the mean of x is at least c, the wealth does not grow on average, so the
probability that it ever exceeds 1/p is at most p (Ville 1939). The wealth is divided among many fractions, because the
best one depends on the unknown mean and spread (Waudby-Smith and Ramdas 2024). If values vary little, a few runs can
refute a claim; Hoeffding's inequality would assume a spread of 1.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tests.audit.harness.subject import Finding, Scores, Subject

FRACTIONS = 0.95 * 0.5 ** np.arange(12)
"""Betting fractions, relative to the largest possible one; the wealth is divided evenly among them."""


def bet_against(values: NDArray[np.float64], claim: float) -> float:
    """P-value of "the mean is at least `claim`" for independent values in [0, 1], shape (k,), claim in (0, 1).

    Examples
    --------
    >>> f"{bet_against(np.full(200, 0.885), 0.9):.0e}", bet_against(np.full(200, 0.9), 0.9)
    ('3e-11', 1.0)
    """
    if not len(values):
        return 1.0
    stakes = FRACTIONS / (1 - claim)
    wealth = np.cumsum(np.log1p(np.multiply.outer(stakes, claim - values)), axis=1)
    highest = float(np.logaddexp.reduce(wealth, axis=0).max()) - math.log(len(FRACTIONS))
    return math.exp(-max(0.0, highest))


@dataclass(frozen=True)
class DifficultLaw:
    """A distribution of scores in [0, 1] that is difficult for quantile estimates, with its distribution function."""

    sample: Callable[[np.random.Generator, int], Scores]
    cdf: Callable[[float], float]


_HUNDREDTHS = np.arange(1, 101) / 100


def _atoms(values: tuple[float, float], first: float) -> DifficultLaw:
    return DifficultLaw(
        lambda rng, n: np.where(rng.random(n) < first, values[0], values[1]),
        lambda t: first * (t >= values[0]) + (1 - first) * (t >= values[1]),
    )


def _heavy(t: float) -> float:
    return 1.0 if t >= 1 else 1 - (1 + max(t, 0.0) * 1e6) ** -0.3


DIFFICULT_LAWS: dict[str, DifficultLaw] = {
    "uniform": DifficultLaw(lambda rng, n: rng.random(n), lambda t: min(max(t, 0.0), 1.0)),
    "hundredths": DifficultLaw(
        lambda rng, n: rng.integers(1, 101, n) / 100,
        lambda t: int(np.searchsorted(_HUNDREDTHS, t, side="right")) / 100,
    ),
    "atoms 85/15": _atoms((0.2, 0.9), 0.85),
    "all ties": DifficultLaw(lambda rng, n: np.full(n, 0.5), lambda t: float(t >= 0.5)),
    "heavy tail": DifficultLaw(lambda rng, n: np.minimum(rng.pareto(0.3, n) / 1e6, 1.0), _heavy),
    "one value in a hundred differs": _atoms((0.0, 1.0), 0.99),
}


def check_coverage(subject: Subject, name: str, repeats: int, rng: np.random.Generator, level: float) -> Finding:
    """Compare the claim with the mean coverage after fresh calibrations on a difficult distribution, for each size."""
    claim = subject.claims.coverage
    assert claim is not None
    draw, law = subject.large or subject.draw, DIFFICULT_LAWS[name]
    trials = []
    for n in subject.coverage_sizes:
        covered = np.array([law.cdf(draw(law.sample(rng, n))) for _ in range(repeats)])
        trials.append((bet_against(covered, claim), float(covered.mean()), n))
    p, mean, n = min(trials)
    p = min(1.0, p * len(trials))
    sizes = " and ".join(str(size) for size in subject.coverage_sizes)
    how = f"{name}: {repeats} calibrations of {sizes} records each, the lowest coverage with {n}"
    return Finding(subject.name, "coverage", claim, mean, p >= level, f"{how}; p-value {p:.2g}, at least {level:.2g}")
