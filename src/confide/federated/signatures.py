"""Signatures of releases, and their verification.

`sign` puts a non-federated release into the envelope of a federation's messages. The signature belongs to the file and
is not part of the release: a signed file is read as the release that it contains, with the same SHA-256, and saving
that release writes no signature. `aggregate` signs federated releases.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from confide.core import Document, Release, register_kind
from confide.errors import FormatError, InputError, InputTypeError
from confide.federated.answers import read_answer
from confide.federated.keys import Silo, SiloKeys
from confide.federated.messages import MOST_CHARACTERS, PREFIX, envelope, open_message, signature_of
from confide.federated.refusals import Refusal
from confide.federated.release import FederatedRelease
from confide.support import parse_object

KIND = "signed-release"

# Integers in a file may be this long, because groups may be named by any integer
_MOST_INTEGER_BITS = 2**14


class SignedDocument(NamedTuple):
    """The document in a file, and the key that signed it (64 hexadecimal digits); None without a signature."""

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


def read_signed(text: str) -> SignedDocument:
    """Read the text of a file as `confide.load` does, and return the key that signed it as well.

    A file without a signature is read too, and its signer is None: `verify_signer` requires a signer.

    Raises
    ------
    FormatError
        If the file is not a release, evaluation or watch, was altered after it was signed, or contains a guarantee or
        another claim that does not follow from the request and the draw in the file.
    """
    document = Document.from_json(text)
    # A federated release contains its signature
    if isinstance(document, FederatedRelease):
        return SignedDocument(document, None if document.signature is None else document.signer)
    # Any other document is signed by an envelope around it
    if "payloadType" not in parse_object(text, _MOST_INTEGER_BITS):
        return SignedDocument(document, None)
    _, signer, _ = open_message(KIND, text)
    return SignedDocument(document, signer)


def _read_release(text: str) -> Release:
    try:
        payload, *_ = open_message(KIND, text)
    except Refusal as refusal:
        raise FormatError("file", "must be a signed release as it was signed", remedy=str(refusal)) from None
    # An envelope begins with its type; one inside another would be opened again and again
    release_text = payload.decode(errors="replace")
    if '"payloadType"' in release_text[:100]:
        raise FormatError("file", "must not contain another signed file")
    document: Any = Document.from_json(release_text)
    if not isinstance(document, Release) or isinstance(document, FederatedRelease):
        raise FormatError("release", "must not be federated")
    return document


register_kind(PREFIX + KIND, _read_release)


# Verification


@dataclass(frozen=True)
class Verification:
    """The result of a verification.

    Parameters
    ----------
    statements
        Statements that hold, or that were not requested.
    failures
        Requested statements that do not hold, or that cannot be verified.
    """

    statements: tuple[str, ...]
    failures: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether all requested statements hold."""
        return not self.failures


def verify_signer(signer: str | None, required: Silo | None, drawn: str) -> Verification:
    """Compare the signer of a non-federated release with the required one, if any; `drawn` cannot be recomputed.

    Examples
    --------
    >>> verify_signer(None, None, "thresholds").statements
    ('not signed: no signature vouches for the thresholds themselves. Everything else was recomputed from the ...',)
    """
    unsigned = (
        f"not signed: no signature vouches for the {drawn} themselves. Everything else was recomputed from the "
        "public choices"
    )
    not_compared = f"signed with the key {signer}; --signer compares it with a public file"
    return _signed_by(signer, required, unsigned, not_compared)


def _signed_by(signer: str | None, required: Silo | None, unsigned: str, not_compared: str) -> Verification:
    """A statement about the signer, with the texts for a file without a signature and for no required signer."""
    if signer is None:
        return Verification((unsigned,), ()) if required is None else Verification((), (unsigned,))
    if required is None:
        return Verification((not_compared,), ())
    if required.signing != signer:
        return Verification((), (f"signed with another key than that of {required.name!r}",))
    return Verification((f"signed by {required.name!r}",), ())


def verify(released: FederatedRelease, coordinator: Silo | None = None, answers: Sequence[str] = ()) -> Verification:
    """Verify the signer of a federated release, the evidence for its threshold, and that answers count.

    Parameters
    ----------
    released
        The release, as it was read.
    coordinator
        The coordinator's public file, whose fingerprint you have compared. Without it a signature is reported only.
    answers
        Signed answers that should count, for example that of your own silo.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from confide import federated
    >>> coordinator = federated.SiloKeys.generate("coordinator")
    >>> north = federated.SiloKeys.generate("north")
    >>> plan = federated.plan([north.public(size=300)], 0.1, 2.0, score="lac").sign(coordinator)
    >>> policy = federated.Policy(coordinator.public().identity, budget=4.0, per_plan=2.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = federated.SiloLedger(f"{folder}/north.db")
    ...     answer = federated.answer(plan, np.linspace(0, 1, 300), north, policy, ledger)
    >>> released = federated.aggregate(plan, [answer], keys=coordinator)
    >>> verify(released, coordinator.public(), [answer]).holds
    True
    """
    # The signer
    signer = None if released.signature is None else released.signer
    unsigned = "not signed: no signature vouches for the threshold"
    signed = _signed_by(signer, coordinator, unsigned, "signed with the key that signed the plan")
    statements, failures = list(signed.statements), list(signed.failures)

    # The evidence: reading the release has recomputed what its answers show
    if released.plan.channel.single_replies:
        statements.append(f"the threshold was recomputed from {len(released.sent)} signed answers")
    else:
        statements.append("the threshold is stated by the coordinator and cannot be recomputed from this file")

    # The answers that should count
    for text in answers:
        statement, holds = _about_answer(released, text)
        (statements if holds else failures).append(statement)
    return Verification(tuple(statements), tuple(failures))


def _about_answer(released: FederatedRelease, text: str) -> tuple[str, bool]:
    """A statement about an answer, and whether the answer counts."""
    plan = released.plan
    try:
        answer = read_answer(plan, text)
    except Refusal as refusal:
        return f"an answer cannot be used: {refusal}", False
    name = plan.silos[answer.silo].name
    if name not in released.answered:
        code = dict(released.refused).get(name)
        return f"the answer of {name!r} {f'was left out ({code})' if code else 'does not count'}", False
    if plan.channel.single_replies:
        same = answer.digest == read_answer(plan, released.sent[name]).digest
    else:
        same = answer.digest == released.sent[name]
    if not same:
        return f"another answer of {name!r} counts than this one", False
    return f"the answer of {name!r} counts", True
