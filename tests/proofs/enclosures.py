"""Upper bounds, proved by interval arithmetic, on the maxima that the coverage certificates use.

A concave program is at most its tangent plane at any spread, maximised over all spreads: weak duality, the step that is
proved in words (docs/theory.md, section 4; docs/theory-one-number.md, section 2). So the library's search only proposes
spreads and multipliers; what it proposes is evaluated here anew, from the definitions, with intervals for every number.

Sums, products and quotients of floats are rounded to the nearest by the processor, so one step outwards encloses them.
A sum of N non-negative terms, in any order, is off by at most N 2^-52 of itself. exp is a Taylor sum of our own,
whose error is bounded here, not those of a library.
"""

from contextlib import contextmanager
from dataclasses import dataclass
from math import factorial

import numpy as np
from scipy import optimize

from confide.guarantee import certificate, two_sided

WIDTH = 1e-14
"""Bound on the error of exp by a Taylor sum, relative to the result or to the sum of the terms."""
LN2 = float(np.log(2.0))  # within 1.2e-16 of ln 2: see test_exponentials


def down(x):
    """One step down, but not below 0."""
    return np.maximum(np.nextafter(x, -np.inf), 0.0)


def up(x):
    """One step up."""
    return np.nextafter(x, np.inf)


@dataclass(frozen=True)
class Box:
    """Non-negative numbers, each between two floats; arrays that broadcast."""

    low: np.ndarray
    high: np.ndarray

    @staticmethod
    def of(x):
        """Floats without widening."""
        x = np.asarray(x, dtype=float)
        assert (x >= 0).all()
        return Box(x, x)

    def __add__(self, other):
        other = other if isinstance(other, Box) else Box.of(other)
        return Box(down(self.low + other.low), up(self.high + other.high))

    def __mul__(self, other):
        other = other if isinstance(other, Box) else Box.of(other)
        return Box(down(self.low * other.low), up(self.high * other.high))

    def __truediv__(self, other):
        other = other if isinstance(other, Box) else Box.of(other)
        return Box(down(self.low / other.high), up(self.high / other.low))

    __radd__, __rmul__ = __add__, __mul__

    def __getitem__(self, key):
        return Box(self.low[key], self.high[key])

    def one_minus(self):
        """1 - x, for x up to 1."""
        return Box(down(1 - self.high), up(1 - self.low))

    def sum(self, axis):
        """The sum along an axis."""
        wide = self.low.shape[axis] * 2.0**-52
        return Box(down(self.low.sum(axis=axis) * (1 - wide)), up(self.high.sum(axis=axis) * (1 + wide)))

    def sums_from(self):
        """Sums of the entries along axis 0 from each entry on."""
        wide = self.low.shape[0] * 2.0**-52
        low, high = (np.cumsum(x[::-1], axis=0)[::-1] for x in (self.low, self.high))
        return Box(down(low * (1 - wide)), up(high * (1 + wide)))

    def exp_minus(self):
        """exp(-x)."""
        return Box(down(_exp_minus(self.high, -1)), up(_exp_minus(self.low, 1)))


def _exp_minus(x, side):
    """2^-k exp(k ln 2 - x). Horner's sum of 15 terms at |s| < .36 is off by 5e-15, the omitted terms are 2e-19."""
    x = np.minimum(x, 700.0)  # for larger x the lower bound is 0, and exp(-700) = 1e-304 the upper one
    k = np.rint(x / LN2)
    s = k * LN2 - x
    total = np.full_like(s, 1 / factorial(14))
    for i in range(13, -1, -1):
        total = total * s + 1 / factorial(i)
    # The argument is off by k times the error of LN2 and by two roundings of x.
    wide = WIDTH + 4e-16 * (k + 1) + 3e-16 * x
    value = np.ldexp(total, -k.astype(int)) * (1 + side * wide)
    return value if side > 0 else np.where(x >= 700.0, 0.0, value)


def upper(*terms):
    """The upper end of a sum of boxes and numbers of any sign; a subtracted term is (-1, box)."""
    total = 0.0
    for term in terms:
        high = -term[1].low if isinstance(term, tuple) else term.high if isinstance(term, Box) else np.asarray(term)
        total = up(total + high)
    return total


def decayed(slope, distances, behind=0.0):
    """exp(-slope d - behind)."""
    return (Box.of(slope) * Box.of(distances) + Box.of(behind)).exp_minus()


def behind_the_last(last, further, decay):
    """The largest of exp(-decay u) (last + u further) over u >= 0, `last` and `further` being upper ends."""
    at = np.where(further > decay * last, further / decay * np.exp(decay * np.maximum(last, -1e3) / further - 1), last)
    return np.maximum(at * (1 + 1e-9), last)  # floats are accurate to more than nine digits


