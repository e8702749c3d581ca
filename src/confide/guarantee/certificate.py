"""The sharp marginal certificate: close to the exact worst case of coverage (docs/theory.md, Theorem C2).

Coverage is the average, over which of N = n + 1 exchangeable points is left out, of the probability that the point is
at or below the threshold selected from the others. Count the points from rank ceil(T)+1 downwards. Only candidates
that fall short of the target by index f or more can miss the point in position f, so

    coverage >= 1 - [ max(N - ceil(T) - 1, 0) + L ] / N,       L = max_K sum_f phi(candidates of index >= f).

K distributes the candidates left of the first one that covers with certainty over the indices, by weight relative to
that one's. The sum of K is at most G (`rivals`), which is m - 1 if all candidates have equal weights. phi is the
probability that one of them beats a single competitor. The maximum is a concave program. Its duality gap is added, so
a stopped iteration is still a certificate.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_BRACKETS = 64
_BLOCKS = 48
_AT_ONCE = 12
"""Programs that are solved together. More would not fit into the cache of a processor."""


def public_coverage(n: int, target: Fraction, slope_left: float, slope_right: float, rivals: float) -> Fraction:
    """Guaranteed marginal coverage for a public n and a target rank T, 0 < T <= n (Theorem C2a).

    Slopes are in log-odds per rank below and above the target. `rivals` is the competitor ratio G, see
    `competitor_ratio`.

    Examples
    --------
    >>> round(float(public_coverage(1000, Fraction(9075, 10), 0.7, 0.3, 999.0)), 4)
    0.8995
    """
    top = math.ceil(target)
    fraction = float(target - top + 1)
    lost = sharp_loss(fraction, slope_left, rivals, competitor=math.exp(-slope_right * (1 - fraction)))
    return max(Fraction(0), (top + 1 - Fraction(lost)) / (n + 1))


def secret_shortfall(
    rate: Fraction,
    offset: Fraction,
    head_start: float,
    fade: float,
    n_min: int,
    slope_left: float,
    slope_right: float,
    rivals: float,
) -> float:
    """Number of ranks that `offset` lacks for coverage >= rate at every n >= n_min (Theorem C2b); at most 0 if enough.

    Let x = offset + 2 - (1-rate)(n+1), and let z(n) = max(0, head_start - fade n) be the prior bonus of +inf. The
    condition for a secret n below the target (x > 1) is L(x + z(n)) + x <= offset + 2. For a larger n it is
    L(f) + f <= offset + 2 with f the fractional part of T(n). Without fading the left sides grow from x to x + 1, so
    one unit interval of each is searched. A fading bonus is checked for all n. Bonus and fade are in ranks of the
    left slope.

    Examples
    --------
    >>> short = secret_shortfall(Fraction(9, 10), Fraction(7), 3.1, 0.0, 1, 0.778, 0.333, 999.0)
    >>> short <= 0
    True
    """
    unit = math.lcm(rate.denominator, offset.denominator)
    worst = _worst_above(unit, slope_left, slope_right, rivals)
    if few := list(sizes_below_target(rate, offset, fade, n_min, slope_left)):
        low, high, last = np.array(few).T
        ahead = np.maximum(0.0, head_start - fade * last)
        worst = max(worst, float((sharp_losses(low + ahead, slope_left, rivals) + high).max()))
    return worst - 2 - float(offset)


@lru_cache(maxsize=4096)
def _worst_above(unit: int, slope_left: float, slope_right: float, rivals: float) -> float:
    """The largest L(f) + f where T(n) <= n, over all fractional parts f of target ranks in steps of 1/unit."""
    low, high = np.array(list(_brackets(Fraction(1), Fraction(0), unit, slope_left))).T
    competitor = np.exp(-slope_right * (1 - low))
    return float((sharp_losses(low, slope_left, rivals, competitor) + high).max())


def sizes_below_target(
    rate: Fraction, offset: Fraction, fade: float, n_min: int, slope_left: float
) -> Iterator[tuple[float, float, int]]:
    """Triples (low, high, last) that cover the secret n with a target rank above n, where +inf needs a prior bonus.

    A triple covers the n whose x = offset + 2 - (1-rate)(n+1) lies in [low, high]. `last` is the largest such n, or 0
    where the bonus does not fade and one unit interval of x is enough.
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

    L falls with x, so L(low) + high bounds L(x) + x on a pair. A coarse unit is covered point by point, without slack.
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
def sharp_loss(x: float, slope: float, rivals: float, *, competitor: float = 1.0) -> float:
    """L(x): an upper bound on the expected number of missed points at or below rank ceil(T)+1.

    A candidate of index d falls short of the target by (d + x - 1)_+ ranks. x is the fractional part of T in (0, 1],
    or larger when T(n) exceeds n. The point of index 0 has a competitor of weight `competitor` in (0, 1], all others
    have one of weight 1.

    Examples
    --------
    >>> round(sharp_loss(1.0, 0.72, 999.0), 2)
    7.89
    """
    return float(sharp_losses(np.array([x]), slope, rivals, np.array([competitor]))[0])


