"""What several plans release: thresholds for levels, or for groups or classes, each a `FederatedCalibration`.

Like a federated calibration each carries its signed plans. What follows from these is computed again on reading.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from confide.errors import FormatError
from confide.federated.answers import Answer
from confide.federated.calibration import (
    FederatedCalibration,
    Refused,
    open_release,
    read_answered,
    read_refused,
    read_told,
    told_of,
    write_release,
)
from confide.federated.envelope import PREFIX, Envelope, fields_of, seal
from confide.federated.keys import SiloKeys
from confide.federated.refusals import Refusal
from confide.federated.several_plans import SeveralPlans, plan_texts
from confide.guarantee import Guarantee
from confide.mechanisms import PrivacyStatement
from confide.releases import Calibration, GroupCalibration, LevelCalibration, register_kind
from confide.support import Fields, check_versions, library_versions

_KIND = "several"
KIND = PREFIX + _KIND


@dataclass(frozen=True, repr=False)
class FederatedLevels(LevelCalibration):
    """Nested thresholds for several levels, from one message of each silo. Made by `aggregate`.

    Parameters
    ----------
    parts
        As in `LevelCalibration`; each is a `FederatedCalibration`.
    plans_text, plans
        The signed plans, and the same, read.
    signature, sent
        As in `FederatedCalibration`.
    """

    plans_text: str
    plans: SeveralPlans
    signature: str | None = None
    sent: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def privacy(self) -> PrivacyStatement:
        """The loss of all thresholds together; for `secure-sum` that of the one sum they were read off."""
        return _privacy(self)

    def to_json(self) -> str:
        """The release as a JSON document, its signed plans inside."""
        return _write(self)

    def __str__(self) -> str:
        return f"{super().__str__()}\n{first_of(self).turnout}"


@dataclass(frozen=True, repr=False)
class FederatedGroups(GroupCalibration):
    """One threshold per group or class, from one message of each silo. Made by `aggregate`.

    Parameters
    ----------
    by, neighbors, parts
        As in `GroupCalibration`; each part is a `FederatedCalibration`.
    plans_text, plans
        The signed plans, and the same, read.
    signature, sent
        As in `FederatedCalibration`.
    """

    plans_text: str
    plans: SeveralPlans
    signature: str | None = None
    sent: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def privacy(self) -> PrivacyStatement:
        """The loss of all thresholds together: parallel composition (docs/theory-groups.md)."""
        return _privacy(self)

    def to_json(self) -> str:
        """The release as a JSON document, its signed plans inside."""
        return _write(self)

    def __str__(self) -> str:
        return f"{super().__str__()}\n{first_of(self).turnout}"


Several: TypeAlias = FederatedLevels | FederatedGroups
FederatedRelease: TypeAlias = FederatedCalibration | Several


def release_several(
    text: str,
    plans: SeveralPlans,
    envelope: Envelope,
    messages: Mapping[int, Answer],
    refused: Refused,
    keys: SiloKeys | None = None,
) -> Several:
    """The thresholds from what the silos sent, by place: one reply for each part of the plans; signed with `keys`."""
    who = sorted(messages)
    certified = _certified(plans, who)
    thresholds = _thresholds(plans, certified, {i: messages[i].reply for i in who})
    made = _built(text, plans, envelope, certified, thresholds, who, refused, library_versions())
    if keys is None:
        return made
    made = replace(made, sent=told_of(plans, text, list(messages.values())), signature="")
    return replace(made, signature=json.loads(seal(_KIND, _content(made), keys.signing))["signature"])


def _thresholds(
    plans: SeveralPlans, certified: Sequence[tuple[int, Guarantee]], replies: Mapping[int, Sequence[Any]]
) -> list[float]:
    found = [
        plan.protocol.threshold(plan, {i: reply[place] for i, reply in replies.items()}, certified[place][0])
        for place, plan in enumerate(plans.parts.values())
    ]
    if plans.by != "level":
        return found
    return [max(found[: place + 1]) for place in range(len(found))]  # nested, and nothing is covered less


def _certified(plans: SeveralPlans, who: Sequence[int]) -> list[tuple[int, Guarantee]]:
    """K and the promise of every part; the one plan of all groups is certified once."""
    different = {plan.digest: plan for plan in plans.parts.values()}
    found = {digest: plan.certify(who) for digest, plan in different.items()}
    return [found[plan.digest] for plan in plans.parts.values()]


def _built(
    text: str,
    plans: SeveralPlans,
    envelope: Envelope,
    certified: Sequence[tuple[int, Guarantee]],
    thresholds: Sequence[float],
    who: Sequence[int],
    refused: Refused,
    versions: Mapping[str, str],
) -> Several:
    """Fill in what follows from the plans."""
    texts = plan_texts(envelope)
    texts = texts if plans.by == "level" else texts * len(plans.parts)
    answered = tuple(plans.silos[i].name for i in who)
    parts: dict[Any, Calibration] = {}
    each = zip(plans.parts.items(), texts, certified, thresholds, strict=True)
    for (name, plan), own, (k, guarantee), threshold in each:
        parts[name] = FederatedCalibration.build(
            threshold=threshold,
            guarantee=guarantee,
            plan_text=own,
            plan=plan,
            k=k,
            answered=answered,
            refused=refused,
            versions=versions,
        )
    if plans.by == "level":
        return FederatedLevels(parts, text, plans)
    return FederatedGroups(plans.by, plans.neighbors, parts, text, plans)


def first_of(release: FederatedRelease) -> FederatedCalibration:
    """The release itself, or its first part: silos, answers and signers are the same in all."""
    if isinstance(release, FederatedCalibration):
        return release
    first = next(iter(release.parts.values()))
    assert isinstance(first, FederatedCalibration)
    return first


def _privacy(release: Several) -> PrivacyStatement:
    return release.plans.privacy([release.plans.position(name) for name in first_of(release).answered])


def _stated(value: float) -> float | str:
    return "+inf" if math.isinf(value) else value


def _write(release: Several) -> str:
    signer = str(json.loads(release.plans_text)["signer"])
    return write_release(_KIND, _content(release), signer, release.signature)


def _content(release: Several) -> dict[str, Any]:
    first, parts = first_of(release), release.parts.values()
    content = {
        "thresholds": [_stated(part.threshold) for part in parts],
        "coverage": [part.coverage for part in parts],
        "epsilon": _stated(release.privacy.epsilon),
        "answered": list(first.answered),
        "refused": [list(pair) for pair in first.refused],
        "plans": json.loads(release.plans_text),
        "versions": dict(first.versions),
    }
    return content if release.signature is None else {**content, "sent": dict(release.sent)}


def _read(text: str) -> Several:
    """Read what `to_json` wrote; signatures are checked and every claim computed again."""
    try:
        content, signature, signer = open_release(_KIND, text)
        with fields_of("calibration", content) as fields:
            return _of_fields(fields, signature, signer)
    except Refusal as refusal:
        raise FormatError(f"the federated calibration cannot be used: {refusal}") from None


def _of_fields(fields: Fields, signature: str | None, signer: str | None) -> Several:
    plans_text = json.dumps(fields.take("plans", dict), indent=1) + "\n"
    plans, envelope = SeveralPlans.read(plans_text)
    if signer not in (None, envelope.signer):
        raise Refusal("malformed", "the calibration is signed by another key than its plans; do not use it")
    who = sorted(read_answered(plans, fields.take("answered", list)))
    thresholds = [math.inf if t == "+inf" else t for t in fields.take("thresholds", list)]
    refused = read_refused(fields.take("refused", list))
    versions = check_versions("calibration", fields.take("versions", dict))
    if not all(type(t) in (float, int) for t in thresholds) or len(thresholds) != len(plans.parts):
        raise Refusal("malformed", "the thresholds must be numbers, one for each part of the plans")
    certified = _certified(plans, who)
    read = _built(plans_text, plans, envelope, certified, [float(t) for t in thresholds], who, refused, versions)
    for part in read.parts.values():
        assert isinstance(part, FederatedCalibration)
        too_few = part.k > len(who)
        if not part.plan.protocol.can_release(part.plan, part.threshold) or (too_few and part.threshold != math.inf):
            raise Refusal("malformed", "a threshold does not follow from its plan; do not use it")
    stated, found = fields.take("coverage", list), [part.coverage for part in read.parts.values()]
    of_numbers = len(stated) == len(found) and all(type(one) in (float, int) for one in stated)
    if not of_numbers or any(abs(one - two) > 1e-9 for one, two in zip(stated, found, strict=True)):
        raise Refusal("malformed", "the calibration claims other coverage than its plans promise; do not use it")
    if fields.take("epsilon", (float, int, str)) != _stated(read.privacy.epsilon):
        raise Refusal("malformed", "the calibration claims another privacy loss than its plans have; do not use it")
    if signature is None:
        return read
    sent = fields.take("sent", dict)
    replies = read_told(plans, plans_text, sent, first_of(read).answered)
    if replies and _thresholds(plans, certified, replies) != thresholds:
        raise Refusal("malformed", "the thresholds are not what the silos' signed answers say; do not use it")
    return replace(read, signature=signature, sent=sent)


register_kind(KIND, _read)
