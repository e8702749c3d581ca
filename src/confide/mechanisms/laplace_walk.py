"""The largest absolute value of a walk of Laplace steps, exactly: the quantile in Theorem 2 of version 1.

S_k is a sum of k independent Laplace variables of scale 1. The density of S_k on (-t, t), of walks that never left it,
is T^k applied to a unit mass at 0, where T has the kernel exp(-|x-y|)/2. Since u = T f solves u - u'' = f with u' = -u
at t and u' = u at -t, the even eigenfunctions of T are cos(w x) with w tan(w t) = 1, their eigenvalues 1/(1+w^2), and

    P(max_(k<=m) |S_k| < t) = sum_i (-1)^i 2 / ( w_i sqrt(1+w_i^2) (t + 1/(1+w_i^2)) (1+w_i^2)^m ),

an alternating sum of falling terms, w_i t in (i pi, i pi + pi/2). What is left out is less than the next term.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_NEWTON, _HALVINGS, _NEGLIGIBLE = 8, 60, 1e-14
ROUNDING = 1e-12
"""Probability set aside for the rounding of the sum."""


def walk_stays_below(m: int, t: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(max_(k<=m) abs(S_k) < t) for each t > 0, but for less than `ROUNDING`.

    Examples
    --------
    >>> walk_stays_below(1, np.array([2.0])) == -np.expm1(-2.0)
    array([ True])
    >>> walk_stays_below(100, np.array([39.0242])).round(6)
    array([0.99])
    """
    if m == 1:
        return -np.expm1(-t)
    reach = math.sqrt(_NEGLIGIBLE ** (-1 / (m + 1)) - 1)  # (1+w^2)^-(m+1) is negligible from here on
    i = np.arange(math.ceil(float(t.max()) * reach / math.pi) + 2)
    t, turns = t[:, None], i * math.pi
    x = turns + np.arctan2(t, turns + math.pi / 2)
    for _ in range(_NEWTON):
        x = x - (x - turns - np.arctan2(t, x)) / (1 + t / (x * x + t * t))
    w2 = (x / t) ** 2
    size = 2 * t / (x * np.sqrt(1 + w2) * (t + 1 / (1 + w2))) * np.exp(-m * np.log1p(w2))
    return np.asarray(size @ np.where(i % 2, -1.0, 1.0))


@lru_cache(maxsize=256)
def walk_quantiles(m: int, fails: tuple[float, ...], top: float) -> NDArray[np.float64]:
    """For each probability the smallest t with P(max_(k<=m) abs(S_k) >= t) <= it, from above; `top` is not too small.

    Examples
    --------
    >>> walk_quantiles(100, (0.01,), 100.0).round(4)
    array([39.0242])
    """
    aim = 1 - (np.array(fails) - ROUNDING)
    low, high = np.zeros(len(aim)), np.full(len(aim), top)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = walk_stays_below(m, middle) >= aim
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high
