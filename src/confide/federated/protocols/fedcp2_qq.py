"""FedCP^2-QQ: the published private version of FedCP-QQ, with its grid over gamma, for equal public sizes.

Humbert, Le Bars, Bellet and Arlot, "One-shot federated conformal prediction", ICML 2023: ranks (l, k) for the level
(1-alpha)/(1-gamma alpha), a correction of 2/epsilon log(B/(1-(1-gamma alpha)^(1/m))) ranks by a union bound over
silos, and the exponential mechanism of Angelopoulos, Bates, Zrnic and Jordan, "Private prediction sets", in each silo.
The certificate, and all that concerns absent and lying silos, is that of docs/federated.md, Theorems F1 and F3.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Self

import numpy as np

from confide.errors import InputError
from confide.federated.order_statistics import order_statistic_coverage
from confide.federated.protocols.plan_fields import read_field
from confide.federated.protocols.protocol import Options, too_few_records
from confide.federated.protocols.sorted_replies import SortedReplies, read_ranks
from confide.federated.quantile_of_quantiles import best_qq, qq_coverage
from confide.federated.terms import Terms
from confide.mechanisms import PrivatePredictionSets
from confide.selection import scale_for
from confide.support import Fields, Level, exact_level, positive_integer, privacy_loss

GAMMAS = np.logspace(-4, -0.01, 40)
"""The grid of the publication's experiments."""


@dataclass(frozen=True)
class FedCP2QQ(SortedReplies):
    """The published private method.

    Parameters
    ----------
    targets
        l + l_cor for every silo.
    published_k
        Which reply the publication makes the threshold, if all silos answer; 0 for our own choice.

    Examples
    --------
    >>> from confide.federated import SiloKeys, plan
    >>> silos = [SiloKeys.generate(f"hospital {i}").public(size=200) for i in range(5)]
    >>> made = plan(silos, 0.1, 5.0, score="lac", method="fedcp2-qq")
    >>> made.certify()[0] == made.protocol.published_k
    True
    """

    method = "fedcp2-qq"

    targets: tuple[int, ...]
    published_k: int

    @classmethod
    def planned(cls, terms: Terms, options: Options) -> Self:
        """The published ranks and k of least aimed-at coverage over the grid of gamma."""
        sizes = {silo.size or 0 for silo in terms.silos}
        if len(sizes) > 1:
            raise InputError("silos must have equal sizes for the published method 'fedcp2-qq'; use private-qq")
        m, epsilon = len(terms.silos), terms.epsilon or 0.0
        choice = best_published(m, sizes.pop(), terms.alpha, epsilon, terms.candidates.size)
        if choice is None:
            raise too_few_records()
        return cls((choice.rank,) * m, choice.k)

    @classmethod
    def read(cls, fields: Fields, terms: Terms) -> Self:
        """From the fields `targets` and `published_k`."""
        return cls(read_ranks(fields, terms, beyond=0), read_field(fields, "published_k", terms))

    def loss(self, terms: Terms, i: int) -> float:
        """The published loss."""
        return terms.epsilon or 0.0

    def mechanism(self, terms: Terms, i: int) -> PrivatePredictionSets:
        """The exponential mechanism of Private Prediction Sets."""
        return published_quantile(terms.silos[i].size or 0, self.targets[i], terms.epsilon or 0.0)

    def planned_k(self, terms: Terms) -> int | None:
        """The published k stands if nobody may lie and our certificate confirms it."""
        if not self.published_k or terms.liars or terms.delta is not None:
            return None
        replies = self._laws(terms, range(len(terms.silos)))
        return self.published_k if order_statistic_coverage(replies, self.published_k) >= terms.level else None


def published_quantile(n: int, rank: int, epsilon: float) -> PrivatePredictionSets:
    """The exponential mechanism of Private Prediction Sets at quantile max(rank/n, 1/2), for a published loss.

    The published method never aims below the median. `rank` is the corrected rank l + l_cor, at most n; `epsilon` the
    published loss when one record is replaced, which is up to twice the proven one.

    Examples
    --------
    >>> published_quantile(200, 184, 4.0).slope_left
    2.0
    """
    level = max(Fraction(rank, n), Fraction(-(-n // 2), n))
    return PrivatePredictionSets(level, 0.0, scale_for(2 * level.numerator, epsilon))


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


@lru_cache(maxsize=256)
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
