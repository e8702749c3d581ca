"""Channels, which add the silos' vectors: in the clear, with pairwise masks, or with secret shares.

A vector has integers over the candidates. For several thresholds there may be several vectors, one after another.

`Clear`: a vector is the candidate that a silo replies, which all parties may see.

`Masked`: a sum of all silos opens in one message. Every silo masks its vector, and the masks cancel in the sum.

`Shared`: a sum opens without all silos. Every silo deals Shamir shares of its vector, encrypted for the share holders
(openers; message 1). The coordinator signs one list of answers (survivor set), and each share holder returns the sum of
its shares of the listed answers (message 2). `needed` parts open the sum, and nothing else ever opens. A share holder
helps to open one list per session. With K share holders, c colluding silos and 3 needed > 2 K + c this is sufficient,
for all lists that the coordinator sends (docs/theory-federated.md, Theorem F8).
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
"""Maximum length of a vector of which only the sum opens, because its message contains every number."""


class Channel(ABC):
    """The base class of all channels. Silos are numbered by their position in the terms."""

    each: ClassVar[bool] = False
    """Whether the vector of every silo is visible; else only the sum opens."""
    second: ClassVar[bool] = False
    """Whether a sum opens by a second message, without all silos."""

    @classmethod
    def check(cls, terms: Terms, method: str, serves: str) -> None:
        """Reject unsupported terms: for a sum fewer than two silos, or too many candidates."""
        if cls.each:
            return
        if len(terms.silos) < 2:
            raise InputError("silos", f"must be at least two for the method {method!r}")
        if terms.candidates.size > MOST_SUMMED:
            raise InputError("candidates", f"must number at most {MOST_SUMMED} for the method {method!r}{serves}")

    @classmethod
    @abstractmethod
    def planned(cls, terms: Terms, options: Options) -> Self:
        """Plan the channel for these terms."""

    @classmethod
    @abstractmethod
    def read(cls, fields: Fields, terms: Terms) -> Self:
        """Read the channel from its fields in a plan; an error for unsafe values."""

    @abstractmethod
    def fields(self) -> dict[str, Any]:
        """The channel's fields in a plan, by name."""

    def carrying(self, bits: int) -> "Channel":
        """The channel for sums of 32 or 64 bits."""
        return self

    def refuse_narrow(self, bits: int) -> None:  # noqa: B027 - no check by default
        """Reject a plan whose sums do not fit."""

    def refuse_wide(self, terms: Terms, method: str, serves: str, vectors: int = 1) -> None:
        """Reject a number of candidates that would make messages of this many vectors too long."""
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
        """The number of silos that may collude with the coordinator; None if no message relies on other silos.

        The plan states it, and every silo's policy checks it.
        """
        return None

    def least(self, terms: Terms) -> int:
        """The least number of silos whose answers give a threshold."""
        return 1

    def honest(self, terms: Terms) -> int:
        """The number of silos that are certainly in the sum and do not collude."""
        return self.least(terms) - (self.colluders or 0)

    def numbers(self, terms: Terms) -> list[int]:
        """The numbers of answers that can give a threshold, the largest first."""
        return list(range(len(terms.silos), self.least(terms) - 1, -1))

    def refuse_short(self, terms: Terms, who: Sequence[int]) -> None:  # noqa: B027 - see above
        """Reject answers of too few silos for a threshold."""

    @abstractmethod
    def send(self, terms: Terms, own: int, vectors: Counts, agreement: bytes, context: bytes) -> dict[str, Any]:
        """The message of silo `own`, as JSON values, for int64 vectors of shape (thresholds, m).

        `agreement` is its X25519 private key; `context`, session and plan digest, must never be used twice.
        """

    @abstractmethod
    def read_message(self, terms: Terms, fields: Fields, vectors: int) -> Any:
        """Read the content of a silo's message; raises a `Refusal` with the code `malformed` or `out-of-range`."""

    @abstractmethod
    def add(self, terms: Terms, sent: Mapping[int, Any], vectors: int) -> Counts:
        """The sum of the messages by position, int64 of shape (thresholds, m); `missing` is raised for too few."""


@dataclass(frozen=True)
class Clear(Channel):
    """A channel in the clear: each silo sends the index of a candidate, and its value as a check and for readers."""

    each = True

    @classmethod
    def planned(cls, terms: Terms, options: Options) -> Self:
        """The channel, which has no settings."""
        return cls()

    @classmethod
    def read(cls, fields: Fields, terms: Terms) -> Self:
        """The channel, which has no fields."""
        return cls()

    def fields(self) -> dict[str, Any]:
        """No fields."""
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
        """The number of silos that replied each candidate."""
        if not sent:
            raise Refusal("missing", "no silo has answered; wait, or make a new plan")
        chosen = np.array(list(sent.values())).reshape(len(sent), vectors)
        return np.array([np.bincount(row, minlength=terms.candidates.size) for row in chosen.T])


