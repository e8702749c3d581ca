"""Secure aggregation: pairwise masks, and shares of noise (docs/theory-federated.md).

Masks cancel when all silos' vectors are added modulo a power of two. Without all vectors nothing can be opened; with
all of them only the sum. Any agreed number of honest shares of noise adds up to at least discrete Laplace noise.
"""

import math
import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.selection import noisy_counts
from confide.support import needs_extra, positive_integer, positive_number

_MASKS = b"confide/federated/secure-sum/1|"


def mask(
    values: NDArray[np.int64], agreement: bytes, public: str, roster: Sequence[str], context: bytes, bits: int
) -> NDArray[Any]:
    """The values, int64 of shape (size,), plus all of the silo's masks modulo 2**bits: uint32 or uint64 of that shape.

    `agreement` is the silo's X25519 private key and `public` its public key, in hexadecimal. `roster` contains those
    of all silos. `context`, session and plan digest, must never be used twice with this roster. `bits` is 32 or
    64.
    """
    with needs_extra("federation", "standard"):
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    if public not in roster or len(set(roster)) != len(roster):
        raise InputError("roster", "must name every silo once, this one among them")
    # Two's complement: reduction modulo 2**bits
    word = word_of(bits)
    result = values.astype(np.int64).view(np.uint64).astype(word)
    key = X25519PrivateKey.from_private_bytes(agreement)
    for other in roster:
        if other == public:
            continue
        # A secret of the pair for this plan and session alone; one of the two adds its stream, the other subtracts it
        pair = b"|".join(sorted((bytes.fromhex(public), bytes.fromhex(other))))
        shared = key.exchange(X25519PublicKey.from_public_bytes(bytes.fromhex(other)))
        secret = HKDF(SHA256(), 32, salt=None, info=_MASKS + context + b"|" + pair).derive(shared)
        encryptor = Cipher(algorithms.ChaCha20(secret, bytes(16)), mode=None).encryptor()
        stream = np.frombuffer(encryptor.update(bytes(word.itemsize * len(values))), dtype=word)
        result = result + stream if public < other else result - stream
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
        raise InputError("bits", "must be 32 or 64", got=str(bits))
    return np.dtype(f"<u{bits // 8}")


def check_scale(scale: float, n: int) -> float:
    """A noise scale of at most n. A larger one would hide n records, and its draws would hardly ever end."""
    if scale > n:
        raise InputError(
            "epsilon",
            f"is too small for {n} records in all: the noise would exceed their number",
            remedy="Raise epsilon",
        )
    return scale


def noise_share(size: int, scale: float, honest: int) -> NDArray[np.int64]:
    """One silo's share: int64, shape (size,), independent differences of two negative binomials of parameter 1/honest.

    `scale` is that of the discrete Laplace noise to which the shares of m' = `honest` silos add up: its law
    P(x) ~ p^|x|, p = exp(-1/scale), is that of the difference of two geometric variables, and a geometric variable is
    a sum of m' negative binomials of parameter 1/m'. Further shares only add more noise. There is no seed.

    Examples
    --------
    >>> noise_share(3, 0.01, 4)
    array([0, 0, 0])
    """
    size, honest = positive_integer("size", size), positive_integer("honest", honest)
    scale = positive_number("scale", scale)
    return _negative_binomial(size, scale, honest) - _negative_binomial(size, scale, honest)


def _negative_binomial(size: int, scale: float, honest: int) -> NDArray[np.int64]:
    """Exact draws, by rejection: no floating-point number is used after `scale`.

    The law is P(K = k) ~ p^k prod_(i=1..k) (m'(i-1) + 1)/(m' i).
    """
    result = np.zeros(size, dtype=np.int64)
    missing = list(range(size))
    while missing:
        # A draw X of discrete Laplace noise gives a geometric K: both signs have P(K = k) ~ p^k. It is accepted if
        # for i = 1..k a Bernoulli variable of the rational probability above succeeds each time.
        proposals = noisy_counts(np.zeros(len(missing), dtype=np.int64), scale).tolist()
        rejected = []
        for position, x in zip(missing, proposals, strict=True):
            k = x if x >= 0 else -x - 1
            if all(secrets.randbelow(honest * i) <= honest * (i - 1) for i in range(1, k + 1)):
                result[position] = k
            else:
                rejected.append(position)
        missing = rejected
    return result


def noise_law(scale: float, parameter: float) -> NDArray[np.float64]:
    """The law of one count's total noise for `parameter` = shares/honest, on -half..half (float64, odd length).

    It is the difference of two negative binomials of that parameter.
    """
    from scipy.signal import fftconvolve
    from scipy.special import gammaln

    # Beyond `half` there is mass below 1e-18
    p = math.exp(-1 / scale)
    half = math.ceil(scale * (45 + 5 * parameter * math.log1p(parameter + scale))) + 2
    k = np.arange(half + 1)
    log_mass = gammaln(k + parameter) - gammaln(parameter) - gammaln(k + 1.0) + k * -1 / scale
    mass = np.exp(log_mass + parameter * math.log(-math.expm1(-1 / scale))) if p < 1 else np.ones(1)
    law: NDArray[np.float64] = np.maximum(fftconvolve(mass, mass[::-1]), 0.0)
    return law
