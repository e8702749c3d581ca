"""Methods in which every silo runs a mechanism on its own counts and replies with one of the candidates.

The threshold is the k-th smallest reply. Coverage follows from the laws of the silos' replies, which each method states
(docs/theory-federated.md, Theorems F1, F3, F4, and F12 for missing and Byzantine silos).
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import NDArray

from confide.federated.certificates import certified_k, conditional_coverage_failure, every_certified_k
from confide.federated.many_silos import StandIns, tails
from confide.federated.private_quantiles import MANY, best_private_qq
from confide.federated.protocols.channels import Channel
from confide.federated.protocols.threshold_plan import Certificate, Promise, ThresholdPlan, too_few_records
from confide.federated.refusals import Refusal
from confide.federated.reply_laws import ReplyLaw, random_rank, slopes_reply
from confide.federated.terms import Counts, Terms
from confide.guarantee import Guarantee
from confide.mechanisms import Mechanism, PrivacyStatement, Slopes
from confide.selection import selection_law, zcdp_of_range


@dataclass(frozen=True, kw_only=True)
class SortedReplies(ThresholdPlan):
    """Methods whose threshold is the k-th smallest of the candidates that silos drew, each from its own counts.

    The vector of a silo has a one at its candidate.
    """

    theorem = "Theorems F1 and F3"

    # The target rank of each silo
    targets: tuple[Fraction | int, ...]

    @abstractmethod
    def mechanism(self, i: int) -> Mechanism:
        """The mechanism that silo i runs on its counts."""

    def target_rank(self, i: int) -> Fraction:
        """T_i, or for a secret size the offset from rate (n + 1)."""
        return Fraction(self.targets[i])

    def loss(self, i: int) -> float:
        """The loss of one run of the mechanism."""
        mechanism = self.mechanism(i)
        loss = mechanism.add_remove if self.silos[i].size is None else mechanism.replace_one
        return math.inf if loss is None else loss

    def reply(self, i: int, counts: Counts) -> int:
        """The index of the candidate that silo i replies; that of +inf also if a rank exceeds the records."""
        return min(self.mechanism(i).choose(counts), len(counts) - 1)

    def draw(self, i: int, counts: Counts) -> Counts:
        """A vector with a one at the replied candidate."""
        vector = np.zeros(len(counts), dtype=np.int64)
        vector[self.reply(i, counts)] = 1
        return vector

    def check_total(self, answered: Sequence[int], total: Counts) -> None:
        """A sum of one-hot vectors has no negative number, and as many replies as silos."""
        replies = sum(total.tolist())
        negative = int(np.count_nonzero(total < 0))
        if replies != len(answered) or negative:
            raise Refusal(
                "implausible",
                f"the opened sum counts {replies} replies of {len(answered)} silos, {negative} of its numbers are "
                "negative: the vector of some silo is not a single reply, and the silo cannot be identified; ask all "
                "silos, and make a new plan",
            )

    def reply_law(self, i: int) -> ReplyLaw:
        """The law that the reply of silo i dominates, by its mechanism's random rank."""
        return random_rank(self.silos[i].size or 0, self.mechanism(i), self.candidates.size)

    def read_off(self, total: Counts, k: int) -> float:
        """The k-th smallest of the replies that the sum counts; +inf if there are fewer."""
        reached = np.append(np.cumsum(total)[:-1] >= k, True)
        return float(self.candidates.values[int(np.argmax(reached))])

    def planned_k(self) -> int | None:
        """A k that the plan fixes for the case that all silos answer, or None."""
        return None

    def certificate(self, answered: Sequence[int]) -> Certificate:
        """The smallest certified k; one more than the number of answers if none is."""
        k = self._rank_of_threshold(len(answered), partial(self._smallest_k, self._laws(answered)))
        return Certificate(k, self.guarantee(float(self.level) if k <= len(answered) else 1.0, answered))

    def promises(self) -> dict[int, Promise]:
        """The guarantee by number of answers, from all silos down to the least number that gives a threshold."""
        level = float(self.level)
        silos = len(self.silos)
        replies = self._laws(range(silos))
        equal = len(set(replies)) == 1
        smallest_ks = self._smallest_ks(replies)
        promises = {}
        for answers in range(silos, 0, -1) if self.channel.single_replies else [silos]:
            # This k is enough for the silos with the lowest replies, and so for any of this number
            k = self._rank_of_threshold(answers, smallest_ks.get)
            if k <= answers:
                promises[answers] = Promise(level, k, "never")
            # Silos of one law have one certificate, whichever of them answer; Byzantine silos alone have none
            elif equal or self._honest(answers) < 1:
                promises[answers] = Promise(1.0, k, "always")
            # Of unequal silos, those with higher replies may have a certificate where the lowest have none
            else:
                promises[answers] = Promise(level, k, "perhaps")
        return promises

    def _rank_of_threshold(self, answers: int, smallest_k: Callable[[int], int | None]) -> int:
        """The k of the threshold among all answers; one more than their number for the threshold +inf.

        `smallest_k` returns the smallest certified k among the replies of a number of honest silos.
        """
        if answers == len(self.silos) and (planned := self.planned_k()) is not None:
            return planned
        k = smallest_k(self._honest(answers))
        # Byzantine silos may reply lowest
        return answers + 1 if k is None else min(k + self.liars, answers + 1)

    def coverage_failure(self, answered: Sequence[int], k: int) -> Callable[[float], float]:
        """The bound of Theorem F2: exact for order statistics of continuous scores, above that for private replies."""
        if k > len(answered):
            return lambda level: 0.0
        replies = self._laws(answered)
        honest = self._honest(len(answered))
        return lambda level: conditional_coverage_failure(replies, k - self.liars, level, honest)

    def _laws(self, answered: Sequence[int]) -> list[ReplyLaw]:
        """The laws of the replies that a certificate counts: of all silos, if absence may depend on their scores.

        The k-th smallest reply of any subset is at least the k-th smallest of all.
        """
        counted = range(len(self.silos)) if self.missing == "arbitrary" else answered
        return [self.reply_law(i) for i in counted]

    def _honest(self, answers: int) -> int:
        """The number of honest silos among those whose replies a certificate counts."""
        return len(self.silos) if self.missing == "arbitrary" else answers - self.liars

    def _smallest_k(self, replies: Sequence[ReplyLaw], honest: int) -> int | None:
        """The smallest k that is certified for this number of honest silos; None if none is."""
        certificate = certified_k(replies, self.level, self.delta, honest)
        return None if certificate is None else certificate[0]

    def _smallest_ks(self, replies: Sequence[ReplyLaw]) -> Mapping[int, int | None]:
        """The smallest certified k for every possible number of honest silos."""
        m = len(replies)
        if self.missing == "arbitrary":
            return {m: self._smallest_k(replies, m)}
        if m > MANY:
            return dict(enumerate(every_certified_k(replies, self.level, self.delta), 1))
        return {honest: self._smallest_k(replies, honest) for honest in range(1, m - self.liars + 1)}


