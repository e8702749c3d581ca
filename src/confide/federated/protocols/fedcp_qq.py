"""FedCP-QQ: every silo sends its l_j-th smallest score, the threshold is the k-th smallest reply. Not private.

Humbert, Le Bars, Bellet and Arlot, "One-shot federated conformal prediction", ICML 2023; docs/federated.md, Theorem F1,
which is exact here.
"""

from dataclasses import dataclass
from typing import Self

from confide.federated.protocols.protocol import Options, too_few_records
from confide.federated.protocols.sorted_replies import CandidateReplies, SortedCandidates, read_ranks
from confide.federated.quantile_of_quantiles import best_qq, best_qq_unequal
from confide.federated.terms import Terms
from confide.mechanisms import SplitConformal
from confide.support import Fields


@dataclass(frozen=True)
class ExactRanks(CandidateReplies):
    """Silo j replies with its l_j-th smallest score: `targets` are l_j, from 1 to n_j + 1, which stands for +inf."""

    private = False

    targets: tuple[int, ...]

    @classmethod
    def read(cls, fields: Fields, terms: Terms) -> Self:
        """From the field `targets`."""
        return cls(read_ranks(fields, terms, beyond=1))

    def mechanism(self, terms: Terms, i: int) -> SplitConformal:
        """The order statistic."""
        return SplitConformal(self.targets[i])


@dataclass(frozen=True)
class FedCPQQ(ExactRanks, SortedCandidates):
    """The published method for silos that may show order statistics of their scores.

    Examples
    --------
    >>> from confide.federated import SiloKeys, plan
    >>> silos = [SiloKeys.generate(f"hospital {i}").public(size=200) for i in range(5)]
    >>> made = plan(silos, 0.1, method="fedcp-qq")
    >>> made.protocol, made.certify()[0]
    (FedCPQQ(targets=(183, 183, 183, 183, 183)), 2)
    """

    method = "fedcp-qq"
    theorem = "Theorem F1"

    @classmethod
    def planned(cls, terms: Terms, options: Options) -> Self:
        """The ranks of least coverage among those that some k certifies, absent and lying silos considered."""
        sizes, m = [silo.size or 0 for silo in terms.silos], len(terms.silos)
        honest, arbitrary = m - terms.liars - terms.dropouts, terms.missing == "arbitrary"
        equal = len(set(sizes)) == 1
        if equal:
            best = best_qq(m if arbitrary else honest, sizes[0], terms.level, delta=terms.delta, most_k=honest)
        else:
            counted = None if arbitrary or honest == m else honest
            best = best_qq_unequal(sizes, terms.level, delta=terms.delta, honest=counted, most_k=honest)
        if best is None:
            raise too_few_records()
        return cls(best.ranks[:1] * m if equal else best.ranks)
