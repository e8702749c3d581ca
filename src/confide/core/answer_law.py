"""The law of an answer of slopes for given scores, and the prior weights that rise along the candidates.

It is used to compare designs before records are read: it affects efficiency, never validity.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from confide.mechanisms import Slopes
from confide.selection import selection_law

# A candidate whose weight is at most this share of the largest one is left out of a law of the answer.
_NO_WEIGHT = 1e-12


class Utility(NamedTuple):
    """The utility of m candidates: the log prior weight, less the larger penalty for the distance from the target rank.

    Penalties are slopes per rank. `heights` are the log prior weights, shape (m,); the last one may include a prior
    bonus of +inf.
    """

    target: float
    slope_left: float
    slope_right: float
    heights: NDArray[np.float64]


def answer_among(mechanism: Slopes, below: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """The law of the chosen candidate for n scores, of which the shares `below` are at most each; shape (m,)."""
    heights = mechanism.log_weights(len(below), n)
    utility = Utility(float(mechanism.target(n)), mechanism.slope_left, mechanism.slope_right, heights)
    law = np.zeros(len(below))
    _, column, odds = likely_answers(n * below[None, :], utility)
    law[column] = selection_law(odds)
    return law


def likely_answers(
    reached: NDArray[np.float64], utility: Utility
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """Rows, candidates and weights of all answers that are not negligible, for `reached` of shape (k, m), row by row.

    Weights are relative to the largest one of their row.
    """
    # Candidates that may have weight. One, at worst the last, has penalty 0; those of a penalty above `most` have no
    # weight next to it.
    target, slope_left, slope_right, heights = utility
    most = float(heights[-1] - heights[0]) - math.log(_NO_WEIGHT) + 1
    begins = np.hstack([np.zeros((len(reached), 1)), reached[:, :-1]])
    near = (reached >= target - most / slope_left) & (begins <= target + most / slope_right)
    near[reached[:, -1] < target] = True
    row, column = np.nonzero(near)

    # Utilities: the prior weight less the larger of both penalties. The last candidate, +inf, is never too low.
    short = slope_left * np.maximum(target - reached[near], 0)
    short[column == len(heights) - 1] = 0.0
    utilities = heights[column] - np.maximum(slope_right * np.maximum(begins[near] - target, 0), short)

    # Weights of the exponential mechanism among the candidates that have weight.
    largest = np.maximum.reduceat(utilities, np.searchsorted(row, np.arange(len(reached))))
    weights = np.exp(utilities - largest[row])
    likely = weights > _NO_WEIGHT
    return row[likely], column[likely], weights[likely]


# Prior weights that rise, for a competitor ratio G.

# The least competitor ratio of a search.
_LEAST_RATIO = 1e-3


def total_rise(m: int, rivals: float) -> float:
    """The log-odds by which the last of m candidates must exceed the first, for this G."""
    flat = math.floor(rivals) + 1
    if flat >= m:
        return 0.0
    return math.log(max(1.0, flat / rivals)) + (m - 1 - flat) * math.log1p(1 / rivals)


@lru_cache(maxsize=4096)
def competitor_ratio_for(m: int, rise: float) -> float:
    """The smallest G whose slowest weights rise by at most `rise` in total over m candidates."""
    if rise <= 0:
        return m - 1.0
    # A bisection of the logarithm; the rise decreases with the ratio.
    low, high = _LEAST_RATIO, max(m - 1.0, _LEAST_RATIO)
    for _ in range(40):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if total_rise(m, middle) > rise else (low, middle)
    return high


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
