"""The release of a federation: thresholds with their signed plan and the answers from which they follow.

`aggregate` makes it from the silos' answers. A reader computes every claim of a file again.
"""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, Literal

import msgspec

from confide.core import By, Key, Release, Threshold, documents, kind_asked, register_kind, too_large
from confide.errors import CoverageWarning, FormatError, InputError
from confide.federated.answers import (
    add,
    check_versions,
    distant_replies,
    read_answer,
    read_answers,
    replies_of,
    sorted_refusals,
)
from confide.federated.keys import SiloKeys
from confide.federated.messages import PREFIX, Form, encode, envelope, read_content, read_message, signature_of
from confide.federated.plan import FederatedPlan, read_plan
from confide.federated.protocols import Certificate, NoisyCounts, ThresholdPlan
from confide.federated.refusals import CODES, Refusal
from confide.federated.terms import Counts
from confide.ledger import is_hexadecimal
from confide.mechanisms import Neighbors, PrivacyStatement
from confide.support import (
    Classes,
    Facts,
    Section,
    caller_stacklevel,
    class_count,
    decimal_text,
    escape_line,
    library_versions,
    require,
)
from confide.support import Form as DocumentForm

KIND = "release"
MOST_CHARACTERS = 50_000_000


@dataclass(frozen=True, repr=False, kw_only=True)
class FederatedThreshold(Threshold):
    """A threshold of a federation, with the plan from which its claims follow.

    `k` is its rank among the sorted answers: 0 if the method does not sort, and more than their number for +inf.
    `plan_digest` is that of the whole plan.
    """

    plan: ThresholdPlan
    plan_digest: str
    k: int
    answered: tuple[str, ...]

    def coverage_failure(self, n: int | None = None) -> Callable[[float], float]:
        """The function c -> a bound on the probability that coverage given the calibration data is below c.

        An upper bound by Theorem F2 of docs/theory-federated.md. Sizes are those of the plan; `n` must be left out.
        """
        require("n", n is None, "must be left out: a federated calibration contains the public sizes")
        answered = [self.plan.position(name) for name in self.answered]
        return self.plan.coverage_failure(answered, self.k)

    def coverage_at_most(self, n: int | None = None) -> float:
        """1, because federated calibrations have no better upper bound."""
        return 1.0

    @property
    def mechanism_facts(self) -> Facts:
        """The method, its plan and parameters, and how the threshold follows."""
        plan = self.plan
        facts = [("method", plan.method), ("plan", f"SHA-256 {self.plan_digest}"), *plan.trust_rows]
        if isinstance(plan, NoisyCounts):
            facts.append(("noise scale of the sum", decimal_text(plan.scale, 5)))
        elif self.k:
            facts.append(("threshold", f"number {self.k} of {len(self.answered)} answers in ascending order"))
        return tuple(facts)

    @property
    def proof(self) -> str:
        """The theorem from which the guarantee follows."""
        return f"docs/theory-federated.md, {self.plan.theorem}"


@dataclass(frozen=True)
class PlanStatement:
    """The statement of a plan about all thresholds of its release, or about that of one `key` alone."""

    plan: FederatedPlan
    key: Key = None

    # What the request of another release may state, and a plan does not
    overlap = loss = fingerprint = population = chosen = renews = None
    bound = 1.0
    joint = False

    @property
    def by(self) -> By | None:
        """The type of keys; None if there is one threshold."""
        return self.plan.by if self.key is None else None

    @property
    def neighbors(self) -> Neighbors:
        """The adjacency of the privacy loss of the whole."""
        return self.plan.privacy().neighbors

    @property
    def classes(self) -> Classes | None:
        """The classes of the score; None if they are not stated."""
        classes: Classes | None = self.plan.request.classes
        return classes

    @property
    def about(self) -> Mapping[str, str]:
        """Public metadata."""
        about: Mapping[str, str] = self.plan.request.about
        return about

    def at(self, key: Key) -> "PlanStatement":
        """The statement of the plan of one level or side."""
        return PlanStatement(self.plan, key)


# Messages left out: pairs of a silo, or the number of a message without a silo, and a code
Refused = tuple[tuple[str | int, str], ...]


