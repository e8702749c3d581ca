"""Signed files of non-federated releases, in the envelope of a federation's messages.

The signature belongs to the file and is not part of the release. A signed file is read as the release that it contains,
with the same SHA-256. Saving that release writes no signature. `aggregate` signs federated releases.
"""

from typing import Any, NamedTuple

from confide.core import Document, Release, register_kind
from confide.errors import FormatError, InputError, InputTypeError
from confide.federated.calibration import FederatedRelease
from confide.federated.keys import Silo, SiloKeys
from confide.federated.messages import MOST_CHARACTERS, PREFIX, envelope, open_message, signature_of
from confide.federated.refusals import Refusal
from confide.federated.verification import Verification
from confide.support import parse_object

KIND = "signed-release"

# Of the names of groups, which releases may have
_NAME_BITS = 2**14


class Read(NamedTuple):
    """The content of a file, and the key that signed it (64 hexadecimal digits); None without a signature."""

    document: Document
    signer: str | None


def sign(released: Release, keys: SiloKeys) -> str:
    """Sign a non-federated release.

    Parameters
    ----------
    released
        A release of any kind, except federated ones, which `aggregate(keys=...)` signs.
    keys
        The private keys of the signer.

    Returns
    -------
    str
        The text of a file, which `confide.load` reads as the release, without its signature.

    Raises
    ------
    InputError, InputTypeError
        If it is not a non-federated release, or is too long.

    Examples
    --------
    >>> import confide, numpy as np
    >>> from confide.federated import SiloKeys, read_signed, sign
    >>> keys = SiloKeys.generate("statistics office")
    >>> released = confide.calibrate(np.random.default_rng(0).random(2000), 0.1, 1.0)
    >>> text = sign(released, keys)
    >>> confide.Release.from_json(text) == released
    True
    >>> read_signed(text).signer == keys.public().signing
    True
    """
    if not isinstance(released, Release):
        raise InputTypeError("released", "must be a release, of thresholds", got=type(released).__name__)
    if isinstance(released, FederatedRelease):
        raise InputError("released", "must not be federated: `aggregate(keys=...)` signs federated releases")
    payload = released.to_json().encode()
    text = envelope(KIND, payload, *signature_of(KIND, payload, keys.signing))
    if len(text) > MOST_CHARACTERS:
        raise InputError("released", f"must have at most {MOST_CHARACTERS} characters, signed")
    return text


def read_signed(text: str) -> Read:
    """Read the text of a file as `confide.load` does, and return the key that signed it as well.

    Raises
    ------
    FormatError
        If it is not a release, evaluation or watch, was altered, or contains claims that do not follow.
    """
    document = Document.from_json(text)
    if isinstance(document, FederatedRelease):
        return Read(document, None if document.signature is None else document.signer)
    if "payloadType" not in parse_object(text, _NAME_BITS):
        return Read(document, None)
    return Read(document, open_message(KIND, text)[1])


def signed_by(signer: str | None, demanded: Silo | None, what: str) -> Verification:
    """Compare the signer of a non-federated release with the required one, if any; `what` cannot be recomputed.

    Examples
    --------
    >>> signed_by(None, None, "thresholds").statements
    ('not signed: no signature vouches for the thresholds themselves. Everything else was recomputed from the ...',)
    """
    if signer is None:
        text = (
            f"not signed: no signature vouches for the {what} themselves. Everything else was recomputed from the "
            "public choices"
        )
        return Verification((text,), ()) if demanded is None else Verification((), (text,))
    if demanded is None:
        return Verification((f"signed with the key {signer}; --signer compares it with a public file",), ())
    if demanded.signing != signer:
        return Verification((), (f"signed with another key than that of {demanded.name!r}",))
    return Verification((f"signed by {demanded.name!r}",), ())


def _read(text: str) -> Release:
    try:
        payload = open_message(KIND, text)[0]
    except Refusal as refusal:
        raise FormatError("file", "must be a signed release as it was signed", remedy=str(refusal)) from None
    inside = payload.decode(errors="replace")
    if '"payloadType"' in inside[:100]:
        raise FormatError("file", "must not contain another signed file")
    document: Any = Document.from_json(inside)
    if not isinstance(document, Release) or isinstance(document, FederatedRelease):
        raise FormatError("release", "must not be federated")
    return document


register_kind(PREFIX + KIND, _read)
