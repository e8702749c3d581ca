"""The protocol of mechanisms. A calibration stores this statement of its mechanism and nothing else about it.

The baseline `none` is split conformal prediction (Vovk, Gammerman and Shafer, "Algorithmic Learning in a Random World",
2005; Papadopoulos et al., ECML 2002; Lei et al., JASA 2018).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, Protocol, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from confide.guarantee import RankLaw

MechanismName: TypeAlias = Literal["slopes", "pps", "pps-laplace", "noisy-histogram", "opendp-quantile", "none"]

MECHANISMS: tuple[MechanismName, ...] = get_args(MechanismName)


class Mechanism(Protocol):
    """A frozen dataclass that states a mechanism completely, in public numbers. It makes no other claims."""

    def __hash__(self) -> int:
        return object.__hash__(self)

    @property
    def name(self) -> MechanismName | Literal["published-counts"]:
        """The name that `calibrate` accepts for it, or that of `calibrate_counts`."""

    @property
    def add_remove(self) -> float | None:
        """Proven loss when one record is added or removed; None if the number of records is public."""
        return None

    @property
    def replace_one(self) -> float:
        """Proven loss when one record is replaced."""

    @property
    def claimed(self) -> float | None:
        """The loss that the published analysis states, if it differs from the proven one; else None."""
        return None

    @property
    def range_factor(self) -> int:
        """The length of an interval of all log-ratios of two neighbouring laws, in units of the loss: 1 or 2."""
        return 2

    def choose(self, counts: NDArray[np.int64]) -> int:
        """Draw the index of one candidate: the only step that uses private counts."""

    def certified(self, level: Fraction, m: int, n: int | None, n_min: int | None) -> Fraction | None:
        """Guaranteed marginal coverage over m candidates, for a public n or every n >= n_min; None if none."""
        return None

    def rank_law(self, n: int, m: int) -> RankLaw | None:
        """A law, independent of the data, of a rank R with threshold >= R-th smallest score; None if unknown."""
        return None

    def coverage_at_most(self, n: int, m: int) -> float:
        """Upper bound on mean coverage for continuous scores, up to the mass of one bin; 1 if none is claimed."""
        return 1.0


@dataclass(frozen=True)
class SplitConformal(Mechanism):
    """`none`: the first candidate that is at least the k-th smallest score, k = ceil((n+1)(1-alpha)). **Not private**.

    +inf if k exceeds n. Marginal coverage is at least k/(n+1), and for continuous scores above it by at most the mass
    of one bin.
    """

    name: ClassVar[Literal["none"]] = "none"
    add_remove: ClassVar[float] = math.inf
    replace_one: ClassVar[float] = math.inf

    rank: int

    def choose(self, counts: NDArray[np.int64]) -> int:
        """The first candidate with at least k scores at or below it."""
        return int(np.searchsorted(np.cumsum(counts), self.rank))

    def certified(self, level: Fraction, m: int, n: int | None, n_min: int | None) -> Fraction:
        """k/(n+1), exactly."""
        assert n is not None
        return Fraction(min(self.rank, n + 1), n + 1)

    def rank_law(self, n: int, m: int) -> RankLaw:
        """The rank k, with probability 1."""
        return np.array([self.rank], dtype=np.int64), np.array([1.0]), 0.0

    def coverage_at_most(self, n: int, m: int) -> float:
        """k/(n+1)."""
        return min(1.0, self.rank / (n + 1))


def split_conformal_for(level: Fraction, n: int) -> SplitConformal | None:
    """The rank ceil((n+1) level), or None if it exceeds n."""
    rank = math.ceil(level * (n + 1))
    return SplitConformal(rank) if rank <= n else None
