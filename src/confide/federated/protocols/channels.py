"""How the silos' vectors are added: in the clear, masked in pairs, or shared with openers.

A vector holds integers over the candidates; of several thresholds there may be several, one after another.

In the clear, a vector says which candidate a silo replies, and everybody may know.

Masked, a sum opens in one message: every silo masks its vector, and the masks cancel when all vectors are added.

Shared, a sum opens without everybody: every silo deals Shamir shares of its vector, sealed to the openers (message 1).
The coordinator signs one list of answers, and each opener returns the sum of the shares that it holds of those on the
list (message 2); `needed` parts open the sum, and nothing else ever opens. An opener helps to open one list per
session; with 3 needed > 2 K + c that is enough whatever lists are told to whom (docs/theory-federated.md, Theorem F8).
"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.federated.protocols.plan_fields import Counts, Options, read_field, refuse_contradiction
from confide.federated.refusals import Refusal
from confide.federated.sharing import deal, mask, open_sum, seal_shares, word_of
from confide.federated.terms import Terms, check_count
from confide.support import Fields, shapes

MOST_SUMMED = 2**14
"""Numbers of a vector of which only the sum opens: its message has each."""


class Channel(ABC):
    """What becomes of the vectors that silos draw. Silos are named by their place in the terms."""

    each: ClassVar[bool] = False
    """Whether every vector of every silo is known by itself; else only the sum opens, of all vectors at once."""
    second: ClassVar[bool] = False
    """Whether a sum opens by a second message, without all silos."""

    @classmethod
    def check(cls, terms: Terms, method: str, serves: str) -> None:
        """Refuse terms that it cannot carry; for a sum fewer than two silos, and too many candidates."""
        if cls.each:
            return
        if len(terms.silos) < 2:
            raise InputError("silos", f"must be at least two for the method {method!r}")
        if terms.candidates.size > MOST_SUMMED:
            raise InputError("candidates", f"must number at most {MOST_SUMMED} for the method {method!r}{serves}")

    @classmethod
    @abstractmethod
    def planned(cls, terms: Terms, options: Options) -> Self:
        """The channel for these terms."""

    @classmethod
    @abstractmethod
    def read(cls, fields: Fields, terms: Terms) -> Self:
        """The channel from its fields in a plan; what would not be safe is refused."""

    @abstractmethod
    def fields(self) -> dict[str, Any]:
        """Its fields in a plan, by name."""

    def carrying(self, bits: int) -> "Channel":
        """The same for sums of so many bits."""
        return self

    def refuse_narrow(self, bits: int) -> None:  # noqa: B027 - nothing to refuse by itself
        """Refuse a plan whose sums do not fit."""

    def refuse_wide(self, terms: Terms, method: str, serves: str, vectors: int = 1) -> None:
        """Refuse candidates, of so many vectors, that would make messages too long."""
        if not self.each and vectors * terms.candidates.size > MOST_SUMMED:
            raise InputError(
                "candidates",
                (
                    f"must number at most {MOST_SUMMED // vectors} for {vectors} thresholds by the method "
                    f"{method!r}{serves}"
                ),
            )

    @property
    def colluders(self) -> int | None:
        """With how many silos the coordinator may pool what they know; None if no message relies on other silos.

        Stated by the plan, and checked by every silo's policy.
        """
        return None

    def least(self, terms: Terms) -> int:
        """The least number of silos whose answers open."""
        return 1

    def honest(self, terms: Terms) -> int:
        """How many silos are sure to be in the sum and not to collude."""
        return self.least(terms) - (self.colluders or 0)

    def numbers(self, terms: Terms) -> list[int]:
        """For how many answers there can be a threshold, the many first."""
        return list(range(len(terms.silos), self.least(terms) - 1, -1))

    def refuse_short(self, terms: Terms, who: Sequence[int]) -> None:  # noqa: B027 - likewise
        """Refuse answers of fewer silos than can open."""

    @abstractmethod
    def send(self, terms: Terms, own: int, vectors: Counts, agreement: bytes, context: bytes) -> dict[str, Any]:
        """What silo `own` sends, as JSON values, for int64 vectors of shape (thresholds, m).

        `agreement` is its X25519 private key; `context`, session and plan digest, is never used twice.
        """

    @abstractmethod
    def read_message(self, terms: Terms, fields: Fields, vectors: int) -> Any:
        """What a silo sent; refused as `malformed` or `out-of-range` if it cannot be that."""

    @abstractmethod
    def add(self, terms: Terms, sent: Mapping[int, Any], vectors: int) -> Counts:
        """The sum of what the silos sent, by place, int64 of shape (thresholds, m); `missing` if there are too few."""


@dataclass(frozen=True)
class Clear(Channel):
    """One candidate from each silo: its index, and the candidate itself for people and as a check."""

    each = True

    @classmethod
    def planned(cls, terms: Terms, options: Options) -> Self:
        """It has no settings."""
        return cls()

    @classmethod
    def read(cls, fields: Fields, terms: Terms) -> Self:
        """It has no fields."""
        return cls()

    def fields(self) -> dict[str, Any]:
        """None."""
        return {}

    def send(self, terms: Terms, own: int, vectors: Counts, agreement: bytes, context: bytes) -> dict[str, Any]:
        """The index and the value of the candidate, `"+inf"` for infinity, of one vector."""
        (chosen,) = np.argmax(vectors, axis=1).tolist()
        return {"candidate": chosen, "threshold": _json_value(terms, chosen)}

    def read_message(self, terms: Terms, fields: Fields, vectors: int) -> int:
        """The index of the candidate that a silo replied."""
        chosen: int = fields.read("candidate", shapes.INTEGER)
        stated = fields.read("threshold", shapes.Field("a candidate", (float, int, str)))
        if not 0 <= chosen < terms.candidates.size or stated != _json_value(terms, chosen):
            raise Refusal("out-of-range")
        return chosen

    def add(self, terms: Terms, sent: Mapping[int, int | tuple[int, ...]], vectors: int) -> Counts:
        """How many silos replied which candidate."""
        if not sent:
            raise Refusal("missing", "no silo has answered; wait, or make a new plan")
        chosen = np.array(list(sent.values())).reshape(len(sent), vectors)
        return np.array([np.bincount(row, minlength=terms.candidates.size) for row in chosen.T])


def _json_value(terms: Terms, chosen: int) -> float | str:
    value = float(terms.candidates.values[chosen])
    return value if math.isfinite(value) else "+inf"


@dataclass(frozen=True)
class Masked(Channel):
    """A sum that opens with everybody at once.

    Parameters
    ----------
    colluding
        How many silos may pool what they know with the coordinator.
    bits
        Masks are modulo 2**bits.
    """

    colluding: int
    bits: int = 32

    @classmethod
    def planned(cls, terms: Terms, options: Options) -> Self:
        """By default fewer than half of the silos may collude, and one of two."""
        m, asked = len(terms.silos), options.colluding
        return cls(max(1, (m - 1) // 2) if asked is None else check_count("colluding", asked, m - 1))

    @classmethod
    def read(cls, fields: Fields, terms: Terms) -> Self:
        """From the fields `colluding` and `bits`."""
        return cls(read_field(fields, "colluding", terms), read_field(fields, "bits", terms))

    def fields(self) -> dict[str, Any]:
        """Each under its own name."""
        return dict(vars(self))

    def carrying(self, bits: int) -> "Masked":
        """With masks of so many bits."""
        return replace(self, bits=bits)

    def refuse_narrow(self, bits: int) -> None:
        """Refuse masks of fewer bits than the sum."""
        refuse_contradiction(self.bits < bits)

    @property
    def colluders(self) -> int:
        """The colluding ones."""
        return self.colluding

    def least(self, terms: Terms) -> int:
        """All of them."""
        return len(terms.silos)

    def refuse_short(self, terms: Terms, who: Sequence[int]) -> None:
        """Refuse a sum without all silos."""
        there = set(who)
        absent = [silo.name for i, silo in enumerate(terms.silos) if i not in there]
        if absent:
            names = ", ".join(repr(name) for name in absent[:5]) + (", ..." if len(absent) > 5 else "")
            raise Refusal(
                "missing",
                f"a secure sum opens with all its silos or not at all; {len(absent)} have not answered: {names}; wait "
                "for them, or make a new plan without them, for which the others pay again",
            )

    def send(self, terms: Terms, own: int, vectors: Counts, agreement: bytes, context: bytes) -> dict[str, Any]:
        """The vectors, one after another, masked."""
        roster = [silo.agreement for silo in terms.silos]
        return {"masked": mask(vectors.ravel(), agreement, roster[own], roster, context, self.bits).tolist()}

    def read_message(self, terms: Terms, fields: Fields, vectors: int) -> NDArray[Any]:
        """A masked vector."""
        vector, most = fields.read("masked", shapes.LIST), 2**self.bits
        fits = len(vector) == vectors * terms.candidates.size
        if not fits or not all(type(v) is int and 0 <= v < most for v in vector):
            raise Refusal("malformed", "a masked vector must hold an integer below 2**bits for every candidate")
        return np.array(vector, dtype=np.uint64).astype(word_of(self.bits))

    def add(self, terms: Terms, sent: Mapping[int, NDArray[Any]], vectors: int) -> Counts:
        """What opens if all silos answered."""
        self.refuse_short(terms, list(sent))
        return open_sum(list(sent.values()), self.bits).reshape(vectors, -1)


MOST_OPENERS = 64
MOST_ELEMENTS = 2**16
"""Openers times numbers of a vector: an answer stays below the million characters that a ledger keeps."""
MOST_LISTED = 2**19
"""Silos times numbers: what is asked of an opener stays below the millions of characters that are read."""

_KEY = re.compile(r"[0-9a-f]{64}")


class Dealt(NamedTuple):
    """The first message of a silo: which answer it is (the fresh public key), and a sealed share for every opener."""

    ephemeral: str
    shares: list[str]


@dataclass(frozen=True)
class Shared(Channel):
    """A sum that opens with the parts of openers; at most `dropouts` silos may be missing from the list.

    Parameters
    ----------
    colluding
        How many silos may pool what they know with the coordinator.
    openers
        The silos that can help to open, by place.
    needed
        How many of them must.
    """

    second = True

    colluding: int
    openers: tuple[int, ...]
    needed: int

    @classmethod
    def planned(cls, terms: Terms, options: Options) -> Self:
        """The largest silos open, as few of them as is safe."""
        openers = tuple(sorted(by_size(terms)[:MOST_OPENERS]))
        k, asked = len(openers), options.colluding
        colluding = max(1, k // 3) if asked is None else check_count("colluding", asked, k - 1)
        made = cls(colluding, openers, least_needed(k, colluding))
        made.refuse_many_missing(terms)
        return made

    @classmethod
    def read(cls, fields: Fields, terms: Terms) -> Self:
        """From its fields; openers of which so few would open more than one sum are refused."""
        made = cls(*(read_field(fields, name, terms) for name in ("colluding", "openers", "needed")))
        k = len(made.openers)
        refuse_contradiction(list(made.openers) != sorted(set(made.openers)) or not 1 <= k <= MOST_OPENERS)
        refuse_contradiction(not least_needed(k, made.colluding) <= made.needed <= k)
        made.refuse_many_missing(terms)
        return made

    def fields(self) -> dict[str, Any]:
        """Each under its own name."""
        return dict(vars(self))

    def refuse_many_missing(self, terms: Terms) -> None:
        """Refuse more missing silos than can be done without."""
        m, k = len(terms.silos), len(self.openers)
        if self.least(terms) < self.needed:
            raise InputError(
                "dropouts",
                (
                    f"must be at most {max(m - self.needed, 0)} for {m} silos of which {self.colluding} may "
                    f"collude: {self.needed} of {k} silos must help to open the sum"
                ),
                remedy=(
                    "Of 4 silos and fewer nobody can be done without if one may collude: use dropouts=0, or the "
                    "method 'private-qq'"
                ),
            )

    def refuse_wide(self, terms: Terms, method: str, serves: str, vectors: int = 1) -> None:
        """Refuse messages that are too long."""
        m, k = len(terms.silos), len(self.openers)
        most = min(MOST_ELEMENTS // k, MOST_LISTED // m) // vectors
        if terms.candidates.size > most:
            several = f" for {vectors} thresholds" if vectors > 1 else ""
            raise InputError(
                "candidates",
                (
                    f"must number at most {most}{several} for the method {method!r} with dropouts, {m} silos and "
                    f"{k} openers"
                ),
                got=f"{terms.candidates.size}{serves}",
            )

    @property
    def colluders(self) -> int:
        """The colluding ones."""
        return self.colluding

    def least(self, terms: Terms) -> int:
        """The least number of silos on a list."""
        return len(terms.silos) - terms.dropouts

    def refuse_short(self, terms: Terms, who: Sequence[int]) -> None:
        """Refuse a list of fewer silos than it needs."""
        if len(who) < self.least(terms):
            raise Refusal("missing", f"the sum of at least {self.least(terms)} silos opens; {len(who)} are on the list")

    def send(self, terms: Terms, own: int, vectors: Counts, agreement: bytes, context: bytes) -> dict[str, Any]:
        """Shares of the vectors, one after another, each sealed to its opener."""
        shares = deal(vectors.ravel(), len(self.openers), self.needed)
        openers = [terms.silos[i].agreement for i in self.openers]
        ephemeral, sealed = seal_shares(shares, openers, terms.silos[own].agreement, agreement, context)
        return {"ephemeral": ephemeral, "shares": sealed}

    def read_message(self, terms: Terms, fields: Fields, vectors: int) -> Dealt:
        """A fresh public key and a sealed share for every opener; whether these open, the openers will see."""
        key = read_ephemeral(fields.read("ephemeral", shapes.TEXT))
        return Dealt(key, read_shares(fields, vectors * terms.candidates.size, len(self.openers)))

    def add(self, terms: Terms, sent: Mapping[int, Any], vectors: int) -> NoReturn:
        """The answers alone do not tell it; the openers' parts do."""
        raise Refusal(
            "missing",
            f"the answers open with the parts of {self.needed} of the plan's {len(self.openers)} openers: list the "
            "answers, send every opener its file, and give the parts",
        )


