"""Signed messages: Dead Simple Signing Envelopes of JSON (DSSE, https://github.com/secure-systems-lab/dsse).

Ed25519 signs the type and the payload, in base64. The payload has the fields of one type, and is accepted only if
writing its content again gives the same bytes. `keyid` is the public key.
"""

import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from confide.errors import ConfideError, FormatError, InputTypeError, MissingExtraError
from confide.federated.refusals import Refusal
from confide.ledger import is_hexadecimal
from confide.support import SCHEMA, check_schema, kind_named, needs_extra, parse_object

# Longest message that is read
MOST_CHARACTERS = 16_000_000

# Of the kinds of all files of a federation
PREFIX = "confide/federated."

Content = TypeVar("Content")


class Form(msgspec.Struct, forbid_unknown_fields=True):
    """Base class of the contents of messages: decoding a message with an unknown field raises an error."""


class _Signature(Form):
    keyid: str
    sig: str


class _Envelope(Form):
    payloadType: str  # noqa: N815 - the names of DSSE
    payload: str
    signatures: list[_Signature]


class Message(NamedTuple, Generic[Content]):
    """A message whose signature by the hexadecimal key `signer` is valid. The reader decides whether to trust the key.

    `digest` is that of the payload.
    """

    content: Content
    signer: str
    digest: str
    signature: str


def encode(content: Any) -> bytes:
    """The payload of a message with this content."""
    return msgspec.json.encode(content)


def digest(payload: bytes) -> str:
    """SHA-256, hexadecimal."""
    return hashlib.sha256(payload).hexdigest()


def _type_of(kind: str) -> str:
    return f"application/vnd.confide.federated.{kind}+json; schema={SCHEMA}"


def sign(kind: str, content: Any, signing_key: bytes) -> str:
    """Sign a content with an Ed25519 private key; `kind` is for example "plan" or "answer"."""
    payload = encode(content)
    return envelope(kind, payload, *signature_of(kind, payload, signing_key))


def signature_of(kind: str, payload: bytes, signing_key: bytes) -> tuple[str, str]:
    """The public key, in hexadecimal, and the signature of a payload, in base64."""
    with needs_extra("federation", "standard"):
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.from_private_bytes(signing_key)
    return key.public_key().public_bytes_raw().hex(), _base64(key.sign(_signed_bytes(kind, payload)))


def envelope(kind: str, payload: bytes, signer: str, signature: str) -> str:
    """The text of a message with this signature, in base64."""
    message = _Envelope(_type_of(kind), _base64(payload), [_Signature(signer, signature)])
    return msgspec.json.format(encode(message), indent=1).decode() + "\n"


def read_message(kind: str, text: str, form: type[Content], most: int = MOST_CHARACTERS) -> Message[Content]:
    """Check the size, the type, the signature and the content of a message.

    Raises
    ------
    Refusal
        `malformed` or `altered`.
    """
    payload, signer, signature = open_message(kind, text, most)
    content = read_content(kind, lambda: msgspec.json.decode(payload, type=form))
    if encode(content) != payload:
        why = f"the {kind} is not the text that confide writes for its content; request the original"
        raise Refusal("malformed", why)
    return Message(content, signer, digest(payload), signature)


def open_message(kind: str, text: str, most: int = MOST_CHARACTERS) -> tuple[bytes, str, str]:
    """The payload of a message, the key that signed it, and the signature in base64; raises a `Refusal`."""
    if not isinstance(text, str) or len(text) > most:
        raise Refusal("malformed", f"the {kind} must be a str of at most {most} characters")
    try:
        message = msgspec.json.decode(text, type=_Envelope)
        payload = _bytes(message.payload)
        (signature,) = message.signatures
    except (ValueError, RecursionError):
        raise Refusal("malformed", f"the {kind} is not a signed message; request the original") from None
    if message.payloadType != _type_of(kind):
        raise Refusal("malformed", _other_type(message.payloadType, kind))
    verify(kind, payload, signature.keyid, signature.sig)
    return payload, signature.keyid, signature.sig


