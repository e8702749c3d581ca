"""One-shot federated conformal prediction, by number.

Humbert, Le Bars, Bellet and Arlot, "One-shot federated conformal prediction", ICML 2023 (PMLR 202).

Order statistics, split conformal prediction   2      (2), Theorem 2.1, the particular cases of 3.2
                                               3.4    Theorem 3.3
                                               A.1-3  unequal sizes, (11), Proposition A.1, Lemma C.5
                                               C.1    Lemma C.1
Quantiles of quantiles                         3.1-3  Definition 3.1, Theorem 3.2, (5), (6), Figures 1, 6, 7
                                               4      Algorithms 2 and 3, (9), (10), Theorem 4.1, Remark 4.2, Lemma C.4
Section 3.5, silos with different distributions, is `confide.papers.different_silos`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.errors import InputError
from confide.federated import (
    PublishedChoice,
    best_published,
    coverage_fraction,
    published_at,
    published_correction,
    qq_coverage,
)
from confide.papers import private_prediction_sets
from confide.papers.checked import as_shares, check_ranks
from confide.papers.fedcp_qq import best_qq, published_ranks
from confide.support import Level, exact_level, positive_integer, privacy_loss, require

# Order statistics.


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

    check_ranks(l, 1, 1, n)
    cdf: NDArray[np.float64] = betainc(l, n - l + 1, as_shares("at", at))
    return cdf


def order_statistic_density(at: ArrayLike, density: ArrayLike, l: int, n: int) -> NDArray[np.float64]:
    """Lemma C.1: the density n!/((l-1)!(n-l)!) f F^(l-1) (1-F)^(n-l) of the l-th smallest of n scores.

    Parameters
    ----------
    at, density
        F(x) and f(x), of one shape.
    l, n
        As in `order_statistic_cdf`.

    Examples
    --------
    >>> round(float(order_statistic_density(0.5, 1.0, 2, 2)), 12)
    1.0
    """
    from scipy.stats import beta

    check_ranks(l, 1, 1, n)
    result: NDArray[np.float64] = np.asarray(density) * beta.pdf(as_shares("at", at), l, n - l + 1)
    return result


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
    must = "must be in (0, 0.5], a condition of Theorem 3.3"
    require("delta", exact <= Fraction(1, 2), must, got=f"{float(exact):g}")
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
    check_ranks(l, k, m, n)
    level = exact_level("alpha", alpha)
    least = (1 - level) * m * n
    must = f"must be at least (1-alpha) m n = {float(least):g}, a condition of Theorem 3.3"
    require("l k", l * k >= least, must, got=str(l * k))
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
    require("ranks", len(sizes) == len(ranks), "must be one per size", got=f"{len(ranks)} for {len(sizes)}")
    for n, l in zip(sizes, ranks, strict=True):
        check_ranks(l, k, len(sizes), n + 1)
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
    check_ranks(n, k, m, n)
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
    require("r", 0 <= r <= m * n, f"must lie in 0..{m * n}, the total number of balls", got=str(r))
    t = r / (m * n)
    numbers = np.arange(n + 1)
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

    check_ranks(l, k, m, n)
    missed = 0.0
    for j in range(k, m + 1):
        above = np.arange(m) < j
        low = np.where(above, l, 0)
        high = np.where(above, n, l - 1)
        terms = (rectangle_probability(low, high, n, r) for r in range(j * l, j * n + (m - j) * (l - 1) + 1))
        missed += float(comb(m, j)) * sum(terms)
    return 1 - missed / (m * n + 1)


# Quantiles of quantiles without privacy.


def quantile_of_quantiles(scores: Sequence[ArrayLike], l: int, k: int) -> float:
    """Definition 3.1, (3): the k-th smallest of the agents' l-th smallest scores; the set (4): all y of score <= this.

    Parameters
    ----------
    scores
        Scores of every agent, of any number.
    l, k
        Ranks within an agent and among the replies.

    Examples
    --------
    >>> quantile_of_quantiles([[0.1, 0.5], [0.2, 0.3], [0.4, 0.9]], 2, 2)
    0.5
    """
    return order_statistic([order_statistic(silo, l) for silo in scores], k)


def qq_coverage_sum(l: int, k: int, m: int, n: int) -> Fraction:
    """Theorem 3.2, (5): M(l, k) by the published sum, as a rational number.

    1 - 1/(mn+1) sum_(j>=k) C(m, j) sum C(n, i_1)...C(n, i_m) / C(mn, i_1+...+i_m), with i_1..i_j in l..n and the
    others in 0..l-1. Coverage is at least M(l, k), and equal to it for continuous scores. The sum is suitable for a few
    hundred scores in all. `confide.federated.qq_coverage` is the same number as an integral, for any number of scores.
    Appendix C.1 writes M(n, k) for M(l, k).

    Raises
    ------
    InputError
        If l is not in 1..n or k not in 1..m.

    Examples
    --------
    >>> qq_coverage_sum(2, 3, m=4, n=5)
    Fraction(52519, 138567)
    """
    m, n = positive_integer("m", m), positive_integer("n", n)
    check_ranks(l, k, m, n)
    return coverage_fraction([n] * m, [l] * m, k)


def qq_coverage_table(m: int, n: int) -> NDArray[np.float64]:
    """Figures 6 and 7: M(l, k) for all pairs, shape (n, m). Non-decreasing in l and in k, by Appendix A.2.

    Examples
    --------
    >>> int((qq_coverage_table(5, 10) >= 0.9).sum())
    4
    """
    return qq_coverage(np.arange(1, n + 1)[:, None], np.arange(1, m + 1), m, n)


@dataclass(frozen=True)
class UpperBounds:
    """Section 3.3, Figure 1: the coverage of FedCP-QQ and upper bounds of split conformal prediction.

    Parameters
    ----------
    exact
        M(l*, k*), for continuous scores.
    centralised
        1-alpha + 1/(mn+1): the bound of Theorem 2.1 for all scores together.
    one_agent
        1-alpha + 1/(n+1): the bound for the scores of a single agent.
    constant
        (mn+1)(M(l*, k*) - (1-alpha)). The paper proves no upper bound for M(l*, k*). It conjectures a bound of the
        "same order as in the centralized framework", 1-alpha + O(1/(mn+1)), that is, that this number stays bounded. It
        grows with m: over n < 1500 at alpha = 0.1 it reaches 1.85, 2.54, 3.88 and 5.54 for m = 2, 3, 5 and 10.
    """

    exact: float
    centralised: float
    one_agent: float
    constant: float


def upper_bounds(m: int, n: int, alpha: Level) -> UpperBounds:
    """Section 3.3, Figure 1: M(l*, k*), the two upper bounds for comparison, and the constant of the conjecture.

    Raises
    ------
    InputError
        If no pair reaches 1-alpha: mn is below (1-alpha)/alpha.

    Examples
    --------
    >>> bounds = upper_bounds(5, 10, 0.1)
    >>> round(bounds.exact, 5), round(bounds.centralised, 5), round(bounds.one_agent, 5), round(bounds.constant, 2)
    (0.92563, 0.91961, 0.99091, 1.31)
    """
    wanted = 1 - exact_level("alpha", alpha)
    best = best_qq(m, n, wanted)
    if best is None:
        raise InputError("m n", f"must be at least (1-alpha)/alpha = {float(wanted / (1 - wanted)):g}", got=str(m * n))
    _, centralised = split_conformal_bounds(m * n, alpha)
    _, one_agent = split_conformal_bounds(n, alpha)
    constant = (m * n + 1) * (best.coverage - float(wanted))
    return UpperBounds(best.coverage, centralised, one_agent, constant)


# Quantiles of quantiles with privacy.


def quantile_sensitivity(q: float) -> float:
    """Algorithm 2: Delta_q = max(1/q, 1/(1-q)), the change of a weight if one score of the agent is replaced.

    Examples
    --------
    >>> quantile_sensitivity(0.8)
    5.0...
    """
    return max(1 / _share("q", q), 1 / (1 - q))


def quantile_law(counts: ArrayLike, q: float, epsilon: float) -> NDArray[np.float64]:
    """Algorithm 2: probability that each bin is the private quantile, exp(-epsilon w_b / (2 Delta_q)) normalised.

    w_b = max(scores below e_b / q, scores above e_b / (1-q)). It is epsilon-differentially private when one score is
    replaced, so each agent has the epsilon-LDP of (9). A silo draws it with `confide.federated.published_quantile`.

    Parameters
    ----------
    counts
        Scores in every bin (e_(b-1), e_b], shape (B,).
    q
        In (0, 1).
    epsilon
        Privacy loss.

    Examples
    --------
    >>> quantile_law([5, 3, 2], 0.8, 2.0).round(4)
    array([0.0243, 0.4879, 0.4879])
    """
    loss = privacy_loss("epsilon", epsilon)
    return private_prediction_sets.quantile_law(counts, _share("q", q), loss)


def quantile_shortfall(n: int, bins: int, epsilon: float, delta: float) -> float:
    """Lemma C.4, (19): for q in [1/2, 1), a share of at least q minus this lies at or below the output.

    This holds with probability 1-delta for any scores. The value is 2 log(B/delta) / (n epsilon).

    Examples
    --------
    >>> round(quantile_shortfall(200, 100, 5.0, 0.05), 4)
    0.0152
    """
    n, bins = positive_integer("n", n), positive_integer("bins", bins)
    return 2 * math.log(bins / _share("delta", delta)) / (n * privacy_loss("epsilon", epsilon))


@dataclass(frozen=True)
class PrivateRanks:
    """Algorithm 3: the request of the server, and the coverage by Theorem 4.1.

    Parameters
    ----------
    l, k
        (l_gamma, k_gamma), the pair of Algorithm 1 for the level (1-alpha)/(1-gamma alpha).
    correction
        l_cor of (10).
    quantile
        q = max((l + l_cor)/n, 1/2), the target of Algorithm 2 at every agent.
    coverage_at_least
        M(l, k)(1 - gamma alpha), by (20) and (21); at least 1-alpha.
    """

    l: int
    k: int
    correction: int
    quantile: float
    coverage_at_least: float


def private_ranks(m: int, n: int, alpha: Level, epsilon: float, bins: int, gamma: float) -> PrivateRanks | None:
    """Algorithm 3, (10), Theorem 4.1: (l_gamma, k_gamma), l_cor and q for one gamma; None if no rank is left.

    Algorithm 2 requires q < 1, and the text does not specify l_gamma + l_cor >= n. Here the value n is accepted, with
    the limit of the weights, which are the scores above e_b. Larger values give None.

    Parameters
    ----------
    m, n
        Number of agents, and of scores in each.
    alpha, epsilon
        Miscoverage level, and privacy loss of each agent.
    bins
        B.
    gamma
        The share of alpha that is reserved for the noise, in (0, 1).

    Examples
    --------
    >>> private_ranks(5, 200, 0.1, 5.0, 100, 0.02)
    PrivateRanks(l=179, k=4, correction=5, quantile=0.92, coverage_at_least=0.900...)
    """
    share = _share("gamma", gamma) * float(exact_level("alpha", alpha))
    choice = published_at(gamma, m, n, alpha, epsilon, bins)
    if choice is None:
        return None
    l_cor = private_correction(m, alpha, epsilon, bins, gamma)
    l = choice.rank - l_cor
    return PrivateRanks(
        l,
        choice.k,
        correction=l_cor,
        quantile=max(choice.rank / n, 0.5),
        coverage_at_least=float(qq_coverage(l, choice.k, m, n)) * (1 - share),
    )


def private_correction(m: int, alpha: Level, epsilon: float, bins: int, gamma: float) -> int:
    """(10): l_cor = ceil((2/epsilon) log(B / (1 - (1 - gamma alpha)^(1/m)))).

    Examples
    --------
    >>> private_correction(5, 0.1, 5.0, 100, 0.02)
    5
    """
    share = _share("gamma", gamma) * float(exact_level("alpha", alpha))
    return published_correction(privacy_loss("epsilon", epsilon), positive_integer("bins", bins), m, share)


def best_gamma(m: int, n: int, alpha: Level, epsilon: float, bins: int) -> PublishedChoice | None:
    """Section 4, "Choosing gamma", Figure 2: the gamma of least M(l_gamma + l_cor, k_gamma); None if there is none.

    The paper searches a grid that it does not state. This function searches all gamma in (0, 1), which is at least as
    good as any grid. Figure 2 shows the `compensation`.

    Examples
    --------
    >>> round(best_gamma(5, 200, 0.1, 10.0, 100).compensation, 5)
    0.91497
    """
    return best_published(m, n, alpha, epsilon, bins)


def loss_of_pipeline(training: float, calibration: float) -> float:
    """Remark 4.2: privacy loss of training and calibration together, if no record is in both: the larger of the two.

    The assignment of records to training and calibration must not depend on the records.

    Examples
    --------
    >>> loss_of_pipeline(8.0, 1.0)
    8.0
    """
    return max(privacy_loss("training", training), privacy_loss("calibration", calibration))


def _share(name: str, value: float) -> float:
    require(name, 0 < value < 1, "must be strictly between 0 and 1", got=repr(value))
    return value
