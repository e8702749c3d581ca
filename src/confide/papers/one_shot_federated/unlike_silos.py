"""Section 3.5 and Appendix C.3: silos of different distributions.

A distribution function enters as a curve on [0, 1]: for agent j, F_j(F_S^-1(u)), how much of its scores lies at or
below the u-quantile of the test score S. Scores half as large as uniform ones of the test are `lambda u: min(2 u, 1)`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.errors import InputError
from confide.federated import ReplyLaw, expectation, order_statistic_coverage, poisson_binomial, qq_coverage
from confide.papers.checked import as_shares
from confide.papers.one_shot_federated.split_conformal import refuse_pair

Curve: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]
_TOLERANCE = 1e-14


@dataclass(frozen=True)
class UnlikeReply:
    """What agent j replies if its scores have a distribution of their own: the l-th smallest of n.

    Parameters
    ----------
    scores_below
        F_j(F_S^-1(u)) for u of shape (nodes,), rising from 0 to at most 1.
    n, l
        Number of scores, and which is sent.

    Examples
    --------
    >>> float(UnlikeReply(lambda u: u, 1, 1).below(np.array([0.25]))[0])
    0.25
    """

    scores_below: Curve
    n: int
    l: int

    def below(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """p_j*(S) at S = F_S^-1(u): how likely the reply is to lie at or below it."""
        from scipy.special import betainc

        at = np.asarray(self.scores_below(u), dtype=np.float64)
        if at.shape != u.shape or not bool(np.all((at >= 0) & (at <= 1))):
            raise InputError("scores_below must give a number in [0, 1] for every u; it does not")
        result: NDArray[np.float64] = betainc(self.l, self.n - self.l + 1, at)
        return result


def unlike_silos_coverage(silos: Sequence[Curve], l: int, k: int, n: int) -> float:
    """(16): what silos of different distributions really cover, 1 - E[P(PoisBin(p*(S)) >= k)], exactly if nothing ties.

    This is the law that our certificates of silos of one distribution and unequal sizes use.

    Parameters
    ----------
    silos
        F_j(F_S^-1(u)), one curve per silo, each never falling.
    l, k, n
        Ranks within a silo and among the replies; number of scores in each silo.

    Examples
    --------
    >>> halves = [lambda u: np.minimum(2 * u, 1)] * 5
    >>> round(unlike_silos_coverage(halves, 19, 3, 20), 3)
    0.457
    """
    refuse_pair(l, k, len(silos), n)
    return order_statistic_coverage([UnlikeReply(silo, n, l) for silo in silos], k)


@dataclass(frozen=True)
class UnlikeSilos:
    """Proposition 3.4, its parts.

    Parameters
    ----------
    as_if_alike
        M(l, k), which stands for 1-alpha in the proof and is at least that for (l*, k*).
    distance
        E[TV(PoisBin(p*(S)), Bin(m, p~*(S~)))], by which coverage may be less.
    coverage_at_least
        `as_if_alike` - `distance`: what the proposition says of coverage. Below 0 it says nothing.
    """

    as_if_alike: float
    distance: float
    coverage_at_least: float


def unlike_silos_bound(silos: Sequence[Curve], l: int, k: int, n: int, auxiliary: Curve | None = None) -> UnlikeSilos:
    """Proposition 3.4, (15), (18): coverage >= 1-alpha - E[TV(PoisBin(p*(S)), Bin(m, p~*(S~)))], M(l, k) for 1-alpha.

    The scores of agent j have a distribution of their own, S has yet another, all are independent. The auxiliary scores
    S~_i and S~ are i.i.d., and S~ may depend on S (Remark C.2).

    Parameters
    ----------
    silos
        F_j(F_S^-1(u)), one curve per silo.
    l, k, n
        Ranks within a silo and among the replies; number of scores in each silo.
    auxiliary
        F~(S~) as a function of u where S = F_S^-1(u): any map of [0, 1] to itself that keeps the uniform law. Without
        it S~ = S and the S~_i are copies of it, which Remark C.2 conjectures to be a good choice. (It need not be the
        best: for silos of half as large scores u -> 2u mod 1 gives more.)

    Examples
    --------
    >>> halves = [lambda u: np.minimum(2 * u, 1)] * 5
    >>> unlike_silos_bound(halves, 19, 3, 20)
    UnlikeSilos(as_if_alike=0.9136..., distance=0.5524..., coverage_at_least=0.3612...)
    """
    m = len(silos)
    refuse_pair(l, k, m, n)
    replies, copy = [UnlikeReply(silo, n, l) for silo in silos], UnlikeReply(auxiliary or (lambda u: u), n, l)

    def distance(u: NDArray[np.float64]) -> NDArray[np.float64]:
        table = np.array([reply.below(u) for reply in replies])
        return total_variation(table, np.tile(copy.below(u), (m, 1)))

    lost, alike = expectation(distance, _TOLERANCE), float(qq_coverage(l, k, m, n))
    return UnlikeSilos(alike, lost, alike - lost)


def total_variation(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    """The distance between the Poisson-binomial laws of p and q, each of shape (m, nodes): shape (nodes,).

    Examples
    --------
    >>> total_variation(np.array([[0.5], [0.5]]), np.array([[1.0], [0.0]]))
    array([0.5])
    """
    distance: NDArray[np.float64] = np.abs(poisson_binomial(p) - poisson_binomial(q)).sum(axis=1) / 2
    return distance


def distance_to_binomial(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """What Theorem C.3 bounds, exactly: the total variation between PoisBin(p) and the binomial law of the same mean.

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

    q is the mean of p. The paper says of C that it is universal, and gives no value. It is below 1/4: for many p near
    one another the distance is about a b / sqrt(2 pi e) = .242 a b.

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
    """How far the coverage of silos of ONE distribution can be from that of equal replies of the same mean law.

    E[TV(PoisBin(p(U)), Bin(m, mean of p(U)))] over a uniform test score: for silos whose sizes or ranks differ, and
    whose scores do not. No statement of the paper, but Theorem C.3 bounds it: `exact=False` gives that bound. Our
    certificates use the Poisson-binomial law and lose nothing. For silos of different distributions see
    `unlike_silos_bound`.

    Examples
    --------
    >>> from confide.federated import RandomRankReply
    >>> replies = [RandomRankReply.fixed(50, 46), RandomRankReply.fixed(200, 181), RandomRankReply.fixed(100, 91)]
    >>> loss_of_equal_treatment(replies) <= loss_of_equal_treatment(replies, exact=False) < 0.1
    True
    """

    def distance(t: NDArray[np.float64]) -> NDArray[np.float64]:
        table = np.array([reply.below(t) for reply in replies])
        return distance_to_binomial(table) if exact else np.minimum(ehm_bound(table), 1.0)

    return expectation(distance, _TOLERANCE)
