"""Composition: the privacy loss of several releases together, with its derivation.

Proofs are in docs/theory-composition.md. Costs of releases about all records add up. Releases about disjoint groups
cost their maximum, under `add_remove` only: one record is in one cell of each partition (parallel composition, McSherry
2009).

dp-accounting gives further bounds for releases with privacy parameters fixed in advance. Every epsilon-DP mechanism is
dominated by randomized response (Kairouz, Oh and Viswanath 2015), whose privacy-loss distribution dp-accounting
composes numerically, rounding upwards. Releases by the exponential mechanism enter the Renyi accountant through their
zCDP bound.
"""

import itertools
import logging
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from confide.errors import InputError
from confide.ledger.cost import NO_EPSILON, Bound, Cost, Group, Loss, decimal, decimal_above
from confide.selection import check_sampler, with_contrib
from confide.support import float_above, needs_extra

_LARGE_RHO = 50.0
_LEAST_RHO = 1e-300
"""For smaller rho, which no float can invert, this value is used as an upper bound."""


def compose(costs: Iterable[Cost], dp_delta: float = 0.0, *, adaptive: bool = False) -> Loss:
    """The tightest valid (epsilon, dp_delta) of releases together.

    With one release without privacy it is infinite. Releases with zero-concentrated privacy alone have no pure epsilon,
    and are bounded at a dp_delta above 0.

    Parameters
    ----------
    costs
        The costs of the releases, all under one adjacency.
    dp_delta
        The delta of approximate differential privacy, in [0, 1); 0 means pure epsilon. Above 0 the bounds are:
        the sum of epsilons; zero-concentrated privacy with OpenDP's conversion; and, if dp-accounting is installed,
        Renyi and privacy-loss-distribution accounting.
    adaptive
        Use only bounds that hold if later privacy parameters were chosen after seeing earlier releases
        (docs/theory-composition.md, Lemma B2): the sum and zero-concentrated privacy.

    Raises
    ------
    InputError
        If the costs are stated for different adjacencies, or dp_delta is outside [0, 1).

    Examples
    --------
    >>> one = Cost(0.1, "add_remove", "slopes", rho=0.1**2 / 8)
    >>> loss = compose([one] * 100, 1e-6, adaptive=True)
    >>> loss.best.rule, round(loss.epsilon, 2)
    ('zCDP', 2.42)
    """
    charged = [cost for cost in costs if cost.epsilon > 0]
    if len({cost.neighbors for cost in charged}) > 1:
        raise InputError(
            "costs", "are stated for different neighbouring relations", remedy="Account for each relation by itself"
        )
    check_delta(dp_delta)
    if bare := sum(not (cost.private or cost.concentrated_only) for cost in charged):
        how = f"{bare} of {len(charged)} releases {'are' if bare > 1 else 'is'} without privacy, which no sum can hold"
        return Loss((Bound(math.inf, 0.0, "sum", how, adaptive=True),))
    concentrated = sum(cost.concentrated_only for cost in charged)
    if concentrated and not dp_delta:
        have = "has" if concentrated == 1 else "have"
        how = f"{concentrated} of {len(charged)} releases {have} zCDP alone; state a delta"
        return Loss((Bound(math.inf, 0.0, NO_EPSILON, how, adaptive=True),))
    bounds = [] if concentrated else [_sum(charged)]
    if dp_delta > 0 and charged:
        bounds.append(_zcdp(charged, dp_delta))
        if not adaptive and not concentrated:
            bounds += dp_accounting_bounds(charged, dp_delta)
    return Loss(tuple(sorted(bounds, key=lambda bound: bound.epsilon)))


def check_delta(dp_delta: float) -> float:
    """A delta of approximate differential privacy: 0, or at least 1e-300, and below 1."""
    if isinstance(dp_delta, bool) or not isinstance(dp_delta, int | float) or not (0 <= dp_delta < 1):
        raise InputError("dp_delta", "must be a number of at least 0 and below 1", got=repr(dp_delta))
    if 0 < dp_delta < 1e-300:
        raise InputError("dp_delta", "must be 0 or at least 1e-300", got=repr(dp_delta))
    return float(dp_delta)


def largest_sum(costs: Sequence[Cost], weight: Callable[[Cost], Fraction]) -> Fraction:
    """The largest sum of weights over the releases that one record is in.

    Releases about all records count in full. Of each partition, the cell with the largest sum counts.

    Examples
    --------
    >>> from confide.ledger.cost import Bound, Group, Loss
    >>> both = [Cost(1.0, "add_remove", "m", None, Group("sex", cell)) for cell in ("f", "m")]
    >>> largest_sum([Cost(0.5, "add_remove", "m"), *both], lambda cost: cost.exact)
    Fraction(3, 2)
    """
    total, cells = Fraction(0), dict[str, dict[str, Fraction]]()
    for cost in costs:
        if cost.group is None:
            total += weight(cost)
        else:
            sums = cells.setdefault(cost.group.partition, {})
            sums[cost.group.cell] = sums.get(cost.group.cell, Fraction(0)) + weight(cost)
    return total + sum((max(sums.values()) for sums in cells.values()), Fraction(0))


