"""Privacy losses as decimal numbers, so that printed numbers add up exactly."""

import math
from fractions import Fraction
from functools import lru_cache

from confide.support import as_number, require


@lru_cache
def decimal(value: float) -> Fraction:
    """The exact value of the shortest decimal form of a float, so that ten times 0.1 is 1."""
    return Fraction(repr(float(value)))


def decimal_form(value: float) -> str:
    """The shortest decimal form of a float; whole numbers without a point."""
    return repr(float(value)).removesuffix(".0")


def decimal_above(exact: Fraction) -> float:
    """The smallest float whose decimal form is at least `exact`, so that a printed total is never too small."""
    return 0.0 - decimal_below(-exact)


def decimal_below(exact: Fraction) -> float:
    """The largest float whose decimal form is at most `exact`, so that a printed rest is never too large."""
    nearest = float(exact)
    return nearest if decimal(nearest) <= exact else math.nextafter(nearest, -math.inf)


def finite_loss(argument: str, value: object, noun: str = "a loss") -> float:
    """A loss between 0 and 1e12."""
    number = as_number(argument, value)
    require(argument, 0 <= number <= 1e12, f"must be {noun} between 0 and 1e12", got=repr(value))  # NaN is not
    return number
