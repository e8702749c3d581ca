"""Silos with different distributions: Proposition 3.4, Remark C.2 and Theorem C.3 of the one-shot paper.

Humbert, Le Bars, Bellet and Arlot, "One-shot federated conformal prediction", ICML 2023 (PMLR 202).

A distribution function is given as a curve on [0, 1]: for agent j, F_j(F_S^-1(u)), the share of its scores at or below
the u-quantile of the test score S. For scores half as large as uniform test scores it is `lambda u: min(2 u, 1)`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.errors import InputError
from confide.federated import ReplyLaw, expectation, order_statistic_coverage, poisson_binomial, qq_coverage
from confide.papers.checked import as_shares, check_ranks

Curve: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]


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
        return np.asarray(betainc(self.l, self.n - self.l + 1, at))


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
    check_ranks(l, k, len(silos), n)
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
    silos, l, k, n
        As in `non_iid_coverage`.
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
    check_ranks(l, k, m, n)
    replies = [NonIidReply(silo, n, l) for silo in silos]
    copy = NonIidReply(auxiliary or (lambda u: u), n, l)

    def distance(u: NDArray[np.float64]) -> NDArray[np.float64]:
        table = np.array([reply.below(u) for reply in replies])
        return total_variation(table, np.tile(copy.below(u), (m, 1)))

    iid_coverage = float(qq_coverage(l, k, m, n))
    lost = expectation(distance)
    return NonIidBound(iid_coverage, lost, iid_coverage - lost)


# Poisson-binomial laws and the binomial laws that replace them.


def total_variation(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distance between the Poisson-binomial laws of p and q, each of shape (m, nodes): shape (nodes,).

    Examples
    --------
    >>> total_variation(np.array([[0.5], [0.5]]), np.array([[1.0], [0.0]]))
    array([0.5])
    """
    return np.asarray(np.abs(poisson_binomial(p) - poisson_binomial(q)).sum(axis=1) / 2)


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
    """Theorem C.3 (Ehm 1991), upper side: m/(m+1) a b, with p, a and b as in `ehm_lower_bound`.

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
    m = len(p)
    q = p.mean(axis=0)
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

    return expectation(distance)
