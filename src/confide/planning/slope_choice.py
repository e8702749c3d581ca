"""Which slopes to use: those that minimise the expected excess on evenly spread scores.

The choice depends on public numbers only and touches efficiency, never validity.
"""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from confide.guarantee import private_shift, public_shift
from confide.mechanisms import UNIT, Neighbors, slopes_for
from confide.selection import Selector, selection_law

PARTS = 20
"""Slopes are integers that sum to PARTS: left = 15, right = 5 puts three quarters of the loss on the left."""

_REACH = 40.0


@np.errstate(under="ignore")
def evenly_spread_law(
    slope_left: float, slope_right: float, m: int, spacing: float, selector: Selector
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rank of the selected candidate minus the target, and its law, for candidates `spacing` ranks apart.

    Both are float64 of shape (k,), for the k candidates near enough to matter.
    """
    left = np.arange(1, min(m // 2, math.ceil(_REACH / (slope_left * spacing))) + 1)
    right = np.arange(0, min(m - m // 2, math.ceil(_REACH / (slope_right * spacing)) + 1))
    ranks = np.concatenate([-left[::-1], right]) * spacing
    weights = np.exp(np.where(ranks < 0, slope_left, -slope_right) * ranks)
    return ranks, selection_law(weights, selector)


def expected_drift(slope_left: float, slope_right: float, m: int, spacing: float, selector: Selector) -> float:
    """Mean rank of the selected candidate minus the target, for candidates `spacing` ranks apart on both sides.

    Examples
    --------
    >>> round(expected_drift(0.7, 0.3, 1000, 1.0, "permute_and_flip"), 2)
    1.75
    """
    ranks, probabilities = evenly_spread_law(slope_left, slope_right, m, spacing, selector)
    return float(probabilities @ ranks)


@lru_cache(maxsize=256)
def best_slopes(level: Fraction, epsilon: float, neighbors: Neighbors, m: int, selector: Selector) -> tuple[int, int]:
    """Integer slopes (left, right) that minimise shift plus drift at a reference size of 1000/epsilon records."""
    size = max(100, round(1000 / epsilon))

    @lru_cache
    def excess(left: int) -> float:
        trial = slopes_for(Fraction(0), Fraction(1), left, PARTS - left, neighbors, epsilon, selector)
        if neighbors == "replace_one":
            target = public_shift(size, level, trial.slope_left, trial.slope_right, m - 1, selector, UNIT)
            shift = math.inf if target is None else float(target - level * (size + 1))
        else:
            trial = slopes_for(level, Fraction(1), left, PARTS - left, neighbors, epsilon, selector)
            unit = level.denominator * -(-UNIT // level.denominator)
            shift = float(private_shift(level, trial.slope_left, trial.slope_right, m - 1, selector, unit))
        return shift + expected_drift(trial.slope_left, trial.slope_right, m, size / m, selector)

    left = 14
    while left + 1 < PARTS and excess(left + 1) < excess(left):
        left += 1
    while left > 1 and excess(left - 1) < excess(left):
        left -= 1
    return left, PARTS - left
