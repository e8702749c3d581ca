"""Commands that read a release or another file: `confide show`, `verify` and `sign`, `report` and `card`."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from confide.cli.commands import Card, Report, Show, Sign, Verify
from confide.cli.exit_codes import CLAIM_FAILED, DONE
from confide.cli.federated.files import policy_rows, read_policy, read_silo, silo_rows, usable
from confide.cli.output import fields_of, print_result, print_text, print_warning
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
from confide.evaluation import Evaluation
from confide.federated import (
    Conditions,
    FederatedRelease,
    SiloKeys,
    fingerprint,
    identity_rows,
    message_head,
    read_plan,
    read_signed,
    roster_number,
    sign,
    verify_signer,
)
from confide.federated import verify as verify_federated
from confide.ledger import file_of
from confide.mechanisms import loss_facts, losses
from confide.support import (
    SHOWN_ELSEWHERE,
    FileKind,
    Section,
    card_or_page,
    describe,
    kind_of,
    positive_integer,
    read_as,
    read_text,
    require,
    to_text,
    versions_text,
)
from confide.watching import CorrectedRelease, Watch

# What a file states


class FileDescription(NamedTuple):
    """What a file states, as text and as JSON values."""

    section: Section
    document: Mapping[str, Any]
    warnings: Sequence[str] = ()


def show(options: Show) -> None:
    """Print what a file states."""
    # The kind of the file.
    records = positive_integer("records", options.records)
    kind = kind_of(options.path)
    elsewhere = SHOWN_ELSEWHERE.get(kind, "")
    require("path", not elsewhere, f"{str(options.path)!r} is {kind}", remedy=elsewhere)
    if describe_file := _BY_KIND.get(kind):
        with usable(options.path):
            description = describe_file(options.path)
        require("records", records == 1, f"must be 1 for {kind}", remedy="It is for releases")
    else:
        description = _document(load(options.path), records)

    # JSON contains the warnings.
    if not options.as_json:
        print_warning(*description.warnings)
    print_result(description.document, to_text(description.section), as_json=options.as_json)


def _rows(*facts: tuple[str, str]) -> Section:
    return Section("", facts=facts)


def _with_parts(value: object, *parts: Section) -> Section:
    """The description of a value, followed by parts about its file; facts that it contains are not repeated."""
    whole = describe(value)
    added: list[Section] = []
    for part in parts:
        facts = tuple(fact for fact in part.facts if fact not in whole.facts)
        if facts or part.parts:
            added.append(replace(part, facts=facts))
    return replace(whole, parts=(*whole.parts, *added))


def _document(document: Document, records: int) -> FileDescription:
    notes = list(remarks(document)) if isinstance(document, Release) else []
    # A monitor, or the thresholds that it corrected.
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
    released = as_release(document)
    loss = _privacy_loss(document, records)
    values = {"records": records, "losses": losses(document.privacy, records), "warnings": notes}
    about = Section("Model and data", facts=tuple((name, text) for name, text in about_facts(released) if text))
    section = _with_parts(released, about, loss, making_section(released))
    content = {"calibration": json.loads(released.to_json()), **values, "records_needed": records_needed(released)}
    return FileDescription(section, content, notes)


def _evaluation(evaluation: Evaluation, records: int) -> FileDescription:
    release = ("of the release with SHA-256", evaluation.calibration)
    values: dict[str, Any] = {"evaluation": evaluation.fields()}
    if not evaluation.private:
        require("records", records == 1, "must be 1 for an evaluation without noise", remedy="It is for releases")
        return FileDescription(_with_parts(evaluation, _rows(release)), values)

    # A private evaluation has a privacy loss.
    n = "secret" if evaluation.query.n is None else str(evaluation.query.n)
    rows = _rows(("evaluation records", n), release, ("made with", versions_text(evaluation.versions)))
    values |= {"records": records, "losses": losses(evaluation.privacy, records)}
    return FileDescription(_with_parts(evaluation, rows, _privacy_loss(evaluation, records)), values)


def _privacy_loss(document: Document, records: int) -> Section:
    return Section("Privacy loss", facts=loss_facts(document.privacy, records))


def _published(path: Path) -> FileDescription:
    counts = PublishedCounts.load(path)
    return FileDescription(describe(counts), {"published_counts": json.loads(counts.to_json())})


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
        "plan": json.loads(plan.payload),
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
    content = fields_of(head.content, "silo", "plan", "answered", "versions")
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


# Checks and signatures


def verify(options: Verify) -> int:
    """Check a release: its claims, which are computed again while reading, its conditions and its signature."""
    # The conditions.
    released, key = read_as(options.path, read_signed)
    signer = None if options.signer is None else read_silo(options.signer)
    conditions = Conditions(**fields_of(options, *(field.name for field in fields(Conditions))))
    checked = conditions.check(released, key)

    # The signature, and the answers of a federation.
    drawn = "noisy counts" if isinstance(released, Watch | Evaluation | CorrectedRelease) else "thresholds"
    if isinstance(released, FederatedRelease):
        signature = verify_federated(released, signer, [read_text(answer) for answer in options.answers])
    else:
        must = f"must be left out: {str(options.path)!r} is not a federated calibration"
        require("answers", not options.answers, must)
        signature = verify_signer(key, signer, drawn)

    # The result; no file shows the noise.
    head = f"claims: recomputed, and they hold\n{released}"
    unshown = f"not shown: that the {drawn} were drawn with noise; this rests on those who ran the calibration"
    statements = [head, *signature.statements, unshown, *checked.statements]
    failures = [*checked.failures, *signature.failures]
    document = {"holds": not failures, "found": "\n".join(statements).splitlines(), "wrong": failures}
    print_result(document, *statements, as_json=options.as_json)
    print_warning(*failures)
    return CLAIM_FAILED if failures else DONE


def sign_release(options: Sign) -> None:
    """Sign a release of one machine."""
    options.output.check(FileKind.SIGNED, options.path, options.keys)
    options.output.save(sign(load_release(options.path), SiloKeys.load(options.keys)), "signed")


# Documents about a release


def report(options: Report) -> None:
    """Write an HTML page about any document, a release or another."""
    from confide.reports import report as make_report

    options.output.check(FileKind.PAGE, options.path, options.evaluation, file_of(options.ledger), *options.answers)
    evaluation = _evaluation_of(options)
    released = load(options.path)
    page = make_report(
        released,
        title=options.title,
        file_name=options.path.name,
        evaluation=evaluation,
        answers=[read_text(answer) for answer in options.answers],
        ledger=options.ledger,
    )
    options.output.save(page.html)
    if evaluation is not None:
        print_text(_may_be_published("page", released, evaluation))


def card(options: Card) -> None:
    """Write a model card."""
    from confide.reports import card as make_card

    options.output.check(card_or_page(options.output.out), options.path, options.evaluation)
    evaluation = _evaluation_of(options)
    released = load_release(options.path)
    written = make_card(
        released, evaluation=evaluation, title=options.title, task=options.task, file_name=options.path.name
    )
    written.save(options.output.out, overwrite=options.output.force)
    print_text(options.output.saved(), _may_be_published("card", released, evaluation))


def _evaluation_of(options: Report | Card) -> Evaluation | None:
    return None if options.evaluation is None else Evaluation.load(options.evaluation)


def _may_be_published(noun: str, released: Document, evaluation: Evaluation | None) -> str:
    if evaluation is not None and not evaluation.private:
        return f"The {noun} shows numbers from labelled records: this part is not private."
    content = "only the release" if evaluation is None else "a private evaluation"
    verdict = f": the whole {noun} may be published" if released.privacy.is_private else ""
    return f"The {noun} shows {content}{verdict}."
