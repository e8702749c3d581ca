"""Target ranks for the marginal guarantee: the smallest that the sharp certificate accepts."""

import math
from fractions import Fraction

from confide.guarantee.certificate import private_shortfall, public_coverage, sharp_loss
from confide.selection import Selector
from confide.support import ceil_to

NEVER_SMALL = 2**60
"""An n_min at which every n reaches its target rank."""


def public_shift(
    n: int, level: Fraction, slope_left: float, slope_right: float, m: int, selector: Selector, unit: int
) -> Fraction | None:
    """The smallest target rank, in steps of 1/unit, with coverage >= level at a public n; None if n is too small.

    Examples
    --------
    >>> float(public_shift(1000, Fraction(9, 10), 0.7, 0.3, 1000, "permute_and_flip", 16))
    907.5625
    """
    whole = math.ceil(level * (n + 1) - 1 + Fraction(sharp_loss(1.0, slope_left, m, selector)))
    if whole > n:
        return None
    low, high = max(whole - 1, 0) * unit, max(whole, 1) * unit
    while high - low > 1:
        middle = (low + high) // 2
        enough = public_coverage(n, Fraction(middle, unit), slope_left, slope_right, m, selector) >= level
        low, high = (low, middle) if enough else (middle, high)
    return Fraction(high, unit)


def private_shift(
    level: Fraction, slope_left: float, slope_right: float, m: int, selector: Selector, unit: int
) -> Fraction:
    """The smallest offset s, in steps of 1/unit, with coverage >= level at every n that reaches its target rank.

    The target rank is T(n) = level (n+1) + s; smaller n are left to the head start of +inf.

    Examples
    --------
    >>> float(private_shift(Fraction(9, 10), 0.8, 0.3, 1000, "permute_and_flip", 20))
    5.85
    """

    def short(offset: Fraction) -> float:
        return private_shortfall(level, offset, 0.0, NEVER_SMALL, slope_left, slope_right, m, selector)

    # The search interval does not depend on the offset here: one evaluation tells the offset itself.
    offset = ceil_to(max(0.0, short(Fraction(1, unit)) + 1 / unit), unit)
    return offset if short(offset) <= 0 else offset + Fraction(1, unit)


def private_head_start(
    level: Fraction,
    offset: Fraction,
    n_min: int,
    slope_left: float,
    slope_right: float,
    m: int,
    selector: Selector,
) -> float:
    """The smallest head start of +inf, in ranks, with coverage >= level at the n >= n_min below their target rank.

    Examples
    --------
    >>> head_start = private_head_start(Fraction(9, 10), Fraction(6), 1, 0.778, 0.333, 1000, "permute_and_flip")
    >>> round(head_start, 1)
    3.1
    """
    settled = private_shortfall(level, offset, 0.0, NEVER_SMALL, slope_left, slope_right, m, selector)

    def serves(head_start: float) -> bool:
        short = private_shortfall(level, offset, head_start, n_min, slope_left, slope_right, m, selector)
        return short <= max(0.0, settled)

    low, high = 0.0, 1 / slope_left
    if serves(0.0):
        return 0.0
    while not serves(high):
        low, high = high, 2 * high
    while high - low > 0.02 / slope_left:
        middle = (low + high) / 2
        low, high = (low, middle) if serves(middle) else (middle, high)
    return high
