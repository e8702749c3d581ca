"""The levels of several thresholds, as exact fractions."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from confide.errors import InputError
from confide.support import Level, exact_level, several


def different_levels(alphas: Sequence[Level]) -> list[Fraction]:
    """Return distinct levels as exact fractions."""
    levels = [exact_level("alpha", alpha) for alpha in several("alpha", alphas)]
    if not levels or len(set(levels)) != len(levels):
        raise InputError(
            "alpha", "must be one or more different levels", got=f"{len(levels)}, {len(set(levels))} different"
        )
    return levels


def levels_of_sides(alpha: Any) -> list[Fraction]:
    """The level of each side: half of the interval's level, or the given pair."""
    if not isinstance(alpha, tuple):
        return [exact_level("alpha", alpha) / 2] * 2
    if len(alpha) != 2:
        raise InputError(
            "alpha", "must be one level, or a pair of levels for the lower and the upper side", got=str(len(alpha))
        )
    levels = [exact_level("alpha", side) for side in alpha]
    if sum(levels) >= 1:
        raise InputError("alpha", "must sum to less than one")
    return levels
