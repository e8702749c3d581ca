"""Keys of silos and coordinators, and their identities.

Each silo and the coordinator have an Ed25519 key for signatures and an X25519 key for masks. An identity is a hash of a
name and both public keys; a roster is a hash of the identities of all participants. People compare fingerprints of
both.
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Self

import msgspec

from confide.errors import InputError
from confide.federated.messages import (
    Form,
    encode,
    envelope,
    read_content,
    read_file,
    read_message,
    read_time,
    signature_of,
    verify,
    write_file,
    write_time,
)
from confide.federated.refusals import Refusal
from confide.ledger import is_hexadecimal
from confide.support import MOST_RECORDS, needs_extra, positive_integer, read_text, require, write_text

# What is hashed begins with its purpose, so that no identity is also the hash of a roster
_IDENTITY = b"confide/federated/identity/1\n"
_ROSTER = b"confide/federated/roster/1\n"


def identity_of(name: str, signing: str, agreement: str) -> str:
    """SHA-256 over a name without a newline and two public keys of 64 hexadecimal digits each, hexadecimal."""
    keys = bytes.fromhex(signing) + bytes.fromhex(agreement)
    return hashlib.sha256(_IDENTITY + name.encode() + b"\n" + keys).hexdigest()


def roster(silos: "Iterable[Silo]") -> str:
    r"""SHA-256 over the identities of all participants, independent of their order; 64 hexadecimal digits.

    Parameters
    ----------
    silos
        The silos of a plan and its coordinator, `Silo` objects.

    Examples
    --------
    If two participants compute the same roster, they have the same keys of all others. They compare its fingerprint by
    phone, instead of the fingerprint of every participant:

    >>> from confide.federated import SiloKeys
    >>> north, south = SiloKeys("north", b"\1" * 32, b"\2" * 32), SiloKeys("south", b"\3" * 32, b"\4" * 32)
    >>> fingerprint(roster([south.public(), north.public(size=300)]))
    '86842 99050 48183 85556 75012 31362 22996 60270'
    """
    return hashlib.sha256(_ROSTER + b"".join(sorted(bytes.fromhex(silo.identity) for silo in silos))).hexdigest()


def fingerprint(digest: str, groups: int = 8) -> str:
    r"""The digits of an identity or a roster that people compare: groups of 5, by default 40 digits or 132 bits.

    An attacker who impersonates an honest owner of an identity must match its digits, which takes 2^132 attempts. An
    attacker who makes the rosters that several silos see needs only two rosters with equal digits, which takes 2^66
    attempts with 8 groups. The command line shows rosters in 12 groups: 199 bits and 2^99 attempts.

    Parameters
    ----------
    digest
        64 hexadecimal digits: an identity, or what `roster` returns.
    groups
        Number of groups of digits. A shorter fingerprint is the end of a longer one.

    Examples
    --------
    >>> from confide.federated import SiloKeys
    >>> fingerprint(SiloKeys("north", b"\1" * 32, b"\2" * 32).public().identity)
    '56142 33978 35996 60287 69298 19768 37038 69948'
    """
    size = 5 * groups
    digits = f"{int(digest, 16) % 10**size:0{size}d}"
    return " ".join(digits[i : i + 5] for i in range(0, size, 5))


# Names have no control character and nothing that needs quotes
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}")

# Longest public file or file of private keys that is read
_MOST_CHARACTERS = 10_000


@dataclass(frozen=True)
class Silo:
    r"""The public keys and public data of a silo or of the coordinator.

    A public file is signed by the key that it contains. So no other party can combine that key with another name,
    another key for masks or another size. Two people compare the fingerprint of the identity, which covers name and
    keys, by another channel before they trust the file. A file with another size needs no other comparison.

    Parameters
    ----------
    name
        1 to 64 letters, digits, spaces, dots, underscores and dashes.
    signing
        Ed25519 public key, 64 hexadecimal digits.
    agreement
        X25519 public key, 64 hexadecimal digits.
    size
        The public number of calibration records, or None if it is secret.
    ledger
        `SiloLedger.identity` of the one ledger that these keys answer with, 64 hexadecimal digits. None
        allows any ledger: then a copy of the keys with another ledger would answer the same plans once more.
    issued
        When the public file was issued, UTC, ISO format.
    signature
        The signature of all other fields by the key `signing`, in base64. Without it, it cannot be verified that the
        fields belong together, and no silo answers a plan with such a silo.

    Examples
    --------
    >>> north = SiloKeys("north", b"\1" * 32, b"\2" * 32).public(size=300)
    >>> north.identity[:8], north.size
    ('16fc215b', 300)
    >>> replace(north, size=299)
    Traceback (most recent call last):
        ...
    confide.federated.refusals.Refusal: altered: the signature of the silo does not match; request the original
    """

    name: str
    signing: str
    agreement: str
    size: int | None = None
    # In the order of the public file and of plans
    ledger: str | None = field(default=None, kw_only=True)
    issued: str | None = None
    signature: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        # Each field alone
        check_name(self.name)
        for key in (self.signing, self.agreement):
            remedy = "Use the file that keygen wrote"
            require("keys", is_hexadecimal(key, least=64), "must have 64 hexadecimal digits", remedy=remedy)
        is_identity = self.ledger is None or is_hexadecimal(self.ledger, least=64)
        require("ledger", is_identity, "must have 64 hexadecimal digits, as in SiloLedger.identity")
        if self.size is not None:
            positive_integer("size", self.size, most=MOST_RECORDS)
        # A usable key for masks, and a valid signature
        must = f"the agreement key of {self.name!r} must be one that keygen makes"
        require("keys", _agrees(self.agreement), must, remedy="Masks from this key would hide nothing")
        are_together = (self.issued is None) == (self.signature is None)
        require("issued", are_together, "issued and signature must be given together")
        if self.issued is not None:
            read_time(self.issued)
            _check_signed(self)

    @property
    def identity(self) -> str:
        """SHA-256 over the name and both keys, of which the fingerprint is made; 64 hexadecimal digits."""
        return identity_of(self.name, self.signing, self.agreement)

    @property
    def _payload(self) -> bytes:
        """What its key signs."""
        return encode(_Stated.of(self))

    def to_json(self) -> str:
        """The public file of a silo, signed by its own key."""
        if self.signature is None:
            remedy = "SiloKeys.public makes such a file"
            raise InputError("public", "a public file must be signed by its own key", remedy=remedy)
        return envelope("silo", self._payload, self.signing, self.signature)

    @classmethod
    def from_json(cls, text: str) -> "Silo":
        """Read the public file of a silo.

        Raises
        ------
        Refusal
            `malformed`, or `altered` if it is not signed by the key that it contains.
        """
        stated, signer, _, signature = read_message("silo", text, _Stated, _MOST_CHARACTERS)
        if signer != stated.signing:
            why = "the public file is signed with another key than its own; request another from its owner"
            raise Refusal("altered", why)
        return read_content("silo", lambda: cls(**msgspec.structs.asdict(stated), signature=signature))


class _Stated(Form):
    """What a silo's public file states; its key signs it."""

    name: str
    signing: str
    agreement: str
    size: int | None
    ledger: str | None
    issued: str | None

    @classmethod
    def of(cls, silo: Silo) -> Self:
        return cls(**{name: getattr(silo, name) for name in cls.__struct_fields__})


