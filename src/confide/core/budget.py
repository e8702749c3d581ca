"""The division of a request among its thresholds: of its privacy budget, its failure probability and its levels."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from confide.errors import InputError
from confide.mechanisms import PublishedHistogram, SizeShare, size_scale, size_zcdp, split_epsilon
from confide.selection import range_of_zcdp
from confide.support import LEAST_LOSS, Level, exact_level, float_below, privacy_loss, several


@dataclass(frozen=True)
class Budget:
    """The privacy loss of a person: epsilon, or a zCDP loss rho; neither without privacy."""

    epsilon: float | None = None
    rho: float | None = None

    def __post_init__(self) -> None:
        if self.epsilon is not None and self.rho is not None:
            raise InputError("epsilon", "epsilon or rho must be given, and not both")

    def divided(self, shares: Sequence[Fraction], *, replaced: bool = False) -> list["Budget"]:
        """A budget for each share."""
        if self.epsilon is None and self.rho is None:
            return [self for _ in shares]
        # Where a replaced record changes two parts, each has half of the epsilon, or a quarter of the rho.
        name, total, parts = ("epsilon", self.epsilon, 2) if self.rho is None else ("rho", self.rho, 4)
        pieces = [share / parts if replaced else share for share in shares]
        return [Budget(**{name: loss}) for loss in split_epsilon(privacy_loss(name, total), pieces)]

    def spent(self, method: str, records: int, share: SizeShare | None) -> "Spent":
        """What a person loses at most by a method, with so many records.

        `share` is the share of the budget for the noisy number of records, if the budget suffices for one.
        """
        if method == "none":
            return Spent(math.inf)
        if method == PublishedHistogram.name:  # its maker's budget, if it is stated
            return Spent(math.inf if self.epsilon is None else privacy_loss("epsilon", self.epsilon))
        if self.epsilon is None and self.rho is None:
            must = "epsilon or rho must be given: say how private, by epsilon=1.0, or by rho=0.1 for zCDP"
            raise InputError("epsilon", must)
        spent = self._spent_epsilon(records, share) if self.rho is None else self._spent_rho(records, share)
        if spent.epsilon < LEAST_LOSS * records:
            must = f"leaves each record a privacy loss of less than {LEAST_LOSS:g}"
            got = f"{records} records for epsilon={spent.epsilon:g}"
            remedy = "Raise epsilon or keep fewer records of each person"
            raise InputError("records_per_person", must, got=got, remedy=remedy)
        return spent

    def _spent_epsilon(self, records: int, share: SizeShare | None) -> "Spent":
        epsilon = privacy_loss("epsilon", self.epsilon)
        if share is None or epsilon < LEAST_LOSS / share.loss * records:
            return Spent(epsilon)
        return Spent(epsilon, size_scale(epsilon / records, share))

    def _spent_rho(self, records: int, share: SizeShare | None) -> "Spent":
        """The largest epsilon of what remains of the zCDP loss after the noisy number."""
        rho = privacy_loss("rho", self.rho)
        if share is None:
            return Spent(range_of_zcdp(rho))
        scale = records / math.sqrt(2 * share.rho * Fraction(rho))
        rest = float_below(Fraction(rho) - size_zcdp(scale, records))
        return Spent(float_below(Fraction(range_of_zcdp(rest)) + records / Fraction(scale)), scale)


class Spent(NamedTuple):
    """The epsilon of a person, infinite without privacy; and the scale of the noise in a noisy number of records."""

    epsilon: float
    size_scale: float | None = None


def exact_shares(shares: Sequence[Level] | None, count: int) -> list[Fraction]:
    """Positive shares that sum to one; equal shares by default."""
    if shares is None:
        return [Fraction(1, count)] * count
    exact = [exact_level("shares", share) for share in shares] if count > 1 else [Fraction(1)]
    if len(exact) != count or sum(exact) != 1:
        must = f"must be {count} positive numbers that sum to one"
        raise InputError("shares", must, got=f"{len(exact)}, sum {sum(exact)}")
    return exact


def part_of_failure(delta: Level | None, count: int) -> Fraction | None:
    """An equal part of a failure probability; by the union bound all guarantees then hold together."""
    return None if delta is None else exact_level("delta", exact_level("delta", delta) / count)


def different_levels(alphas: Sequence[Level]) -> list[Fraction]:
    """Return distinct levels as exact fractions."""
    levels = [exact_level("alpha", alpha) for alpha in several("alpha", alphas)]
    if not levels or len(set(levels)) != len(levels):
        got = f"{len(levels)}, {len(set(levels))} different"
        raise InputError("alpha", "must be one or more different levels", got=got)
    return levels


def levels_of_sides(alpha: Any) -> list[Fraction]:
    """The level of each side: half of the interval's level, or the given pair."""
    if not isinstance(alpha, tuple):
        return [exact_level("alpha", alpha) / 2] * 2
    if len(alpha) != 2:
        must = "must be one level, or a pair of levels for the lower and the upper side"
        raise InputError("alpha", must, got=str(len(alpha)))
    levels = [exact_level("alpha", side) for side in alpha]
    if sum(levels) >= 1:
        raise InputError("alpha", "must sum to less than one")
    return levels
