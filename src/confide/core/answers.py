"""The answer of slopes if the numbers of scores up to the candidates are known: its law, and all that are likely."""

import math
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


def answer_law(reached: NDArray[np.float64], utility: Utility) -> NDArray[np.float64]:
    """The law of the chosen candidate if `reached` scores, maybe not an integer, lie at or below each; shape (m,)."""
    law = np.zeros(len(reached))
    _, column, odds = likely_answers(reached[None, :], utility)
    law[column] = selection_law(odds)
    return law


def answer_among(mechanism: Slopes, below: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """The law of the chosen candidate for n scores, of which the shares `below` are at most each; shape (m,)."""
    slopes, heights = (mechanism.slope_left, mechanism.slope_right), mechanism.log_weights(len(below), n)
    return answer_law(n * below, Utility(float(mechanism.target(n)), *slopes, heights))


def likely_answers(
    reached: NDArray[np.float64], utility: Utility
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """Rows, candidates and weights of all answers that are not negligible, for `reached` of shape (k, m), row by row.

    Weights are relative to the largest one of their row.
    """
    # A candidate, at worst the last one, has penalty 0. Those of a penalty above `most` have no weight next to it.
    target, slope_left, slope_right, heights = utility
    most = float(heights[-1] - heights[0]) - math.log(_NO_WEIGHT) + 1
    begins = np.hstack([np.zeros((len(reached), 1)), reached[:, :-1]])
    near = (reached >= target - most / slope_left) & (begins <= target + most / slope_right)
    near[reached[:, -1] < target] = True
    row, column = np.nonzero(near)

    # Utilities: the prior weight less the larger of both penalties.
    short = slope_left * np.maximum(target - reached[near], 0)
    short[column == len(heights) - 1] = 0.0
    utilities = heights[column] - np.maximum(slope_right * np.maximum(begins[near] - target, 0), short)

    # Weights of the exponential mechanism among the candidates that have weight.
    largest = np.maximum.reduceat(utilities, np.searchsorted(row, np.arange(len(reached))))
    weights = np.exp(utilities - largest[row])
    likely = weights > _NO_WEIGHT
    return row[likely], column[likely], weights[likely]
