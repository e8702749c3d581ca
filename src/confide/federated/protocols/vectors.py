"""How vectors of silos are added: masked in pairs, or shared with openers.

Vectors of integers over the candidates, one of each silo, of which only the sum opens.

A sum in one message: every silo masks its vector, and the masks cancel when all vectors are added.

What the two forms of secure-sum have in common: `SecureSum` opens with everybody at once, `OpenedSum` by openers.

A sum without everybody: openers help to open the sum of those who answered, whoever these are.

Every silo deals Shamir shares of its vector, sealed to the openers (message 1). The coordinator signs one list
of answers, and each opener returns the sum of the shares that it holds of those on the list (message 2); `needed` parts
open the sum, and nothing else ever opens. An opener helps to open one list per session; with 3 needed > 2 K + c that is
enough whatever lists are told to whom (docs/theory-federated.md, Theorem S1).
"""

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.federated.protocols.protocol import Counts, FederatedProtocol, Options, refuse_contradiction
from confide.federated.refusals import Refusal
from confide.federated.sharing import deal, mask, open_sum, seal_shares, word_of
from confide.federated.terms import Terms, check_count
from confide.support import Fields, float_above

MOST_SUMMED = 2**14
"""Candidates of a sum: its messages have a number for each."""


class AddedVectors(FederatedProtocol):
    """What a silo adds, and what the sum says; `MaskedVectors` and `DealtVectors` are two ways to open it."""

    withstands_liars = False
    relies_on_silos = True
    serves: ClassVar[str] = ""
    """How many candidates serve best."""

    colluding: int

    @classmethod
    def check(cls, terms: Terms) -> None:
        """Also at least two silos, and not too many candidates."""
        super().check(terms)
        if len(terms.silos) < 2:
            raise InputError(f"silos must be at least two for the method {cls.method!r}")
        if terms.candidates.size > MOST_SUMMED:
            raise InputError(f"candidates must number at most {MOST_SUMMED} for the method {cls.method!r}{cls.serves}")

    @property
    def colluders(self) -> int:
        """Stated by the plan, and checked by every silo's policy."""
        return self.colluding

    @abstractmethod
    def honest(self, terms: Terms) -> int:
        """How many silos are sure to be in the sum and not to collude."""

    @abstractmethod
    def addend(self, terms: Terms, own: int, counts: Counts) -> Counts:
        """The vector of silo `own`, drawn once; int64, shape (m,)."""

    @abstractmethod
    def refuse_total(self, terms: Terms, who: Sequence[int], total: NDArray[np.int64]) -> None:
        """Refuse a sum as `implausible` that the vectors of these silos cannot have, were they all honest."""

    @abstractmethod
    def choose(self, terms: Terms, who: Sequence[int], total: NDArray[np.int64]) -> float:
        """The threshold from the opened sum of these silos."""


class MaskedVectors(AddedVectors):
    """It opens with everybody at once; masks are modulo 2**bits."""

    bits: int

    def honest(self, terms: Terms) -> int:
        """The silos that do not collude."""
        return len(terms.silos) - self.colluding

    def message(self, terms: Terms, own: int, counts: Counts, agreement: bytes, context: bytes) -> dict[str, Any]:
        """The vector, masked."""
        values = self.addend(terms, own, counts)
        roster = [silo.agreement for silo in terms.silos]
        return {"masked": mask(values, agreement, roster[own], roster, context, self.bits).tolist()}

    def read_message(self, terms: Terms, i: int, fields: Fields) -> NDArray[Any]:
        """A masked vector."""
        vector = fields.take("masked", list)
        most = 2**self.bits
        if len(vector) != terms.candidates.size or not all(type(v) is int and 0 <= v < most for v in vector):
            raise Refusal("malformed", "a masked vector must hold an integer below 2**bits for every candidate")
        return np.array(vector, dtype=np.uint64).astype(word_of(self.bits))

    def threshold(self, terms: Terms, replies: Mapping[int, NDArray[Any]], k: int) -> float:
        """What the opened sum says, if all silos answered."""
        absent = [silo.name for i, silo in enumerate(terms.silos) if i not in replies]
        if absent:
            names = ", ".join(repr(name) for name in absent[:5]) + (", ..." if len(absent) > 5 else "")
            raise Refusal(
                "missing",
                f"a secure sum opens with all its silos or not at all; {len(absent)} have not answered: {names}; wait "
                "for them, or make a new plan without them, for which the others pay again",
            )
        who, total = range(len(terms.silos)), open_sum(list(replies.values()), self.bits)
        self.refuse_total(terms, who, total)
        return self.choose(terms, who, total)


