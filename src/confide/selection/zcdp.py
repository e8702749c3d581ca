"""The exact zCDP of a mechanism with bounded range, and the largest range that a zCDP loss allows.

A mechanism has range eta if, for neighbouring data, the log-ratio of its two laws lies in an interval of length eta.
The exponential mechanism has the range distance over the scale (docs/theory.md, Lemma P2). It is then rho(eta)-zCDP,

    rho(eta) = k - 1 - ln(k)   with   k = eta / (1 - e^-eta),

and no smaller number is valid (docs/theory.md, Lemma P3). It is slightly less than eta^2/8. Lemma P3 writes mu for k.
"""

import math
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

from confide.support import MOST_LOSS, float_above

# For smaller ranges no float lies between the loss and eta^2/8.
_LEAST = Fraction(1, 10**9)

# Digits of the computation, and a bound on its error for ranges from 1e-9 to 1e9, with ten digits to spare.
_DIGITS = 90
_ERROR = Fraction(1, 10**70)


def zcdp_of_range(*ranges: float | Fraction) -> float:
    """The zCDP loss of several mechanisms together, from the range of each one's log-probability ratios, rounded up.

    Examples
    --------
    >>> round(zcdp_of_range(1.0), 5), round(zcdp_of_range(4.0), 3)
    (0.1233, 1.67)
    """
    if any(map(math.isinf, ranges)):
        return math.inf
    return float_above(sum((_above(Fraction(eta)) for eta in ranges), Fraction(0)))


@lru_cache(maxsize=256)
def range_of_zcdp(rho: float) -> float:
    """The largest range, a float of at most 1e6, whose zCDP loss is at most rho.

    Examples
    --------
    >>> round(range_of_zcdp(0.125), 3), round(range_of_zcdp(0.5), 3), round(range_of_zcdp(2.0), 2)
    (1.007, 2.056, 4.45)
    """
    low = math.sqrt(8 * rho)
    high = MOST_LOSS
    while zcdp_of_range(low) > rho:  # the root was rounded up
        low = math.nextafter(low, 0.0)
    if low >= high or zcdp_of_range(high) <= rho:
        return high

    # Halve the interval until its ends are neighbouring floats.
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return low
        if zcdp_of_range(middle) <= rho:
            low = middle
        else:
            high = middle


def _above(eta: Fraction) -> Fraction:
    """The zCDP loss of one range, never below it; at most eta^2/8."""
    if eta < _LEAST:
        return eta**2 / 8
    exact = Context(prec=_DIGITS)
    length = exact.divide(Decimal(eta.numerator), Decimal(eta.denominator))
    k = exact.divide(length, exact.subtract(Decimal(1), exact.exp(exact.minus(length))))
    loss = exact.subtract(exact.subtract(k, Decimal(1)), exact.ln(k))
    return min(Fraction(loss) + _ERROR, eta**2 / 8)
