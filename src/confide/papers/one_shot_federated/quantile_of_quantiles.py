"""Quantiles of quantiles: without privacy, with privacy, and for silos with different distributions.

A distribution function is given as a curve on [0, 1]: for agent j, F_j(F_S^-1(u)), the share of its scores at or below
the u-quantile of the test score S. For scores half as large as uniform test scores it is `lambda u: min(2 u, 1)`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.errors import InputError
from confide.federated import (
    PublishedChoice,
    ReplyLaw,
    best_published,
    coverage_fraction,
    expectation,
    order_statistic_coverage,
    poisson_binomial,
    published_at,
    published_correction,
    qq_coverage,
)
from confide.papers.checked import as_counts, as_shares
from confide.papers.fedcp_qq import best_qq
from confide.papers.one_shot_federated.order_statistics import order_statistic, refuse_pair, split_conformal_bounds
from confide.support import Level, exact_level, positive_integer, privacy_loss

# Without privacy.


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
    refuse_pair(l, k, m, n)
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
    centralised = split_conformal_bounds(m * n, alpha)[1]
    one_agent = split_conformal_bounds(n, alpha)[1]
    return UpperBounds(
        exact=best.coverage,
        centralised=centralised,
        one_agent=one_agent,
        constant=(m * n + 1) * (best.coverage - float(wanted)),
    )


# With privacy.


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
    counts = as_counts("counts", counts)
    up_to = np.cumsum(counts)

    # Relative to the largest exponent, so that no weight overflows.
    weight = np.maximum((up_to - counts) / _share("q", q), (up_to[-1] - up_to) / (1 - q))
    exponent = -privacy_loss("epsilon", epsilon) * weight / (2 * quantile_sensitivity(q))
    weights = np.exp(exponent - exponent.max())
    law: NDArray[np.float64] = weights / weights.sum()
    return law


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
    if not 0 < value < 1:
        raise InputError(name, "must be strictly between 0 and 1", got=repr(value))
    return value


# Silos with different distributions.

Curve: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]

# The absolute error of integrals over the test score.
_TOLERANCE = 1e-14


@dataclass(frozen=True)
class NonIidReply:
    """Reply of agent j, whose scores have their own distribution: the l-th smallest of n.

    Parameters
    ----------
    scores_below
        F_j(F_S^-1(u)) for u of shape (nodes,), increasing from 0 to at most 1.
    n, l
        Number of scores, and rank of the sent score.

    Examples
    --------
    >>> float(NonIidReply(lambda u: u, 1, 1).below(np.array([0.25]))[0])
    0.25
    """

    scores_below: Curve
    n: int
    l: int

    def below(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """p_j*(S) at S = F_S^-1(u): probability that the reply lies at or below it."""
        from scipy.special import betainc

        at = np.asarray(self.scores_below(u), dtype=np.float64)
        if at.shape != u.shape or not bool(np.all((at >= 0) & (at <= 1))):
            raise InputError("scores_below", "must give a number in [0, 1] for every u")
        result: NDArray[np.float64] = betainc(self.l, self.n - self.l + 1, at)
        return result


def non_iid_coverage(silos: Sequence[Curve], l: int, k: int, n: int) -> float:
    """(16): true coverage with silos of different distributions, 1 - E[P(PoisBin(p*(S)) >= k)], exact without ties.

    Our certificates for silos of one distribution and unequal sizes use this law.

    Parameters
    ----------
    silos
        F_j(F_S^-1(u)), one non-decreasing curve per silo.
    l, k, n
        Ranks within a silo and among the replies; number of scores in each silo.

    Examples
    --------
    >>> halves = [lambda u: np.minimum(2 * u, 1)] * 5
    >>> round(non_iid_coverage(halves, 19, 3, 20), 3)
    0.457
    """
    refuse_pair(l, k, len(silos), n)
    return order_statistic_coverage([NonIidReply(silo, n, l) for silo in silos], k)


@dataclass(frozen=True)
class NonIidBound:
    """Components of Proposition 3.4.

    Parameters
    ----------
    iid_coverage
        M(l, k), which replaces 1-alpha in the proof and is at least that for (l*, k*).
    distance
        E[TV(PoisBin(p*(S)), Bin(m, p~*(S~)))], the largest possible decrease of coverage.
    coverage_at_least
        `iid_coverage` - `distance`: the lower bound of the proposition. It is vacuous below 0.
    """

    iid_coverage: float
    distance: float
    coverage_at_least: float


def non_iid_bound(silos: Sequence[Curve], l: int, k: int, n: int, auxiliary: Curve | None = None) -> NonIidBound:
    """Proposition 3.4, (15), (18): coverage >= 1-alpha - E[TV(PoisBin(p*(S)), Bin(m, p~*(S~)))], M(l, k) for 1-alpha.

    The scores of agent j have their own distribution, S has another one, and all are independent. The auxiliary scores
    S~_i and S~ are i.i.d., and S~ may depend on S (Remark C.2).

    Parameters
    ----------
    silos
        F_j(F_S^-1(u)), one curve per silo.
    l, k, n
        Ranks within a silo and among the replies; number of scores in each silo.
    auxiliary
        F~(S~) as a function of u where S = F_S^-1(u): any map of [0, 1] to itself that preserves the uniform law. By
        default S~ = S and the S~_i are copies of it, which Remark C.2 conjectures to be a good choice. It need not be
        the best: for silos with scores half as large, u -> 2u mod 1 gives more.

    Examples
    --------
    >>> halves = [lambda u: np.minimum(2 * u, 1)] * 5
    >>> non_iid_bound(halves, 19, 3, 20)
    NonIidBound(iid_coverage=0.9136..., distance=0.5524..., coverage_at_least=0.3612...)
    """
    m = len(silos)
    refuse_pair(l, k, m, n)
    replies = [NonIidReply(silo, n, l) for silo in silos]
    copy = NonIidReply(auxiliary or (lambda u: u), n, l)

    def distance(u: NDArray[np.float64]) -> NDArray[np.float64]:
        table = np.array([reply.below(u) for reply in replies])
        return total_variation(table, np.tile(copy.below(u), (m, 1)))

    iid_coverage = float(qq_coverage(l, k, m, n))
    lost = expectation(distance, _TOLERANCE)
    return NonIidBound(iid_coverage, lost, iid_coverage - lost)


# Poisson-binomial laws and the binomial laws that replace them.


def total_variation(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distance between the Poisson-binomial laws of p and q, each of shape (m, nodes): shape (nodes,).

    Examples
    --------
    >>> total_variation(np.array([[0.5], [0.5]]), np.array([[1.0], [0.0]]))
    array([0.5])
    """
    distance: NDArray[np.float64] = np.abs(poisson_binomial(p) - poisson_binomial(q)).sum(axis=1) / 2
    return distance