class _Stated(Form):
    """What a release states: what does not follow from the plan, and the messages from which thresholds follow."""

    plan: str
    thresholds: tuple[float | Literal["+inf"], ...]
    answered: tuple[str, ...]
    refused: Refused
    versions: dict[str, str]
    sent: dict[str, str]


@dataclass(frozen=True, repr=False, kw_only=True)
class FederatedRelease(Release):
    """The release of a federation, with one threshold or several from one message of each silo. Made by `aggregate`.

    Parameters
    ----------
    request
        The statement of the plan.
    parts
        The thresholds by key.
    plan_text
        The signed plan.
    answered
        Names of the silos whose answers count.
    refused
        Pairs (silo, code) that were left out. A message that no silo of the plan signed has its number among the
        messages, an integer from 1 on, in place of the name.
    sent
        The evidence by silo: the signed answer, if it is private by itself, or its digest, if only the sum is.
    signature
        The coordinator's signature of the whole content, in base64, or None. The key is that of the plan.
    """

    request: PlanStatement
    parts: Mapping[Key, FederatedThreshold]
    plan_text: str
    answered: tuple[str, ...]
    refused: Refused
    sent: Mapping[str, str]
    signature: str | None = None

    __hash__ = Release.__hash__

    @property
    def plan(self) -> FederatedPlan:
        """The plan."""
        return self.request.plan

    @property
    def signer(self) -> str:
        """The Ed25519 key that signed the plan, and the release if that is signed; hexadecimal."""
        assert self.plan.coordinator is not None  # a plan that was read names it
        return self.plan.coordinator.signing

    @cached_property
    def privacy(self) -> PrivacyStatement:
        """The loss of all thresholds together (docs/theory.md, section 6); for levels from one sum, that of the sum."""
        answered = [self.plan.position(name) for name in self.answered]
        return self.plan.privacy(answered) if self.request.key is None else self.first.privacy

    @property
    def turnout(self) -> str:
        """The method, the number of silos that answered, and the messages left out, as text."""
        left_out = "".join(f"\nleft out: {_sender(sender)} ({code})" for sender, code in self.refused)
        return f"method: {self.plan.method}, {self._silos} answered{left_out}"

    def alone(self, key: Key) -> "FederatedRelease":
        """The release of one of the thresholds, without a signature; it has no file."""
        release = super().alone(key)
        assert isinstance(release, FederatedRelease)
        return replace(release, signature=None)

    def signed(self, signing_key: bytes) -> "FederatedRelease":
        """The release with the signature of the key that signed the plan."""
        _, signature = signature_of(KIND, encode(_stated_by(self)), signing_key)
        return replace(self, signature=signature)

    def to_json(self) -> str:
        """The release as a JSON document with its signed plan, and with its signature or else a checksum.

        Raises
        ------
        InputError
            If it is one of several thresholds, alone.
        """
        if self.signature is None:
            return _UNSIGNED.write(self)
        return envelope(KIND, encode(_stated_by(self)), self.signer, self.signature)

    @classmethod
    def from_json(cls, text: str) -> "FederatedRelease":
        """Read what `to_json` wrote; signatures are checked and every claim computed again.

        Raises
        ------
        FormatError
            If the text is not a federated release, was altered, or contains claims that do not follow.
        """
        # An envelope begins with its type
        if '"payloadType"' not in text[:100]:
            unsigned: FederatedRelease = _UNSIGNED.read_text(text)
            return unsigned
        with _refusals_of_files():
            stated, signer, _, signature = read_message(KIND, text, _Stated, MOST_CHARACTERS)
            released = _read(stated, signature)
            if released.signer != signer:
                raise Refusal("malformed", "the calibration is signed with another key than its plan; do not use it")
            return released

    @property
    def _silos(self) -> str:
        return f"{len(self.answered)} of {len(self.plan.silos)} silos"

    def _section(self) -> Section:
        return replace(super()._section(), notes=(self.turnout,))

    def _brief(self) -> str:
        return f"{super()._brief()}, {self._silos}"


def _stated_by(release: FederatedRelease) -> _Stated:
    """What the file of a release states."""
    is_whole = release.request.key is None
    require("calibration", is_whole, "must be saved with the other thresholds of its release")
    values = [threshold.threshold for threshold in release.parts.values()]
    return _Stated(
        plan=release.plan_text,
        thresholds=tuple("+inf" if math.isinf(value) else value for value in values),
        answered=release.answered,
        refused=release.refused,
        versions=dict(release.versions),
        sent=dict(release.sent),
    )


