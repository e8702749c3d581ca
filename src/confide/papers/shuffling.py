"""Privacy amplification by shuffling or summing: how much hiding among other participants' answers reduces the loss.

Feldman, McMillan and Talwar, "Hiding among the clones", FOCS 2021, Theorem 3.2, for any epsilon_0-DP randomizer. Plans
of `confide.federated` do not use it (docs/theory-federated.md, Theorems F10 and F11).
"""

import math

import numpy as np
from numpy.typing import NDArray

from confide.support import Level, exact_level, positive_integer, privacy_loss, require

# What is added for binomial tails that the sum leaves out, on each side.
_TAIL = 1e-14

# exp of a larger number overflows.
_LARGEST_EXPONENT = 700.0

# Of an epsilon found by bisection.
_PRECISION = 1e-6


def clones_delta(epsilon: float, epsilon_0: float, n: int, *, whole: float | None = None) -> float:
    """The delta at which n shuffled answers of an epsilon_0-DP randomizer are (epsilon, delta)-DP.

    n participants use the same randomizer, and it is not known who gave which answer: by a trusted shuffler, or by a
    sum of one-hot vectors, which reveals the same. The theorem needs the loss of replacing the WHOLE input of another
    participant. For a silo of many records that is far larger than the loss of one record, and mostly nothing is
    gained. (The tighter theorem of 2023 holds only for a restricted class of randomizers, by its erratum.)

    The hockey-stick divergence between (A + D, C - A + 1 - D) and its mirror image, with C ~ Bin(n-1, e^-whole),
    A ~ Bin(C, 1/2) and D ~ Bernoulli(e^epsilon_0 / (1 + e^epsilon_0)). For the binomial tails that are left out, 2e-14
    is added.

    Parameters
    ----------
    epsilon
        The loss after shuffling.
    epsilon_0
        The loss of one answer when one record of its participant changes.
    n
        Number of participants that answer honestly, including the participant whose record changes.
    whole
        At least the loss of one answer when the whole input of its participant is replaced; by default `epsilon_0`,
        for participants of one record each.

    Examples
    --------
    >>> clones_delta(0.17, 4.0, 100_000) < 1e-6 < clones_delta(0.165, 4.0, 100_000)
    True
    >>> clones_delta(0.17, 4.0, 100_000, whole=40.0) > 0.9
    True
    """
    from scipy.stats import binom

    # Losses and numbers.
    n = positive_integer("n", n)
    epsilon_0 = privacy_loss("epsilon_0", epsilon_0)
    require("epsilon", 0 <= epsilon < math.inf, "must be a finite number of at least 0", got=repr(epsilon))
    whole = epsilon_0 if whole is None else privacy_loss("whole", whole)
    if epsilon >= epsilon_0:
        return 0.0

    # The law of C without its tails.
    stays = math.exp(-whole)
    c = _likely_counts(n - 1, stays)
    weight = binom.pmf(c, n - 1, stays)

    # For each C the likelihood ratio grows with A, so that the divergence is a difference of two tails.
    likely = 1 / (1 + math.exp(-epsilon_0))
    odds = math.exp(min(epsilon, _LARGEST_EXPONENT))
    gain = likely - odds * (1 - likely)
    if gain <= 0:
        return 0.0
    ratio = (odds * likely - (1 - likely)) / gain
    first = np.floor((c + 1) * ratio / (1 + ratio)) + 1
    with_d = binom.sf(first - 2, c, 0.5)
    without_d = binom.sf(first - 1, c, 0.5)
    probability = likely * with_d + (1 - likely) * without_d
    mirrored = (1 - likely) * with_d + likely * without_d
    return float((weight * np.maximum(probability - odds * mirrored, 0)).sum() + 2 * _TAIL)


def _likely_counts(n: int, p: float) -> NDArray[np.int64]:
    """Counts of a binomial law; by Chernoff's bounds each tail that is left out is less than 1e-17."""
    mean = n * p
    deviation = math.sqrt(mean)
    least = max(0, math.floor(mean - 9 * deviation))
    most = min(n, math.ceil(mean + 12 * deviation + 40))
    return np.arange(least, most + 1)


def clones_epsilon(epsilon_0: float, n: int, dp_delta: Level, *, whole: float | None = None) -> float:
    """The smallest epsilon, to 1e-6 and rounded up, at which `clones_delta` is at most dp_delta.

    Examples
    --------
    >>> clones_epsilon(1.0, 10_000, 1e-6) < 0.054
    True
    >>> clones_epsilon(1.0, 10_000, 1e-6, whole=20.0) > 0.999
    True
    """
    delta = float(exact_level("dp_delta", dp_delta)) if not isinstance(dp_delta, float) else dp_delta
    require("dp_delta", 0 < delta < 1, "must lie strictly between 0 and 1", got=repr(dp_delta))
    epsilon_0 = privacy_loss("epsilon_0", epsilon_0)
    low, high = 0.0, epsilon_0
    while high - low > _PRECISION:
        middle = (low + high) / 2
        low, high = (low, middle) if clones_delta(middle, epsilon_0, n, whole=whole) <= delta else (middle, high)
    return high
