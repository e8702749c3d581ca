"""Target ranks for the marginal guarantee: the smallest that the sharp certificate accepts."""

import math
from fractions import Fraction

from confide.guarantee.certificate import (
    public_coverage,
    secret_shortfall,
    sharp_loss,
    sharp_loss_within,
    sizes_below_target,
)
from confide.support import bisect, ceil_to

LARGE_N_MIN = 2**60
"""An n_min at which every n reaches its target rank."""


def public_shift(
    n: int, level: Fraction, slope_left: float, slope_right: float, rivals: float, unit: int
) -> Fraction | None:
    """The smallest target rank, in steps of 1/unit, with coverage >= level at a public n; None if n is too small.

    Examples
    --------
    >>> float(public_shift(1000, Fraction(9, 10), 0.7, 0.3, 999.0, 16))
    908.0
    """
    whole = math.ceil(level * (n + 1) - 1 + Fraction(sharp_loss(1.0, slope_left, rivals)))
    if whole > n:
        return None

    def enough(steps: int) -> bool:
        return public_coverage(n, Fraction(steps, unit), slope_left, slope_right, rivals) >= level

    return Fraction(bisect(enough, max(whole - 1, 0) * unit, max(whole, 1) * unit), unit)


def secret_shift(level: Fraction, slope_left: float, slope_right: float, rivals: float, unit: int) -> Fraction:
    """The smallest offset s, in steps of 1/unit, with coverage >= level at every n that reaches its target rank.

    The target rank is T(n) = level (n+1) + s. Smaller n are covered by the prior bonus of +inf (`secret_prior_bonus`).

    Examples
    --------
    >>> float(secret_shift(Fraction(9, 10), 0.8, 0.3, 999.0, 20))
    6.2
    """

    def short(offset: Fraction) -> float:
        return secret_shortfall(level, offset, 0.0, 0.0, LARGE_N_MIN, slope_left, slope_right, rivals)

    # The search interval does not depend on the offset here: one evaluation gives the offset itself.
    offset = ceil_to(max(0.0, short(Fraction(1, unit)) + 1 / unit), unit)
    return offset if short(offset) <= 0 else offset + Fraction(1, unit)


def secret_prior_bonus(
    level: Fraction,
    offset: Fraction,
    fade: float,
    n_min: int,
    slope_left: float,
    slope_right: float,
    rivals: float,
) -> float:
    """The prior bonus of +inf, in ranks, with coverage >= level at the n >= n_min below their target rank.

    The bonus fades by `fade` ranks with every record. It is the largest of the bonuses that the single n need.

    Examples
    --------
    >>> secret_prior_bonus(Fraction(9, 10), Fraction(4), 0.0, 1, 0.5, 0.5, 30.0) < 6
    True
    """

    def short(head_start: float, n_min: int) -> float:
        return secret_shortfall(level, offset, head_start, fade, n_min, slope_left, slope_right, rivals)

    settled = max(0.0, short(0.0, LARGE_N_MIN))
    limit = float(offset) + 2 + settled

    def serves(x: float, high: float) -> bool:
        return sharp_loss_within(limit - high, x, slope_left, rivals)

    def needed(low: float, high: float) -> float:
        """The smallest bonus h, in steps of a twentieth of a unit of log-odds, with L(low + h) + high <= limit."""
        below, above, step = 0, 1, 0.05 / slope_left

        def enough(steps: int) -> bool:
            return serves(low + steps * step, high)

        while not enough(above):
            below, above = above, 2 * above
        return bisect(enough, below, above) * step

    head_start = 0.0
    few = list(sizes_below_target(level, offset, fade, n_min, slope_left))
    # The largest bonus is needed near the middle. Start there: most other n then need no more.
    for low, high, last in sorted(few, key=lambda block: abs(block[2] - few[len(few) // 2][2])):
        if not serves(low + max(0.0, head_start - fade * last), high):
            head_start = needed(low, high) + fade * last
    while short(head_start, n_min) > settled:  # L is accurate to a thousandth of a rank only
        head_start += 0.01 / slope_left
    return head_start
