"""Who speaks: an Ed25519 key that signs and an X25519 key that agrees on masks, per silo and coordinator."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from confide.errors import InputError
from confide.federated.envelope import fields_of, read_file
from confide.federated.refusals import Refusal
from confide.support import MOST_RECORDS, positive_integer, read_text

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}")
_HEX = re.compile(r"[0-9a-f]{64}")
_MOST = 10_000


@dataclass(frozen=True)
class Silo:
    """The public face of a silo (or of the coordinator).

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
    """

    name: str
    signing: str
    agreement: str
    size: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise InputError("name must be 1 to 64 letters, digits, spaces, dots, underscores or dashes")
        for key in (self.signing, self.agreement):
            if not isinstance(key, str) or not _HEX.fullmatch(key):
                raise InputError("keys must have 64 hexadecimal digits; use the file that keygen wrote")
        if self.size is not None:
            positive_integer("size", self.size, most=MOST_RECORDS)

    def fields(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "Silo":
        """From JSON values.

        Raises
        ------
        Refusal
            `malformed`.
        """
        with fields_of("silo", content) as fields:
            name, signing, agreement = (fields.take(part, str) for part in ("name", "signing", "agreement"))
            return cls(name, signing, agreement, fields.take("size", (int, type(None))))

    def to_json(self) -> str:
        """The public file of a silo."""
        return json.dumps({"kind": "confide.federated.silo", **self.fields()}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Silo":
        """Read the public file of a silo."""
        hint = "the file is not a public silo file; keygen writes one"
        return cls.of(read_file("silo", text, "silo file", hint, _MOST))


@dataclass(frozen=True)
class SiloKeys:
    """The private keys of a silo. They never leave it and never appear in a message or a repr.

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

    @classmethod
    def generate(cls, name: str) -> "SiloKeys":
        """New keys from the operating system's secure source."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        signing, agreement = Ed25519PrivateKey.generate(), X25519PrivateKey.generate()
        keys = cls(name, signing.private_bytes_raw(), agreement.private_bytes_raw())
        keys.public()  # checks the name
        return keys

    def public(self, size: int | None = None) -> Silo:
        """The public face, with the public number of records if it may be known."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        signing = Ed25519PrivateKey.from_private_bytes(self.signing).public_key().public_bytes_raw()
        agreement = X25519PrivateKey.from_private_bytes(self.agreement).public_key().public_bytes_raw()
        return Silo(self.name, signing.hex(), agreement.hex(), size)

    def save(self, path: str | Path) -> None:
        """Write the private keys to a new file that only its owner can read."""
        content = {
            "kind": "confide.federated.private-keys",
            "name": self.name,
            "signing": self.signing.hex(),
            "agreement": self.agreement.hex(),
        }
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise InputError(f"key file {str(path)!r} cannot be written: {error.strerror}") from None
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(json.dumps(content, indent=1) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> "SiloKeys":
        """Read a file written by `save`."""
        hint = "the file does not hold private keys; keygen writes one"
        content = read_file("private-keys", read_text(Path(path)), "key file", hint, _MOST)
        name, signing, agreement = (str(content.get(part)) for part in ("name", "signing", "agreement"))
        if not (_HEX.fullmatch(signing) and _HEX.fullmatch(agreement)):
            raise Refusal("malformed", "the key file is damaged; restore it or make new keys")
        return cls(name, bytes.fromhex(signing), bytes.fromhex(agreement))
