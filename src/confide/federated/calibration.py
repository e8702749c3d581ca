"""What a signed release tells of the messages that it was made from, and the files of releases, signed or not.

The result of a federated calibration: a `Calibration` that carries its plan, so that its claims can be checked.

Everything but the threshold and the names of those who answered follows from the plan and is computed again on reading;
where openers have opened a sum, these follow from their signed parts, too.
"""

import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from confide.errors import FormatError, InputError
from confide.federated.answers import Answer, read_answer
from confide.federated.envelope import PREFIX, envelope, fields_of, parse, read_document, seal, unseal, write_document
from confide.federated.keys import SiloKeys
from confide.federated.openings import OpenedList
from confide.federated.plan import FederatedPlan
from confide.federated.protocols import DealtVectors
from confide.federated.refusals import CODES, Refusal
from confide.federated.release_size import MOST_CHARACTERS_OF_RELEASE, tells_whole
from confide.federated.several_plans import AnyPlan, parts_of_plan
from confide.guarantee import Guarantee
from confide.releases import Calibration, register_kind
from confide.support import check_versions, one_line

Refused: TypeAlias = tuple[tuple[str | int, str], ...]
"""Pairs (silo, or place of a message of no silo, and code) that were left out."""


def told_of(plan: AnyPlan, text: str, messages: Sequence[Answer]) -> dict[str, Any]:
    """What of the messages that count may be known to all who read the release, by silo.

    A reply that is private by itself is private against them, too. Of a vector that protects a sum only the digest is
    told: its masks are random, and so is that. A message that is not private would be found from its digest by trying
    all replies, so nothing is told; nor where parts of openers list the answers. Of replies that would together make a
    longer file than is read, the digests are told, too; whether they would follows from the plan, signed as `text`.
    """
    if not _is_told(plan):
        return {}
    by_digest = plan.protocol.relies_on_silos or not tells_whole(text, parts_of_plan(plan))
    return {plan.silos[one.silo].name: one.digest if by_digest else json.loads(one.text) for one in messages}


def read_told(plan: AnyPlan, text: str, sent: Mapping[str, Any], answered: Collection[str]) -> dict[int, Any]:
    """The replies that a release tells, by place, from the silos' signed answers; none where it tells digests.

    Raises
    ------
    Refusal
        If it does not tell what it has to, or an answer cannot be used.
    """
    whole = {name: told for name, told in sent.items() if isinstance(told, dict)}
    digests = {name for name, told in sent.items() if isinstance(told, str) and re.fullmatch("[0-9a-f]{64}", told)}
    expected = set(answered) if _is_told(plan) else set()
    by_digest = plan.protocol.relies_on_silos
    if digests and not by_digest:  # 0.2 told whole answers, however long the file became
        by_digest = not tells_whole(text, parts_of_plan(plan))
    if expected != (digests if by_digest else whole.keys()) or len(sent) != len(expected):
        raise Refusal("malformed", "the calibration does not tell what it was made from; do not use it")
    replies = {}
    for name, message in whole.items():
        one = read_answer(plan, json.dumps(message))
        replies[one.silo] = one.reply
        if plan.silos[one.silo].name != name:
            raise Refusal("malformed", "the calibration tells an answer under another name; do not use it")
    return replies


def read_answered(plan: AnyPlan, names: Sequence[Any]) -> list[int]:
    """The places of the silos whose answers count, each once, as they are named.

    Raises
    ------
    Refusal
        `malformed`, or `foreign`.
    """
    who = [plan.position(str(name)) for name in names]
    if len(set(who)) != len(who) or not who:
        raise Refusal("malformed", "the silos that answered must be named once each")
    return who


def read_refused(pairs: Sequence[Any]) -> Refused:
    """What was left out, and why.

    Raises
    ------
    Refusal
        `malformed`.
    """
    if not all(isinstance(pair, list) and len(pair) == 2 and type(pair[0]) in (str, int) for pair in pairs):
        raise Refusal("malformed", "the messages that were refused must be pairs of a name, or a place, and a code")
    refused = tuple((sender, str(code)) for sender, code in pairs)
    if not {code for _, code in refused} <= set(CODES):
        raise Refusal("malformed", "the codes of the messages that were refused must be known; do not use it")
    return refused


def write_release(kind: str, content: Mapping[str, Any], signer: str, signature: str | None) -> str:
    """The file of a release: signed by `signer` if there is a signature, else with a checksum."""
    if signature is None:
        return write_document(PREFIX + kind, content)
    return envelope(kind, content, signer, signature)


