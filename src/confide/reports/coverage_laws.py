"""The distribution of coverage over calibration draws, from public numbers only.

Coverage is a random number: it depends on which records happened to calibrate, and on the noise. Two laws of it are
known without the data. The random-rank lemma bounds it for every distribution of scores (docs/theory.md, Theorem 2b;
exact for continuous scores without privacy and for `fedcp-qq`). And on typical scores, evenly spread ones, the rank of
the selected candidate has a known law, whose mean is the expected coverage that `confide.plan` states.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.candidates import Candidates
from confide.federated import FederatedCalibration
from confide.guarantee import binomial_at_least, law_failure
from confide.mechanisms import Mechanism, Slopes
from confide.planning import Plan, typical_answer, typical_law
from confide.releases import Calibration, candidates_of
from confide.support import MOST_RECORDS

POINTS = 121
SURE = (0.99, 0.95, 0.75, 0.5)
SECRET_SIZES = (100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)

Failure = Callable[[float], float]
"""Level c -> probability that coverage given the calibration data is below c."""


@dataclass(frozen=True)
class Law:
    """How coverage varies from calibration to calibration, for one number of records (None: the federation's business).

    At each of POINTS increasing levels: the probability that coverage is below it, at most, for every distribution of
    scores (`bound`), and on evenly spread scores (`expected`, if that is known). By `bound`: what is reached at least
    with each of the probabilities SURE, and the probability that 1 - alpha is missed.
    """

    n: int | None
    levels: tuple[float, ...]
    bound: tuple[float, ...]
    expected: tuple[float, ...] | None
    reached: tuple[float, ...]
    missed: float

    def fields(self) -> dict[str, Any]:
        """As JSON values, rounded to six decimals."""
        lists = {"levels": self.levels, "bound": self.bound, "expected": self.expected, "reached": self.reached}
        rounded = {name: None if of is None else [round(p, 6) for p in of] for name, of in lists.items()}
        return {"n": self.n, **rounded, "missed": round(self.missed, 6)}


def law(bound: Failure, expected: Failure | None, level: float, n: int | None) -> Law:
    """Two laws, drawn where they have their mass.

    Examples
    --------
    >>> law(lambda c: c**2, None, 0.9, 5).reached[3]  # the median of a law with distribution function c^2
    0.7071068
    """
    low, high = _reach(bound, 0.002), _reach(expected or bound, 0.998)
    room = 0.05 * max(high - low, 1e-3)
    levels = np.linspace(max(0.0, low - room), min(1.0, high + room), POINTS).tolist()
    return Law(
        n,
        tuple(levels),
        tuple(bound(c) for c in levels),
        None if expected is None else tuple(expected(c) for c in levels),
        tuple(_reach(bound, 1 - p) for p in SURE),
        bound(level),
    )


def laws(calibration: Calibration) -> tuple[Law, ...]:
    """One law for a public number of records; for a secret one, a law for each of a few numbers.

    Empty if the mechanism has no such law, and if the answer was +inf from the start.
    """
    level = float(1 - calibration.alpha)
    if isinstance(calibration, FederatedCalibration):
        found = calibration.coverage_failure()
        return () if found(0.5) == 1.0 or found(1.0) == 0.0 else (law(found, None, level, calibration.n),)
    sizes = _sizes(calibration.n, calibration.guarantee.n_min)
    return _laws(calibration.mechanism, candidates_of(calibration), level, sizes)


def plan_laws(plan: Plan) -> tuple[Law, ...]:
    """The same for a plan, at its own number of records besides."""
    request = plan.request
    sizes = _sizes(request.n, request.n_min, plan.n)
    return _laws(plan.mechanism, request.candidates, float(request.level), sizes)


def _laws(mechanism: Mechanism | None, candidates: Candidates, level: float, sizes: tuple[int, ...]) -> tuple[Law, ...]:
    if mechanism is None:
        return ()
    found = []
    for n in sizes:
        ranks = mechanism.rank_law(n, candidates.size)
        if ranks is None:
            return ()
        expected = _typical(mechanism, n, candidates) if isinstance(mechanism, Slopes) else None
        found.append(law(lambda c, ranks=ranks, n=n: law_failure(ranks, n, c), expected, level, n))  # type: ignore[misc]
    return tuple(found)


def _typical(mechanism: Slopes, n: int, candidates: Candidates) -> Failure:
    """A candidate of rank r covers Beta(r, n + 1 - r); r follows from the law of the answer on typical scores."""
    law, ranks = typical_answer(mechanism, candidates, n), (n + 1) * typical_law(candidates)
    finite = (ranks > 0) & (ranks < n + 1) & (law > 1e-9)
    ranks, weights, never = ranks[finite], law[finite], float(law[ranks <= 0].sum())
    return lambda c: never + float(weights @ binomial_at_least(ranks, n, c))


def _sizes(n: int | None, n_min: int | None, *more: int) -> tuple[int, ...]:
    if n is not None:
        return (n,)
    least = n_min or 1
    sizes = {size for size in SECRET_SIZES if size >= least} | set(more)
    if least > SECRET_SIZES[0]:
        sizes |= {min(least * step, MOST_RECORDS) for step in (1, 2, 5, 10)}
    return tuple(sorted(sizes))


def _reach(failure: Failure, p: float) -> float:
    """The largest level, to seven digits, at which the probability of less is at most p."""
    from scipy.optimize import brentq

    if failure(0.0) > p or failure(1.0) <= p:
        return float(failure(0.0) <= p)
    return round(float(brentq(lambda level: failure(level) - p, 0.0, 1.0, xtol=1e-8)), 7)
