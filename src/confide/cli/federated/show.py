"""What `confide show` says of the files of a federation: everything but releases, which it checks by itself."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from confide.cli.federated.arguments import read_silo
from confide.cli.federated.rules import read_policy
from confide.cli.federated.words import answer_rows, policy_rows, round_rows, silo_rows
from confide.errors import InputError
from confide.federated import (
    FederatedPlan,
    Refusal,
    SeveralPlans,
    SiloKeys,
    SiloReport,
    fingerprint,
    identity_rows,
    message_head,
    opening_head,
    part_head,
    read_plan,
    roster_number,
)
from confide.support import Kind, aligned, kind_of, read_text


class Shown(NamedTuple):
    """A file in words and as JSON values."""

    text: str
    document: Mapping[str, Any]


Shower: TypeAlias = Callable[[Path], Shown]


def shown(path: Path) -> Shown | None:
    """What the file of a federation says, its signatures checked; None if it is another kind of file."""
    show = _BY_KIND.get(kind_of(path))
    if show is None:
        return None
    try:
        return show(path)
    except Refusal as refusal:
        raise InputError(f"file {str(path)!r} cannot be used: {refusal}") from None


def _silo(path: Path) -> Shown:
    silo = read_silo(path)
    told = {"silo": silo.fields(), "identity": silo.identity, "fingerprint": fingerprint(silo.identity)}
    return Shown(f"public file of {silo.name!r}\n{aligned(silo_rows(silo))}", told)


def _keys(path: Path) -> Shown:
    silo = SiloKeys.load(path).face()
    rows = [("name", silo.name), ("fingerprint", fingerprint(silo.identity))]
    told = {"name": silo.name, "identity": silo.identity, "fingerprint": fingerprint(silo.identity)}
    return Shown(f"private keys of {silo.name!r}, to be sent to nobody\n{aligned(rows)}", {"keys": told})


def _plan(path: Path) -> Shown:
    plan, envelope = read_plan(read_text(path))
    unsigned = [("signed by", envelope.signer), *((f"silo {silo.name}", "not signed") for silo in plan.silos)]
    who = identity_rows(plan, silos=True) or unsigned
    text = f"{plan}\n{aligned(who)}"
    told = {
        **_plans(plan),
        "digest": plan.digest,
        "signer": envelope.signer,
        "epsilon": plan.privacy().epsilon,
        "colluders": plan.protocol.colluders,
        "fingerprints": {silo.name: fingerprint(silo.identity) for silo in plan.silos},
    }
    if plan.coordinator is not None:
        told["coordinator"] = fingerprint(plan.coordinator.identity)
        told["roster"] = roster_number([plan.coordinator, *plan.silos])
    return Shown(text, told)


def _plans(plan: FederatedPlan | SeveralPlans) -> dict[str, Any]:
    """The fields and promises of a plan, or of each of several by its level or group."""
    if isinstance(plan, SeveralPlans):
        parts = [{"name": str(name), **_plans(part)} for name, part in plan.parts.items()]
        return {"by": plan.by, "neighbors": plan.neighbors, "plans": parts}
    promises = {str(answers): vars(promise) for answers, promise in plan.promises().items()}
    return {"plan": plan.fields(), "promises": promises}


def _answer(path: Path) -> Shown:
    head = message_head(read_text(path))
    return Shown(f"answer of {head.silo!r}\n{aligned(answer_rows(head))}", {"answer": head._asdict()})


def _opening(path: Path) -> Shown:
    head = opening_head(read_text(path))
    return Shown(
        f"what the coordinator asks of {head.opener!r}\n{aligned(round_rows(head))}", {"opening": head._asdict()}
    )


def _part(path: Path) -> Shown:
    head = part_head(read_text(path))
    return Shown(f"part of {head.opener!r}\n{aligned(round_rows(head))}", {"part": head._asdict()})


def _policy(path: Path) -> Shown:
    policy = read_policy(path)
    prints = {name: fingerprint(identity) for name, identity in policy.peers.items()}
    told = {"policy": {**vars(policy), "peers": dict(policy.peers)}, "fingerprints": prints}
    return Shown(f"policy of a silo\n{aligned(policy_rows(policy))}", told)


def _report(path: Path) -> Shown:
    report = SiloReport.load(path)
    return Shown(str(report), {"report": {"silo": report.silo, "epsilon": report.epsilon, **vars(report.estimate)}})


_BY_KIND: Mapping[Kind, Shower] = {
    Kind.SILO: _silo,
    Kind.KEYS: _keys,
    Kind.PLAN: _plan,
    Kind.ANSWER: _answer,
    Kind.OPENING: _opening,
    Kind.PART: _part,
    Kind.POLICY: _policy,
    Kind.REPORT: _report,
}
