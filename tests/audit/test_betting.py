"""The bet against a mean keeps its level exactly, and wins early where values scatter little."""

from fractions import Fraction

import numpy as np
import pytest

from tests.audit.harness.coverage import FRACTIONS, bet_against
from tests.audit.harness.sampler import repeats


@pytest.mark.parametrize(("claim", "low", "high"), [(0.9, 0.0, 1.0), (0.9, 0.85, 0.92), (0.5, 0.2, 0.6)])
@pytest.mark.parametrize("level", [0.5, 0.05, 1e-3])
def test_level_is_kept_exactly(claim, low, high, level):
    """Two values whose mean is the claim: the chance that the wealth ever reaches 1/level, step by step."""
    chance_low, steps = (high - claim) / (high - low), 250
    stakes = FRACTIONS / (1 - claim)
    up, down = (np.log1p(stakes * (claim - value)) for value in (low, high))
    alive, alarmed = np.array([1.0]), 0.0
    for n in range(1, steps + 1):
        lows = np.arange(n + 1)
        alive = np.append(alive * (1 - chance_low), 0) + np.append(0, alive * chance_low)
        wealth = np.exp(np.multiply.outer(lows, up) + np.multiply.outer(n - lows, down)).mean(axis=1)
        alarmed += alive[wealth >= 1 / level].sum()
        alive[wealth >= 1 / level] = 0
    assert 0 < alarmed <= level
    assert alarmed + alive.sum() == pytest.approx(1, abs=1e-12)


def test_p_value_is_the_highest_wealth():
    values = np.array([0.2, 0.9, 0.1, 1.0])
    claim, best = Fraction(1, 2), 1.0
    wealth = [1.0] * len(FRACTIONS)
    for value in values:
        wealth = [w * (1 + s / 0.5 * (0.5 - value)) for w, s in zip(wealth, FRACTIONS, strict=True)]
        best = max(best, sum(wealth) / len(wealth))
    assert bet_against(values, float(claim)) == pytest.approx(1 / best)
    assert bet_against(np.array([]), 0.9) == 1.0
    assert bet_against(np.ones(50), 0.9) == 1.0


def test_small_variance_needs_few_values():
    """.885 for .9 in 200 values of standard deviation .014, where Hoeffding's inequality needs 13,000."""
    values = 0.885 + 0.014 * np.repeat([-1.0, 1.0], 100)[np.random.default_rng(0).permutation(200)]
    assert bet_against(values, 0.9) < 1e-7


@pytest.mark.slow
def test_independent_outcomes_rarely_fail():
    """p-values below .05 in at most as many of 400 series as the binomial law allows at one in a million: 44."""
    rng = np.random.default_rng(4)
    found = sum(2 * min(repeats(rng.random(120) < 0.4)) < 0.05 for _ in range(400))
    assert found <= 44
