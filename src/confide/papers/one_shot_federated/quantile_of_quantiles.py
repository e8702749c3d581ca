"""Sections 3.1 to 3.3: the quantile of quantiles, its coverage M(l, k), and upper bounds.

M(l, k) of Theorem 3.2 as an integral is `confide.federated.qq_coverage`, and Algorithm 1's pair (l*, k*) of (6) is
`confide.federated.best_qq`; here are the published sum and what the paper compares them with.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.errors import InputError
from confide.federated import best_qq, coverage_fraction, qq_coverage
from confide.papers.one_shot_federated.split_conformal import order_statistic, refuse_pair, split_conformal_bounds
from confide.support import Level, exact_level, positive_integer


def quantile_of_quantiles(scores: Sequence[ArrayLike], l: int, k: int) -> float:
    """Definition 3.1, (3): the k-th smallest of the agents' l-th smallest scores; the set (4): all y of score <= this.

    Parameters
    ----------
    scores
        For every agent its scores, of any number.
    l, k
        Ranks within an agent and among the replies.

    Examples
    --------
    >>> quantile_of_quantiles([[0.1, 0.5], [0.2, 0.3], [0.4, 0.9]], 2, 2)
    0.5
    """
    return order_statistic([order_statistic(one, l) for one in scores], k)


def qq_coverage_sum(l: int, k: int, m: int, n: int) -> Fraction:
    """Theorem 3.2, (5): M(l, k) by the published sum, as a rational number.

    1 - 1/(mn+1) sum_(j>=k) C(m, j) sum C(n, i_1)...C(n, i_m) / C(mn, i_1+...+i_m), with i_1..i_j in l..n and the
    others in 0..l-1. Coverage is at least M(l, k), and equal to it for continuous scores. For a few hundred scores in
    all; `confide.federated.qq_coverage` is the same number as an integral, for any. (Appendix C.1 writes M(n, k) for
    M(l, k).)

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
    """Figures 6 and 7: M(l, k) for all pairs, shape (n, m). Non-decreasing in l and in k, as Appendix A.2 says.

    Examples
    --------
    >>> int((qq_coverage_table(5, 10) >= 0.9).sum())
    4
    """
    return qq_coverage(np.arange(1, n + 1)[:, None], np.arange(1, m + 1), m, n)


@dataclass(frozen=True)
class UpperBounds:
    """Section 3.3, Figure 1: the coverage of FedCP-QQ beside what bounds that of split conformal prediction.

    Parameters
    ----------
    exact
        M(l*, k*), for continuous scores.
    centralised
        1-alpha + 1/(mn+1): the bound of Theorem 2.1 for all scores in one place.
    one_agent
        1-alpha + 1/(n+1): the same for the scores of a single agent.
    constant
        (mn+1)(M(l*, k*) - (1-alpha)). The paper proves no upper bound for M(l*, k*); it conjectures that one is "of the
        same order as in the centralized framework", 1-alpha + O(1/(mn+1)), that is, that this number stays bounded. It
        grows with m: over n < 1500 at alpha = .1 it reaches 1.85, 2.54, 3.88 and 5.54 for m = 2, 3, 5 and 10.
    """

    exact: float
    centralised: float
    one_agent: float
    constant: float


def upper_bounds(m: int, n: int, alpha: Level) -> UpperBounds:
    """Section 3.3, Figure 1: M(l*, k*) and the two upper bounds that it is compared with; the conjecture's constant.

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
        raise InputError(f"m n must be at least (1-alpha)/alpha = {float(wanted / (1 - wanted)):g}; found {m * n}")
    centralised, one_agent = split_conformal_bounds(m * n, alpha)[1], split_conformal_bounds(n, alpha)[1]
    return UpperBounds(best.coverage, centralised, one_agent, (m * n + 1) * (best.coverage - float(wanted)))
