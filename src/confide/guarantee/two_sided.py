"""The two-sided marginal certificate, with competitors on both sides of the target (docs/theory-one-number.md)."""

import math
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.guarantee.random_rank import SlopeNoise

_Array: TypeAlias = NDArray[np.float64]

# The sharp certificate counts all points right of rank c + 1, c = ceil(T), as missed, and gives the candidates left of
# a missed point one competitor. But candidates near those points cover them and compete with the left ones, and left
# candidates that reach a point compete for it as well. With x = T - c + 1 and N = n + 1,
#
#     coverage >= 1 - [ N - c - 1 + L2(x) ] / N,     L2 = max over (K, s, rho) of  1 - credit + sum_(f>=1) phi_f,
#
#     credit = [ v (s+1) (1+R) + X ] / (W_0 + a + 1 + R),
#     phi_f  = W_f / (W_f + 1 + R + a e^(-lx) + y (W_0 - W_f)).
#
# K is the mass of the left candidates by index d, of at most G in all, q_d their weights, W_f = sum_(d>=f) K_d q_d, and
# y = exp(-l). a is the weight of a twin, a candidate exactly at rank c, if there is one. s is the number of points
# beyond rank c + 1 in the bin of rank c + 1, and v the weight of that bin's candidate g when it has to cover them.
# R = w exp(-rs) rho is the weight of the candidates right of g, with w = exp(-r (c - T)). X = w exp(-rs) [ kappa +
# (1-v)(s+1) rho ] is that weight times the number of points that it covers beyond those of g. The docs write kappa_0
# for kappa and eta for y.
#
# The adversary's choices right of rank c are a table of rows: s, a corner of the polygon below all (rho, kappa), and
# twin or not. For a given W_0 the program is separable in the W_f, with one linear constraint, sum_f W_f (1/q_f -
# 1/q_(f-1)) <= G - W_0/q_0. Every multiplier of it gives an upper bound in closed form, and a line above the program as
# a function of W_0. For W_0 between two values a mixture of the lines at both is a bound. Ranges of W_0 are divided
# where the bound is too large. It is valid whatever multipliers are used and whenever the search stops.

# The accuracy of the bound, in ranks and relative to the loss; the larger one counts.
_RANK_TOLERANCE = 0.002
_RELATIVE_TOLERANCE = 0.0005

# Rounding lowers no bound by more than this, relative to the larger of 1 and the loss.
_SPARE = 1e-7

# Ends of the first ranges of W_0, relative to its largest value.
_FIRST_ENDS = np.append(0.0, np.geomspace(0.01, 1.0, 9))

# How often ranges of W_0 are bounded at most; in between, some are halved.
_ROUNDS = 12

# The number of multipliers that are tried for each line: steps of Newton's method.
_NEWTON_STEPS = 4

# Divisors are at least this: costs of points,
_LEAST_COST = 1e-300

# and derivatives in Newton's method.
_LEAST_SPEED = 1e-100

# Small slopes: neighbouring s are counted as one if their weights differ by at most this log-odds.
_GROUPED = 0.05

# Slopes of the polygon's edges: the smallest one above 0, and their growth factor.
_FIRST_EDGE = 0.4
_EDGE_GROWTH = 2.7

# Weights fall by this log-odds per index at most, which only raises the bound: larger powers overflow.
_STEEP = 40.0

# Largest number of points right of g's bin that earn credit. More would only add to it.
_LONGEST = 400


# The rows of an array of lines, of which the others are the slope and the multiplier, by which tests check the lines.
_WEIGHT = 0
_VALUE = 1


class _Rows(NamedTuple):
    """What the program needs of the adversary's choices right of rank c, one entry for each choice."""

    in_bin: _Array
    """v (s+1) (1+R)"""
    race: _Array
    """a + 1 + R"""
    covered: _Array
    """X"""
    race_covered: _Array
    """a + 1 + R in the term of X"""
    rate: _Array
    """1 + R + a e^(-lx)"""
    nearest: _Array
    """1/q_0"""


