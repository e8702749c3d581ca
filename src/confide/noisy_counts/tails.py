"""How likely T = L C - a n + V reaches a value, C ~ Bin(n, p) and V a weighted sum of noises: upper bounds.

C runs over a window of 8 standard deviations and 30, beyond which lies less than 3e-14, by Bernstein's inequality.
Inside, probabilities follow from each other by their ratios, and from their sum being 1. Where the standard deviation
is above 128, values of C are taken together in blocks of a 128th of it: C counts as the end of its block, which can
only raise T. So no window has more than 4200 values.
"""

import numpy as np
from numpy.typing import NDArray

from confide.noisy_counts.noise import NoiseTail

ROUNDING = 1e-12
"""More than what windows, tables and floating-point numbers lose."""

_MOST_AT_ONCE = 2**20
_WIDE, _PER_SPREAD = 128.0, 128


def reaches(
    noise: NoiseTail, a: int, L: int, value: NDArray[np.int64], n: NDArray[np.int64], p: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Upper bounds on P(L C - a n + V >= value), all of shape (k,), with p in (0, 1)."""
    spread, result = np.sqrt(n * p * (1 - p)), np.empty(len(n))
    for rows, law in ((spread <= _WIDE, _narrow_law), (spread > _WIDE, _wide_law)):
        places = np.flatnonzero(rows)
        if not places.size:
            continue
        most = 16 * float(spread[places].max()) + 64 if law is _narrow_law else 4200
        for part in np.array_split(places, int(len(places) * most / _MOST_AT_ONCE) + 1):
            c, masses = law(n[part, None], p[part, None], spread[part, None])
            result[part] = np.einsum("ij,ij->i", masses, noise.at_least((value + a * n)[part, None] - L * c))
    return result + ROUNDING


def _narrow_law(
    n: NDArray[np.int64], p: NDArray[np.float64], spread: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Values of C and their probabilities, every value of the window."""
    low = np.maximum(np.floor(n * p - 8 * spread - 30), 0).astype(np.int64)
    high = np.minimum(np.ceil(n * p + 8 * spread + 30).astype(np.int64), n)
    c = low + np.arange(int((high - low).max()) + 1)
    masses = np.ones(c.shape)
    np.cumprod((n - c[:, :-1]) / (c[:, :-1] + 1) * (p / (1 - p)), axis=1, out=masses[:, 1:])
    return c, masses / masses.sum(axis=1, keepdims=True)


def _wide_law(
    n: NDArray[np.int64], p: NDArray[np.float64], spread: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Ends of blocks of values of C, and bounds on the blocks' probabilities: the largest one times their size."""
    step = np.floor(spread / _PER_SPREAD).astype(np.int64)
    low = np.floor(n * p - 8 * spread - 30).astype(np.int64)
    c = low + step * np.arange(int(np.ceil((16 * spread + 62) / step).max()) + 1)
    mode = np.floor((n + 1) * p).astype(np.int64)
    return c, step * _largest(np.clip(mode, c - step + 1, c), n, p)


def _largest(c: NDArray[np.int64], n: NDArray[np.int64], p: NDArray[np.float64]) -> NDArray[np.float64]:
    """An upper bound on P(C = c), by Stirling's formula with its bounds, for 0 < c < n."""
    rest, away = n - c, c - n * p
    exponent = n * p * _entropy(away / (n * p)) + n * (1 - p) * _entropy(-away / (n * (1 - p)))
    stirling = 1 / (12 * n) - 1 / (12 * c + 1) - 1 / (12 * rest + 1)
    result: NDArray[np.float64] = np.sqrt(n / (2 * np.pi * c * rest)) * np.exp(stirling - exponent)
    return result


def _entropy(d: NDArray[np.float64]) -> NDArray[np.float64]:
    """(1 + d) log(1 + d) - d for |d| < 0.07, where it cancels, by its series."""
    result = np.zeros_like(d)
    for k in range(15, 1, -1):
        result = result * d + (-1.0) ** k / (k * (k - 1))
    return result * d * d