def distance_to_binomial(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Exact value bounded by Theorem C.3: the total variation between PoisBin(p) and the binomial law of the same mean.

    Shape (nodes,) for p of shape (m, nodes).

    Examples
    --------
    >>> p = np.array([[0.8], [0.9], [1.0]])
    >>> bool(distance_to_binomial(p)[0] <= ehm_bound(p)[0])
    True
    """
    return total_variation(p, np.array(np.broadcast_to(p.mean(axis=0), p.shape)))


def ehm_bound(p: ArrayLike) -> NDArray[np.float64]:
    """Theorem C.3 (Ehm 1991), upper side: m/(m+1) a b, with a and b as in `ehm_lower_bound`.

    Parameters
    ----------
    p
        Probabilities, shape (m,) or (m, nodes).

    Examples
    --------
    >>> round(float(ehm_bound([0.8, 0.9, 1.0])), 4)
    0.0191
    """
    p = as_shares("p", p)
    return len(p) / (len(p) + 1) * _ehm_product(p)


def ehm_lower_bound(p: ArrayLike, constant: float) -> NDArray[np.float64]:
    """Theorem C.3 (Ehm 1991), lower side: C a b with a = 1 - q^(m+1) - (1-q)^(m+1), b = 1 - sum p_i(1-p_i)/(m q(1-q)).

    q is the mean of p. The paper calls C universal and gives no value. It is below 1/4: if many p are close to each
    other, the distance is about a b / sqrt(2 pi e) = 0.242 a b.

    Parameters
    ----------
    p
        Probabilities, shape (m,) or (m, nodes).
    constant
        C.

    Examples
    --------
    >>> round(float(ehm_lower_bound([0.8, 0.9, 1.0], 0.1)), 4)
    0.0025
    """
    return constant * _ehm_product(as_shares("p", p))


def _ehm_product(p: NDArray[np.float64]) -> NDArray[np.float64]:
    m, q = len(p), p.mean(axis=0)
    spread = ((p - q) ** 2).sum(axis=0)  # m q (1-q) - sum p (1-p)
    with np.errstate(invalid="ignore", divide="ignore"):
        product = (1 - q ** (m + 1) - (1 - q) ** (m + 1)) * spread / (m * q * (1 - q))
    return np.where((spread == 0) | (q * (1 - q) == 0), 0.0, product)


def loss_of_equal_treatment(replies: Sequence[ReplyLaw], *, exact: bool = True) -> float:
    """Largest difference in coverage between silos of ONE distribution and equal replies of the same mean law.

    E[TV(PoisBin(p(U)), Bin(m, mean of p(U)))] over a uniform test score, for silos that differ in size or rank but not
    in their scores. It is not a statement of the paper, but Theorem C.3 bounds it: `exact=False` gives that bound. Our
    certificates use the Poisson-binomial law and lose nothing. For silos of different distributions see
    `non_iid_bound`.

    Examples
    --------
    >>> from confide.federated import RandomRankReply
    >>> replies = [RandomRankReply.fixed(50, 46), RandomRankReply.fixed(200, 181), RandomRankReply.fixed(100, 91)]
    >>> loss_of_equal_treatment(replies) < loss_of_equal_treatment(replies, exact=False) < 0.1
    True
    """

    def distance(t: NDArray[np.float64]) -> NDArray[np.float64]:
        table = np.array([reply.below(t) for reply in replies])
        return distance_to_binomial(table) if exact else np.minimum(ehm_bound(table), 1.0)

    return expectation(distance, _TOLERANCE)
