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

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, ClassVar, NoReturn, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.federated.messages import Form
from confide.federated.refusals import Refusal
from confide.federated.sharing import deal, encrypt_shares, mask, open_sum, word_of
from confide.federated.terms import Counts, Terms, check_count

MOST_SUMMED = 2**14
"""Maximum length of a vector of which only the sum opens, because its message contains every number."""


class SharedAnswer(Form):
    """A silo's first message: the fresh public key that names the answer, and an encrypted share per share holder."""

    ephemeral: str
    shares: list[str]


Sent: TypeAlias = list[int] | SharedAnswer
"""What a silo sends: the indices of candidates, a masked vector, or shares."""


class Channel(ABC):
    """The base class of all channels. Silos are numbered by their position in the terms."""

    single_replies: ClassVar[bool] = False
    """Whether the vector of every silo is visible; else only the sum opens."""
    second_message: ClassVar[bool] = False
    """Whether a sum opens by a second message, without all silos."""

    @classmethod
    def check(cls, terms: Terms, method: str, serves: str) -> None:
        """Reject unsupported terms: for a sum fewer than two silos, or too many candidates."""
        if cls.single_replies:
            return
        if len(terms.silos) < 2:
            raise InputError("silos", f"must be at least two for the method {method!r}")
        if terms.candidates.size > MOST_SUMMED:
            raise InputError("candidates", f"must number at most {MOST_SUMMED} for the method {method!r}{serves}")

    @classmethod
    @abstractmethod
    def planned(cls, terms: Terms) -> Self:
        """Plan the channel for these terms."""

    def carrying(self, bits: int) -> "Channel":
        """The channel for sums of 32 or 64 bits."""
        return self

    def check_length(self, terms: Terms, method: str, serves: str, vectors: int = 1) -> None:
        """Reject a number of candidates that would make messages of this many vectors too long."""
        if not self.single_replies and vectors * terms.candidates.size > MOST_SUMMED:
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

    def check_answers(self, terms: Terms, who: Sequence[int]) -> None:  # noqa: B027 - see above
        """Reject answers of too few silos for a threshold."""

    @abstractmethod
    def send(self, terms: Terms, own: int, vectors: Counts, agreement: bytes, context: bytes) -> Sent:
        """What silo `own` sends for int64 vectors of shape (thresholds, m).

        `agreement` is its X25519 private key; `context`, session and plan digest, must never be used twice.
        """

    @abstractmethod
    def read_message(self, terms: Terms, sent: Sent, vectors: int) -> Any:
        """Check what a silo sent; raises a `Refusal` with the code `malformed` or `out-of-range`."""

    @abstractmethod
    def add(self, terms: Terms, sent: Mapping[int, Any], vectors: int) -> Counts:
        """The sum of the messages by position, int64 of shape (thresholds, m); `missing` is raised for too few."""


@dataclass(frozen=True)
class Clear(Channel):
    """A channel in the clear: each silo sends the index of a candidate for each threshold."""

    single_replies = True

    @classmethod
    def planned(cls, terms: Terms) -> Self:
        """The channel, which has no settings."""
        return cls()

    def send(self, terms: Terms, own: int, vectors: Counts, agreement: bytes, context: bytes) -> Sent:
        """The index of the candidate of each vector."""
        chosen: list[int] = np.argmax(vectors, axis=1).tolist()
        return chosen

    def read_message(self, terms: Terms, sent: Sent, vectors: int) -> tuple[int, ...]:
        """The indices of the candidates that a silo replied."""
        chosen = _numbers(sent, vectors, "an answer must have one reply for each threshold")
        if not all(0 <= one < terms.candidates.size for one in chosen):
            raise Refusal("out-of-range")
        return tuple(chosen)

    def add(self, terms: Terms, sent: Mapping[int, tuple[int, ...]], vectors: int) -> Counts:
        """The number of silos that replied each candidate."""
        if not sent:
            raise Refusal("missing", "no silo has answered; wait, or make a new plan")
        chosen = np.array(list(sent.values())).reshape(len(sent), vectors)
        return np.array([np.bincount(row, minlength=terms.candidates.size) for row in chosen.T])


