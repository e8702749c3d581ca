"""The plan for a masked, noised histogram: target rank and certificate (docs/federated.md, Theorem F6)."""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from confide.federated.noise_shares import noise_law
from confide.guarantee.noise_walk import walk_maximum

MOST_DEFICIT = 2**30


@lru_cache(maxsize=64)
def total_deficit(scale: float, silos: int, honest: int, candidates: int) -> NDArray[np.float64]:
    """The law of the rank deficit when `silos` shares are added, `honest` of which make discrete Laplace noise.

    The shares of all silos add up to more than discrete Laplace noise. The array must not be changed.
    """
    return walk_maximum(noise_law(scale, silos / honest), candidates - 1)


def summed_coverage(n: int, target: int, deficit: NDArray[np.float64], extra: int) -> Fraction:
    """E[max(T - N, 0)] / (n + extra): marginal coverage of the noisy histogram with target rank T <= n.

    Parameters
    ----------
    n
        Number of records in all silos.
    target
        Target rank.
    deficit
        P(N = 0), P(N = 1), ...
    extra
        1 if all records are exchangeable; the number of silos if the new record comes from silo j with probability
        (n_j + 1)/(n + silos), silos differing from one another.

    Examples
    --------
    >>> float(summed_coverage(99, 91, np.array([0.5, 0.5]), 1))
    0.905
    """
    ranks = np.maximum(target - np.arange(len(deficit)), 0)
    return Fraction(float(ranks @ deficit)) / (n + extra)


def summed_failure(n: int, target: int, deficit: NDArray[np.float64], level: float) -> float:
    """An upper bound on P(coverage given the data < level): sum over N of P(Bin(n, level) >= T - N), i.i.d. records."""
    from scipy.special import bdtrc

    ranks = target - np.arange(len(deficit))
    fails = np.where(ranks <= 0, 1.0, bdtrc(np.clip(ranks, 1, n) - 1, n, level))
    return float(fails @ deficit + max(0.0, 1 - deficit.sum()))


def summed_target(n: int, level: Fraction, delta: float | None, deficit: NDArray[np.float64], extra: int) -> int | None:
    """The smallest target rank that certifies the level; None if it exceeds n.

    Examples
    --------
    >>> summed_target(99, Fraction(9, 10), None, np.array([0.5, 0.5]), 1)
    91
    """

    def enough(target: int) -> bool:
        if delta is None:
            return summed_coverage(n, target, deficit, extra) >= level
        return summed_failure(n, target, deficit, float(level)) <= delta

    if not enough(n):
        return None
    low, high = 0, n
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def choose_summed(counts: NDArray[np.int64], n: int, target: int) -> int:
    """The first candidate k with n - sum_(j>k) counts_j >= target, from noisy counts of shape (m,).

    Examples
    --------
    >>> choose_summed(np.array([5, -1, 3, 2]), n=9, target=6)
    2
    """
    reached = n - (np.cumsum(counts[::-1])[::-1] - counts) >= target
    return int(np.argmax(reached))


def modulus_bits(n: int, scale: float, silos: int, honest: int) -> int:
    """32 if counts and noise stay below 2**30 (noise but for a probability below e**-700), else 64.

    A total beyond half the modulus would wrap around: counts cannot reach it, and noise that does is a larger rank
    deficit than `total_deficit` considers, so it is already counted as a failure there.
    """
    room = 700 * scale * (1 + silos / honest) + math.log2(1 + silos)
    return 32 if n + room < MOST_DEFICIT else 64
