"""`fedcp2-qq`, and the same over a sum of its replies.

FedCP^2-QQ: the published private version of FedCP-QQ with the best of all gamma, for equal public sizes.

Humbert, Le Bars, Bellet and Arlot, "One-shot federated conformal prediction", ICML 2023: ranks (l, k) for the level
(1-alpha)/(1-gamma alpha), a correction of 2/epsilon log(B/(1-(1-gamma alpha)^(1/m))) ranks by a union bound over
silos, and the exponential mechanism of Angelopoulos, Bates, Zrnic and Jordan, "Private prediction sets", in each silo.
gamma is chosen as there, for the least M(l + l_cor, k); no grid is published, and none is needed (`best_published`).
The certificate, and all that concerns absent and lying silos, is that of docs/theory-federated.md, Theorems F1 and F3.

FedCP^2-QQ with secure aggregation: every silo's private reply as a one-hot vector, of which only the sum opens.

Humbert, Le Bars, Bellet and Arlot, "One-shot federated conformal prediction", ICML 2023, section 4, "Privacy
amplification by shuffling or aggregation". The sum says how many silos replied which candidate, so its k-th smallest
reply is that of `fedcp2-qq`, with the same certificate. The paper also claims a loss smaller by the order of sqrt(m).
That holds where a silo is one person, and then the plan gives the replies a larger loss of their own. For silos of
more records it does not (docs/theory-federated.md, Theorems A1 and A2), and the plan says so.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.federated.many_silos import clones_delta, clones_local
from confide.federated.order_statistics import order_statistic_coverage
from confide.federated.protocols.protocol import (
    Counts,
    Options,
    Promise,
    read_field,
    refuse_contradiction,
    too_few_records,
)
from confide.federated.protocols.sorted_replies import SortedCandidates, SortedReplies, mean_law_of_choice, read_ranks
from confide.federated.protocols.vectors import AddedVectors, DealtVectors, MaskedVectors, choose_openers
from confide.federated.quantile_of_quantiles import least_above, qq_coverage, smallest_k_of_ranks
from confide.federated.refusals import Refusal
from confide.federated.reply_table import RandomRankReply, ReplyLaw
from confide.federated.terms import Terms, check_count
from confide.guarantee import Guarantee
from confide.mechanisms import PrivatePredictionSets
from confide.support import Fields, Level, exact_level, positive_integer, privacy_loss, scale_for

_ROUNDING = 1e-13
"""Levels are raised by so much, so that what is rounded still reaches what is claimed."""


@dataclass(frozen=True)
class FedCP2QQ(SortedCandidates):
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
        """The published ranks and k of least aimed-at coverage over all gamma."""
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
        return confirmed_k(self, terms, self.published_k)


def confirmed_k(protocol: SortedReplies, terms: Terms, published_k: int) -> int | None:
    """The published k, or None where there is none, silos may lie, delta is given, or our certificate says no."""
    if not published_k or terms.liars or terms.delta is not None:
        return None
    replies = [protocol.reply_law(terms, i) for i in range(len(terms.silos))]
    return published_k if order_statistic_coverage(replies, published_k) >= terms.level else None


def published_quantile(n: int, rank: int, epsilon: float) -> PrivatePredictionSets:
    """The exponential mechanism of Private Prediction Sets at quantile max(rank/n, 1/2), for a published loss.

    The published method never aims below the median, which is rounded up to a whole rank. `rank` is the corrected rank
    l + l_cor, at most n; `epsilon` the published loss when one record is replaced, which is up to twice the proven one.

    Examples
    --------
    >>> published_quantile(200, 184, 4.0).slope_left
    2.0
    """
    level = max(Fraction(rank, n), Fraction(-(-n // 2), n))
    return PrivatePredictionSets(level, 0.0, scale_for(2 * level.numerator, epsilon))


@dataclass(frozen=True)
class PublishedChoice:
    """A published pair (l + l_cor, k), and what it aims at.

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


def published_correction(epsilon: float, candidates: int, m: int, share: float) -> int:
    """l_cor = ceil(2/epsilon log(B / (1 - (1 - share)^(1/m)))) with share = gamma alpha.

    Examples
    --------
    >>> published_correction(5.0, 100, 5, 0.01)
    5
    """
    return math.ceil(2 / epsilon * math.log(candidates / -math.expm1(math.log1p(-share) / m)))


