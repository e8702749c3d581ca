"""The sharp certificate for weighted records: coverage of a population that differs by a known shift (Theorem A6)."""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from confide.guarantee.certificate import sharp_loss
from confide.guarantee.random_rank import tail
from confide.guarantee.slope_noise import SlopeNoise
from confide.support import bisect

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

# The steps, in log-odds, of an upper Riemann sum of Lambda.
_FINE = 1 / 16
_BLOCKS = 64


def weighted_loss(z: float, slope: float, rivals: float) -> float:
    """Lambda(z): an upper bound on the expected missed weight that lies z ranks or more before the target rank.

    Ranks are weights in units of the largest one. The slope is in log-odds per rank. `rivals` is G, see
    `competitor_ratio`.
    """
    step = _FINE / slope
    return step * sharp_loss(1.0 + z / step, _FINE, rivals)


def weighted_shortfall(rate: Fraction, offset: Fraction, bonus: float, fade: float, noise: SlopeNoise) -> float:
    """Number of ranks that `offset` lacks for coverage >= rate of the shifted population; at most 0 if enough.

    If it is at most 0, the guarantee holds for every number of records and all weights. Prior bonus and fade are in
    ranks of the left slope. A bonus that is too small makes the shortfall infinite.
    """
    short = weighted_loss(0.0, noise.left, noise.rivals) - float(offset)
    for low, high, last in _below_target(rate, offset):
        ahead = max(0.0, bonus - fade * last)
        if not _serves(low + ahead, high, rate, offset, noise):
            return math.inf
    return short


def weighted_prior_bonus(rate: Fraction, offset: Fraction, fade: float, noise: SlopeNoise) -> float:
    """A small prior bonus of +inf, in ranks, that is enough for all total weights below their target rank.

    It fades by `fade` ranks with every rank of weight.

    Examples
    --------
    >>> ahead = weighted_prior_bonus(Fraction(9, 10), Fraction(6), 0.1, SlopeNoise(0.778, 0.3, 99.0))
    >>> weighted_shortfall(Fraction(9, 10), Fraction(6), ahead, 0.1, SlopeNoise(0.778, 0.3, 99.0)) <= 0
    True
    """
    step, start = 0.05 / noise.left, 0.0
    # Where the bonus fades, the largest weights need the largest bonus; then the others mostly need no more.
    for low, high, last in reversed(list(_below_target(rate, offset))):
        ahead = max(0.0, start - fade * last)

        def enough(steps: int, z: float = low + ahead, high: float = high) -> bool:
            return _serves(z + steps * step, high, rate, offset, noise)

        if enough(0):
            continue
        below, above = 0, 1
        while not enough(above):
            below, above = above, 2 * above
        start = ahead + bisect(enough, below, above) * step + fade * last
    return start


def _below_target(rate: Fraction, offset: Fraction) -> Iterator[tuple[float, float, float]]:
    """Triples (low, high, last): z lies in [low, high] if the points weigh at most `last`; all z > 0 are covered."""
    end = float(offset / (1 - rate))
    for k in range(_BLOCKS if offset > 0 else 0):
        first, last = end * k / _BLOCKS, end * (k + 1) / _BLOCKS
        yield max(0.0, float(offset) - float(1 - rate) * last), float(offset) - float(1 - rate) * first, last


def _serves(z: float, high: float, rate: Fraction, offset: Fraction, noise: SlopeNoise) -> bool:
    # Where +inf always covers, the missed weight must be small enough for each point, or for all together.
    if float(tail(np.array([z]), noise.left, noise.rivals)[0]) <= float(1 - rate) * (1 - 1e-9):
        return True
    return high < offset and weighted_loss(z, noise.left, noise.rivals) + high <= float(offset)