class Limit(NamedTuple):
    """Limit on the budget of a data set: (epsilon, dp_delta)-differential privacy of all releases together."""

    epsilon: float
    dp_delta: float = 0.0

    def holds(self, costs: Sequence[Cost]) -> bool:
        """Whether these costs, each with an epsilon, are within the limit together.

        The exact sum of the epsilons is within it, or with dp_delta > 0 the sum of the zero-concentrated losses. One
        delta is spent because only one of the two rules has one (docs/theory-composition.md, Lemma B2).

        Examples
        --------
        >>> ten = [Cost(0.1, "add_remove", "slopes")] * 10
        >>> Limit(1.0).holds(ten), Limit(0.9).holds(ten), Limit(0.9, 1e-2).holds(ten)
        (True, False, False)
        """
        if largest_sum(costs, lambda cost: cost.exact) <= decimal(self.epsilon):
            return True
        rho = float_above(largest_sum(costs, lambda cost: cost.zcdp))
        return self.dp_delta > 0 and epsilon_of_zcdp(rho, self.dp_delta) <= self.epsilon


def _sum(costs: Sequence[Cost]) -> Bound:
    total = largest_sum(costs, lambda cost: cost.exact)
    if any(cost.group for cost in costs):
        how = f"{len(costs)} releases, the epsilons add up, of disjoint groups the largest counts"
    else:
        how = f"{len(costs)} release{'s, the epsilons add up' if len(costs) != 1 else ''}"
    return Bound(decimal_above(total), 0.0, "sum", how, adaptive=True)


def _zcdp(costs: Sequence[Cost], dp_delta: float) -> Bound:
    rho = float_above(largest_sum(costs, lambda cost: cost.zcdp))
    better = sum(cost.rho is not None for cost in costs)
    which = "" if any(cost.concentrated_only for cost in costs) else " by the exponential mechanism"
    how = (
        f"{len(costs)} releases are {rho:.6g}-zCDP together (what is stated for {better}{which}, "
        f"epsilon^2/2 for {len(costs) - better} others), converted at delta = {dp_delta:g}"
    )
    return Bound(epsilon_of_zcdp(rho, dp_delta), dp_delta, "zCDP", how, adaptive=True)


def epsilon_of_zcdp(rho: float, dp_delta: float) -> float:
    """Epsilon at dp_delta of rho-zCDP.

    OpenDP's conversion (Canonne, Kamath and Steinke 2020); where that overflows, from rho = 50 on,
    rho + 2 sqrt(rho ln(1/dp_delta)) (Bun and Steinke 2016, Proposition 1.3).

    Examples
    --------
    >>> round(epsilon_of_zcdp(0.5, 1e-6), 2)
    5.22
    """
    if rho >= _LARGE_RHO:
        return (rho + 2 * math.sqrt(rho * -math.log(dp_delta))) * (1 + 1e-15)
    check_sampler()
    from opendp.combinators import make_zCDP_to_approxDP
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_noisy_max
    from opendp.measures import zero_concentrated_divergence
    from opendp.metrics import linf_distance

    def build() -> Any:
        domain = vector_domain(atom_domain(T="i64"))
        metric = linf_distance(T="i64", monotonic=True)
        # A zCDP measurement whose loss at distance 1 is (1/scale)^2/8 = rho. It is never run; only its map is called.
        scale = (1 / (8 * max(rho, _LEAST_RHO))) ** 0.5
        while True:
            measurement: Any = make_noisy_max(domain, metric, zero_concentrated_divergence(), scale=scale)
            if measurement.map(1) >= rho:
                return make_zCDP_to_approxDP(measurement)
            scale *= 1 - 2**-50

    profile: Any = with_contrib(build)
    return float(profile.map(1).epsilon(dp_delta))


MOST_VIEWS = 64
"""Largest number of combinations of cells, of one or more partitions, that are enumerated."""

MOST_EPSILON = 500.0
"""Sum of epsilons above which numerical accounting overflows and privacy is void anyway."""

_FINEST, _CELLS = 1e-4, 1e5


def dp_accounting_bounds(costs: Sequence[Cost], dp_delta: float) -> list[Bound]:
    """The bounds of dp-accounting.

    The list is empty if dp-accounting is not installed, if there are more than `MOST_VIEWS` combinations of groups, or
    if the epsilons sum to more than 500.

    Examples
    --------
    >>> for bound in dp_accounting_bounds([Cost(0.1, "add_remove", "slopes")] * 100, 1e-6):
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
    """Every list of releases that one record can be in: one cell of each partition."""
    shared = [cost for cost in costs if cost.group is None]
    partitions: dict[str, dict[Group, list[Cost]]] = {}
    for cost in costs:
        if cost.group is not None:
            partitions.setdefault(cost.group.partition, {}).setdefault(cost.group, []).append(cost)
    for lists in itertools.product(*(cells.values() for cells in partitions.values())):
        yield [*shared, *itertools.chain(*lists)]


def pld_epsilon(costs: Sequence[Cost], dp_delta: float) -> float:
    """Epsilon at dp_delta of releases that one person is in, with parameters fixed in advance; infinite above 500.

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
    absl.setLevel(logging.CRITICAL)  # it warns if the best order is the largest one, which is harmless
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
