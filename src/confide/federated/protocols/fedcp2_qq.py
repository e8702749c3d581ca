"""FedCP^2-QQ: the published private version of FedCP-QQ, with its ranks (l + l_cor, k), for equal public sizes.

Humbert, Le Bars, Bellet and Arlot, "One-shot federated conformal prediction", ICML 2023; see `published_private.py` for
the mechanism and the choice of ranks. The certificate, and all that concerns absent and lying silos, is that of
docs/federated.md, Theorems F1 and F3.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from confide.errors import InputError
from confide.federated.order_statistics import RandomRankReply, ReplyLaw, order_statistic_coverage
from confide.federated.protocols.exact_ranks import read_ranks
from confide.federated.protocols.plan_fields import read_field
from confide.federated.protocols.protocol import Options, too_few_records
from confide.federated.protocols.sorted_replies import SortedReplies
from confide.federated.published_private import PublishedQuantile, best_published
from confide.federated.terms import Terms
from confide.guarantee import rank_law
from confide.support import Fields


@dataclass(frozen=True)
class FedCP2QQ(SortedReplies):
    """The published private method.

    Parameters
    ----------
    ranks
        l + l_cor for every silo.
    k
        Which reply the publication makes the threshold, if all silos answer; 0 for our own choice.

    Examples
    --------
    >>> from confide.federated import SiloKeys, plan
    >>> silos = [SiloKeys.generate(f"hospital {i}").public(size=200) for i in range(5)]
    >>> made = plan(silos, 0.1, 5.0, score="lac", method="fedcp2-qq")
    >>> made.certify()[0] == made.protocol.k
    True
    """

    method = "fedcp2-qq"

    ranks: tuple[int, ...]
    k: int

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

    def fields(self) -> dict[str, Any]:
        """The ranks as `targets`, and `published_k`."""
        return {"targets": [str(rank) for rank in self.ranks], "published_k": self.k}

    def target_rank(self, i: int) -> Fraction:
        """L + l_cor."""
        return Fraction(self.ranks[i])

    def loss(self, terms: Terms, i: int) -> float:
        """The published loss."""
        return terms.epsilon or 0.0

    def mechanism(self, terms: Terms, i: int) -> PublishedQuantile:
        """The exponential mechanism of Private Prediction Sets."""
        return PublishedQuantile(terms.silos[i].size or 0, self.ranks[i], terms.epsilon or 0.0)

    def reply_law(self, terms: Terms, i: int) -> ReplyLaw:
        """A random rank, by Theorem F3."""
        return published_reply(self.mechanism(terms, i), terms.candidates.size)

    def published_k(self, terms: Terms) -> int | None:
        """The published k stands if nobody may lie and our certificate confirms it."""
        if not self.k or terms.liars or terms.delta is not None:
            return None
        confirmed = order_statistic_coverage(self._laws(terms, range(len(terms.silos))), self.k) >= terms.level
        return self.k if confirmed else None


def published_reply(mechanism: PublishedQuantile, candidates: int) -> RandomRankReply:
    """The law that a silo's reply dominates."""
    target, slope = float(mechanism.effective_rank), mechanism.slope_left
    ranks, mass, bottom = rank_law(target, slope, candidates, "exponential")
    return RandomRankReply(mechanism.n, tuple(ranks.tolist()), tuple(mass.tolist()), max(bottom, 0.0))