def published_at(gamma: float, m: int, n: int, alpha: Level, epsilon: float, candidates: int) -> PublishedChoice | None:
    """What is published for one gamma: the best pair for (1-alpha)/(1-gamma alpha), and l_cor; None if beyond n.

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

    Some gamma selects the pair (l, k), and the largest of them, with the least l_cor, is the one whose level
    (1-alpha)/(1-gamma alpha) is M(l, k) itself. So for every l_cor there is one level, and for every l the smallest k
    that reaches it; a larger l_cor cannot be better once the pairs of the level 1-alpha are not.

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


_DRAWS = 200
_LARGEST = 700.0


class RepliedSum(SortedReplies, AddedVectors):
    """One-hot replies of which only the sum opens.

    Its privacy does not rely on other silos: every reply is private by itself. What relies on them is that nobody
    learns which silo replied what.
    """

    method = "fedcp2-qq-sum"
    relies_for = "who replied what is hidden by"

    targets: tuple[int, ...]
    published_k: int
    opened_epsilon: float | None
    dp_delta: float | None

    @classmethod
    def local_terms(cls, terms: Terms, options: Options) -> Terms:
        """Terms with the loss of one reply: the largest one whose sum is within what was asked for, if `dp_delta` is.

        More than what was asked for only where a silo is one record: elsewhere nothing is gained (Theorem A2).
        """
        if options.dp_delta is None or _size(terms) > 1 or terms.epsilon is None:
            return terms
        return replace(terms, epsilon=clones_local(terms.epsilon, cls.hiding(terms, options), options.dp_delta))

    @classmethod
    @abstractmethod
    def hiding(cls, terms: Terms, options: Options) -> int:
        """How many honest silos are in the sum, before there is a plan."""

    def fields(self) -> dict[str, Any]:
        """Its fields, each under its own name; the loss of the sum only where it was asked for."""
        return {name: value for name, value in super().fields().items() if value is not None}

    def refuse_claims(self, terms: Terms) -> None:
        """Refuse a loss of the sum that does not follow from that of the replies."""
        refuse_contradiction((self.opened_epsilon is None) != (self.dp_delta is None))
        if self.opened_epsilon is not None and self.dp_delta is not None:
            refuse_contradiction(self.delta_of_sum(terms, self.opened_epsilon) > self.dp_delta)

    def refuse_infinite(self, terms: Terms, least: int) -> None:
        """Refuse a plan whose threshold is +inf with so many answers."""
        if self.certify(terms, range(least))[0] > least:
            raise too_few_records()

    def loss(self, terms: Terms, i: int) -> float:
        """That of one reply, which holds against everybody."""
        return terms.epsilon or 0.0

    def whole_loss(self, terms: Terms) -> float:
        """At least the loss of a reply when all records of its silo are replaced.

        Group privacy, n times that of one record; or the range of all exponents and the logarithm of the number of
        candidates, which bound how often a candidate is replied from above (1) and from below.
        """
        n = _size(terms)
        if n == 1:
            return self.loss(terms, 0)
        mechanism = self.mechanism(terms, 0)
        steepest = n * max(mechanism.slope_left, mechanism.slope_right)
        return min(n * mechanism.replace_one, steepest + math.log(terms.candidates.size))

    def delta_of_sum(self, terms: Terms, epsilon: float) -> float:
        """The delta at which the sum is (epsilon, delta)-DP for one record (Theorem A1); colluders hide nobody."""
        return clones_delta(epsilon, self.loss(terms, 0), self.honest(terms), whole=self.whole_loss(terms))

    def words(self, terms: Terms) -> list[tuple[str, str]]:
        """What the sum costs, and what it does not save."""
        local = self.loss(terms, 0)
        if self.opened_epsilon is not None and self.opened_epsilon < local:
            said = (
                f"{self.opened_epsilon:g} for one person with dp_delta {self.dp_delta:g}, to whoever sees the sum "
                f"alone and colludes with at most {self.colluding} silos; {local:.6g} to whoever sees one reply"
            )
        else:
            said = (
                f"{local:g} for one record, as much as one reply; it hides which silo replied what, and saves no loss"
            )
        return [("the opened sum costs", said)]

    def mechanism(self, terms: Terms, i: int) -> PrivatePredictionSets:
        """The exponential mechanism of Private Prediction Sets; for one record at its median, randomized response."""
        n, epsilon = terms.silos[i].size or 0, terms.epsilon or 0.0
        if n == 1:  # log-odds of 1/scale for the candidate of the record, against every other
            return PrivatePredictionSets(Fraction(1, 2), 0.0, scale_for(1, epsilon))
        return published_quantile(n, self.targets[i], epsilon)

    def reply_law(self, terms: Terms, i: int) -> ReplyLaw:
        """By the random rank; one record's candidate is replied, or else any of all of them."""
        if terms.silos[i].size != 1:
            return super().reply_law(terms, i)
        odds = math.expm1(min(1 / self.mechanism(terms, i).scale, _LARGEST))
        stays = odds / (odds + terms.candidates.size)
        return RandomRankReply(1, (1,), (stays,), 1 - stays)

    def planned_k(self, terms: Terms) -> int | None:
        """The published k stands if our certificate confirms it, and no other was asked for."""
        return confirmed_k(self, terms, self.published_k)

    def certify_stated(self, terms: Terms, who: Sequence[int], stated: int) -> tuple[int, Guarantee]:
        """No earlier version had sums of replies."""
        return self.certify(terms, who)

    def addend(self, terms: Terms, own: int, counts: Counts) -> Counts:
        """A one at the candidate that is drawn."""
        vector = np.zeros(len(counts), dtype=np.int64)
        vector[self.draw(terms, own, counts)] = 1
        return vector

    def refuse_total(self, terms: Terms, who: Sequence[int], total: NDArray[np.int64]) -> None:
        """A sum of one-hot vectors counts no reply less than never, and as many as there are silos."""
        found, negative = sum(total.tolist()), int(np.count_nonzero(total < 0))
        if found != len(who) or negative:
            raise Refusal(
                "implausible",
                f"the opened sum counts {found} replies of {len(who)} silos, {negative} of its numbers are negative: a "
                "silo's vector is not one reply, and whose cannot be seen: ask them all, and make a new plan",
            )

    def choose(self, terms: Terms, who: Sequence[int], total: NDArray[np.int64]) -> float:
        """The k-th smallest of the replies that the sum counts; +inf if there are not so many."""
        k = self.certify(terms, who)[0]
        reached = np.append(np.cumsum(total)[:-1] >= k, True)
        return float(terms.candidates.values[int(np.argmax(reached))])

    def answer_law(self, terms: Terms, below: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """Drawn counts, then the exact law of the silos' choice, which is one law: their sizes are equal."""
        from scipy.stats import binom

        m, k = len(terms.silos), self.certify(terms, range(len(terms.silos)))[0]
        counts = rng.multinomial(_size(terms), np.diff(below, prepend=0.0), _DRAWS)
        replies = np.minimum(np.cumsum(mean_law_of_choice(self.mechanism(terms, 0), "exponential", counts)), 1.0)
        at_most = binom.sf(k - 1, m, replies) if k <= m else np.zeros(len(below))
        at_most[-1] = 1.0
        return np.maximum(np.diff(at_most, prepend=0.0), 0.0)


@dataclass(frozen=True)
class FedCP2QQSum(MaskedVectors, RepliedSum):
    """The published private method, its replies added under masks: it opens with all silos at once.

    Parameters
    ----------
    targets
        l + l_cor for every silo; 1 where a silo is one record, for which the publication has no rank.
    published_k
        Which reply the publication makes the threshold; 0 for our own choice.
    opened_epsilon, dp_delta
        The loss of the sum where it was asked for, else None.
    colluding
        How many silos may pool what they know with the coordinator.
    bits
        Masks are modulo 2**bits.

    Examples
    --------
    >>> from confide import Candidates
    >>> from confide.federated import SiloKeys, plan
    >>> silos = [SiloKeys.generate(f"hospital {i}").public(size=200) for i in range(5)]
    >>> few = Candidates.unit(100)
    >>> made = plan(silos, 0.1, 5.0, candidates=few, method="fedcp2-qq-sum", dp_delta=1e-6)
    >>> made.certify()[0] == made.protocol.published_k, made.protocol.opened_epsilon  # nothing is gained
    (True, 5.0)
    """

    targets: tuple[int, ...]
    published_k: int
    opened_epsilon: float | None
    dp_delta: float | None
    colluding: int
    bits: int = 32

    @classmethod
    def hiding(cls, terms: Terms, options: Options) -> int:
        """All but those that may collude."""
        return len(terms.silos) - _colluding(terms, options)

    @classmethod
    def planned(cls, terms: Terms, options: Options) -> Self:
        """The ranks of `fedcp2-qq` for the loss of a reply."""
        made = cls(*_ranks(terms), options.opened_epsilon, options.dp_delta, _colluding(terms, options))
        made.refuse_infinite(terms, len(terms.silos))
        return made

    @classmethod
    def read(cls, fields: Fields, terms: Terms) -> Self:
        """From its fields, each under its own name."""
        colluding, bits = (read_field(fields, name, terms) for name in ("colluding", "bits"))
        made = cls(*_read(fields, terms), colluding, bits)
        made.refuse_claims(terms)
        return made

    def promises(self, terms: Terms) -> dict[int, Promise]:
        """For all silos, without which nothing opens."""
        m = len(terms.silos)
        return {m: super().promises(terms)[m]}


@dataclass(frozen=True)
class FedCP2QQOpenedSum(DealtVectors, RepliedSum):
    """The same with `dropouts` of 1 or more: openers help to open the sum of those who answered.

    Parameters
    ----------
    targets, published_k, opened_epsilon, dp_delta, colluding
        As of `FedCP2QQSum`.
    openers
        The silos that can help to open, by place.
    needed
        How many of them must.
    """

    targets: tuple[int, ...]
    published_k: int
    opened_epsilon: float | None
    dp_delta: float | None
    colluding: int
    openers: tuple[int, ...]
    needed: int

    @classmethod
    def hiding(cls, terms: Terms, options: Options) -> int:
        """Those of the shortest list that do not collude."""
        return len(terms.silos) - terms.dropouts - choose_openers(terms, options)[0]

    @classmethod
    def planned(cls, terms: Terms, options: Options) -> Self:
        """The ranks of `fedcp2-qq`, and openers as of a secure sum."""
        colluding, openers, needed = choose_openers(terms, options)
        made = cls(*_ranks(terms), options.opened_epsilon, options.dp_delta, colluding, openers, needed)
        made.refuse_terms(terms)
        made.refuse_infinite(terms, made.least(terms))
        return made

    @classmethod
    def read(cls, fields: Fields, terms: Terms) -> Self:
        """From its fields, each under its own name."""
        opened = (read_field(fields, name, terms) for name in ("colluding", "openers", "needed"))
        made = cls(*_read(fields, terms), *opened)
        made.refuse_openers(terms)
        made.refuse_claims(terms)
        return made

    def fields(self) -> dict[str, Any]:
        """The openers as a list."""
        return {**super().fields(), "openers": list(self.openers)}

    def certify(self, terms: Terms, who: Sequence[int]) -> tuple[int, Guarantee]:
        """Of the silos on the list."""
        self.refuse_short(terms, who)
        return super().certify(terms, who)

    def promises(self, terms: Terms) -> dict[int, Promise]:
        """From all silos down to the least number on a list."""
        return {count: promise for count, promise in super().promises(terms).items() if count >= self.least(terms)}


def _size(terms: Terms) -> int:
    return terms.silos[0].size or 0


def _colluding(terms: Terms, options: Options) -> int:
    m = len(terms.silos)
    return max(1, (m - 1) // 2) if options.colluding is None else check_count("colluding", options.colluding, m - 1)


def _ranks(terms: Terms) -> tuple[tuple[int, ...], int]:
    """The published ranks and k; a silo of one record has one rank, and no k is published."""
    m, n = len(terms.silos), _size(terms)
    if len({silo.size for silo in terms.silos}) > 1:
        raise InputError("silos must have equal sizes for the method 'fedcp2-qq-sum'; use secure-sum")
    if n == 1:
        return (1,) * m, 0
    choice = best_published(m, n, terms.alpha, terms.epsilon or 0.0, terms.candidates.size)
    if choice is None:
        raise too_few_records()
    return (choice.rank,) * m, choice.k


def _read(fields: Fields, terms: Terms) -> tuple[tuple[int, ...], int, float | None, float | None]:
    refuse_contradiction(len({silo.size for silo in terms.silos}) > 1)
    claimed = [read_field(fields, name, terms) if name in fields else None for name in ("opened_epsilon", "dp_delta")]
    return read_ranks(fields, terms, beyond=0), read_field(fields, "published_k", terms), claimed[0], claimed[1]
