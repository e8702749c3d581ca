"""The sharp marginal certificate: nearly the exact worst case of coverage (docs/theory.md, Theorem C2).

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
_AT_ONCE = 12
"""Programs that are solved together: more would not stay in a processor's cache."""


def public_coverage(
    n: int, target: Fraction, slope_left: float, slope_right: float, rivals: float, selector: Selector
) -> Fraction:
    """Guaranteed marginal coverage for a public n and a target rank T, 0 < T <= n (Theorem C2a).

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
    """How many ranks too small `offset` is for coverage >= rate at every n >= n_min (Theorem C2b); at most 0 if enough.

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
    worst = _worst_above(unit, slope_left, slope_right, rivals, selector)
    if few := list(below_target(rate, offset, fade, n_min, slope_left)):
        low, high, last = np.array(few).T
        ahead = np.maximum(0.0, head_start - fade * last)
        worst = max(worst, float((sharp_losses(low + ahead, slope_left, rivals, selector) + high).max()))
    return worst - 2 - float(offset)


@lru_cache(maxsize=4096)
def _worst_above(unit: int, slope_left: float, slope_right: float, rivals: float, selector: Selector) -> float:
    """The largest L(f) + f where T(n) <= n, over all fractional parts f of target ranks in steps of 1/unit."""
    low, high = np.array(list(_brackets(Fraction(1), Fraction(0), unit, slope_left))).T
    competitor = np.exp(-slope_right * (1 - low))
    return float((sharp_losses(low, slope_left, rivals, selector, competitor) + high).max())


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
    return float(sharp_losses(np.array([x]), slope, rivals, selector, np.array([competitor]))[0])


