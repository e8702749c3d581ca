"""Protocols in which every silo replies with one of its smallest scores, rounded up to a candidate: not private."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from confide.federated.protocols.candidate_replies import CandidateReplies
from confide.federated.protocols.plan_fields import read_field, refuse_contradiction
from confide.federated.terms import Terms
from confide.support import Fields


@dataclass(frozen=True)
class ExactRank:
    """The rank-th smallest score, rounded up to a candidate. Not private.

    Examples
    --------
    >>> ExactRank(4, 3).choose(np.array([2, 0, 1, 1]))
    2
    """

    n: int
    rank: int

    def choose(self, counts: NDArray[np.int64]) -> int:
        """The first candidate at or below which at least `rank` scores lie; +inf if there are not so many."""
        reached = np.cumsum(counts) >= self.rank
        return int(np.argmax(reached)) if self.rank <= int(counts.sum()) else len(counts) - 1


@dataclass(frozen=True)
class ExactRanks(CandidateReplies):
    """Silo j replies with its l_j-th smallest score.

    Parameters
    ----------
    ranks
        l_j for every silo, from 1 to n_j + 1; the last one stands for +inf.
    """

    private = False

    ranks: tuple[int, ...]

    @classmethod
    def read(cls, fields: Fields, terms: Terms) -> Self:
        """From the field `targets`."""
        return cls(read_ranks(fields, terms, beyond=1))

    def fields(self) -> dict[str, Any]:
        """The ranks as `targets`."""
        return {"targets": [str(rank) for rank in self.ranks]}

    def target_rank(self, i: int) -> Fraction:
        """l_i."""
        return Fraction(self.ranks[i])

    def loss(self, terms: Terms, i: int) -> float:
        """A changed record can be seen with certainty."""
        return math.inf

    def mechanism(self, terms: Terms, i: int) -> ExactRank:
        """The order statistic."""
        return ExactRank(terms.silos[i].size or 0, self.ranks[i])


def read_ranks(fields: Fields, terms: Terms, beyond: int) -> tuple[int, ...]:
    """Whole target ranks, one for every silo, from 1 to its size and `beyond`."""
    targets: tuple[Fraction, ...] = read_field(fields, "targets", terms)
    refuse_contradiction(len(targets) != len(terms.silos) or any(target.denominator > 1 for target in targets))
    most = [(silo.size or 0) + beyond for silo in terms.silos]
    refuse_contradiction(any(not 0 < target <= n for target, n in zip(targets, most, strict=True)))
    return tuple(int(target) for target in targets)