def by_size(terms: Terms) -> list[int]:
    """The places of the silos, the largest ones first."""
    return sorted(range(len(terms.silos)), key=lambda i: (-(terms.silos[i].size or 0), i))


def least_needed(openers: int, colluding: int) -> int:
    """The fewest parts that may open a sum: 3 needed > 2 openers + colluding (Theorem F8).

    Examples
    --------
    >>> [least_needed(k, c) for k, c in ((5, 1), (7, 3), (10, 3), (50, 16))]
    [4, 6, 8, 39]
    """
    return (2 * openers + colluding) // 3 + 1


def read_shares(fields: Fields, numbers: int, count: int) -> list[str]:
    """So many sealed shares of a vector of so many numbers: each has the one length that they have."""
    shares: list[str] = fields.read("shares", shapes.LIST)
    length = 4 * ceil((8 * numbers + 16) / 3)
    if len(shares) != count or not all(isinstance(text, str) and len(text) == length for text in shares):
        raise Refusal("malformed", "sealed shares must be texts of one length, as many as the plan says")
    return shares


def read_ephemeral(text: Any) -> str:
    """The public key that names an answer."""
    if not isinstance(text, str) or not _KEY.fullmatch(text):
        raise Refusal("malformed", "an answer must be named by a key of 64 hexadecimal digits")
    return text
