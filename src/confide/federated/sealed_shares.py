"""Boxes for shares: each is read by one opener, written by one dealer, and bound to one answer of one session.

The key of a box is HKDF-SHA256 over two X25519 secrets, that of the dealer's fresh key with the opener's key and that
of the dealer's own key with it: a dealer's key that leaks later opens nothing that it dealt, and only the dealer can
have written what opens. Session, plan and all three public keys are in the derivation, so a box moved anywhere else
does not open. A key serves one box of ChaCha20-Poly1305, hence the constant nonce. The fresh private key is never kept.
"""

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from confide.federated.shamir import Elements, P
from confide.support import needs_extra

_INFO = b"confide/federated/sum-share/1|"
_NONCE = bytes(12)


def seal_shares(
    shares: Elements, openers: Sequence[str], own: str, agreement: bytes, context: bytes
) -> tuple[str, list[str]]:
    """A fresh public key, and the shares, of shape (openers, size), as base64 texts in this order.

    `openers` are X25519 public keys in hexadecimal, `own` is the dealer's and `agreement` its private key; `context` is
    session and plan digest. A key with which nothing can be agreed is a ValueError.
    """
    with needs_extra("federation", "standard"):
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    fresh = X25519PrivateKey.generate()
    key, ephemeral = X25519PrivateKey.from_private_bytes(agreement), fresh.public_key().public_bytes_raw().hex()
    texts = []
    for opener, row in zip(openers, shares, strict=True):
        secret = fresh.exchange(_public(opener)) + key.exchange(_public(opener))
        box = _cipher(secret, context, ephemeral, own, opener).encrypt(_NONCE, pack(row), None)
        texts.append(base64.b64encode(box).decode())
    return ephemeral, texts


def read_share(
    text: str, size: int, own: str, agreement: bytes, dealer: str, ephemeral: str, context: bytes
) -> Elements:
    """The share in a box of `dealer`, shape (size,), read by the opener with the public key `own`.

    Raises
    ------
    ValueError
        If it does not open with these keys in this context, or holds anything else.
    """
    with needs_extra("federation", "standard"):
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    key = X25519PrivateKey.from_private_bytes(agreement)
    secret = key.exchange(_public(ephemeral)) + key.exchange(_public(dealer))
    try:
        box = base64.b64decode(text, validate=True)
        return unpack(_cipher(secret, context, ephemeral, dealer, own).decrypt(_NONCE, box, None), size)
    except InvalidTag:
        raise ValueError("the box does not open with these keys") from None


def pack(elements: Elements) -> bytes:
    """Eight bytes for each, the lowest first.

    Examples
    --------
    >>> unpack(pack(np.array([1, P - 1], dtype=np.uint64)), 2).tolist() == [1, P - 1]
    True
    """
    return elements.astype("<u8").tobytes()


def unpack(packed: bytes, size: int) -> Elements:
    """The inverse of `pack`; anything else than `size` integers below P is a ValueError."""
    if len(packed) != 8 * size:
        raise ValueError("elements must be as many as there are candidates")
    elements = np.frombuffer(packed, dtype="<u8").astype(np.uint64)
    if (elements >= np.uint64(P)).any():
        raise ValueError("elements must be below 2**61 - 1")
    return elements


def _public(key: str) -> Any:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

    return X25519PublicKey.from_public_bytes(bytes.fromhex(key))


def _cipher(secret: bytes, context: bytes, ephemeral: str, dealer: str, opener: str) -> Any:
    """The cipher of one box."""
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    info = _INFO + context + "|".join(["", ephemeral, dealer, opener]).encode()
    return ChaCha20Poly1305(HKDF(SHA256(), 32, salt=None, info=info).derive(secret))
