"""The result of a federated calibration: thresholds with their signed plan, so that their claims can be verified.

Everything except the thresholds and the names of the silos that answered follows from the plan and is computed again on
reading. With share holders' parts or signed answers in the file, the thresholds follow, too. One threshold is a
`FederatedCalibration`. Several thresholds, of levels, groups, classes or sides, are one of those each, under one
signature.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from confide.core import (
    Calibration,
    GroupCalibration,
    LevelCalibration,
    Release,
    SidesCalibration,
    class_list,
    register_kind,
)
from confide.errors import FormatError, InputError
from confide.federated.answers import Answer
from confide.federated.envelope import (
    PREFIX,
    Envelope,
    fields_of,
    parse,
    sign_message,
)
from confide.federated.evidence import (
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
from confide.federated.release_size import MOST_CHARACTERS_OF_RELEASE
from confide.federated.several_plans import SeveralPlans, plan_texts
from confide.guarantee import Guarantee
from confide.mechanisms import PrivacyStatement
from confide.support import (
    VERSIONS,
    Facts,
    Fields,
    Section,
    decimal_text,
    escape_line,
    exact_level,
    shapes,
)

Kind: TypeAlias = Literal["calibration", "several"]
_ONE: Kind = "calibration"
_SEVERAL: Kind = "several"
_PLAN = {_ONE: "plan", _SEVERAL: "plans"}
"""The field of the signed plan or plans in a file of this kind."""


@dataclass(frozen=True, repr=False)
class FederatedCalibration(Calibration):
    """The release of a federation with one threshold, made by `aggregate`. It is a `Calibration`.

    Parameters
    ----------
    plan_text
        The signed plan.
    plan
        The plan that was read from it.
    k
        Rank of the threshold among the sorted answers; 0 if the method does not sort, and more than the number of
        answers for +inf.
    answered
        Names of the silos whose answers count.
    refused
        Pairs (silo, code) that were left out. A message that no silo of the plan signed has its number among the
        messages, an integer from 1 on, in place of the name.
    opened
        For sums with dropouts: the list and the share holders' parts, from which threshold and guarantee follow.
    signature
        The coordinator's signature of the whole content, 128 hexadecimal digits, or None. The key is that of the plan.
    sent
        Of a signed calibration, the evidence by silo: the signed answer, if an answer is private by itself, or its
        digest, if only the sum is. Empty if `opened` lists them.
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
        """Make a calibration with the fields that follow from the plan."""
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

        An upper bound by Theorem F2 of docs/theory-federated.md. Sizes are those of the plan; `n` must be left out.
        """
        if n is not None:
            raise InputError("n", "must be left out: a federated calibration contains the public sizes")
        who = [self.plan.position(name) for name in self.answered]
        return self.plan.protocol.coverage_failure(self.plan, who, self.k)

    def coverage_at_most(self, n: int | None = None) -> float:
        """1, because federated calibrations have no better upper bound."""
        return 1.0

    def __reduce__(self) -> tuple[Any, ...]:
        return FederatedCalibration.from_json, (self.to_json(),)

    @property
    def signer(self) -> str:
        """The Ed25519 key that signed the plan, and the calibration if that is signed; hexadecimal."""
        return str(json.loads(self.plan_text)["signer"])

    def to_json(self) -> str:
        """The calibration as a JSON document with its signed plan, and with its signature or else a checksum.

        Raises
        ------
        InputError
            If it is one of several thresholds from a sum with dropouts.
        """
        if self.plan.channel.second_message and self.opened is None:
            raise InputError(
                "calibration", "must be saved with the other thresholds of its release, which has the opened sum"
            )
        return _write(self)

    @classmethod
    def from_json(cls, text: str) -> "FederatedCalibration":
        """Read what `to_json` wrote; the plan's signature is checked and every claim computed again.

        Raises
        ------
        FormatError
            If the text is not a federated calibration, was altered, or contains claims that do not follow.
        """
        read = _read(_ONE, text)
        assert isinstance(read, cls)
        return read

    @property
    def turnout(self) -> str:
        """The method, the number of silos that answered, and the messages left out, as text."""
        who = f"{len(self.answered)} of {len(self.plan.silos)} silos answered"
        left_out = "".join(f"\nleft out: {_sender(sender)} ({code})" for sender, code in self.refused)
        return f"method: {self.plan.method}, {who}{left_out}"

    def _mechanism_facts(self) -> Facts:
        plan = self.plan
        facts = [("method", plan.method), ("plan", f"SHA-256 {plan.digest}"), *plan.trust_rows]
        if isinstance(plan.protocol, NoisyCounts):
            facts.append(("noise scale of the sum", decimal_text(plan.protocol.scale, 5)))
        elif self.k:
            facts.append(("threshold", f"number {self.k} of {len(self.answered)} answers in ascending order"))
        if isinstance(plan.channel, Shared) and self.opened is not None:
            helped = f"{len(self.opened.parts)} of {len(plan.channel.openers)} share holders"
            facts.append(("the sum was reconstructed by", f"{helped}; {plan.channel.needed} must help"))
        return tuple(facts)

    def _proof(self) -> str:
        return f"docs/theory-federated.md, {self.plan.protocol.theorem}"

    def _section(self) -> Section:
        base = super()._section()
        return replace(base, notes=(self.turnout,))

    def _brief(self) -> str:
        return f"{super()._brief()}, {len(self.answered)} of {len(self.plan.silos)} silos"


def _sender(sender: str | int) -> str:
    """The sender as text. A silo's name has no comma, so it differs from the text for a message number."""
    return f"message {sender}, of no silo of the plan" if isinstance(sender, int) else escape_line(sender)


