"""The margin score, from blocks of rows: the likeliest other class minus the class itself.

For every class but a unique likeliest one that is max(p) - p_y; for the unique likeliest class it is the second largest
probability minus its own. Differences are taken in float64 at calibration and at prediction alike.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def true_class_margin(p: NDArray[Any], y: NDArray[np.int64]) -> NDArray[np.float64]:
    """The margin score of class y[i] in row i; `p` of shape (n, K), K >= 2."""
    own = p[np.arange(len(p)), y].astype(np.float64)
    first, second = _two_largest(p)
    return np.where((own == first) & (second < first), second, first) - own


def all_class_margins(p: NDArray[Any]) -> NDArray[np.float64]:
    """The margin scores of all classes, shape (n, K)."""
    first, second = _two_largest(p)
    q = p.astype(np.float64)
    alone = (q == first[:, None]) & (second < first)[:, None]
    margins: NDArray[np.float64] = np.where(alone, second[:, None], first[:, None]) - q
    return margins


def _two_largest(p: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    top = np.partition(p, p.shape[1] - 2, axis=1)[:, -2:].astype(np.float64)
    return top[:, 1], top[:, 0]
