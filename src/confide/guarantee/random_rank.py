"""The random-rank lemma: privacy noise is a random, data-independent rank (docs/theory.md, Theorem C1).

For all data the selected candidate has B_J >= R for a random rank R with P(R >= r) = 1 - tail(T - r + 1), and R can be
taken independent of the data. So the threshold is at least the R-th smallest score: a non-private conformal threshold
whose rank is drawn from a known law.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class SlopeNoise:
    """The noise of a slope mechanism (docs/theory.md, section 2), made by `Slopes.noise(m)`.

    Parameters
    ----------
    left, right
        Log-odds lost per rank below and above the target.
    rivals
        The competitor ratio G, see `competitor_ratio`.
    step
        The smallest ratio of a candidate's prior weight to the next one's: 1 for equal weights, 0 if unknown.
    """

    left: float
    right: float
    rivals: float
    step: float = 0.0

    @property
    def mass(self) -> float:
        """G as a divisor: raised from 0, for a list of one candidate, to 1e-9."""
        return max(self.rivals, 1e-9)


class RankLaw(NamedTuple):
    """Ranks r >= 1, their probabilities, and the remaining mass, which counts as rank 0 (no coverage)."""

    ranks: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    bottom: float


def tail(deficit: NDArray[Any], slope: float, rivals: float) -> NDArray[np.float64]:
    """An upper bound on the probability that the selected candidate misses the target by `deficit` ranks or more.

    With p = exp(-slope * deficit) and G = `rivals`, the candidates that fall short have a total weight of at most G p,
    compared with one of weight 1. The bound is Gp / (1 + Gp). Deficits may have any shape. The slope is in log-odds per
    rank.

    Examples
    --------
    >>> tail(np.array([5.0, 10.0]), 1.0, 99.0).round(5)
    array([0.40014, 0.00447])
    """
    with np.errstate(under="ignore"):
        p = np.exp(-slope * np.asarray(deficit, dtype=np.float64))
    return rivals * p / (1 + rivals * p)


def mean_overshoot(slope: float, rivals: float) -> float:
    """The integral of `tail` over all deficits, ln(G+1)/slope.

    With the right slope and `competitor_ratio_right`, it bounds the expected number of ranks by which the selected bin
    begins beyond the target.
    """
    return math.log1p(rivals) / slope


# The law of R leaves out deficits of less probability.
_NEGLIGIBLE = 1e-18

# Ranks of a group differ by at most this log-odds.
_GROUPED = 0.02


def rank_law(target: float, slope: float, rivals: float) -> RankLaw:
    """The law of the random rank R for target rank `target`.

    For slopes below 1/100, ranks are grouped and each group is counted at its lowest rank. A smaller R is conservative.
    """
    # The ranks below the target, in groups of `step`.
    top = math.ceil(target)
    reach = math.ceil((math.log1p(rivals) - math.log(_NEGLIGIBLE)) / slope)
    step = max(1, int(_GROUPED / slope))
    ranks = np.arange(top, max(0, top - reach - 1), -step, dtype=np.int64)[::-1]

    # P(R >= r) as probabilities of ranks, and the mass of smaller ones.
    at_least = 1 - tail(target - ranks + 1, slope, rivals)
    probabilities = at_least - np.append(at_least[1:], 0.0)
    return RankLaw(ranks, probabilities, 1 - float(at_least[0]) if ranks.size else 1.0)


def binomial_at_least(r: NDArray[Any], n: Any, p: float) -> NDArray[np.float64]:
    """P(Bin(n, p) >= r) for 1 <= r <= n, by the incomplete beta function (scipy's `bdtrc` fails from n = 2**24 on)."""
    from scipy.special import betainc

    return np.asarray(betainc(r, n - r + 1.0, p))


def marginal_coverage(n: int, target: float, slope: float, rivals: float) -> float:
    """E[min(R, n+1)]/(n+1): marginal coverage by the lemma alone (Theorem C1a). Ties allowed, exchangeable data."""
    ranks, probabilities, _ = rank_law(target, slope, rivals)
    return float(np.sum(np.minimum(ranks, n + 1) * probabilities)) / (n + 1)


def conditional_failure(n: int, level: float, target: float, slope: float, rivals: float) -> float:
    """An upper bound on P(coverage given the calibration data < level), for i.i.d. data (Theorem C1b).

    P(R = 0) + sum_r P(R = r) P(Bin(n, level) >= r); a rank above n stands for +inf and never fails.
    """
    return law_failure(rank_law(target, slope, rivals), n, level)


@np.errstate(under="ignore")
def law_failure(law: RankLaw, n: int, level: float) -> float:
    """P(R = 0) + sum_r P(R = r) P(Bin(n, level) >= r) for any law of the random rank (Theorem C1b)."""
    ranks, probabilities, bottom = law
    fails = np.where(ranks <= n, binomial_at_least(np.minimum(ranks, n), n, level), 0.0)
    return float(min(1.0, bottom + np.sum(probabilities * fails)))


def competitor_ratio(log_weights: NDArray[np.float64]) -> float:
    """The competitor ratio G: the largest total weight left of a candidate, relative to its own weight, rounded up.

    G = max_g (w_1 + ... + w_(g-1)) / w_g for public prior weights w_1 <= ... <= w_m, given by their logarithms, shape
    (m,). It is the only property of the weights that the certificates depend on, because only candidates left of the
    first one that covers with certainty can miss (docs/theory.md, section 2).

    Examples
    --------
    >>> competitor_ratio(np.zeros(1000))  # m - 1 for equal weights
    999.0
    >>> round(competitor_ratio(np.log(2) * np.arange(50)), 6)  # about 1/c if each is exp(c) times the one before
    1.0
    """
    if len(log_weights) == 1 or not log_weights.any():
        return float(len(log_weights) - 1)
    sums = np.logaddexp.accumulate(log_weights[:-1])
    # Every step of the sum is accurate to a few units in the last place of the largest logarithm.
    error = 4 * len(log_weights) * np.spacing(float(np.abs(sums).max(initial=1.0)) + math.log(len(log_weights)))
    with np.errstate(over="ignore"):
        return float(max(np.exp((sums - log_weights[1:]).max() + error), np.finfo(np.float64).tiny))


def competitor_ratio_right(log_weights: NDArray[np.float64]) -> float:
    """The largest total weight right of a candidate, relative to its own weight, rounded up."""
    return competitor_ratio(log_weights[::-1])