@dataclass(frozen=True, repr=False, kw_only=True)
class _Several(Release):
    """The common part of releases of several thresholds: the signed plans and the evidence."""

    plans_text: str
    plans: SeveralPlans
    opened: OpenedList | None = None
    signature: str | None = None
    sent: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def first(self) -> FederatedCalibration:
        """The first of the thresholds; silos, answers and signers are the same in all."""
        first = next(iter(self.parts.values()))
        assert isinstance(first, FederatedCalibration)
        return first

    @property
    def privacy(self) -> PrivacyStatement:
        """The loss of all thresholds together (docs/theory.md, section 6); for levels from one sum, that of the sum."""
        return self.plans.privacy([self.plans.position(name) for name in self.first.answered])

    def to_json(self) -> str:
        """The release as a JSON document with its signed plans."""
        assert isinstance(self, FederatedRelease)
        return _write(self)

    def _section(self) -> Section:
        return replace(super()._section(), notes=(self.first.turnout,))


@dataclass(frozen=True, repr=False)
class FederatedLevels(_Several, LevelCalibration):
    """Nested thresholds for several levels, from one message of each silo. Made by `aggregate`.

    Parameters
    ----------
    parts
        As in `LevelCalibration`; each is a `FederatedCalibration`.
    plans_text, plans
        The signed plans, and the plans that were read from them.
    opened, signature, sent
        As in `FederatedCalibration`, for all of them.
    """


@dataclass(frozen=True, repr=False)
class FederatedGroups(_Several, GroupCalibration):
    """One threshold per group or class, from one message of each silo. Made by `aggregate`.

    Parameters
    ----------
    by, neighbors, parts
        As in `GroupCalibration`; each part is a `FederatedCalibration`.
    plans_text, plans, opened, signature, sent
        As in `FederatedLevels`.
    """


@dataclass(frozen=True, repr=False)
class FederatedSides(_Several, SidesCalibration):
    """One threshold for each side of an interval, from one message of each silo. Made by `aggregate`.

    Parameters
    ----------
    low, high
        As in `SidesCalibration`; each is a `FederatedCalibration`.
    plans_text, plans, opened, signature, sent
        As in `FederatedLevels`.
    """


Several: TypeAlias = FederatedLevels | FederatedGroups | FederatedSides
FederatedRelease: TypeAlias = FederatedCalibration | Several


def first_of(release: FederatedRelease) -> FederatedCalibration:
    """The release itself, or its first part; silos, answers and signers are the same in all."""
    return release if isinstance(release, FederatedCalibration) else release.first


