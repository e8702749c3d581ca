"""The result of a federated calibration: thresholds with their signed plan, so that their claims can be verified.

Everything except the thresholds and the names of the silos that answered follows from the plan and is computed again on
reading. With share holders' parts or signed answers in the file, the thresholds follow, too. Several thresholds, of
levels, groups, classes or sides, are under one signature.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from confide.core import By, Key, Release, Threshold, kind_asked, register_kind
from confide.errors import FormatError, InputError
from confide.federated.answers import Answer
from confide.federated.envelope import PREFIX, fields_of, sign_message
from confide.federated.evidence import (
    CALIBRATION,
    SEVERAL,
    Refused,
    evidence_of,
    open_release,
    read_answered,
    read_evidence,
    read_refused,
    write_release,
)
from confide.federated.keys import SiloKeys
from confide.federated.openings import OpenedList
from confide.federated.plan import AnyPlan, FederatedPlan
from confide.federated.protocols import Counts, NoisyCounts, Shared
from confide.federated.refusals import Refusal
from confide.federated.several_plans import SeveralPlans, plan_texts
from confide.guarantee import Guarantee
from confide.mechanisms import Neighbors, PrivacyStatement
from confide.support import (
    VERSIONS,
    Classes,
    Facts,
    Fields,
    Section,
    class_count,
    decimal_text,
    escape_line,
    shapes,
)


@dataclass(frozen=True, repr=False, kw_only=True)
class FederatedThreshold(Threshold):
    """A threshold of a federation, with the plan from which its claims follow.

    Parameters
    ----------
    plan
        The plan of this threshold.
    k
        Rank of the threshold among the sorted answers; 0 if the method does not sort, and more than the number of
        answers for +inf.
    answered
        Names of the silos whose answers count.
    holders
        The number of share holders whose parts reconstructed the sum; 0 without them.
    """

    plan: FederatedPlan
    k: int
    answered: tuple[str, ...]
    holders: int = 0

    def coverage_failure(self, n: int | None = None) -> Callable[[float], float]:
        """The function c -> a bound on the probability that coverage given the calibration data is below c.

        An upper bound by Theorem F2 of docs/theory-federated.md. Sizes are those of the plan; `n` must be left out.
        """
        if n is not None:
            raise InputError("n", "must be left out: a federated calibration contains the public sizes")
        who = [self.plan.position(name) for name in self.answered]
        return self.plan.protocol.coverage_failure(self.plan, who, self.k)

    def coverage_at_most(self, n: int | None = None) -> float:
        """1, because federated calibrations have no better upper bound."""
        return 1.0

    @property
    def mechanism_facts(self) -> Facts:
        """The method, its plan and parameters, and how the threshold follows."""
        plan = self.plan
        facts = [("method", plan.method), ("plan", f"SHA-256 {plan.digest}"), *plan.trust_rows]
        if isinstance(plan.protocol, NoisyCounts):
            facts.append(("noise scale of the sum", decimal_text(plan.protocol.scale, 5)))
        elif self.k:
            facts.append(("threshold", f"number {self.k} of {len(self.answered)} answers in ascending order"))
        if isinstance(plan.channel, Shared) and self.holders:
            helped = f"{self.holders} of {len(plan.channel.openers)} share holders"
            facts.append(("the sum was reconstructed by", f"{helped}; {plan.channel.needed} must help"))
        return tuple(facts)

    @property
    def proof(self) -> str:
        """The theorem from which the guarantee follows."""
        return f"docs/theory-federated.md, {self.plan.protocol.theorem}"


@dataclass(frozen=True)
class PlanStatement:
    """The statement of a plan about all thresholds of its release, in the form of the request of any release."""

    plan: AnyPlan

    overlap = loss = fingerprint = population = chosen = renews = None
    bound, joint = 1.0, False

    @property
    def by(self) -> By | None:
        """The type of keys; None if there is one threshold."""
        return self.plan.by

    @property
    def neighbors(self) -> Neighbors:
        """The adjacency of the privacy loss of the whole."""
        return self.plan.privacy().neighbors

    @property
    def classes(self) -> Classes | None:
        """The classes of the score; None if they are not stated."""
        return self.plan.single_plans[0].classes

    @property
    def about(self) -> Mapping[str, str]:
        """Public metadata."""
        return self.plan.single_plans[0].about

    @property
    def plans(self) -> dict[Key, FederatedPlan]:
        """The plan of each threshold, by its key."""
        keys = ("low", "high") if self.by == "side" else self.plan.names
        return dict(zip(keys, self.plan.single_plans, strict=True))

    def at(self, key: Key) -> "PlanStatement":
        """The statement of the plan of one level or side."""
        return PlanStatement(self.plans[key])


@dataclass(frozen=True, repr=False, kw_only=True)
class FederatedRelease(Release):
    """The release of a federation, with one threshold or several from one message of each silo. Made by `aggregate`.

    Parameters
    ----------
    request
        The statement of the plan, or plans.
    parts
        The thresholds by key, as in `Release`.
    plan_text
        The signed plan, or the signed plans of several thresholds.
    answered
        Names of the silos whose answers count.
    refused
        Pairs (silo, code) that were left out. A message that no silo of the plan signed has its number among the
        messages, an integer from 1 on, in place of the name.
    opened
        For sums with dropouts: the list and the share holders' parts, from which thresholds and guarantees follow.
    signature
        The coordinator's signature of the whole content, 128 hexadecimal digits, or None. The key is that of the plan.
    sent
        Of a signed release, the evidence by silo: the signed answer, if an answer is private by itself, or its
        digest, if only the sum is. Empty if `opened` lists them.
    """

    request: PlanStatement
    parts: Mapping[Key, FederatedThreshold]
    plan_text: str
    answered: tuple[str, ...]
    refused: Refused
    opened: OpenedList | None = None
    signature: str | None = None
    sent: Mapping[str, Any] = field(default_factory=dict)

    __hash__ = Release.__hash__

    @property
    def plan(self) -> AnyPlan:
        """The plan, or the plans of several thresholds."""
        return self.request.plan

    @property
    def signer(self) -> str:
        """The Ed25519 key that signed the plan, and the release if that is signed; hexadecimal."""
        return str(json.loads(self.plan_text)["signer"])

    @cached_property
    def privacy(self) -> PrivacyStatement:
        """The loss of all thresholds together (docs/theory.md, section 6); for levels from one sum, that of the sum."""
        return self.plan.privacy([self.plan.position(name) for name in self.answered])

    @property
    def turnout(self) -> str:
        """The method, the number of silos that answered, and the messages left out, as text."""
        left_out = "".join(f"\nleft out: {_sender(sender)} ({code})" for sender, code in self.refused)
        return f"method: {self.plan.method}, {self._silos} answered{left_out}"

    def alone(self, key: Key) -> "FederatedRelease":
        """As in `Release`, with the plan of this threshold and no signature; of a sum with dropouts it has no file."""
        texts = dict(zip(self.parts, plan_texts(json.loads(self.plan_text)["content"]), strict=True))
        part = super().alone(key)
        assert isinstance(part, FederatedRelease)
        return replace(part, plan_text=texts[key], opened=None, signature=None, sent={})

    def to_json(self) -> str:
        """The release as a JSON document with its signed plan, and with its signature or else a checksum.

        Raises
        ------
        InputError
            If it is one of several thresholds from a sum with dropouts.
        """
        if self.plan.channel.second_message and self.opened is None:
            raise InputError(
                "calibration", "must be saved with the other thresholds of its release, which has the opened sum"
            )
        return write_release(_kind(self), _content(self), self.signer, self.signature)

    @classmethod
    def from_json(cls, text: str) -> "FederatedRelease":
        """Read what `to_json` wrote; signatures are checked and every claim computed again.

        Raises
        ------
        FormatError
            If the text is not a federated release, was altered, or contains claims that do not follow.
        """
        try:
            kind, content, signature, signer = open_release(text)
            with fields_of("release", content) as fields:
                return _of_fields(fields, signature, signer, several=kind == SEVERAL)
        except Refusal as refusal:
            raise FormatError("release", "must follow from its plan", remedy=str(refusal)) from None

    @property
    def _silos(self) -> str:
        return f"{len(self.answered)} of {len(self.plan.silos)} silos"

    def _section(self) -> Section:
        return replace(super()._section(), notes=(self.turnout,))

    def _brief(self) -> str:
        return f"{super()._brief()}, {self._silos}"


def _sender(sender: str | int) -> str:
    """The sender as text. A silo's name has no comma, so it differs from the text for a message number."""
    return f"message {sender}, of no silo of the plan" if isinstance(sender, int) else escape_line(sender)


