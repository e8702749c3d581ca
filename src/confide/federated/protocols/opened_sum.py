"""secure-sum with silos that may be missing: openers help to open the sum of those who answered, whoever these are.

See `DealtVectors` for the two messages (docs/federated.md, Theorem S1); the loss is that of the opened sum (S2).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.federated.noise_shares import check_scale, noise_share
from confide.federated.plausible import refuse_implausible
from confide.federated.protocols.dealt import DealtVectors, by_size, choose_openers
from confide.federated.protocols.plan_fields import read_field
from confide.federated.protocols.protocol import Counts, Options, Promise, too_few_records
from confide.federated.protocols.secure_sum import (
    choose_summed,
    summed_coverage,
    summed_failure,
    summed_target,
    total_deficit,
)
from confide.federated.protocols.summed import SummedProtocol
from confide.federated.terms import Terms
from confide.guarantee import Guarantee
from confide.selection import scale_for
from confide.support import Fields


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
        return summed_target(n, terms.level, terms.delta, self._deficit(terms, len(who)), *_price(terms))

    def certify(self, terms: Terms, who: Sequence[int]) -> tuple[int, Guarantee]:
        """Of the sum of the silos on the list."""
        self.refuse_short(terms, who)
        target, n = self.target(terms, who), sum(terms.silos[i].size or 0 for i in who)
        if target is None:
            coverage = 1.0  # by +inf
        elif terms.delta is None:
            coverage = float(summed_coverage(n, target, self._deficit(terms, len(who)), *_price(terms)))
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
            return summed_coverage(n, n, deficit, *_price(terms)) >= terms.level
        return summed_failure(n, n, deficit, float(terms.level)) <= terms.delta

    def coverage_failure(self, terms: Terms, who: Sequence[int], k: int) -> Callable[[float], float]:
        """For i.i.d. records, `summed_failure`."""
        target, n = self.target(terms, who), sum(terms.silos[i].size or 0 for i in who)
        deficit = self._deficit(terms, len(who))
        return lambda level: 0.0 if target is None else summed_failure(n, target, deficit, level)

    def _deficit(self, terms: Terms, shares: int) -> NDArray[np.float64]:
        return total_deficit(self.scale, shares, self.honest(terms), terms.candidates.size)


def _price(terms: Terms) -> tuple[int, int]:
    """What the new record costs, in `summed_coverage`: it is one of the n + 1, or of silo j with probability n_j/n."""
    return (1, 0) if terms.population == "common" else (0, 1)
