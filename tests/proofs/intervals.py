"""Rigorous arithmetic on arrays: non-negative numbers between two floats, and integrals over [0, 1] between two floats.

Sums, products and quotients of floats are rounded to the nearest by the processor, so one step outwards encloses them.
A sum of N non-negative terms, in any order, is off by at most N 2^-52 of itself. exp and ln are Taylor sums of our own,
whose errors are bounded here, not those of a library. Integrals are Gauss's rule on panels; on each, the integrand is
analytic in a disc around it, and its largest modulus there bounds the rule's error.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import factorial

import mpmath
import numpy as np

ORDER = 14
"""Nodes on each panel."""
REACH = 2.9
"""Radius of the disc around a panel, in halves of its length."""
FINEST = 60
"""The last panel ends 2^-60 before 1; the rest is bounded directly."""
WIDTH = 1e-14
"""Bound on the error of exp and ln by Taylor sums, relative to the result or to the sum of the terms."""
LN2 = float(np.log(2.0))  # within 1.2e-16 of ln 2: see test_logarithms_and_exponentials


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

    def minus(self, other):
        """x - y for a y that is at most x."""
        return Box(down(self.low - other.high), np.maximum(up(self.high - other.low), 0.0))

    def sum(self, axis):
        """The sum along an axis."""
        wide = self.low.shape[axis] * 2.0**-52
        return Box(down(self.low.sum(axis=axis) * (1 - wide)), up(self.high.sum(axis=axis) * (1 + wide)))

    def matmul(self, other):
        """The matrix product."""
        wide = (self.low.shape[-1] + 1) * 2.0**-52
        return Box(down(self.low @ other.low * (1 - wide)), up(self.high @ other.high * (1 + wide) + 1e-300))

    def sums_from(self):
        """Sums of the entries along axis 0 from each entry on."""
        wide = self.low.shape[0] * 2.0**-52
        low, high = (np.cumsum(x[::-1], axis=0)[::-1] for x in (self.low, self.high))
        return Box(down(low * (1 - wide)), up(high * (1 + wide)))

    def exp_minus(self):
        """exp(-x)."""
        return Box(down(_exp_minus(self.high, -1)), up(_exp_minus(self.low, 1)))

    def minus_log(self):
        """-ln x for x in (0, 1]."""
        return Box(down(_minus_log(np.minimum(self.high, 1.0), -1)), up(_minus_log(self.low, 1)))


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


def _minus_log(x, side):
    """-e ln 2 - ln m with x = m 2^e; ln m = 2 artanh((m-1)/(m+1)), whose remainder after 12 terms is 1e-18."""
    m, e = np.frexp(x)
    small = m < 0.7
    m, e = np.where(small, 2 * m, m), np.where(small, e - 1, e)
    s = (m - 1) / (m + 1)
    square = s * s
    total = np.full_like(s, 1 / 23)
    for k in range(10, -1, -1):
        total = total * square + 1 / (2 * k + 1)
    log = 2 * s * total
    return np.maximum(-e * LN2 - log + side * WIDTH * (np.abs(e) * LN2 + np.abs(log)), 0.0)


@lru_cache(maxsize=1)
def gauss():
    """Nodes and weights of Gauss's rule on [-1, 1], each between two floats: each node between a change of sign."""
    iv, mp = mpmath.iv, mpmath.mp
    with mp.workdps(50):
        iv.dps = 50
        coefficients = _legendre(ORDER)
        slope = [k * c for k, c in enumerate(coefficients)][1:]
        nodes, weights = [], []
        for start in np.polynomial.legendre.leggauss(ORDER)[0]:
            root = mp.findroot(lambda x: mpmath.legendre(ORDER, x), mp.mpf(float(start)))
            around = Fraction(str(mpmath.nstr(root, 40)))
            a, b = around - Fraction(1, 10**30), around + Fraction(1, 10**30)
            assert _at(coefficients, a) * _at(coefficients, b) < 0
            x = iv.mpf([mpmath.mpf(a.numerator) / a.denominator, mpmath.mpf(b.numerator) / b.denominator])
            x = iv.mpf([x.a - mp.mpf(10) ** -40, x.b + mp.mpf(10) ** -40])
            steep = sum((iv.mpf(c.numerator) / c.denominator) * x**k for k, c in enumerate(slope))
            nodes.append((float(x.a), float(x.b)))
            weights.append(2 / ((1 - x**2) * steep**2))
        low, high = np.array(nodes).T
        nodes = np.nextafter(low, -2), np.nextafter(high, 2)
        weight = Box(down(np.array([float(w.a) for w in weights])), up(np.array([float(w.b) for w in weights])))
        return nodes, weight


