"""`secure-sum`: noisy counts of all silos, of which only the sum opens.

Every silo adds a share of noise to its counts. The privacy is that of the opened sum, and the certificate that of a
noisy histogram of all records by the last rule, also for non-IID silos (docs/theory-one-number.md, Theorem W3;
docs/theory-federated.md, Theorems F5, F9, F6 and F7). Sizes must be public.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.federated.plausible import check_plausible
from confide.federated.protocols.channels import Channel, by_size
from confide.federated.protocols.method import Method, Promise, too_few_records
from confide.federated.sharing import check_scale, noise_law, noise_share
from confide.federated.terms import Counts, Terms
from confide.guarantee import (
    Guarantee,
    chosen_by_last_rule,
    limit_coverage,
    log_concave_residual_life,
    most_beyond,
)
from confide.support import float_above, scale_for

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
    honest: int

    @classmethod
    def check(cls, terms: Terms, *, opened: bool) -> None:
        """Reject delta, and lists of silos that may depend on the scores."""
        if terms.delta is not None:
            remedy = "Private-qq has a training-conditional guarantee"
            raise InputError("delta", "must be left out for the method 'secure-sum'", remedy=remedy)
        if opened and terms.missing != "independent":
            raise InputError(
                "missing",
                "must be 'independent' for the method 'secure-sum' with dropouts",
                remedy="Private-qq supports 'arbitrary'",
            )

    @classmethod
    def planned(cls, terms: Terms, channel: Channel) -> Self:
        """The least noise for the loss, and the smallest certified target; the shortest list must have one, too."""
        scale, all_silos = check_scale(scale_for(2, terms.epsilon), terms.size or 0), range(len(terms.silos))
        made = cls(scale, None, channel.honest(terms))
        target = made.target_of(terms, all_silos)
        if target is None or made.target_of(terms, by_size(terms)[-channel.least(terms) :]) is None:
            raise too_few_records()
        return made if channel.second_message else replace(made, target=target)

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
        beyond = _records(terms, who) - target
        return float(terms.candidates.values[int(chosen_by_last_rule(total, beyond))])

    def target_of(self, terms: Terms, who: Sequence[int]) -> int | None:
        """The target rank among the records of these silos; None for +inf."""
        if self.target is not None:
            return self.target
        n = _records(terms, who)
        beyond = most_beyond(terms.level, _exchangeable(terms, n), self.cost(len(who)))
        return n - beyond if 0 <= beyond < n else None

    def certify(self, terms: Terms, who: Sequence[int]) -> tuple[int, Guarantee]:
        """The guarantee for the sum of these silos, with k = 0, because replies are not sorted."""
        target, coverage, n = self.target_of(terms, who), 1.0, _records(terms, who)  # by +inf
        if target is not None:
            coverage = float(limit_coverage(n - target, _exchangeable(terms, n), self.cost(len(who))))
        return 0, self.guarantee(terms, coverage, who)

    def promises(self, terms: Terms, numbers: Sequence[int]) -> dict[int, Promise]:
        """The guarantee of the stated target for all silos, or the guarantees for lists of these numbers of silos."""
        m, level = len(terms.silos), terms.level
        if self.target is not None:
            return {m: Promise(self.certify(terms, range(m))[1].coverage, 0, "never")}
        sizes = sorted(silo.size or 0 for silo in terms.silos)

        def has_target(n: int, shares: int) -> bool:
            return most_beyond(level, _exchangeable(terms, n), self.cost(shares)) >= 0

        # If the smallest silos have a target in spite of all shares of noise, every list has one.
        always = has_target(sum(sizes[: numbers[-1]]), m)
        found = {}
        for count in numbers:
            if always or has_target(sum(sizes[:count]), count):
                found[count] = Promise(float(level), 0, "never")
            else:
                some = has_target(sum(sizes[m - count :]), count)
                found[count] = Promise(float(level) if some else 1.0, 0, "perhaps" if some else "always")
        return found

    def coverage_failure(self, terms: Terms, who: Sequence[int], k: int) -> Callable[[float], float]:
        """None is proved: the guarantee is marginal."""
        remedy = "Private-qq has one"
        raise InputError("delta", "has no training-conditional statement for the method 'secure-sum'", remedy=remedy)

    def answer_law(self, terms: Terms, below: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """The law from drawn counts and drawn noise of all silos."""
        n, size, target = terms.size or 0, len(below), self.target_of(terms, range(len(terms.silos)))
        if target is None:
            return np.append(np.zeros(size - 1), 1.0)
        shares, p = len(terms.silos) / self.honest, -np.expm1(-1 / self.scale)
        noise = rng.negative_binomial(shares, p, (_DRAWS, size)) - rng.negative_binomial(shares, p, (_DRAWS, size))
        counts = rng.multinomial(n, np.diff(below, prepend=0.0), _DRAWS) + noise
        chosen = chosen_by_last_rule(counts, n - target)
        law: NDArray[np.float64] = np.bincount(chosen, minlength=size) / _DRAWS
        return law

    def cost(self, shares: int) -> float:
        """What this number of shares of noise costs, in ranks."""
        return _cost(self.scale, shares, self.honest)


def _records(terms: Terms, who: Sequence[int]) -> int:
    return sum(terms.silos[i].size or 0 for i in who)


def _exchangeable(terms: Terms, n: int) -> int:
    """The number of records that are exchangeable with the new one.

    A record of silo j with probability n_j/n costs one record and one rank (Theorem F7).
    """
    return n - 1 if terms.population == "mixture" else n


@lru_cache(maxsize=64)
def _cost(scale: float, silos: int, honest: int) -> float:
    """The ranks that the shares of so many silos cost, `honest` of which make discrete Laplace noise.

    The shares of all silos add up to more than discrete Laplace noise, of a log-concave law.
    """
    law = noise_law(scale, silos / honest)
    return log_concave_residual_life(law[len(law) // 2 :])


def modulus_bits(n: int, scale: float, silos: int, honest: int) -> int:
    """32 if counts and noise stay below 2**30 (noise except with a probability below e**-700), else 64.

    A total beyond half the modulus would wrap around. Counts cannot reach it, and noise practically never does.
    """
    room = 700 * scale * (1 + silos / honest) + math.log2(1 + silos)
    return 32 if n + room < MOST_DEFICIT else 64
