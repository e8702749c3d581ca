"""Target ranks for the marginal guarantee: the smallest that the sharp certificate accepts."""

import math
from fractions import Fraction

from confide.guarantee.certificate import below_target, private_shortfall, public_coverage, sharp_loss
from confide.selection import Selector
from confide.support import ceil_to

NEVER_SMALL = 2**60
"""An n_min at which every n reaches its target rank."""


def public_shift(
    n: int, level: Fraction, slope_left: float, slope_right: float, rivals: float, selector: Selector, unit: int
) -> Fraction | None:
    """The smallest target rank, in steps of 1/unit, with coverage >= level at a public n; None if n is too small.

    Examples
    --------
    >>> float(public_shift(1000, Fraction(9, 10), 0.7, 0.3, 999.0, "permute_and_flip", 16))
    907.5625
    """
    whole = math.ceil(level * (n + 1) - 1 + Fraction(sharp_loss(1.0, slope_left, rivals, selector)))
    if whole > n:
        return None
    low, high = max(whole - 1, 0) * unit, max(whole, 1) * unit
    while high - low > 1:
        middle = (low + high) // 2
        enough = public_coverage(n, Fraction(middle, unit), slope_left, slope_right, rivals, selector) >= level
        low, high = (low, middle) if enough else (middle, high)
    return Fraction(high, unit)


def private_shift(
    level: Fraction, slope_left: float, slope_right: float, rivals: float, selector: Selector, unit: int
) -> Fraction:
    """The smallest offset s, in steps of 1/unit, with coverage >= level at every n that reaches its target rank.

    The target rank is T(n) = level (n+1) + s; smaller n are left to the head start of +inf.

    Examples
    --------
    >>> float(private_shift(Fraction(9, 10), 0.8, 0.3, 999.0, "permute_and_flip", 20))
    5.85
    """

    def short(offset: Fraction) -> float:
        return private_shortfall(level, offset, 0.0, 0.0, NEVER_SMALL, slope_left, slope_right, rivals, selector)

    # The search interval does not depend on the offset here: one evaluation tells the offset itself.
    offset = ceil_to(max(0.0, short(Fraction(1, unit)) + 1 / unit), unit)
    return offset if short(offset) <= 0 else offset + Fraction(1, unit)


def private_head_start(
    level: Fraction,
    offset: Fraction,
    fade: float,
    n_min: int,
    slope_left: float,
    slope_right: float,
    rivals: float,
    selector: Selector,
) -> float:
    """The head start of +inf, in ranks, with coverage >= level at the n >= n_min below their target rank.

    It fades by `fade` ranks with every record. With fade 0 the smallest one is searched; else every n says how much it
    needs, to a sixteenth of a rank, and the largest demand wins.

    Examples
    --------
    >>> private_head_start(Fraction(9, 10), Fraction(4), 0.0, 1, 0.5, 0.5, 30.0, "permute_and_flip") < 5
    True
    """

    def short(head_start: float, n_min: int) -> float:
        return private_shortfall(level, offset, head_start, fade, n_min, slope_left, slope_right, rivals, selector)

    settled = max(0.0, short(0.0, NEVER_SMALL))
    limit = float(offset) + 2 + settled

    def needed(low: float, high: float) -> float:
        """The least h, to a sixteenth of a rank, with L(low + h) + high <= limit."""
        if sharp_loss(low, slope_left, rivals, selector) + high <= limit:
            return 0.0
        below, enough = math.floor(16 * low), math.floor(16 * low) + 16
        while sharp_loss(enough / 16, slope_left, rivals, selector) + high > limit:
            below, enough = enough, 2 * enough
        while enough - below > 1:
            middle = (below + enough) // 2
            serves = sharp_loss(middle / 16, slope_left, rivals, selector) + high <= limit
            below, enough = (below, middle) if serves else (middle, enough)
        return enough / 16 - low

    demands = ((needed(low, high), last) for low, high, last in below_target(level, offset, fade, n_min, slope_left))
    head_start = max((ahead + fade * last for ahead, last in demands if ahead), default=0.0)
    while short(head_start, n_min) > settled:  # L is known up to a thousandth of a rank only
        head_start += 1 / 16
    return head_start
