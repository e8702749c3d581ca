"""Secure aggregation: pairwise masks, Shamir shares, encrypted shares, and shares of noise.

**Pairwise masks** (one message). Masks cancel when all silos' vectors are added modulo a power of two. Every pair of
silos shares a secret by X25519 from pinned static keys. HKDF-SHA256 derives a key for this plan and session alone,
ChaCha20 expands it, and one of the two adds the stream while the other subtracts it. Without all vectors nothing can be
opened; with all of them only the sum.

**Shamir shares** of vectors modulo P = 2**61 - 1: shares of a sum are sums of shares. A value is the constant term of a
random polynomial of degree below t; the share of share holder i (opener i) is the polynomial at i. Any t shares
determine the value, fewer are independent of it. Every coefficient is uniform, from the operating system's secure
source. Products stay within 64 bits, so that no integer is ever rounded.

**Encrypted shares** (boxes). A box is written by one dealer, read by one share holder, and bound to one answer of one
session. Its key is HKDF-SHA256 over two X25519 secrets: that of the dealer's fresh key with the share holder's key, and
that of the dealer's own key with the share holder's key. If the dealer's own key leaks later, boxes that it dealt stay
closed, and only the dealer can have written a box that opens. Session, plan and all three public keys enter the
derivation, so a box that is moved anywhere else does not open. A key serves one box of ChaCha20-Poly1305, hence the
constant nonce. The fresh private key is never kept.

**Shares of noise.** Any agreed number m' of honest shares adds up to at least discrete Laplace noise. The discrete
Laplace law P(x) ~ p^|x| with p = exp(-1/scale) is the difference of two geometric variables, and a geometric variable
is a sum of m' negative binomials with parameter 1/m'. A silo therefore adds the difference of two negative binomials of
parameter 1/m'; m' honest silos together add discrete Laplace noise, and further shares only add more.

**Exact sampling.** OpenDP has no negative binomial sampler, so one is built by rejection from two exact parts. A draw X
of OpenDP's discrete Laplace sampler gives a geometric K = X if X >= 0 and K = -X - 1 otherwise, because both branches
have P(K = k) ~ p^k. The negative binomial has P(K = k) ~ p^k prod_(i=1..k) (m'(i-1) + 1)/(m' i). So K is kept if for
i = 1..k a Bernoulli variable of that rational probability succeeds each time, drawn with integers from the operating
system's secure source. No floating-point number is used after `scale`.
"""

import base64
import math
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.selection import noisy_counts
from confide.support import needs_extra, positive_integer, positive_number

_MASKS = b"confide/federated/secure-sum/1|"


def mask(
    values: NDArray[np.int64], agreement: bytes, own: str, roster: Sequence[str], context: bytes, bits: int
) -> NDArray[Any]:
    """The values, int64 of shape (size,), plus all of the silo's masks modulo 2**bits: uint32 or uint64 of that shape.

    `agreement` is the silo's X25519 private key and `own` its public key, in hexadecimal. `roster` contains the public
    keys of all silos. `context`, session and plan digest, must never be used twice with this roster. `bits` is 32 or
    64.
    """
    with needs_extra("federation", "standard"):
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    if own not in roster or len(set(roster)) != len(roster):
        raise InputError("roster", "must name every silo once, this one among them")
    word = word_of(bits)
    result = values.astype(np.int64).view(np.uint64).astype(word)  # two's complement: reduction modulo 2**bits
    key = X25519PrivateKey.from_private_bytes(agreement)
    for other in roster:
        if other == own:
            continue
        pair = b"|".join(sorted((bytes.fromhex(own), bytes.fromhex(other))))
        shared = key.exchange(X25519PublicKey.from_public_bytes(bytes.fromhex(other)))
        secret = HKDF(SHA256(), 32, salt=None, info=_MASKS + context + b"|" + pair).derive(shared)
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
        raise InputError("bits", "must be 32 or 64", got=str(bits))
    return np.dtype(f"<u{bits // 8}")


Elements: TypeAlias = NDArray[np.uint64]
"""Integers below P, of any shape."""

BITS = 61
P = 2**BITS - 1
MOST_POINTS = 2**13
"""Larger points would overflow `times`."""

