"""The default mechanism: slopes on both sides of a target rank, and rising prior weights (Theorem P1)."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from confide.guarantee import (
    Guarantee,
    RankLaw,
    RecordCount,
    SlopeNoise,
    TargetGoal,
    TargetLine,
    competitor_ratio,
    competitor_ratio_right,
    conditional_failure,
    line_holds,
    mean_overshoot,
    moving_line_holds,
    moving_rate,
    rank_law,
    sharp_coverage,
    two_sided_holds,
    weighted_shortfall,
)
from confide.mechanisms.interface import ExponentialMechanism
from confide.mechanisms.utilities import INT64_ROOM, saturated
from confide.support import Facts, float_above, require, scale_for

# Target ranks are searched in steps of 1/16 rank, or of 1/denominator of the level if that is finer.
UNIT = 16

# With B_j = #{scores <= t_j}, A_j = B_(j-1) and a target rank T(n) = rate (n+1) + offset, candidate j has utility
#
#     u_j = h_j - max( right * (A_j - T)_+ , left * (T - B_j)_+ ).
#
# It is the public height h_j (the logarithm of a prior weight) on the bin that contains rank T, and less elsewhere.
# Heights rise from candidate to candidate. They favour the larger, safer threshold where the counts do not decide. They
# are public, so they have no privacy cost, and with them the price does not depend on the number of candidates.
#
# The last candidate is +inf. It covers everything, so it has no left penalty. With weighted records it gets a prior
# bonus (`head_start`), which provides the guarantee for few records and fades with every record.
#
# All utilities are integers: ranks are multiplied by the common denominator `unit` of rate and offset, and one draw
# with one float scale follows. Therefore the privacy map is exact.
#
# With weighted records, counts are sums of integer weights, n is the weight W of all records divided by the largest
# possible weight, and all ranks are in units of that largest weight. A record of weight w is w records of weight one,
# so the loss of one record is at most that of `weight` steps (docs/theory-after-release.md, Theorem A6).


@dataclass(frozen=True)
class Slopes(ExponentialMechanism):
    """A complete, public statement of the mechanism, sufficient to run it and to account for it.

    Parameters
    ----------
    rate
        Growth of the target rank with n + 1, in [0, 1); 0 when n is public and the target is one number.
    offset
        Constant part of the target rank T(n) = rate (n+1) + offset.
    left, right
        Positive integers: fall of the utility per rank below and above the target.
    scale
        Noise scale of the exponential mechanism, in units of left/unit.
    head_start, fade
        Prior bonus of +inf: the utility max(0, head_start - fade n) is added to it. Non-negative integers, in units of
        left/unit. With weights it fades with every step of the total weight.
    flat, rise
        Logarithms of the prior weights: candidate j of m has rise (j - flat)_+ / (m - flat), rounded down to an
        integer, in units of left/unit. So the first `flat` are equal, and the last one is `rise` above them.
    weight
        The largest weight of a record. Counts are then sums of integer weights from 0 to `weight`, and ranks are
        counted in steps of 1/(unit weight). None if records have no weights.

    Examples
    --------
    >>> mechanism = Slopes(Fraction(0), Fraction(9), left=3, right=1, scale=4.0)
    >>> mechanism.replace_one, mechanism.slope_left
    (1.0, 0.75)
    >>> Slopes(Fraction(0), Fraction(9), 3, 1, 4.0, flat=Fraction(5, 2), rise=7).log_prior_weights(6)
    array([0, 0, 1, 3, 5, 7])
    """

    name: ClassVar[Literal["slopes"]] = "slopes"

    rate: Fraction
    offset: Fraction
    left: int
    right: int
    scale: float
    head_start: int = 0
    fade: int = 0
    flat: Fraction = Fraction(0)
    rise: int = 0
    weight: int | None = None

    @property
    def unit(self) -> int:
        """Common denominator of rate and offset: ranks are counted in steps of 1/unit."""
        return math.lcm(self.rate.denominator, self.offset.denominator)

    @property
    def heaviest(self) -> int:
        """The largest weight of a record; 1 without weights."""
        return self.weight or 1

    @property
    def slope_left(self) -> float:
        """Log-odds lost per rank below the target."""
        return self.unit * self.heaviest * self.left / self.scale

    @property
    def slope_right(self) -> float:
        """Log-odds lost per rank above the target."""
        return self.unit * self.heaviest * self.right / self.scale

    @property
    def head_start_ranks(self) -> float:
        """The prior bonus of +inf at n = 0, in ranks of the left slope."""
        return self.head_start / (self.unit * self.heaviest * self.left)

    @property
    def fade_ranks(self) -> float:
        """Decrease of the prior bonus per record of the largest weight, in ranks of the left slope."""
        return self.fade / (self.unit * self.left)

    @property
    def total_rise(self) -> float:
        """Prior log-odds of the last candidate relative to the first."""
        return self.rise / self.scale

    @property
    def replace_one(self) -> float:
        """Privacy loss when one record is replaced: slope_left + slope_right (Theorem P1a).

        With weights the new record may have another weight: one record is removed, another added.
        """
        if self.weight is not None:
            return float_above(2 * Fraction(self.add_remove))
        return float_above(replace_one_range(self.left, self.right, self.unit) / Fraction(self.scale))

    @property
    def add_remove(self) -> float:
        """Privacy loss when one record is added or removed and n is secret (Theorem P1b)."""
        distance = add_remove_range(self.left, self.right, self.rate, self.unit, self.fade if self.head_start else 0)
        return float_above(self.heaviest * distance / Fraction(self.scale))

    def target(self, n: int | Fraction) -> Fraction:
        """The target rank for n records; with weights, for a total of n times the largest weight."""
        return self.rate * (n + 1) + self.offset

    def log_prior_weights(self, m: int) -> NDArray[np.int64]:
        """Logarithms of the prior weights relative to the first candidate: non-decreasing integers, shape (m,)."""
        start, denominator = self.flat.as_integer_ratio()
        steps = max(denominator * m - start, 1)
        taken = np.clip(denominator * np.arange(1, m + 1) - start, 0, steps)
        whole, rest = divmod(self.rise, steps)  # a product of rise and steps might exceed 64 bits
        return whole * taken + rest * taken // steps

    def prior_bonus(self, n: int) -> int:
        """The prior bonus of +inf with n records, or with this total weight, in units of left/unit."""
        return max(0, self.head_start - self.fade * n)

    def log_weights(self, m: int, n: int) -> NDArray[np.float64]:
        """Prior log-odds with n records, bonus included, shape (m,); with weights, n of the largest weight."""
        heights = self.log_prior_weights(m) / self.scale
        heights[-1] += self.prior_bonus(n * self.heaviest) / self.scale
        return heights

    def rivals(self, m: int) -> float:
        """The competitor ratio G: prior weight left of a candidate, relative to it (docs/theory.md, section 2)."""
        return _rounded_rivals(self, m)

    def step(self, m: int) -> float:
        """The smallest ratio of a candidate's prior weight to the next one's, rounded down to four digits."""
        steepest = int(np.diff(self.log_prior_weights(m)).max(initial=0))
        return math.floor(1e4 * math.exp(-steepest / self.scale)) / 1e4

    def noise(self, m: int) -> SlopeNoise:
        """What the certificates need to know of the noise over m candidates."""
        return SlopeNoise(self.slope_left, self.slope_right, self.rivals(m), step=self.step(m))

    def utilities(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Integer utilities of all candidates, shape (m,), from the counts per bin, shape (m,).

        If they might exceed 64 bits, they are computed with Python's integers, and saturated.
        """
        # The target, in steps of 1/unit of the smallest weight.
        n = int(counts.sum())
        unit = self.unit
        target = int(self.target(Fraction(n, self.heaviest)) * unit * self.heaviest)
        bonus = self.prior_bonus(n)
        fits = max(self.left, self.right) * (unit * n + abs(target)) + bonus + self.rise <= INT64_ROOM

        # Penalties on both sides of it; +inf, the last candidate, falls short of nothing.
        integers = counts.astype(np.int64 if fits else object)
        at_or_below = unit * np.cumsum(integers)
        below = at_or_below - unit * integers
        short_penalty = self.left * np.maximum(target - at_or_below, 0)
        short_penalty[-1] = 0
        beyond_penalty = self.right * np.maximum(below - target, 0)

        # Prior weights, and the bonus of +inf.
        utility: NDArray[Any] = self.log_prior_weights(len(counts)) - np.maximum(beyond_penalty, short_penalty)
        utility[-1] += bonus
        return saturated(utility)

    def certified(self, level: Fraction, m: int, records: RecordCount) -> Fraction:
        """Guaranteed marginal coverage; 0 for a secret n without weights: see `serves`.

        For a public n by the sharp certificate, and `level` also by the two-sided one (Theorems C2 and T1).
        """
        noise = self.noise(m)
        if self.weight is not None and not records.public:
            shortfall = weighted_shortfall(self.rate, self.offset, self.head_start_ranks, self.fade_ranks, noise)
            return self.rate if shortfall <= 0 else Fraction(0)
        if self.weight is not None or not records.public:
            return Fraction(0)
        n = records.least
        target = self.target(n)
        sharp = sharp_coverage(n, target, noise)
        return sharp if sharp >= level or not two_sided_holds(n, target, level, noise) else level

    def serves(self, level: Fraction, m: int, counted: int, size_scale: float) -> bool:
        """Whether `level` is guaranteed, on average over noisy numbers of records of this scale (Theorem H1)."""
        is_moving = self.weight is None and not self.head_start and not self.fade and self.rate == moving_rate(level)
        return is_moving and moving_line_holds(level, size_scale, counted, self.offset, self.noise(m))

    def covers_conditionally(self, level: Fraction, m: int, records: RecordCount, delta: float) -> bool:
        """Whether coverage is at least `level` with probability 1 - delta.

        By Theorem C1b for a public number of records, and by Theorem C3 for all secret ones.
        """
        noise = self.noise(m)
        n = records.least
        if records.public:
            return conditional_failure(n, float(level), float(self.target(n)), noise.left, noise.rivals) <= delta
        return line_holds(TargetLine(self.rate, self.offset), TargetGoal(level, delta, n), noise)

    def rank_law(self, n: int, m: int) -> RankLaw | None:
        """The law of the random rank for n records (Theorem C1); None for weighted records."""
        if self.weight is not None:
            return None
        return rank_law(float(self.target(n)), self.slope_left, self.rivals(m))

    def overshoot(self, n: int, m: int) -> float:
        """Upper bound on the expected number of ranks by which the selected bin begins beyond the target."""
        heights = self.log_weights(m, n)
        return mean_overshoot(self.slope_right, competitor_ratio_right(heights))

    def coverage_at_most(self, n: int, m: int) -> float:
        """Upper bound on mean coverage for continuous scores, up to the mass of one bin; 1 for weighted records.

        Theorem C4 of docs/theory.md.
        """
        if self.weight is not None:
            return 1.0
        return min(1.0, (float(self.target(n)) + self.overshoot(n, m) + 1) / (n + 1))

    def facts(self, m: int) -> Facts:
        """The mechanism and its parameters in words, for m candidates."""
        # The largest weight, and the target rank that grows with the number of records.
        weight: Facts = ()
        if self.weight is not None:
            weight = (("largest weight", f"{self.weight:,} steps; ranks and n are weights, divided by it"),)
        growing = "" if self.rate == 0 else f"{self.rate} (n + 1) + "
        decimal = f"{float(self.offset):.15g}"
        offset = decimal if Fraction(decimal) == self.offset else str(self.offset)
        return (
            ("mechanism", "slopes on both sides of a target rank"),
            *weight,
            ("target rank", f"{growing}{offset}"),
            ("slopes per rank, below and above it", f"{self.slope_left:.6g} and {self.slope_right:.6g}"),
            ("rise of the prior weights", self._rise_text(m)),
            *((("prior bonus of +inf", self._bonus_text()),) if self.head_start else ()),
            ("drawn by", f"the exponential mechanism, noise scale {self.scale:.17g} (OpenDP)"),
        )

    def _rise_text(self, m: int) -> str:
        if not self.rise:
            return "none: all candidates have equal prior odds"
        return (
            f"the first {float(self.flat):,.6g} of {m:,} candidates have equal prior odds; from there on the prior "
            f"log-odds increase evenly, by {self.total_rise:.4g} in all. So the many candidates below the target have "
            "a small total weight, and the promise costs few ranks"
        )

    def _bonus_text(self) -> str:
        if not self.fade:
            return f"{self.head_start_ranks:.6g} ranks"
        return (
            f"{self.head_start_ranks:.6g} ranks without records; it decreases by {self.fade_ranks:.4g} with each "
            f"record{' of the largest weight' if self.weight else ''}, because only few records need it"
        )

    def theorem(self, guarantee: Guarantee) -> str:
        """The theorem of the type of guarantee."""
        if guarantee.delta is not None:
            return "docs/theory.md, Theorem C3" if guarantee.n is None else "docs/theory.md, Theorem C1b"
        if guarantee.population is not None:
            return "docs/theory-after-release.md, Theorem A6; privacy by docs/theory.md, Theorem P1, and group privacy"
        if guarantee.sized:
            return "docs/theory-one-number.md, Theorem H1; privacy by docs/theory.md, Theorem P1"
        either = "docs/theory.md, Theorem C2a or docs/theory-one-number.md, Theorem T1a"
        return f"{either}; privacy by docs/theory.md, Theorem P1"


