"""The certificate of noisy histograms: one number, whatever the number of bins (docs/theory-one-number.md, W3, W3b).

Candidate i is reached if the noisy number of scores beyond it is at most a limit. The last rule selects the first
candidate from which on every candidate is reached. Noise costs c = sup over g >= 0 of E[X - g | X > g] ranks: the mean
by which a noise that exceeds a gap exceeds it.
"""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from confide.support import bisect_upwards

# Gaps that noise exceeds with less probability are those of the end of a table, where its last values decide.
_LEAST_MASS = 1e-250


def residual_life(law: NDArray[np.float64]) -> float:
    """The cost c in ranks of noise with P(X = 0), P(X = 1), ... of a symmetric law, float64."""
    beyond = np.append(np.cumsum(law[:0:-1])[::-1], 0.0)  # P(X > g)
    excess = np.cumsum(beyond[::-1])[::-1]  # E[(X - g)_+]
    likely = beyond > _LEAST_MASS
    return float((excess[likely] / beyond[likely]).max(initial=0.0))


def log_concave_residual_life(law: NDArray[np.float64]) -> float:
    """`residual_life` of a log-concave law: E[X | X > 0], because smaller gaps have larger residual lives."""
    beyond = float(law[1:].sum())
    return float(np.arange(len(law)) @ law) / beyond if beyond else 0.0


def laplace_residual_life(scale: float) -> float:
    """The cost of discrete Laplace noise, P(z) proportional to exp(-abs(z)/scale): 1/(1 - e^(-1/scale))."""
    return -1 / math.expm1(-1 / scale)


# What is reserved for the rounding of c: so many ranks,
_ROUNDED_RANKS = Fraction(1, 10**9)

# and this share of it.
_ROUNDED_SHARE = Fraction(1, 10**12)


def _with_rounding(cost: float) -> Fraction:
    return Fraction(cost) * (1 + _ROUNDED_SHARE) + _ROUNDED_RANKS


def most_beyond(level: Fraction, n: int, cost: float) -> int:
    """The largest limit that covers `level` on average: floor((1 - level)(n + 1) - 1 - c); negative if there is none.

    n is the public number of records, or the noisy one; `cost` is c in ranks.
    """
    return math.floor((1 - level) * (n + 1) - 1 - _with_rounding(cost))


def limit_coverage(beyond: int, n: int, cost: float) -> Fraction:
    """The guaranteed coverage of a limit for a public n: (T - c)/(n + 1) with the target rank T = n - limit."""
    return max(Fraction(0), (n - beyond - _with_rounding(cost)) / (n + 1))


@lru_cache(maxsize=256)
def least_counted(level: Fraction, scale: float, cost: float) -> int:
    """The least noisy number of records that has a limit; for a smaller one the threshold is +inf (Theorem W3b)."""
    # A limit of at least 0.
    life = laplace_residual_life(scale)
    ratio = math.exp(-1 / scale)
    least = max(math.ceil(life), math.ceil((_with_rounding(cost) + 1) / (1 - level)))

    # Few enough noisy numbers of a single record, the hardest n, must reach it.
    def covers_two(least: int) -> bool:
        return 2 * ((1 + ratio) * math.exp(min((least - 1) / scale, 700)) - 1) >= least - 2 + life  # exp(700) is finite

    return bisect_upwards(covers_two, least - 1, least)


def chosen_by_last_rule(noisy: NDArray[np.int64], beyond: int) -> NDArray[np.int64]:
    """The candidates that noisy counts choose: the first from which on at most `beyond` noisy records lie beyond each.

    Counts are int64 of shape (..., m), and indices int64 of shape (...). The last candidate is always reached.

    Examples
    --------
    >>> int(chosen_by_last_rule(np.array([5, 4, -3, 3, 2]), 4))
    3
    """
    further = np.cumsum(noisy[..., :0:-1], axis=-1)  # beyond the candidate before the last, and so on to the first
    reached = np.logical_and.accumulate(further <= beyond, axis=-1).sum(axis=-1)
    return np.asarray(noisy.shape[-1] - 1 - reached, dtype=np.int64)
