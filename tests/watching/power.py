"""Power of a watch to detect a drop: simulated from public numbers, with the same random numbers every time."""

import math
from collections.abc import Callable

import numpy as np

from confide.watching import e_process
from confide.watching.e_process import advance, bets, log_e_values, log_evidence

PATHS = 1000
_SEED = 20_240_501
_MOST_LOOKS = 1000
_CHANCE = 0.9

Share = Callable[[int, int], float]
"""Fraction of the initial wealth that enters at a look, or is left after it, for a planned number of looks."""


def looks_to_alarm(
    least: float,
    batch: int,
    epsilon: float,
    coverage: float,
    dropped_coverage: float,
    *,
    before: int = 0,
    looks: int = 52,
    error: float = 0.05,
    entering_wealth: Share = e_process.entering_wealth,
    cash: Share = e_process.cash,
    per_person: int = 1,
    most: int = _MOST_LOOKS,
) -> int | None:
    """Looks after a drop to `dropped_coverage` until 90 % of the paths have alarmed; None for more than `most`.

    Paths that alarm in the `before` looks before the drop are left out. `entering_wealth` and `cash` are the entering
    wealth.
    """
    paths = PATHS
    rng, bet = np.random.default_rng(_SEED), bets([least], batch, epsilon, per_person=per_person)
    alarm, log_wealth = math.log(1 / error), np.full((paths, bet.price.shape[1]), -np.inf)
    for look in range(1, before + most + 1):
        share = coverage if look <= before else dropped_coverage
        covered = per_person * rng.binomial(batch // per_person, share, len(log_wealth))
        missed = batch // per_person * per_person - covered
        x, y = covered + noise(rng, epsilon, len(covered)), missed + noise(rng, epsilon, len(covered))
        log_wealth = advance(log_wealth, log_e_values(bet, x, y), entering_wealth(look, looks))
        quiet = log_evidence(log_wealth, cash(look, looks)) < alarm
        log_wealth = log_wealth[quiet]
        if look <= before:
            paths = len(log_wealth)
        elif len(log_wealth) <= (1 - _CHANCE) * paths:
            return look - before
    return None


def noise(rng: np.random.Generator, epsilon: float, size: int) -> np.ndarray:
    """Noise for simulations; released counts use OpenDP's noise."""
    chance = -math.expm1(-epsilon)
    return rng.geometric(chance, size) - rng.geometric(chance, size)
