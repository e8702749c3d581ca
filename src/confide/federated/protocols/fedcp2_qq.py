"""`fedcp2-qq`, and `fedcp2-qq-sum`, which opens only the sum of its replies.

FedCP^2-QQ: the published private version of FedCP-QQ with the best of all gamma, for equal public sizes.

Humbert, Le Bars, Bellet and Arlot, "One-shot federated conformal prediction", ICML 2023: ranks (l, k) for the level
(1-alpha)/(1-gamma alpha), a correction of 2/epsilon log(B/(1-(1-gamma alpha)^(1/m))) ranks by a union bound over
silos, and the exponential mechanism of Angelopoulos, Bates, Zrnic and Jordan, "Private prediction sets", in each silo.
gamma is chosen as there, for the least M(l + l_cor, k); no grid is published, and none is needed (`best_published`).
The certificate, and everything about missing and Byzantine silos, is that of docs/theory-federated.md, Theorems F1, F3
and F12.

FedCP^2-QQ with secure aggregation: every silo's private reply as a one-hot vector, of which only the sum opens.

Humbert, Le Bars, Bellet and Arlot, "One-shot federated conformal prediction", ICML 2023, section 4, "Privacy
amplification by shuffling or aggregation". The sum counts how many silos replied each candidate, so its k-th smallest
reply is that of `fedcp2-qq`, with the same certificate. The paper also claims a loss smaller by the order of sqrt(m).
This holds if a silo is one person, and then the plan gives the replies a larger loss. It does not hold for silos of
more records (docs/theory-federated.md, Theorems F10 and F11), and the plan states this.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.federated.certificates import order_statistic_coverage
from confide.federated.protocols.channels import Channel
from confide.federated.protocols.method import too_few_records
from confide.federated.protocols.plan_fields import Options, read_field, refuse_contradiction
from confide.federated.protocols.sorted_replies import SortedReplies, mean_law_of_choice, read_ranks
from confide.federated.quantile_of_quantiles import least_above, qq_coverage, smallest_k_of_ranks
from confide.federated.reply_laws import RandomRankReply, ReplyLaw
from confide.federated.shuffling import clones_delta, clones_local
from confide.federated.terms import Terms
from confide.mechanisms import PrivatePredictionSets
from confide.support import Fields, Level, exact_level, positive_integer, privacy_loss, scale_for

_ROUNDING = 1e-13
"""Relative increase of levels, so that rounded values still reach the claimed level."""
_DRAWS = 200
_LARGEST = 700.0


@dataclass(frozen=True)
class Hidden:
    """The parameters of a sum that hides the single replies.

    Parameters
    ----------
    colluding
        Number of silos that may collude with the coordinator.
    honest
        Number of silos that are certainly in the sum and do not collude.
    opened_epsilon, dp_delta
        The loss of the sum if it was requested, else None.
    """

    colluding: int
    honest: int
    opened_epsilon: float | None = None
    dp_delta: float | None = None

    @classmethod
    def of(
        cls, terms: Terms, channel: Channel, opened_epsilon: float | None, dp_delta: float | None
    ) -> "Hidden | None":
        """The parameters for a channel; None if every reply is visible."""
        if channel.colluders is None:
            return None
        return cls(channel.colluders, channel.honest(terms), opened_epsilon, dp_delta)


@dataclass(frozen=True)
class FedCP2QQ(SortedReplies):
    """FedCP^2-QQ, the published private method; over a sum the replies of single silos are hidden.

    Its privacy does not rely on other silos, because every reply is private by itself.

    Parameters
    ----------
    targets
        l + l_cor for every silo; 1 if a silo is one record, for which the publication has no rank.
    published_k
        The published rank of the reply that becomes the threshold, if all silos answer; 0 for the rank of confide.
    hidden
        The parameters of a sum of the replies; None if replies are visible.

    Examples
    --------
    >>> from confide import Candidates
    >>> from confide.federated import SiloKeys, plan
    >>> silos = [SiloKeys.generate(f"hospital {i}").public(size=200) for i in range(5)]
    >>> made = plan(silos, 0.1, 5.0, score="lac", method="fedcp2-qq")
    >>> made.certify()[0] == made.protocol.published_k
    True
    >>> few = Candidates.unit(100)
    >>> made = plan(silos, 0.1, 5.0, candidates=few, method="fedcp2-qq-sum", dp_delta=1e-6)
    >>> made.certify()[0] == made.protocol.published_k, made.protocol.hidden.opened_epsilon  # nothing is gained
    (True, 5.0)
    """

    relies_for = "single replies are hidden by"

    targets: tuple[int, ...]
    published_k: int
    hidden: Hidden | None = None

    @classmethod
    def local_terms(cls, terms: Terms, options: Options, channel: Channel) -> Terms:
        """The terms with the loss of one reply: with `dp_delta`, the largest one whose sum has the requested loss.

        It exceeds the requested loss only if a silo is one record; otherwise nothing is gained (Theorem F11).
        """
        if options.dp_delta is None or channel.each or _size(terms) > 1 or terms.epsilon is None:
            return terms
        return replace(terms, epsilon=clones_local(terms.epsilon, channel.honest(terms), options.dp_delta))

    @classmethod
    def planned(cls, terms: Terms, options: Options, channel: Channel) -> Self:
        """The published ranks and k of least compensation over all gamma; for one record the rank 1 and no k."""
        m, n = len(terms.silos), _size(terms)
        hidden = Hidden.of(terms, channel, options.opened_epsilon, options.dp_delta)
        if len({silo.size for silo in terms.silos}) > 1:
            named, instead = ("published method 'fedcp2-qq'", "private-qq")
            if hidden is not None:
                named, instead = ("method 'fedcp2-qq-sum'", "secure-sum")
            raise InputError("silos", f"must have equal sizes for the {named}", remedy=f"Use {instead}")
        if n == 1 and hidden is not None:
            made = cls((1,) * m, 0, hidden)
        else:
            choice = best_published(m, n, terms.alpha, terms.epsilon or 0.0, terms.candidates.size)
            if choice is None:
                raise too_few_records()
            made = cls((choice.rank,) * m, choice.k, hidden)
        if hidden is not None and made.certify(terms, range(channel.least(terms)))[0] > channel.least(terms):
            raise too_few_records()
        return made

    @classmethod
    def read(cls, fields: Fields, terms: Terms, channel: Channel) -> Self:
        """Read the fields `targets` and `published_k`, and for a sum its claimed loss, which must follow."""
        claims = ("opened_epsilon", "dp_delta") if channel.colluders is not None else ()
        claimed = {name: read_field(fields, name, terms) if name in fields else None for name in claims}
        hidden = Hidden.of(terms, channel, claimed.get("opened_epsilon"), claimed.get("dp_delta"))
        made = cls(read_ranks(fields, terms, beyond=0), read_field(fields, "published_k", terms), hidden)
        if hidden is not None:
            refuse_contradiction(len({silo.size for silo in terms.silos}) > 1)
            refuse_contradiction((hidden.opened_epsilon is None) != (hidden.dp_delta is None))
            if hidden.opened_epsilon is not None and hidden.dp_delta is not None:
                refuse_contradiction(made.delta_of_sum(terms, hidden.opened_epsilon) > hidden.dp_delta)
        return made

    def fields(self) -> dict[str, Any]:
        """The fields, each by its own name; the loss of the sum only if it was requested."""
        stated: dict[str, Any] = {"targets": self.targets, "published_k": self.published_k}
        if self.hidden is None or self.hidden.dp_delta is None:
            return stated
        return {**stated, "opened_epsilon": self.hidden.opened_epsilon, "dp_delta": self.hidden.dp_delta}

    def loss(self, terms: Terms, i: int) -> float:
        """The published loss of one reply, which holds for all observers."""
        return terms.epsilon or 0.0

    def mechanism(self, terms: Terms, i: int) -> PrivatePredictionSets:
        """The exponential mechanism of Private Prediction Sets; for one record at the median, randomized response."""
        n, epsilon = terms.silos[i].size or 0, terms.epsilon or 0.0
        if n == 1:  # log-odds of 1/scale for the candidate of the record, against every other
            return PrivatePredictionSets(Fraction(1, 2), 0.0, scale_for(1, epsilon))
        return published_quantile(n, self.targets[i], epsilon)

    def reply_law(self, terms: Terms, i: int) -> ReplyLaw:
        """The law of the random rank; a silo of one record replies its candidate, or any of all candidates."""
        if terms.silos[i].size != 1:
            return super().reply_law(terms, i)
        odds = math.expm1(min(1 / self.mechanism(terms, i).scale, _LARGEST))
        stays = odds / (odds + terms.candidates.size)
        return RandomRankReply(1, (1,), (stays,), 1 - stays)

    def planned_k(self, terms: Terms) -> int | None:
        """The published k, if no silo is Byzantine, there is no delta, and the certificate confirms it."""
        if not self.published_k or terms.liars or terms.delta is not None:
            return None
        replies = [self.reply_law(terms, i) for i in range(len(terms.silos))]
        return self.published_k if order_statistic_coverage(replies, self.published_k) >= terms.level else None

    def whole_loss(self, terms: Terms) -> float:
        """An upper bound on the loss of a reply when all records of its silo are replaced.

        It is the smaller of two bounds: group privacy, n times the loss of one record; and the range of all exponents
        plus the logarithm of the number of candidates, because the probability of a candidate is at most 1.
        """
        n = _size(terms)
        if n == 1:
            return self.loss(terms, 0)
        mechanism = self.mechanism(terms, 0)
        steepest = n * max(mechanism.slope_left, mechanism.slope_right)
        return min(n * mechanism.replace_one, steepest + math.log(terms.candidates.size))

    def delta_of_sum(self, terms: Terms, epsilon: float) -> float:
        """The delta at which the sum is (epsilon, delta)-DP for one record (Theorem F10); only honest silos hide it."""
        honest = 1 if self.hidden is None else self.hidden.honest
        return clones_delta(epsilon, self.loss(terms, 0), honest, whole=self.whole_loss(terms))

    def words(self, terms: Terms) -> list[tuple[str, str]]:
        """The loss of a sum, and a statement if it is not smaller than that of a reply."""
        if self.hidden is None:
            return []
        local, opened = self.loss(terms, 0), self.hidden.opened_epsilon
        if opened is not None and opened < local:
            text = (
                f"{opened:g} for one person with dp_delta {self.hidden.dp_delta:g}, for an observer of the sum alone "
                f"who colludes with at most {self.hidden.colluding} silos; {local:.6g} for an observer of one reply"
            )
        else:
            text = f"{local:g} for one record, as for one reply; the sum hides the single replies and reduces no loss"
        return [("privacy loss of the sum", text)]

    def answer_law(self, terms: Terms, below: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """The law from drawn counts and the exact law of the silos' choice, one law because sizes are equal."""
        from scipy.stats import binom

        m, k = len(terms.silos), self.certify(terms, range(len(terms.silos)))[0]
        counts = rng.multinomial(_size(terms), np.diff(below, prepend=0.0), _DRAWS)
        replies = np.minimum(np.cumsum(mean_law_of_choice(self.mechanism(terms, 0), "exponential", counts)), 1.0)
        at_most = binom.sf(k - 1, m, replies) if k <= m else np.zeros(len(below))
        at_most[-1] = 1.0
        return np.maximum(np.diff(at_most, prepend=0.0), 0.0)


