"""Check that an opened sum can be the sum of honest silos' counts and noise.

The number of all records is public and every count lies between 0 and this number, so only noise may move the opened
sum beyond these bounds. A false message within the bounds is not detected. The check has no privacy cost.
"""

import math

import numpy as np
from numpy.typing import NDArray

from confide.federated.refusals import Refusal

# An honest sum is rejected with at most this probability
LEVEL = 1e-12


def check_plausible(counts: NDArray[np.int64], n: int, scale: float, parameter: float) -> None:
    """Reject an opened sum, int64 of shape (m,), that n records and noise as of `noise_law` do not explain.

    Examples
    --------
    >>> check_plausible(np.array([5, -1, 3, 2]), 9, 2.0, 1.0)
    >>> check_plausible(np.array([5, -1, 3, -2000]), 9, 2.0, 1.0)
    Traceback (most recent call last):
        ...
    confide.federated.refusals.Refusal: implausible: the opened sum has -1993 records where the silos state 9, ...
    """
    m, total = len(counts), sum(counts.tolist())
    then = "; a silo's message is wrong, and it cannot be identified: ask all silos, and make a new plan"
    # The noise of all counts together, and of each
    if abs(total - n) > most_noise(scale, parameter * m, LEVEL / 4):
        raise Refusal("implausible", f"the opened sum has {total} records where the silos state {n}, and noise{then}")
    room = most_noise(scale, parameter, LEVEL / (4 * m))
    beyond = (counts < -room) | (counts > n + room)
    if beyond.any():
        where = f"{np.count_nonzero(beyond)} of {m} opened counts, the first at position {int(np.argmax(beyond))},"
        raise Refusal("implausible", f"{where} lie below 0 or above all {n} records by more than noise{then}")


def most_noise(scale: float, parameter: float, level: float) -> float:
    """A bound b with P(noise > b) <= level, for noise of the law of `noise_law`.

    By Markov's inequality P(noise > b) <= exp(-s b) ((1-p)^2 / ((1-p e^s)(1-p e^-s)))^parameter for every positive
    s below 1/scale, where p = exp(-1/scale); the best of many s.
    """
    s = 1 / (1 + np.exp(-np.linspace(-14, 14, 600))) / scale
    p = -1 / scale
    growth = 2 * math.log(-math.expm1(p)) - np.log(-np.expm1(p + s)) - np.log(-np.expm1(p - s))
    return float(np.min((parameter * growth - math.log(level)) / s))