def _legendre(n):
    """Coefficients of Legendre's polynomial, exactly."""
    before, now = [Fraction(1)], [Fraction(0), Fraction(1)]
    for k in range(1, n):
        shifted = [Fraction(0), *now]
        padded = before + [Fraction(0)] * (len(shifted) - len(before))
        before, now = now, [((2 * k + 1) * a - k * b) / (k + 1) for a, b in zip(shifted, padded, strict=True)]
    return now


def _at(coefficients, x):
    """The value of a polynomial, exactly."""
    total = Fraction(0)
    for c in reversed(coefficients):
        total = total * x + c
    return total


@dataclass(frozen=True)
class Panels:
    """Nodes t, 1 - t and weights dt of all panels in one row each; and of each panel its disc and its rule's error.

    nearest and furthest are the real ends of the disc, wide and beyond 1 less these; error times the integrand's
    largest modulus there bounds what the rule is off. last is the length after the last panel.
    """

    t: Box
    rest: Box
    dt: Box
    nearest: np.ndarray
    wide: np.ndarray
    furthest: np.ndarray
    beyond: Box
    error: np.ndarray
    last: float

    def total_error(self, modulus):
        """The error of all panels, for a bound on the modulus on each."""
        return up(np.sum(modulus * self.error, axis=-1) * (1 + 1e-12))


@lru_cache(maxsize=32)
def panels(halvings):
    """[0, 2^-halvings], its doubles up to 1/2, and from there halves of what remains."""
    (x_low, x_high), weight = gauss()
    z = Box(down((3 + x_low) / 2), up((3 + x_high) / 2))  # in [1, 2]
    first = Box(down((1 + x_low) / 2), up((1 + x_high) / 2))
    mirrored = Box(down((3 - x_high) / 2), up((3 - x_low) / 2))
    sizes = [2.0**-halvings, *(2.0**-k for k in range(halvings, 1, -1)), *(2.0**-k for k in range(2, FINEST + 1))]
    t, rest, dt, nearest, wide, furthest, beyond, error = [], [], [], [], [], [], [], []
    rho = (REACH + np.sqrt(REACH**2 - 1)) * (1 - 1e-12)
    for k, size in enumerate(sizes):
        middle = (0.5 if k == 0 else 1.5) * size  # from 0, or from 1
        if k <= halvings - 1:
            inside = (first if k == 0 else z) * size
            t.append(inside)
            rest.append(inside.one_minus())
            near, far = middle - REACH * size / 2, (middle + REACH * size / 2) * (1 + 1e-12)
            nearest.append(near - 1e-12 * abs(near))
            wide.append(1 - nearest[-1])
            furthest.append(far)
            beyond.append(1 - far)
        else:
            left = mirrored * size
            rest.append(left)
            t.append(left.one_minus())
            wide.append((middle + REACH * size / 2) * (1 + 1e-12))
            nearest.append(1 - wide[-1])
            beyond.append((middle - REACH * size / 2) * (1 - 1e-12))
            furthest.append(1 - beyond[-1])
        dt.append(weight * (size / 2))
        # The rule is exact up to degree 2 ORDER - 1, its weights are positive, and by Bernstein a polynomial of that
        # degree is within 2 M rho^-(2 ORDER - 1)/(rho - 1) of a function of modulus M in the ellipse of rho, which the
        # disc holds.
        error.append(8 / (rho - 1) * rho ** (1 - 2 * ORDER) * size / 2 * (1 + 1e-9))
    join = [
        Box(np.concatenate([b.low for b in part]), np.concatenate([b.high for b in part])) for part in (t, rest, dt)
    ]
    discs = (np.array(nearest), up(np.array(wide)), np.array(furthest))
    return Panels(*join, *discs, Box.of(down(np.array(beyond))), np.array(error), 2.0**-FINEST)