def _sender(sender: str | int) -> str:
    """The sender as text. A silo's name has no comma, so it differs from the text for a message number."""
    return f"message {sender}, of no silo of the plan" if isinstance(sender, int) else escape_line(sender)


def aggregate(
    plan: str, answers: Sequence[str], *, keys: SiloKeys | None = None, drop_refused: bool = False
) -> FederatedRelease:
    """Make the threshold, or the thresholds, of a plan from the silos' answers.

    Parameters
    ----------
    plan
        The signed plan.
    answers
        The messages. A copy of a message counts once.
    keys
        The coordinator's private keys, which signed the plan. The calibration is signed with them. By default it is not
        signed.
    drop_refused
        Leave out messages that are malformed, altered, foreign, late, out of range or contradict another one of the
        same silo, and record the code, instead of raising a `Refusal`. Their silos count as missing.

    Returns
    -------
    FederatedRelease
        Works with `confide.predict_set` and `confide.predict_interval`.

    Warns
    -----
    CoverageWarning
        If a threshold is +inf. Also if replies differ so much that silos are hardly IID, as the guarantee assumes: see
        `distant_replies`.

    Raises
    ------
    Refusal
        With the message's silo and the reason.
    InputError
        If the keys are not those that signed the plan.
    """
    # The answers that count
    parsed = read_plan(plan)
    check_keys(parsed, keys)
    accepted, refused = read_answers(parsed, answers, drop_refused)
    if far := distant_replies(parsed, replies_of(parsed, accepted)):
        warnings.warn(CoverageWarning(far), stacklevel=caller_stacklevel())

    # The evidence: the answers, or their digests if only the sum is private
    counted = {parsed.silos[i].name: accepted[i] for i in sorted(accepted)}
    is_single = parsed.channel.single_replies
    stated = _Stated(
        plan=plan,
        thresholds=(),
        answered=tuple(counted),
        refused=sorted_refusals(refused),
        versions=dict(library_versions()),
        sent={name: answer.text if is_single else answer.digest for name, answer in counted.items()},
    )

    # The release, and warnings about thresholds that exclude nothing
    released = make_release(stated, add(parsed, accepted.values()))
    for name, threshold in released.by_name.items():
        if threshold.excludes_nothing:
            text = _useless(name, threshold, len(counted), len(parsed.silos))
            warnings.warn(CoverageWarning(text), stacklevel=caller_stacklevel())
    return released if keys is None else released.signed(keys.signing)


def check_keys(plan: FederatedPlan, keys: SiloKeys | None) -> None:
    """Raise unless the keys, if there are any, signed the plan."""
    if keys is not None and plan.coordinator is not None and keys.public_keys().signing != plan.coordinator.signing:
        raise InputError("keys", "must be the coordinator's keys, which signed the plan", got="other keys")


def _useless(name: str, threshold: Threshold, answered: int, invited: int) -> str:
    """The warning about a threshold that excludes nothing; sizes are secret, so that it states reasons alone."""
    reason = "some silos may have too few records"
    if answered < invited:
        reason = f"more of the {invited} silos must answer, or {reason}"
    if threshold.threshold != math.inf:
        reason = f"{too_large(threshold)}; or {reason}"
    return f"the threshold{f' of {name}' if name else ''} is {threshold.text}; {reason}"


def make_release(stated: _Stated, total: Counts | None) -> FederatedRelease:
    """The release from the sum of the silos' vectors, shape (draws, m); without it the thresholds are the stated ones.

    Everything else follows from the plan.
    """
    # The certificates and the thresholds
    plan = read_plan(stated.plan)
    positions = [plan.position(name) for name in stated.answered]
    certificates = plan.of_each(lambda single: single.certify(positions))
    if total is None:
        thresholds = [float(value) for value in stated.thresholds]
    else:
        thresholds = _thresholds(plan, total, [certificate.k for certificate in certificates])

    # Each threshold with what the plan states about it
    parts = zip(plan.parts.items(), certificates, thresholds, strict=True)
    return FederatedRelease(
        request=PlanStatement(plan),
        parts={
            key: _threshold_of(plan, single, certificate, threshold, stated.answered)
            for (key, single), certificate, threshold in parts
        },
        versions=stated.versions,
        plan_text=stated.plan,
        answered=stated.answered,
        refused=stated.refused,
        sent=stated.sent,
    )