# The least competitor ratio, an upper bound with room for four digits; plans stay above 1e-44.
_LEAST_RIVALS = 1e-100


@lru_cache(maxsize=4096)
def _rounded_rivals(mechanism: Slopes, m: int) -> float:
    rivals = competitor_ratio(mechanism.log_prior_weights(m) / mechanism.scale)
    if not mechanism.rise:
        return rivals
    # Rounded to four digits, so that mechanisms that differ only in rounding share cached results.
    rivals = max(rivals, _LEAST_RIVALS)
    digits: int = 10 ** max(3 - math.floor(math.log10(rivals)), 0)
    return min(m - 1.0, (math.floor(rivals * digits) + 1) / digits)


# Saturated utilities lie at least 1024 scales below the best one: their weights are below any float.
_LARGEST_SCALE = 2.0**52


def slopes_for(
    rate: Fraction, offset: Fraction, left: int, right: int, neighbors: str, epsilon: float, weight: int | None = None
) -> Slopes:
    """The mechanism with the smallest noise whose privacy loss under `neighbors` is at most epsilon per record."""
    unit = math.lcm(rate.denominator, offset.denominator)
    if neighbors == "replace_one":
        distance = replace_one_range(left, right, unit)
    else:
        distance = add_remove_range(left, right, rate, unit)
    scale = scale_for((weight or 1) * distance, epsilon)
    weights = "" if weight is None else ", or class weights that are small whole numbers"
    remedy = f"Use an alpha of fewer digits, or a larger epsilon{weights}"
    require("alpha", scale <= _LARGEST_SCALE, "must give utilities of at most 64 bits", remedy=remedy)
    return Slopes(rate, offset, left, right, scale, weight=weight)


def replace_one_range(left: int, right: int, unit: int) -> int:
    """Range distance of the integer utilities when one record is replaced (Theorem P1a)."""
    return unit * (left + right)


def add_remove_range(left: int, right: int, rate: Fraction, unit: int, fade: int = 0) -> int:
    """Range distance of the integer utilities when one record is added or removed (Theorem P1b)."""
    up = int(rate * unit)
    down = int((1 - rate) * unit)
    return max(unit * left, unit * right + fade, up * (left + right), down * (left + right) + fade)


def free_fade(mechanism: Slopes) -> int:
    """The largest fade of a prior bonus that does not increase the mechanism's privacy loss (Theorem P1b)."""
    unit = mechanism.unit
    down = int((1 - mechanism.rate) * unit)
    least = max(unit * mechanism.right, down * (mechanism.left + mechanism.right))
    return add_remove_range(mechanism.left, mechanism.right, mechanism.rate, unit) - least