def two_sided_coverage(n: int, target: Fraction, noise: SlopeNoise) -> Fraction:
    """Guaranteed marginal coverage for a public n and a target rank T, 0 < T <= n (Theorem T1a).

    Examples
    --------
    >>> round(float(two_sided_coverage(1000, Fraction(906), SlopeNoise(0.7, 0.3, 999.0, step=1.0))), 3)
    0.9
    """
    c = math.ceil(target)
    lost = two_sided_loss(float(target - c + 1), noise, n - c)
    return max(Fraction(0), (c + 1 - Fraction(lost)) / (n + 1))


def two_sided_holds(n: int, target: Fraction, level: Fraction, noise: SlopeNoise) -> bool:
    """Whether coverage >= level is certified for a public n and a target rank. Plans and readers of releases use this.

    Examples
    --------
    >>> two_sided_holds(1000, Fraction(3613, 4), Fraction(9, 10), SlopeNoise(0.45, 0.55, 28.0, step=0.9))
    True
    """
    return 0 < target <= n and two_sided_coverage(n, target, noise) >= level


def two_sided_target_rank(n: int, level: Fraction, noise: SlopeNoise, unit: int) -> Fraction | None:
    """The smallest target rank, in steps of 1/unit, that `two_sided_holds` accepts at a public n.

    None if n is too small.
    """
    # The target rank in steps of 1/unit: `below` fails, and `above` holds or is past n.
    below, above = 0, n * unit + 1
    step = math.ceil(level * (n + 1) * unit)
    stride = Fraction(1, 4)
    while above - below > 1:
        if not below < step < above:
            step = n * unit if above > n * unit else (below + above) // 2
        # The number of ranks that is lacking hardly depends on the target's fractional part.
        lacking = (level - two_sided_coverage(n, Fraction(step, unit), noise)) * (n + 1) * unit
        if lacking > 0:
            below, step = step, step + math.ceil(max(stride, lacking))
        else:
            above, step = step, step - math.floor(max(stride, -lacking, Fraction(1)))
        stride *= 2
    return Fraction(above, unit) if above <= n * unit else None


@lru_cache(maxsize=4096)
def two_sided_loss(x: float, noise: SlopeNoise, beyond: int, *, at_least: bool = False) -> float:
    """L2(x; Y): an upper bound on the expected number of missed points less the number Y of points beyond rank c + 1.

    The bound is for Y = `beyond`, or with `at_least` for every Y >= `beyond` (Theorem T1b).
    """
    # The table of rows, each with the first ranges of W_0.
    rows = _right_side(x, noise, beyond, at_least)
    ends = np.outer(noise.mass / _Rows(*rows).nearest, _FIRST_ENDS)
    grid = _lines(x, noise, rows.repeat(len(_FIRST_ENDS), axis=1), ends.ravel()).reshape(-1, *ends.shape)
    low = grid[..., :-1].reshape(len(grid), -1)
    high = grid[..., 1:].reshape(len(grid), -1)
    rows = rows.repeat(len(_FIRST_ENDS) - 1, axis=1)
    reached = worst = -math.expm1(-noise.right * (1 - x))  # 1 - v

    # Divide the ranges whose bound exceeds the largest value that was reached.
    for round_number in range(_ROUNDS):
        reached = max(reached, float(low[_VALUE].max()), float(high[_VALUE].max()))
        bounds = _mixtures(low, high)
        tolerance = max(_RANK_TOLERANCE, _RELATIVE_TOLERANCE * reached)
        divided = bounds > (reached + tolerance if round_number < _ROUNDS - 1 else math.inf)
        worst = float(bounds[~divided].max(initial=worst))
        if not divided.any():
            break
        rows = rows[:, divided]
        low = low[:, divided]
        high = high[:, divided]
        start = low[_WEIGHT]
        end = high[_WEIGHT]
        middle = _lines(x, noise, rows, np.maximum(np.sqrt(start * end), end / 3))
        rows = np.hstack([rows, rows])
        low = np.hstack([low, middle])
        high = np.hstack([middle, high])
    return worst + _SPARE * max(1.0, worst)