def part_of(release: FederatedRelease, of: Any = None) -> tuple[int, FederatedCalibration]:
    """The index and the calibration of a level, group, class or side, or of the only threshold if `of` is None.

    Raises
    ------
    InputError
        If there are several and `of` is None, or there is none of this name.
    """
    plan = plan_of(release)
    parts = [release] if isinstance(release, FederatedCalibration) else list(release.parts.values())
    names = [str(float(name)) if plan.by == "level" else name for name in plan.names]
    if plan.by == "level" and of is not None:
        of = str(float(exact_level("of", of)))
    found = [place for place, name in enumerate(names) if of == name or (plan.by is not None and str(of) == str(name))]
    if not found:
        allowed = "be left out: there is one threshold" if plan.by is None else f"be one of {class_list(tuple(names))}"
        raise InputError("of", f"must {allowed}", got=repr(of))
    part = parts[found[0]]
    assert isinstance(part, FederatedCalibration)
    return found[0], part


def plan_of(release: FederatedRelease) -> AnyPlan:
    """The plan or the plans of a release."""
    return release.plan if isinstance(release, FederatedCalibration) else release.plans


def make_release(
    text: str,
    plan: AnyPlan,
    by: Envelope,
    who: Sequence[int],
    total: Counts,
    refused: Refused,
    versions: Mapping[str, str],
    opened: OpenedList | None,
) -> FederatedRelease:
    """The release from the sum of these silos' vectors, shape (draws, m), for a signed plan."""
    certified = plan.certified(who)
    thresholds = plan.thresholds(who, total, [k for k, _ in certified])
    return _built(text, plan, by, certified, thresholds, who, refused, versions, opened)


def sign_release(release: FederatedRelease, coordinator: SiloKeys, messages: Sequence[Answer]) -> FederatedRelease:
    """The release signed with the key that signed the plan, with the messages that count if they may be public."""
    plan, text = plan_of(release), _plan_text(release)
    made = replace(release, sent=evidence_of(plan, text, messages), signature="")
    signed = json.loads(sign_message(_kind(made), _content(made), coordinator.signing))
    return replace(made, signature=signed["signature"])


def _built(
    text: str,
    plan: AnyPlan,
    by: Envelope,
    certified: Sequence[tuple[int, Guarantee]],
    thresholds: Sequence[float],
    who: Sequence[int],
    refused: Refused,
    versions: Mapping[str, str],
    opened: OpenedList | None,
) -> FederatedRelease:
    """Make the release with everything that follows from the plan."""
    texts = [text] if plan.by is None else plan_texts(by)
    texts = texts if len(texts) == len(plan.single_plans) else texts * len(plan.single_plans)
    answered = tuple(plan.silos[i].name for i in who)
    parts: dict[Any, Calibration] = {}
    each = zip(plan.names, plan.single_plans, texts, certified, thresholds, strict=True)
    for name, ask, own, (k, guarantee), threshold in each:
        parts[name] = FederatedCalibration.build(
            threshold=threshold,
            guarantee=guarantee,
            plan_text=own,
            plan=ask,
            k=k,
            answered=answered,
            refused=refused,
            versions=versions,
            opened=opened if plan.by is None else None,
        )
    if not isinstance(plan, SeveralPlans):
        (only,) = parts.values()
        assert isinstance(only, FederatedCalibration)
        return only
    if plan.by == "level":
        return FederatedLevels(parts, plans_text=text, plans=plan, opened=opened)
    if plan.by == "side":
        return FederatedSides(*parts.values(), plans_text=text, plans=plan, opened=opened)
    return FederatedGroups(plan.by, plan.neighbors, parts, plans_text=text, plans=plan, opened=opened)


def _kind(release: FederatedRelease) -> Kind:
    return _ONE if isinstance(release, FederatedCalibration) else _SEVERAL


def _plan_text(release: FederatedRelease) -> str:
    return release.plan_text if isinstance(release, FederatedCalibration) else release.plans_text


def _stated(value: float) -> float | str:
    return "+inf" if math.isinf(value) else value


def _write(release: FederatedRelease) -> str:
    return write_release(_kind(release), _content(release), first_of(release).signer, release.signature)


def _content(release: FederatedRelease) -> dict[str, Any]:
    first, kind = first_of(release), _kind(release)
    claims: dict[str, Any]
    if isinstance(release, FederatedCalibration):
        claims = {
            "threshold": _stated(release.threshold),
            "k": release.k,
            "guarantee": release.guarantee.fields(),
        }
    else:
        parts = release.parts.values()
        claims = {
            "thresholds": [_stated(part.threshold) for part in parts],
            "coverage": [part.coverage for part in parts],
        }
    content = {
        **claims,
        "epsilon": release.privacy.epsilon,
        "answered": list(first.answered),
        "refused": [list(pair) for pair in first.refused],
        _PLAN[kind]: json.loads(_plan_text(release)),
        "versions": dict(first.versions),
        **({} if release.opened is None else {"opened": release.opened.fields()}),
    }
    return content if release.signature is None else {**content, "sent": dict(release.sent)}


