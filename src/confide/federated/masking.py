"""One-message secure sum: pairwise masks that cancel when all silos' vectors are added modulo a power of two.

Every pair of silos shares a secret by X25519 from pinned static keys; HKDF-SHA256 derives a key for this plan and
session alone, ChaCha20 expands it, and one of the two adds the stream while the other subtracts it. Without all vectors
nothing can be opened; with all of them only the sum.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.support import needs_extra

_INFO = b"confide/federated/secure-sum/1|"


def mask(
    values: NDArray[np.int64], agreement: bytes, own: str, roster: Sequence[str], context: bytes, bits: int
) -> NDArray[Any]:
    """The values, int64 of shape (size,), plus all of the silo's masks modulo 2**bits: uint32 or uint64 of that shape.

    `agreement` is the silo's X25519 private key and `own` its public one, in hexadecimal; `roster` holds the public
    keys of all silos; `context`, session and plan digest, is never used twice with this roster; `bits` is 32 or 64.
    """
    with needs_extra("federation", "standard"):
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    if own not in roster or len(set(roster)) != len(roster):
        raise InputError("roster must name every silo once, this one among them")
    word = word_of(bits)
    result = values.astype(np.int64).view(np.uint64).astype(word)  # two's complement: reduction modulo 2**bits
    key = X25519PrivateKey.from_private_bytes(agreement)
    for other in roster:
        if other == own:
            continue
        pair = b"|".join(sorted((bytes.fromhex(own), bytes.fromhex(other))))
        shared = key.exchange(X25519PublicKey.from_public_bytes(bytes.fromhex(other)))
        secret = HKDF(SHA256(), 32, salt=None, info=_INFO + context + b"|" + pair).derive(shared)
        encryptor = Cipher(algorithms.ChaCha20(secret, bytes(16)), mode=None).encryptor()
        stream = np.frombuffer(encryptor.update(bytes(word.itemsize * len(values))), dtype=word)
        result = result + stream if own < other else result - stream
    return result


def open_sum(masked: Sequence[NDArray[Any]], bits: int) -> NDArray[np.int64]:
    """The sum of all silos' vectors as signed integers in [-2**(bits-1), 2**(bits-1)).

    Examples
    --------
    >>> open_sum([np.array([2**32 - 3], dtype="<u4"), np.array([1], dtype="<u4")], 32)
    array([-2])
    """
    word = word_of(bits)
    total = np.zeros(len(masked[0]), dtype=word)
    for vector in masked:
        total += vector.astype(word)
    return total.view(f"<i{bits // 8}").astype(np.int64)


def word_of(bits: int) -> np.dtype[Any]:
    """Unsigned words of 32 or 64 bits."""
    if bits not in (32, 64):
        raise InputError(f"bits must be 32 or 64; found {bits}")
    return np.dtype(f"<u{bits // 8}")
