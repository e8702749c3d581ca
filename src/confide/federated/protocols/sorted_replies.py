"""Protocols in which every silo runs a mechanism on its own counts and replies with one of the candidates.

The threshold is the k-th smallest reply: which k, and what is promised for which answers. By docs/federated.md, Theorem
F1, coverage follows from the laws of the silos' replies; a protocol has to say these. For silos that stay away or lie
see there; `certified_k` looks for k.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.federated.certified_k import certified_k, every_certified_k
from confide.federated.order_statistics import conditional_coverage_failure
from confide.federated.private_quantiles import MANY
from confide.federated.protocols.plan_fields import read_field, refuse_contradiction
from confide.federated.protocols.protocol import Counts, FederatedProtocol, Promise
from confide.federated.random_rank_reply import ReplyLaw
from confide.federated.refusals import Refusal
from confide.federated.reply_laws import random_rank
from confide.federated.terms import Terms
from confide.guarantee import Guarantee
from confide.mechanisms import Mechanism, PrivatePredictionSets, Slopes
from confide.selection import Selector, selection_law
from confide.support import Fields

Choosing: TypeAlias = Slopes | PrivatePredictionSets
_UNLIKELY = 35.0


class DrawnReplies(FederatedProtocol):
    """Every silo draws one candidate from its own counts, however the candidates travel."""

    targets: tuple[Fraction | int, ...]
    """The rank at which each silo aims."""

    @abstractmethod
    def mechanism(self, terms: Terms, i: int) -> Mechanism:
        """What silo i runs on its counts."""

    def fields(self) -> dict[str, Any]:
        """Its fields, each under its own name."""
        return {**vars(self), "targets": [str(target) for target in self.targets]}

    def target_rank(self, i: int) -> Fraction:
        """T_i, or for a secret size what is added to rate (n + 1)."""
        return Fraction(self.targets[i])

    def loss(self, terms: Terms, i: int) -> float:
        """That of one run of the mechanism."""
        mechanism = self.mechanism(terms, i)
        loss = mechanism.add_remove if terms.silos[i].size is None else mechanism.replace_one
        return math.inf if loss is None else loss

    def draw(self, terms: Terms, own: int, counts: Counts) -> int:
        """The index of the candidate that silo `own` replies: that of +inf also where a rank is beyond the records."""
        return min(self.mechanism(terms, own).choose(counts), len(counts) - 1)


class CandidateReplies(DrawnReplies):
    """One candidate from each silo: its index, and the candidate itself for people and as a check."""

    def message(self, terms: Terms, own: int, counts: Counts, agreement: bytes, context: bytes) -> dict[str, Any]:
        """The index and the value of a candidate, `"+inf"` for infinity."""
        chosen = self.draw(terms, own, counts)
        return {"candidate": chosen, "threshold": _json_value(terms, chosen)}

    def read_message(self, terms: Terms, i: int, fields: Fields) -> int:
        """The index of the candidate that silo i replied."""
        chosen: int = fields.take("candidate", int)
        stated = fields.take("threshold", (float, int, str))
        if not 0 <= chosen < terms.candidates.size or stated != _json_value(terms, chosen):
            raise Refusal("out-of-range")
        return chosen


class SortedReplies(DrawnReplies):
    """The k-th smallest of the candidates drawn becomes the threshold."""

    theorem = "Theorems F1 and F3"

    def reply_law(self, terms: Terms, i: int) -> ReplyLaw:
        """The law that the reply of silo i dominates, by its mechanism's random rank."""
        return random_rank(terms.silos[i].size or 0, self.mechanism(terms, i), terms.candidates.size)

    def planned_k(self, terms: Terms) -> int | None:
        """A choice of k made in advance that stands if all silos answer, or None."""
        return None

    def certify(self, terms: Terms, who: Sequence[int]) -> tuple[int, Guarantee]:
        """The smallest k that is certified for the silos that answered."""
        return self._chosen(terms, who)

    def certify_stated(self, terms: Terms, who: Sequence[int], stated: int) -> tuple[int, Guarantee]:
        """The same; or the next k, if it is stated and the smallest one meets the level exactly, as 0.1 had it."""
        return self._chosen(terms, who, stated)

    def _chosen(self, terms: Terms, who: Sequence[int], stated: int | None = None) -> tuple[int, Guarantee]:
        m, level = len(terms.silos), float(terms.level)
        if len(who) == m and (planned := self.planned_k(terms)) is not None:
            return planned, self.guarantee(terms, level, who)
        if terms.missing == "arbitrary":  # the k-th of any subset is at least the k-th of all
            replies, honest = self._laws(terms, range(m)), m
        else:
            replies, honest = self._laws(terms, who), len(who) - terms.liars
        found = certified_k(replies, terms.level, terms.delta, honest)
        k = len(who) + 1 if found is None else found[0] + terms.liars
        if found is not None and terms.delta is None and found[1] == level and stated == k + 1:
            k = stated
        if k > len(who):
            return len(who) + 1, self.guarantee(terms, 1.0, who)
        return k, self.guarantee(terms, level, who)

    def promises(self, terms: Terms) -> dict[int, Promise]:
        """What is promised for every number of answers, from all silos down to one."""
        m, level = len(terms.silos), float(terms.level)
        replies = self._laws(terms, range(m))
        alike = len(set(replies)) == 1
        ks = _certified(replies, terms)
        table = {}
        for count in range(m, 0, -1):
            if count == m and (planned := self.planned_k(terms)) is not None:
                table[count] = Promise(level, planned, "never")
                continue
            honest = m if terms.missing == "arbitrary" else count - terms.liars
            found = None if honest < 1 else ks[honest]  # for those of them that reply lowest
            k = count + 1 if found is None else min(found + terms.liars, count + 1)
            if k <= count:
                table[count] = Promise(level, k, "never")
            elif alike or honest < 1:
                table[count] = Promise(1.0, k, "always")
            else:
                table[count] = Promise(level, k, "perhaps")
        return table

    def coverage_failure(self, terms: Terms, who: Sequence[int], k: int) -> Callable[[float], float]:
        """Theorem F2: exact for order statistics of continuous scores, a bound for private replies."""
        if k > len(who):
            return lambda level: 0.0
        arbitrary = terms.missing == "arbitrary"
        replies = self._laws(terms, range(len(terms.silos)) if arbitrary else who)
        honest = None if arbitrary else len(who) - terms.liars
        return lambda level: conditional_coverage_failure(replies, k - terms.liars, level, honest)

    def _laws(self, terms: Terms, who: Sequence[int]) -> list[ReplyLaw]:
        return [self.reply_law(terms, i) for i in who]