def sharp_losses(
    x: NDArray[np.float64],
    slope: float,
    rivals: float,
    competitor: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """`sharp_loss` for many x, float64 of shape (k,). `competitor` has the same shape; None means 1 for all.

    Examples
    --------
    >>> sharp_losses(np.array([0.5, 1.0]), 0.72, 999.0).round(2)
    array([8.37, 7.89])
    """
    lost = np.zeros(len(x)) if competitor is None else 1 - competitor
    if rivals == 0:
        return lost
    tolerance = _tolerance(slope)
    weights, step = _weights(x, slope, rivals)
    able = np.flatnonzero(weights[:, 0])
    for some in (able[k : k + _AT_ONCE] for k in range(0, len(able), _AT_ONCE)):
        programs = _programs(weights[some], step - lost[some], step)
        lost[some] += _maxima(programs, weights[some], rivals, tolerance)
    return lost


def sharp_loss_within(most: float, x: float, slope: float, rivals: float) -> bool:
    """Whether L(x) <= most, decided in as few steps as possible.

    Examples
    --------
    >>> [sharp_loss_within(most, 1.0, 0.72, 999.0) for most in (7.8, 7.9)]
    [False, True]
    """
    if rivals == 0:
        return most >= 0
    weights, step = _weights(np.array([x]), slope, rivals)
    if weights[0, 0] == 0:
        return most >= 0
    programs, spread = _programs(weights, np.array([float(step)]), step), _initial_spread(weights, rivals)
    tolerance = _tolerance(slope)
    while True:
        value, gap, push = _evaluate(programs, spread, rivals)
        if value[0] > most or value[0] + gap[0] <= most or gap[0] <= tolerance:
            return bool(value[0] + gap[0] <= most)
        spread = _next_spread(push, rivals)


def _weights(x: NDArray[np.float64], slope: float, rivals: float) -> tuple[NDArray[np.float64], int]:
    """The weights of all relevant indices, shape (k, depth), and the number of indices that share one weight."""
    # Small slopes: `step` neighbouring indices share one weight, the largest of them, which only raises the bound.
    step = max(1, int(0.06 / slope))
    depth = int((math.log1p(rivals) + 14) / (slope * step)) + 2
    return np.exp(-slope * np.maximum(step * np.arange(depth) + x[:, None] - 1, 0)), step


def _tolerance(slope: float) -> float:
    """A thousandth of a rank, or of L where slopes are small and L is large (there L is about 5/slope)."""
    return 1e-3 / min(slope, 1.0) if slope > 0.5 else 5e-3 / slope


def _maxima(
    programs: "_Programs", weights: NDArray[np.float64], rivals: float, tolerance: float
) -> NDArray[np.float64]:
    """Upper bounds on the maxima of some programs, each within the tolerance; shape (k,)."""
    found, left, spread = np.empty(len(weights)), np.arange(len(weights)), _initial_spread(weights, rivals)
    while True:
        value, gap, push = _evaluate(programs, spread, rivals)
        rough = gap > tolerance
        found[left[~rough]] = (value + gap)[~rough]
        if not rough.any():
            return found
        if not rough.all():
            left, spread, push = left[rough], spread[rough], push[rough]
            programs.keep(rough)
        spread = _next_spread(push, rivals)


def _initial_spread(weights: NDArray[np.float64], rivals: float) -> NDArray[np.float64]:
    """The initial spread of the mass."""
    roots = np.sqrt(weights)
    spread: NDArray[np.float64] = roots / roots.sum(axis=1, keepdims=True) * rivals
    return spread


def _evaluate(
    programs: "_Programs", spread: NDArray[np.float64], rivals: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The value at a spread, the duality gap above it, and what each index contributes to its growth."""
    value, gradient = programs(spread)
    push = spread * gradient
    return value, rivals * gradient.max(axis=1) - push.sum(axis=1), push


def _next_spread(push: NDArray[np.float64], rivals: float) -> NDArray[np.float64]:
    """The next spread: more mass where the gradient is larger."""
    better: NDArray[np.float64] = push * (rivals / push.sum(axis=1, keepdims=True))
    return better


def _programs(weights: NDArray[np.float64], first: NDArray[np.float64], step: int) -> "_Programs":
    """The concave programs with these weights, and `first` points of index 0 where other indices have `step`."""
    points = np.full(weights.shape, float(step))
    points[:, 0] = first
    return _Programs(weights, points)


class _Programs:
    """phi = W/(1+W), W the total weight of the candidates of index >= f; k programs over (k, depth) at once."""

    def __init__(self, weights: NDArray[np.float64], points: NDArray[np.float64]) -> None:
        self.weights, self.points = weights, points

    def keep(self, which: NDArray[np.bool_]) -> None:
        """Keep only some of the programs."""
        self.weights, self.points = self.weights[which], self.points[which]

    def __call__(self, spread: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        total = np.cumsum((spread * self.weights)[:, ::-1], axis=1)[:, ::-1]
        value = np.sum(self.points * total / (1 + total), axis=1)
        return value, self.weights * np.cumsum(self.points / (1 + total) ** 2, axis=1)