@dataclass(frozen=True)
class Sharp:
    """The program of the sharp certificate, Theorem C2, at one x."""

    x: float
    slope: float
    rivals: float
    competitor: float = 1.0

    def proposed(self, q, points):
        """The best spread, from the multiplier 1/r^2 of Lemma C6, with blocks of indices in place of a formula."""
        first = np.argmax(np.cumsum(points) * q)
        blocks = np.append(np.cumsum(points)[first], points[first + 1 :]), np.diff(1 / q[first:], prepend=0.0)
        ratio, cost = np.sqrt(blocks[0] / blocks[1]), blocks[1]
        r = optimize.brentq(lambda r: cost @ np.maximum(ratio * r - 1, 0) - self.rivals, 0, 1e6, xtol=1e-14)
        ahead = np.maximum(ratio * r - 1, 0)
        spread = np.zeros(len(q))
        spread[first:] = (ahead - np.append(ahead[1:], 0.0)) / q[first:]
        return np.maximum(spread, 0.0)

    def bound(self):
        """An upper bound on L(x)."""
        step = max(1, int(certificate._GROUPED / self.slope))
        depth = int((np.log1p(self.rivals) + 3) / (self.slope * step)) + 5
        distance = np.maximum(step * np.arange(depth) + self.x - 1, 0.0)
        q = decayed(self.slope, distance)
        points = np.full(depth, float(step))
        points[0] -= 1 - self.competitor
        K = Box.of(self.proposed(np.exp(-self.slope * distance), points))
        value, gradient, further = self._shares(K, q, points)
        used = (K * gradient).sum(0)
        last = behind_the_last(gradient.high[-1], further * step, self.slope * step)
        most = up(self.rivals * max(gradient.high.max(), last))
        return float(upper(value, most, (-1, used), up(1 - self.competitor)))

    def _shares(self, K, q, points):
        ahead = (K * q).sums_from()
        whole = ahead + 1.0
        value = (Box.of(points) * ahead / whole).sum(0)
        each = (Box.of(points) / (whole * whole))[::-1].sums_from()[::-1]
        return value, q * each, q.high[-1]


class TwoSided:
    """A line above the program of the two-sided certificate, Theorem T1, for one row of the right side and one W_0.

    The row, which describes the right side, is taken as it is. Every W_f gets a tangent of phi_f at a proposed place:
    phi_f - p_f W_f <= A w^2 / D^2 + (B / D^2 - p_f) W_f with D = A w + B, and 0 <= W_f <= W_0.
    """

    def __init__(self, x, noise, row, weight, multiplier):
        self.in_bin, self.race, self.extra, self.later, rate, nearest = row
        self.weight, self.multiplier, self.total = weight, multiplier, noise.mass
        y = decayed(noise.left, 1.0)
        self.A, B = y.one_minus(), Box.of(rate) + y * weight
        depth = int(np.log(1 / (multiplier * -np.expm1(-noise.left) * rate) + 1) / noise.left) + 5
        inverse = Box.of(1.0) / decayed(noise.left, x + np.arange(depth))  # 1/q_f for f >= 1
        self.nearest = Box.of(1.0) if nearest == 1 else inverse[0]
        first = inverse[0] * decayed(noise.left, x).one_minus() if nearest == 1 else Box.of(0.0)
        later = inverse[1:] * self.A
        price = Box.of(multiplier) * Box(np.append(first.low, later.low), np.append(first.high, later.high))
        assert price.low[-1] * B.low > 1  # no W_f behind the last one is positive
        ideal = (np.sqrt(B.high / np.maximum(price.high, 1e-300)) - B.high) / self.A.high
        place = Box.of(np.clip(ideal, 0.0, weight))
        D = self.A * place + B
        self.start = (self.A * place * place / (D * D)).sum(0)
        self.rise = Box.of(np.maximum(up((B / (D * D)).high - price.low), 0.0)).sum(0)

    def at(self, weight):
        """An upper bound on the line at another W_0, of at most twice its own: both are lines."""
        first, last = (Box.of(self.weight) + z for z in (self.race, self.later))
        credit = Box.of(self.in_bin) * self._tangent(self.race, weight) / (first * first)
        credit += Box.of(self.extra) * self._tangent(self.later, weight) / (last * last)
        spent = Box.of(self.multiplier) * weight * self.nearest
        allowed = Box.of(self.multiplier) * self.total
        return float(upper(1.0, allowed, (-1, spent), self.start, self.rise * weight, (-1, credit)))

    def _tangent(self, race, weight):
        """The tangent of 1 / (W + race) at the line's W_0 is this divided by (W_0 + race)^2."""
        numbers = 2 * self.weight - weight, race
        return Box(down(numbers[0] * (1 - 2**-51) + race), up(numbers[0] * (1 + 2**-51) + race))


@contextmanager
def watched(monkeypatch):
    """Record x, noise, row and line of all lines that the two-sided search evaluates in the block."""
    found, lines = [], two_sided._lines
    two_sided.two_sided_loss.cache_clear()

    def noted(x, noise, rows, weight):
        made = lines(x, noise, rows, weight)
        found.extend((x, noise, row, line) for row, line in zip(rows.T, made.T, strict=True))
        return made

    with monkeypatch.context() as patched:
        patched.setattr(two_sided, "_lines", noted)
        yield found


def errors(found, rng, most):
    """By how much true lines may exceed the library's, at both ends of [W_0/2, 2 W_0]; some lines drawn at random."""
    chosen = found if len(found) <= most else [found[k] for k in rng.choice(len(found), most, replace=False)]
    exceed = []
    for x, noise, row, (weight, value, slope, multiplier) in chosen:
        true = TwoSided(x, noise, row, weight, multiplier)
        exceed += [true.at(part * weight) - (value + slope * (part - 1) * weight) for part in (0.5, 1.0, 2.0)]
    return np.array(exceed)
