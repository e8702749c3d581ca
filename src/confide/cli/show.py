"""Commands about files: `confide show`, `verify` and `sign`."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from confide.cli.commands import Show, Sign, Verify
from confide.cli.exit_codes import CLAIM_FAILED, DONE
from confide.cli.federated.coordinator import policy_rows, read_policy, read_silo, silo_rows
from confide.cli.output import print_result, print_warning
from confide.core import (
    Document,
    PublishedCounts,
    Release,
    about_facts,
    as_release,
    load,
    load_release,
    making_section,
    records_needed,
    remarks,
)
from confide.errors import InputError
from confide.evaluation import Evaluation
from confide.federated import (
    Conditions,
    FederatedRelease,
    Refusal,
    SiloKeys,
    fingerprint,
    identity_rows,
    message_head,
    read_plan,
    read_signed,
    roster_number,
    sign,
    signed_by,
)
from confide.federated import verify as verify_federated
from confide.mechanisms import loss_facts, losses
from confide.support import (
    SHOWN_ELSEWHERE,
    FileKind,
    Section,
    describe,
    kind_of,
    positive_integer,
    read_as,
    read_text,
    to_text,
    versions_text,
)
from confide.watching import CorrectedRelease, Watch


def show(asked: Show) -> None:
    """Print what a file states."""
    # What the file is.
    k, path = positive_integer("records", asked.records), asked.path
    kind = kind_of(path)
    if kind in SHOWN_ELSEWHERE:
        raise InputError("path", f"{str(path)!r} is {kind}", remedy=SHOWN_ELSEWHERE[kind])
    if describe_file := _BY_KIND.get(kind):
        try:
            shown = describe_file(path)
        except Refusal as refusal:
            raise InputError("path", f"{str(path)!r} cannot be used: {refusal}") from None
        if k != 1:
            raise InputError("records", f"must be 1 for {kind}", remedy="It is for releases")
    else:
        shown = _document(load(path), k)

    # JSON contains the warnings.
    for note in () if asked.as_json else shown.warnings:
        print_warning(note)
    print_result(lambda: shown.document, to_text(shown.section), as_json=asked.as_json)


class FileDescription(NamedTuple):
    """What a file states, as text and as JSON values."""

    section: Section
    document: Mapping[str, Any]
    warnings: Sequence[str] = ()


def _rows(*facts: tuple[str, str]) -> Section:
    return Section("", facts=facts)


def _with(value: object, *parts: Section) -> Section:
    """The description of a value, followed by parts about its file; facts that it contains are not repeated."""
    whole = describe(value)
    new = (
        replace(section, facts=tuple(fact for fact in section.facts if fact not in whole.facts)) for section in parts
    )
    return replace(whole, parts=(*whole.parts, *(section for section in new if section.facts or section.parts)))


def _document(document: Document, k: int) -> FileDescription:
    # A monitor, and the thresholds that it corrected.
    notes = list(remarks(document)) if isinstance(document, Release) else []
    if isinstance(document, CorrectedRelease):
        return FileDescription(describe(document), {"corrected": json.loads(document.to_json())}, notes)
    if isinstance(document, Watch):
        versions = dict.fromkeys(versions_text(look.versions) for look in document.looks)
        alarm = None if document.alarm is None else document.alarm.look.name
        section = _with(document, _rows(*(("made with", version) for version in versions)))
        return FileDescription(section, {"watch": json.loads(document.to_json()), "alarm": alarm}, notes)
    if isinstance(document, Evaluation):
        return _evaluation(document, k)

    # A release, with its privacy loss for k records.
    values: dict[str, Any] = {"records": k, "losses": losses(document.privacy, k), "warnings": notes}
    loss = Section("Privacy loss", facts=loss_facts(document.privacy, k))
    released = as_release(document)
    about = Section("Model and data", facts=tuple((name, text) for name, text in about_facts(released) if text))
    section = _with(released, about, loss, making_section(released))
    values["records_needed"] = records_needed(released)
    return FileDescription(section, {"calibration": json.loads(released.to_json()), **values}, notes)


def _published(path: Path) -> FileDescription:
    counts = PublishedCounts.load(path)
    return FileDescription(describe(counts), {"published_counts": json.loads(counts.to_json())})


def _evaluation(evaluation: Evaluation, k: int) -> FileDescription:
    of, values = ("of the release with SHA-256", evaluation.calibration), {"evaluation": evaluation.fields()}
    if not evaluation.private:
        if k != 1:
            raise InputError("records", "must be 1 for an evaluation without noise", remedy="It is for releases")
        return FileDescription(_with(evaluation, _rows(of)), values)

    # A private one has a privacy loss for k records.
    n = "secret" if evaluation.query.n is None else str(evaluation.query.n)
    rows = _rows(("evaluation records", n), of, ("made with", versions_text(evaluation.versions)))
    loss = Section("Privacy loss", facts=loss_facts(evaluation.privacy, k))
    return FileDescription(
        _with(evaluation, rows, loss), {**values, "records": k, "losses": losses(evaluation.privacy, k)}
    )


def _file(what: str, facts: Sequence[tuple[str, str]], **document: Any) -> FileDescription:
    """A file of a federation: one sentence, and its facts."""
    return FileDescription(Section(what, what, parts=(Section("", facts=tuple(facts)),)), document)


def _silo(path: Path) -> FileDescription:
    silo = read_silo(path)
    values = {"silo": vars(silo), "identity": silo.identity, "fingerprint": fingerprint(silo.identity)}
    return _file(f"public file of {silo.name!r}", silo_rows(silo), **values)


def _keys(path: Path) -> FileDescription:
    silo = SiloKeys.load(path).public_keys()
    rows = [("name", silo.name), ("fingerprint", fingerprint(silo.identity))]
    values = {"name": silo.name, "identity": silo.identity, "fingerprint": fingerprint(silo.identity)}
    return _file(f"private keys of {silo.name!r}: send them to no one", rows, keys=values)


def _plan(path: Path) -> FileDescription:
    plan = read_plan(read_text(path))
    assert plan.coordinator is not None  # a plan that is read names it
    promises = [
        {str(answers): vars(promise) for answers, promise in group.promises().items()} for group in plan.different
    ]
    values = {
        "plan": plan.fields(),
        "promises": promises,
        "digest": plan.digest,
        "signer": plan.coordinator.signing,
        "epsilon": plan.privacy().epsilon,
        "colluders": plan.channel.colluders,
        "fingerprints": {silo.name: fingerprint(silo.identity) for silo in plan.silos},
        "coordinator": fingerprint(plan.coordinator.identity),
        "roster": roster_number([plan.coordinator, *plan.silos]),
    }
    return FileDescription(_with(plan, _rows(*identity_rows(plan, silos=True))), values)


def _answer(path: Path) -> FileDescription:
    head = message_head(read_text(path))
    rows = [
        ("silo", head.content.silo),
        ("answered", head.content.answered),
        ("plan", head.content.plan),
        ("signed by", f"{head.signer} (aggregate checks that this is the silo's key)"),
        ("made with", versions_text(head.content.versions)),
    ]
    stated = {name: getattr(head.content, name) for name in ("silo", "plan", "answered", "versions")}
    return _file(f"answer of {head.content.silo!r}", rows, answer={**stated, "signer": head.signer})


def _policy(path: Path) -> FileDescription:
    policy = read_policy(path)
    prints = {name: fingerprint(identity) for name, identity in policy.peers.items()}
    stated = {**vars(policy), "peers": dict(policy.peers)}
    return _file("policy of a silo", policy_rows(policy), policy=stated, fingerprints=prints)


_BY_KIND: Mapping[FileKind, Callable[[Path], FileDescription]] = {
    FileKind.COUNTS: _published,
    FileKind.SILO: _silo,
    FileKind.KEYS: _keys,
    FileKind.PLAN: _plan,
    FileKind.ANSWER: _answer,
    FileKind.POLICY: _policy,
}


# Verification


def verify(asked: Verify) -> int:
    """Check a release."""
    # Its conditions, on claims that are computed again while reading.
    released, key = read_as(asked.path, read_signed)
    public = None if asked.signer is None else read_silo(asked.signer)
    stated = {field.name: getattr(asked, field.name) for field in fields(Conditions)}
    conditions = Conditions(**stated).check(released, key)

    # Its signature, and the answers of a federation.
    head = f"claims: recomputed, and they hold\n{released}"
    if isinstance(released, FederatedRelease):
        signed, what = verify_federated(released, public, [read_text(answer) for answer in asked.answers]), "thresholds"
    else:
        if asked.answers:
            raise InputError("answers", f"must be left out: {str(asked.path)!r} is not a federated calibration")
        what = "noisy counts" if isinstance(released, Watch | Evaluation | CorrectedRelease) else "thresholds"
        signed = signed_by(key, public, what)

    # No file shows the noise.
    unshown = f"not shown: that the {what} were drawn with noise; this rests on those who ran the calibration"
    statements = [head, *signed.statements, unshown, *conditions.statements]
    return _report(statements, [*conditions.failures, *signed.failures], as_json=asked.as_json)


def sign_release(asked: Sign) -> None:
    """Sign a release of one machine."""
    asked.output.check(FileKind.SIGNED, asked.path, asked.keys)
    asked.output.save(sign(load_release(asked.path), SiloKeys.load(asked.keys)), "signed")


def _report(statements: Sequence[str], failures: Sequence[str], *, as_json: bool) -> int:
    lines = [line for text in statements for line in text.splitlines()]
    print_result(lambda: {"holds": not failures, "found": lines, "wrong": failures}, *statements, as_json=as_json)
    for line in failures:
        print_warning(line)
    return CLAIM_FAILED if failures else DONE
