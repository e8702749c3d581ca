"""Signed JSON messages with a version and a bounded size, which is checked before they are parsed.

A message is {"kind", "schema", "content", "signer", "signature"}. Ed25519 signs the canonical JSON of the first three.
Times in messages are UTC, to the second, for example 2030-01-31T12:00:00Z.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple

from confide.errors import ConfideError, FormatError, InputTypeError, MissingExtraError
from confide.federated.refusals import Refusal
from confide.support import SCHEMA, Fields, check_schema, kind_named, needs_extra, parse_object

MOST_CHARACTERS = 8_000_000
PREFIX = "confide/federated."


class Envelope(NamedTuple):
    """The content of a message and the key that signed it, in hexadecimal. The reader decides whether to trust it."""

    content: Mapping[str, Any]
    signer: str


def sign_message(kind: str, content: Mapping[str, Any], signing_key: bytes) -> str:
    """Sign a content of plain JSON values with an Ed25519 private key; `kind` is for example "plan" or "answer"."""
    with needs_extra("federation", "standard"):
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key, head = Ed25519PrivateKey.from_private_bytes(signing_key), _head(kind, content)
    return envelope(kind, content, key.public_key().public_bytes_raw().hex(), key.sign(canonical(head)).hex())


def envelope(kind: str, content: Mapping[str, Any], signer: str, signature: str) -> str:
    """The text of a message with the given signature."""
    signed = {**_head(kind, content), "signer": signer, "signature": signature}
    return json.dumps(signed, indent=1, allow_nan=False) + "\n"


def _head(kind: str, content: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": PREFIX + kind, "schema": SCHEMA, "content": content}


def verify_message(kind: str, text: str, most: int = MOST_CHARACTERS) -> Envelope:
    """Check size, form, version and signature of a message.

    Raises
    ------
    Refusal
        `malformed` or `altered`.
    """
    message = parse(text, kind, most)
    if set(message) != {"kind", "schema", "content", "signer", "signature"} or not isinstance(message["content"], dict):
        raise Refusal("malformed", f"the {kind} must have the fields kind, schema, content, signer, signature")
    check_message_schema(message, kind)
    if message["kind"] != PREFIX + kind:
        raise Refusal("malformed", _other_kind(str(message["kind"]), PREFIX + kind))
    return Envelope(message["content"], verify(kind, message["content"], message["signer"], message["signature"]))


def check_message_schema(message: Mapping[str, Any], kind: str) -> None:
    """Refuse a message of this kind that has another schema, as `malformed`."""
    try:
        check_schema(message, PREFIX + kind, kind)
    except FormatError as error:
        raise Refusal("malformed", str(error)) from None


def _other_kind(stated: str, expected: str) -> str:
    is_a, must_be = kind_named(stated), kind_named(expected)
    if is_a is must_be:  # a plan and several plans are both a federated plan
        return f"the message must be of the kind {expected!r}; choose another file"
    return f"the message is {is_a}, not {must_be}; choose another file"


def verify(kind: str, content: Mapping[str, Any], signer: Any, signature: Any) -> str:
    """Verify the Ed25519 signature of a message and return the key, hexadecimal.

    Raises
    ------
    Refusal
        `altered`.
    """
    with needs_extra("federation", "standard"):
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key, signed = bytes.fromhex(signer), bytes.fromhex(signature)
        Ed25519PublicKey.from_public_bytes(key).verify(signed, canonical(_head(kind, content)))
    except (InvalidSignature, ValueError, TypeError):
        raise Refusal("altered", f"the signature of the {kind} does not match; request the original") from None
    return key.hex()


def canonical(value: Any) -> bytes:
    """The bytes that are signed and hashed: JSON with sorted keys and no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def digest(value: Any) -> str:
    """SHA-256 of the canonical bytes, hexadecimal."""
    return hashlib.sha256(canonical(value)).hexdigest()


def parse(text: str, name: str, most: int = MOST_CHARACTERS) -> dict[str, Any]:
    """Parse a strict JSON object of at most `most` characters; integers are below 2**64, as masks require."""
    if not isinstance(text, str) or len(text) > most:
        raise Refusal("malformed", f"the {name} must be a str of at most {most} characters")
    try:
        return parse_object(text, integer_bits=64)
    except ValueError:
        raise Refusal("malformed", f"the {name} is not a valid JSON object; request the original") from None


def read_file(kind: str, text: str, name: str, hint: str, most: int = MOST_CHARACTERS) -> dict[str, Any]:
    """The fields of a file of one kind that only its owner uses: it has neither a signature nor a checksum."""
    content = parse(text, name, most)
    check_message_schema(content, kind)
    if content.pop("kind", None) != PREFIX + kind:
        raise Refusal("malformed", hint)
    del content["schema"]
    return content


@contextmanager
def fields_of(name: str, content: Mapping[str, Any]) -> Iterator[Fields]:
    """The fields of a message, which must be read one by one until none is left.

    Raises
    ------
    Refusal
        `malformed` for every other error while they are read.
    """
    fields = Fields(name, dict(content))
    try:
        yield fields
        fields.finish()
    except (Refusal, MissingExtraError):
        raise
    except (ConfideError, ValueError, ZeroDivisionError, OverflowError) as error:
        raise Refusal("malformed", str(error)) from None


def write_time(time: datetime) -> str:
    """Write a time as UTC in ISO format, to the second."""
    if not isinstance(time, datetime) or time.tzinfo is None:
        raise InputTypeError("closes", "must be a datetime with a time zone")
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_time(text: str) -> datetime:
    """The inverse of `write_time`."""
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        raise Refusal("malformed", "a time must have the form 2030-01-31T12:00:00Z") from None
