"""Composition: the privacy loss of several releases together, with its derivation.

Proofs are in docs/theory-composition.md. Costs of releases about all records add up. Releases about disjoint groups
cost their maximum, under `add_remove` only: one record is in one cell of each partition (parallel composition, McSherry
2009).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from typing import Any, NamedTuple

from confide.errors import InputError
from confide.ledger.cost import Cost, Group
from confide.ledger.decimals import decimal, decimal_above, decimal_below, decimal_form
from confide.ledger.loss import NO_EPSILON, Bound, Loss
from confide.selection import check_sampler, with_contrib
from confide.support import float_above, require

# From this rho on OpenDP's conversion overflows
_LARGE_RHO = 50.0

# The least delta above 0; and of smaller rho, which no float can invert, an upper bound
_LEAST = 1e-300


def compose(costs: Iterable[Cost], dp_delta: float = 0.0) -> Loss:
    """The tightest valid (epsilon, dp_delta) of releases together.

    The epsilon is infinite if one release has no privacy. Releases with zero-concentrated privacy alone have no pure
    epsilon: their total is bounded only at a dp_delta above 0.

    Parameters
    ----------
    costs
        The costs of the releases, all under one adjacency.
    dp_delta
        The delta of approximate differential privacy, in [0, 1); 0 means pure epsilon. Above 0 there are two bounds:
        the sum of epsilons, and the sum of zero-concentrated losses with OpenDP's conversion. Both hold if later
        privacy parameters were chosen after earlier releases were seen (docs/theory-composition.md, Lemma B2).

    Raises
    ------
    InputError
        If the costs are stated for different adjacencies, or dp_delta is outside [0, 1).

    Examples
    --------
    >>> cost = Cost(0.1, "add_remove", "slopes", rho=0.1**2 / 8)
    >>> loss = compose([cost] * 100, 1e-6)
    >>> loss.best.rule, round(loss.epsilon, 2)
    ('zCDP', 2.42)
    """
    # One adjacency; a release at no cost fits any
    charged = [cost for cost in costs if cost.epsilon > 0]
    same_relation = len({cost.neighbors for cost in charged}) <= 1
    must = "are stated for different neighbouring relations"
    remedy = "Account for each relation by itself"
    require("costs", same_relation, must, remedy=remedy)
    check_delta(dp_delta)

    # A release without an epsilon has no bound, or one at a delta alone
    totals = Totals.of(charged)
    if bare := totals.bare:
        derivation = (
            f"{bare} of {len(charged)} releases {'are' if bare > 1 else 'is'} without privacy: the total is infinite"
        )
        return Loss((Bound(math.inf, 0.0, "sum", derivation),))
    concentrated = totals.concentrated
    if concentrated and not dp_delta:
        verb = "has" if concentrated == 1 else "have"
        derivation = f"{concentrated} of {len(charged)} releases {verb} zCDP alone; state a delta"
        return Loss((Bound(math.inf, 0.0, NO_EPSILON, derivation),))

    # Every valid bound, the tightest first
    bounds = [] if concentrated else [_sum(charged, totals)]
    if dp_delta > 0 and charged:
        bounds.append(_zcdp(charged, totals, dp_delta))
    return Loss(tuple(sorted(bounds, key=lambda bound: bound.epsilon)))


def check_delta(dp_delta: float) -> float:
    """A delta of approximate differential privacy: 0, or at least 1e-300, and below 1."""
    if isinstance(dp_delta, bool) or not isinstance(dp_delta, int | float) or not (0 <= dp_delta < 1):
        raise InputError("dp_delta", "must be a number of at least 0 and below 1", got=repr(dp_delta))
    require("dp_delta", not 0 < dp_delta < _LEAST, f"must be 0 or at least {_LEAST:g}", got=repr(dp_delta))
    return float(dp_delta)


class Sums(NamedTuple):
    """Exact sums of losses: the epsilons that are finite, and the zero-concentrated losses."""

    epsilon: Fraction = Fraction(0)
    zcdp: Fraction = Fraction(0)

    def plus(self, other: "Sums") -> "Sums":
        """The sum of both."""
        return Sums(self.epsilon + other.epsilon, self.zcdp + other.zcdp)

    def minus(self, other: "Sums") -> "Sums":
        """The difference of both."""
        return Sums(self.epsilon - other.epsilon, self.zcdp - other.zcdp)

    def largest(self, other: "Sums") -> "Sums":
        """The larger of each."""
        return Sums(max(self.epsilon, other.epsilon), max(self.zcdp, other.zcdp))


@dataclass(frozen=True)
class Totals:
    """The exact totals of the charges of a data set: what a decision about another charge depends on.

    `sums` are the losses of the person who loses most: releases about all records count in full, and of each partition
    the cell with the largest sum. `bare` counts the charges without privacy, and `concentrated` those with
    zero-concentrated privacy alone. `partitions` has the largest sum of a cell for each partition.
    """

    sums: Sums = field(default_factory=Sums)
    kinds: Mapping[str, int] = field(default_factory=dict)
    bare: int = 0
    concentrated: int = 0
    cells: Mapping[Group, Sums] = field(default_factory=dict)
    partitions: Mapping[str, Sums] = field(default_factory=dict)

    @classmethod
    def of(cls, costs: Iterable[Cost]) -> "Totals":
        """The totals of these costs."""
        return reduce(cls.plus, costs, cls())

    def plus(self, cost: Cost) -> "Totals":
        """The totals after one more charge."""
        # An infinite loss is counted, not added
        bare = not (cost.private or cost.concentrated_only)
        added = Sums(cost.exact if cost.private else Fraction(0), Fraction(0) if bare else cost.zcdp)
        cells = dict(self.cells)
        partitions = dict(self.partitions)
        # Of a cell, only what exceeds the largest cell of its partition so far
        if cost.group is not None:
            cell = cells.get(cost.group, Sums()).plus(added)
            before = partitions.get(cost.group.partition, Sums())
            largest = before.largest(cell)
            added = largest.minus(before)
            cells[cost.group] = cell
            partitions[cost.group.partition] = largest
        kinds = {**self.kinds, cost.kind: self.kinds.get(cost.kind, 0) + 1}
        concentrated = self.concentrated + cost.concentrated_only
        return Totals(self.sums.plus(added), kinds, self.bare + bare, concentrated, cells, partitions)

    @property
    def releases(self) -> int:
        """The number of charges."""
        return sum(self.kinds.values())

    @property
    def private(self) -> bool:
        """Whether every charge has a finite epsilon."""
        return not (self.bare or self.concentrated)

    @property
    def epsilon(self) -> float:
        """The sum of the epsilons, rounded up; infinite unless all are finite."""
        return decimal_above(self.sums.epsilon) if self.private else math.inf

    @property
    def text(self) -> str:
        """The sum of the epsilons; for an infinite one what the charges lack."""
        if self.private:
            return decimal_form(self.epsilon)
        return f"+inf ({'not private' if self.bare else 'zCDP alone'})"


class Limit(NamedTuple):
    """Limit on the budget of a data set: (epsilon, dp_delta)-differential privacy of all releases together."""

    epsilon: float
    dp_delta: float = 0.0

    @property
    def text(self) -> str:
        """The limit as people read it."""
        return decimal_form(self.epsilon) + (f" at delta {self.dp_delta:g}" if self.dp_delta else "")

    def allows(self, totals: Totals, costs: Iterable[Cost]) -> bool:
        """Whether these releases together are within the limit, after those of the totals.

        The exact sum of the epsilons must be within the limit, or with dp_delta > 0 the sum of the zero-concentrated
        losses. dp_delta is spent once, because only the second rule uses it (docs/theory-composition.md, Lemma B2).
        A release with zCDP alone, or without privacy, fits no limit.

        Examples
        --------
        >>> ten = [Cost(0.1, "add_remove", "slopes")] * 10
        >>> [limit.allows(Totals(), ten) for limit in (Limit(1.0), Limit(0.9), Limit(0.9, 1e-2))]
        [True, False, True]
        """
        charged = [cost for cost in costs if cost.epsilon > 0]
        if not charged:
            return True
        after = reduce(Totals.plus, charged, totals)
        if not after.private:
            return False
        if after.sums.epsilon <= decimal(self.epsilon):
            return True
        return self.dp_delta > 0 and epsilon_of_zcdp(float_above(after.sums.zcdp), self.dp_delta) <= self.epsilon

    def left(self, totals: Totals, group: Group | None = None) -> float:
        """The largest epsilon of one more release that certainly is within the limit, by the sum of epsilons alone."""
        left = decimal(self.epsilon) - totals.sums.epsilon
        if left < 0 or not totals.private:
            return 0.0
        # A cell has also the room up to the largest cell of its partition
        if group is not None:
            largest = totals.partitions.get(group.partition, Sums())
            left += largest.minus(totals.cells.get(group, Sums())).epsilon
        return decimal_below(left)


def _sum(costs: Sequence[Cost], totals: Totals) -> Bound:
    derivation = "1 release"
    if len(costs) != 1:
        derivation = f"{len(costs)} releases, the epsilons add up"
        if any(cost.group for cost in costs):
            derivation += ", of disjoint groups the largest counts"
    return Bound(decimal_above(totals.sums.epsilon), 0.0, "sum", derivation)


def _zcdp(costs: Sequence[Cost], totals: Totals, dp_delta: float) -> Bound:
    rho = float_above(totals.sums.zcdp)
    stated = sum(cost.rho is not None for cost in costs)
    source = "" if any(cost.concentrated_only for cost in costs) else " by the exponential mechanism"
    total = f"1 release is {rho:.6g}-zCDP" if len(costs) == 1 else f"{len(costs)} releases are {rho:.6g}-zCDP together"
    derivation = (
        f"{total} (what is stated for {stated}{source}, "
        f"epsilon^2/2 for {len(costs) - stated} others), converted at delta = {dp_delta:g}"
    )
    return Bound(epsilon_of_zcdp(rho, dp_delta), dp_delta, "zCDP", derivation)


def epsilon_of_zcdp(rho: float, dp_delta: float) -> float:
    """Epsilon at dp_delta of rho-zCDP, by OpenDP's conversion (Canonne, Kamath and Steinke 2020).

    Examples
    --------
    >>> round(epsilon_of_zcdp(0.5, 1e-6), 2)
    5.22
    """
    if rho >= _LARGE_RHO:  # Bun and Steinke 2016, Proposition 1.3, rounded up
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
        scale = (1 / (8 * max(rho, _LEAST))) ** 0.5
        while True:
            measurement: Any = make_noisy_max(domain, metric, zero_concentrated_divergence(), scale=scale)
            if measurement.map(1) >= rho:
                return make_zCDP_to_approxDP(measurement)
            scale *= 1 - 2**-50

    profile: Any = with_contrib(build)
    return float(profile.map(1).epsilon(dp_delta))
