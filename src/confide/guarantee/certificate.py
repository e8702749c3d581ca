"""The sharp marginal certificate: nearly the exact worst case of coverage (docs/theory.md, Theorem 3).

Coverage is the average, over which of N = n + 1 exchangeable points is left out, of the probability that the point is
at or below the threshold selected from the others. Counting from the point at rank ceil(T)+1 downwards, the point in
position e can only be missed by candidates that fall short of the target by index e or more, so

    coverage >= 1 - [ max(N - ceil(T) - 1, 0) + L ] / N,       L = max_K sum_e phi(candidates of index >= e),

where K spreads the candidates left of the first that is sure to cover over the indices, by weight relative to that
one's: their sum is at most G (`rivals`), m - 1 if all candidates weigh the same. phi is the probability that one of
them beats a single competitor. The maximum is a concave program; its duality gap is added, so a stopped iteration is
still a certificate.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from confide.selection import Selector, unit_nodes

_BRACKETS = 64
_BLOCKS = 48


def public_coverage(
    n: int, target: Fraction, slope_left: float, slope_right: float, rivals: float, selector: Selector
) -> Fraction:
    """Guaranteed marginal coverage for a public n and a target rank T, 0 < T <= n (Theorem 3a).

    Slopes are log-odds per rank short of, and beyond, the target; rivals is G, see `rivals_left`.

    Examples
    --------
    >>> round(float(public_coverage(1000, Fraction(9075, 10), 0.7, 0.3, 999.0, "permute_and_flip")), 4)
    0.8999
    """
    top = math.ceil(target)
    fraction = float(target - top + 1)
    lost = sharp_loss(fraction, slope_left, rivals, selector, competitor=math.exp(-slope_right * (1 - fraction)))
    return max(Fraction(0), (top + 1 - Fraction(lost)) / (n + 1))


def private_shortfall(
    rate: Fraction,
    offset: Fraction,
    head_start: float,
    fade: float,
    n_min: int,
    slope_left: float,
    slope_right: float,
    rivals: float,
    selector: Selector,
) -> float:
    """How many ranks too small `offset` is for coverage >= rate at every n >= n_min (Theorem 3b); at most 0 if enough.

    With x = offset + 2 - (1-rate)(n+1), a secret n below the target (x > 1) is served if
    L(x + h(n)) + x <= offset + 2, h(n) = max(0, head_start - fade n) being the head start of +inf, and a larger n if
    L(f) + f <= offset + 2 for its fractional part f of T(n). The left sides grow from x to x + 1 if nothing fades, so
    one unit interval of each has to be searched; a fading head start is checked for all n. Head start and fade are in
    ranks of the left slope.

    Examples
    --------
    >>> short = private_shortfall(Fraction(9, 10), Fraction(6), 3.1, 0.0, 1, 0.778, 0.333, 999.0, "permute_and_flip")
    >>> short <= 0
    True
    """
    unit = math.lcm(rate.denominator, offset.denominator)
    worst = -math.inf
    for low, high in _brackets(Fraction(1), Fraction(0), unit, slope_left):
        competitor = math.exp(-slope_right * (1 - low))
        worst = max(worst, sharp_loss(low, slope_left, rivals, selector, competitor=competitor) + high)
    for low, high, last in below_target(rate, offset, fade, n_min, slope_left):
        ahead = max(0.0, head_start - fade * last)
        worst = max(worst, sharp_loss(low + ahead, slope_left, rivals, selector) + high)
    return worst - 2 - float(offset)


def below_target(
    rate: Fraction, offset: Fraction, fade: float, n_min: int, slope_left: float
) -> Iterator[tuple[float, float, int]]:
    """Triples (low, high, last) that cover the secret n with a target rank above n, where +inf needs a head start.

    They stand for the n whose x = offset + 2 - (1-rate)(n+1) lies in [low, high], `last` being the largest n that
    matters: 0 where the head start does not fade, and one unit interval of x is enough.
    """
    start = offset + 2 - (1 - rate) * (n_min + 1)
    if start <= 1:
        return
    if fade == 0:
        unit = math.lcm(rate.denominator, offset.denominator)
        yield from ((*pair, 0) for pair in _brackets(start, max(start - 1, Fraction(1)), unit, slope_left))
        return
    end = math.ceil((rate + offset) / (1 - rate))  # from here on T(n) <= n
    step = max(1, -(-(end - n_min) // _BLOCKS))
    for first in range(n_min, end, step):
        last = min(first + step, end) - 1
        low, high = (float(offset + 2 - (1 - rate) * (n + 1)) for n in (last, first))
        yield low, high, last


def _brackets(top: Fraction, bottom: Fraction, unit: int, slope: float) -> Iterator[tuple[float, float]]:
    """Pairs (low, high) that cover the x in (bottom, top] that are multiples of 1/unit below `top`.

    L falls with x, so L(low) + high bounds L(x) + x on a pair. Coarse units are covered point by point, without slack.
    """
    coarse = min(_BRACKETS, max(1, math.ceil(80 * slope)))
    exact = unit <= coarse
    steps = unit if exact else coarse
    for k in range(steps):
        high = top - Fraction(k, steps)
        if high <= bottom:
            return
        yield float(high if exact else max(high - Fraction(1, steps), bottom)), float(high)


@lru_cache(maxsize=4096)
def sharp_loss(x: float, slope: float, rivals: float, selector: Selector, *, competitor: float = 1.0) -> float:
    """L(x): an upper bound on the expected number of missed points at or below rank ceil(T)+1.

    Candidate index d falls short of the target by (d + x - 1)_+ ranks: x is the fractional part of T in (0, 1], or more
    when T(n) exceeds n. The point of index 0 meets a competitor of weight `competitor` in (0, 1], all others one of
    weight 1.

    Examples
    --------
    >>> round(sharp_loss(1.0, 0.72, 999.0, "permute_and_flip"), 2)
    7.47
    """
    if rivals == 0:
        return 1 - competitor
    # Small slopes: `step` neighbouring indices share one weight, the largest of them, which only raises the bound.
    step = max(1, int(0.06 / slope))
    depth = int((math.log1p(rivals) + 14) / (slope * step)) + 2
    weights = np.exp(-slope * np.maximum(step * np.arange(depth) + x - 1, 0))
    points = np.full(depth, float(step))
    points[0] -= 1 - competitor
    if weights[0] == 0.0:
        return 1 - competitor
    evaluate = (_PermuteAndFlip if selector == "permute_and_flip" else _Exponential)(weights, points)
    spread = np.sqrt(weights) / np.sum(np.sqrt(weights)) * rivals
    # A thousandth of a rank, or of L where slopes are small and L is large (there L is about 5/slope).
    tolerance = 1e-3 / min(slope, 1.0) if slope > 0.5 else 5e-3 / slope
    while True:
        value, gradient = evaluate(spread)
        gain = float(spread @ gradient)
        gap = rivals * float(gradient.max()) - gain
        if gap <= tolerance:
            return float(value + gap + (1 - competitor))
        spread = spread * gradient * (rivals / gain)


class _Exponential:
    """phi = W/(1+W), W the total weight of the candidates of index >= e."""

    def __init__(self, weights: NDArray[np.float64], points: NDArray[np.float64]) -> None:
        self.weights, self.points = weights, points

    def __call__(self, spread: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        total = np.cumsum((spread * self.weights)[::-1])[::-1]
        value = np.sum(self.points * total / (1 + total))
        return float(value), self.weights * np.cumsum(self.points / (1 + total) ** 2)


class _PermuteAndFlip:
    """phi = 1 - int_0^1 prod (1 - s w)^K ds over the candidates of index >= e, by Gauss-Legendre in a stretched s."""

    def __init__(self, weights: NDArray[np.float64], points: NDArray[np.float64]) -> None:
        s, ds = unit_nodes()
        self.logs = -np.log1p(-np.outer(weights, s))
        self.measure = points[:, None] * ds
        self.total = float(points.sum())

    def __call__(self, spread: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        exponent = np.cumsum((spread[:, None] * self.logs)[::-1], axis=0)[::-1]
        survive = np.exp(-exponent) * self.measure
        value = self.total - survive.sum()
        return float(value), np.einsum("ij,ij->i", self.logs, np.cumsum(survive, axis=0))
