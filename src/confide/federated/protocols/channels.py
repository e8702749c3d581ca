"""Channels, which add the silos' vectors of integers over the candidates: in the clear, or with pairwise masks.

Pairwise masks cancel when the vectors of all silos are added modulo a power of two. The coordinator needs all vectors
to compute the sum, and learns nothing else (docs/theory-federated.md).
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from confide.federated.refusals import Refusal
from confide.federated.terms import Counts, Terms, check_count
from confide.support import needs_extra, require

# Number of absent silos that an error names
_NAMED = 5


class Channel(ABC):
    """The base class of all channels. Silos are numbered by their position in the terms."""

    # Whether the vector of every silo is visible; else only the sum opens
    single_replies: ClassVar[bool]
    # What a silo reveals and to whom, in words
    reveals: ClassVar[str]

    @classmethod
    @abstractmethod
    def planned(cls, terms: Terms) -> Self:
        """Plan the channel for these terms."""

    @property
    def colluders(self) -> int | None:
        """The number of silos that may collude with the coordinator; None if no message relies on other silos."""
        return None

    def check_answers(self, terms: Terms, answered: Collection[int]) -> None:
        """Reject answers of too few silos for a sum."""
        present = range(len(terms.silos)) if self.single_replies else set(answered)
        absent = [repr(silo.name) for i, silo in enumerate(terms.silos) if i not in present]
        if absent:
            names = ", ".join(absent[:_NAMED]) + (", ..." if len(absent) > _NAMED else "")
            raise Refusal(
                "missing",
                f"this secure sum needs the answers of all silos; {len(absent)} have not answered: {names}; wait for "
                "them, or make a new plan without them, for which the others pay again",
            )

    @abstractmethod
    def encode(self, terms: Terms, i: int, vectors: Counts, agreement: bytes, context: bytes) -> list[int]:
        """The integers that silo i sends for int64 vectors of shape (draws, m).

        `agreement` is the silo's X25519 private key. `context`, session and plan digest, must never be used twice.
        """

    @abstractmethod
    def decode(self, terms: Terms, integers: list[int], draws: int) -> Any:
        """The reply that these integers are; raises a `Refusal` with the code `malformed` or `out-of-range`."""

    @abstractmethod
    def add(self, terms: Terms, replies: Mapping[int, Any], draws: int) -> Counts:
        """The sum of the replies by position, int64 of shape (draws, m); `missing` is raised for too few."""


@dataclass(frozen=True)
class Clear(Channel):
    """A channel in the clear: each silo sends the index of a candidate for each threshold."""

    single_replies = True
    reveals = "its reply, to the coordinator and every reader of the release"

    @classmethod
    def planned(cls, terms: Terms) -> Self:
        """The channel, which has no settings."""
        return cls()

    def encode(self, terms: Terms, i: int, vectors: Counts, agreement: bytes, context: bytes) -> list[int]:
        """The index of the candidate of each vector."""
        return [int(index) for index in np.argmax(vectors, axis=1)]

    def decode(self, terms: Terms, integers: list[int], draws: int) -> tuple[int, ...]:
        """The indices of the candidates that a silo replied."""
        if len(integers) != draws:
            raise Refusal("malformed", "an answer must have one reply for each threshold")
        if not all(0 <= index < terms.candidates.size for index in integers):
            raise Refusal("out-of-range")
        return tuple(integers)

    def add(self, terms: Terms, replies: Mapping[int, tuple[int, ...]], draws: int) -> Counts:
        """The number of silos that replied each candidate."""
        if not replies:
            raise Refusal("missing", "no silo has answered; wait, or make a new plan")
        chosen = np.array(list(replies.values())).reshape(len(replies), draws)
        return np.array([np.bincount(row, minlength=terms.candidates.size) for row in chosen.T])


@dataclass(frozen=True)
class Masked(Channel):
    """A channel with pairwise masks modulo 2**bits: only the messages of all silos together give the sum.

    `colluding` is the number of silos that may collude with the coordinator.
    """

    single_replies = False
    reveals = "nothing by itself: the coordinator sees only the sum of all silos"

    colluding: int
    bits: int = 32

    @classmethod
    def planned(cls, terms: Terms) -> Self:
        """The channel; by default fewer than half of the silos may collude, and one of two."""
        others = len(terms.silos) - 1
        if terms.colluding is None:
            return cls(max(1, others // 2))
        return cls(check_count("colluding", terms.colluding, others))

    @property
    def colluders(self) -> int:
        """The number of silos that may collude."""
        return self.colluding

    def encode(self, terms: Terms, i: int, vectors: Counts, agreement: bytes, context: bytes) -> list[int]:
        """The vectors, one after another, masked."""
        roster = [silo.agreement for silo in terms.silos]
        masked: list[int] = mask(vectors.ravel(), agreement, roster[i], roster, context, self.bits).tolist()
        return masked

    def decode(self, terms: Terms, integers: list[int], draws: int) -> NDArray[Any]:
        """A masked vector."""
        wanted, limit = draws * terms.candidates.size, 2**self.bits
        if len(integers) != wanted or not all(0 <= integer < limit for integer in integers):
            raise Refusal("malformed", f"a masked vector must contain {wanted} integers from 0 to {limit - 1}")
        return np.array(integers, dtype=np.uint64).astype(word_type(self.bits))

    def add(self, terms: Terms, replies: Mapping[int, NDArray[Any]], draws: int) -> Counts:
        """The sum, if all silos answered."""
        self.check_answers(terms, replies)
        return open_sum(list(replies.values()), self.bits).reshape(draws, -1)


# Domain separation: secrets for masks differ from all others of the same keys
_MASKS = b"confide/federated/secure-sum/1|"


def mask(
    values: NDArray[np.int64], agreement: bytes, public: str, roster: Sequence[str], context: bytes, bits: int
) -> NDArray[Any]:
    """The values, int64 of shape (size,), plus all of the silo's masks modulo 2**bits: uint32 or uint64 of that shape.

    `agreement` is the silo's X25519 private key and `public` its public key, in hexadecimal. `roster` contains those
    of all silos. `context`, session and plan digest, must never be used twice with this roster. `bits` is 32 or 64.
    """
    with needs_extra("federation", "standard"):
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    are_all = public in roster and len(set(roster)) == len(roster)
    require("roster", are_all, "must name every silo once, this one among them")

    # Two's complement: reduction modulo 2**bits
    word = word_type(bits)
    masked = values.astype(np.int64).view(np.uint64).astype(word)

    # Of each pair one silo adds a stream, and the other subtracts it
    key = X25519PrivateKey.from_private_bytes(agreement)
    for other in roster:
        if other == public:
            continue
        # A secret of the pair, for this plan and session alone
        pair = b"|".join(sorted((bytes.fromhex(public), bytes.fromhex(other))))
        shared = key.exchange(X25519PublicKey.from_public_bytes(bytes.fromhex(other)))
        secret = HKDF(SHA256(), 32, salt=None, info=_MASKS + context + b"|" + pair).derive(shared)
        encryptor = Cipher(algorithms.ChaCha20(secret, bytes(16)), mode=None).encryptor()
        stream = np.frombuffer(encryptor.update(bytes(word.itemsize * len(values))), dtype=word)
        masked = masked + stream if public < other else masked - stream
    return masked


def open_sum(masked: Sequence[NDArray[Any]], bits: int) -> NDArray[np.int64]:
    """The sum of all silos' vectors as signed integers in [-2**(bits-1), 2**(bits-1)).

    Examples
    --------
    >>> open_sum([np.array([2**32 - 3], dtype="<u4"), np.array([1], dtype="<u4")], 32)
    array([-2])
    """
    word = word_type(bits)
    total = np.zeros(len(masked[0]), dtype=word)
    for vector in masked:
        total += vector.astype(word)
    return total.view(f"<i{bits // 8}").astype(np.int64)


def word_type(bits: int) -> np.dtype[Any]:
    """Unsigned words of 32 or 64 bits."""
    require("bits", bits in (32, 64), "must be 32 or 64", got=str(bits))
    return np.dtype(f"<u{bits // 8}")
