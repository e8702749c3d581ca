"""Signatures of releases, their verification, and conditions that a release must meet before it is published.

`sign` puts a non-federated release into the envelope of a federation's messages. The signature belongs to the file and
is not part of the release: a signed file is read as the release that it contains, with the same SHA-256, and saving
that release writes no signature. `aggregate` signs federated releases. Conditions apply to releases of every kind, to
private evaluations and to monitors, federated or not.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from confide.core import FALSE_NEGATIVES, Document, MissedAreaLoss, Release, register_kind
from confide.errors import FormatError, InputError, InputTypeError
from confide.federated.answers import read_answer
from confide.federated.keys import Silo, SiloKeys
from confide.federated.messages import MOST_CHARACTERS, PREFIX, envelope, open_message, signature_of
from confide.federated.refusals import Refusal
from confide.federated.release import FederatedRelease
from confide.ledger import decimal_form
from confide.mechanisms import NEIGHBORS, Neighbors
from confide.support import exact_level, fraction_of, one_of, parse_object, privacy_loss, require

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
    require("released", len(text) <= MOST_CHARACTERS, f"must have at most {MOST_CHARACTERS} characters, signed")
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


class _Check(NamedTuple):
    """A statement, and whether it holds or was not requested."""

    text: str
    holds: bool


def _verification(checks: Sequence[_Check]) -> Verification:
    statements = tuple(check.text for check in checks if check.holds)
    return Verification(statements, tuple(check.text for check in checks if not check.holds))


def verify_signer(signer: str | None, required: Silo | None, drawn: str) -> Verification:
    """Compare the signer of a non-federated release with the required one, if any; `drawn` cannot be recomputed."""
    unsigned = (
        f"not signed: no signature vouches for the {drawn} themselves. Everything else was recomputed from the "
        "public choices"
    )
    not_compared = f"signed with the key {signer}; --signer compares it with a public file"
    return _verification([_signed_by(signer, required, unsigned, not_compared)])


def _signed_by(signer: str | None, required: Silo | None, unsigned: str, not_compared: str) -> _Check:
    """A statement about the signer, with the texts for a file without a signature and for no required signer."""
    if signer is None:
        return _Check(unsigned, holds=required is None)
    if required is None:
        return _Check(not_compared, holds=True)
    if required.signing != signer:
        return _Check(f"signed with another key than that of {required.name!r}", holds=False)
    return _Check(f"signed by {required.name!r}", holds=True)


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

    # The evidence: reading the release has recomputed what its answers show
    evidence = "the threshold is stated by the coordinator and cannot be recomputed from this file"
    if released.plan.channel.single_replies:
        evidence = f"the threshold was recomputed from {len(released.sent)} signed answers"

    # The answers that should count
    counted = [_about_answer(released, text) for text in answers]
    return _verification([signed, _Check(evidence, holds=True), *counted])


def _about_answer(released: FederatedRelease, text: str) -> _Check:
    """A statement about an answer; it holds if the answer counts."""
    plan = released.plan
    try:
        answer = read_answer(plan, text)
    except Refusal as refusal:
        return _Check(f"an answer cannot be used: {refusal}", holds=False)
    name = plan.silos[answer.silo].name
    if name not in released.answered:
        code = dict(released.refused).get(name)
        return _Check(f"the answer of {name!r} {f'was left out ({code})' if code else 'does not count'}", holds=False)
    if plan.channel.single_replies:
        same = answer.digest == read_answer(plan, released.sent[name]).digest
    else:
        same = answer.digest == released.sent[name]
    if not same:
        return _Check(f"another answer of {name!r} counts than this one", holds=False)
    return _Check(f"the answer of {name!r} counts", holds=True)


# Conditions

# Two sides that promise 0.95 each promise 0.8999999999999999 together
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Conditions:
    """Conditions on a release. A release without privacy fails every set of conditions, also an empty one.

    Parameters
    ----------
    epsilon_at_most
        The largest allowed privacy loss of one person, under each adjacency that the release states. A release that
        states zCDP only, or that protects labels only, fails. The losses of all batches (looks) of a monitor add up.
    coverage_at_least
        The smallest allowed coverage guarantee of each threshold, and of two sides together. A bound on the missed
        share of labels or area counts as coverage of 1 minus the bound; a bound on another loss guarantees no coverage.
    private
        Whether records must be protected, not their labels only.
    signed
        Whether there must be a signature, by any key; `confide verify --signer` requires a certain key.
    neighbors
        The only adjacency under which `epsilon_at_most` is compared; by default all that are stated.

    Examples
    --------
    >>> import confide, numpy as np
    >>> released = confide.calibrate(np.random.default_rng(0).random(2000), 0.1, 1.0, neighbors="replace_one")
    >>> checked = Conditions(epsilon_at_most=1, coverage_at_least=0.95).check(released)
    >>> checked.statements
    ('epsilon at most 1 is required; stated: 1 under replace_one',)
    >>> checked.failures
    ('coverage of at least 0.95 is required; promised: 0.9',)
    """

    epsilon_at_most: float | None = None
    coverage_at_least: float | None = None
    private: bool = False
    signed: bool = False
    neighbors: Neighbors | None = None

    def __post_init__(self) -> None:
        if self.epsilon_at_most is not None:
            object.__setattr__(self, "epsilon_at_most", privacy_loss("epsilon_at_most", self.epsilon_at_most))
        if self.coverage_at_least is not None:
            level = float(exact_level("coverage_at_least", self.coverage_at_least))
            object.__setattr__(self, "coverage_at_least", level)
        if self.neighbors is not None:
            one_of("neighbors", self.neighbors, NEIGHBORS)
            if self.epsilon_at_most is None:
                raise InputError("neighbors", "must be left out without epsilon_at_most, to which it belongs")

    def check(self, document: Document, signer: str | None = None) -> Verification:
        """Compare a release with the conditions.

        Parameters
        ----------
        document
            A release, a private evaluation or a monitor (watch).
        signer
            The key that signed it, as `read_signed` returns it; None without a signature.

        Returns
        -------
        Verification
            One line for each condition: in `statements` if it holds, else in `failures`.
        """
        checks: list[_Check] = []
        privacy = document.privacy
        if not privacy.is_private:
            checks.append(_Check(str(privacy), holds=False))
        elif self.private:
            checks.append(_Check(f"privacy of records is required; stated: {privacy.brief}", holds=True))
        if self.epsilon_at_most is not None:
            checks.append(self._check_loss(document, self.epsilon_at_most))
        if self.coverage_at_least is not None:
            promised, description = promised_by(document)
            line = f"coverage of at least {self.coverage_at_least:.12g} is required; {description}"
            is_enough = promised is not None and promised >= self.coverage_at_least - _ROUNDING
            checks.append(_Check(line, is_enough))
        if self.signed:
            signature = "none" if signer is None else f"by the key {signer}"
            checks.append(_Check(f"a signature is required; given: {signature}", holds=signer is not None))
        return _verification(checks)

    def _check_loss(self, document: Document, most: float) -> _Check:
        """Compare the loss of one person."""
        losses = self._losses(document)
        stated = ", ".join(f"{_number(loss)} under {name}" for name, loss in losses.items())
        looks = _looks_of(document)
        in_looks = f", for a person in all {looks} looks" if looks > 1 else ""
        line = f"epsilon at most {_number(most)} is required; stated: {stated}{in_looks}"
        return _Check(line, max(losses.values()) <= most)

    def _losses(self, document: Document) -> dict[Neighbors, float]:
        """The loss of one person by adjacency: under `neighbors`, or under all that are stated."""
        from confide.watching import CorrectedRelease

        # Of a person in the calibration and in every look
        if isinstance(document, CorrectedRelease):
            documents = [document.release, document.watch] if document.watch.looks else [document.release]
            each = [self._losses(part) for part in documents]
            return {name: math.fsum(losses.get(name, math.inf) for losses in each) for name in each[0]}

        # Under an adjacency that is not named only if the number of records is secret
        privacy = document.privacy
        looks = _looks_of(document)
        names: Sequence[Neighbors] = NEIGHBORS if self.neighbors is None else (self.neighbors,)
        if self.neighbors is None and privacy.add_remove is None:
            names = [name for name in NEIGHBORS if name != "add_remove"]
        losses = {
            name: privacy.epsilon if name == privacy.neighbors else privacy.loss(name, privacy.records_per_person)
            for name in names
        }
        return losses if looks == 1 else {name: float(looks * fraction_of(loss)) for name, loss in losses.items()}


def promised_by(document: Document) -> tuple[float | None, str]:
    """The guaranteed coverage, or None, and a description of it.

    For an evaluation or a monitor it is the guarantee of the evaluated or monitored release.
    """
    from confide.evaluation import Evaluation
    from confide.watching import CorrectedRelease, Watch

    if isinstance(document, CorrectedRelease):
        return None, "promised: none for one record, because the threshold is corrected look by look"
    # The levels that the document, or the release that it is about, states: of coverage, or of a bound on a loss
    loss: tuple[str, float] | None = None
    if isinstance(document, Release):
        levels = [document.promised]
        loss = document.bounded
    elif isinstance(document, Evaluation):
        levels = list(document.query.statements.values())
        loss = document.query.loss
    else:
        assert isinstance(document, Watch)
        levels = list(document.settings.promised.values())
    if not levels:
        return None, "promised: none, because set sizes are monitored"

    # A bound on the missed share of labels or area is one on coverage
    least = min(levels)
    if loss is None:
        return least, f"promised: {least:.12g}"
    name, bound = loss
    risk = bound * (1 - least)
    words = document.promise if isinstance(document, Release) else f"a loss {name!r} of at most {risk:.6g}"
    promise = f"promised: {words}"
    is_missed_share = name == FALSE_NEGATIVES or MissedAreaLoss.of(name) is not None
    return (1 - risk, promise) if is_missed_share else (None, f"{promise}, which is not a coverage guarantee")


def _looks_of(document: Document) -> int:
    """How often the stated loss counts for a person who is in every batch of the document."""
    from confide.watching import Watch

    return max(1, len(document.looks)) if isinstance(document, Watch) else 1


def _number(loss: float) -> str:
    """A loss with all digits, because it is compared without rounding."""
    return "none" if math.isinf(loss) else decimal_form(loss)
