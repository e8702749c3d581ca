"""The number of successes among independent trials of unequal probability, for many parameter vectors at once."""

import numpy as np
from numpy.typing import NDArray

_DIRECT = 16


def poisson_binomial(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """The law of the number of successes, by multiplying generating polynomials pairwise (divide and conquer).

    Short products are direct, long ones go through the FFT; the absolute error is a few 1e-16.

    Parameters
    ----------
    p
        Success probabilities, float64, shape (m, nodes): m trials, for each of `nodes` parameter vectors.

    Returns
    -------
    numpy.ndarray
        float64, shape (nodes, m + 1): probability of 0, 1, ..., m successes.

    Examples
    --------
    >>> poisson_binomial(np.array([[0.5], [0.5], [0.25]])).round(4)
    array([[0.1875, 0.4375, 0.3125, 0.0625]])
    """
    m = len(p)
    factors = np.stack([1 - p, p], axis=-1)
    while len(factors) > 1:
        if len(factors) % 2:
            one = np.zeros_like(factors[:1])
            one[..., 0] = 1.0
            factors = np.concatenate([factors, one])
        factors = _products(factors[0::2], factors[1::2])
    law: NDArray[np.float64] = np.maximum(factors[0][:, : m + 1], 0.0)
    return law


def at_least(p: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """P(at least k of the m trials succeed), shape (nodes,).

    Equal rows are recognised, and then the tail is an incomplete beta function.

    Examples
    --------
    >>> at_least(np.array([[0.5], [0.5], [0.25]]), 2)
    array([0.375])
    """
    from scipy.special import betainc

    m = len(p)
    if k <= 0:
        return np.ones(p.shape[1])
    if k > m:
        return np.zeros(p.shape[1])
    if m == 1 or bool((p == p[0]).all()):
        tail: NDArray[np.float64] = betainc(k, m - k + 1, p[0])
        return tail
    law = poisson_binomial(p)
    upper, lower = law[:, k:].sum(axis=1), law[:, :k].sum(axis=1)
    tail = np.where(upper < 0.5, upper, 1 - lower)
    return tail


def _products(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.fft import irfft, next_fast_len, rfft

    size = a.shape[-1] + b.shape[-1] - 1
    if b.shape[-1] <= _DIRECT:
        product = np.zeros((*a.shape[:-1], size))
        for i in range(b.shape[-1]):
            product[..., i : i + a.shape[-1]] += a * b[..., i : i + 1]
        return product
    length = next_fast_len(size, real=True)
    full: NDArray[np.float64] = irfft(rfft(a, length) * rfft(b, length), length)[..., :size]
    return full