def _mixtures(low: _Array, high: _Array) -> _Array:
    """The largest mixture of the lines at both ends of a range, each weighted by the distance to the other end."""
    start, first, rise, _ = low
    end, last, fall, _ = high
    bend = (fall - rise) * (end - start)
    climb = last - first - bend
    inside = (bend < 0) & (climb > 0) & (climb < -2 * bend)
    top = first - np.divide(climb**2, 4 * bend, out=np.zeros_like(climb), where=inside)
    return np.asarray(np.maximum(np.maximum(first, last), top))


def _lines(x: float, noise: SlopeNoise, rows: _Array, weight: _Array) -> _Array:
    """For each row and W_0, a line above the program that has this W_0 in every phi_f: W_0, value, slope, multiplier.

    With A = 1 - y, B = 1 + R + a e^(-lx) + y W_0 and p_f the multiplier times 1/q_f - 1/q_(f-1), W_f <= W_0 adds
    W_f / (A W_f + B) - p_f W_f. This is largest at W_f = W_0 for small f, at 0 for large f, and in between at
    (sqrt(B / p_f) - B) / A, where it is (1 - sqrt(B p_f))^2 / A. From f = 2 on, p_f is a geometric sequence.
    """
    row = _Rows(*rows)
    slope = min(noise.left, _STEEP)
    share = -math.expm1(-noise.left)  # A
    near = math.exp(slope * x)  # 1/q_1
    nearer = near - row.nearest
    B = row.rate + (1 - share) * weight
    D = share * weight + B
    root = np.sqrt(B)

    # The mass that is left for f >= 1, and a first multiplier 1/u^2, which spends all of it with integrals over f.
    free = np.maximum(noise.mass - weight * row.nearest, 0.0)
    spent = np.maximum(weight, 1e-3 * free) * (1 + 4 * math.sinh(slope / 8) ** 2) / (2 * math.sinh(slope / 2) * D)
    u = np.sqrt((free + weight * near) / spent)
    best = np.full_like(B, np.inf)
    rises = np.zeros_like(B)
    prices = np.zeros_like(B)

    # Newton's method for the multiplier that spends all of it; the best bound counts.
    for _ in range(_NEWTON_STEPS):
        price = u**-2
        second = price * near * share
        cost = np.maximum(price * nearer, _LEAST_COST)
        ideal = (root / np.sqrt(cost) - B) / share
        W_1 = np.clip(ideal, 0.0, weight)
        capped = ideal >= weight
        full = np.maximum(np.floor(np.log(B / (D * D * second)) / slope), 0.0)  # number of f >= 2 with W_f = W_0
        some = np.maximum(np.floor(np.log(1 / (B * second)) / slope), full)  # and with W_f > 0
        first = near * np.exp(slope * full)  # 1/q_f behind them
        last = near * np.exp(slope * some)
        roots = math.sqrt(share) * (np.sqrt(last) - np.sqrt(first)) / -math.expm1(-slope / 2)
        value = price * (free - weight * (first - near)) + W_1 / (share * W_1 + B) - cost * W_1 + full * weight / D
        value += (some - full - 2 * root * roots / u + B * price * (last - first)) / share
        rise = (full + capped) * B / (D * D) - price * (first - np.where(capped, 0.0, nearer))
        better = value < best
        best, rises, prices = np.where(better, [value, rise, price], [best, rises, prices])
        used = W_1 * nearer + weight * (first - near) + (root * u * roots - B * (last - first)) / share
        speed = root * (roots + np.where((ideal > 0) & ~capped, np.sqrt(nearer), 0.0)) / share
        u = np.clip(u + (free - used) / np.maximum(speed, _LEAST_SPEED), u / 8, 8 * u)

    # The credit, which does not depend on the multiplier.
    race = row.race + weight
    race_covered = row.race_covered + weight
    value = 1 - row.in_bin / race - row.covered / race_covered + best
    rise = row.in_bin / race**2 + row.covered / race_covered**2 + rises
    return np.stack([weight, value, rise, prices])


