"""What several plans release: thresholds for levels, or for groups or classes, each a `FederatedCalibration`.

Like a federated calibration each carries its signed plans. What follows from these is computed again on reading.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from confide.calibration import library_versions
from confide.errors import FormatError
from confide.federated.calibration import FederatedCalibration
from confide.federated.envelope import MOST_CHARACTERS, Envelope, fields_of, read_document, write_document
from confide.federated.refusals import CODES, Refusal
from confide.federated.several_plans import SeveralPlans, plan_texts
from confide.guarantee import Guarantee
from confide.mechanisms import PrivacyStatement
from confide.releases import Calibration, GroupCalibration, LevelCalibration, register_kind
from confide.support import Fields

KIND = "confide.federated.several"

Refused: TypeAlias = tuple[tuple[str | int, str], ...]
"""Pairs (silo, or place of a message of no silo, and code) that were left out."""


@dataclass(frozen=True)
class FederatedLevels(LevelCalibration):
    """Nested thresholds for several levels, from one message of each silo. Made by `aggregate`.

    Parameters
    ----------
    parts
        As in `LevelCalibration`; each is a `FederatedCalibration`.
    plans_text, plans
        The signed plans, and the same, read.
    """

    plans_text: str
    plans: SeveralPlans

    @property
    def privacy(self) -> PrivacyStatement:
        """The loss of all thresholds together; for `secure-sum` that of the one sum they were read off."""
        return _privacy(self)

    def to_json(self) -> str:
        """The release as a JSON document, its signed plans inside."""
        return _write(self)

    def __str__(self) -> str:
        return f"{super().__str__()}\n{_first(self).turnout}"


@dataclass(frozen=True)
class FederatedGroups(GroupCalibration):
    """One threshold per group or class, from one message of each silo. Made by `aggregate`.

    Parameters
    ----------
    by, neighbors, parts
        As in `GroupCalibration`; each part is a `FederatedCalibration`.
    plans_text, plans
        The signed plans, and the same, read.
    """

    plans_text: str
    plans: SeveralPlans

    @property
    def privacy(self) -> PrivacyStatement:
        """The loss of all thresholds together: parallel composition (docs/theory-groups.md)."""
        return _privacy(self)

    def to_json(self) -> str:
        """The release as a JSON document, its signed plans inside."""
        return _write(self)

    def __str__(self) -> str:
        return f"{super().__str__()}\n{_first(self).turnout}"


Several: TypeAlias = FederatedLevels | FederatedGroups
FederatedRelease: TypeAlias = FederatedCalibration | Several


def release_several(
    text: str, plans: SeveralPlans, envelope: Envelope, replies: Mapping[int, Sequence[Any]], refused: Refused
) -> Several:
    """The thresholds from what the silos sent, by place: one reply for each part of the plans."""
    who = sorted(replies)
    certified = _certified(plans, who)
    thresholds = [
        plan.protocol.threshold(plan, {i: replies[i][place] for i in who}, certified[place][0])
        for place, plan in enumerate(plans.parts.values())
    ]
    if plans.by == "level":  # the largest of a less demanding level: nested, and nothing is covered less
        thresholds = [max(thresholds[: place + 1]) for place in range(len(thresholds))]
    return _built(text, plans, envelope, certified, thresholds, who, refused, library_versions())


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


def _first(release: Several) -> FederatedCalibration:
    first = next(iter(release.parts.values()))
    assert isinstance(first, FederatedCalibration)
    return first


def _privacy(release: Several) -> PrivacyStatement:
    return release.plans.privacy([release.plans.position(name) for name in _first(release).answered])


def _stated(value: float) -> float | str:
    return "+inf" if math.isinf(value) else value


def _write(release: Several) -> str:
    first, parts = _first(release), release.parts.values()
    content = {
        "thresholds": [_stated(part.threshold) for part in parts],
        "coverage": [part.coverage for part in parts],
        "epsilon": _stated(release.privacy.epsilon),
        "answered": list(first.answered),
        "refused": [list(pair) for pair in first.refused],
        "plans": json.loads(release.plans_text),
        "versions": dict(first.versions),
    }
    return write_document(KIND, content)


def _read(text: str) -> Several:
    """Read what `to_json` wrote; signatures are checked and every claim computed again."""
    try:
        with fields_of("calibration", read_document(KIND, text, 2 * MOST_CHARACTERS)) as fields:
            return _of_fields(fields)
    except Refusal as refusal:
        raise FormatError(f"the federated calibration cannot be used: {refusal}") from None


def _of_fields(fields: Fields) -> Several:
    plans_text = json.dumps(fields.take("plans", dict), indent=1) + "\n"
    plans, envelope = SeveralPlans.read(plans_text)
    who = [plans.position(str(name)) for name in fields.take("answered", list)]
    if len(set(who)) != len(who) or not who:
        raise Refusal("malformed", "the silos that answered must be named once each")
    thresholds = [math.inf if t == "+inf" else t for t in fields.take("thresholds", list)]
    pairs = fields.take("refused", list)
    versions = {str(name): str(version) for name, version in fields.take("versions", dict).items()}
    if not all(type(t) in (float, int) for t in thresholds) or len(thresholds) != len(plans.parts):
        raise Refusal("malformed", "the thresholds must be numbers, one for each part of the plans")
    if not all(
        isinstance(pair, list) and len(pair) == 2 and type(pair[0]) in (str, int) and pair[1] in CODES for pair in pairs
    ):
        raise Refusal("malformed", "the messages that were refused must be pairs of a name, or a place, and a code")
    refused = tuple((sender, code) for sender, code in pairs)
    who = sorted(who)
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
    return read


register_kind(KIND, _read)
