"""Appendix A.3 and C.5: every agent sends its largest score."""

import math

import numpy as np

from confide.papers.one_shot_federated.split_conformal import refuse_pair
from confide.support import Level, exact_level, positive_integer


def largest_scores_coverage(k: int, m: int, n: int) -> float:
    """Proposition A.1: M(n, k) = Gamma(k+1/n)/Gamma(k) Gamma(m+1)/Gamma(m+1+1/n): agents send their largest score.

    Computed as the product of i/(i + 1/n) over i = k..m, which loses no digits.

    Examples
    --------
    >>> round(largest_scores_coverage(3, 3, 3), 12)
    0.9
    """
    refuse_pair(n, k, m, n)
    return math.exp(-math.fsum(np.log1p(1 / (n * np.arange(k, m + 1))).tolist()))


def largest_scores_k(m: int, n: int, alpha: Level) -> int:
    """Proposition A.1: k_m = ceil(m (1-alpha)^n), for which coverage tends to at least 1-alpha as m grows.

    Only in the limit. The text after the proposition says that the server "obtains a valid coverage" with it; for a
    finite m coverage can be less: m = 10, n = 1, alpha = .1 cover 9/11. And as n grows k_m falls to 1, not to 0.

    Examples
    --------
    >>> largest_scores_k(10, 1, 0.1), round(largest_scores_coverage(9, 10, 1), 4)
    (9, 0.8182)
    """
    return math.ceil(positive_integer("m", m) * (1 - exact_level("alpha", alpha)) ** positive_integer("n", n))


def gamma_sum(k: int, n: int) -> float:
    """Lemma C.5: the sum of Gamma(j+1/n)/Gamma(j+1) over j = 0..k-1 is n k Gamma(k+1/n)/Gamma(k+1).

    Examples
    --------
    >>> round(gamma_sum(4, 1), 12)
    4.0
    """
    k, n = positive_integer("k", k), positive_integer("n", n)
    grown = math.exp(math.fsum(np.log1p(1 / (n * np.arange(1, k))).tolist()))
    return n * math.gamma(1 + 1 / n) * grown