def make_release(
    text: str,
    plan: AnyPlan,
    who: Sequence[int],
    total: Counts,
    refused: Refused,
    versions: Mapping[str, str],
    opened: OpenedList | None,
) -> FederatedRelease:
    """The release from the sum of these silos' vectors, shape (draws, m), for a signed plan."""
    certified = plan.certified(who)
    thresholds = plan.thresholds(who, total, [k for k, _ in certified])
    return _built(text, plan, certified, thresholds, who, refused, versions, opened)


def sign_release(release: FederatedRelease, coordinator: SiloKeys, messages: Sequence[Answer]) -> FederatedRelease:
    """The release signed with the key that signed the plan, with the messages that count if they may be public."""
    made = replace(release, sent=evidence_of(release.plan, release.plan_text, messages), signature="")
    signed = json.loads(sign_message(_kind(made), _content(made), coordinator.signing))
    return replace(made, signature=signed["signature"])


def _built(
    text: str,
    plan: AnyPlan,
    certified: Sequence[tuple[int, Guarantee]],
    thresholds: Sequence[float],
    who: Sequence[int],
    refused: Refused,
    versions: Mapping[str, str],
    opened: OpenedList | None,
) -> FederatedRelease:
    """Make the release with everything that follows from the plan."""
    answered = tuple(plan.silos[i].name for i in who)
    request, parts = PlanStatement(plan), {}
    for (key, ask), (k, guarantee), threshold in zip(request.plans.items(), certified, thresholds, strict=True):
        classes = None if ask.classes is None else class_count(ask.classes)
        parts[key] = FederatedThreshold(
            threshold=threshold,
            alpha=ask.alpha,
            score=ask.score,
            guarantee=guarantee,
            privacy=ask.privacy(who),
            mechanism=None,
            candidates=ask.candidates.size,
            recipe=ask.candidates.recipe,
            largest=kind_asked(ask.score).largest(classes),
            plan=ask,
            k=k,
            answered=answered,
            holders=0 if opened is None else len(opened.parts),
        )
    return FederatedRelease(
        request=request,
        parts=parts,
        versions=versions,
        plan_text=text,
        answered=answered,
        refused=refused,
        opened=opened,
    )


