"""Appendix A.2: M(l, k) by rectangular probabilities of the multivariate hypergeometric law (Lebrun 2013)."""

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.papers.one_shot_federated.split_conformal import refuse_pair


def rectangle_probability(low: NDArray[np.int64], high: NDArray[np.int64], n: int, r: int) -> float:
    """(11): P(a_i <= H_i <= b_i for all i), H multivariate hypergeometric: r drawn from m urns of n each.

    P(sum T_i = r) prod P(a_i <= W_i <= b_i) / P(sum W_i = r) with W_i ~ Bin(n, t) and T_i that law within [a_i, b_i],
    for any t; here t = r/(mn), where P(sum W_i = r) is largest.

    Parameters
    ----------
    low, high
        a and b, shape (m,), whole numbers with 0 <= a_i <= b_i <= n.
    n, r
        Size of an urn, and how many are drawn of all.

    Examples
    --------
    >>> round(rectangle_probability(np.array([1, 0]), np.array([2, 1]), 2, 2), 6)
    0.833333
    """
    from scipy.stats import binom

    m = len(low)
    if not 0 <= r <= m * n:
        raise InputError(f"r must lie in 0..{m * n}, the number of all balls; found {r}")
    t = r / (m * n)
    mass = binom.pmf(np.arange(n + 1), n, t)
    total = np.ones(1)
    for a, b in zip(low, high, strict=True):
        total = np.convolve(total, np.where((np.arange(n + 1) >= a) & (np.arange(n + 1) <= b), mass, 0.0))
    # The product of the P(a_i <= W_i <= b_i) is in `total`, as the truncated laws are not normalised.
    return float(total[r] / binom.pmf(r, m * n, t))


def qq_coverage_by_rectangles(l: int, k: int, m: int, n: int) -> float:
    """Appendix A.2: M(l, k) = 1 - 1/(mn+1) sum_(j>=k) C(m, j) sum_r p_r, r from j l to j n + (m-j)(l-1).

    For cross-checking: it takes m convolutions for each j and r. `confide.federated.qq_coverage` is one integral.

    Examples
    --------
    >>> round(qq_coverage_by_rectangles(2, 3, m=4, n=5), 6)
    0.379015
    """
    from scipy.special import comb

    refuse_pair(l, k, m, n)
    missed = 0.0
    for j in range(k, m + 1):
        above = np.arange(m) < j
        low, high = np.where(above, l, 0), np.where(above, n, l - 1)
        terms = (rectangle_probability(low, high, n, r) for r in range(j * l, j * n + (m - j) * (l - 1) + 1))
        missed += float(comb(m, j)) * sum(terms)
    return 1 - missed / (m * n + 1)
