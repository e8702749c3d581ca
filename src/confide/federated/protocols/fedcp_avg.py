"""FedCP-Avg: the mean of the silos' conformal quantiles. No guarantee, not private: a published baseline."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from confide.federated.protocols.fedcp_qq import ExactRanks
from confide.federated.protocols.protocol import Options
from confide.federated.quantile_of_quantiles import published_ranks
from confide.federated.refusals import Refusal
from confide.federated.terms import Terms
from confide.guarantee import Guarantee
from confide.support import Fields


@dataclass(frozen=True)
class FedCPAvg(ExactRanks):
    """The mean of the conformal quantiles of ranks ceil((1 - alpha)(n_j + 1)), each rounded up to a candidate."""

    method = "fedcp-avg"
    theorem = "no theorem"
    withstands_liars = False

    @classmethod
    def planned(cls, terms: Terms, options: Options) -> Self:
        """The published ranks."""
        return cls(published_ranks([silo.size or 0 for silo in terms.silos], terms.level))

    def read_message(self, terms: Terms, i: int, fields: Fields) -> int:
        """An infinite reply would spoil the mean: it is refused unless the plan itself asks for a rank above n."""
        chosen = super().read_message(terms, i, fields)
        if chosen == terms.candidates.size - 1 and self.targets[i] <= (terms.silos[i].size or 0):
            raise Refusal("out-of-range")
        return chosen

    def threshold(self, terms: Terms, replies: Mapping[int, int], k: int) -> float:
        """The mean of the candidates replied."""
        if not replies:
            raise Refusal("missing", "no silo has answered; wait, or make a new plan")
        return float(np.mean([terms.candidates.values[chosen] for chosen in replies.values()]))

    def can_release(self, terms: Terms, threshold: float) -> bool:
        """Every mean may be a threshold."""
        return math.isfinite(threshold) or threshold == math.inf

    def certify(self, terms: Terms, who: Sequence[int]) -> tuple[int, Guarantee]:
        """Nothing is promised."""
        return 0, self.guarantee(terms, 0.0, who)

    def about_silos(self, terms: Terms) -> None:
        """Nothing is promised, so nothing is assumed."""

    def coverage_failure(self, terms: Terms, who: Sequence[int], k: int) -> Callable[[float], float]:
        """Nothing is known."""
        return lambda level: 1.0