def _right_side(x: float, noise: SlopeNoise, beyond: int, at_least: bool) -> _Array:
    """The table of the adversary's choices: `_Rows` as one array.

    The last s has also a row without candidates right of g, for g = +inf and all larger s.
    """
    slope = noise.right
    near = math.exp(-slope * (1 - x))
    stride = max(1, int(_GROUPED / slope))
    end = min(beyond, int(12 / slope) + 8)

    # A group has the s + 1 of its first s, and the weights and chains of its last one.
    s = np.arange(0, end + 1, stride)
    last = np.minimum(s + stride - 1, end)

    # The corners of the polygon below all (rho, kappa), for each s.
    chains, multipliers = _chains(slope, not at_least)
    lines = chains[:, np.minimum(beyond - last, chains.shape[1] - 1)].T
    rho = np.diff(lines) / np.diff(multipliers)
    rho = np.column_stack([rho, np.where((beyond > last) | (not at_least), 1.0, 0.0)])
    kappa = np.maximum(lines - multipliers * rho, 0.0)
    larger = np.column_stack([rho[:, 0], rho[:, :-1]])
    fall = near * np.exp(-slope * last)[:, None]
    weight = np.append((fall * rho).ravel(), 0.0)
    later = np.append((fall * larger).ravel(), 0.0)
    covered = np.append((fall * kappa).ravel(), 0.0)
    count = np.append(np.repeat(s + 1.0, rho.shape[1]), end + 1.0)

    # With a twin, and without one.
    tables = []
    for twin in (True, False) if x < 1 and noise.step > 0 else (True,):
        v = near if twin else 1.0
        a = noise.step if twin and x < 1 else 0.0
        choices = _Rows(
            in_bin=v * count * (1 + weight),
            race=a + 1 + weight,
            covered=covered + (1 - v) * count * weight,
            race_covered=a + 1 + later,
            rate=1 + weight + a * math.exp(-noise.left * x),
            nearest=np.full_like(weight, 1.0 if twin else math.exp(min(noise.left, _STEEP) * x)),
        )
        tables.append(choices)
    return np.concatenate(tables, axis=1)


@lru_cache(maxsize=64)
def _chains(slope: float, last: bool) -> tuple[_Array, _Array]:
    """Smallest kappa + multiplier rho over all ways to put 0, 1, .. or more points into bins right of g.

    With `last`, the last candidate counts as well, as the last bin or behind it. Shape (multipliers, points); the
    multipliers are also returned.
    """
    number = 4 + max(0, math.ceil(math.log(0.5 / slope, _EDGE_GROWTH)))
    multipliers = np.append(0.0, _FIRST_EDGE * _EDGE_GROWTH ** np.arange(number))
    top = min(_LONGEST, max(2, int(14 / slope)))
    finite = np.zeros((len(multipliers), top + 1))
    counted = finite.copy()
    # A bin of k points that begins after t others adds exp(-slope t) to rho and exp(-slope t) (t + exp(-slope) k) to
    # kappa.
    for n in range(top + 1):
        t = np.arange(n + 1)
        bins = np.exp(-slope * t) * (t + multipliers[:, None] + math.exp(-slope) * (n - t))
        finite[:, n] = np.min(finite[:, :n] + bins[:, :n], axis=1) if n else 0.0
        counted[:, n] = np.min(finite[:, : n + 1] + bins, axis=1)
    if last:
        finite[:, :top] = counted[:, :top]  # the last number stands for all larger ones
    return np.minimum.accumulate(finite[:, ::-1], axis=1)[:, ::-1], multipliers
