"""`noisy-histogram`: a histogram with discrete Laplace noise, and the last rule (docs/theory-one-number.md, W3, W3b).

The release of Private Prediction Sets version 1 (arXiv 2102.06202v1) with the calibration of this project: no gamma, no
union bound, and a price that does not depend on the number of bins. With noisy counts c_j + Z_j, candidate k is reached
if sum_(j>k) (c_j + Z_j) is at most a limit. The last rule selects the first candidate from which on all are reached.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from confide.guarantee import chosen_by_last_rule, laplace_residual_life, least_counted, limit_coverage, most_beyond
from confide.mechanisms.interface import Mechanism
from confide.selection import noisy_counts
from confide.support import float_above, scale_for


@dataclass(frozen=True)
class NoisyHistogram(Mechanism):
    """Discrete Laplace noise on the counts, and a limit for the noisy number of records beyond the threshold."""

    name: ClassVar[Literal["noisy-histogram"]] = "noisy-histogram"

    beyond: int
    scale: float

    @property
    def replace_one(self) -> float:
        """2/scale: two counts change by one."""
        return float_above(2 / Fraction(self.scale))

    @property
    def add_remove(self) -> float:
        """1/scale: one count changes by one."""
        return float_above(1 / Fraction(self.scale))

    @property
    def cost(self) -> float:
        """What the noise costs, in ranks."""
        return laplace_residual_life(self.scale)

    def noisy(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add noise to all counts, shape (m,): the only step that uses private counts."""
        return noisy_counts(counts, self.scale)

    def select(self, noisy: NDArray[np.int64]) -> int:
        """The index that the last rule selects from noisy counts, shape (m,)."""
        return int(chosen_by_last_rule(noisy, self.beyond))

    def choose(self, counts: NDArray[np.int64]) -> int:
        """Add noise to all counts, and select by the last rule."""
        return self.select(self.noisy(counts))

    def certified(self, level: Fraction, m: int, n: int | None, n_min: int | None) -> Fraction | None:
        """Guaranteed coverage for a public n (Theorem W3); None for a secret one: see `serves`."""
        return None if n is None else limit_coverage(self.beyond, n, self.cost)

    def serves(self, level: Fraction, m: int, counted: int, size_scale: float) -> bool:
        """Whether `level` is guaranteed, on average over noisy numbers of records of this scale (Theorem W3b)."""
        enough = least_counted(level, size_scale, self.cost)
        return counted >= enough and self.beyond <= most_beyond(level, counted, self.cost)


def noisy_histogram_for(level: Fraction, epsilon: float, n: int) -> NoisyHistogram | None:
    """The largest limit that guarantees `level` for a public n and a loss epsilon of a replaced record; or None."""
    scale = scale_for(2, epsilon)
    limit = most_beyond(level, n, laplace_residual_life(scale))
    return None if limit < 0 else NoisyHistogram(limit, scale)


def sized_histogram_for(level: Fraction, epsilon: float, counted: int, size_scale: float) -> NoisyHistogram | None:
    """The largest limit for a noisy number of records, whose noise has the scale `size_scale`; None if it is too small.

    epsilon is the loss of a record that is added or removed, without that of the noisy number.
    """
    scale = scale_for(1, epsilon)
    cost = laplace_residual_life(scale)
    if counted < least_counted(level, size_scale, cost):
        return None
    return NoisyHistogram(most_beyond(level, counted, cost), scale)
