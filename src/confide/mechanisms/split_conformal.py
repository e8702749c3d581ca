"""`none`: split conformal prediction without privacy, the baseline. **Not private**: it releases one of the scores.

Vovk, Gammerman and Shafer, "Algorithmic Learning in a Random World", 2005; Papadopoulos et al., ECML 2002; Lei et al.,
JASA 2018. The threshold is the k-th smallest score with k = ceil((n+1)(1-alpha)), computed with fractions, and +inf if
k exceeds n. Marginal coverage is at least k/(n+1) with ties, and exactly k/(n+1) without.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from confide.guarantee import RankLaw
from confide.mechanisms.interface import Mechanism


@dataclass(frozen=True)
class SplitConformal(Mechanism):
    """The k-th smallest score, without any privacy.

    Parameters
    ----------
    rank
        k, between 1 and n.

    Examples
    --------
    >>> split_conformal_for(Fraction(9, 10), 1000)
    SplitConformal(rank=901)
    >>> split_conformal_for(Fraction(9, 10), 8) is None  # the honest answer is +inf
    True
    """

    name: ClassVar[Literal["none"]] = "none"
    add_remove: ClassVar[float] = math.inf
    replace_one: ClassVar[float] = math.inf

    rank: int

    def choose(self, counts: NDArray[np.int64]) -> int:
        """The first candidate with at least k scores at or below it."""
        return int(np.searchsorted(np.cumsum(counts), self.rank))

    def threshold(self, scores: NDArray[Any]) -> float:
        """The k-th smallest score itself."""
        return float(np.partition(scores, self.rank - 1)[self.rank - 1])

    def certified(self, level: Fraction, m: int, n: int | None, n_min: int | None) -> Fraction:
        """k/(n+1), exactly."""
        assert n is not None
        return Fraction(min(self.rank, n + 1), n + 1)

    def rank_law(self, n: int, m: int) -> RankLaw:
        """The rank k, for sure."""
        return np.array([self.rank], dtype=np.int64), np.array([1.0]), 0.0

    def coverage_at_most(self, n: int, m: int) -> float:
        """Exactly k/(n+1) for continuous scores."""
        return min(1.0, self.rank / (n + 1))


def split_conformal_for(level: Fraction, n: int) -> SplitConformal | None:
    """The rank ceil((n+1) level), or None if it exceeds n."""
    rank = math.ceil(level * (n + 1))
    return SplitConformal(rank) if rank <= n else None