def open_release(kind: str, text: str) -> tuple[Mapping[str, Any], str | None, str | None]:
    """The content of a file; and its signature and the key of that, if it is signed."""
    most = MOST_CHARACTERS_OF_RELEASE
    found = parse(text, "file", most)
    if "signature" not in found:
        return read_document(PREFIX + kind, text, most), None, None
    content, signer = unseal(kind, text, most)
    return content, str(found["signature"]), signer


def _is_told(plan: AnyPlan) -> bool:
    return plan.protocol.private and not isinstance(plan.protocol, DealtVectors)


_KIND = "calibration"
KIND = PREFIX + _KIND


@dataclass(frozen=True, repr=False)
class FederatedCalibration(Calibration):
    """What a federation releases. Made by `aggregate`; usable wherever a `Calibration` is.

    Parameters
    ----------
    plan_text
        The signed plan.
    plan
        The same, read.
    k
        Which of the sorted answers is the threshold; 0 if the method does not sort, more than the answers for +inf.
    answered
        Names of the silos whose answers count.
    refused
        Pairs (silo, code) that were left out. A message that no silo of the plan has signed is named by its place
        among the messages, an integer from 1 on, instead.
    opened
        For sums with dropouts: the list and the openers' parts, from which threshold and promise follow.
    signature
        The coordinator's signature of all of it, 128 hexadecimal digits, or None. The key is that of the plan.
    sent
        Of a signed calibration, what counts, by silo: the signed answer, where an answer is private by itself, or its
        digest, where only a sum is. Nothing where answers are not private or `opened` lists them.
    """

    plan_text: str
    plan: FederatedPlan
    k: int
    answered: tuple[str, ...]
    refused: Refused
    opened: OpenedList | None = None
    signature: str | None = None
    sent: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @classmethod
    def build(
        cls,
        threshold: float,
        guarantee: Guarantee,
        plan_text: str,
        plan: FederatedPlan,
        k: int,
        answered: tuple[str, ...],
        refused: Refused,
        versions: Mapping[str, str],
        opened: OpenedList | None = None,
    ) -> "FederatedCalibration":
        """Fill in what follows from the plan."""
        return cls(
            threshold=threshold,
            alpha=plan.alpha,
            guarantee=guarantee,
            privacy=plan.privacy([plan.position(name) for name in answered]),
            mechanism=None,
            candidates=plan.candidates.size,
            recipe=plan.candidates.recipe,
            score=plan.score,
            versions=versions,
            classes=plan.classes,
            about=plan.about,
            plan_text=plan_text,
            plan=plan,
            k=k,
            answered=answered,
            refused=refused,
            opened=opened,
        )

    def coverage_failure(self, n: int | None = None) -> Callable[[float], float]:
        """The function c -> a bound on the probability that coverage given the calibration data is below c.

        Exact for continuous scores with `fedcp-qq`, an upper bound for the private methods (docs/theory-federated.md,
        Theorem F2), and 1 for `fedcp-avg`. Sizes are those of the plan; `n` must be left out.
        """
        if n is not None:
            raise InputError("n must be left out: a federated calibration knows the sizes that are public")
        who = [self.plan.position(name) for name in self.answered]
        return self.plan.protocol.coverage_failure(self.plan, who, self.k)

    def coverage_at_most(self, n: int | None = None) -> float:
        """No upper bound better than 1 is stated for federated calibrations."""
        return 1.0

    def __reduce__(self) -> tuple[Any, ...]:
        return FederatedCalibration.from_json, (self.to_json(),)

    def signed(self, coordinator: SiloKeys, messages: Sequence[Answer]) -> "FederatedCalibration":
        """Signed with the key that signed the plan, with the messages that count as far as they may be known."""
        made = replace(self, sent=told_of(self.plan, self.plan_text, messages), signature="")
        return replace(made, signature=json.loads(seal(_KIND, made._content(), coordinator.signing))["signature"])

    @property
    def signer(self) -> str:
        """The Ed25519 key that signed the plan, and the calibration if that is signed; hexadecimal."""
        return str(json.loads(self.plan_text)["signer"])

    def to_json(self) -> str:
        """The calibration as a JSON document, its signed plan inside; signed, if it is, else with a checksum."""
        return write_release(_KIND, self._content(), self.signer, self.signature)

    def _content(self) -> dict[str, Any]:
        content = {
            "threshold": "+inf" if math.isinf(self.threshold) else self.threshold,
            "k": self.k,
            "guarantee": self.guarantee.fields(),
            "epsilon": _stated_loss(self),
            "answered": list(self.answered),
            "refused": [list(pair) for pair in self.refused],
            "plan": json.loads(self.plan_text),
            "versions": dict(self.versions),
            **({} if self.opened is None else {"opened": self.opened.fields()}),
        }
        return content if self.signature is None else {**content, "sent": dict(self.sent)}

    @classmethod
    def from_json(cls, text: str) -> "FederatedCalibration":
        """Read what `to_json` wrote; the plan's signature is checked and every claim computed again.

        Raises
        ------
        FormatError
            If the text is not a federated calibration, was altered, or claims what does not follow.
        """
        try:
            return _read(text)
        except Refusal as refusal:
            raise FormatError(f"the federated calibration cannot be used: {refusal}") from None

    @property
    def turnout(self) -> str:
        """The method, how many silos answered, and what was left out, for people."""
        who = f"{len(self.answered)} of {len(self.plan.silos)} silos answered"
        left_out = "".join(f"\nleft out: {_sender(sender)} ({code})" for sender, code in self.refused)
        return f"method: {self.plan.method}, {who}{left_out}"

    def __str__(self) -> str:
        base = super().__str__()
        if math.isinf(self.privacy.epsilon):
            base = base.rsplit("\nprivacy:", 1)[0] + "\nprivacy: none; this method sends order statistics of the scores"
        return f"{base}\n{self.turnout}"

    def _brief(self) -> str:
        return f"{super()._brief()}, {len(self.answered)} of {len(self.plan.silos)} silos"


