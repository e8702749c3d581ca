"""Probabilities at another temperature: each to the power 1/T, rescaled so that every record sums to one.

Of the softmax of logits z that is the softmax of z/T (Guo, Pleiss, Sun and Weinberger, "On calibration of modern neural
networks", ICML 2017). T > 1 spreads an over-confident model's probabilities out. T is a public number of the score's
name, `lac(temperature=2)`: chosen without the calibration records, as `tune_temperature` does on others.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.arrays import softmax


def tempered(p: NDArray[Any], temperature: float) -> NDArray[np.float64]:
    """p^(1/T) / sum p^(1/T) for rows of shape (n, K) with entries in [0, 1], in float64; rows of zeros stay zero.

    Each row is computed for itself, so that calibration and prediction agree bit for bit.

    Examples
    --------
    >>> tempered(np.array([[0.64, 0.04, 0.0]]), 2.0)
    array([[0.8, 0.2, 0. ]])
    """
    z = np.array(p, dtype=np.float64, order="C")
    empty = ~z.any(axis=1)
    z[empty] = 1.0
    with np.errstate(divide="ignore"):
        np.log(z, out=z)
    z /= temperature
    z = softmax(z)
    z[empty] = 0.0
    return z
