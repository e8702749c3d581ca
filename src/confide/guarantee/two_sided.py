"""The two-sided marginal certificate, with competitors on both sides of the target (docs/theory-two-sided.md).

The sharp certificate counts all points right of rank c + 1, c = ceil(T), as missed, and gives the candidates left of a
missed point one competitor. But candidates near those points cover them and compete with the left ones, and left
candidates that reach a point compete for it as well. With x = T - c + 1 and N = n + 1,

    coverage >= 1 - [ N - c - 1 + L2(x) ] / N,     L2 = max over (K, s, rho) of  1 - credit + sum_(f>=1) phi_f,

    credit = [ v (s+1) (1+R) + X ] / (W_0 + a + 1 + R),
    phi_f  = W_f / (W_f + 1 + R + a e^(-lx) + y (W_0 - W_f)).

K is the mass of the left candidates by index d, q_d their weights, W_f = sum_(d>=f) K_d q_d, and y = exp(-l). a is the
weight of a candidate exactly at rank c, if there is one. s is the number of points beyond rank c + 1 in the bin of rank
c + 1, and v the weight of that bin's candidate g when it has to cover them. R = w exp(-rs) rho is the weight of the
candidates right of g, with w = exp(-r (c - T)). X = w exp(-rs) [ kappa + (1-v)(s+1) rho ] is that weight times the
number of points that it covers beyond those of g. The docs write kappa_0 for kappa.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

from confide.guarantee.adversary import accuracy, largest
from confide.guarantee.left_side import Case
from confide.guarantee.slope_noise import SlopeNoise

_UNLIMITED = 2**40
_FLAT = 0.008
"""For a smaller sum of slopes the search takes seconds to minutes. The sharp certificate is used there."""


def two_sided_coverage(
    n: int,
    target: Fraction,
    noise: SlopeNoise,
) -> Fraction:
    """Guaranteed marginal coverage for a public n and a target rank T, 0 < T <= n (Theorem T1a).

    Examples
    --------
    >>> round(float(two_sided_coverage(1000, Fraction(906), SlopeNoise(0.7, 0.3, 999.0, step=1.0))), 3)
    0.9
    """
    c = math.ceil(target)
    lost = two_sided_loss(float(target - c + 1), noise, beyond=n - c)
    return max(Fraction(0), (c + 1 - Fraction(lost)) / (n + 1))


@lru_cache(maxsize=4096)
def two_sided_loss(
    x: float,
    noise: SlopeNoise,
    *,
    beyond: int | None = None,
) -> float:
    """L2(x): an upper bound on the expected number of missed points less the number of points beyond rank c + 1.

    `beyond` is the number of points beyond rank c + 1. None bounds L2 for all large numbers.

    Examples
    --------
    >>> round(two_sided_loss(1.0, SlopeNoise(0.45, 0.55, 28.0)), 1)
    3.3
    """
    many = _UNLIMITED if beyond is None else beyond
    return largest(noise, list(adversaries(noise, x, x, many, beyond))) - x


@lru_cache(maxsize=4096)
def two_sided_holds(
    n: int,
    target: Fraction,
    level: Fraction,
    noise: SlopeNoise,
) -> bool:
    """Whether coverage >= level is certified for a public n and a target rank. Plans and readers of releases use this.

    It is faster than `two_sided_coverage`, which may stay below the level by the accuracy of its maximum.

    Examples
    --------
    >>> two_sided_holds(1000, Fraction(3613, 4), Fraction(9, 10), SlopeNoise(0.45, 0.55, 28.0, step=0.9))
    True
    """
    if not 0 < target <= n:
        return False
    c = math.ceil(target)
    x, goal = float(target - c + 1), float(target + 2 - level * (n + 1))
    return largest(noise, list(adversaries(noise, x, x, n - c, n - c)), goal) <= goal


def two_sided_target_rank(
    n: int,
    level: Fraction,
    noise: SlopeNoise,
    unit: int,
) -> Fraction | None:
    """A small target rank, in steps of 1/unit, that `two_sided_holds` accepts at a public n.

    None if n is too small, or if the slopes are so small that the search would take long.

    Examples
    --------
    >>> float(two_sided_target_rank(1000, Fraction(9, 10), SlopeNoise(0.45, 0.55, 28.0, step=0.9), 16))
    903.25
    """

    def enough(number: int) -> bool:
        target = Fraction(number, unit)
        return two_sided_holds(n, target, level, noise)

    if noise.left + noise.right < _FLAT:
        return None
    # The rank above level (n+1) hardly depends on the target's fractional part, unless it or `beyond` is small.
    beyond, lost, guess = None, 0.0, 1
    for _ in range(3):
        lost = two_sided_loss(1.0, noise, beyond=beyond)
        above = Fraction(lost + accuracy(lost) / 2) - 1
        guess = min(max(1, math.ceil((level * (n + 1) + above) * unit)), n * unit)
        left_over = n - -(-guess // unit)
        if left_over == beyond or left_over > 6 / noise.right:
            break
        beyond = left_over
    stride = 1
    while not enough(guess):
        if guess == n * unit:
            return None
        guess, stride = min(guess + stride, n * unit), 2 * stride
    stride = max(1, unit // 8)
    while (lost < 1 or beyond is not None) and guess > stride and enough(guess - stride):
        guess -= stride
    return Fraction(guess, unit)


def adversaries(
    noise: SlopeNoise, low: float, high: float, beyond: int, most: int | None, bonus: float = 0.0
) -> Iterator[Case]:
    """All choices of an adversary for x in [low, high]; x > 1 means that T(n) exceeds n."""
    if high > 1:
        yield Case(False, True, low, high, 0, 0, bonus)
        return
    for twin in (True, False) if low < 1 and noise.step > 0 else (True,):
        yield Case(twin, False, low, high, beyond, most, bonus)
        if most is not None:
            yield Case(twin, True, low, high, beyond, most, bonus)