def _threshold_of(
    plan: FederatedPlan, single: ThresholdPlan, certificate: Certificate, threshold: float, answered: tuple[str, ...]
) -> FederatedThreshold:
    is_finite = threshold != math.inf
    if threshold not in single.candidates.values or (certificate.k > len(answered) and is_finite):
        raise Refusal("malformed", "a threshold does not follow from the plan; do not use it")
    classes = plan.request.classes
    return FederatedThreshold(
        threshold=threshold,
        alpha=single.alpha,
        score=single.score,
        guarantee=certificate.guarantee,
        privacy=single.privacy([plan.position(name) for name in answered]),
        mechanism=None,
        candidates=single.candidates.size,
        recipe=single.candidates.recipe,
        largest=kind_asked(single.score).largest(None if classes is None else class_count(classes)),
        plan=single,
        plan_digest=plan.digest,
        k=certificate.k,
        answered=answered,
    )


def _thresholds(plan: FederatedPlan, total: Counts, ks: Sequence[int]) -> list[float]:
    """The thresholds from the sum of the silos' vectors, shape (draws, m), with the k of each threshold."""
    rows = total if len(total) == len(plan.parts) else [total[0]] * len(plan.parts)
    each = zip(plan.single_plans, rows, ks, strict=True)
    thresholds = [single.read_off(row, k) for single, row, k in each]
    # Those of levels are nested; their coverage only rises
    return list(accumulate(thresholds, max)) if plan.by == "level" else thresholds


@contextmanager
def _refusals_of_files() -> Iterator[None]:
    """A refusal as an error about a file, with its reason."""
    try:
        yield
    except Refusal as refusal:
        raise FormatError("release", "must follow from its plan", remedy=str(refusal)) from None


def _read(stated: _Stated, signature: str | None) -> FederatedRelease:
    """The release of a file, computed again from its messages."""
    # What the file states
    plan = read_plan(stated.plan)
    positions = [plan.position(name) for name in stated.answered]
    if not positions or positions != sorted(set(positions)):
        raise Refusal("malformed", "the silos that answered must be named once each, in the order of the plan")
    unknown = {code for _, code in stated.refused} - CODES.keys()
    if unknown or stated.refused != sorted_refusals(dict(stated.refused)):
        raise Refusal("malformed", "rejected messages must be pairs of a sender and a code on the public list")
    check_versions(KIND, stated.versions)
    if len(stated.thresholds) != len(plan.parts):
        raise Refusal("malformed", "the thresholds must be numbers, one for each part of the plan")

    # With signed answers in the file the thresholds follow from them, too
    total = _total(plan, stated, positions)
    released = read_content(KIND, lambda: make_release(stated, total))
    if _stated_by(released).thresholds != stated.thresholds:
        raise Refusal("malformed", "the thresholds do not follow from the messages in the file; do not use it")
    return replace(released, signature=signature)


def _total(plan: FederatedPlan, stated: _Stated, positions: Sequence[int]) -> Counts | None:
    """The sum that the messages in a file open; None if it has only their digests."""
    if tuple(stated.sent) != stated.answered:
        raise Refusal("malformed", "the calibration does not contain the required answers; do not use it")
    if plan.channel.single_replies:
        answers = [read_answer(plan, text) for text in stated.sent.values()]
        if [answer.silo for answer in answers] != positions:
            raise Refusal("malformed", "the calibration contains an answer under another name; do not use it")
        return add(plan, answers)
    if not all(is_hexadecimal(item, least=64) for item in stated.sent.values()):
        raise Refusal("malformed", "the calibration must have the digests of answers to a sum; do not use it")
    return None


def _read_unsigned(content: dict[str, Any]) -> FederatedRelease:
    with _refusals_of_files():
        return _read(read_content(KIND, lambda: msgspec.convert(content, _Stated)), None)


_UNSIGNED = documents.Kind(
    DocumentForm(PREFIX + KIND, KIND, most_characters=MOST_CHARACTERS, integer_bits=64, indent=1),
    lambda release: msgspec.to_builtins(_stated_by(release)),
    _read_unsigned,
)


register_kind(PREFIX + KIND, FederatedRelease.from_json)
