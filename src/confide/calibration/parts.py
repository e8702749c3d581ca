"""The thresholds of one request: what each is asked, and how a budget and a failure probability are divided."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from confide.candidates import Candidates, Spread
from confide.errors import InputError
from confide.mechanisms import shares_of
from confide.planning import Terms
from confide.releases import Words
from confide.support import Level, exact_level, positive_integer, privacy_loss, several

Key: TypeAlias = Any
"""The name of a threshold: None of one alone, a level, a group, a class, the score of a side."""


@dataclass(frozen=True)
class ThresholdRequest:
    """One threshold that is asked for.

    Parameters
    ----------
    row
        The name of the counts that it sees: its group, its class, the score of its side, or None.
    score
        The name of the score.
    terms
        What is asked of it, before candidates and the number of records are settled.
    law
        Over what: a list, or how as many candidates are spread as suit what is asked.
    words
        Its public words.
    """

    row: Key
    score: str | None
    terms: Terms
    law: Candidates | Spread
    words: Words


def divide_budget(
    epsilon: float | None, rho: float | None, shares: Sequence[Fraction], *, replaced: bool = False
) -> list[dict[str, Any]]:
    """Keyword arguments for `calibrate` per share of a budget.

    Half of epsilon, or a quarter of rho, if a record that is replaced can change two groups.
    """
    if epsilon is None and rho is None:
        return [{} for _ in shares]
    if epsilon is not None and rho is not None:
        raise InputError("epsilon or rho must be given, and not both")
    name, total = ("epsilon", epsilon) if epsilon is not None else ("rho", rho)
    part = Fraction(1, {"epsilon": 2, "rho": 4}[name]) if replaced else Fraction(1)
    return [{name: value} for value in shares_of(privacy_loss(name, total), [share * part for share in shares])]


def exact_shares(shares: Sequence[Level] | None, count: int) -> list[Fraction]:
    """Positive shares that sum to one; even ones by default."""
    if shares is None:
        return [Fraction(1, count)] * count
    exact = [exact_level("shares", share) for share in shares] if count > 1 else [Fraction(1)]
    if len(exact) != count or sum(exact) != 1:
        raise InputError(
            f"shares must be {count} positive numbers that sum to one; found {len(exact)}, sum {sum(exact)}"
        )
    return exact


def part_of_failure(delta: Level | None, count: int) -> Fraction | None:
    """An equal part of a failure probability: all promises hold together by the union bound."""
    return None if delta is None else exact_level("delta", exact_level("delta", delta) / count)


def different_levels(alphas: Sequence[Level]) -> list[Fraction]:
    """One or more levels, exactly, each once."""
    levels = [exact_level("alphas", alpha) for alpha in several("alphas", alphas)]
    if not levels or len(set(levels)) != len(levels):
        raise InputError(
            f"alphas must be one or more different levels; found {len(levels)}, {len(set(levels))} different"
        )
    return levels


def part_of(name: str, budget: Any, parts: int) -> float | None:
    """An even part of a budget, about, to choose by."""
    return None if budget is None else privacy_loss(name, budget) / parts


_LEAST_TYPICAL = 150
"""A guess below it suits few groups: candidates for 83 records make thresholds a fifth too high for thousands."""


def typical_of_groups(groups: int, n_min: Any) -> int:
    """A public guess of the number of records in one of so many groups: an even part of a thousand, at least 150.

    Examples
    --------
    >>> typical_of_groups(4, 1), typical_of_groups(10, 1), typical_of_groups(10, 500)
    (250, 150, 500)
    """
    return max(positive_integer("n_min", n_min), -(-1000 // groups), _LEAST_TYPICAL)
