"""The competitor ratio G: the only property of the candidates' prior weights that the certificates depend on.

Candidates have public prior weights w_1 <= ... <= w_m. Only candidates left of the first one that covers with
certainty can miss. Therefore the certificates need only G = max_g (w_1 + ... + w_(g-1)) / w_g (docs/theory.md,
section 2). G is m - 1 if all weights are equal. It is about 1/c, for any number of candidates, if each weight is
exp(c) times the one before.
"""

import math

import numpy as np
from numpy.typing import NDArray


def competitor_ratio(log_weights: NDArray[np.float64]) -> float:
    """The competitor ratio G: the largest total weight left of a candidate, relative to its own weight, rounded up.

    `log_weights` are float64 of shape (m,).

    Examples
    --------
    >>> competitor_ratio(np.zeros(1000))
    999.0
    >>> round(competitor_ratio(np.log(2) * np.arange(50)), 6)
    1.0
    """
    if len(log_weights) == 1 or not log_weights.any():
        return float(len(log_weights) - 1)
    sums = np.logaddexp.accumulate(log_weights[:-1])
    # Every step of the sum is accurate to a few units in the last place of the largest logarithm.
    error = 4 * len(log_weights) * np.spacing(float(np.abs(sums).max(initial=1.0)) + math.log(len(log_weights)))
    with np.errstate(over="ignore"):
        return float(max(np.exp((sums - log_weights[1:]).max() + error), np.finfo(np.float64).tiny))


def competitor_ratio_right(log_weights: NDArray[np.float64]) -> float:
    """The largest total weight right of a candidate, relative to its own weight, rounded up.

    Examples
    --------
    >>> competitor_ratio_right(np.zeros(1000))
    999.0
    """
    return competitor_ratio(log_weights[::-1])
