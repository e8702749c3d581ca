"""Training-conditional targets: coverage of at least 1-alpha with probability 1-delta over the calibration data.

For a public n the target is the smallest rank whose failure probability (Theorem C1b) is at most delta. For a secret n
it is one line T(n) = rate (n+1) + offset that is high enough for every n >= n_min: it touches the required rank,
level*n + O(sqrt n), near a public guess of n, and every n is checked (docs/theory.md, Theorem C3).
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

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

# A rate is a multiple of at most a twentieth of its rise above the level, with a denominator of about this at most.
_PARTS_OF_RISE, _LARGEST_DENOMINATOR = 20, 1e7

# So many numbers of records are tried for a line, up to so many times the guess; first each of so many of them.
_TRIED, _REACH, _FIRST = 400, 20, 25

# The accuracy of the offset that they need, in log-odds.
_OFFSET_ACCURACY = 0.05

# The margin of a line between them: a part of a standard deviation of the covered records, and of the missed ones.
_PART_OF_DEVIATION, _PART_OF_MISSED = 25, 1000

# The number of blocks with which the check of a line begins.
_FIRST_BLOCKS = 200

# The noise leaves larger deficits with a probability below e to the minus this.
_NEGLIGIBLE = 25

# The deficits of a group differ by so much log-odds at most, or by so many standard deviations of the binomial count.
_GROUPED_ODDS, _GROUPED_DEVIATIONS = 0.1, 0.02


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
    rise = max(0.5, float(-ndtri(delta))) * math.sqrt(p * (1 - p) / n) / 2

    denominator = level.denominator * max(
        2, math.ceil(min(_PARTS_OF_RISE / rise, _LARGEST_DENOMINATOR) / level.denominator)
    )
    step = Fraction(1, denominator)
    return min(max(math.floor((p + rise) * denominator) * step, level + step), 1 - step)


def conditional_offset(
    rate: Fraction, level: Fraction, delta: float, n_min: int, n_typical: int, noise: SlopeNoise, unit: int
) -> Fraction:
    """The offset of a target line rate (n+1) + offset that is high enough at every n >= n_min."""
    # Numbers of records, some of which show most failures.
    n = np.unique(np.geomspace(n_min, _REACH * max(n_min, n_typical), _TRIED).astype(np.int64))
    few = n[::_FIRST]
    step = _group_size(int(n.min()), float(level), noise.left)

    def failing(offset: float, n: NDArray[np.int64]) -> NDArray[np.int64]:
        if not n.size:
            return n
        failure = _block_failure(float(rate) * (n + 1) + offset, n, float(level), noise, step)
        return n[failure > delta]

    # A higher line fails at fewer n, and an n that passed is not checked again.
    low, high = 0.0, 1.0
    while failing(high, few).size or failing(high, n).size:
        low, high = high, 2 * high
    failed = failing(low, n)
    while high - low > _OFFSET_ACCURACY / noise.left:
        middle = (low + high) / 2
        failed_again = failing(middle, failed)
        if failed_again.size:
            low, failed = middle, failed_again
        else:
            high = middle

    # All other n are checked in blocks, for which a line needs a margin.
    deviation = math.sqrt(n_typical * float(level * (1 - level)))
    missed = n_typical * float(1 - level)
    margin = max(1 / unit, deviation / _PART_OF_DEVIATION, missed / _PART_OF_MISSED)
    while not line_holds(rate, ceil_to(high + margin, unit), level, delta, n_min, noise):
        margin *= 2
    return ceil_to(high + margin, unit)


@lru_cache(maxsize=256)
def line_holds(rate: Fraction, offset: Fraction, level: Fraction, delta: float, n_min: int, noise: SlopeNoise) -> bool:
    """Whether the target line keeps the failure probability at or below delta at every n >= n_min (Theorem C3).

    Blocks of n are checked at once: the failure probability at (n, T) falls with T, grows with n at equal T, and falls
    with n at equal n - T, so a block from low to high is no worse than (high, T(low)) and (low, low - high + T(high)).
    A block that fails is split until it passes or is a single n that fails. Beyond the last block a Chernoff bound
    applies. A line that needs more than 2**16 blocks at once is close to failing and is rejected.
    """
    # The first n for which the Chernoff bound is enough, and blocks up to it.
    if rate <= level:
        return False
    last = _chernoff_from(float(rate), float(offset), float(level), delta, n_min, noise)
    if last > _LARGEST_N:
        return False
    starts = np.unique(np.geomspace(n_min, last + 1, _FIRST_BLOCKS).astype(np.int64))

    # A block that fails is divided, down to single n.
    low, high = starts[:-1], starts[1:] - 1
    while low.size:
        # The first n of each block alone detects a failure early.
        single = _block_failure(float(rate) * (low + 1) + float(offset), low, float(level), noise)
        if np.any(single > delta):
            return False
        if level > Fraction(1, 2):
            target, n = float(rate) * (high + 1) + float(offset) - (high - low), low
        else:
            target, n = float(rate) * (low + 1) + float(offset), high
        block = _block_failure(target, n, float(level), noise)
        low, high = low[block > delta], high[block > delta]
        if low.size > _MOST_BLOCKS:
            return False
        middle = (low + high) // 2
        low, high = np.concatenate([low, middle + 1]), np.concatenate([middle, high])
    return True


def _block_failure(
    target: NDArray[Any], n: NDArray[np.int64], level: float, noise: SlopeNoise, step: int | None = None
) -> NDArray[np.float64]:
    """Theorem C1b for many n at once, deficits grouped into steps (each group counted at its largest deficit)."""
    step = _group_size(int(n.min()), level, noise.left) if step is None else step
    deficits = np.arange(0, math.ceil((math.log1p(noise.rivals) + _NEGLIGIBLE) / noise.left) + 1, step, dtype=np.int64)

    # The lowest rank of each group, and the mass that the noise leaves behind it.
    top = np.ceil(target)
    fraction, highest = target - top + 1, top.astype(np.int64) - step + 1
    total = np.zeros(target.shape)
    survival = np.ones(target.shape)
    rows = max(1, _CELLS // n.size)

    # Sum P(deficit) P(Bin(n, level) >= rank) over the groups, some of them at once.
    for d in (deficits[i : i + rows, None] for i in range(0, len(deficits), rows)):
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


def _chernoff_from(rate: float, offset: float, level: float, delta: float, n_min: int, noise: SlopeNoise) -> int:
    """An n from which on exp(-n KL(rank/n || level)) + tail <= delta: both terms fall from there on."""
    deficit = (math.log1p(noise.rivals) + math.log(4 / delta)) / noise.left
    missed = float(tail(np.array(deficit), noise.left, noise.rivals))
    n = max(n_min, 64)
    while n <= _LARGEST_N:
        ratio = (rate * (n + 1) + offset - deficit - 1) / n
        lowest = min(ratio, rate)  # of the ratios from this n on
        if level < lowest and n * _kl_divergence(lowest, level) >= -math.log(delta - missed):
            return n
        n *= 2
    return n


def _kl_divergence(a: float, b: float) -> float:
    return a * math.log(a / b) + (1 - a) * math.log((1 - a) / (1 - b))
