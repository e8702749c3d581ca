"""Ed25519 (RFC 8032), X25519 (RFC 7748), HKDF (RFC 5869), ChaCha20 and Poly1305 (RFC 8439) in plain integers.

Written from the RFCs for these vectors alone, beside the library that the package uses. Not for secrets: slow, and its
time depends on the keys.
"""

import hashlib
import hmac
import struct

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
Point = tuple[int, int]


def _recovered(y: int) -> int:
    """The even x of a point of the curve -x^2 + y^2 = 1 + d x^2 y^2."""
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    return P - x if x % 2 else x


BASE = (_recovered(4 * pow(5, -1, P) % P), 4 * pow(5, -1, P) % P)


def _plus(a: Point, b: Point) -> Point:
    (x1, y1), (x2, y2) = a, b
    both = D * x1 * x2 * y1 * y2 % P
    return (x1 * y2 + x2 * y1) * pow(1 + both, -1, P) % P, (y1 * y2 + x1 * x2) * pow(1 - both, -1, P) % P


def _times(k: int, point: Point) -> Point:
    total = (0, 1)
    for bit in bin(k)[2:]:
        total = _plus(total, total)
        if bit == "1":
            total = _plus(total, point)
    return total


def _packed(point: Point) -> bytes:
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")


def _clamped(key: bytes) -> int:
    return int.from_bytes(key, "little") & ((1 << 254) - 8) | 1 << 254


def _sha512(*parts: bytes) -> bytes:
    return hashlib.sha512(b"".join(parts)).digest()


def ed25519_public(seed: bytes) -> bytes:
    return _packed(_times(_clamped(_sha512(seed)[:32]), BASE))


def ed25519_sign(seed: bytes, message: bytes) -> bytes:
    hashed = _sha512(seed)
    secret, public = _clamped(hashed[:32]), ed25519_public(seed)
    nonce = int.from_bytes(_sha512(hashed[32:], message), "little") % ORDER
    first = _packed(_times(nonce, BASE))
    challenge = int.from_bytes(_sha512(first, public, message), "little")
    return first + ((nonce + challenge * secret) % ORDER).to_bytes(32, "little")


def x25519(key: bytes, public: bytes = (9).to_bytes(32, "little")) -> bytes:
    """The Montgomery ladder."""
    k, u = _clamped(key), int.from_bytes(public, "little") % 2**255
    x2, z2, x3, z3 = 1, 0, u, 1
    for i in reversed(range(255)):
        swap = k >> i & 1
        if swap:
            x2, z2, x3, z3 = x3, z3, x2, z2
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        x3, z3 = (d * a + c * b) ** 2 % P, u * (d * a - c * b) ** 2 % P
        x2, z2 = a * a * b * b % P, (a * a - b * b) * (a * a + 121665 * (a * a - b * b)) % P
        if swap:
            x2, z2, x3, z3 = x3, z3, x2, z2
    return (x2 * pow(z2, -1, P) % P).to_bytes(32, "little")


def hkdf(secret: bytes, info: bytes) -> bytes:
    """32 bytes of HKDF-SHA256 without salt."""
    extracted = hmac.digest(bytes(32), secret, "sha256")
    return hmac.digest(extracted, info + b"\x01", "sha256")


def _block(key: bytes, counter: int, nonce: bytes) -> bytes:
    state = [
        *struct.unpack("<4I", b"expand 32-byte k"),
        *struct.unpack("<8I", key),
        counter,
        *struct.unpack("<3I", nonce),
    ]
    x = list(state)
    for _ in range(10):
        for a, b, c, d in (
            (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
            (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),
        ):  # fmt: skip
            for to, add, mix, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                x[to] = (x[to] + x[add]) & 0xFFFFFFFF
                mixed = x[mix] ^ x[to]
                x[mix] = (mixed << turn | mixed >> (32 - turn)) & 0xFFFFFFFF
    return struct.pack("<16I", *((a + b) & 0xFFFFFFFF for a, b in zip(x, state, strict=True)))


def chacha20(key: bytes, size: int, counter: int = 0) -> bytes:
    """The first bytes of the stream under a nonce of zeros."""
    return b"".join(_block(key, counter + i, bytes(12)) for i in range(-(-size // 64)))[:size]


def chacha20_poly1305(key: bytes, plain: bytes) -> bytes:
    """A sealed box under a nonce of zeros, without additional data."""
    stream = chacha20(key, len(plain), counter=1)
    box = bytes(a ^ b for a, b in zip(plain, stream, strict=True))
    once = chacha20(key, 32)
    r, s = int.from_bytes(once[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF, int.from_bytes(once[16:], "little")
    authenticated, total = box + bytes(-len(box) % 16) + struct.pack("<QQ", 0, len(box)), 0
    for i in range(0, len(authenticated), 16):
        total = (total + int.from_bytes(authenticated[i : i + 16] + b"\x01", "little")) * r % (2**130 - 5)
    return box + ((total + s) % 2**128).to_bytes(16, "little")