def _kind(release: FederatedRelease) -> str:
    return CALIBRATION if release.by is None else SEVERAL


def _stated(value: float) -> float | str:
    return "+inf" if math.isinf(value) else value


def _content(release: FederatedRelease) -> dict[str, Any]:
    parts = release.parts.values()
    claims: dict[str, Any] = {
        "thresholds": [_stated(part.threshold) for part in parts],
        "coverage": [part.coverage for part in parts],
    }
    if release.by is None:
        (part,) = parts
        claims = {"threshold": _stated(part.threshold), "k": part.k, "guarantee": part.guarantee.fields()}
    content = {
        **claims,
        "epsilon": release.privacy.epsilon,
        "answered": list(release.answered),
        "refused": [list(pair) for pair in release.refused],
        "plan" if release.by is None else "plans": json.loads(release.plan_text),
        "versions": dict(release.versions),
        **({} if release.opened is None else {"opened": release.opened.fields()}),
    }
    return content if release.signature is None else {**content, "sent": dict(release.sent)}


def _of_fields(fields: Fields, signature: str | None, signer: str | None, *, several: bool) -> FederatedRelease:
    name = "plans" if several else "plan"
    text = json.dumps(fields.read(name, shapes.OBJECT), indent=1) + "\n"
    plan: AnyPlan
    plan, by = SeveralPlans.read(text) if several else FederatedPlan.read(text)
    if signer not in (None, by.signer):
        raise Refusal("malformed", f"the calibration is signed with another key than its {name}; do not use it")
    who = read_answered(plan, fields.read("answered", shapes.LIST))
    who = sorted(who) if several else who
    certified = plan.certified(who)
    if several:
        _check_coverage(fields.read("coverage", shapes.LIST), [guarantee.coverage for _, guarantee in certified])
    else:
        certified = [_claimed(fields, *certified[0])]
    thresholds = _read_thresholds(plan, fields, [k > len(who) for k, _ in certified], several=several)
    refused = read_refused(fields.read("refused", shapes.LIST))
    opened = None
    if plan.channel.second_message:
        with fields_of("opened sum", fields.read("opened", shapes.OBJECT)) as of_openers:
            opened = OpenedList.read(plan, of_openers)
        if opened.who(plan) != who:
            raise Refusal("malformed", "the threshold does not follow from the share holders' parts; do not use it")
    sent = {} if signature is None else fields.read("sent", shapes.OBJECT)
    replies = {} if signature is None else read_evidence(plan, text, sent, [plan.silos[i].name for i in who])
    for source, total in (
        ("share holders' parts", None if opened is None else opened.total(plan)),
        ("silos' signed answers", plan.add(replies) if replies else None),
    ):
        if total is not None and plan.thresholds(who, total, [k for k, _ in certified]) != thresholds:
            what = "thresholds do" if several else "threshold does"
            raise Refusal("malformed", f"the {what} not follow from the {source}; do not use it")
    read = _built(text, plan, certified, thresholds, who, refused, fields.read("versions", VERSIONS), opened)
    if fields.read("epsilon", shapes.number()) != read.privacy.epsilon:
        has = "plans have" if several else "plan has"
        raise Refusal("malformed", f"the calibration claims another privacy loss than its {has}; do not use it")
    return read if signature is None else replace(read, signature=signature, sent=sent)


