"""Protocols in which every silo replies with one of its smallest scores, rounded up to a candidate: not private."""

from dataclasses import dataclass
from typing import Self

from confide.federated.protocols.sorted_replies import CandidateReplies, read_ranks
from confide.federated.terms import Terms
from confide.mechanisms import SplitConformal
from confide.support import Fields


@dataclass(frozen=True)
class ExactRanks(CandidateReplies):
    """Silo j replies with its l_j-th smallest score: `targets` are l_j, from 1 to n_j + 1, which stands for +inf."""

    private = False

    targets: tuple[int, ...]

    @classmethod
    def read(cls, fields: Fields, terms: Terms) -> Self:
        """From the field `targets`."""
        return cls(read_ranks(fields, terms, beyond=1))

    def mechanism(self, terms: Terms, i: int) -> SplitConformal:
        """The order statistic."""
        return SplitConformal(self.targets[i])