# Draws for a comparison: of all representative sizes together, and at least of each
_ALL_DRAWS = 400
_LEAST_DRAWS = 8


@dataclass(frozen=True, kw_only=True)
class PrivateQQ(SortedReplies):
    """private-qq, the method of confide for private replies.

    `targets` has a target rank for each silo; for a secret size the target increases by `rate` with n + 1. Left, right,
    scale, flat and rise are those of `Slopes`. `n_min` is the least number of records of a silo of secret size.
    """

    parameters = ("targets", "rate", "left", "right", "scale", "n_min", "n_typical", "flat", "rise")
    secret_sizes = True

    targets: tuple[Fraction, ...]
    rate: Fraction
    left: int
    right: int
    scale: float
    flat: Fraction = Fraction(0)
    rise: int = 0

    @classmethod
    def planned(cls, terms: Terms, method: str, channel: Channel) -> Self:
        """The mechanisms of least expected coverage among the certified ones."""
        m = len(terms.silos)
        certain = m - terms.liars - terms.dropouts
        choice = best_private_qq(
            [silo.size for silo in terms.silos],
            terms.level,
            terms.epsilon,
            terms.candidates.size,
            delta=terms.delta,
            honest=m if terms.missing == "arbitrary" else certain,
            absent=terms.dropouts,
            most_k=certain,
            n_min=terms.n_min,
            n_typical=terms.n_typical,
        )
        if choice is None:
            raise too_few_records()
        # The mechanisms of all silos are equal except for the targets
        common = choice.mechanisms[0]
        return cls(
            **vars(terms),
            method=method,
            channel=channel,
            targets=tuple(slopes.offset for slopes in choice.mechanisms),
            rate=common.rate,
            left=common.left,
            right=common.right,
            scale=common.scale,
            flat=common.flat,
            rise=common.rise,
        )

    def mechanism(self, i: int) -> Slopes:
        """The slope mechanism."""
        return Slopes(self.rate, self.targets[i], self.left, self.right, self.scale, flat=self.flat, rise=self.rise)

    def reply_law(self, i: int) -> ReplyLaw:
        """The law of a random rank; for a secret size the worst case over all sizes from n_min on."""
        return slopes_reply(self.silos[i].size, self.mechanism(i), self.candidates.size, self.n_min, self.level)

    def answer_law(self, below: NDArray[np.float64]) -> NDArray[np.float64]:
        """The law from drawn counts and the exact law of each silo's choice, which is computed once for each size."""
        # The mean law of the reply of each representative size
        sizes = [silo.size or self.n_typical for silo in self.silos]
        silo_of_size = {size: i for i, size in enumerate(sizes)}
        representative = StandIns.of(sizes)
        draws = max(_LEAST_DRAWS, _ALL_DRAWS // len(representative.sizes))
        rng = np.random.default_rng(0)
        bins = np.diff(below, prepend=0.0)
        replies = [
            _mean_law_of_choice(self.mechanism(silo_of_size[size]), rng.multinomial(size, bins, draws))
            for size in representative.sizes.tolist()
        ]

        # P(at least k replies are at most e_j); +inf is the last candidate, and the threshold if there are fewer
        k = self.certify().k
        is_finite = k <= len(self.silos)
        at_most = tails(np.cumsum(replies, axis=1), representative.silos)(k) if is_finite else np.zeros(len(below))
        at_most[-1] = 1.0
        return np.maximum(np.diff(at_most, prepend=0.0), 0.0)

    def privacy(self, answered: Collection[int] | None = None) -> PrivacyStatement:
        """The largest loss of a silo, with zCDP and both adjacencies for secret sizes."""
        largest = super().privacy(answered)
        rho = zcdp_of_range(largest.epsilon)
        if self.neighbors == "replace_one":
            return replace(largest, rho=rho)
        replaced = max((self.mechanism(i).replace_one for i in self.answering(answered)), default=0.0)
        return replace(largest, neighbors="add_remove", add_remove=largest.epsilon, replace_one=replaced, rho=rho)

    def guarantee(self, coverage: float, answered: Sequence[int]) -> Guarantee:
        """The statement of the guarantee; for secret sizes it holds from n_min records per silo on."""
        stated = super().guarantee(coverage, answered)
        return replace(stated, n_min=self.n_min) if stated.n is None else stated


# Candidates whose probability is smaller by a factor e**-35 than the largest are left out
_UNLIKELY = 35.0


def _mean_law_of_choice(mechanism: Slopes, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The mean law of the mechanism's choice over drawn counts of shape (draws, m); shape (m,)."""
    total = np.zeros(counts.shape[1])
    for row in counts:
        utility = mechanism.utilities(row) / mechanism.scale
        likely = utility > utility.max() - _UNLIKELY
        total[likely] += selection_law(np.exp(utility[likely] - utility.max()))
    return np.asarray(total / total.sum())