def _claimed(fields: Fields, k: int, guarantee: Guarantee) -> tuple[int, Guarantee]:
    """The k and the guarantee that a release states; the guarantee may be smaller than the one that follows."""
    stated_k, claimed, most = fields.read("k", shapes.INTEGER), fields.group("guarantee"), guarantee.coverage
    coverage = claimed.read("coverage", shapes.NUMBER)
    if {**claimed.content, "coverage": most} != guarantee.fields() or not 0 <= coverage <= most + 1e-9:
        raise Refusal("malformed", "the calibration claims more coverage than its plan guarantees; do not use it")
    if stated_k != k:
        raise Refusal("malformed", "the calibration contradicts its plan; do not use it")
    return k, replace(guarantee, coverage=float(coverage))


def _check_coverage(stated: Sequence[Any], found: Sequence[float]) -> None:
    of_numbers = len(stated) == len(found) and all(type(one) in (float, int) for one in stated)
    if not of_numbers or any(abs(one - two) > 1e-9 for one, two in zip(stated, found, strict=True)):
        raise Refusal("malformed", "the calibration claims other coverage than its plans guarantee; do not use it")


def _read_thresholds(plan: AnyPlan, fields: Fields, too_few: Sequence[bool], *, several: bool) -> list[float]:
    """Read thresholds and check that they can follow from the plan, and are +inf where too few silos answered."""
    one = shapes.or_infinite(shapes.number())
    read = list(fields.read("thresholds", shapes.listed(one))) if several else [fields.read("threshold", one)]
    if len(read) != len(plan.single_plans):
        raise Refusal("malformed", "the thresholds must be numbers, one for each part of the plans")
    for ask, threshold, infinite in zip(plan.single_plans, read, too_few, strict=True):
        if threshold not in ask.candidates.values or (infinite and threshold != math.inf):
            what = "a threshold does not follow from its" if several else "the threshold does not follow from the"
            raise Refusal("malformed", f"{what} plan; do not use it")
    return read


for _name in (CALIBRATION, SEVERAL):
    register_kind(PREFIX + _name, FederatedRelease.from_json)
