"""Protocols whose threshold is the k-th smallest reply: which k, and what is promised for which answers.

By docs/federated.md, Theorem F1, coverage follows from the laws of the silos' replies; a protocol has to say these. For
silos that stay away or lie see there; `certified_k` looks for k.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence

from confide.federated.certified_k import certified_k
from confide.federated.order_statistics import ReplyLaw, conditional_coverage_failure
from confide.federated.protocols.candidate_replies import CandidateReplies
from confide.federated.protocols.protocol import Promise
from confide.federated.refusals import Refusal
from confide.federated.terms import Terms
from confide.guarantee import Guarantee


class SortedReplies(CandidateReplies):
    """The k-th smallest of the candidates replied becomes the threshold."""

    theorem = "Theorems F1 and F3"

    @abstractmethod
    def reply_law(self, terms: Terms, i: int) -> ReplyLaw:
        """The law that the reply of silo i dominates."""

    def published_k(self, terms: Terms) -> int | None:
        """A choice of k made in advance that stands if all silos answer, or None."""
        return None

    def threshold(self, terms: Terms, replies: Mapping[int, int], k: int) -> float:
        """The k-th smallest of the candidates replied."""
        if not replies:
            raise Refusal("missing", "no silo has answered; wait, or make a new plan")
        return float(terms.candidates.values[kth_reply(list(replies.values()), k, terms.candidates.size)])

    def certify(self, terms: Terms, who: Sequence[int]) -> tuple[int, Guarantee]:
        """The smallest k that is certified for the silos that answered."""
        m, level = len(terms.silos), float(terms.level)
        if len(who) == m and (published := self.published_k(terms)) is not None:
            return published, self.guarantee(terms, level, who)
        if terms.missing == "arbitrary":  # the k-th of any subset is at least the k-th of all
            replies, honest = self._laws(terms, range(m)), m
        else:
            replies, honest = self._laws(terms, who), len(who) - terms.liars
        found = certified_k(replies, terms.level, terms.delta, honest)
        if found is None or found[0] + terms.liars > len(who):
            return len(who) + 1, self.guarantee(terms, 1.0, who)
        return found[0] + terms.liars, self.guarantee(terms, level, who)

    def promises(self, terms: Terms) -> dict[int, Promise]:
        """What is promised for every number of answers, from all silos down to one."""
        m, level = len(terms.silos), float(terms.level)
        replies = self._laws(terms, range(m))
        alike = len(set(replies)) == 1
        table = {}
        for count in range(m, 0, -1):
            if count == m and (published := self.published_k(terms)) is not None:
                table[count] = Promise(level, published, "never")
                continue
            honest = m if terms.missing == "arbitrary" else count - terms.liars
            found = certified_k(replies, terms.level, terms.delta, honest)  # for those of them that reply lowest
            k = count + 1 if found is None else min(found[0] + terms.liars, count + 1)
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


def kth_reply(replies: Sequence[int], k: int, candidates: int) -> int:
    """The index of the k-th smallest of the candidates replied; that of +inf if there are not so many.

    Examples
    --------
    >>> kth_reply([7, 3, 5], 2, candidates=10), kth_reply([7, 3, 5], 4, candidates=10)
    (5, 9)
    """
    return sorted(replies)[k - 1] if k <= len(replies) else candidates - 1