def _json_value(terms: Terms, chosen: int) -> float | str:
    value = float(terms.candidates.values[chosen])
    return value if math.isfinite(value) else "+inf"


@dataclass(frozen=True)
class Masked(Channel):
    """A channel with pairwise masks: the sum opens only with the messages of all silos.

    Parameters
    ----------
    colluding
        Number of silos that may collude with the coordinator.
    bits
        Masks are modulo 2**bits.
    """

    colluding: int
    bits: int = 32

    @classmethod
    def planned(cls, terms: Terms, options: Options) -> Self:
        """The channel; by default fewer than half of the silos may collude, and one of two."""
        m, colluding = len(terms.silos), options.colluding
        return cls(max(1, (m - 1) // 2) if colluding is None else check_count("colluding", colluding, m - 1))

    @classmethod
    def read(cls, fields: Fields, terms: Terms) -> Self:
        """Read the fields `colluding` and `bits`."""
        return cls(read_field(fields, "colluding", terms), read_field(fields, "bits", terms))

    def fields(self) -> dict[str, Any]:
        """The fields, each by its own name."""
        return dict(vars(self))

    def carrying(self, bits: int) -> "Masked":
        """The channel with masks of 32 or 64 bits."""
        return replace(self, bits=bits)

    def refuse_narrow(self, bits: int) -> None:
        """Reject masks of fewer bits than the sum."""
        refuse_contradiction(self.bits < bits)

    @property
    def colluders(self) -> int:
        """The number of silos that may collude."""
        return self.colluding

    def least(self, terms: Terms) -> int:
        """The number of all silos."""
        return len(terms.silos)

    def refuse_short(self, terms: Terms, who: Sequence[int]) -> None:
        """Reject a sum without all silos."""
        there = set(who)
        absent = [silo.name for i, silo in enumerate(terms.silos) if i not in there]
        if absent:
            names = ", ".join(repr(name) for name in absent[:5]) + (", ..." if len(absent) > 5 else "")
            raise Refusal(
                "missing",
                f"this secure sum opens only with all silos; {len(absent)} have not answered: {names}; wait for them, "
                "or make a new plan without them, for which the others pay again",
            )

    def send(self, terms: Terms, own: int, vectors: Counts, agreement: bytes, context: bytes) -> dict[str, Any]:
        """The vectors, one after another, masked."""
        roster = [silo.agreement for silo in terms.silos]
        return {"masked": mask(vectors.ravel(), agreement, roster[own], roster, context, self.bits).tolist()}

    def read_message(self, terms: Terms, fields: Fields, vectors: int) -> NDArray[Any]:
        """Read a masked vector."""
        vector, most = fields.read("masked", shapes.LIST), 2**self.bits
        fits = len(vector) == vectors * terms.candidates.size
        if not fits or not all(type(v) is int and 0 <= v < most for v in vector):
            raise Refusal("malformed", "a masked vector must contain an integer below 2**bits for every candidate")
        return np.array(vector, dtype=np.uint64).astype(word_of(self.bits))

    def add(self, terms: Terms, sent: Mapping[int, NDArray[Any]], vectors: int) -> Counts:
        """The sum, if all silos answered."""
        self.refuse_short(terms, list(sent))
        return open_sum(list(sent.values()), self.bits).reshape(vectors, -1)


MOST_OPENERS = 64
MOST_ELEMENTS = 2**16
"""Share holders times length of a vector: an answer stays below the million characters that a ledger keeps."""
MOST_LISTED = 2**19
"""Silos times length of a vector: an opening stays below the maximum size of a message."""

_KEY = re.compile(r"[0-9a-f]{64}")


class Dealt(NamedTuple):
    """A silo's first message: the fresh public key that names the answer, and an encrypted share per share holder."""

    ephemeral: str
    shares: list[str]


@dataclass(frozen=True)
class Shared(Channel):
    """A channel with secret shares: the sum of a list opens with the parts of share holders (openers).

    At most `dropouts` silos may be missing from the list.

    Parameters
    ----------
    colluding
        Number of silos that may collude with the coordinator.
    openers
        Positions of the share holders.
    needed
        Number of share holders that must help to open the sum.
    """

    second = True

    colluding: int
    openers: tuple[int, ...]
    needed: int

    @classmethod
    def planned(cls, terms: Terms, options: Options) -> Self:
        """The channel with the largest silos as share holders, of which as few as is safe must help."""
        openers = tuple(sorted(by_size(terms)[:MOST_OPENERS]))
        k, colluding = len(openers), options.colluding
        colluding = max(1, k // 3) if colluding is None else check_count("colluding", colluding, k - 1)
        made = cls(colluding, openers, least_needed(k, colluding))
        made.refuse_many_missing(terms)
        return made

    @classmethod
    def read(cls, fields: Fields, terms: Terms) -> Self:
        """Read the fields; an error if so few share holders could open more than one sum."""
        made = cls(*(read_field(fields, name, terms) for name in ("colluding", "openers", "needed")))
        k = len(made.openers)
        refuse_contradiction(list(made.openers) != sorted(set(made.openers)) or not 1 <= k <= MOST_OPENERS)
        refuse_contradiction(not least_needed(k, made.colluding) <= made.needed <= k)
        made.refuse_many_missing(terms)
        return made

    def fields(self) -> dict[str, Any]:
        """The fields, each by its own name."""
        return dict(vars(self))

    def refuse_many_missing(self, terms: Terms) -> None:
        """Reject more missing silos than the sum allows."""
        m, k = len(terms.silos), len(self.openers)
        if self.least(terms) < self.needed:
            raise InputError(
                "dropouts",
                (
                    f"must be at most {max(m - self.needed, 0)} for {m} silos of which {self.colluding} may "
                    f"collude: {self.needed} of {k} silos must help to open the sum"
                ),
                remedy=(
                    "With 4 silos or fewer, of which one may collude, none may be missing: use dropouts=0, or the "
                    "method 'private-qq'"
                ),
            )

    def refuse_wide(self, terms: Terms, method: str, serves: str, vectors: int = 1) -> None:
        """Reject messages that are too long."""
        m, k = len(terms.silos), len(self.openers)
        most = min(MOST_ELEMENTS // k, MOST_LISTED // m) // vectors
        if terms.candidates.size > most:
            several = f" for {vectors} thresholds" if vectors > 1 else ""
            raise InputError(
                "candidates",
                (
                    f"must number at most {most}{several} for the method {method!r} with dropouts, {m} silos and "
                    f"{k} share holders"
                ),
                got=f"{terms.candidates.size}{serves}",
            )

    @property
    def colluders(self) -> int:
        """The number of silos that may collude."""
        return self.colluding

    def least(self, terms: Terms) -> int:
        """The least number of silos on a list."""
        return len(terms.silos) - terms.dropouts

    def refuse_short(self, terms: Terms, who: Sequence[int]) -> None:
        """Reject a list of too few silos."""
        if len(who) < self.least(terms):
            raise Refusal("missing", f"the sum of at least {self.least(terms)} silos opens; {len(who)} are on the list")

    def send(self, terms: Terms, own: int, vectors: Counts, agreement: bytes, context: bytes) -> dict[str, Any]:
        """Shares of the vectors, one after another, each encrypted for its share holder."""
        shares = deal(vectors.ravel(), len(self.openers), self.needed)
        openers = [terms.silos[i].agreement for i in self.openers]
        ephemeral, sealed = seal_shares(shares, openers, terms.silos[own].agreement, agreement, context)
        return {"ephemeral": ephemeral, "shares": sealed}

    def read_message(self, terms: Terms, fields: Fields, vectors: int) -> Dealt:
        """Read a fresh public key and an encrypted share for every share holder. Only the holders can decrypt them."""
        key = read_ephemeral(fields.read("ephemeral", shapes.TEXT))
        return Dealt(key, read_shares(fields, vectors * terms.candidates.size, len(self.openers)))

    def add(self, terms: Terms, sent: Mapping[int, Any], vectors: int) -> NoReturn:
        """Raise `missing`, because the sum needs the parts of the share holders."""
        raise Refusal(
            "missing",
            f"the sum opens with the parts of {self.needed} of the plan's {len(self.openers)} share holders: list the "
            "answers, send every share holder its file, and pass the parts",
        )


def by_size(terms: Terms) -> list[int]:
    """The positions of the silos, the largest ones first."""
    return sorted(range(len(terms.silos)), key=lambda i: (-(terms.silos[i].size or 0), i))


def least_needed(openers: int, colluding: int) -> int:
    """The least safe number of parts that open a sum: 3 needed > 2 openers + colluding (Theorem F8).

    Examples
    --------
    >>> [least_needed(k, c) for k, c in ((5, 1), (7, 3), (10, 3), (50, 16))]
    [4, 6, 8, 39]
    """
    return (2 * openers + colluding) // 3 + 1


def read_shares(fields: Fields, numbers: int, count: int) -> list[str]:
    """Read `count` encrypted shares of a vector of length `numbers`, which all have the same length."""
    shares: list[str] = fields.read("shares", shapes.LIST)
    length = 4 * ceil((8 * numbers + 16) / 3)
    if len(shares) != count or not all(isinstance(text, str) and len(text) == length for text in shares):
        raise Refusal("malformed", "encrypted shares must have the length and the number that the plan states")
    return shares


def read_ephemeral(text: Any) -> str:
    """Check the public key that names an answer."""
    if not isinstance(text, str) or not _KEY.fullmatch(text):
        raise Refusal("malformed", "an answer must be named by a key of 64 hexadecimal digits")
    return text