def _sender(sender: str | int) -> str:
    """No silo's name has a comma, so none can be mistaken for a place."""
    return f"message {sender}, of no silo of the plan" if isinstance(sender, int) else one_line(sender)


def _stated_loss(calibration: FederatedCalibration) -> float | str:
    return "none" if math.isinf(calibration.privacy.epsilon) else calibration.privacy.epsilon


def _read(text: str) -> FederatedCalibration:
    content, signature, signer = open_release(_KIND, text)
    with fields_of("calibration", content) as fields:
        plan_text = json.dumps(fields.take("plan", dict), indent=1) + "\n"
        plan, by = FederatedPlan.read(plan_text)
        if signer not in (None, by.signer):
            raise Refusal("malformed", "the calibration is signed by another key than its plan; do not use it")
        who = read_answered(plan, fields.take("answered", list))
        answered = tuple(plan.silos[i].name for i in who)
        stated_k = fields.take("k", int)
        k, guarantee = plan.protocol.certify_stated(plan, who, stated_k)
        claimed = fields.group("guarantee")
        coverage, most = claimed.take("coverage", (float, int)), guarantee.coverage
        if {**claimed.content, "coverage": most} != guarantee.fields() or not 0 <= coverage <= most + 1e-9:
            raise Refusal("malformed", "the calibration claims more coverage than its plan guarantees; do not use it")
        refused = read_refused(fields.take("refused", list))
        if stated_k != k:
            raise Refusal("malformed", "the calibration contradicts its plan; do not use it")
        stated = fields.take("threshold", (float, int, str))
        threshold = math.inf if stated == "+inf" else math.nan if isinstance(stated, str) else float(stated)
        if not plan.protocol.can_release(plan, threshold) or (k > len(answered) and not math.isinf(threshold)):
            raise Refusal("malformed", "the threshold does not follow from the plan; do not use it")
        opened = None
        if isinstance(plan.protocol, DealtVectors):
            with fields_of("opened sum", fields.take("opened", dict)) as of_openers:
                opened = OpenedList.read(plan, of_openers)
            if opened.who(plan) != who or opened.threshold(plan) != threshold:
                raise Refusal("malformed", "the threshold is not what the openers' parts say; do not use it")
        sent = {} if signature is None else fields.take("sent", dict)
        replies = {} if signature is None else read_told(plan, plan_text, sent, answered)
        if replies and plan.protocol.threshold(plan, replies, k) != threshold:
            raise Refusal("malformed", "the threshold is not what the silos' signed answers say; do not use it")
        versions = check_versions("calibration", fields.take("versions", dict))
        guarantee = replace(guarantee, coverage=float(coverage))
        read = FederatedCalibration.build(threshold, guarantee, plan_text, plan, k, answered, refused, versions, opened)
        if fields.take("epsilon", (float, int, str)) != _stated_loss(read):
            raise Refusal("malformed", "the calibration claims another privacy loss than its plan has; do not use it")
    return replace(read, signature=signature, sent=sent)


register_kind(KIND, FederatedCalibration.from_json)
