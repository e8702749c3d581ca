"""Messages between silos, masks, boxes, shares, sums, and ranks of ranks; keys of these vectors protect nothing."""

import base64
import hashlib
import json
import struct
from fractions import Fraction
from math import comb
from typing import Any

from tests.vectors import primitives
from tests.vectors.form import case, refused

ABOUT = "Federated messages and protocols. The private keys are SHA-256 of public texts and protect nothing."
ARITHMETIC = "RFC 8032, 7748, 5869 and 8439 in plain integers, exact polynomials modulo 2^61 - 1, exact fractions"
FIELD = 2**61 - 1
PREFIX = "confide.federated."
NAMES = ("north", "south", "east")
CONTEXT = f"{'5' * 32}|{'a' * 64}"


def seed(name: str, use: str) -> bytes:
    """A private key that everybody knows."""
    return hashlib.sha256(f"test vector {use} {name}".encode()).digest()


def canonical(value: Any) -> bytes:
    """Keys in order, no spaces, ASCII; none of these values has a float."""
    match value:
        case dict():
            return b"{" + b",".join(canonical(k) + b":" + canonical(value[k]) for k in sorted(value)) + b"}"
        case list():
            return b"[" + b",".join(map(canonical, value)) + b"]"
    return json.dumps(value).encode()


def head(kind: str, schema: int, content: dict[str, Any]) -> dict[str, Any]:
    return {"kind": PREFIX + kind, "schema": schema, "content": content}


def sealed(kind: str, schema: int, content: dict[str, Any], name: str) -> str:
    """The text of a signed message."""
    own, message = seed(name, "signing"), head(kind, schema, content)
    signature = primitives.ed25519_sign(own, canonical(message)).hex()
    signed = {**message, "signer": primitives.ed25519_public(own).hex(), "signature": signature}
    return json.dumps(signed, indent=1) + "\n"


def public(name: str) -> tuple[str, str]:
    """Signing and agreement key of a name, hexadecimal."""
    return primitives.ed25519_public(seed(name, "signing")).hex(), primitives.x25519(seed(name, "agreement")).hex()


ANSWER = {
    "plan": "c0" * 32, "session": "5" * 32, "silo": "north", "answered": "2030-01-31T12:00:00Z", "candidate": 8,
    "note": "Zürich \U0001f600 \"quoted\"",
}  # fmt: skip


def cases() -> list[dict[str, Any]]:
    """All of them."""
    return [*_messages(), *_identities(), *_masks(), *_shares(), *_ranks()]


def _messages() -> list[dict[str, Any]]:
    contents = {
        "answer": ("answer", 1, ANSWER),
        "second-schema": ("answer", 2, {**ANSWER, "sent": "once"}),
        "empty": ("part", 1, {}),
        "nested": ("plan", 1, {"b": [1, {"z": None, "a": True}], "a": {"y": "", "x": -5}, "B": 2**53}),
    }
    source, made = "docs/vectors.md, signed messages; RFC 8032", []
    for name, (kind, schema, content) in contents.items():
        given = {"kind": kind, "content": content}
        text = "the bytes that are signed: kind, schema and content with sorted keys, no spaces, ASCII"
        expected: Any = canonical(head(kind, schema, content)).decode()
        made.append(case(f"signed-bytes-{name}", "signed_bytes", text, source, given, expected))
    for name in ("answer", "second-schema"):
        kind, schema, content = contents[name]
        text = "the message signed by a key: its whole text"
        given = {"kind": kind, "content": content, "signing": seed("north", "signing").hex()}
        expected = sealed(kind, schema, content, "north")
        made.append(case(f"sealed-{name}", "seal", text, source, given, expected))
    good = sealed("answer", 1, ANSWER, "north")
    text = "who signed a message, and its content's silo"
    expected = {"signer": public("north")[0], "silo": "north"}
    made.append(case("unsealed", "unseal", text, source, {"kind": "answer", "text": good}, expected))
    signature = json.loads(good)["signature"]
    for name, changed in {
        "content": good.replace('"candidate": 8', '"candidate": 9'),
        "signer": good.replace(public("north")[0], public("south")[0]),
        "signature": good.replace(signature, ("1" if signature[0] == "0" else "0") + signature[1:]),
        "schema": good.replace('"schema": 1', '"schema": 2'),
        "kind": good.replace("federated.answer", "federated.part"),
        "field-twice": good.replace('"candidate": 8', '"candidate": 8,\n  "candidate": 8'),
        "one-field-more": good.replace('"schema": 1', '"schema": 1,\n "more": 1'),
    }.items():
        assert changed != good
        given = {"kind": "answer", "text": changed}
        made.append(refused(f"refused-{name}", "unseal", f"a message that was changed: {name}", source, given))
    return made


