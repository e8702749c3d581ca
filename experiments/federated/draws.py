"""Thresholds by the exact laws of a plan's mechanisms, drawn fast and with a generator that can be seeded."""

import numpy as np

from confide import federated
from confide.guarantee import chosen_by_last_rule


def chosen(mechanism, counts: np.ndarray, rng: np.random.Generator) -> int:
    """A fast draw for experiments only: the largest of utility plus noise."""
    u = mechanism.utilities(counts) / mechanism.scale
    return int(np.argmax(u + rng.gumbel(size=len(u))))


def drawn(plan: federated.FederatedPlan, k: int, counts: np.ndarray, rng: np.random.Generator) -> float:
    """A threshold by the exact laws of the plan's mechanisms; counts by silo."""
    at = place_drawn(plan, k, counts, rng)
    return float("inf") if at is None else float(plan.candidates.values[at])


def place_drawn(plan: federated.FederatedPlan, k: int, counts: np.ndarray, rng: np.random.Generator) -> int | None:
    """Which candidate is drawn; None beyond all of them."""
    m = len(plan.silos)
    if plan.method == "private-qq":
        replies = sorted(chosen(plan.first.mechanism(i), counts[i], rng) for i in range(m))
        return replies[k - 1] if k <= m else None
    p, shares = -np.expm1(-1 / plan.first.scale), m / plan.first.honest
    noise = [rng.negative_binomial(shares, p, counts.shape[1]) for _ in range(2)]
    beyond = plan.first.size - plan.first.target
    return int(chosen_by_last_rule(counts.sum(axis=0) + noise[0] - noise[1], beyond))
