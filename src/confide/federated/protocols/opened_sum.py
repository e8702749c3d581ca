"""secure-sum with silos that may be missing: openers help to open the sum of those who answered, whoever these are.

Every silo deals Shamir shares of its noised counts, sealed to the openers (message 1). The coordinator signs one list
of answers, and each opener returns the sum of the shares that it holds of those on the list (message 2); `needed` parts
open the sum, and nothing else ever opens. An opener helps to open one list per session; with 3 needed > 2 K + c that is
enough whatever lists are told to whom (docs/federated.md, Theorem S1); the loss is that of the opened sum (S2).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.federated.noise_shares import check_scale, noise_share
from confide.federated.protocols.plan_fields import read_field, refuse_contradiction
from confide.federated.protocols.protocol import Counts, Options, Promise, too_few_records
from confide.federated.protocols.secure_sum import (
    choose_summed,
    summed_coverage,
    summed_failure,
    summed_target,
    total_deficit,
)
from confide.federated.protocols.summed import SummedProtocol
from confide.federated.refusals import Refusal
from confide.federated.sealed_shares import seal_shares
from confide.federated.shamir import deal
from confide.federated.terms import Terms, check_count
from confide.guarantee import Guarantee
from confide.selection import scale_for
from confide.support import Fields

MOST_OPENERS = 64
MOST_ELEMENTS = 2**16
"""Openers times candidates: an answer stays below the million characters that a ledger keeps."""
MOST_LISTED = 2**19
"""Silos times candidates: what is asked of an opener stays below the millions of characters that are read."""

_KEY = re.compile(r"[0-9a-f]{64}")


class Dealt(NamedTuple):
    """The first message of a silo: which answer it is (the fresh public key), and a sealed share for every opener."""

    ephemeral: str
    shares: list[str]


@dataclass(frozen=True)
class OpenedSum(SummedProtocol):
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
        m = len(terms.silos)
        largest = sorted(range(m), key=lambda i: (-(terms.silos[i].size or 0), i))
        openers = tuple(sorted(largest[:MOST_OPENERS]))
        k = len(openers)
        colluding = max(1, k // 3) if options.colluding is None else check_count("colluding", options.colluding, k - 1)
        scale = check_scale(scale_for(2, terms.epsilon or 0.0), terms.size or 0)
        made = cls(scale, colluding, openers, least_needed(k, colluding))
        made.refuse_terms(terms)
        if made.target(terms, largest[-made.least(terms) :]) is None or made.target(terms, range(m)) is None:
            raise too_few_records()
        return made

    @classmethod
    def read(cls, fields: Fields, terms: Terms) -> Self:
        """From the fields `scale`, `colluding`, `openers` and `needed`; no other plan may open a second sum."""
        names = ("scale", "colluding", "openers", "needed")
        made = cls(*(read_field(fields, name, terms) for name in names))
        k = len(made.openers)
        check_scale(made.scale, terms.size or 0)
        refuse_contradiction(list(made.openers) != sorted(set(made.openers)) or not 1 <= k <= MOST_OPENERS)
        refuse_contradiction(not least_needed(k, made.colluding) <= made.needed <= k)
        made.refuse_terms(terms)
        return made

    def refuse_terms(self, terms: Terms) -> None:
        """Refuse more missing silos than can be done without, and messages that are too long."""
        m, k = len(terms.silos), len(self.openers)
        if self.least(terms) < self.needed:
            raise InputError(
                f"dropouts must be at most {max(m - self.needed, 0)} for {m} silos of which {self.colluding} may "
                f"collude: {self.needed} of {k} silos must help to open the sum; of 4 silos and fewer nobody can be "
                "done without if one may collude: use dropouts=0, or the method 'private-qq'"
            )
        most = min(MOST_ELEMENTS // k, MOST_LISTED // m)
        if terms.candidates.size > most:
            raise InputError(
                f"candidates must number at most {most} for the method 'secure-sum' with dropouts, {m} silos and {k} "
                f"openers; found {terms.candidates.size}; 100 to 400 serve best"
            )

    def fields(self) -> dict[str, Any]:
        """Under their own names."""
        return {
            "scale": self.scale,
            "colluding": self.colluding,
            "openers": list(self.openers),
            "needed": self.needed,
        }

    def least(self, terms: Terms) -> int:
        """The least number of silos on a list."""
        return len(terms.silos) - terms.dropouts

    def honest(self, terms: Terms) -> int:
        """The silos of the shortest list that do not collude."""
        return self.least(terms) - self.colluding

    def aim(self, terms: Terms) -> int | None:
        """The target of the longest list."""
        return self.target(terms, range(len(terms.silos)))

    def message(self, terms: Terms, own: int, counts: Counts, agreement: bytes, context: bytes) -> dict[str, Any]:
        """Shares of the counts and a share of noise, each sealed to its opener."""
        values = counts + noise_share(len(counts), self.scale, self.honest(terms))
        shares = deal(values, len(self.openers), self.needed)
        openers = [terms.silos[i].agreement for i in self.openers]
        ephemeral, sealed = seal_shares(shares, openers, terms.silos[own].agreement, agreement, context)
        return {"ephemeral": ephemeral, "shares": sealed}

    def read_message(self, terms: Terms, i: int, fields: Fields) -> Dealt:
        """A fresh public key and a sealed share for every opener; whether these open, the openers will see."""
        return Dealt(read_ephemeral(fields.take("ephemeral", str)), self.read_shares(terms, fields, len(self.openers)))

    def read_shares(self, terms: Terms, fields: Fields, count: int) -> list[str]:
        """So many sealed shares, each of the one length that they have."""
        shares: list[str] = fields.take("shares", list)
        length = 4 * ceil((8 * terms.candidates.size + 16) / 3)
        if len(shares) != count or not all(isinstance(text, str) and len(text) == length for text in shares):
            raise Refusal("malformed", "sealed shares must be texts of one length, as many as the plan says")
        return shares

    def threshold(self, terms: Terms, replies: Mapping[int, Any], k: int) -> float:
        """The answers alone do not tell it; `choose` does."""
        raise Refusal(
            "missing",
            f"the answers open with the parts of {self.needed} of the plan's {len(self.openers)} openers: list the "
            "answers, send every opener its file, and give the parts",
        )

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
        if len(who) < self.least(terms):
            raise Refusal("missing", f"the sum of at least {self.least(terms)} silos opens; {len(who)} are on the list")
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


def least_needed(openers: int, colluding: int) -> int:
    """The fewest parts that may open a sum: 3 needed > 2 openers + colluding (Theorem S1).

    Examples
    --------
    >>> [least_needed(k, c) for k, c in ((5, 1), (7, 3), (10, 3), (50, 16))]
    [4, 6, 8, 39]
    """
    return (2 * openers + colluding) // 3 + 1


def read_ephemeral(text: Any) -> str:
    """The public key that names an answer."""
    if not isinstance(text, str) or not _KEY.fullmatch(text):
        raise Refusal("malformed", "an answer must be named by a key of 64 hexadecimal digits")
    return text


def _price(terms: Terms) -> tuple[int, int]:
    """What the new record costs, in `summed_coverage`: it is one of the n + 1, or of silo j with probability n_j/n."""
    return (1, 0) if terms.population == "common" else (0, 1)
