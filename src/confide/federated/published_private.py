"""FedCP^2-QQ, the published private version of FedCP-QQ, with its grid over gamma.

Humbert, Le Bars, Bellet and Arlot, "One-shot federated conformal prediction", ICML 2023: ranks (l, k) for the level
(1-alpha)/(1-gamma alpha), a correction of 2/epsilon log(B/(1-(1-gamma alpha)^(1/m))) ranks by a union bound over
silos, and the exponential mechanism of Angelopoulos, Bates, Zrnic and Jordan, "Private prediction sets", in each silo.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from confide.federated.quantile_of_quantiles import best_qq, qq_coverage
from confide.selection import scale_for, select
from confide.support import Level, exact_level, positive_integer, privacy_loss

GAMMAS = np.logspace(-4, -0.01, 40)
"""The grid of the publication's experiments."""


@dataclass(frozen=True)
class PublishedQuantile:
    """The exponential mechanism of Private Prediction Sets at quantile q = max(rank/n, 1/2), in integers.

    P(j) is proportional to exp(-epsilon min(q, 1-q) w_j / 2) with w_j = max(A_j/q, (n-B_j)/(1-q)); multiplied by
    2 max(rank, n - rank) this is integer.

    Parameters
    ----------
    n
        Public number of scores.
    rank
        The corrected rank l + l_cor, at most n.
    epsilon
        The published loss when one record is replaced.

    Examples
    --------
    >>> PublishedQuantile(200, 184, 4.0).slope_left
    2.0
    """

    n: int
    rank: int
    epsilon: float

    @property
    def effective_rank(self) -> int:
        """N q, rounded up: the published method never aims below the median."""
        return max(self.rank, -(-self.n // 2))

    @property
    def scale(self) -> float:
        """Noise scale of the selector, in units of the integer utilities."""
        return scale_for(2 * self.effective_rank, self.epsilon)

    @property
    def slope_left(self) -> float:
        """Log-odds lost per rank short of the target: epsilon / 2."""
        return self.effective_rank / self.scale

    def utilities(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Integer utilities, shape (m,), from counts of shape (m,)."""
        a = self.effective_rank
        at_or_below = np.cumsum(counts, dtype=np.int64)
        below = at_or_below - counts
        utility: NDArray[np.int64] = -np.maximum(below * (self.n - a), (self.n - at_or_below) * a)
        return utility

    def choose(self, counts: NDArray[np.int64]) -> int:
        """Draw the index of one candidate."""
        return select(self.utilities(counts), self.scale, "exponential")


@dataclass(frozen=True)
class PublishedChoice:
    """The published (l + l_cor, k) of least aimed-at coverage M(l + l_cor, k) over the grid of gamma.

    Parameters
    ----------
    rank
        l + l_cor, at most n.
    k
        Which reply becomes the threshold.
    gamma
        Share of alpha that pays for the union bound.
    compensation
        M(l + l_cor, k), the degree of compensation: the coverage if every silo returned exactly its target rank.
    """

    rank: int
    k: int
    gamma: float
    compensation: float


def correction(epsilon: float, candidates: int, m: int, share: float) -> int:
    """l_cor = ceil(2/epsilon log(B / (1 - (1 - share)^(1/m)))) with share = gamma alpha.

    Examples
    --------
    >>> correction(5.0, 100, 5, 0.01)
    5
    """
    return math.ceil(2 / epsilon * math.log(candidates / -math.expm1(math.log1p(-share) / m)))


def best_published(m: int, n: int, alpha: Level, epsilon: float, candidates: int) -> PublishedChoice | None:
    """The published choice for m silos of n scores each; None if no gamma leaves the rank within n.

    Examples
    --------
    >>> round(best_published(5, 200, 0.1, 5.0, 100).compensation, 3)
    0.928
    """
    level, n = exact_level("alpha", alpha), positive_integer("n", n)
    epsilon, found = privacy_loss("epsilon", epsilon), []
    for gamma in GAMMAS:
        share = gamma * float(level)
        choice = best_qq(m, n, round((1 - float(level)) / (1 - share), 6))
        if choice is None:
            continue
        rank = choice.ranks[0] + correction(epsilon, candidates, m, share)
        if rank <= n:
            compensation = float(qq_coverage(rank, choice.k, m, n))
            found.append(PublishedChoice(rank, choice.k, float(gamma), compensation))
    return min(found, key=lambda option: option.compensation, default=None)
