"""The sharp certificate where records weigh differently: coverage of a population that is a known shift away.

Every record has a public weight in [0, 1], here in units of the largest, that is the shifted population's density ratio
up to a factor. Counts are sums of weights, T(W) = rate (W + 1) + offset, W the weight of all records. Given the
multiset of the n + 1 points, of weight W', the new one is point i with probability w_i/W' (weighted exchangeability).
Point i begins where the points before it end, at t, so it is missed only by candidates that reach t or less; the loss
is a lower Riemann sum, and (docs/theory-after-release.md, Theorem A6)

    sum_i w_i P(i is missed) <= (W' - T_1)_+ + Lambda(z_+),     T_1 = rate W' + offset,   z = T_1 - W',
    Lambda(z) = max_K int_z^oo phi(candidates that fall short by t or more) dt,

T_1 being the lowest target there is when one point is left out. K and phi are those of the sharp certificate.
"""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from confide.guarantee.certificate import sharp_loss
from confide.guarantee.random_rank import tail
from confide.selection import Selector

_FINE = 1 / 16
"""The steps, in log-odds, of an upper Riemann sum of Lambda."""
_BLOCKS = 64


def weighted_loss(z: float, slope: float, rivals: float, selector: Selector) -> float:
    """Lambda(z): an upper bound on the expected weight missed before the target rank, from z ranks before it on.

    Ranks are weights in units of the largest one, the slope is in log-odds per rank, rivals is G, see `rivals_left`.

    Examples
    --------
    >>> round(weighted_loss(0.0, 0.72, 999.0, "permute_and_flip"), 2)
    6.63
    """
    step = _FINE / slope
    return step * sharp_loss(1.0 + z / step, _FINE, rivals, selector)


def weighted_shortfall(
    rate: Fraction, offset: Fraction, head_start: float, fade: float, slope: float, rivals: float, selector: Selector
) -> float:
    """How many ranks too small `offset` is for coverage >= rate of the shifted population; at most 0 if enough.

    Then the promise holds for every number of records, whatever they weigh. Head start and fade are in ranks of the
    left slope; a head start that is too small makes the shortfall infinite.

    Examples
    --------
    >>> weighted_shortfall(Fraction(9, 10), Fraction(6), 12.0, 0.1, 0.778, 99.0, "permute_and_flip") <= 0
    True
    """
    short = weighted_loss(0.0, slope, rivals, selector) - float(offset)
    for low, high, last in _below_target(rate, offset):
        ahead = max(0.0, head_start - fade * last)
        if not _serves(low + ahead, high, rate, offset, slope, rivals, selector):
            return math.inf
    return short


def weighted_head_start(
    rate: Fraction, offset: Fraction, fade: float, slope: float, rivals: float, selector: Selector
) -> float:
    """A small head start of +inf, in ranks, that serves all records that weigh too little for their target rank.

    It fades by `fade` ranks with every rank of weight.

    Examples
    --------
    >>> ahead = weighted_head_start(Fraction(9, 10), Fraction(6), 0.1, 0.778, 99.0, "permute_and_flip")
    >>> weighted_shortfall(Fraction(9, 10), Fraction(6), ahead, 0.1, 0.778, 99.0, "permute_and_flip") <= 0
    True
    """
    step, start = 0.05 / slope, 0.0
    # The heaviest demand the most where the head start fades: the others are content with what there is then.
    for low, high, last in reversed(list(_below_target(rate, offset))):
        ahead = max(0.0, start - fade * last)

        def enough(steps: int, z: float = low + ahead, high: float = high) -> bool:
            return _serves(z + steps * step, high, rate, offset, slope, rivals, selector)

        if enough(0):
            continue
        below, above = 0, 1
        while not enough(above):
            below, above = above, 2 * above
        while above - below > 1:
            middle = (below + above) // 2
            below, above = (below, middle) if enough(middle) else (middle, above)
        start = ahead + above * step + fade * last
    return start


def _below_target(rate: Fraction, offset: Fraction) -> Iterator[tuple[float, float, float]]:
    """Triples (low, high, last): z lies in [low, high] where the points weigh at most `last`; all z > 0 are covered."""
    end = float(offset / (1 - rate))
    for k in range(_BLOCKS if offset > 0 else 0):
        first, last = end * k / _BLOCKS, end * (k + 1) / _BLOCKS
        yield max(0.0, float(offset) - float(1 - rate) * last), float(offset) - float(1 - rate) * first, last


def _serves(
    z: float, high: float, rate: Fraction, offset: Fraction, slope: float, rivals: float, selector: Selector
) -> bool:
    """Whether few enough are missed where +inf is sure to cover: each point, or all of them together."""
    if float(tail(np.array([z]), slope, rivals, selector)[0]) <= float(1 - rate) * (1 - 1e-9):
        return True
    return high < offset and weighted_loss(z, slope, rivals, selector) + high <= float(offset)
