"""Training-conditional targets: coverage of at least 1-alpha with probability 1-delta over the calibration data.

For a public n the target is the smallest rank whose failure probability (Theorem C1b) is at most delta. For a secret n
it is one line T(n) = rate (n+1) + offset that is high enough for every n >= n_min: it touches the required rank,
level*n + O(sqrt n), near a public guess of n, and every n is checked (docs/theory.md, Theorem C3).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confide.guarantee.random_rank import SlopeNoise, binomial_at_least, conditional_failure, tail
from confide.support import bisect, ceil_to

# The largest number of records that is checked; a line that needs more is rejected.
_LARGEST_N = 2**60

# The largest number of blocks of n that are checked at once.
_MOST_BLOCKS = 2**16

# The number of pairs (deficit, n) that are computed at once.
_CELLS = 2**16

# The least number of standard deviations by which a line rises, for a delta near or above 1/2.
_LEAST_DEVIATIONS = 0.5

# A rate is a multiple of at most a twentieth of its rise above the level,
_PARTS_OF_RISE = 20

# with a denominator of about this at most.
_LARGEST_DENOMINATOR = 1e7

# So many numbers of records are tried for a line, evenly on a logarithmic scale,
_TRIED = 400

# up to so many times the guess;
_REACH = 20

# first each of so many of them, because a line that is too low fails at some of these.
_FIRST = 25

# The accuracy of the offset that they need, in log-odds.
_OFFSET_ACCURACY = 0.05

# The margin of a line between them: this part of a standard deviation of the covered records,
_PART_OF_DEVIATION = 25

# or this part of the missed records.
_PART_OF_MISSED = 1000

# The number of blocks with which the check of a line begins.
_FIRST_BLOCKS = 200

# The first number of records at which the Chernoff bound is tried; the next ones double.
_FIRST_CHERNOFF = 64

# The noise has about one of so many parts of delta beyond the deficit that the Chernoff bound assumes.
_PARTS_OF_DELTA = 4

# The noise leaves larger deficits with a probability below e to the minus this.
_NEGLIGIBLE = 25

# The deficits of a group differ by so much log-odds at most,
_GROUPED_ODDS = 0.1

# or by so many standard deviations of the binomial count.
_GROUPED_DEVIATIONS = 0.02


@dataclass(frozen=True)
class TargetLine:
    """The target ranks T(n) = rate (n+1) + offset for a secret number n of records."""

    rate: Fraction
    offset: Fraction | float

    def targets(self, n: NDArray[np.int64]) -> NDArray[np.float64]:
        """The target rank for each number of records, in floating point."""
        return np.asarray(float(self.rate) * (n + 1) + float(self.offset))


@dataclass(frozen=True)
class TargetGoal:
    """Coverage of at least `level` with probability 1 - delta over the calibration data, for every n >= n_min."""

    level: Fraction
    delta: float
    n_min: int


def conditional_target_rank(n: int, level: Fraction, delta: float, noise: SlopeNoise, unit: int) -> Fraction | None:
    """The smallest multiple of 1/unit with conditional failure at most delta, or None if even T = n fails."""

    def is_enough(steps: int) -> bool:
        return conditional_failure(n, float(level), steps / unit, noise.left, noise.rivals) <= delta

    if not is_enough(n * unit):
        return None
    return Fraction(bisect(is_enough, math.floor(level * n) * unit, n * unit), unit)


def tangent_rate(level: Fraction, delta: float, n: int) -> Fraction:
    """The slope at n of level*n + z sqrt(n level (1-level)), a fraction above `level` and below 1."""
    from scipy.special import ndtri

    p = float(level)
    deviations = max(_LEAST_DEVIATIONS, float(-ndtri(delta)))
    rise = deviations * math.sqrt(p * (1 - p) / n) / 2  # the derivative of the square root has the 2

    # Steps that divide those of the level, at least two of them, so that one lies between the level and 1.
    parts = min(_PARTS_OF_RISE / rise, _LARGEST_DENOMINATOR)
    denominator = level.denominator * max(2, math.ceil(parts / level.denominator))
    step = Fraction(1, denominator)
    return min(max(math.floor((p + rise) * denominator) * step, level + step), 1 - step)


def conditional_offset(rate: Fraction, goal: TargetGoal, n_typical: int, noise: SlopeNoise, unit: int) -> Fraction:
    """The offset of a target line rate (n+1) + offset that is high enough for the goal."""
    # Numbers of records, some of which show most failures.
    tried = np.unique(np.geomspace(goal.n_min, _REACH * max(goal.n_min, n_typical), _TRIED).astype(np.int64))
    least = _offset_at(tried, rate, goal, noise)

    # All other n are checked in blocks, for which a line needs a margin.
    deviation = math.sqrt(n_typical * float(goal.level * (1 - goal.level)))
    missed = n_typical * float(1 - goal.level)
    margin = max(1 / unit, deviation / _PART_OF_DEVIATION, missed / _PART_OF_MISSED)
    while True:
        offset = ceil_to(least + margin, unit)
        if line_holds(TargetLine(rate, offset), goal, noise):
            return offset
        margin *= 2


def _offset_at(tried: NDArray[np.int64], rate: Fraction, goal: TargetGoal, noise: SlopeNoise) -> float:
    """The offset of a line that is high enough at these increasing numbers of records."""
    level = float(goal.level)
    step = _group_size(int(tried[0]), level, noise.left)

    def failing(offset: float, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        if not numbers.size:
            return numbers
        targets = TargetLine(rate, offset).targets(numbers)
        return numbers[_failures(targets, numbers, level, noise, step) > goal.delta]

    # Double the offset until no number fails.
    low = 0.0
    high = 1.0
    while failing(high, tried[::_FIRST]).size or failing(high, tried).size:
        low = high
        high *= 2

    # A higher line fails at fewer n, and an n that passed is not checked again.
    failed = failing(low, tried)
    while high - low > _OFFSET_ACCURACY / noise.left:
        middle = (low + high) / 2
        failed_again = failing(middle, failed)
        if failed_again.size:
            low = middle
            failed = failed_again
        else:
            high = middle
    return high


class _Blocks(NamedTuple):
    """Blocks of numbers of records, from `low` to `high` each."""

    low: NDArray[np.int64]
    high: NDArray[np.int64]

    def failures(self, line: TargetLine, level: Fraction, noise: SlopeNoise) -> NDArray[np.float64]:
        """A bound on the failure probability at every n of each block, by the corner that is closer for such a level.

        The failure probability at (n, T) falls with T, grows with n at equal T, and falls with n at equal n - T. So a
        block is no worse than (high, T(low)) and (low, low - high + T(high)).
        """
        if level > Fraction(1, 2):
            return _failures(line.targets(self.high) - (self.high - self.low), self.low, float(level), noise)
        return _failures(line.targets(self.low), self.high, float(level), noise)

    def halves(self, divided: NDArray[np.bool_]) -> "_Blocks":
        """Both halves of each block that is divided."""
        low = self.low[divided]
        high = self.high[divided]
        middle = (low + high) // 2
        return _Blocks(np.concatenate([low, middle + 1]), np.concatenate([middle, high]))


@lru_cache(maxsize=256)
def line_holds(line: TargetLine, goal: TargetGoal, noise: SlopeNoise) -> bool:
    """Whether the target line reaches the goal (Theorem C3).

    Blocks of n are checked at once. A block that fails is split until it passes or is a single n that fails. Beyond the
    last block a Chernoff bound applies. A line that needs more than 2**16 blocks at once is close to failing and is
    rejected.
    """
    # The first n for which the Chernoff bound is enough, and blocks up to it.
    if line.rate <= goal.level:
        return False
    last = _chernoff_from(line, goal, noise)
    if last > _LARGEST_N:
        return False
    starts = np.unique(np.geomspace(goal.n_min, last + 1, _FIRST_BLOCKS).astype(np.int64))
    blocks = _Blocks(starts[:-1], starts[1:] - 1)

    while blocks.low.size:
        # The first n of each block alone detects a failure early.
        if np.any(_failures(line.targets(blocks.low), blocks.low, float(goal.level), noise) > goal.delta):
            return False
        failed = blocks.failures(line, goal.level, noise) > goal.delta
        if np.count_nonzero(failed) > _MOST_BLOCKS:
            return False
        blocks = blocks.halves(failed)
    return True


def _failures(
    target: NDArray[np.float64], n: NDArray[np.int64], level: float, noise: SlopeNoise, step: int | None = None
) -> NDArray[np.float64]:
    """Theorem C1b for many n at once, deficits grouped into steps (each group counted at its largest deficit)."""
    step = _group_size(int(n.min()), level, noise.left) if step is None else step
    deficits = np.arange(0, math.ceil((math.log1p(noise.rivals) + _NEGLIGIBLE) / noise.left) + 1, step, dtype=np.int64)

    # The lowest rank of each group, and the mass that the noise leaves behind it.
    top = np.ceil(target)
    fraction = target - top + 1
    highest = top.astype(np.int64) - step + 1
    total = np.zeros(target.shape)
    survival = np.ones(target.shape)
    rows = max(1, _CELLS // n.size)

    # Sum P(deficit) P(Bin(n, level) >= rank) over the groups, some of them at once. The probability of a group is the
    # difference of the survival function at its two ends, of which the second is the first of the next group.
    for start in range(0, len(deficits), rows):
        d = deficits[start : start + rows, None]
        beyond = tail(fraction + d + step - 1, noise.left, noise.rivals)  # P(rank deficit index >= d + step)
        rank = highest - d  # lowest rank of each group
        fails = np.where(rank <= 0, 1.0, 0.0)
        inside = (rank > 0) & (rank <= n)
        fails[inside] = binomial_at_least(rank[inside], np.broadcast_to(n, rank.shape)[inside], level)
        for after, failed in zip(beyond, fails, strict=True):
            total += (survival - after) * failed
            survival = after
    return total + survival


def _group_size(n: int, level: float, slope: float) -> int:
    return max(1, int(_GROUPED_ODDS / slope), int(_GROUPED_DEVIATIONS * math.sqrt(float(n) * level * (1 - level))))


def _chernoff_from(line: TargetLine, goal: TargetGoal, noise: SlopeNoise) -> int:
    """An n from which on exp(-n KL(rank/n || level)) + tail <= delta: both terms fall from there on."""
    rate = float(line.rate)
    level = float(goal.level)
    deficit = (math.log1p(noise.rivals) + math.log(_PARTS_OF_DELTA / goal.delta)) / noise.left
    missed = float(tail(np.array(deficit), noise.left, noise.rivals))
    n = max(goal.n_min, _FIRST_CHERNOFF)
    while n <= _LARGEST_N:
        ratio = (rate * (n + 1) + float(line.offset) - deficit - 1) / n
        lowest = min(ratio, rate)  # of the ratios from this n on
        if level < lowest and n * _kl_divergence(lowest, level) >= -math.log(goal.delta - missed):
            return n
        n *= 2
    return n


def _kl_divergence(a: float, b: float) -> float:
    return a * math.log(a / b) + (1 - a) * math.log((1 - a) / (1 - b))
