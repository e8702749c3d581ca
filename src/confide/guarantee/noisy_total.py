"""The rank deficit of the last rule if the noisy total takes the place of a secret number of records.

Candidate k is reached if the noisy count at or below it is at least q (n~ + 1) + offset, n~ the sum of all noisy
counts. With B_i records at or below candidate i this is the event

    B_i + (1-q) (X_1 + ... + X_i) - q (X_(i+1) + ... + X_m) >= q (n+1) + offset,

so the deficit is at most a weighted sum of all noise, for one split i (docs/theory-published-counts.md, Theorem E2).
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.guarantee.noise_walk import walk_end

_ROUNDING = 1e-7
"""Ranks reserved for the rounding of the transforms."""
_MOST_WORK = 2**29
"""Largest number of values of all splits together."""
_TINY = 1e-40
"""Smaller values of a transform are rounded to this: powers that underflow are slow."""


@dataclass(frozen=True, eq=False)
class TotalDeficit:
    """The law of N on multiples of 1/unit: `tails` are upper bounds on P(N >= v) for v = -half/unit, ..., half/unit."""

    tails: NDArray[np.float64]
    unit: int

    def above(self, x: float) -> float:
        """E[(N - x)_+], never below the exact value except for rounding: the integral of the tail beyond x."""
        place = x * self.unit + len(self.tails) // 2
        first = min(max(0, math.ceil(place)), len(self.tails) - 1)
        return float((first - place) * self.tails[first] + self.tails[first + 1 :].sum()) / self.unit


def total_deficit(noise: NDArray[np.float64], copies: int, m: int, level: Fraction) -> TotalDeficit:
    """P(N >= v) <= max_i P((1-q) (X_1 + ... + X_i) - q (X_(i+1) + ... + X_m) >= v), i = 1, ..., m-1.

    Parameters
    ----------
    noise
        The law of one copy of the noise in a bin, as in `walk_end`.
    copies
        Number of independent copies of noise in each bin.
    m
        Number of bins, at least 2.
    level
        q, in (0, 1).

    Raises
    ------
    InputError
        If there would be more than 2**29 values, because the level has a large denominator.

    Examples
    --------
    >>> deficit = total_deficit(np.array([0.25, 0.5, 0.25]), 1, 2, Fraction(1, 2))
    >>> deficit.tails[len(deficit.tails) // 2 :], deficit.unit
    (array([0.6875, 0.3125, 0.0625, 0.    , 0.    ]), 2)
    """
    unit, left = level.denominator, level.denominator - level.numerator
    half, reach = len(noise) // 2, unit * len(walk_end(noise, copies * (m - 1)))
    size = 1 << (2 * reach + 1).bit_length()
    if m * size > _MOST_WORK:
        raise InputError("alpha", "must be a rounder level, or the bins fewer, if the number of records is secret")
    parts = []
    for weight in (left, level.numerator):
        ring = np.zeros(size)
        np.add.at(ring, weight * np.arange(-half, half + 1) % size, noise)
        parts.append(np.fft.rfft(ring).real ** copies)
    signs, logs = np.sign(parts), np.log(np.maximum(np.abs(parts), _TINY))
    tails = np.zeros(2 * reach + 1)
    for i in range(1, m):
        sizes = np.exp(np.maximum(i * logs[0] + (m - i) * logs[1], math.log(_TINY)))
        transform = sizes * signs[0] ** (i % 2) * signs[1] ** ((m - i) % 2)
        law = np.maximum(np.fft.irfft(transform, size), 0.0)
        law = np.concatenate([law[-reach:], law[: reach + 1]])
        np.maximum(tails, np.cumsum(law[::-1])[::-1], out=tails)
    return TotalDeficit(np.minimum(tails, 1.0), unit)


def total_shortfall(deficit: TotalDeficit, level: Fraction, offset: Fraction, n_min: int) -> float:
    """The number of ranks that `offset` lacks for coverage >= level at every n >= n_min; at most 0 if it is enough.

    Missed mass times (n+1) is at most h(x) = E[(N - x)_+] at x = offset - (1-level)(n+1), and h(x) + x grows with x, so
    the smallest n decides.
    """
    x = float(offset - (1 - level) * (n_min + 1))
    return deficit.above(x) + x + _ROUNDING - float(offset)


def total_offset(deficit: TotalDeficit, level: Fraction, n_min: int) -> Fraction:
    """The least offset that guarantees the level for every n >= n_min, in steps of at most 1/16.

    Examples
    --------
    >>> deficit = total_deficit(np.array([0.25, 0.5, 0.25]), 1, 8, Fraction(9, 10))
    >>> float(total_offset(deficit, Fraction(9, 10), 1)), float(total_offset(deficit, Fraction(9, 10), 100))
    (1.6, 0.45)
    """
    unit = level.denominator * -(-16 // level.denominator)
    low, high = 0, unit
    while total_shortfall(deficit, level, Fraction(high, unit), n_min) > 0:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        enough = total_shortfall(deficit, level, Fraction(middle, unit), n_min) <= 0
        low, high = (low, middle) if enough else (middle, high)
    return Fraction(high, unit)