class SortedCandidates(SortedReplies, CandidateReplies):
    """The same, where every silo's candidate is known by itself."""

    def threshold(self, terms: Terms, replies: Mapping[int, int], k: int) -> float:
        """The k-th smallest of the candidates replied."""
        if not replies:
            raise Refusal("missing", "no silo has answered; wait, or make a new plan")
        return float(terms.candidates.values[kth_reply(list(replies.values()), k, terms.candidates.size)])


def _certified(replies: Sequence[ReplyLaw], terms: Terms) -> Mapping[int, int | None]:
    """The smallest certified k for every number of honest silos that may be asked for."""
    m = len(replies)
    if m > MANY and terms.missing == "independent":
        return dict(enumerate(every_certified_k(replies, terms.level, terms.delta), 1))
    ks = dict[int, int | None]()
    for honest in [m] if terms.missing == "arbitrary" else range(1, m - terms.liars + 1):
        found = certified_k(replies, terms.level, terms.delta, honest)
        ks[honest] = None if found is None else found[0]
    return ks


def kth_reply(replies: Sequence[int], k: int, candidates: int) -> int:
    """The index of the k-th smallest of the candidates replied; that of +inf if there are not so many.

    Examples
    --------
    >>> kth_reply([7, 3, 5], 2, candidates=10), kth_reply([7, 3, 5], 4, candidates=10)
    (5, 9)
    """
    return sorted(replies)[k - 1] if k <= len(replies) else candidates - 1


def mean_law_of_choice(mechanism: Choosing, selector: Selector, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The mean law of the choice over drawn counts of shape (draws, m); shape (m,)."""
    law = np.zeros(counts.shape[1])
    for row in counts:
        utility = mechanism.utilities(row) / mechanism.scale
        likely = utility > utility.max() - _UNLIKELY
        law[likely] += selection_law(np.exp(utility[likely] - utility.max()), selector)
    mean: NDArray[np.float64] = law / law.sum()
    return mean


def read_ranks(fields: Fields, terms: Terms, beyond: int) -> tuple[int, ...]:
    """Whole target ranks, one for every silo, from 1 to its size and `beyond`."""
    targets: tuple[Fraction, ...] = read_field(fields, "targets", terms)
    refuse_contradiction(len(targets) != len(terms.silos) or any(target.denominator > 1 for target in targets))
    most = [(silo.size or 0) + beyond for silo in terms.silos]
    refuse_contradiction(any(not 0 < target <= n for target, n in zip(targets, most, strict=True)))
    return tuple(int(target) for target in targets)


def _json_value(terms: Terms, chosen: int) -> float | str:
    value = float(terms.candidates.values[chosen])
    return value if math.isfinite(value) else "+inf"