def _size(terms: Terms) -> int:
    return terms.silos[0].size or 0


def published_quantile(n: int, rank: int, epsilon: float) -> PrivatePredictionSets:
    """The exponential mechanism of Private Prediction Sets at quantile max(rank/n, 1/2), for a published loss.

    The published method never aims below the median, which is rounded up to an integer rank. `rank` is the corrected
    rank l + l_cor, at most n. `epsilon` is the published loss when one record is replaced, which is up to twice the
    proven one.

    Examples
    --------
    >>> published_quantile(200, 184, 4.0).slope_left
    2.0
    """
    level = max(Fraction(rank, n), Fraction(-(-n // 2), n))
    return PrivatePredictionSets(level, 0.0, scale_for(2 * level.numerator, epsilon))


@dataclass(frozen=True)
class PublishedChoice:
    """A published pair (l + l_cor, k), and its degree of compensation.

    Parameters
    ----------
    rank
        l + l_cor, at most n.
    k
        Rank of the reply that becomes the threshold.
    gamma
        Share of alpha for the union bound.
    compensation
        M(l + l_cor, k), the degree of compensation: the coverage if every silo returned exactly its target rank.
    """

    rank: int
    k: int
    gamma: float
    compensation: float


def published_correction(epsilon: float, candidates: int, m: int, share: float) -> int:
    """l_cor = ceil(2/epsilon log(B / (1 - (1 - share)^(1/m)))) with share = gamma alpha.

    Examples
    --------
    >>> published_correction(5.0, 100, 5, 0.01)
    5
    """
    return math.ceil(2 / epsilon * math.log(candidates / -math.expm1(math.log1p(-share) / m)))


def published_at(gamma: float, m: int, n: int, alpha: Level, epsilon: float, candidates: int) -> PublishedChoice | None:
    """The published choice for one gamma: the best pair for (1-alpha)/(1-gamma alpha), and l_cor; None if beyond n.

    Examples
    --------
    >>> published_at(0.01, 5, 200, 0.1, 5.0, 100)
    PublishedChoice(rank=189, k=2, gamma=0.01, compensation=0.93276...)
    """
    share = gamma * float(exact_level("alpha", alpha))
    choice = least_above(m, n, (1 - float(exact_level("alpha", alpha))) / (1 - share) * (1 + _ROUNDING))
    if choice is None:
        return None
    rank = choice.ranks[0] + published_correction(epsilon, candidates, m, share)
    return PublishedChoice(rank, choice.k, gamma, float(qq_coverage(rank, choice.k, m, n))) if rank <= n else None


@lru_cache(maxsize=256)
def best_published(m: int, n: int, alpha: Level, epsilon: float, candidates: int) -> PublishedChoice | None:
    """The choice of least compensation over all gamma in (0, 1), for m silos of n scores; None if all are beyond n.

    Of all gamma that select the pair (l, k), the largest one has the least l_cor. Its level (1-alpha)/(1-gamma alpha)
    is M(l, k) itself. So for every l_cor there is one level, and for every l the smallest k that reaches it. The search
    ends when no pair of the level 1-alpha is better with the next l_cor.

    Examples
    --------
    >>> best_published(5, 200, 0.1, 5.0, 100)
    PublishedChoice(rank=184, k=4, gamma=0.02176..., compensation=0.92567...)
    """
    level, m, n = float(exact_level("alpha", alpha)), positive_integer("m", m), positive_integer("n", n)
    epsilon, best = privacy_loss("epsilon", epsilon), None
    all_l, all_k = smallest_k_of_ranks(m, n, 1 - level)
    for l_cor in range(published_correction(epsilon, candidates, m, level), n):
        within = all_l + l_cor <= n
        bound = np.min(qq_coverage(all_l[within] + l_cor, all_k[within], m, n), initial=np.inf)
        if not within.any() or (best is not None and bound >= best.compensation):
            break
        share = -math.expm1(m * math.log1p(-min(candidates * math.exp(-epsilon * l_cor / 2), 1.0)))
        l, k = smallest_k_of_ranks(m, n, (1 - level) / (1 - share) * (1 + 4 * _ROUNDING))
        l, k = l[l + l_cor <= n], k[l + l_cor <= n]
        if not l.size:
            continue
        compensation = qq_coverage(l + l_cor, k, m, n)
        at = int(np.argmin(compensation))
        if best is None or compensation[at] < best.compensation:
            gamma = (1 - (1 - level) / float(qq_coverage(l[at], k[at], m, n)) * (1 + 3 * _ROUNDING)) / level
            best = PublishedChoice(int(l[at]) + l_cor, int(k[at]), gamma, float(compensation[at]))
    return best
