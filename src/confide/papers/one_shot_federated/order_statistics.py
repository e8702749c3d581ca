"""Appendix C.1: the law of an order statistic."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.papers.checked import as_shares
from confide.papers.one_shot_federated.split_conformal import refuse_pair


def order_statistic_cdf(at: ArrayLike, l: int, n: int) -> NDArray[np.float64]:
    """Lemma C.1: how likely the l-th smallest of n scores is to be at most x, where one score is with probability F(x).

    sum_(i>=l) C(n, i) F^i (1-F)^(n-i), an incomplete beta function. (12) and (13): M(l, k) is what uniform scores
    cover; ties can only add to it.

    Parameters
    ----------
    at
        F(x), of any shape.
    l, n
        Rank, number of scores.

    Examples
    --------
    >>> float(order_statistic_cdf(0.5, 2, 2))
    0.25
    """
    from scipy.special import betainc

    refuse_pair(l, 1, 1, n)
    cdf: NDArray[np.float64] = betainc(l, n - l + 1, as_shares("at", at))
    return cdf


def order_statistic_density(at: ArrayLike, density: ArrayLike, l: int, n: int) -> NDArray[np.float64]:
    """Lemma C.1: the density n!/((l-1)!(n-l)!) f F^(l-1) (1-F)^(n-l) of the l-th smallest of n scores.

    Parameters
    ----------
    at, density
        F(x) and f(x), of one shape.
    l, n
        Rank, number of scores.

    Examples
    --------
    >>> round(float(order_statistic_density(0.5, 1.0, 2, 2)), 12)
    1.0
    """
    from scipy.stats import beta

    refuse_pair(l, 1, 1, n)
    result: NDArray[np.float64] = np.asarray(density) * beta.pdf(as_shares("at", at), l, n - l + 1)
    return result
