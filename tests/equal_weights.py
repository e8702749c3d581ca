"""Plans with equal weights, long lists of candidates, and slopes for uniform scores only.

Plans of the library are compared with them. Their rule for the slopes is written down here, whatever becomes of the
rest: the least shift plus drift on uniform scores at a reference size of 1000/epsilon records.
"""

import math
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from confide.core import PARTS, Plan
from confide.guarantee import moving_offset, moving_rate, sharp_loss, sharp_target_rank
from confide.mechanisms import UNIT, Slopes, slopes_for
from confide.scores import score_kind
from confide.selection import selection_law
from tests.designs import overridden


def plan_of_equal_weights(alpha, epsilon, n, *, score="lac", neighbors="add_remove", **options) -> Plan:
    """The plan with equal weights, for candidates that suit any request of the score."""
    candidates = score_kind(score).candidates()
    level = Fraction(1) - Fraction(str(alpha))
    slopes = first_slopes(level, max(epsilon, 0.5), neighbors, candidates.size)
    options = {"neighbors": neighbors, "candidates": candidates, **options}
    made = overridden(alpha, epsilon, n, slopes=slopes, rise=0, **options)
    return (
        made
        if made.terms.delta is not None
        else replace(made, design=replace(made.design, mechanism=first_mechanism(made, slopes)))
    )


def first_mechanism(plan: Plan, slopes: tuple[int, int]) -> Slopes | None:
    """The least target that the sharp certificate accepts, or for a secret n that of the noisy number."""
    request, n, size = plan.terms, plan.guarantee.n, plan.design.size
    terms = request.neighbors, request.per_record
    noise = slopes_for(request.rate, Fraction(1), *slopes, *terms).noise(plan.candidates.size)
    if n is not None:
        target = sharp_target_rank(n, request.level, noise, UNIT)
        return None if target is None or target > n else slopes_for(Fraction(0), target, *slopes, *terms)
    offset = moving_offset(request.level, size.scale, size.counted, noise, request.unit)
    return None if offset is None else slopes_for(request.rate, offset, *slopes, *terms)


@lru_cache
def first_slopes(level: Fraction, epsilon: float, neighbors: str, m: int) -> tuple[int, int]:
    """Left and right slope."""
    n = max(100, round(1000 / epsilon))

    @lru_cache
    def excess(left: int) -> float:
        rate = Fraction(0) if neighbors == "replace_one" else moving_rate(level)
        trial = slopes_for(rate, Fraction(1), left, PARTS - left, neighbors, epsilon)
        noise = trial.noise(m)
        if neighbors == "replace_one":
            target = sharp_target_rank(n, level, noise, UNIT)
            shift = math.inf if target is None else float(target - level * (n + 1))
        else:
            shift = sharp_loss(1.0, noise.left, noise.rivals)
        return shift + drift(trial.slope_left, trial.slope_right, m, n / m)

    left = 14
    while left + 1 < PARTS and excess(left + 1) < excess(left):
        left += 1
    while left > 1 and excess(left - 1) < excess(left):
        left -= 1
    return left, PARTS - left


def drift(slope_left: float, slope_right: float, m: int, spacing: float) -> float:
    """Mean rank of the chosen candidate minus the target, for candidates `spacing` ranks apart on both sides."""
    left = np.arange(1, min(m // 2, math.ceil(40 / (slope_left * spacing))) + 1)
    right = np.arange(0, min(m - m // 2, math.ceil(40 / (slope_right * spacing)) + 1))
    ranks = np.concatenate([-left[::-1], right]) * spacing
    return float(selection_law(np.exp(np.where(ranks < 0, slope_left, -slope_right) * ranks)) @ ranks)
