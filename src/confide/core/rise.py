"""Prior weights that rise as slowly as the competitor ratio G allows: constant at first, then in equal steps.

For a given G the slowest weights are w_j = max(1, (w_1 + ... + w_(j-1))/G): by induction, each is the least that the
constraint admits. They stay at 1 for the first floor(G) + 1 candidates. After a smaller first step they grow by the
factor 1 + 1/G. So the log weights ln w_j are equal steps from a point between two candidates on, which is `flat`
candidates from the beginning (docs/theory.md, section 5).
"""

import math
from fractions import Fraction
from functools import lru_cache

_LEAST = 1e-3


def total_rise(m: int, rivals: float) -> float:
    """The log-odds by which the last of m candidates must exceed the first, for this G."""
    flat = math.floor(rivals) + 1
    if flat >= m:
        return 0.0
    return math.log(max(1.0, flat / rivals)) + (m - 1 - flat) * math.log1p(1 / rivals)


@lru_cache(maxsize=4096)
def competitor_ratio_for(m: int, rise: float) -> float:
    """The smallest G whose slowest weights rise by at most `rise` in total over m candidates."""
    low, high = _LEAST, max(m - 1.0, _LEAST)
    if rise > 0:
        for _ in range(40):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if total_rise(m, middle) > rise else (low, middle)
    return m - 1.0 if rise <= 0 else high


def flat_for(m: int, rise: float) -> Fraction:
    """The point from which on the weights of m candidates rise, counted from 1, in sixteenths; 0 if they do not."""
    rivals = competitor_ratio_for(m, rise)
    flat = math.floor(rivals) + 1
    if rise <= 0 or flat >= m:
        return Fraction(0)
    start = flat + 1 - math.log(max(1.0, flat / rivals)) / math.log1p(1 / rivals)
    return Fraction(min(round(16 * start), 16 * m - 1), 16)


def gap_crossed(rise: float, rivals: float, shift: float, slope_right: float, share: float = 1.0) -> float:
    """The number of ranks beyond the non-private one within which an empty candidate range is likely to be crossed.

    The range contains the `share` of the list, and the target lies `shift` above the non-private rank (1-alpha)(n+1).
    It has exp(share * rise) G times the weight of the candidate before it, against exp(-slope) for every rank before
    it.
    """
    return shift + (share * rise + math.log(max(rivals, 1.0))) / slope_right
