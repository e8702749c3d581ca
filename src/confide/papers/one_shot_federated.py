"""One-shot federated conformal prediction, by number: Theorem 3.3, Proposition 3.4.

Humbert, Le Bars, Bellet and Arlot, "One-shot federated conformal prediction", ICML 2023. The exact counterpart of
Theorem 3.3 is `conditional_coverage_failure`.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.federated import ReplyLaw, poisson_binomial
from confide.support import Level, exact_level


def published_deviation(m: int, n: int, delta: Level) -> float:
    """Theorem 3.3: if l k >= (1-alpha) m n, coverage given the data is at least 1-alpha minus this, with prob. 1-delta.

    sqrt(log(1/delta) / (2 m n)).

    Examples
    --------
    >>> round(published_deviation(5, 200, 0.05), 4)
    0.0387
    """
    return math.sqrt(-math.log(float(exact_level("delta", delta))) / (2 * m * n))


def published_conditional_k(l: int, m: int, n: int, level: Level) -> int | None:
    """The smallest k to which Theorem 3.3 applies: l k >= level m n; None if that exceeds m.

    Examples
    --------
    >>> published_conditional_k(190, 5, 200, 0.9)
    5
    """
    k = math.ceil(exact_level("level", level) * m * n / l)
    return k if k <= m else None


def ehm_bound(p: ArrayLike) -> NDArray[np.float64]:
    """Ehm's bound on the distance between a Poisson-binomial law and the binomial of the same mean.

    TV <= (1 - a^(m+1) - (1-a)^(m+1)) / ((m+1) a (1-a)) sum_j (p_j - a)^2 with a the mean of p (Ehm 1991).

    Parameters
    ----------
    p
        Probabilities, shape (m,) or (m, nodes).

    Examples
    --------
    >>> round(float(ehm_bound([0.8, 0.9, 1.0])), 4)
    0.0191
    """
    p = np.asarray(p, dtype=np.float64)
    m, a = len(p), p.mean(axis=0)
    spread = ((p - a) ** 2).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        bound = (1 - a ** (m + 1) - (1 - a) ** (m + 1)) / ((m + 1) * a * (1 - a)) * spread
    return np.where((spread == 0) | (a * (1 - a) == 0), 0.0, bound)


def distance_to_binomial(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """The total variation that `ehm_bound` bounds, exactly: shape (nodes,) for p of shape (m, nodes).

    Examples
    --------
    >>> p = np.array([[0.8], [0.9], [1.0]])
    >>> bool(distance_to_binomial(p)[0] <= ehm_bound(p)[0])
    True
    """
    mean = np.broadcast_to(p.mean(axis=0), p.shape)
    distance: NDArray[np.float64] = np.abs(poisson_binomial(p) - poisson_binomial(np.array(mean))).sum(axis=1) / 2
    return distance


def unequal_loss(replies: Sequence[ReplyLaw], *, exact: bool = True) -> float:
    """Proposition 3.4: how much coverage may be lost by treating unequal replies as equal, E[TV(PoisBin, Bin)].

    The expectation is over a uniform test score; `exact=False` gives Ehm's bound instead of the distance itself. Our
    certificates use the Poisson-binomial law and lose nothing.

    Examples
    --------
    >>> from confide.federated import RandomRankReply
    >>> replies = [RandomRankReply.fixed(50, 46), RandomRankReply.fixed(200, 181), RandomRankReply.fixed(100, 91)]
    >>> unequal_loss(replies) <= unequal_loss(replies, exact=False) < 0.1
    True
    """
    x, w = np.polynomial.legendre.leggauss(40)
    starts = np.arange(50) / 50
    t, w = (starts[:, None] + (x + 1) / 100).ravel(), np.tile(w, 50) / 50
    table = np.array([reply.below(t) for reply in replies])
    values = distance_to_binomial(table) if exact else np.minimum(ehm_bound(table), 1.0)
    return float(values @ w / 2)
