"""The random-rank lemma: privacy noise is a random, data-independent rank (docs/theory.md, Theorem C1).

For all data the selected candidate has B_J >= R for a random rank R with P(R >= r) = 1 - tail(T - r + 1), and R can be
taken independent of the data. So the threshold is at least the R-th smallest score: a non-private conformal threshold
whose rank is drawn from a known law.
"""

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.selection import Selector

RankLaw: TypeAlias = tuple[NDArray[np.int64], NDArray[np.float64], float]
"""Ranks r >= 1, their probabilities, and the remaining mass, which counts as rank 0 (no coverage)."""

_NEGLIGIBLE = 1e-18


def tail(
    deficit: NDArray[Any], slope: float, rivals: float, selector: Selector, *, lighter: bool = True
) -> NDArray[np.float64]:
    """An upper bound on the probability that the selected candidate misses the target by `deficit` ranks or more.

    With p = exp(-slope * deficit) and G = `rivals`, the candidates that fall short have a total weight of at most G p,
    compared with one of weight 1. The bound is Gp / (1 + Gp) for the exponential mechanism. For permute-and-flip it is
    1 - (1 - (1-p)^(G+1)) / ((G+1)p) if each of them has a weight of at most p (`lighter`, as left of the target).
    Otherwise it is Gp/2, or 1 - 1/(2Gp) where Gp > 1. Deficits may have any shape. The slope is in log-odds per rank.

    Examples
    --------
    >>> tail(np.array([5.0, 10.0]), 1.0, 99.0, "permute_and_flip").round(5)
    array([0.27071, 0.00224])
    """
    with np.errstate(under="ignore"):
        p = np.exp(-slope * np.asarray(deficit, dtype=np.float64))
    if selector == "exponential":
        worst: NDArray[np.float64] = rivals * p / (1 + rivals * p)
        return worst
    if not lighter:
        with np.errstate(divide="ignore", over="ignore"):
            together = rivals * p
            return np.where(together <= 1, together / 2, 1 - 1 / (2 * together))
    m = rivals + 1
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        closed = 1 + np.expm1(m * np.log1p(-p)) / (m * p)
        # For small mp the closed form loses its digits. (1-sp)^G >= 1 - Gsp if G >= 1, and >= 1 - Gsp/(1-p) else.
        small = rivals * p / 2 / (1.0 if rivals >= 1 else 1 - p)
    return np.where(m * p < 1e-5, small, closed)


def mean_overshoot(slope: float, rivals: float, selector: Selector, *, lighter: bool = True) -> float:
    """The integral of `tail` over all deficits.

    Permute-and-flip: (H_(G+1) - 1)/slope, H the harmonic number; without `lighter` (ln G + 1/(2G))/slope, or
    G/(2 slope) if G < 1. Exponential mechanism: ln(G+1)/slope. With the right slope and `competitor_ratio_right`, it
    bounds the expected number of ranks by which the selected bin begins beyond the target.

    Examples
    --------
    >>> round(mean_overshoot(0.25, 999.0, "permute_and_flip"), 2)
    25.94
    """
    from scipy.special import digamma

    if selector == "exponential":
        return math.log1p(rivals) / slope
    if not lighter:
        return (math.log(rivals) + 1 / (2 * rivals) if rivals >= 1 else rivals / 2) / slope
    return float(digamma(rivals + 2) + np.euler_gamma - 1) / slope


def rank_law(target: float, slope: float, rivals: float, selector: Selector) -> RankLaw:
    """The law of the random rank R for target rank `target`.

    For slopes below 1/100, ranks are grouped and each group is counted at its lowest rank. A smaller R is conservative.

    Examples
    --------
    >>> ranks, probabilities, bottom = rank_law(90.0, 1.0, 99.0, "permute_and_flip")
    >>> int(ranks.max()), round(float(probabilities.sum() + bottom), 12)
    (90, 1.0)
    """
    top = math.ceil(target)
    reach = math.ceil((math.log1p(rivals) - math.log(_NEGLIGIBLE)) / slope)
    step = max(1, int(0.02 / slope))
    ranks = np.arange(top, max(0, top - reach - 1), -step, dtype=np.int64)[::-1]
    at_least = 1 - tail(target - ranks + 1, slope, rivals, selector)
    return ranks, at_least - np.append(at_least[1:], 0.0), 1 - float(at_least[0]) if ranks.size else 1.0


def rank_law_of(target: int, deficit: NDArray[np.float64]) -> RankLaw:
    """The law of R = T - N from the law of the rank deficit, P(N = 0), P(N = 1), ...; missing mass is N = +inf.

    Examples
    --------
    >>> ranks, probabilities, bottom = rank_law_of(2, np.array([0.5, 0.25, 0.125]))
    >>> ranks.tolist(), probabilities.tolist(), bottom
    ([1, 2], [0.25, 0.5], 0.25)
    """
    ranks = target - np.arange(len(deficit), dtype=np.int64)
    keep = ranks >= 1
    return ranks[keep][::-1], deficit[keep][::-1], max(0.0, 1.0 - float(deficit[keep].sum()))


def binomial_at_least(r: NDArray[Any], n: Any, p: float) -> NDArray[np.float64]:
    """P(Bin(n, p) >= r) for 1 <= r <= n, by the incomplete beta function (scipy's `bdtrc` fails from n = 2**24 on).

    Examples
    --------
    >>> binomial_at_least(np.array([1, 2]), 2, 0.5)
    array([0.75, 0.25])
    """
    from scipy.special import betainc

    probability: NDArray[np.float64] = betainc(r, n - r + 1.0, p)
    return probability


def marginal_coverage(n: int, target: float, slope: float, rivals: float, selector: Selector) -> float:
    """E[min(R, n+1)]/(n+1): marginal coverage by the lemma alone (Theorem C1a). Ties allowed, exchangeable data.

    Examples
    --------
    >>> round(marginal_coverage(1000, 910.0, 0.72, 999.0, "permute_and_flip"), 4)
    0.9006
    """
    ranks, probabilities, _ = rank_law(target, slope, rivals, selector)
    return float(np.sum(np.minimum(ranks, n + 1) * probabilities)) / (n + 1)


def conditional_failure(n: int, level: float, target: float, slope: float, rivals: float, selector: Selector) -> float:
    """An upper bound on P(coverage given the calibration data < level), for i.i.d. data (Theorem C1b).

    P(R = 0) + sum_r P(R = r) P(Bin(n, level) >= r); a rank above n stands for +inf and never fails.

    Examples
    --------
    >>> round(conditional_failure(1000, 0.9, 926.0, 0.72, 999.0, "permute_and_flip"), 3)
    0.038
    """
    return law_failure(rank_law(target, slope, rivals, selector), n, level)


@np.errstate(under="ignore")
def law_failure(law: RankLaw, n: int, level: float) -> float:
    """P(R = 0) + sum_r P(R = r) P(Bin(n, level) >= r) for any law of the random rank (Theorem C1b).

    Examples
    --------
    >>> round(law_failure((np.array([95]), np.array([1.0]), 0.0), 100, 0.9), 4)
    0.0576
    """
    ranks, probabilities, bottom = law
    fails = np.where(ranks <= n, binomial_at_least(np.minimum(ranks, n), n, level), 0.0)
    return float(min(1.0, bottom + np.sum(probabilities * fails)))
