"""Privacy amplification by shuffling: what an anonymous channel between silos' patients and coordinator would add.

Feldman, McMillan and Talwar, "Hiding among the clones", FOCS 2021, Theorem 3.2: the randomizer is any epsilon_0-DP one.
(The tighter theorem of 2023 holds only for a restricted class of randomizers, by its own erratum, and is not used.)
Use it only where n records answer each with the same randomizer and a trusted shuffler removes who said what; the
protocols here name their silos and get nothing from it.
"""

import math

import numpy as np

from confide.errors import InputError
from confide.support import Level, exact_level, positive_integer, privacy_loss

_TAIL = 1e-14


def clones_delta(epsilon: float, epsilon_0: float, n: int) -> float:
    """The delta at which n shuffled answers of an epsilon_0-DP randomizer are (epsilon, delta)-DP.

    The hockey-stick divergence between (A + D, C - A + 1 - D) and its mirror image, with C ~ Bin(n-1, e^-epsilon_0),
    A ~ Bin(C, 1/2) and D ~ Bernoulli(e^epsilon_0 / (1 + e^epsilon_0)). Binomial tails beyond 1e-14 are added to it.

    Examples
    --------
    >>> clones_delta(0.17, 4.0, 100_000) < 1e-6 < clones_delta(0.165, 4.0, 100_000)
    True
    """
    from scipy.stats import binom

    n = positive_integer("n", n)
    epsilon_0 = privacy_loss("epsilon_0", epsilon_0)
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise InputError(f"epsilon must be a finite number of at least 0; found {epsilon!r}")
    stays, alike, odds = math.exp(-epsilon_0), 1 / (1 + math.exp(-epsilon_0)), math.exp(epsilon)
    c = np.arange(int(binom.ppf(_TAIL, n - 1, stays)), int(binom.isf(_TAIL, n - 1, stays)) + 1)
    weight = binom.pmf(c, n - 1, stays)
    gain = alike - odds * (1 - alike)
    if gain <= 0:
        return 0.0
    ratio = (odds * alike - (1 - alike)) / gain
    first = np.floor((c + 1) * ratio / (1 + ratio)) + 1
    with_d, without = binom.sf(first - 2, c, 0.5), binom.sf(first - 1, c, 0.5)
    here, there = alike * with_d + (1 - alike) * without, (1 - alike) * with_d + alike * without
    return float((weight * np.maximum(here - odds * there, 0)).sum() + 2 * _TAIL)


def clones_epsilon(epsilon_0: float, n: int, dp_delta: Level) -> float:
    """The smallest epsilon, to 1e-6 and rounded up, at which `clones_delta` is at most dp_delta.

    Examples
    --------
    >>> clones_epsilon(1.0, 10_000, 1e-6) < 0.054
    True
    """
    delta = float(exact_level("dp_delta", dp_delta)) if not isinstance(dp_delta, float) else dp_delta
    if not 0 < delta < 1:
        raise InputError(f"dp_delta must lie strictly between 0 and 1; found {dp_delta!r}")
    low, high = 0.0, float(epsilon_0)
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if clones_delta(middle, epsilon_0, n) <= delta else (middle, high)
    return high
