"""`secure-sum`: noisy counts of all silos together, masked; or opened where silos stay away.

secure-sum in one message: every silo sends its counts, with a share of noise and masked; only the sum of all opens.

Privacy is that of the opened sum (docs/theory-federated.md, Theorem F5), the certificate that of a noisy histogram of
all records, unlike silos included (Theorems F6 and F6b). It needs public sizes and all of its silos.

secure-sum with silos that may be missing: openers help to open the sum of those who answered, whoever these are.

See `DealtVectors` for the two messages (docs/theory-federated.md, Theorem S1); the loss is that of the opened sum (S2).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.federated.certified_k import bisect
from confide.federated.plausible import refuse_implausible
from confide.federated.protocols.protocol import (
    Counts,
    Options,
    Promise,
    read_field,
    refuse_contradiction,
    too_few_records,
)
from confide.federated.protocols.vectors import DealtVectors, MaskedVectors, SummedProtocol, by_size, choose_openers
from confide.federated.sharing import check_scale, noise_law, noise_share
from confide.federated.terms import Terms, check_count
from confide.guarantee import AboutSilos, Guarantee, walk_maximum
from confide.support import Fields, scale_for

MOST_DEFICIT = 2**30


@dataclass(frozen=True)
class SecureSum(MaskedVectors, SummedProtocol):
    """Our own method for silos that differ, and for the least noise; see `OpenedSum` for silos that may be missing.

    Parameters
    ----------
    target
        The target rank among all records.
    scale
        The noise scale of the opened sum.
    colluding
        How many silos may pool what they know with the coordinator.
    bits
        Masks are modulo 2**bits.
    weights
        For unlike silos: the new record comes from silo j with probability n_j/n (`sizes`, Theorem F6b). None in plans
        of version 0.1, where it is (n_j + 1)/(n + m), and where silos are alike.

    Examples
    --------
    >>> from confide import Candidates
    >>> from confide.federated import SiloKeys, plan
    >>> silos = [SiloKeys.generate(f"hospital {i}").public(size=200) for i in range(5)]
    >>> few = Candidates.unit(100)
    >>> made = plan(silos, 0.1, 2.0, candidates=few, method="secure-sum", population="common")
    >>> made.protocol.scale, made.protocol.colluding, made.loss(0), made.certify()[1].coverage
    (1.0, 2, 2.0, 0.9)
    """

    target: int
    scale: float
    colluding: int
    bits: int
    weights: Literal["sizes"] | None = None

    @classmethod
    def planned(cls, terms: Terms, options: Options) -> Self:
        """The least noise for the loss, and the smallest target that is certified with it."""
        m, n = len(terms.silos), terms.size or 0
        colluding = (
            max(1, (m - 1) // 2) if options.colluding is None else check_count("colluding", options.colluding, m - 1)
        )
        scale = check_scale(scale_for(2, terms.epsilon or 0.0), n)
        deficit = total_deficit(scale, m, m - colluding, terms.candidates.size)
        weights: Literal["sizes"] | None = "sizes" if terms.population == "mixture" else None
        target = summed_target(n, terms.level, terms.delta, deficit, *_price(terms, weights))
        if target is None:
            raise too_few_records()
        return cls(target, scale, colluding, modulus_bits(n, scale, m, m - colluding), weights)

    @classmethod
    def read(cls, fields: Fields, terms: Terms) -> Self:
        """From the fields `targets` (one alone), `scale`, `colluding`, `bits` and, where stated, `weights`."""
        targets, n, m = read_field(fields, "targets", terms), terms.size or 0, len(terms.silos)
        refuse_contradiction(len(targets) != 1 or targets[0].denominator > 1 or not 1 <= targets[0] <= n)
        names = ("scale", "colluding", "bits", *(["weights"] if "weights" in fields else []))
        made = cls(int(targets[0]), *(read_field(fields, name, terms) for name in names))
        check_scale(made.scale, n)
        refuse_contradiction(made.weights is not None and terms.population != "mixture")
        refuse_contradiction(made.bits < modulus_bits(n, made.scale, m, made.honest(terms)))
        return made

    def fields(self) -> dict[str, Any]:
        """The target as the only one of `targets`, the others under their own names."""
        stated = {"targets": [str(self.target)], "scale": self.scale, "colluding": self.colluding, "bits": self.bits}
        return stated if self.weights is None else {**stated, "weights": self.weights}

    def aim(self, terms: Terms) -> int:
        """The target of the plan."""
        return self.target

    def addend(self, terms: Terms, own: int, counts: Counts) -> Counts:
        """The counts and a share of noise."""
        return counts + noise_share(len(counts), self.scale, self.honest(terms))

    def refuse_total(self, terms: Terms, who: Sequence[int], total: NDArray[np.int64]) -> None:
        """Refuse what all records and noise do not explain."""
        refuse_implausible(total, terms.size or 0, self.scale, len(terms.silos) / self.honest(terms))

    def choose(self, terms: Terms, who: Sequence[int], total: NDArray[np.int64]) -> float:
        """The first candidate that reaches the target."""
        return float(terms.candidates.values[choose_summed(total, terms.size or 0, self.target)])

    def certify(self, terms: Terms, who: Sequence[int]) -> tuple[int, Guarantee]:
        """Of the sum of all silos."""
        n, deficit = terms.size or 0, self._deficit(terms)
        if terms.delta is None:
            coverage = min(summed_coverage(n, self.target, deficit, *_price(terms, self.weights)), Fraction(1))
        else:
            failure = summed_failure(n, self.target, deficit, float(terms.level))
            coverage = terms.level if failure <= terms.delta else Fraction(0)
        return 0, self.guarantee(terms, float(coverage), who)

    def about_silos(self, terms: Terms) -> AboutSilos | None:
        """Plans of version 0.1 count a record more for every silo."""
        stated = super().about_silos(terms)
        return "by size + 1" if stated == "by size" and self.weights is None else stated

    def coverage_failure(self, terms: Terms, who: Sequence[int], k: int) -> Callable[[float], float]:
        """For i.i.d. records, `summed_failure`."""
        deficit = self._deficit(terms)
        return lambda level: summed_failure(terms.size or 0, self.target, deficit, level)

    def _deficit(self, terms: Terms) -> NDArray[np.float64]:
        return total_deficit(self.scale, len(terms.silos), self.honest(terms), terms.candidates.size)


def _price(terms: Terms, weights: str | None) -> tuple[int, int]:
    """What the new record costs: how many records are added to n, and how many ranks are lost, in `summed_coverage`."""
    if terms.population == "common":
        return 1, 0
    return (0, 1) if weights == "sizes" else (len(terms.silos), 0)


@lru_cache(maxsize=64)
def total_deficit(scale: float, silos: int, honest: int, candidates: int) -> NDArray[np.float64]:
    """The law of the rank deficit when `silos` shares are added, `honest` of which make discrete Laplace noise.

    The shares of all silos add up to more than discrete Laplace noise. The array must not be changed.
    """
    return walk_maximum(noise_law(scale, silos / honest), candidates - 1)


def summed_coverage(n: int, target: int, deficit: NDArray[np.float64], extra: int, lost: int = 0) -> Fraction:
    """E[max(T - lost - N, 0)] / (n + extra): marginal coverage of the noisy histogram with target rank T <= n.

    n is the number of records in all silos, `deficit` P(N = 0), P(N = 1), ... If all records are exchangeable `extra`
    is 1 and `lost` 0. If silos differ and the new record comes from silo j with probability n_j/n, `extra` is 0 and
    `lost` 1; with probability (n_j + 1)/(n + silos), `extra` is the number of silos and `lost` 0.

    Examples
    --------
    >>> float(summed_coverage(99, 91, np.array([0.5, 0.5]), 1))
    0.905
    >>> float(summed_coverage(100, 92, np.array([0.5, 0.5]), 0, 1))
    0.905
    """
    ranks = np.maximum(target - lost - np.arange(len(deficit)), 0)
    return Fraction(float(ranks @ deficit)) / (n + extra)


def summed_failure(n: int, target: int, deficit: NDArray[np.float64], level: float) -> float:
    """An upper bound on P(coverage given the data < level): sum over N of P(Bin(n, level) >= T - N), i.i.d. records."""
    from scipy.special import bdtrc

    ranks = target - np.arange(len(deficit))
    fails = np.where(ranks <= 0, 1.0, bdtrc(np.clip(ranks, 1, n) - 1, n, level))
    return float(fails @ deficit + max(0.0, 1 - deficit.sum()))


def summed_target(
    n: int, level: Fraction, delta: float | None, deficit: NDArray[np.float64], extra: int, lost: int = 0
) -> int | None:
    """The smallest target rank that certifies the level; None if it exceeds n.

    Examples
    --------
    >>> summed_target(99, Fraction(9, 10), None, np.array([0.5, 0.5]), 1)
    91
    """

    def enough(target: int) -> bool:
        if delta is None:
            return summed_coverage(n, target, deficit, extra, lost) >= level
        return summed_failure(n, target, deficit, float(level)) <= delta

    return bisect(enough, 0, n) if enough(n) else None


def choose_summed(counts: NDArray[np.int64], n: int, target: int) -> int:
    """The first candidate k with n - sum_(j>k) counts_j >= target, from noisy counts of shape (m,).

    Examples
    --------
    >>> choose_summed(np.array([5, -1, 3, 2]), n=9, target=6)
    2
    """
    reached = n - (np.cumsum(counts[::-1])[::-1] - counts) >= target
    return int(np.argmax(reached))


def modulus_bits(n: int, scale: float, silos: int, honest: int) -> int:
    """32 if counts and noise stay below 2**30 (noise but for a probability below e**-700), else 64.

    A total beyond half the modulus would wrap around: counts cannot reach it, and noise that does is a larger rank
    deficit than `total_deficit` considers, so it is already counted as a failure there.
    """
    room = 700 * scale * (1 + silos / honest) + math.log2(1 + silos)
    return 32 if n + room < MOST_DEFICIT else 64


@dataclass(frozen=True)
class OpenedSum(DealtVectors, SummedProtocol):
    """`secure-sum` with `dropouts` of 1 or more.

    Parameters
    ----------
    scale
        The noise scale of the opened sum.
    colluding
        How many silos may pool what they know with the coordinator.
    openers
        The silos that can help to open, by place.
    needed
        How many of them must.

    Examples
    --------
    >>> from confide import Candidates
    >>> from confide.federated import SiloKeys, plan
    >>> silos = [SiloKeys.generate(f"hospital {i}").public(size=200) for i in range(7)]
    >>> few = Candidates.unit(100)
    >>> made = plan(silos, 0.1, 2.0, candidates=few, method="secure-sum", dropouts=1)
    >>> made.protocol.colluding, made.protocol.needed, len(made.protocol.openers), made.protocol.least(made)
    (2, 6, 7, 6)
    """

    scale: float
    colluding: int
    openers: tuple[int, ...]
    needed: int

    @classmethod
    def check(cls, terms: Terms) -> None:
        """Also that silos are not missing because of their scores: those on the list would not be like themselves."""
        super().check(terms)
        if terms.missing != "independent":
            raise InputError(
                "missing must be 'independent' for the method 'secure-sum' with dropouts; private-qq serves 'arbitrary'"
            )

    @classmethod
    def planned(cls, terms: Terms, options: Options) -> Self:
        """The largest silos open, as few of them as is safe; the noise is enough for the shortest list."""
        colluding, openers, needed = choose_openers(terms, options)
        scale = check_scale(scale_for(2, terms.epsilon or 0.0), terms.size or 0)
        made = cls(scale, colluding, openers, needed)
        made.refuse_terms(terms)
        if made.target(terms, by_size(terms)[-made.least(terms) :]) is None or made.aim(terms) is None:
            raise too_few_records()
        return made

    @classmethod
    def read(cls, fields: Fields, terms: Terms) -> Self:
        """From the fields `scale`, `colluding`, `openers` and `needed`; no other plan may open a second sum."""
        names = ("scale", "colluding", "openers", "needed")
        made = cls(*(read_field(fields, name, terms) for name in names))
        check_scale(made.scale, terms.size or 0)
        made.refuse_openers(terms)
        return made

    def fields(self) -> dict[str, Any]:
        """Under their own names."""
        return {
            "scale": self.scale,
            "colluding": self.colluding,
            "openers": list(self.openers),
            "needed": self.needed,
        }

    def aim(self, terms: Terms) -> int | None:
        """The target of the longest list."""
        return self.target(terms, range(len(terms.silos)))

    def addend(self, terms: Terms, own: int, counts: Counts) -> Counts:
        """The counts and a share of noise."""
        return counts + noise_share(len(counts), self.scale, self.honest(terms))

    def refuse_total(self, terms: Terms, who: Sequence[int], total: NDArray[np.int64]) -> None:
        """Refuse what the records of the silos on the list and noise do not explain."""
        n = sum(terms.silos[i].size or 0 for i in who)
        refuse_implausible(total, n, self.scale, len(who) / self.honest(terms))

    def choose(self, terms: Terms, who: Sequence[int], total: NDArray[np.int64]) -> float:
        """The threshold from the opened sum of the silos on the list."""
        target = self.target(terms, who)
        n = sum(terms.silos[i].size or 0 for i in who)
        return float("inf") if target is None else float(terms.candidates.values[choose_summed(total, n, target)])

    def target(self, terms: Terms, who: Sequence[int]) -> int | None:
        """The target rank among the records of the silos on the list; None if none is certified."""
        n = sum(terms.silos[i].size or 0 for i in who)
        return summed_target(n, terms.level, terms.delta, self._deficit(terms, len(who)), *_price_opened(terms))

    def certify(self, terms: Terms, who: Sequence[int]) -> tuple[int, Guarantee]:
        """Of the sum of the silos on the list."""
        self.refuse_short(terms, who)
        target, n = self.target(terms, who), sum(terms.silos[i].size or 0 for i in who)
        if target is None:
            coverage = 1.0  # by +inf
        elif terms.delta is None:
            coverage = float(summed_coverage(n, target, self._deficit(terms, len(who)), *_price_opened(terms)))
        else:
            coverage = float(terms.level)
        return 0, self.guarantee(terms, coverage, who)

    def promises(self, terms: Terms) -> dict[int, Promise]:
        """From all silos down to the least number on a list."""
        m, least, level = len(terms.silos), self.least(terms), float(terms.level)
        sizes = sorted(silo.size or 0 for silo in terms.silos)
        # E[N] grows with the number of shares, for N is a convex function of the noise, whose mean is zero: if the
        # fewest records have a target in spite of all shares, so has every list.
        always = terms.delta is None and self._enough(terms, sum(sizes[:least]), m)
        found = {}
        for count in range(m, least - 1, -1):
            if always or self._enough(terms, sum(sizes[:count]), count):
                found[count] = Promise(level, 0, "never")
            else:
                some = self._enough(terms, sum(sizes[m - count :]), count)
                found[count] = Promise(level if some else 1.0, 0, "perhaps" if some else "always")
        return found

    def _enough(self, terms: Terms, n: int, shares: int) -> bool:
        """Whether n records have a target in spite of so many shares of noise: whether n itself is one."""
        deficit = self._deficit(terms, shares)
        if terms.delta is None:
            return summed_coverage(n, n, deficit, *_price_opened(terms)) >= terms.level
        return summed_failure(n, n, deficit, float(terms.level)) <= terms.delta

    def coverage_failure(self, terms: Terms, who: Sequence[int], k: int) -> Callable[[float], float]:
        """For i.i.d. records, `summed_failure`."""
        target, n = self.target(terms, who), sum(terms.silos[i].size or 0 for i in who)
        deficit = self._deficit(terms, len(who))
        return lambda level: 0.0 if target is None else summed_failure(n, target, deficit, level)

    def _deficit(self, terms: Terms, shares: int) -> NDArray[np.float64]:
        return total_deficit(self.scale, shares, self.honest(terms), terms.candidates.size)


def _price_opened(terms: Terms) -> tuple[int, int]:
    """What the new record costs, in `summed_coverage`: it is one of the n + 1, or of silo j with probability n_j/n."""
    return (1, 0) if terms.population == "common" else (0, 1)
