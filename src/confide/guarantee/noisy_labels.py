"""The law of the random rank for labels under randomised response (docs/theory-labels.md, Theorems L3 and L4).

The noise of n labels adds w records or more to a corrected count with probability at most `noise_tail(w)`, for all
records, models and candidates. So a threshold that is chosen by the corrected count is at least the R-th smallest score
of the true labels, for a random rank R whose law depends on public numbers alone.
"""

import math
from functools import lru_cache

import numpy as np

from confide.guarantee.random_rank import RankLaw, law_failure
from confide.support import bisect

_STEPS = 1000
_REACH = 4.7
"""Deficits above this multiple of the square root of n, in counts, have a probability below 1e-19."""


def noise_tail(deficit: int, n: int, stay_probability: float, signal: float) -> float:
    """A bound on the probability that noise lifts the corrected count of n records by `deficit` records or more.

    It is the least of three bounds (Lemma L2): 1; the normal tail at 2 (kept deficit - 1)/sqrt(n), where kept deficit
    is at least 1 (Hoeffding 1956, Zubkov and Serov 2012, Pinsker); and Bernstein's bound. There each label adds a
    variance of at most p (1 - p) if p is above one half, and of 1/4 otherwise. `stay_probability` is p, the probability
    of the true label, and `signal` is p minus the probability of one other label.

    Examples
    --------
    >>> round(noise_tail(50, 1000, 0.75, 0.5), 4), noise_tail(0, 1000, 0.75, 0.5)
    (0.0645, 1.0)
    """
    x = signal * deficit
    if x <= 0:
        return 1.0
    variance = stay_probability * (1 - stay_probability) if stay_probability > 0.5 else 0.25
    bernstein = math.exp(-x * x / (2 * (n * variance + x / 3)))
    normal = math.erfc(math.sqrt(2 / n) * (x - 1)) / 2 if x >= 1 else 1.0
    return min(1.0, bernstein, normal)


@lru_cache(maxsize=64)
def noisy_rank_law(rank: int, n: int, stay_probability: float, signal: float) -> RankLaw:
    """The law of R for the target `rank`: P(R >= r) = 1 - noise_tail(rank - r + 1).

    If there are many ranks, a rank also represents those just above it, which is conservative. A rank above n means
    +inf.

    Examples
    --------
    >>> ranks, probabilities, bottom = noisy_rank_law(930, 1000, 0.75, 0.5)
    >>> int(ranks.max()), round(float(probabilities.sum() + bottom), 12)
    (930, 1.0)
    """
    reach = math.ceil((_REACH * math.sqrt(n) + 50) / signal)
    step = max(1, reach // _STEPS)
    ranks = np.arange(rank, max(0, rank - reach), -step, dtype=np.int64)[::-1]
    at_least = np.array([1 - noise_tail(rank - r + 1, n, stay_probability, signal) for r in ranks.tolist()])
    return ranks, at_least - np.append(at_least[1:], 0.0), 1 - float(at_least[0])


def mean_coverage(law: RankLaw, n: int) -> float:
    """E[min(R, n+1)]/(n+1): marginal coverage for a law of the random rank (docs/theory.md, Theorem C1a).

    Examples
    --------
    >>> mean_coverage((np.array([9, 20]), np.array([0.5, 0.5]), 0.0), 9)
    0.95
    """
    ranks, probabilities, _ = law
    return float(np.sum(np.minimum(ranks, n + 1) * probabilities)) / (n + 1)


def noisy_rank(level: float, n: int, stay_probability: float, signal: float, delta: float | None = None) -> int:
    """The smallest target rank that guarantees the level: marginally, or with probability 1 - delta.

    It may exceed n. Then only +inf is certain to reach it, and +inf is the answer unless the noise allows another one.

    Examples
    --------
    >>> noisy_rank(0.9, 1000, 0.75, 0.5), noisy_rank(0.9, 1000, 0.75, 0.5, delta=0.05)
    (915, 957)
    """

    def keeps(rank: int) -> bool:
        law = noisy_rank_law(rank, n, stay_probability, signal)
        return mean_coverage(law, n) >= level if delta is None else law_failure(law, n, level) <= delta

    short = math.ceil(level * (n + 1)) - 1
    step, enough = 1, short + 1
    while not keeps(enough):
        short, enough, step = enough, enough + step, 2 * step
    return bisect(keeps, short, enough)
