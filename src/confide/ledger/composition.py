"""What many releases cost together, always with the derivation of the figure (docs/ledger.md has the proofs).

Releases about all records add up. Releases about disjoint groups cost their maximum, under `add_remove` only: one
record is in one cell of each partition (parallel composition, McSherry 2009).
"""

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

from confide.errors import InputError
from confide.ledger.accountants import accounted
from confide.ledger.cost import NO_EPSILON, Bound, Cost, Loss, decimal_above
from confide.selection import check_sampler, with_contrib
from confide.support import float_above

_LARGE_RHO = 50.0


def compose(costs: Iterable[Cost], dp_delta: float = 0.0, *, adaptive: bool = False) -> Loss:
    """The tightest valid (epsilon, dp_delta) of releases together.

    One release without privacy makes it infinite, whatever the others are. One with zero-concentrated privacy alone
    has no pure epsilon, and is bounded at a dp_delta above 0.

    Parameters
    ----------
    costs
        The releases, all under one neighbouring relation.
    dp_delta
        The delta of approximate differential privacy, in [0, 1); 0 asks for pure epsilon. Above 0 the bounds are:
        the sum of epsilons; zero-concentrated privacy with OpenDP's conversion; and, if dp-accounting is installed,
        Renyi and privacy-loss-distribution accounting.
    adaptive
        Only bounds that hold if later privacy parameters were chosen after seeing earlier releases (docs/ledger.md,
        Lemma 2): the sum and zero-concentrated privacy.

    Raises
    ------
    InputError
        If the costs are stated for different relations, or dp_delta is outside [0, 1).

    Examples
    --------
    >>> one = Cost(0.1, "add_remove", "slopes", rho=0.1**2 / 8)
    >>> loss = compose([one] * 100, 1e-6, adaptive=True)
    >>> loss.best.rule, round(loss.epsilon, 2)
    ('zCDP', 2.42)
    """
    charged = [cost for cost in costs if cost.epsilon > 0]
    if len({cost.neighbors for cost in charged}) > 1:
        raise InputError("costs are stated for different neighbouring relations; account for each relation by itself")
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
            bounds += accounted(charged, dp_delta)
    return Loss(tuple(sorted(bounds, key=lambda bound: bound.epsilon)))


def check_delta(dp_delta: float) -> float:
    """A delta of approximate differential privacy: 0, or at least 1e-300, and below 1."""
    if isinstance(dp_delta, bool) or not isinstance(dp_delta, int | float) or not (0 <= dp_delta < 1):
        raise InputError(f"dp_delta must be a number of at least 0 and below 1; found {dp_delta!r}")
    if 0 < dp_delta < 1e-300:
        raise InputError(f"dp_delta must be 0 or at least 1e-300; found {dp_delta!r}")
    return float(dp_delta)


def worst(costs: Sequence[Cost], weight: Callable[[Cost], Fraction]) -> Fraction:
    """The largest sum of weights over the releases that one record takes part in.

    Releases about all records count in full; of each partition, the cell with the largest sum.

    Examples
    --------
    >>> from confide.ledger.cost import Bound, Group, Loss
    >>> both = [Cost(1.0, "add_remove", "m", None, Group("sex", cell)) for cell in ("f", "m")]
    >>> worst([Cost(0.5, "add_remove", "m"), *both], lambda cost: cost.exact)
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


def _sum(costs: Sequence[Cost]) -> Bound:
    total = worst(costs, lambda cost: cost.exact)
    if any(cost.group for cost in costs):
        how = f"{len(costs)} releases, the epsilons add up, of disjoint groups the largest counts"
    else:
        how = f"{len(costs)} release{'s, the epsilons add up' if len(costs) != 1 else ''}"
    return Bound(decimal_above(total), 0.0, "sum", how, adaptive=True)


def _zcdp(costs: Sequence[Cost], dp_delta: float) -> Bound:
    rho = float_above(worst(costs, lambda cost: cost.zcdp))
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
        # A zCDP measurement whose loss at distance 1 is (1/scale)^2/8 = rho, never run: only its map is asked.
        scale = (1 / (8 * rho)) ** 0.5
        while True:
            measurement: Any = make_noisy_max(domain, metric, zero_concentrated_divergence(), scale=scale)
            if measurement.map(1) >= rho:
                return make_zCDP_to_approxDP(measurement)
            scale *= 1 - 2**-50

    profile: Any = with_contrib(build)
    return float(profile.map(1).epsilon(dp_delta))
