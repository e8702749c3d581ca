"""Statements about order statistics and split conformal prediction, for identically distributed silos."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.errors import InputError
from confide.federated import coverage_fraction
from confide.papers.checked import as_shares
from confide.papers.fedcp_qq import published_ranks
from confide.support import Level, exact_level, positive_integer

# Order statistics, and the checks of ranks.


def order_statistic(scores: ArrayLike, k: int) -> float:
    """Equation (2): the k-th smallest score, or +inf if there are fewer scores.

    Parameters
    ----------
    scores
        Shape (n,).
    k
        At least 1.

    Raises
    ------
    InputError
        If k is not a positive integer.

    Examples
    --------
    >>> order_statistic([0.3, 0.1, 0.2], 2), order_statistic([0.3], 2)
    (0.2, inf)
    """
    k = positive_integer("k", k)
    sorted_scores = np.sort(np.asarray(scores, dtype=np.float64).ravel())
    return float(sorted_scores[k - 1]) if k <= len(sorted_scores) else math.inf


def order_statistic_cdf(at: ArrayLike, l: int, n: int) -> NDArray[np.float64]:
    """Lemma C.1: probability that the l-th smallest of n scores is at most x, if that of one score is F(x).

    sum_(i>=l) C(n, i) F^i (1-F)^(n-i), an incomplete beta function. (12) and (13): M(l, k) is the coverage for uniform
    scores; ties can only increase it.

    Parameters
    ----------
    at
        F(x), of any shape.
    l, n
        Rank, and number of scores.

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
        Rank, and number of scores.

    Examples
    --------
    >>> round(float(order_statistic_density(0.5, 1.0, 2, 2)), 12)
    1.0
    """
    from scipy.stats import beta

    refuse_pair(l, 1, 1, n)
    result: NDArray[np.float64] = np.asarray(density) * beta.pdf(as_shares("at", at), l, n - l + 1)
    return result


def refuse_pair(l: int, k: int, m: int, n: int) -> None:
    """Raise `InputError` for a pair (l, k) outside of [1, n] x [1, m]."""
    for name, value, most in (("l", l, n), ("k", k, m)):
        if positive_integer(name, value) > most:
            raise InputError(name, f"must be an integer from 1 to {most}", got=str(value))


# Split conformal prediction.


def conformal_rank(n: int, alpha: Level) -> int:
    """Section 2.1: the rank ceil((n+1)(1-alpha)) of split conformal prediction; n + 1 means +inf.

    It also gives both special cases of Section 3.2. For m agents with one score each, k is `conformal_rank(m, alpha)`.
    For n -> inf agents send the scores of rank l = `conformal_rank(n, alpha)`, and M(l, k) -> 1-alpha for every k. For
    finite n this limit does not apply, and small k cover less.

    Examples
    --------
    >>> conformal_rank(99, 0.1), conformal_rank(5, 0.1)
    (90, 6)
    """
    return math.ceil((positive_integer("n", n) + 1) * (1 - exact_level("alpha", alpha)))


def split_conformal_bounds(n: int, alpha: Level) -> tuple[float, float]:
    """Theorem 2.1: lower bound of the coverage of split conformal prediction and, without ties, its upper bound.

    1-alpha and 1-alpha + 1/(n+1). For continuous scores coverage is `conformal_rank(n, alpha)` / (n+1) exactly.

    Examples
    --------
    >>> low, high = split_conformal_bounds(9, 0.25)
    >>> low <= conformal_rank(9, 0.25) / 10 <= high
    True
    """
    wanted = 1 - exact_level("alpha", alpha)
    return float(wanted), float(wanted + Fraction(1, positive_integer("n", n) + 1))


# Coverage given the calibration data.


def published_deviation(m: int, n: int, delta: Level) -> float:
    """Theorem 3.3, (8): if l k >= (1-alpha) m n, coverage given the data is at least 1-alpha minus this.

    This holds with probability 1-delta. The value is sqrt(log(1/delta) / (2 m n)), by the one-sided inequality of
    Dvoretzky, Kiefer, Wolfowitz and Massart, which is proved for delta up to 1/2. It is not proved for the pair
    (l*, k*) of Algorithm 1, whose product can be smaller.

    Raises
    ------
    InputError
        If delta is not in (0, 0.5].

    Examples
    --------
    >>> round(published_deviation(5, 200, 0.05), 4)
    0.0387
    """
    exact = exact_level("delta", delta)
    if exact > Fraction(1, 2):
        raise InputError("delta", "must be in (0, 0.5], a condition of Theorem 3.3", got=f"{float(exact):g}")
    return math.sqrt(-math.log(float(exact)) / (2 * positive_integer("m", m) * positive_integer("n", n)))


def published_conditional_k(l: int, m: int, n: int, level: Level) -> int | None:
    """Theorem 3.3: the smallest k to which it applies, l k >= level m n with level = 1-alpha; None if k exceeds m.

    Examples
    --------
    >>> published_conditional_k(190, 5, 200, 0.9)
    5
    """
    k = math.ceil(exact_level("level", level) * m * n / l)
    return k if k <= m else None


def conditional_miscoverage(l: int, k: int, m: int, n: int, alpha: Level, delta: Level) -> float:
    """Theorem 3.3, (7) and (8): with probability 1-delta the miscoverage given the data is at most this.

    alpha + sqrt(log(1/delta) / (2 m n)) for the set (4) of a pair (l, k) with l k >= (1-alpha) m n.

    Raises
    ------
    InputError
        If l k < (1-alpha) m n, delta is not in (0, 0.5], or the pair is out of range.

    Examples
    --------
    >>> round(conditional_miscoverage(190, 5, 5, 200, 0.1, 0.05), 4)
    0.1387
    """
    refuse_pair(l, k, m, n)
    level = exact_level("alpha", alpha)
    if l * k < (1 - level) * m * n:
        raise InputError(
            "l k",
            f"must be at least (1-alpha) m n = {float((1 - level) * m * n):g}, a condition of Theorem 3.3",
            got=str(l * k),
        )
    return float(level) + published_deviation(m, n, delta)


# Silos of unequal sizes, and silos that send their largest score.


def unequal_coverage_sum(sizes: Sequence[int], ranks: Sequence[int], k: int) -> Fraction:
    """Appendix A.1: M(l_1, ..., l_m, k) by the sum over subsets of agents, as a rational number.

    Suitable for up to a few hundred scores in all. `confide.federated.order_statistic_coverage` is the integral form.

    Raises
    ------
    InputError
        If a rank is not in 1..n_j + 1 (n_j + 1 means +inf), or k is not in 1..m.

    Examples
    --------
    >>> unequal_coverage_sum([2, 3], [2, 2], 1)
    Fraction(13, 30)
    """
    if len(sizes) != len(ranks):
        raise InputError("ranks", "must be one per size", got=f"{len(ranks)} for {len(sizes)}")
    for n, l in zip(sizes, ranks, strict=True):
        refuse_pair(l, k, len(sizes), n + 1)
    return coverage_fraction(sizes, ranks, k)


def unequal_ranks(sizes: Sequence[int], alpha: Level) -> tuple[int, ...]:
    """Appendix A.1: l_j = ceil((1-alpha)(n_j+1)), after which only k is searched; n_j + 1 means +inf.

    Examples
    --------
    >>> unequal_ranks([9, 99, 200], 0.1)
    (9, 90, 181)
    """
    return published_ranks([positive_integer("sizes", n) for n in sizes], 1 - exact_level("alpha", alpha))


def largest_scores_coverage(k: int, m: int, n: int) -> float:
    """Proposition A.1: M(n, k) = Gamma(k+1/n)/Gamma(k) Gamma(m+1)/Gamma(m+1+1/n): agents send their largest score.

    The function computes the product of i/(i + 1/n) over i = k..m, which is numerically accurate.

    Examples
    --------
    >>> round(largest_scores_coverage(3, 3, 3), 12)
    0.9
    """
    refuse_pair(n, k, m, n)
    return math.exp(-math.fsum(np.log1p(1 / (n * np.arange(k, m + 1))).tolist()))


def largest_scores_k(m: int, n: int, alpha: Level) -> int:
    """Proposition A.1: k_m = ceil(m (1-alpha)^n), for which coverage tends to at least 1-alpha as m grows.

    This holds only in the limit. The text after the proposition states that the server "obtains a valid coverage" with
    it. For finite m coverage can be less: with m = 10, n = 1, alpha = 0.1 it is 9/11. As n grows, k_m falls to 1, not
    to 0.

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