def verify(kind: str, payload: bytes, signer: str, signature: str) -> None:
    """Verify the signature of a payload, in base64, by a key in hexadecimal; raises a `Refusal`, `altered`."""
    with needs_extra("federation", "standard"):
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        if not is_hexadecimal(signer, least=64):
            raise ValueError
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signer))
        key.verify(_bytes(signature), _signed_bytes(kind, payload))
    except (InvalidSignature, ValueError):
        raise Refusal("altered", f"the signature of the {kind} does not match; request the original") from None


def read_content(kind: str, read: Callable[[], Content]) -> Content:
    """The value that `read` returns; every error about the content of a message is a `Refusal`, mostly `malformed`."""
    try:
        return read()
    except (Refusal, MissingExtraError):
        raise
    except (ConfideError, ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
        # msgspec wraps the errors of values that it makes
        reason = error.__cause__ if isinstance(error.__cause__, ConfideError) else error
        if isinstance(reason, Refusal | MissingExtraError):
            raise reason from None
        why = str(reason) if isinstance(reason, ConfideError) else f"the {kind} lacks a field, or has a wrong one"
        raise Refusal("malformed", f"{why}; request the original") from None


def _signed_bytes(kind: str, payload: bytes) -> bytes:
    """The pre-authentication encoding of DSSE."""
    payload_type = _type_of(kind).encode()
    return b"DSSEv1 %d %b %d %b" % (len(payload_type), payload_type, len(payload), payload)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    """The bytes of a text in base64; other texts for the same bytes are rejected."""
    data = base64.b64decode(text, validate=True)
    if _base64(data) != text:
        raise ValueError
    return data


def _other_type(stated: str, expected: str) -> str:
    """Why a message is not of the expected kind: another schema, or another file."""
    match = re.fullmatch(r"application/vnd\.confide\.(?P<kind>[a-z.-]+)\+json; schema=(?P<schema>\d+)", stated)
    if match and match["kind"] == f"federated.{expected}":
        return f"the message must be of schema {SCHEMA}; found {match['schema']}"
    actual = kind_named(match["kind"] if match else "")
    return f"the message is {actual}, not {kind_named(PREFIX + expected)}; choose another file"


# Files that only their owner uses have neither a signature nor a checksum


def write_file(kind: str, fields: Mapping[str, Any]) -> str:
    """The text of such a file."""
    return json.dumps({"kind": PREFIX + kind, "schema": SCHEMA, **fields}, indent=1) + "\n"


def read_file(kind: str, text: str, form: type[Content], hint: str, most: int = 1_000_000) -> Content:
    """Read a file of one kind; raises a `Refusal`, `malformed`, with a hint for other files."""
    # A JSON object of this kind
    if len(text) > most:
        raise Refusal("malformed", f"the file must have at most {most} characters")
    try:
        content = parse_object(text)
        check_schema(content, PREFIX + kind, kind)
    except FormatError as error:
        raise Refusal("malformed", str(error)) from None
    except ValueError:
        raise Refusal("malformed", "the file is not a valid JSON object; request the original") from None
    if content.pop("kind", None) != PREFIX + kind:
        raise Refusal("malformed", hint)

    # Its fields are those of the form; a dataclass would ignore others
    del content["schema"]
    described: Any = msgspec.inspect.type_info(form)

    def convert() -> Content:
        if not content.keys() <= {item.name for item in described.fields}:
            raise ValueError
        return msgspec.convert(content, form)

    return read_content(kind, convert)


# Times in messages, in UTC
_TIME = "%Y-%m-%dT%H:%M:%SZ"


def write_time(time: datetime) -> str:
    """Write a time as UTC in ISO format, to the second."""
    if not isinstance(time, datetime) or time.tzinfo is None:
        raise InputTypeError("closes", "must be a datetime with a time zone")
    return time.astimezone(UTC).strftime(_TIME)


def read_time(text: str) -> datetime:
    """The inverse of `write_time`."""
    time = None
    with suppress(ValueError):
        time = datetime.strptime(text, _TIME).replace(tzinfo=UTC)
    # `strptime` also reads other texts for the same time
    if time is None or write_time(time) != text:
        raise Refusal("malformed", "a time must have the form 2030-01-31T12:00:00Z")
    return time
