"""Exact laws of the selectors, computed in another way than the library computes them.

Permute-and-flip draws j with probability w_j int_0^1 prod_(i != j) (1 - s w_i) ds, w = exp((u - max u)/scale). The
integrand is a polynomial in s, which Gauss-Legendre quadrature of enough nodes integrates without error.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.selection import Selector

Floats = NDArray[np.float64]


def exact_law(utilities: NDArray[Any], scale: float, selector: Selector) -> Floats:
    """The law of a selector over a few candidates.

    Examples
    --------
    >>> exact_law(np.array([0, -1]), 1.0, "exponential").round(3)
    array([0.731, 0.269])
    """
    weights: Floats = np.exp((utilities - utilities.max()) / scale)
    if selector == "exponential":
        return np.asarray(weights / weights.sum())
    s, ds = _nodes(len(weights) // 2 + 1)
    factors = 1 - s[:, None] * weights
    ones = np.ones((len(s), 1))
    before = np.cumprod(np.hstack([ones, factors[:, :-1]]), axis=1)
    after = np.cumprod(np.hstack([ones, factors[:, :0:-1]]), axis=1)[:, ::-1]
    return np.asarray(weights * (ds @ (before * after)))


@lru_cache(maxsize=64)
def _nodes(count: int) -> tuple[Floats, Floats]:
    x, w = np.polynomial.legendre.leggauss(count)
    return (x + 1) / 2, w / 2