_DRAWS = 1000


class SummedProtocol(AddedVectors):
    """Counts with shares of noise, of which only the sum opens; `scale` is that of the noise that may be relied on."""

    method = "secure-sum"
    theorem = "Theorems F6 and F6b"
    serves = "; 30 to 400 serve best"
    populations = ("mixture", "common")

    scale: float

    @classmethod
    def check(cls, terms: Terms) -> None:
        """Also that a training-conditional promise is for alike silos."""
        super().check(terms)
        if terms.delta is not None and terms.population == "mixture":
            raise InputError("delta needs population='common': the training-conditional promise is for i.i.d. records")

    def target_rank(self, i: int) -> None:
        """Silos have none: the target is one for the sum."""

    def loss(self, terms: Terms, i: int) -> float:
        """A replaced record changes two counts by one."""
        return float_above(Fraction(2) / Fraction(self.scale))

    @abstractmethod
    def aim(self, terms: Terms) -> int | None:
        """The target rank among all records if all silos answer; None for +inf."""

    def answer_law(self, terms: Terms, below: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """By draws of the counts of all silos, and of all their noise."""
        n, size, target = terms.size or 0, len(below), self.aim(terms)
        if target is None:
            return np.append(np.zeros(size - 1), 1.0)
        shares, p = len(terms.silos) / self.honest(terms), -np.expm1(-1 / self.scale)
        noise = rng.negative_binomial(shares, p, (_DRAWS, size)) - rng.negative_binomial(shares, p, (_DRAWS, size))
        counts = rng.multinomial(n, np.diff(below, prepend=0.0), _DRAWS) + noise
        above = np.cumsum(counts[:, ::-1], axis=1)[:, ::-1] - counts
        chosen = np.argmax(n - above >= target, axis=1)
        law: NDArray[np.float64] = np.bincount(chosen, minlength=size) / _DRAWS
        return law


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


class DealtVectors(AddedVectors):
    """It opens with the parts of `needed` of the openers; at most `dropouts` silos may be missing from the list."""

    openers: tuple[int, ...]
    needed: int

    def refuse_openers(self, terms: Terms) -> None:
        """Refuse openers of which so few would open more than one sum, and what `refuse_terms` refuses."""
        k = len(self.openers)
        refuse_contradiction(list(self.openers) != sorted(set(self.openers)) or not 1 <= k <= MOST_OPENERS)
        refuse_contradiction(not least_needed(k, self.colluding) <= self.needed <= k)
        self.refuse_terms(terms)

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
                f"candidates must number at most {most} for the method {self.method!r} with dropouts, {m} silos and "
                f"{k} openers; found {terms.candidates.size}{self.serves}"
            )

    def least(self, terms: Terms) -> int:
        """The least number of silos on a list."""
        return len(terms.silos) - terms.dropouts

    def refuse_short(self, terms: Terms, who: Sequence[int]) -> None:
        """Refuse a list of fewer silos than it needs."""
        if len(who) < self.least(terms):
            raise Refusal("missing", f"the sum of at least {self.least(terms)} silos opens; {len(who)} are on the list")

    def honest(self, terms: Terms) -> int:
        """The silos of the shortest list that do not collude."""
        return self.least(terms) - self.colluding

    def message(self, terms: Terms, own: int, counts: Counts, agreement: bytes, context: bytes) -> dict[str, Any]:
        """Shares of the vector, each sealed to its opener."""
        values = self.addend(terms, own, counts)
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

    def threshold(self, terms: Terms, replies: Mapping[int, Any], k: int) -> NoReturn:
        """The answers alone do not tell it; `choose` does."""
        raise Refusal(
            "missing",
            f"the answers open with the parts of {self.needed} of the plan's {len(self.openers)} openers: list the "
            "answers, send every opener its file, and give the parts",
        )


def choose_openers(terms: Terms, options: Options) -> tuple[int, tuple[int, ...], int]:
    """How many silos may collude, which open, and how many must: the largest ones open, as few of them as is safe."""
    largest = by_size(terms)
    openers = tuple(sorted(largest[:MOST_OPENERS]))
    k = len(openers)
    colluding = max(1, k // 3) if options.colluding is None else check_count("colluding", options.colluding, k - 1)
    return colluding, openers, least_needed(k, colluding)


def by_size(terms: Terms) -> list[int]:
    """The places of the silos, the largest ones first."""
    return sorted(range(len(terms.silos)), key=lambda i: (-(terms.silos[i].size or 0), i))


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