_SPLIT = 32


class Opened(NamedTuple):
    """An opened vector, int64 in (-P/2, P/2), and the point of the one share that contradicts the others, or None."""

    values: NDArray[np.int64]
    wrong: int | None


class NotOnePolynomialError(ValueError):
    """Shares contradict each other, and the wrong ones cannot be identified."""


def reduce(a: Elements) -> Elements:
    """Modulo P, for a below 2**64 - 8.

    Examples
    --------
    >>> reduce(np.array([P - 1, P, P + 5], dtype=np.uint64)).tolist() == [P - 1, 0, 5]
    True
    """
    a = (a & np.uint64(P)) + (a >> np.uint64(BITS))
    return np.where(a >= np.uint64(P), a - np.uint64(P), a)


def add(a: Elements, b: Elements) -> Elements:
    """The sum modulo P."""
    return reduce(a + b)


def times(a: Elements, x: Elements) -> Elements:
    """The product modulo P, where x is at most 2**13.

    Examples
    --------
    >>> times(np.array([P - 1], dtype=np.uint64), np.array([5], dtype=np.uint64)).tolist() == [(P - 1) * 5 % P]
    True
    """
    rest = BITS - _SPLIT
    high = (a >> np.uint64(_SPLIT)) * x  # times 2**32: its upper part wraps around, because 2**61 = 1 modulo P
    low = (a & np.uint64(2**_SPLIT - 1)) * x
    return reduce(((high & np.uint64(2**rest - 1)) << np.uint64(_SPLIT)) + (high >> np.uint64(rest)) + low)


def deal(values: NDArray[np.int64], openers: int, threshold: int) -> Elements:
    """Shares of values, int64 of shape (size,), for the points 1..openers: shape (openers, size). There is no seed.

    Examples
    --------
    >>> shares = deal(np.array([7, -2]), openers=4, threshold=3)
    >>> combine({1: shares[0], 3: shares[2], 4: shares[3]}, threshold=3).values
    array([ 7, -2])
    """
    if not 2 <= threshold <= openers <= MOST_POINTS:
        raise ValueError(f"threshold must be from 2 to the number of openers, these at most {MOST_POINTS}")
    points = np.arange(1, openers + 1, dtype=np.uint64)[:, None]
    shares = np.zeros((openers, len(values)), dtype=np.uint64)
    for row in [*_uniform(threshold - 1, len(values)), (values % P).astype(np.uint64)]:
        shares = reduce(times(shares, points) + row)
    return shares


