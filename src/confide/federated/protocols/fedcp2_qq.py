"""`fedcp2-qq`, and `fedcp2-qq-sum`, which reveals only the sum of the replies: for equal public sizes.

The published method of Humbert, Le Bars, Bellet and Arlot, "One-shot federated conformal prediction", ICML 2023.
`confide.papers.fedcp_qq` has the published method without privacy.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from confide.federated.certificates import order_statistic_coverage
from confide.federated.protocols.channels import Channel
from confide.federated.protocols.sorted_replies import SortedReplies
from confide.federated.protocols.threshold_plan import too_few_records
from confide.federated.published_ranks import best_published
from confide.federated.terms import Terms
from confide.mechanisms import PrivatePredictionSets
from confide.support import require, scale_for


@dataclass(frozen=True, kw_only=True)
class FedCP2QQ(SortedReplies):
    """FedCP^2-QQ, the published private method; over a sum the replies of single silos are hidden.

    The ranks (l, k) are those for the level (1-alpha)/(1-gamma alpha). A union bound over silos corrects them by
    l_cor. Each silo runs the exponential mechanism of Angelopoulos, Bates, Zrnic and Jordan, "Private prediction sets".

    A sum counts how many silos replied each candidate, so its k-th smallest reply has the same certificate and the same
    loss. The paper claims a loss smaller by the order of sqrt(m), which does not hold for silos of more than one record
    (docs/theory-federated.md, Theorems F10 and F11). Every reply is private by itself, without other silos.

    Parameters
    ----------
    targets
        l + l_cor for every silo.
    published_k
        The published rank of the reply that becomes the threshold, if all silos answer.
    """

    parameters = ("targets", "published_k")
    reliance_label = "single replies are hidden by"

    targets: tuple[int, ...]
    published_k: int

    @classmethod
    def planned(cls, terms: Terms, method: str, channel: Channel) -> Self:
        """The published ranks and k of least compensation over all gamma."""
        m = len(terms.silos)
        summed = not channel.single_replies
        has_equal_sizes = len({silo.size for silo in terms.silos}) == 1
        must = f"must have equal sizes for the {'method' if summed else 'published method'} {method!r}"
        require("silos", has_equal_sizes, must, remedy=f"Use {'secure-sum' if summed else 'private-qq'}")
        choice = best_published(m, terms.silos[0].size or 0, terms.alpha, terms.epsilon, terms.candidates.size)
        if choice is None:
            raise too_few_records()
        planned = cls(**vars(terms), method=method, channel=channel, targets=(choice.rank,) * m, published_k=choice.k)
        # A sum needs a finite threshold, because it opens with all silos only
        if summed and planned.certify().k > m:
            raise too_few_records()
        return planned

    def loss(self, i: int) -> float:
        """The published loss of one reply, which holds for all observers."""
        return self.epsilon

    def mechanism(self, i: int) -> PrivatePredictionSets:
        """The exponential mechanism of Private Prediction Sets."""
        return published_quantile(self.silos[i].size or 0, self.targets[i], self.epsilon)

    def planned_k(self) -> int | None:
        """The published k, if no silo is Byzantine, there is no delta, and the certificate confirms it."""
        if self.liars or self.delta is not None:
            return None
        replies = [self.reply_law(i) for i in range(len(self.silos))]
        return self.published_k if order_statistic_coverage(replies, self.published_k) >= self.level else None


def published_quantile(n: int, rank: int, epsilon: float) -> PrivatePredictionSets:
    """The exponential mechanism of Private Prediction Sets at quantile max(rank/n, 1/2), for a published loss.

    The published method never aims below the median, which is rounded up to an integer rank. `rank` is the corrected
    rank l + l_cor, at most n. `epsilon` is the published loss when one record is replaced, which is up to twice the
    proven one.
    """
    median = (n + 1) // 2
    level = Fraction(max(rank, median), n)
    return PrivatePredictionSets(level, 0.0, scale_for(2 * level.numerator, epsilon))
