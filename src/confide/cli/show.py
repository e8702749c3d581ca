"""`confide show`: what a file states, as text or as JSON values."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from confide.cli.commands import Show
from confide.cli.federated.coordinator import policy_rows, read_policy, read_silo, silo_rows
from confide.cli.output import print_result, print_warning
from confide.core import (
    Document,
    PublishedCounts,
    Release,
    about_facts,
    as_release,
    load,
    making_section,
    records_needed,
    remarks,
)
from confide.errors import InputError
from confide.evaluation import Evaluation
from confide.federated import Refusal, SiloKeys, fingerprint, identity_rows, message_head, read_plan, roster_number
from confide.mechanisms import loss_facts, losses
from confide.support import (
    SHOWN_ELSEWHERE,
    FileKind,
    Section,
    describe,
    kind_of,
    positive_integer,
    read_text,
    to_text,
    versions_text,
)
from confide.watching import CorrectedRelease, Watch


class FileDescription(NamedTuple):
    """What a file states, as text and as JSON values."""

    section: Section
    document: Mapping[str, Any]
    warnings: Sequence[str] = ()


def show(options: Show) -> None:
    """Print what a file states."""
    # What the file is.
    records, path = positive_integer("records", options.records), options.path
    kind = kind_of(path)
    if kind in SHOWN_ELSEWHERE:
        raise InputError("path", f"{str(path)!r} is {kind}", remedy=SHOWN_ELSEWHERE[kind])
    if describe_file := _BY_KIND.get(kind):
        try:
            description = describe_file(path)
        except Refusal as refusal:
            raise InputError("path", f"{str(path)!r} cannot be used: {refusal}") from None
        if records != 1:
            raise InputError("records", f"must be 1 for {kind}", remedy="It is for releases")
    else:
        description = _document(load(path), records)

    # JSON contains the warnings.
    for note in () if options.as_json else description.warnings:
        print_warning(note)
    print_result(lambda: description.document, to_text(description.section), as_json=options.as_json)


def _rows(*facts: tuple[str, str]) -> Section:
    return Section("", facts=facts)


def _with_parts(value: object, *parts: Section) -> Section:
    """The description of a value, followed by parts about its file; facts that it contains are not repeated."""
    whole = describe(value)
    new = (
        replace(section, facts=tuple(fact for fact in section.facts if fact not in whole.facts)) for section in parts
    )
    return replace(whole, parts=(*whole.parts, *(section for section in new if section.facts or section.parts)))


def _document(document: Document, records: int) -> FileDescription:
    # A monitor, and the thresholds that it corrected.
    notes = list(remarks(document)) if isinstance(document, Release) else []
    if isinstance(document, CorrectedRelease):
        return FileDescription(describe(document), {"corrected": json.loads(document.to_json())}, notes)
    if isinstance(document, Watch):
        versions = dict.fromkeys(versions_text(look.versions) for look in document.looks)
        alarm = None if document.alarm is None else document.alarm.look.name
        section = _with_parts(document, _rows(*(("made with", version) for version in versions)))
        return FileDescription(section, {"watch": json.loads(document.to_json()), "alarm": alarm}, notes)
    if isinstance(document, Evaluation):
        return _evaluation(document, records)

    # A release, with its privacy loss for so many records of a person.
    released, loss = as_release(document), _privacy_loss(document, records)
    values = {"records": records, "losses": losses(document.privacy, records), "warnings": notes}
    about = Section("Model and data", facts=tuple((name, text) for name, text in about_facts(released) if text))
    section = _with_parts(released, about, loss, making_section(released))
    content = {"calibration": json.loads(released.to_json()), **values, "records_needed": records_needed(released)}
    return FileDescription(section, content, notes)


def _published(path: Path) -> FileDescription:
    counts = PublishedCounts.load(path)
    return FileDescription(describe(counts), {"published_counts": json.loads(counts.to_json())})


def _evaluation(evaluation: Evaluation, records: int) -> FileDescription:
    of = ("of the release with SHA-256", evaluation.calibration)
    values: dict[str, Any] = {"evaluation": evaluation.fields()}
    if not evaluation.private:
        if records != 1:
            raise InputError("records", "must be 1 for an evaluation without noise", remedy="It is for releases")
        return FileDescription(_with_parts(evaluation, _rows(of)), values)

    # A private one has a privacy loss.
    n = "secret" if evaluation.query.n is None else str(evaluation.query.n)
    rows = _rows(("evaluation records", n), of, ("made with", versions_text(evaluation.versions)))
    values |= {"records": records, "losses": losses(evaluation.privacy, records)}
    return FileDescription(_with_parts(evaluation, rows, _privacy_loss(evaluation, records)), values)


def _privacy_loss(document: Document, records: int) -> Section:
    return Section("Privacy loss", facts=loss_facts(document.privacy, records))


def _file(sentence: str, facts: Sequence[tuple[str, str]], **document: Any) -> FileDescription:
    return FileDescription(Section(sentence, sentence, parts=(_rows(*facts),)), document)


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
    return FileDescription(_with_parts(plan, _rows(*identity_rows(plan, silos=True))), values)


def _answer(path: Path) -> FileDescription:
    head = message_head(read_text(path))
    rows = [
        ("silo", head.content.silo),
        ("answered", head.content.answered),
        ("plan", head.content.plan),
        ("signed by", f"{head.signer} (aggregate checks that this is the silo's key)"),
        ("made with", versions_text(head.content.versions)),
    ]
    content = {name: getattr(head.content, name) for name in ("silo", "plan", "answered", "versions")}
    return _file(f"answer of {head.content.silo!r}", rows, answer={**content, "signer": head.signer})


def _policy(path: Path) -> FileDescription:
    policy = read_policy(path)
    prints = {name: fingerprint(identity) for name, identity in policy.peers.items()}
    content = {**vars(policy), "peers": dict(policy.peers)}
    return _file("policy of a silo", policy_rows(policy), policy=content, fingerprints=prints)


_BY_KIND: Mapping[FileKind, Callable[[Path], FileDescription]] = {
    FileKind.COUNTS: _published,
    FileKind.SILO: _silo,
    FileKind.KEYS: _keys,
    FileKind.PLAN: _plan,
    FileKind.ANSWER: _answer,
    FileKind.POLICY: _policy,
}