def combine(shares: Mapping[int, Elements], threshold: int) -> Opened:
    """The values from the shares by point: `threshold` of them open, every further one is a check.

    With two more than `threshold`, one share that contradicts the others is left out and identified.

    Raises
    ------
    NotOnePolynomialError
        If they do not lie on one polynomial of that degree, and no single wrong share can be identified.
    """
    points = sorted(shares)
    if len(points) < threshold:
        raise ValueError("shares must number at least threshold")
    wrong = None
    if (where := _misfit(shares, points, threshold)) is not None:
        there = {point: shares[point][where : where + 1] for point in points}
        left = {point: [other for other in points if other != point] for point in points}
        enough = len(points) >= threshold + 2
        suspects = [point for point in points if enough and _misfit(there, left[point], threshold) is None]
        if len(suspects) != 1 or _misfit(shares, left[suspects[0]], threshold) is not None:
            raise NotOnePolynomialError("shares do not lie on one polynomial")
        wrong = suspects[0]
        points = left[wrong]
    total = _at(shares, points[:threshold], 0)
    return Opened(np.where(total > P // 2, total - P, total).astype(np.int64), wrong)


def _misfit(shares: Mapping[int, Elements], points: Sequence[int], threshold: int) -> int | None:
    """The first position at which the shares at these points contradict each other, or None."""
    for point in points[threshold:]:
        differs = _at(shares, points[:threshold], point) != shares[point].astype(object)
        if differs.any():
            return int(np.argmax(differs))
    return None


def _at(shares: Mapping[int, Elements], points: Sequence[int], x: int) -> NDArray[Any]:
    """The polynomial through the shares at these points, evaluated at x by Lagrange's formula in exact integers."""
    total: NDArray[Any] = np.zeros(len(shares[points[0]]), dtype=object)
    for p in points:
        others = [q for q in points if q != p]
        weight = math.prod(x - q for q in others) * pow(math.prod(p - q for q in others), -1, P) % P
        total = (total + weight * shares[p].astype(object)) % P
    return total


def _uniform(rows: int, size: int) -> Elements:
    """Independent uniform integers below P."""
    while True:
        drawn: Elements = np.frombuffer(secrets.token_bytes(8 * rows * size), dtype="<u8") & np.uint64(P)
        if not (drawn == np.uint64(P)).any():  # P, one in 2**61, would be a second zero: all are drawn again
            return drawn.reshape(rows, size)


_INFO = b"confide/federated/sum-share/1|"
_NONCE = bytes(12)


def seal_shares(
    shares: Elements, openers: Sequence[str], own: str, agreement: bytes, context: bytes
) -> tuple[str, list[str]]:
    """Encrypt the shares, of shape (openers, size); a fresh public key and the boxes as base64 texts in this order.

    `openers` are the share holders' X25519 public keys in hexadecimal, `own` is that of the dealer and `agreement` its
    private key. `context` is session and plan digest. A key of low order raises ValueError.
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
    """Decrypt the share, shape (size,), in a box of `dealer` for the share holder with the public key `own`.

    Raises
    ------
    ValueError
        If it does not open with these keys in this context, or contains anything else.
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
    """Eight bytes for each element, the lowest byte first.

    Examples
    --------
    >>> unpack(pack(np.array([1, P - 1], dtype=np.uint64)), 2).tolist() == [1, P - 1]
    True
    """
    return elements.astype("<u8").tobytes()


def unpack(packed: bytes, size: int) -> Elements:
    """The inverse of `pack`; anything other than `size` integers below P raises ValueError."""
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
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    info = _INFO + context + "|".join(["", ephemeral, dealer, opener]).encode()
    return ChaCha20Poly1305(HKDF(SHA256(), 32, salt=None, info=info).derive(secret))


def check_scale(scale: float, n: int) -> float:
    """Check that a noise scale is at most n. A larger one would hide n records, and its draws would hardly ever end.

    Raises
    ------
    InputError
        If it is larger than n.
    """
    if scale > n:
        raise InputError(
            "epsilon",
            f"is too small for {n} records in all: the noise would exceed their number",
            remedy="Raise epsilon",
        )
    return scale


def noise_share(size: int, scale: float, honest: int) -> NDArray[np.int64]:
    """One silo's share: int64, shape (size,), independent differences of two negative binomials of parameter 1/honest.

    `scale` is that of the discrete Laplace noise to which the shares of m' = `honest` silos add up. There is no seed.

    Examples
    --------
    >>> noise_share(3, 0.01, 4)
    array([0, 0, 0])
    """
    size, honest = positive_integer("size", size), positive_integer("honest", honest)
    scale = positive_number("scale", scale)
    return _negative_binomial(size, scale, honest) - _negative_binomial(size, scale, honest)


def _negative_binomial(size: int, scale: float, honest: int) -> NDArray[np.int64]:
    result = np.zeros(size, dtype=np.int64)
    missing = list(range(size))
    while missing:
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

    It is the difference of two negative binomials of that parameter. Mass beyond `half`, below 1e-18, is left out.

    Examples
    --------
    >>> law = noise_law(1.0, 1.0)
    >>> p = np.exp(-1.0)
    >>> bool(np.isclose(law[len(law) // 2], (1 - p) / (1 + p)))
    True
    """
    from scipy.signal import fftconvolve
    from scipy.special import gammaln

    p = math.exp(-1 / scale)
    half = math.ceil(scale * (45 + 5 * parameter * math.log1p(parameter + scale))) + 2
    k = np.arange(half + 1)
    log_mass = gammaln(k + parameter) - gammaln(parameter) - gammaln(k + 1.0) + k * -1 / scale
    one = np.exp(log_mass + parameter * math.log(-math.expm1(-1 / scale))) if p < 1 else np.ones(1)
    law: NDArray[np.float64] = np.maximum(fftconvolve(one, one[::-1]), 0.0)
    return law
