"""Heights that rise as slowly as the weight that they leave to rivals allows: flat at first, then in equal steps.

For a given G the slowest weights are w_j = max(1, (w_1 + ... + w_(j-1))/G): each is the least that the constraint
admits, by induction. They stay at 1 for the first floor(G) + 1 candidates and then grow by the factor 1 + 1/G, after a
first step that is smaller. So the heights ln w_j are equal steps from a point between two candidates on, `flat` of them
from the beginning (docs/theory.md, section 5).
"""

import math
from fractions import Fraction
from functools import lru_cache

_LEAST = 1e-3


def total_rise(m: int, rivals: float) -> float:
    """By how much the last of m candidates has to lie above the first, in log-odds, for this G.

    Examples
    --------
    >>> round(total_rise(1000, 48.0), 1), total_rise(10, 9.0)
    (19.6, 0.0)
    """
    flat = math.floor(rivals) + 1
    if flat >= m:
        return 0.0
    return math.log(max(1.0, flat / rivals)) + (m - 1 - flat) * math.log1p(1 / rivals)


@lru_cache(maxsize=4096)
def rivals_for(m: int, rise: float) -> float:
    """The smallest G whose slowest weights rise by at most `rise` in all over m candidates.

    Examples
    --------
    >>> round(rivals_for(1000, 20.0)), rivals_for(1000, 0.0)
    (47, 999.0)
    """
    low, high = _LEAST, max(m - 1.0, _LEAST)
    if rise > 0:
        for _ in range(40):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if total_rise(m, middle) > rise else (low, middle)
    return m - 1.0 if rise <= 0 else high


def flat_for(m: int, rise: float) -> Fraction:
    """From which point on m candidates rise, counted from 1, in sixteenths; 0 if they do not.

    Examples
    --------
    >>> flat_for(1000, 0.0), flat_for(1000, 20.0), float(flat_for(13, 3.0))
    (Fraction(0, 1), Fraction(385, 8), 3.625)
    """
    rivals = rivals_for(m, rise)
    flat = math.floor(rivals) + 1
    if rise <= 0 or flat >= m:
        return Fraction(0)
    start = flat + 1 - math.log(max(1.0, flat / rivals)) / math.log1p(1 / rivals)
    return Fraction(min(round(16 * start), 16 * m - 1), 16)