def read_federated(text: str) -> FederatedRelease:
    """Read a release of one threshold or of several, by the kind of its file.

    Raises
    ------
    FormatError
        If the text is not such a file, was altered, or contains claims that do not follow.
    """
    try:
        several = parse(text, "file", MOST_CHARACTERS_OF_RELEASE).get("kind") == PREFIX + _SEVERAL
    except Refusal as refusal:
        raise FormatError("release", "must follow from its plan", remedy=str(refusal)) from None
    return _read(_SEVERAL if several else _ONE, text)


def _read(kind: Kind, text: str) -> FederatedRelease:
    """Read what `to_json` wrote; signatures are checked and every claim computed again."""
    try:
        content, signature, signer = open_release(kind, text)
        with fields_of("release", content) as fields:
            return _of_fields(kind, fields, signature, signer)
    except Refusal as refusal:
        raise FormatError("release", "must follow from its plan", remedy=str(refusal)) from None


def _of_fields(kind: Kind, fields: Fields, signature: str | None, signer: str | None) -> FederatedRelease:
    text = json.dumps(fields.read(_PLAN[kind], shapes.OBJECT), indent=1) + "\n"
    plan: AnyPlan
    plan, by = FederatedPlan.read(text) if kind == _ONE else SeveralPlans.read(text)
    if signer not in (None, by.signer):
        raise Refusal("malformed", f"the calibration is signed with another key than its {_PLAN[kind]}; do not use it")
    who = read_answered(plan, fields.read("answered", shapes.LIST))
    who = who if kind == _ONE else sorted(who)
    stated_k = fields.read("k", shapes.INTEGER) if kind == _ONE else None
    certified = plan.certified(who)
    if stated_k is not None:
        certified = [_claimed(fields, stated_k, *certified[0])]
    thresholds = _read_thresholds(kind, plan, fields, [k > len(who) for k, _ in certified])
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
            what = "threshold does" if kind == _ONE else "thresholds do"
            raise Refusal("malformed", f"the {what} not follow from the {source}; do not use it")
    versions = fields.read("versions", VERSIONS)
    read = _built(text, plan, by, certified, thresholds, who, refused, versions, opened)
    if kind == _SEVERAL:
        _check_coverage(fields.read("coverage", shapes.LIST), [guarantee.coverage for _, guarantee in certified])
    if fields.read("epsilon", shapes.number()) != read.privacy.epsilon:
        has = "plan has" if kind == _ONE else "plans have"
        raise Refusal("malformed", f"the calibration claims another privacy loss than its {has}; do not use it")
    return read if signature is None else replace(read, signature=signature, sent=sent)


def _claimed(fields: Fields, stated_k: int, k: int, guarantee: Guarantee) -> tuple[int, Guarantee]:
    """The k and the guarantee that a release states; the guarantee may be smaller than the one that follows."""
    claimed, most = fields.group("guarantee"), guarantee.coverage
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


def _read_thresholds(kind: Kind, plan: AnyPlan, fields: Fields, too_few: Sequence[bool]) -> list[float]:
    """Read thresholds and check that they can follow from the plan, and are +inf where too few silos answered."""
    one = shapes.or_infinite(shapes.number())
    read = [fields.read("threshold", one)] if kind == _ONE else list(fields.read("thresholds", shapes.listed(one)))
    if len(read) != len(plan.single_plans):
        raise Refusal("malformed", "the thresholds must be numbers, one for each part of the plans")
    for ask, threshold, infinite in zip(plan.single_plans, read, too_few, strict=True):
        if threshold not in ask.candidates.values or (infinite and threshold != math.inf):
            what = "the threshold does not follow from the" if kind == _ONE else "a threshold does not follow from its"
            raise Refusal("malformed", f"{what} plan; do not use it")
    return read


def _read_one(text: str) -> FederatedRelease:
    return _read(_ONE, text)


def _read_several(text: str) -> FederatedRelease:
    return _read(_SEVERAL, text)


register_kind(PREFIX + _ONE, _read_one)
register_kind(PREFIX + _SEVERAL, _read_several)
