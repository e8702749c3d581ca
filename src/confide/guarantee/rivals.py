"""How much rivals weigh: the one number of the candidates' public weights that the certificates depend on.

Candidates get public weights w_1 <= ... <= w_m. What can go wrong lies left of the first candidate that is sure to
cover, so all that matters is G = max_g (w_1 + ... + w_(g-1)) / w_g (docs/theory.md, section 2): m - 1 if all weights
are equal, about 1/c if they grow by the factor exp(c) from one to the next, however many there are.
"""

import math

import numpy as np
from numpy.typing import NDArray


def rivals_left(log_weights: NDArray[np.float64]) -> float:
    """G, the greatest total weight left of a candidate, relative to that candidate's weight, rounded up.

    `log_weights` are float64 of shape (m,).

    Examples
    --------
    >>> rivals_left(np.zeros(1000))
    999.0
    >>> round(rivals_left(np.log(2) * np.arange(50)), 6)
    1.0
    """
    if len(log_weights) == 1 or not log_weights.any():
        return float(len(log_weights) - 1)
    sums = np.logaddexp.accumulate(log_weights[:-1])
    # Every step of the sum is right to a few units in the last place of the largest logarithm.
    error = 4 * len(log_weights) * np.spacing(float(np.abs(sums).max(initial=1.0)) + math.log(len(log_weights)))
    with np.errstate(over="ignore"):
        return float(max(np.exp((sums - log_weights[1:]).max() + error), np.finfo(np.float64).tiny))


def rivals_right(log_weights: NDArray[np.float64]) -> float:
    """The greatest total weight right of a candidate, relative to that candidate's weight, rounded up.

    Examples
    --------
    >>> rivals_right(np.zeros(1000))
    999.0
    """
    return rivals_left(log_weights[::-1])
