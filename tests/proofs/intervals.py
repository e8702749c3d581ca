"""Rigorous arithmetic on arrays: non-negative numbers between two floats.

Sums, products and quotients of floats are rounded to the nearest by the processor, so one step outwards encloses them.
A sum of N non-negative terms, in any order, is off by at most N 2^-52 of itself. exp is a Taylor sum of our own,
whose error is bounded here, not those of a library.
"""

from dataclasses import dataclass
from math import factorial

import numpy as np

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
