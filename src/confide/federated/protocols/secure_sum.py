"""`secure-sum`: noisy counts of all silos, of which only the sum opens.

Every silo adds a share of noise to its counts. The privacy is that of the opened sum, and the certificate that of a
noisy histogram of all records by the last rule, also for non-IID silos (docs/theory-last-rule.md, Theorem W1;
docs/theory-federated.md, Theorems F5, F9, F6 and F7). Sizes must be public.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.federated.certificates import certified, certifies, conditional_coverage_failure, smallest
from confide.federated.plausible import check_plausible
from confide.federated.protocols.channels import Channel, by_size
from confide.federated.protocols.method import Method, Promise, too_few_records
from confide.federated.protocols.plan_fields import Counts, Options, read_field, refuse_contradiction
from confide.federated.reply_laws import SummedReply
from confide.federated.sharing import check_scale, noise_law, noise_share
from confide.federated.terms import Terms
from confide.guarantee import Guarantee, chosen_by_last_rule, walk_end
from confide.support import Fields, float_above, scale_for

MOST_DEFICIT = 2**30
_DRAWS = 1000


@dataclass(frozen=True)
class NoisyCounts(Method):
    """secure-sum, the method of confide for non-IID silos and for the least noise.

    Parameters
    ----------
    scale
        The noise scale of the opened sum.
    target
        The target rank among all records, if all silos must answer; None if it follows from the silos on the list.
    weights
        For non-IID silos: the new record comes from silo j with probability n_j/n (`sizes`, Theorem F7). None for IID
        silos.
    honest
        Number of silos that are certainly in the sum and do not collude, from the channel.

    Examples
    --------
    >>> from confide import Candidates
    >>> from confide.federated import SiloKeys, plan
    >>> silos = [SiloKeys.generate(f"hospital {i}").public(size=200) for i in range(7)]
    >>> few = Candidates.unit(100)
    >>> made = plan(silos, 0.1, 2.0, candidates=few, method="secure-sum", population="common")
    >>> made.protocol.scale, made.channel.colluding, made.loss(0), made.certify()[1].coverage
    (1.0, 3, 2.0, 0.9)
    >>> opened = plan(silos, 0.1, 2.0, candidates=few, method="secure-sum", dropouts=1)
    >>> opened.channel.colluding, opened.channel.needed, len(opened.channel.openers), opened.channel.least(opened)
    (2, 6, 7, 6)
    """

    theorem = "Theorems F6 and F7"
    populations = ("mixture", "common")
    one_draw = True
    candidate_advice = "; 30 to 400 serve best"

    scale: float
    target: int | None
    weights: Literal["sizes"] | None
    honest: int

    @classmethod
    def check(cls, terms: Terms, *, opened: bool) -> None:
        """Reject delta for non-IID silos, and lists of silos that may depend on the scores."""
        if terms.delta is not None and terms.population == "mixture":
            raise InputError(
                "delta", "needs population='common': the training-conditional guarantee is for IID records"
            )
        if opened and terms.missing != "independent":
            raise InputError(
                "missing",
                "must be 'independent' for the method 'secure-sum' with dropouts",
                remedy="Private-qq supports 'arbitrary'",
            )

    @classmethod
    def planned(cls, terms: Terms, options: Options, channel: Channel) -> Self:
        """The least noise for the loss, and the smallest certified target; the shortest list must have one, too."""
        scale, all_silos = check_scale(scale_for(2, terms.epsilon), terms.size or 0), range(len(terms.silos))
        made = cls(scale, None, _weights(terms), channel.honest(terms))
        target = made.target_of(terms, all_silos)
        if target is None or made.target_of(terms, by_size(terms)[-channel.least(terms) :]) is None:
            raise too_few_records()
        return made if channel.second_message else replace(made, target=target)

    @classmethod
    def read(cls, fields: Fields, terms: Terms, channel: Channel) -> Self:
        """Read the fields `scale` and, if all silos must answer, `targets` (only one) and `weights`."""
        n, target, weights = terms.size or 0, None, _weights(terms)
        if not channel.second_message:
            targets = read_field(fields, "targets", terms)
            refuse_contradiction(len(targets) != 1 or targets[0].denominator > 1 or not 1 <= targets[0] <= n)
            target = int(targets[0])
            if weights is not None:
                read_field(fields, "weights", terms)
        made = cls(read_field(fields, "scale", terms), target, weights, channel.honest(terms))
        check_scale(made.scale, n)
        return made

    def fields(self) -> dict[str, Any]:
        """The fields: the target as the only one of `targets`, the others by their own names."""
        stated: dict[str, Any] = {"scale": self.scale}
        if self.target is None:
            return stated
        stated["targets"] = (self.target,)
        return stated if self.weights is None else {**stated, "weights": self.weights}

    def bits(self, terms: Terms) -> int:
        """The number of bits for counts and noise."""
        return modulus_bits(terms.size or 0, self.scale, len(terms.silos), self.honest)

    def target_rank(self, i: int) -> None:
        """None: the sum has one target."""

    def loss(self, terms: Terms, i: int) -> float:
        """2/scale, because a replaced record changes two counts by one."""
        return float_above(Fraction(2) / Fraction(self.scale))

    def draw(self, terms: Terms, own: int, counts: Counts) -> Counts:
        """The counts with a share of noise."""
        return counts + noise_share(len(counts), self.scale, self.honest)

    def check_total(self, terms: Terms, who: Sequence[int], total: NDArray[np.int64]) -> None:
        """Reject a sum that the records of these silos and the noise do not explain."""
        check_plausible(total, _records(terms, who), self.scale, len(who) / self.honest)

    def read_off(self, terms: Terms, who: Sequence[int], total: NDArray[np.int64], k: int) -> float:
        """The candidate that the rule selects for the target rank among the records of these silos."""
        target = self.target_of(terms, who)
        if target is None:
            return math.inf
        return float(terms.candidates.values[int(chosen_by_last_rule(total, _records(terms, who), target))])

    def target_of(self, terms: Terms, who: Sequence[int]) -> int | None:
        """The target rank among the records of these silos; None for +inf."""
        if self.target is not None:
            return self.target
        n = _records(terms, who)
        return smallest(lambda rank: self._is_enough(terms, n, len(who), rank), n, math.ceil(terms.level * (n + 1)))

    def certify(self, terms: Terms, who: Sequence[int]) -> tuple[int, Guarantee]:
        """The guarantee for the sum of these silos, with k = 0, because replies are not sorted."""
        target, coverage = self.target_of(terms, who), 1.0  # by +inf
        if target is not None:
            reply = self._new_record_reply(terms, _records(terms, who), len(who), target)
            coverage = float(certified([reply], 1, terms.level, terms.delta))
        return 0, self.guarantee(terms, coverage, who)

    def promises(self, terms: Terms, numbers: Sequence[int]) -> dict[int, Promise]:
        """The guarantee of the stated target for all silos, or the guarantees for lists of these numbers of silos."""
        m, level = len(terms.silos), float(terms.level)
        if self.target is not None:
            return {m: Promise(self.certify(terms, range(m))[1].coverage, 0, "never")}
        sizes = sorted(silo.size or 0 for silo in terms.silos)

        def has_target(n: int, shares: int) -> bool:
            return self._is_enough(terms, n, shares, n)

        # E[N] increases with the number of shares, because N is a convex function of the noise, whose mean is zero. If
        # the smallest silos have a target in spite of all shares of noise, every list has one.
        always = terms.delta is None and has_target(sum(sizes[: numbers[-1]]), m)
        found = {}
        for count in numbers:
            if always or has_target(sum(sizes[:count]), count):
                found[count] = Promise(level, 0, "never")
            else:
                some = has_target(sum(sizes[m - count :]), count)
                found[count] = Promise(level if some else 1.0, 0, "perhaps" if some else "always")
        return found

    def coverage_failure(self, terms: Terms, who: Sequence[int], k: int) -> Callable[[float], float]:
        """The bound for IID records."""
        target = self.target_of(terms, who)
        if target is None:
            return lambda level: 0.0
        reply = self._iid_reply(terms, _records(terms, who), len(who), target)
        return lambda level: conditional_coverage_failure([reply], 1, level)

    def answer_law(self, terms: Terms, below: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """The law from drawn counts and drawn noise of all silos."""
        n, size, target = terms.size or 0, len(below), self.target_of(terms, range(len(terms.silos)))
        if target is None:
            return np.append(np.zeros(size - 1), 1.0)
        shares, p = len(terms.silos) / self.honest, -np.expm1(-1 / self.scale)
        noise = rng.negative_binomial(shares, p, (_DRAWS, size)) - rng.negative_binomial(shares, p, (_DRAWS, size))
        counts = rng.multinomial(n, np.diff(below, prepend=0.0), _DRAWS) + noise
        chosen = chosen_by_last_rule(counts, n, target)
        law: NDArray[np.float64] = np.bincount(chosen, minlength=size) / _DRAWS
        return law

    def _is_enough(self, terms: Terms, n: int, shares: int, target: int) -> bool:
        """Whether a target rank among n records is certified with this number of shares of noise."""
        return certifies([self._new_record_reply(terms, n, shares, target)], 1, terms.level, terms.delta)

    def _iid_reply(self, terms: Terms, n: int, shares: int, target: int) -> SummedReply:
        """The law of the sum for IID records."""
        return SummedReply(n, target, total_deficit(self.scale, shares, self.honest, terms.candidates.size))

    def _new_record_reply(self, terms: Terms, n: int, shares: int, target: int) -> SummedReply:
        """The certified law for the population of the terms.

        A record of silo j with probability n_j/n costs one record and one rank (Theorem F7).
        """
        reply = self._iid_reply(terms, n, shares, target)
        if terms.population == "common":
            return reply
        return replace(reply, n=n - 1, target=target - 1)


def _weights(terms: Terms) -> Literal["sizes"] | None:
    return "sizes" if terms.population == "mixture" else None


def _records(terms: Terms, who: Sequence[int]) -> int:
    return sum(terms.silos[i].size or 0 for i in who)


@lru_cache(maxsize=64)
def total_deficit(scale: float, silos: int, honest: int, candidates: int) -> NDArray[np.float64]:
    """The law of the rank deficit when `silos` shares are added, `honest` of which make discrete Laplace noise.

    The shares of all silos add up to more than discrete Laplace noise. The array must not be changed.
    """
    return walk_end(noise_law(scale, silos / honest), candidates - 1)


def modulus_bits(n: int, scale: float, silos: int, honest: int) -> int:
    """32 if counts and noise stay below 2**30 (noise except with a probability below e**-700), else 64.

    A total beyond half the modulus would wrap around. Counts cannot reach it. Noise that does is a larger rank deficit
    than `total_deficit` considers, so it already counts as a failure there.
    """
    room = 700 * scale * (1 + silos / honest) + math.log2(1 + silos)
    return 32 if n + room < MOST_DEFICIT else 64
