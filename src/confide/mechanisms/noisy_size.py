"""A noisy number of records, released first, and the design for it (docs/theory-one-number.md, Theorem N1).

A secret number n is released as n~ = n + Z with discrete Laplace noise Z, at a share of the privacy loss of one record.
The threshold is designed for a public function of n~, and has the rest of the privacy loss. If the target rank depends
on n~ as well, coverage holds on average over Z, otherwise for every Z.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from confide.selection import noisy_number
from confide.support import LEAST_LOSS, MOST_RECORDS, require, scale_for


class SizeShare(NamedTuple):
    """The share of a noisy number of records in the privacy loss of one record, and in a zCDP loss."""

    loss: Fraction
    rho: Fraction


# If the target moves with the noisy number.
OF_TARGET = SizeShare(Fraction(1, 5), Fraction(1, 10))

# If only the design follows it.
OF_DESIGN = SizeShare(Fraction(1, 20), Fraction(1, 200))

# The smallest design, in scales of the noise: 25/epsilon or 100/epsilon records.
_LEAST_DESIGN = 5

# Possible numbers of records of a design: 20 in each decade.
_STEPS = (100, 110, 125, 140, 160, 180, 200, 220, 250, 280, 320, 350, 400, 450, 500, 560, 630, 700, 800, 900, 1000)


@dataclass(frozen=True)
class NoisySize:
    """A noisy number of records, and the number of records that the threshold is designed for.

    Parameters
    ----------
    counted
        The noisy number n + Z; it may be negative.
    scale
        The scale of Z: P(Z = z) is proportional to exp(-abs(z)/scale).
    design_for
        The number of records for which candidates, slopes and prior weights are chosen; a function of `counted`,
        `scale` and n_min.
    """

    counted: int
    scale: float
    design_for: int

    @classmethod
    def of(cls, counted: int, scale: float, n_min: int) -> "NoisySize":
        """The noisy number, with the number of records of the design for it."""
        return cls(counted, scale, design_for(counted, scale, n_min))

    def most(self, error: float) -> int:
        """The number of records that is exceeded with probability `error` at most, and at least 1."""
        return max(1, self.counted + reach_of_noise(self.scale, 2 * error))

    def __str__(self) -> str:
        return f"about {self.counted:,} (+-{reach_of_noise(self.scale, 0.05):,} at 95 %)"


def reach_of_noise(scale: float, error: float) -> int:
    """The smallest r with P(abs(Z) > r) <= error for discrete Laplace noise Z of this scale."""
    # P(abs(Z) > r) = 2 y^(r + 1) / (1 + y) with y = exp(-1/scale)
    y = math.exp(-1 / scale)
    return max(0, math.ceil(-scale * math.log(error * (1 + y) / 2)) - 1)


def size_scale(epsilon: float, share: SizeShare) -> float:
    """The scale of the noise for a privacy loss of epsilon per record, if the share of it is large enough."""
    least = LEAST_LOSS / share.loss
    require("epsilon", epsilon >= least, f"must be at least {float(least):g} per record, for a noisy number of records")
    return scale_for(1 / share.loss, epsilon)


def design_for(counted: int, scale: float, n_min: int) -> int:
    """The number of records of the design: the largest of n_min, n~ and 5 scales, rounded to 20 steps a decade."""
    exact = min(max(counted, n_min, math.ceil(_LEAST_DESIGN * Fraction(scale))), MOST_RECORDS)
    decade = len(str(exact)) - 1

    # Round to the nearest step on a logarithmic scale, in integers: compare with geometric means of steps.
    scaled = 100**2 * exact**2
    smaller_steps = sum(scaled > lower * upper * 100**decade for lower, upper in pairwise(_STEPS))
    rounded: int = _STEPS[smaller_steps] * 10**decade // 100
    return min(max(1, rounded), MOST_RECORDS)


def draw_size(n: int, scale: float, n_min: int) -> NoisySize:
    """Draw the noisy number for n records, with OpenDP's sampler."""
    return NoisySize.of(noisy_number(min(n, MOST_RECORDS), scale), scale, n_min)


def size_zcdp(scale: float, records: int) -> Fraction:
    """The zCDP loss of the number of records for `records` records of one person: half the square of their loss."""
    return (records / Fraction(scale)) ** 2 / 2