def sharp_losses(
    x: NDArray[np.float64],
    slope: float,
    rivals: float,
    selector: Selector,
    competitor: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """The same for many x at once, float64 of shape (k,); `competitor` has that shape, too, or all weigh 1.

    Examples
    --------
    >>> sharp_losses(np.array([0.5, 1.0]), 0.72, 999.0, "permute_and_flip").round(2)
    array([7.96, 7.47])
    """
    lost = np.zeros(len(x)) if competitor is None else 1 - competitor
    if rivals == 0:
        return lost
    tolerance = _tolerance(slope)
    weights, step = _weights(x, slope, rivals)
    able = np.flatnonzero(weights[:, 0])
    for some in (able[k : k + _AT_ONCE] for k in range(0, len(able), _AT_ONCE)):
        programs = _programs(weights[some], step - lost[some], step, selector)
        lost[some] += _maxima(programs, weights[some], rivals, tolerance)
    return lost


def sharp_loss_within(most: float, x: float, slope: float, rivals: float, selector: Selector) -> bool:
    """Whether L(x) <= most, by as few steps as tell it.

    Examples
    --------
    >>> [sharp_loss_within(most, 1.0, 0.72, 999.0, "permute_and_flip") for most in (7.4, 7.5)]
    [False, True]
    """
    if rivals == 0:
        return most >= 0
    weights, step = _weights(np.array([x]), slope, rivals)
    if weights[0, 0] == 0:
        return most >= 0
    programs, spread = _programs(weights, np.array([float(step)]), step, selector), _start(weights, rivals)
    tolerance = _tolerance(slope)
    while True:
        value, gap, push = _looked_at(programs, spread, rivals)
        if value[0] > most or value[0] + gap[0] <= most or gap[0] <= tolerance:
            return bool(value[0] + gap[0] <= most)
        spread = _better(push, rivals)


def _weights(x: NDArray[np.float64], slope: float, rivals: float) -> tuple[NDArray[np.float64], int]:
    """The weights of all indices that matter, shape (k, depth), and how many of them count as one."""
    # Small slopes: `step` neighbouring indices share one weight, the largest of them, which only raises the bound.
    step = max(1, int(0.06 / slope))
    depth = int((math.log1p(rivals) + 14) / (slope * step)) + 2
    return np.exp(-slope * np.maximum(step * np.arange(depth) + x[:, None] - 1, 0)), step


def _tolerance(slope: float) -> float:
    """A thousandth of a rank, or of L where slopes are small and L is large (there L is about 5/slope)."""
    return 1e-3 / min(slope, 1.0) if slope > 0.5 else 5e-3 / slope


def _maxima(
    programs: "_Exponential | _PermuteAndFlip", weights: NDArray[np.float64], rivals: float, tolerance: float
) -> NDArray[np.float64]:
    """Upper bounds on the maxima of some programs, each as soon as it is good enough; shape (k,)."""
    found, left, spread = np.empty(len(weights)), np.arange(len(weights)), _start(weights, rivals)
    while True:
        value, gap, push = _looked_at(programs, spread, rivals)
        rough = gap > tolerance
        found[left[~rough]] = (value + gap)[~rough]
        if not rough.any():
            return found
        if not rough.all():
            left, spread, push = left[rough], spread[rough], push[rough]
            programs.keep(rough)
        spread = _better(push, rivals)


def _start(weights: NDArray[np.float64], rivals: float) -> NDArray[np.float64]:
    """The first spread of the mass."""
    roots = np.sqrt(weights)
    spread: NDArray[np.float64] = roots / roots.sum(axis=1, keepdims=True) * rivals
    return spread


def _looked_at(
    programs: "_Exponential | _PermuteAndFlip", spread: NDArray[np.float64], rivals: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The value at a spread, the duality gap above it, and what each index contributes to its growth."""
    value, gradient = programs(spread)
    push = spread * gradient
    return value, rivals * gradient.max(axis=1) - push.sum(axis=1), push


def _better(push: NDArray[np.float64], rivals: float) -> NDArray[np.float64]:
    """More mass where it gains more."""
    better: NDArray[np.float64] = push * (rivals / push.sum(axis=1, keepdims=True))
    return better


def _programs(
    weights: NDArray[np.float64], first: NDArray[np.float64], step: int, selector: Selector
) -> "_Exponential | _PermuteAndFlip":
    """The concave programs with these weights, and `first` points of index 0 where other indices have `step`."""
    points = np.full(weights.shape, float(step))
    points[:, 0] = first
    return (_PermuteAndFlip if selector == "permute_and_flip" else _Exponential)(weights, points)


class _Exponential:
    """phi = W/(1+W), W the total weight of the candidates of index >= e; k programs over (k, depth) at once."""

    def __init__(self, weights: NDArray[np.float64], points: NDArray[np.float64]) -> None:
        self.weights, self.points = weights, points

    def keep(self, which: NDArray[np.bool_]) -> None:
        """Go on with some of the programs."""
        self.weights, self.points = self.weights[which], self.points[which]

    def __call__(self, spread: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        total = np.cumsum((spread * self.weights)[:, ::-1], axis=1)[:, ::-1]
        value = np.sum(self.points * total / (1 + total), axis=1)
        return value, self.weights * np.cumsum(self.points / (1 + total) ** 2, axis=1)


_MANY = 3
"""From so many programs on, sums of slices are quicker one slice after the other."""
_GONE = 600.0
"""exp(-600) is nothing compared with 1; smaller numbers slow a processor down."""


class _PermuteAndFlip:
    """phi = 1 - int_0^1 prod (1 - s w)^K ds over the candidates of index >= e, by Gauss-Legendre in a stretched s.

    Arrays have shape (depth, programs, nodes): sums over indices add up whole slices.
    """

    def __init__(self, weights: NDArray[np.float64], points: NDArray[np.float64]) -> None:
        s, self.ds = unit_nodes()
        self.logs = -np.log1p(-weights.T[:, :, None] * s)
        self.points = points.T

    def keep(self, which: NDArray[np.bool_]) -> None:
        """Go on with some of the programs."""
        self.logs, self.points = self.logs[:, which], self.points[:, which]

    def __call__(self, spread: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        survive = spread.T[:, :, None] * self.logs
        _add_up(survive[::-1])
        np.minimum(survive, _GONE, out=survive)
        np.exp(np.negative(survive, out=survive), out=survive)
        survive *= self.ds
        survive *= self.points[:, :, None]
        _add_up(survive)
        value = self.points.sum(axis=0) - survive[-1].sum(axis=1)
        return value, np.einsum("ijk,ijk->ji", self.logs, survive)


def _add_up(slices: NDArray[np.float64]) -> None:
    """Sums of the first 1, 2, ... slices in their place; where they are long, quicker than `np.cumsum`."""
    if slices.shape[1] < _MANY:
        np.cumsum(slices, axis=0, out=slices)
        return
    total = slices[0]
    for one in slices[1:]:
        one += total
        total = one