# M(l, k) by multivariate hypergeometric probabilities.


def rectangle_probability(low: NDArray[np.int64], high: NDArray[np.int64], n: int, r: int) -> float:
    """(11): P(a_i <= H_i <= b_i for all i), H multivariate hypergeometric: r drawn from m urns of n each.

    P(sum T_i = r) prod P(a_i <= W_i <= b_i) / P(sum W_i = r) with W_i ~ Bin(n, t) and T_i that law within [a_i, b_i],
    for any t; here t = r/(mn), where P(sum W_i = r) is largest.

    Parameters
    ----------
    low, high
        a and b, shape (m,), integers with 0 <= a_i <= b_i <= n.
    n, r
        Size of an urn, and total number of draws.

    Examples
    --------
    >>> round(rectangle_probability(np.array([1, 0]), np.array([2, 1]), 2, 2), 6)
    0.833333
    """
    from scipy.stats import binom

    # Bin(n, t) with the t at which the total is likeliest.
    m = len(low)
    if not 0 <= r <= m * n:
        raise InputError("r", f"must lie in 0..{m * n}, the total number of balls", got=str(r))
    t, numbers = r / (m * n), np.arange(n + 1)
    mass = binom.pmf(numbers, n, t)

    # The law of the total within the rectangle. It includes the product of the P(a_i <= W_i <= b_i), because the
    # truncated laws are not normalised.
    total = np.ones(1)
    for a, b in zip(low, high, strict=True):
        total = np.convolve(total, np.where((numbers >= a) & (numbers <= b), mass, 0.0))
    return float(total[r] / binom.pmf(r, m * n, t))


def qq_coverage_by_rectangles(l: int, k: int, m: int, n: int) -> float:
    """Appendix A.2 (Lebrun 2013): M(l, k) = 1 - 1/(mn+1) sum_(j>=k) C(m, j) sum_r p_r, r from j l to j n + (m-j)(l-1).

    For cross-checks: it needs m convolutions for each j and r. `confide.federated.qq_coverage` is one integral.

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
