"""The maximum of a noise walk: the rank deficit of a noisy histogram, as an exact law by repeated convolution.

With noisy counts n~_j = n_j + W_j the threshold is the first e_k with n - sum_(j>k) n~_j >= T. It holds
B_J >= T - N, where N = max(0, W_m, W_m + W_(m-1), ...) is the maximum of the walk of the noise from the right over the
m - 1 finite candidates: data play no part in it. So the threshold is at least S_(R) with R = ceil(T) - N (integer T), a
random rank independent of the data (docs/theory.md, Theorem 2, and docs/federated.md, Theorem F6).

`confide.guarantee.noise_walk` does the same for discrete Laplace steps; here the step is any symmetric law, since more
shares than the honest ones add up to more than discrete Laplace noise.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_NEGLIGIBLE = 1e-15


def walk_maximum(step: NDArray[np.float64], steps: int) -> NDArray[np.float64]:
    """The law of max(0, X_1, X_1 + X_2, ..., X_1 + ... + X_steps) for independent symmetric integer steps.

    The maximum M of `steps` steps has the law of max(0, X + M') with M' the maximum of one step fewer (Lindley), so one
    convolution per step suffices.

    Parameters
    ----------
    step
        P(X = -half), ..., P(X = half): float64 of odd length, symmetric; missing mass is counted as X = +inf.
    steps
        Number of steps, at least 0.

    Returns
    -------
    numpy.ndarray
        P(M = 0), P(M = 1), ...; what is missing to 1 has to be read as M = +inf.

    Examples
    --------
    >>> walk_maximum(np.array([0.25, 0.5, 0.25]), 2)
    array([0.625 , 0.3125, 0.0625])
    """
    from scipy.signal import fftconvolve

    half = len(step) // 2
    law = np.ones(1)
    for _ in range(steps):
        joint = np.maximum(fftconvolve(law, step) if len(law) > 64 else np.convolve(law, step), 0.0)
        law = joint[half:].copy()
        law[0] += joint[:half].sum()
        beyond = np.cumsum(law[::-1])[::-1]
        law = law[: max(1, int(np.searchsorted(-beyond, -_NEGLIGIBLE / steps)))]
    return law


@lru_cache(maxsize=64)
def _cached(step: bytes, steps: int) -> bytes:
    return walk_maximum(np.frombuffer(step), steps).tobytes()


def deficit_law(step: NDArray[np.float64], steps: int) -> NDArray[np.float64]:
    """`walk_maximum`, remembered: plans and certificates ask for the same law again."""
    return np.frombuffer(_cached(np.ascontiguousarray(step).tobytes(), steps))