def _identities() -> list[dict[str, Any]]:
    source, made, found = "docs/vectors.md, identities", [], []
    for name in NAMES:
        signing, agreement = public(name)
        keys = bytes.fromhex(signing) + bytes.fromhex(agreement)
        identity = hashlib.sha256(b"confide/federated/identity/1\n" + name.encode() + b"\n" + keys).hexdigest()
        found.append(identity)
        given = {"name": name, "signing": signing, "agreement": agreement}
        made.append(case(f"identity-{name}", "identity", "SHA-256 of name and keys", source, given, identity))
    for name in NAMES[:2]:
        given = {"signing": seed(name, "signing").hex(), "agreement": seed(name, "agreement").hex()}
        text = "public keys of private ones"
        place = "RFC 8032, RFC 7748"
        made.append(case(f"public-keys-{name}", "public_keys", text, place, given, list(public(name))))
    joined = b"".join(sorted(map(bytes.fromhex, found)))
    roster = hashlib.sha256(b"confide/federated/roster/1\n" + joined).hexdigest()
    made.append(case("roster", "roster", "SHA-256 of all identities, sorted", source, {"identities": found}, roster))
    digits = f"{int(roster, 16) % 10**60:060d}"
    expected = " ".join(digits[i : i + 5] for i in range(0, 60, 5))
    given = {"digest": roster, "groups": 12}
    return [
        *made,
        case(
            "fingerprint", "fingerprint", "its last 60 decimal digits, as people compare them", source, given, expected
        ),
    ]


