"""A bet against a mean: a p-value for independent values in [0, 1], whatever their law, however small their spread.

A gambler starts with 1 and bets that values fall below the claim c: each value x multiplies the wealth by
1 + stake (c - x), and stakes up to 1/(1-c) never lose more than there is. If the mean of x is at least c, wealth does
not grow on average, so that it ever exceeds 1/p with probability at most p (Ville 1939). The money is spread over
stakes of many sizes, since the best one depends on the unknown mean and spread (Waudby-Smith and Ramdas 2024).
Values that scatter little refute a claim in few runs; Hoeffding's inequality charges them for a spread up to 1.
"""

import math

import numpy as np
from numpy.typing import NDArray

STAKES = 0.95 * 0.5 ** np.arange(12)
"""Stakes as shares of the largest that is allowed; together they make an even bet."""


def bet_against(values: NDArray[np.float64], claim: float) -> float:
    """A p-value of "the mean is at least `claim`" for independent values in [0, 1], shape (k,), claim in (0, 1).

    Examples
    --------
    >>> f"{bet_against(np.full(200, 0.885), 0.9):.0e}", bet_against(np.full(200, 0.9), 0.9)
    ('3e-11', 1.0)
    """
    if not len(values):
        return 1.0
    stakes = STAKES / (1 - claim)
    wealth = np.cumsum(np.log1p(np.multiply.outer(stakes, claim - values)), axis=1)
    highest = float(np.logaddexp.reduce(wealth, axis=0).max()) - math.log(len(STAKES))
    return math.exp(-max(0.0, highest))