def check_name(name: str) -> str:
    """The name of a silo, if it is one."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError("name", "must be 1 to 64 letters, digits, spaces, dots, underscores or dashes")
    return name


@lru_cache(maxsize=2**15)
def _agrees(key: str) -> bool:
    """Whether an X25519 key gives secrets: with a key of low order every exchange is zero, which raises ValueError."""
    with needs_extra("federation", "standard"):
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

    try:
        X25519PrivateKey.from_private_bytes(bytes(32)).exchange(X25519PublicKey.from_public_bytes(bytes.fromhex(key)))
    except ValueError:
        return False
    return True


@lru_cache(maxsize=2**15)
def _check_signed(silo: Silo) -> None:
    verify("silo", silo._payload, silo.signing, str(silo.signature))


# Suffix of the file next to a key file with the checkpoint of its ledger
CHECKPOINT = ".checkpoint"


@dataclass(frozen=True)
class SiloKeys:
    """The private keys of a silo. They do not leave it and never appear in a message or a repr.

    Examples
    --------
    >>> keys = SiloKeys.generate("north")
    >>> keys
    SiloKeys(name='north')
    >>> keys.public(size=300).size
    300
    """

    name: str
    signing: bytes = field(repr=False)
    agreement: bytes = field(repr=False)
    # Of their ledger, next to the key file; None for keys that are in no file
    checkpoint: Path | None = field(default=None, repr=False, compare=False)
    # `SiloLedger.identity` of the one ledger with which these keys and all copies of them answer; None for any.
    ledger: str | None = field(default=None, repr=False, kw_only=True)

    @classmethod
    def generate(cls, name: str) -> "SiloKeys":
        """Generate new keys from the operating system's secure source."""
        with needs_extra("federation", "standard"):
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
            from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        check_name(name)
        signing = Ed25519PrivateKey.generate().private_bytes_raw()
        return cls(name, signing, X25519PrivateKey.generate().private_bytes_raw())

    def public(self, size: int | None = None, *, ledger: str | None = None, now: datetime | None = None) -> Silo:
        """The public file of these keys, with the number of records if it may be public, signed by its own key.

        With another size or ledger it has the same identity.

        Parameters
        ----------
        size
            The number of calibration records, if it may be public.
        ledger
            `SiloLedger.identity` of the ledger that these keys answer with, by default the one that the keys name.
            Then no copy of the keys answers with another ledger.
        now
            The present time; by default that of the system clock.
        """
        silo = replace(self.public_keys(size), ledger=self.ledger if ledger is None else ledger)
        issued = write_time(now or datetime.now(UTC))
        payload = encode(msgspec.structs.replace(_Stated.of(silo), issued=issued))
        _, signature = signature_of("silo", payload, self.signing)
        return replace(silo, issued=issued, signature=signature)

    def public_keys(self, size: int | None = None) -> Silo:
        """The name, the public keys and the size, without a signature."""
        with needs_extra("federation", "standard"):
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
            from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        signing = Ed25519PrivateKey.from_private_bytes(self.signing).public_key().public_bytes_raw()
        agreement = X25519PrivateKey.from_private_bytes(self.agreement).public_key().public_bytes_raw()
        return Silo(self.name, signing.hex(), agreement.hex(), size)

    def save(self, path: str | Path) -> None:
        """Write the private keys to a new file that only its owner can read; it is on disk when this returns."""
        self._write(path)

    def _write(self, path: str | Path, *, overwrite: bool = False) -> None:
        stated = _Private(self.name, self.signing.hex(), self.agreement.hex(), self.ledger)
        text = write_file("private-keys", msgspec.to_builtins(stated))
        try:
            write_text(path, text, overwrite=overwrite, durable=True, private=True)
        except InputError as error:
            raise InputError("keys", error.requirement, error.got) from None

    def name_ledger(self, path: str | Path, ledger: str) -> "SiloKeys":
        """Write the name of the ledger into the key file, so that no copy of the file answers with another ledger.

        Parameters
        ----------
        path
            The file that `save` wrote; it is replaced.
        ledger
            `SiloLedger.identity`.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     SiloKeys.generate("north").save(Path(folder) / "north.key")
        ...     keys = SiloKeys.load(Path(folder) / "north.key").name_ledger(Path(folder) / "north.key", "ab" * 32)
        ...     keys == SiloKeys.load(Path(folder) / "north.key"), keys.public(300).ledger[:4]
        (True, 'abab')
        """
        keys = replace(self, ledger=ledger)
        # Checks the name of the ledger before the file is replaced
        keys.public()
        keys._write(path, overwrite=True)
        return keys

    @classmethod
    def load(cls, path: str | Path) -> "SiloKeys":
        """Read a file written by `save`."""
        hint = "the file does not contain private keys; keygen writes such a file"
        stored = read_file("private-keys", read_text(Path(path)), _Private, hint, _MOST_CHARACTERS)
        return cls(
            stored.name,
            signing=bytes.fromhex(stored.signing),
            agreement=bytes.fromhex(stored.agreement),
            checkpoint=Path(f"{path}{CHECKPOINT}"),
            ledger=stored.ledger,
        )


_Key = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$", min_length=64, max_length=64)]


class _Private(Form, omit_defaults=True):
    """The content of a file of private keys."""

    name: str
    signing: _Key
    agreement: _Key
    ledger: _Key | None = None
