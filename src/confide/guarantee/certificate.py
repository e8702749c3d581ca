"""The sharp marginal certificate: close to the exact worst case of coverage (docs/theory.md, Theorem C2).

For weighted records it guarantees the coverage of a population that differs by a known shift (Theorem A6).
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from confide.guarantee.random_rank import SlopeNoise, tail
from confide.support import bisect, bisect_upwards

# Coverage is the average, over which of N = n + 1 exchangeable points is left out, of the probability that the point is
# at or below the threshold selected from the others. Count the points from rank ceil(T)+1 downwards. Only candidates
# that fall short of the target by index f or more can miss the point in position f, so
#
#     coverage >= 1 - [ max(N - ceil(T) - 1, 0) + L ] / N,       L = max_K sum_f W_f / (1 + W_f).
#
# K distributes the candidates left of the first one that covers with certainty over the indices, by weight relative to
# that one's. The sum of K is at most G (`rivals`), which is m - 1 if all candidates have equal weights. W_f is the
# total weight of the candidates of index >= f. The maximum has a closed form (Lemma C6).

# Small slopes: neighbouring indices share the largest of their weights, which differ by at most this log-odds.
_GROUPED = 0.04

# Weights fall by this log-odds per index at most, which only raises L: floats could not tell which W are 0.
_STEEP = 25.0

# What floats may lose, relative to the number of points that can be missed.
_ROUNDING = 1e-12

# What floats may lose, relative to a probability.
_RELATIVE_SPARE = 1e-9


def sharp_losses(
    x: NDArray[np.float64], slope: float, rivals: float, competitor: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """L(x) for many x, float64 of shape (k,): the largest expected number of missed points up to rank ceil(T)+1.

    A candidate of index d falls short of the target rank T by (d + x - 1)_+ ranks. x is the fractional part of T in (0,
    1], or larger if T(n) exceeds n. The point of index 0 has a competitor of weight `competitor` in [0, 1], shape (k,),
    all others have one of weight 1; None means 1 for all. The slope is in log-odds per rank.

    Examples
    --------
    >>> sharp_losses(np.array([0.5, 1.0]), 0.72, 999.0).round(2)
    array([8.37, 7.88])
    """
    lost = np.zeros(len(x)) if competitor is None else 1 - competitor
    if rivals == 0:
        return lost

    # Indices in groups, and so many that no W behind them is positive.
    group = max(1, int(_GROUPED / slope))
    depth = int((math.log1p(rivals) + 3) / min(slope * group, _STEEP)) + 5

    # The program: points and inverse weights by index. For x > 1 all weights are those for x = 1, times one factor.
    mass = rivals * np.exp(-slope * np.maximum(x - 1, 0))[:, None]
    index = np.arange(depth)
    short = np.maximum(group * index + np.minimum(x, 1)[:, None] - 1, 0)
    inverse = np.exp(np.minimum(slope * short, _STEEP * index))
    points = np.full(inverse.shape, float(group))
    points[:, 0] -= lost
    reached = np.cumsum(points, axis=1)

    # The first block ends where the points per cost are most. S sums sqrt(points cost) over the blocks.
    rows = np.arange(len(x))
    first = np.argmax(reached / inverse, axis=1)
    roots = np.sqrt(points * np.diff(inverse, axis=1, prepend=0.0))
    sums = np.cumsum(roots, axis=1)
    sums += (np.sqrt(reached * inverse) - sums)[rows, first][:, None]

    # W is positive in the first block and in those behind it up to `last`.
    positive = (index <= first[:, None]) | ((mass + inverse) * points > sums * roots)
    last = rows, np.count_nonzero(positive, axis=1) - 1
    missed = reached[last] * (1 + _ROUNDING) - sums[last] ** 2 / (mass + inverse)[last]
    at_most = (mass * reached / inverse)[rows, first]  # smaller where only rounding is left
    return np.asarray((lost + np.minimum(missed, at_most)) * (1 + _ROUNDING))


@lru_cache(maxsize=4096)
def sharp_loss(x: float, slope: float, rivals: float) -> float:
    """`sharp_losses` for one x, with competitors of weight 1."""
    return float(sharp_losses(np.array([x]), slope, rivals)[0])


# The largest number of fractional parts of a target rank that are computed one by one; more are taken in intervals.
_MOST_FRACTIONS = 128


@lru_cache(maxsize=4096)
def worst_loss(unit: int, noise: SlopeNoise) -> float:
    """The largest L(f) + f over the fractional parts f of target ranks T(n) <= n, in steps of 1/unit.

    L falls with f, so L(low) + high bounds an interval.
    """
    parts = min(unit, _MOST_FRACTIONS)
    high = np.arange(1, parts + 1) / parts
    low = high if parts == unit else high - 1 / parts
    return float((sharp_losses(low, noise.left, noise.rivals, np.exp(-noise.right * (1 - low))) + high).max())


def sharp_coverage(n: int, target: Fraction, noise: SlopeNoise) -> Fraction:
    """Guaranteed marginal coverage for a public n and a target rank T, 0 < T <= n (Theorem C2a).

    Examples
    --------
    >>> round(float(sharp_coverage(1000, Fraction(9075, 10), SlopeNoise(0.7, 0.3, 999.0))), 4)
    0.8995
    """
    top = math.ceil(target)
    x = np.array([float(target - top + 1)])
    [lost] = sharp_losses(x, noise.left, noise.rivals, np.exp(-noise.right * (1 - x))).tolist()
    return max(Fraction(0), (top + 1 - Fraction(lost)) / (n + 1))


def sharp_target_rank(n: int, level: Fraction, noise: SlopeNoise, unit: int) -> Fraction | None:
    """The smallest target rank, in steps of 1/unit, with coverage >= level at a public n; None if n is too small."""
    whole = math.ceil(level * (n + 1) - 1 + Fraction(sharp_loss(1.0, noise.left, noise.rivals)))
    if whole > n:
        return None

    def enough(steps: int) -> bool:
        return sharp_coverage(n, Fraction(steps, unit), noise) >= level

    return Fraction(bisect(enough, max(whole - 1, 0) * unit, max(whole, 1) * unit), unit)


# Weighted records.
#
# Every record has a public weight in [0, 1], in units of the largest weight: the density ratio of the shifted
# population up to a factor. Counts are sums of weights, and T(W) = rate (W + 1) + offset with W the weight of all
# records. Given the multiset of the n + 1 points, of weight W', the new one is point i with probability w_i/W'
# (weighted exchangeability). Point i begins where the points before it end, at pi_i, so only candidates that reach pi_i
# or less can miss it. The loss is a lower Riemann sum, and (docs/theory-after-release.md, Theorem A6)
#
#     sum_i w_i P(i is missed) <= (W' - T_1)_+ + Lambda(y_+),     T_1 = rate W' + offset,   y = T_1 - W',
#     Lambda(y) = max_Gamma int_y^oo phi(candidates that fall short by u or more) du.
#
# T_1 is the lowest target rank with one point left out. Gamma and phi are the K and phi of the sharp certificate.

# The step, in log-odds, of an upper Riemann sum of Lambda.
_RIEMANN_STEP = 1 / 16

# The steps in which a prior bonus is searched, in log-odds.
_BONUS_STEP = 0.05

# The number of intervals of total weights that are checked one by one.
_INTERVALS = 64


def weighted_loss(z: float, slope: float, rivals: float) -> float:
    """Lambda(z): an upper bound on the expected missed weight that lies z ranks or more before the target rank.

    Ranks are weights in units of the largest one. The slope is in log-odds per rank. `rivals` is G, see
    `competitor_ratio`.
    """
    step = _RIEMANN_STEP / slope
    return step * sharp_loss(1.0 + z / step, _RIEMANN_STEP, rivals)


def weighted_shortfall(rate: Fraction, offset: Fraction, bonus: float, fade: float, noise: SlopeNoise) -> float:
    """By how many ranks `offset` is too small for coverage >= rate in the shifted population; at most 0 if it suffices.

    If it is at most 0, the guarantee holds for every number of records and all weights. Prior bonus and fade are in
    ranks of the left slope. A bonus that is too small makes the shortfall infinite.
    """
    for low, high, weight in _short_intervals(rate, offset):
        faded = max(0.0, bonus - fade * weight)
        if not _bonus_serves(low + faded, high, rate, offset, noise):
            return math.inf
    return weighted_loss(0.0, noise.left, noise.rivals) - float(offset)


def weighted_prior_bonus(rate: Fraction, offset: Fraction, fade: float, noise: SlopeNoise) -> float:
    """A small prior bonus of +inf, in ranks, that is enough for all total weights below their target rank.

    It fades by `fade` ranks with every rank of weight.

    Examples
    --------
    >>> ahead = weighted_prior_bonus(Fraction(9, 10), Fraction(6), 0.1, SlopeNoise(0.778, 0.3, 99.0))
    >>> weighted_shortfall(Fraction(9, 10), Fraction(6), ahead, 0.1, SlopeNoise(0.778, 0.3, 99.0)) <= 0
    True
    """
    # Where the bonus fades, the largest weights need the largest bonus; then the others mostly need no more.
    step = _BONUS_STEP / noise.left
    bonus = 0.0
    for low, high, weight in reversed(list(_short_intervals(rate, offset))):
        faded = max(0.0, bonus - fade * weight)

        def is_enough(steps: int, z: float = low + faded, high: float = high) -> bool:
            return _bonus_serves(z + steps * step, high, rate, offset, noise)

        if is_enough(0):
            continue
        bonus = faded + bisect_upwards(is_enough, 0, 1) * step + fade * weight
    return bonus


def _short_intervals(rate: Fraction, offset: Fraction) -> Iterator[tuple[float, float, float]]:
    """Triples (low, high, weight): the target exceeds a total weight of at most `weight` by low to high ranks."""
    end = float(offset / (1 - rate))
    for k in range(_INTERVALS if offset > 0 else 0):
        first = end * k / _INTERVALS
        last = end * (k + 1) / _INTERVALS
        yield max(0.0, float(offset) - float(1 - rate) * last), float(offset) - float(1 - rate) * first, last


def _bonus_serves(z: float, high: float, rate: Fraction, offset: Fraction, noise: SlopeNoise) -> bool:
    # Where +inf always covers, the missed weight must be small enough for each point, or for all together.
    if float(tail(np.array([z]), noise.left, noise.rivals)[0]) <= float(1 - rate) * (1 - _RELATIVE_SPARE):
        return True
    return high < offset and weighted_loss(z, noise.left, noise.rivals) + high <= float(offset)