def masked(values: list[int], name: str, bits: int) -> list[int]:
    """The values plus one pseudorandom stream per other silo, added by the one with the smaller key."""
    own, word = public(name)[1], {32: "I", 64: "Q"}[bits]
    total = list(values)
    for other in (public(one)[1] for one in NAMES if one != name):
        pair = b"|".join(sorted((bytes.fromhex(own), bytes.fromhex(other))))
        shared = primitives.x25519(seed(name, "agreement"), bytes.fromhex(other))
        key = primitives.hkdf(shared, b"confide/federated/secure-sum/1|" + CONTEXT.encode() + b"|" + pair)
        stream = struct.unpack(f"<{len(values)}{word}", primitives.chacha20(key, len(values) * bits // 8))
        total = [a + (b if own < other else -b) for a, b in zip(total, stream, strict=True)]
    return [one % 2**bits for one in total]


def _masks() -> list[dict[str, Any]]:
    source, made = "docs/federated.md, secure sum; RFC 7748, 5869, 8439", []
    vectors = {"north": [3, 0, -2, 7], "south": [0, 5, 1, -7], "east": [1, 1, 1, 1]}
    roster = [public(one)[1] for one in NAMES]
    for bits in (32, 64):
        for name in NAMES:
            given = {
                "values": vectors[name], "agreement": seed(name, "agreement").hex(), "own": public(name)[1],
                "roster": roster, "context": CONTEXT, "bits": bits,
            }  # fmt: skip
            text = f"values of one silo under masks, modulo 2^{bits}; as texts, for they exceed a double"
            expected = [str(v) for v in masked(vectors[name], name, bits)]
            made.append(case(f"masked-{bits}-{name}", "mask", text, source, given, expected))
        given = {"masked": [[str(v) for v in masked(vectors[name], name, bits)] for name in NAMES], "bits": bits}
        expected = [sum(column) for column in zip(*vectors.values(), strict=True)]
        made.append(case(f"opened-{bits}", "open_sum", "all of them added: masks cancel", source, given, expected))
    given = {"values": [1], "agreement": seed("north", "agreement").hex(), "own": public("north")[1],
             "roster": roster[1:], "context": CONTEXT, "bits": 32}  # fmt: skip
    return [*made, refused("mask-refused-not-listed", "mask", "a silo that is not on the roster", source, given)]


COEFFICIENTS = [[12345678901234567, 987654321], [FIELD - 1, 1], [7, FIELD - 12]]
"""From the highest power down: two polynomials of degree 2, with the values 7 and -12."""


def shares(points: list[int]) -> dict[str, list[str]]:
    """The polynomials at some points."""
    at = {str(x): [0, 0] for x in points}
    for x in points:
        for row in COEFFICIENTS:
            at[str(x)] = [(total * x + c) % FIELD for total, c in zip(at[str(x)], row, strict=True)]
    return {x: [str(v) for v in row] for x, row in at.items()}


def _shares() -> list[dict[str, Any]]:
    source, made = "Shamir, CACM 1979; docs/federated.md, sums that lose silos", []
    for points in ([1, 2, 3], [2, 5, 7], [1, 3, 4, 6]):
        given = {"shares": shares(points), "threshold": 3}
        text = f"values from the shares at the points {points}, modulo 2^61 - 1, taken as signed"
        expected = {"values": [7, -12], "wrong": None}
        name = f"shares-{'-'.join(map(str, points))}"
        made.append(case(name, "combine", text, source, given, expected))
    spoiled = shares([1, 2, 3, 4, 5])
    spoiled["4"][1] = str((int(spoiled["4"][1]) + 1) % FIELD)
    text = "two shares more than needed name the one that does not fit"
    expected = {"values": [7, -12], "wrong": 4}
    made.append(case("shares-one-wrong", "combine", text, source, {"shares": spoiled, "threshold": 3}, expected))
    four = {x: spoiled[x] for x in ("1", "2", "3", "4")}
    for name, given in {
        "contradict": {"shares": four, "threshold": 3},
        "too-few": {"shares": shares([1, 2]), "threshold": 3},
    }.items():
        made.append(
            refused(f"shares-refused-{name}", "combine", f"shares that {name.replace('-', ' ')}", source, given)
        )
    dealer, opener, fresh = seed("north", "agreement"), seed("south", "agreement"), seed("north", "fresh")
    ephemeral, own, to = primitives.x25519(fresh).hex(), public("north")[1], public("south")[1]
    secret = primitives.x25519(fresh, bytes.fromhex(to)) + primitives.x25519(dealer, bytes.fromhex(to))
    info = b"confide/federated/sum-share/1|" + CONTEXT.encode() + "|".join(["", ephemeral, own, to]).encode()
    values = [5, FIELD - 1, 0]
    box = primitives.chacha20_poly1305(primitives.hkdf(secret, info), struct.pack("<3Q", *values))
    given = {"box": base64.b64encode(box).decode(), "size": 3, "own": to, "agreement": opener.hex(), "dealer": own,
             "ephemeral": ephemeral, "context": CONTEXT}  # fmt: skip
    source = "docs/vectors.md, boxes; RFC 8439"
    made.append(
        case("box", "read_share", "shares in a box, read by its opener", source, given, [str(v) for v in values])
    )
    for name, change in {
        "context": {"context": "another"},
        "size": {"size": 2},
        "dealer": {"dealer": public("east")[1]},
        "damaged": {"box": base64.b64encode(bytes([box[0] ^ 1]) + box[1:]).decode()},
    }.items():
        text = f"a box with another {name}" if name != "damaged" else "a damaged box"
        made.append(refused(f"box-refused-{name}", "read_share", text, source, {**given, **change}))
    return made


def polynomial_times(a: list[Fraction], b: list[Fraction]) -> list[Fraction]:
    made = [Fraction(0)] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            made[i + j] += x * y
    return made


def at_least_rank(n: int, rank: int) -> list[Fraction]:
    """P(Bin(n, t) >= rank) as a polynomial in t: how likely the rank-th smallest of n uniform scores is at most t."""
    made = [Fraction(0)] * (n + 1)
    for i in range(rank, n + 1):
        for j in range(n - i + 1):
            made[i + j] += comb(n, i) * comb(n - i, j) * (-1) ** j
    return made


def rank_of_ranks(replies: list[list[int]], k: int) -> Fraction:
    """1 - int_0^1 P(at least k replies are at most t) dt, exactly."""
    number = [[Fraction(1)]]  # polynomials: how likely 0, 1, 2, ... replies are at most t
    for n, rank in replies:
        low = at_least_rank(n, rank)
        high = [Fraction(int(i == 0)) - v for i, v in enumerate(low)]
        grown = [[Fraction(0)] for _ in range(len(number) + 1)]
        for i, one in enumerate(number):
            for place, factor in ((i, high), (i + 1, low)):
                product = polynomial_times(one, factor)
                size = max(len(product), len(grown[place]))
                pad = lambda v, size=size: [*v, *[Fraction(0)] * (size - len(v))]  # noqa: E731
                grown[place] = [a + b for a, b in zip(pad(product), pad(grown[place]), strict=True)]
        number = grown
    return 1 - sum(c / (power + 1) for one in number[k:] for power, c in enumerate(one))


def _ranks() -> list[dict[str, Any]]:
    source, made = "Humbert, Le Bars, Bellet and Arlot, ICML 2023; docs/federated.md, Theorem F1", []
    for replies, k in (
        ([[5, 4]] * 3, 2),
        ([[5, 2]] * 4, 3),
        ([[10, 10]] * 4, 1),
        ([[4, 3], [7, 7], [12, 10]], 2),
        ([[4, 3], [7, 7], [12, 10]], 3),
        ([[1, 1]], 1),
    ):
        text = "coverage of the k-th smallest of replies that are each the rank-th smallest of n continuous scores"
        name = f"rank-of-ranks-{'-'.join(f'{n}.{rank}' for n, rank in replies)}-{k}"
        given = {"replies": [{"n": n, "rank": rank} for n, rank in replies], "k": k}
        expected = rank_of_ranks(replies, k)
        made.append(case(name, "rank_of_ranks", text, source, given, expected, {"absolute": 1e-12}))
    return made
