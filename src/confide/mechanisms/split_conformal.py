"""Split conformal prediction: the baseline without privacy."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from confide.guarantee import RankLaw, RecordCount
from confide.mechanisms.interface import Mechanism


@dataclass(frozen=True)
class SplitConformal(Mechanism):
    """`none`: the first candidate that is at least the k-th smallest score, k = ceil((n+1)(1-alpha)). **Not private**.

    Split conformal prediction (Vovk, Gammerman and Shafer, "Algorithmic Learning in a Random World", 2005;
    Papadopoulos et al., ECML 2002; Lei et al., JASA 2018). Marginal coverage is at least k/(n+1), and for continuous
    scores above it by at most the mass of one bin.
    """

    name: ClassVar[Literal["none"]] = "none"
    add_remove: ClassVar[float] = math.inf
    replace_one: ClassVar[float] = math.inf

    rank: int

    def choose(self, counts: NDArray[np.int64]) -> int:
        """The first candidate with at least k scores at or below it."""
        return int(np.searchsorted(np.cumsum(counts), self.rank))

    def certified(self, level: Fraction, m: int, records: RecordCount) -> Fraction:
        """k/(n+1), exactly."""
        return Fraction(min(self.rank, records.least + 1), records.least + 1)

    def rank_law(self, n: int, m: int) -> RankLaw:
        """The rank k, with probability 1."""
        return RankLaw(np.array([self.rank], dtype=np.int64), np.array([1.0]), 0.0)

    def coverage_at_most(self, n: int, m: int) -> float:
        """k/(n+1)."""
        return min(1.0, self.rank / (n + 1))


def split_conformal_for(level: Fraction, n: int) -> SplitConformal | None:
    """The rank ceil((n+1) level); None if it exceeds n, where the threshold is +inf."""
    rank = math.ceil(level * (n + 1))
    return SplitConformal(rank) if rank <= n else None