def _numbers(sent: Sent, length: int, must: str) -> list[int]:
    """The numbers that a silo sent; raises `malformed` for another length, or for shares."""
    if not isinstance(sent, list) or len(sent) != length:
        raise Refusal("malformed", must)
    return sent


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
    def planned(cls, terms: Terms) -> Self:
        """The channel; by default fewer than half of the silos may collude, and one of two."""
        m, colluding = len(terms.silos), terms.colluding
        return cls(max(1, (m - 1) // 2) if colluding is None else check_count("colluding", colluding, m - 1))

    def carrying(self, bits: int) -> "Masked":
        """The channel with masks of 32 or 64 bits."""
        return replace(self, bits=bits)

    @property
    def colluders(self) -> int:
        """The number of silos that may collude."""
        return self.colluding

    def least(self, terms: Terms) -> int:
        """The number of all silos."""
        return len(terms.silos)

    def check_answers(self, terms: Terms, who: Sequence[int]) -> None:
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

    def send(self, terms: Terms, own: int, vectors: Counts, agreement: bytes, context: bytes) -> Sent:
        """The vectors, one after another, masked."""
        roster = [silo.agreement for silo in terms.silos]
        masked: list[int] = mask(vectors.ravel(), agreement, roster[own], roster, context, self.bits).tolist()
        return masked

    def read_message(self, terms: Terms, sent: Sent, vectors: int) -> NDArray[Any]:
        """A masked vector."""
        must = "a masked vector must contain an integer below 2**bits for every candidate"
        vector = _numbers(sent, vectors * terms.candidates.size, must)
        if not all(0 <= number < 2**self.bits for number in vector):
            raise Refusal("malformed", must)
        return np.array(vector, dtype=np.uint64).astype(word_of(self.bits))

    def add(self, terms: Terms, sent: Mapping[int, NDArray[Any]], vectors: int) -> Counts:
        """The sum, if all silos answered."""
        self.check_answers(terms, list(sent))
        return open_sum(list(sent.values()), self.bits).reshape(vectors, -1)


MOST_OPENERS = 64
MOST_ELEMENTS = 2**16
"""Share holders times length of a vector: an answer stays below the million characters that a ledger keeps."""
MOST_LISTED = 2**19
"""Silos times length of a vector: an opening stays below the maximum size of a message."""

_KEY = re.compile(r"[0-9a-f]{64}")


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

    second_message = True

    colluding: int
    openers: tuple[int, ...]
    needed: int

    @classmethod
    def planned(cls, terms: Terms) -> Self:
        """The channel with the largest silos as share holders, of which as few as is safe must help."""
        openers = tuple(sorted(by_size(terms)[:MOST_OPENERS]))
        k, colluding = len(openers), terms.colluding
        colluding = max(1, k // 3) if colluding is None else check_count("colluding", colluding, k - 1)
        made = cls(colluding, openers, least_needed(k, colluding))
        made.refuse_many_missing(terms)
        return made

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

    def check_length(self, terms: Terms, method: str, serves: str, vectors: int = 1) -> None:
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

    def check_answers(self, terms: Terms, who: Sequence[int]) -> None:
        """Reject a list of too few silos."""
        if len(who) < self.least(terms):
            raise Refusal("missing", f"the sum of at least {self.least(terms)} silos opens; {len(who)} are on the list")

    def send(self, terms: Terms, own: int, vectors: Counts, agreement: bytes, context: bytes) -> Sent:
        """Shares of the vectors, one after another, each encrypted for its share holder."""
        shares = deal(vectors.ravel(), len(self.openers), self.needed)
        openers = [terms.silos[i].agreement for i in self.openers]
        ephemeral, sealed = encrypt_shares(shares, openers, terms.silos[own].agreement, agreement, context)
        return SharedAnswer(ephemeral, sealed)

    def read_message(self, terms: Terms, sent: Sent, vectors: int) -> SharedAnswer:
        """A fresh public key and an encrypted share for every share holder. Only the holders can decrypt them."""
        if not isinstance(sent, SharedAnswer):
            raise Refusal("malformed", "an answer must have an encrypted share for every share holder")
        read_ephemeral(sent.ephemeral)
        check_shares(sent.shares, vectors * terms.candidates.size, len(self.openers))
        return sent

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


def check_shares(shares: list[str], numbers: int, count: int) -> None:
    """Check `count` encrypted shares of a vector of length `numbers`, which all have the same length."""
    length = 4 * ceil((8 * numbers + 16) / 3)
    if len(shares) != count or not all(len(text) == length for text in shares):
        raise Refusal("malformed", "encrypted shares must have the length and the number that the plan states")


def read_ephemeral(text: str) -> str:
    """Check the public key that names an answer."""
    if not _KEY.fullmatch(text):
        raise Refusal("malformed", "an answer must be named by a key of 64 hexadecimal digits")
    return text
