"""The figures that dp-accounting gives for releases whose privacy parameters were fixed in advance.

Every epsilon-DP mechanism is dominated by randomized response (Kairouz, Oh and Viswanath 2015), whose privacy-loss
distribution dp-accounting composes numerically, rounding upwards. Releases by the exponential mechanism enter the
Renyi accountant through their zCDP bound.
"""

import itertools
import logging
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from confide.ledger.cost import Bound, Cost, Group
from confide.support import needs_extra

MOST_VIEWS = 64
"""Combinations of cells, of one or more partitions, that are gone through."""

MOST_EPSILON = 500.0
"""Sums of epsilons beyond which numerical accounting overflows, and privacy has ended anyway."""

_FINEST, _CELLS = 1e-4, 1e5


def accounted(costs: Sequence[Cost], dp_delta: float) -> list[Bound]:
    """The bounds of dp-accounting.

    None if it is not installed, if the groups are too many to go through, or if the epsilons sum to more than 500.

    Examples
    --------
    >>> for bound in accounted([Cost(0.1, "add_remove", "slopes")] * 100, 1e-6):
    ...     print(bound.rule, round(bound.epsilon, 2))
    PLD 4.78
    RDP 5.07
    """
    if find_spec("dp_accounting") is None or sum(cost.epsilon for cost in costs) > MOST_EPSILON:
        return []
    views = list(itertools.islice(_views(costs), MOST_VIEWS + 1))
    if len(views) > MOST_VIEWS:
        return []
    by_loss = max(_composed(view, dp_delta) for view in views)
    by_order = max(_rdp_epsilon(view, dp_delta) for view in views)
    exponential = sum(cost.rho is not None for cost in costs)
    how = {
        ("PLD", by_loss): (
            f"privacy-loss distribution of {len(costs)} randomized responses of the same epsilons, composed by "
            f"dp-accounting at delta = {dp_delta:g}; holds if the epsilons were fixed in advance"
        ),
        ("RDP", by_order): (
            f"Renyi divergences of {exponential} releases by the exponential mechanism (through zCDP) and "
            f"{len(costs) - exponential} others (as randomized response), added by dp-accounting at delta = "
            f"{dp_delta:g}; holds if the parameters were fixed in advance"
        ),
    }
    return [Bound(epsilon, dp_delta, rule, words, adaptive=False) for (rule, epsilon), words in how.items()]


def _views(costs: Sequence[Cost]) -> Iterator[list[Cost]]:
    """Every list of releases that one record can take part in: one cell of each partition."""
    shared = [cost for cost in costs if cost.group is None]
    partitions: dict[str, dict[Group, list[Cost]]] = {}
    for cost in costs:
        if cost.group is not None:
            partitions.setdefault(cost.group.partition, {}).setdefault(cost.group, []).append(cost)
    for lists in itertools.product(*(cells.values() for cells in partitions.values())):
        yield [*shared, *itertools.chain(*lists)]


def pld_epsilon(costs: Sequence[Cost], dp_delta: float) -> float:
    """Epsilon at dp_delta of releases that one person is in, all of which were fixed in advance; infinite above 500.

    Raises
    ------
    MissingExtraError
        If dp-accounting is not installed.

    Examples
    --------
    >>> round(pld_epsilon([Cost(0.1, "add_remove", "slopes")] * 100, 1e-6), 2)
    4.78
    """
    if sum(cost.epsilon for cost in costs) > MOST_EPSILON:
        return math.inf
    with needs_extra("accounting by privacy-loss distributions", "accounting"):
        import dp_accounting  # noqa: F401
    return _composed(costs, dp_delta)


def _composed(costs: Sequence[Cost], dp_delta: float) -> float:
    from dp_accounting.pld import common, privacy_loss_distribution

    step = max(_FINEST, float(sum(cost.epsilon for cost in costs)) / _CELLS)
    total = None
    for epsilon, times in Counter(cost.epsilon for cost in costs).items():
        one = privacy_loss_distribution.from_privacy_parameters(
            common.DifferentialPrivacyParameters(math.nextafter(epsilon, math.inf), 0.0),
            value_discretization_interval=step,
        )
        many = one.self_compose(times) if times > 1 else one
        total = many if total is None else total.compose(many)
    assert total is not None
    return float(total.get_epsilon_for_delta(dp_delta))


def _rdp_epsilon(costs: Sequence[Cost], dp_delta: float) -> float:
    import dp_accounting

    # Randomized response on a replaced value is the dominating pair; zCDP bounds hold under any relation.
    accountant = dp_accounting.rdp.RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
    for cost in costs:
        accountant.compose(_event(cost))
    absl = logging.getLogger("absl")
    before = absl.level
    absl.setLevel(logging.CRITICAL)  # it comments on the best order being the largest one, which is no fault
    try:
        return float(accountant.get_epsilon(dp_delta))
    finally:
        absl.setLevel(before)


def _event(cost: Cost) -> Any:
    import dp_accounting

    if cost.rho is not None:
        return dp_accounting.ZCDpEvent(float(cost.zcdp))
    # Two buckets, replaced by a fair coin with probability p: epsilon = log(2/p - 1), p rounded towards more loss.
    p = 2 / (1 + np.exp(np.float64(min(cost.epsilon, 700.0))))
    return dp_accounting.RandomizedResponseDpEvent(noise_parameter=float(np.nextafter(p, 0.0)), num_buckets=2)
