"""The files of a federation: what each says, and how those that are named are read."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from confide.errors import InputError
from confide.federated import (
    FederatedPlan,
    MessageHead,
    Policy,
    Refusal,
    RoundHead,
    SeveralPlans,
    Silo,
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
from confide.support import Kind, aligned, kind_of, read_text, versions_text


def read_messages(paths: Sequence[Path], kind: Kind, *, drop_refused: bool = False) -> list[str]:
    """The messages in files.

    Raises
    ------
    Refusal
        If a file is of another kind that is known, unless such files are to be dropped by whoever reads the texts.
    """
    for path in paths:
        if not drop_refused and (found := kind_of(path)) not in (kind, Kind.OTHER):
            raise Refusal("malformed", f"file {str(path)!r} is {found}, not {kind}; leave it out")
    return [read_text(path) for path in paths]


def read_silo(path: Path) -> Silo:
    """A public file of a silo or of the coordinator."""
    try:
        return Silo.from_json(read_text(path))
    except Refusal as refusal:
        raise InputError(f"file {str(path)!r} cannot be used: {refusal}") from None


def public_files(paths: Sequence[Path]) -> list[Path]:
    """The files that are named, and the public files of silos in the folders that are named; others there are not read.

    Raises
    ------
    InputError
        If a folder holds no public file.
    """
    found = []
    for path in paths:
        inside = sorted(one for one in path.iterdir() if kind_of(one) is Kind.SILO) if path.is_dir() else [path]
        if not inside:
            raise InputError(f"folder {str(path)!r} holds no public file of a silo; keygen writes one")
        found += inside
    return found


def read_named(paths: Sequence[Path]) -> list[Silo]:
    """The public files in files and folders, one silo a name; another copy of the same file is the same silo."""
    found: dict[str, tuple[Path, Silo]] = {}
    for path in public_files(paths):
        silo = read_silo(path)
        other, before = found.setdefault(silo.name, (path, silo))
        if before != silo:
            raise InputError(
                f"the name {silo.name!r} is in two public files that differ, {str(other)!r} and {str(path)!r}; keep "
                "the one whose fingerprint and size are right, and move the other out of the way"
            )
    return [silo for _, silo in found.values()]


def invited(paths: Sequence[Path], coordinator: Silo) -> tuple[list[Silo], list[Path]]:
    """The silos of a plan, and what is none of them: the coordinator's own public file, where a folder holds it."""
    alone = {path for path in paths if not path.is_dir()}

    def is_silo(path: Path) -> bool:
        found = read_silo(path)
        return path in alone or (found.name != coordinator.name and found.signing != coordinator.signing)

    files = {path: is_silo(path) for path in public_files(paths)}
    return read_named([path for path, yes in files.items() if yes]), [path for path, yes in files.items() if not yes]


def read_policy(path: Path) -> Policy:
    """A policy file."""
    try:
        return Policy.from_json(read_text(path))
    except Refusal as refusal:
        raise InputError(f"file {str(path)!r} cannot be used: {refusal}") from None


def silo_rows(silo: Silo) -> list[tuple[str, str]]:
    """Who it is, by the digits that people compare, and what its own key signed."""
    size = "secret" if silo.size is None else f"{silo.size}, public"
    ledger = [] if silo.ledger is None else [("ledger", fingerprint(silo.ledger, groups=4))]
    issued = [] if silo.issued is None else [("issued", f"{silo.issued}, signed by its own key")]
    return [("name", silo.name), ("fingerprint", fingerprint(silo.identity)), ("records", size), *ledger, *issued]


def policy_rows(policy: Policy) -> list[tuple[str, str]]:
    """What a silo agrees to."""
    peers = [(f"peer {name}", fingerprint(identity)) for name, identity in policy.peers.items()]
    return [
        ("coordinator", fingerprint(policy.coordinator)),
        ("budget", f"{policy.budget:g} in all, {policy.per_plan:g} for one answer"),
        ("methods", ", ".join(policy.methods)),
        ("colluding silos", f"at least {policy.least_colluding} must be withstood by plans of sums"),
        *peers,
    ]


def answer_rows(head: MessageHead) -> list[tuple[str, str]]:
    """Whose answer it is, to which plan, and when it was made."""
    return [
        ("silo", head.silo),
        ("answered", head.answered),
        ("plan", head.plan),
        ("session", head.session),
        ("signed by", f"{head.signer} (aggregate checks that it is the silo's key)"),
        ("made with", versions_text(head.versions)),
    ]


def round_rows(head: RoundHead) -> list[tuple[str, str]]:
    """Whose sum is opened, by whom."""
    return [
        ("opener", head.opener),
        ("on the list", f"{head.listed} silos"),
        ("plan", head.plan),
        ("session", head.session),
        ("signed by", head.signer),
    ]


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
