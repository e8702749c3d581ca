"""Section 2: split conformal prediction."""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from confide.errors import InputError
from confide.support import Level, exact_level, positive_integer


def order_statistic(scores: ArrayLike, k: int) -> float:
    """Equation (2): the k-th smallest score, +inf if there are fewer.

    Parameters
    ----------
    scores
        Shape (n,).
    k
        At least 1.

    Raises
    ------
    InputError
        If k is not a whole number of at least 1.

    Examples
    --------
    >>> order_statistic([0.3, 0.1, 0.2], 2), order_statistic([0.3], 2)
    (0.2, inf)
    """
    k, sorted_scores = positive_integer("k", k), np.sort(np.asarray(scores, dtype=np.float64).ravel())
    return float(sorted_scores[k - 1]) if k <= len(sorted_scores) else math.inf


def conformal_rank(n: int, alpha: Level) -> int:
    """Section 2.1: the rank ceil((n+1)(1-alpha)) of split conformal prediction; n + 1 stands for +inf.

    It is also both particular cases of Section 3.2: k for m agents with one score each is `conformal_rank(m, alpha)`;
    for n -> inf agents send the scores of rank l = `conformal_rank(n, alpha)`, and M(l, k) -> 1-alpha whatever k is.
    (For a finite n it is not: small k cover less.)

    Examples
    --------
    >>> conformal_rank(99, 0.1), conformal_rank(5, 0.1)
    (90, 6)
    """
    return math.ceil((positive_integer("n", n) + 1) * (1 - exact_level("alpha", alpha)))


def split_conformal_bounds(n: int, alpha: Level) -> tuple[float, float]:
    """Theorem 2.1: coverage of split conformal prediction is at least and, if no scores tie, at most this.

    1-alpha and 1-alpha + 1/(n+1). For continuous scores it is `conformal_rank(n, alpha)` / (n+1) exactly.

    Examples
    --------
    >>> low, high = split_conformal_bounds(9, 0.25)
    >>> low <= conformal_rank(9, 0.25) / 10 <= high
    True
    """
    wanted = 1 - exact_level("alpha", alpha)
    return float(wanted), float(wanted + Fraction(1, positive_integer("n", n) + 1))


def refuse_pair(l: int, k: int, m: int, n: int) -> None:
    """Refuse a pair (l, k) outside of [1, n] x [1, m]."""
    for name, value, most in (("l", l, n), ("k", k, m)):
        if positive_integer(name, value) > most:
            raise InputError(f"{name} must be a whole number from 1 to {most}; found {value}")
