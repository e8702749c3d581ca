"""One threshold of a request, and the division of levels, budget and failure probability among thresholds."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from confide.arrays import GroupColumns
from confide.candidates import Candidates, Spread
from confide.core.metadata import Metadata
from confide.core.several import check_bound
from confide.core.terms import Terms
from confide.errors import InputError
from confide.mechanisms import split_epsilon
from confide.support import Level, exact_level, fraction_of, privacy_loss, several

Key: TypeAlias = Any
"""The key of a threshold: None for a single one, a level, a group, a class, or the score of a side."""


@dataclass(frozen=True)
class ThresholdRequest:
    """Parameters of one threshold.

    Parameters
    ----------
    row
        The name of the counts that it uses: its group, its class, the score of its side, or None.
    score
        The name of the score.
    terms
        Its terms, before candidates and the number of records are fixed.
    law
        Its candidates: a list, or a spread, from which a suitable number of candidates is made.
    words
        Its public metadata.
    """

    row: Key
    score: str | None
    terms: Terms
    law: Candidates | Spread
    words: Metadata


def share_of(risk: Level, loss: str, bound: float) -> Fraction:
    """The level of a threshold for risk control: the admissible expected loss, relative to the bound of the loss.

    Raises
    ------
    InputError, InputTypeError
        If the bound is not a positive number, or the risk is not between 0 and the bound.
    """
    bound = check_bound(loss, bound)
    if bound == 1:
        return exact_level("risk", risk)
    try:
        share = fraction_of(risk) / Fraction(str(bound))
    except (ValueError, TypeError, ZeroDivisionError, OverflowError):
        raise InputError(
            "risk", f"must be a number between 0 and {bound:g}, the largest loss", got=repr(risk)
        ) from None
    return exact_level("risk / bound", share)


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


def divide_budget(
    epsilon: float | None, rho: float | None, shares: Sequence[Fraction], *, replaced: bool = False
) -> list[dict[str, Any]]:
    """Keyword arguments for `calibrate`, one dictionary for each share of a budget.

    If a replaced record can change two groups, each gets half of epsilon, or a quarter of rho.
    """
    if epsilon is None and rho is None:
        return [{} for _ in shares]
    if epsilon is not None and rho is not None:
        raise InputError("epsilon", "epsilon or rho must be given, and not both")
    name, total = ("epsilon", epsilon) if epsilon is not None else ("rho", rho)
    part = Fraction(1, {"epsilon": 2, "rho": 4}[name]) if replaced else Fraction(1)
    return [{name: value} for value in split_epsilon(privacy_loss(name, total), [share * part for share in shares])]


def exact_shares(shares: Sequence[Level] | None, count: int) -> list[Fraction]:
    """Positive shares that sum to one; equal shares by default."""
    if shares is None:
        return [Fraction(1, count)] * count
    exact = [exact_level("shares", share) for share in shares] if count > 1 else [Fraction(1)]
    if len(exact) != count or sum(exact) != 1:
        raise InputError(
            "shares", f"must be {count} positive numbers that sum to one", got=f"{len(exact)}, sum {sum(exact)}"
        )
    return exact


def part_of_failure(delta: Level | None, count: int) -> Fraction | None:
    """An equal part of a failure probability; by the union bound all guarantees then hold together."""
    return None if delta is None else exact_level("delta", exact_level("delta", delta) / count)


def different_levels(alphas: Sequence[Level]) -> list[Fraction]:
    """Return distinct levels as exact fractions."""
    levels = [exact_level("alphas", alpha) for alpha in several("alphas", alphas)]
    if not levels or len(set(levels)) != len(levels):
        raise InputError(
            "alphas", "must be one or more different levels", got=f"{len(levels)}, {len(set(levels))} different"
        )
    return levels


def most_groups(columns: GroupColumns | None, groups: int) -> int:
    """The largest number of groups of one column; the number of all groups if they do not overlap."""
    return groups if columns is None else max(map(len, columns.columns.values()))
