"""Commands about files: `confide show`, `verify`, `sign`, `report`, `card` and `dossier`."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from confide.cli.command import command
from confide.cli.exit_codes import CLAIM_FAILED, DONE
from confide.cli.federated.coordinator import policy_rows, read_policy, read_silo, silo_rows
from confide.cli.output import print_result, print_text, print_warning
from confide.cli.values import Output, named_release
from confide.errors import InputError
from confide.evaluation import PrivateEvaluation, load_evaluation
from confide.federated import (
    AnyPlan,
    Conditions,
    FederatedCalibration,
    FederatedPlan,
    FederatedRelease,
    MessageHead,
    OwnShare,
    Refusal,
    RoundHead,
    SeveralPlans,
    SiloKeys,
    SiloReport,
    fingerprint,
    identity_rows,
    message_head,
    opening_head,
    part_head,
    read_plan,
    read_signed,
    roster_number,
    sign,
    signed_by,
)
from confide.federated import verify as verify_federated
from confide.ledger import Schedule, decimal_form, file_of
from confide.mechanisms import (
    NEIGHBORS,
    LabelPrivacy,
    NoisyLabels,
    PrivacyStatement,
    Slopes,
    label_rows,
    mechanism_fields,
)
from confide.planning import rounding_text
from confide.releases import (
    ABOUT,
    Calibration,
    Document,
    LabelStatement,
    PublishedCounts,
    Release,
    about_of,
    as_release,
    class_list,
    classes_of,
    is_warm,
    load,
    load_release,
    miss_bound_for_reused_records,
    most_needed,
    parts_of,
    predecessors_of,
    remarks,
    verify_lineage,
)
from confide.support import (
    SHOWN_ELSEWHERE,
    FileKind,
    Section,
    decimal_text,
    demonstration_note,
    describe,
    kind_of,
    markdown_or_html,
    positive_integer,
    read_as,
    read_text,
    short_number,
    to_text,
    versions_text,
)
from confide.warehouse import CountingPlan
from confide.watching import CorrectedRelease, Watch


@command("show")
def show(*, file: Path | None = None, records: int = 1, calibration: Path | None = None, as_json: bool = False) -> None:
    """Print the promise and the privacy cost of a release.

    FILE is a release of `confide calibrate` or `confide federated aggregate`.
    Every claim is recomputed from the mechanisms that the file states. FILE may
    also be an output of `confide evaluate --out`, a monitor, a schedule of
    `confide budget plan`, or a plan of `confide sql`. It may also be a public
    file, a plan, a policy, an answer or a report of a silo: signatures are
    checked, and the fingerprints are printed for comparison.

    Example:

      confide show cal.json --records 3
    """
    k = positive_integer("records", records)
    path = named_release(file, calibration)
    kind = kind_of(path)
    if kind in SHOWN_ELSEWHERE:
        raise InputError("path", f"{str(path)!r} is {kind}", remedy=SHOWN_ELSEWHERE[kind])
    if own := _BY_KIND.get(kind):
        try:
            shown = own(path)
        except Refusal as refusal:
            raise InputError("path", f"{str(path)!r} cannot be used: {refusal}") from None
        if k != 1:
            raise InputError("records", f"must be 1 for {kind}", remedy="It is for releases")
    else:
        shown = _document(load(path), k)
    for note in () if as_json else shown.warnings:
        print_warning(note)
    print_result(lambda: shown.document, to_text(shown.section), as_json=as_json)


class FileDescription(NamedTuple):
    """The description of a file, as text and as JSON values."""

    section: Section
    document: Mapping[str, Any]
    warnings: Sequence[str] = ()


def _with(value: object, *facts: tuple[str, str], lead: str = "") -> Section:
    """The description of a value, followed by facts of its file."""
    section = describe(value)
    return replace(section, parts=(*section.parts, Section("", lead, facts)))


def _document(found: Document, k: int) -> FileDescription:
    """A release or a private evaluation, with its privacy loss for k records, or a monitor."""
    notes = list(remarks(found)) if isinstance(found, Release) else [*filter(None, [demonstration_note(found)])]
    if isinstance(found, CorrectedRelease):
        return FileDescription(describe(found), {"corrected": json.loads(found.to_json())}, notes)
    if isinstance(found, Watch):
        versions = dict.fromkeys(versions_text(look.versions) for look in found.looks)
        alarm = None if found.alarm is None else found.alarm.look.name
        section = _with(found, *(("made with", one) for one in versions))
        return FileDescription(section, {"watch": json.loads(found.to_json()), "alarm": alarm}, notes)
    losses: dict[str, float] = {relation: found.privacy.loss(relation, k) for relation in NEIGHBORS}
    values: dict[str, Any] = {"records": k, "losses": losses}
    if isinstance(found, PrivateEvaluation):
        n = "secret" if found.query.n is None else str(found.query.n)
        rows = [("evaluation records", n), ("of the calibration with SHA-256", found.calibration)]
        section = _with(found, *_losses(found.privacy, k), *rows, ("made with", versions_text(found.versions)))
        return FileDescription(section, {"evaluation": json.loads(found.to_json()), **values, "warnings": notes}, notes)
    released = as_release(found)
    if isinstance(released.privacy, LabelPrivacy):
        losses["replace_label"] = released.privacy.label_loss(k)
    values |= {"records_needed": most_needed(released.parts.values()), "warnings": notes}
    making = _making(released) if isinstance(released, Calibration) else ()
    facts = (*_words(released), *_losses(released.privacy, k), *making, *lineage_rows(released))
    section = _with(released, *facts, lead=renewal_text(released))
    return FileDescription(section, {"calibration": json.loads(released.to_json()), **values}, notes)


def _counting(path: Path) -> FileDescription:
    plan = CountingPlan.load(path)
    return FileDescription(describe(plan), {"counting_plan": json.loads(plan.to_json())})


def _schedule(path: Path) -> FileDescription:
    schedule = Schedule.load(path)
    each = ((entry.words, f"epsilon {decimal_form(entry.epsilon)} each") for entry in schedule.entries)
    return FileDescription(_with(schedule, *each), {"schedule": schedule.fields, "statement": schedule.statement})


def _labelling(path: Path) -> FileDescription:
    statement = LabelStatement.load(path)
    section = _with(statement, ("made with", versions_text(statement.versions)))
    return FileDescription(section, {"labelling": json.loads(statement.to_json())})


def _published(path: Path) -> FileDescription:
    counts = PublishedCounts.load(path)
    return FileDescription(describe(counts), {"published_counts": json.loads(counts.to_json())})


def _measured(path: Path) -> FileDescription:
    """An evaluation that is not private."""
    found = load_evaluation(path)
    section = _with(found, ("of the release with SHA-256", found.calibration))
    return FileDescription(section, {"evaluation": json.loads(found.to_json())})


def _file(what: str, facts: Sequence[tuple[str, str]], **document: Any) -> FileDescription:
    """A file of a federation: one sentence, and its facts."""
    return FileDescription(Section(what, what, parts=(Section("", facts=tuple(facts)),)), document)


def _silo(path: Path) -> FileDescription:
    silo = read_silo(path)
    values = {"silo": silo.fields(), "identity": silo.identity, "fingerprint": fingerprint(silo.identity)}
    return _file(f"public file of {silo.name!r}", silo_rows(silo), **values)


def _keys(path: Path) -> FileDescription:
    silo = SiloKeys.load(path).public_keys()
    rows = [("name", silo.name), ("fingerprint", fingerprint(silo.identity))]
    values = {"name": silo.name, "identity": silo.identity, "fingerprint": fingerprint(silo.identity)}
    return _file(f"private keys of {silo.name!r}: send them to no one", rows, keys=values)


def _plan(path: Path) -> FileDescription:
    plan, envelope = read_plan(read_text(path))
    unsigned = [("signed by", envelope.signer), *((f"silo {silo.name}", "not signed") for silo in plan.silos)]
    identities = identity_rows(plan, silos=True) or unsigned
    values = {
        **_plans(plan),
        "digest": plan.digest,
        "signer": envelope.signer,
        "epsilon": plan.privacy().epsilon,
        "colluders": plan.channel.colluders,
        "fingerprints": {silo.name: fingerprint(silo.identity) for silo in plan.silos},
    }
    if plan.coordinator is not None:
        values["coordinator"] = fingerprint(plan.coordinator.identity)
        values["roster"] = roster_number([plan.coordinator, *plan.silos])
    return FileDescription(_with(plan, *identities), values)


def _plans(plan: AnyPlan) -> dict[str, Any]:
    """The fields and promises of a plan, or of each level or group of a plan."""
    if isinstance(plan, SeveralPlans):
        parts = [{"name": str(name), **_plans(part)} for name, part in plan.parts.items()]
        return {"by": plan.by, "neighbors": plan.neighbors, "plans": parts}
    assert isinstance(plan, FederatedPlan)
    promises = {str(answers): vars(promise) for answers, promise in plan.promises().items()}
    return {"plan": plan.fields(), "promises": promises}


def answer_rows(head: MessageHead) -> list[tuple[str, str]]:
    """The silo, plan and time of an answer."""
    return [
        ("silo", head.silo),
        ("answered", head.answered),
        ("plan", head.plan),
        ("session", head.session),
        ("signed by", f"{head.signer} (aggregate checks that this is the silo's key)"),
        ("made with", versions_text(head.versions)),
    ]


def round_rows(head: RoundHead) -> list[tuple[str, str]]:
    """The plan of a sum, and the share holder that helps to reconstruct it."""
    return [
        ("opener", head.opener),
        ("on the list", f"{head.listed} silos"),
        ("plan", head.plan),
        ("session", head.session),
        ("signed by", head.signer),
    ]


def _answer(path: Path) -> FileDescription:
    head = message_head(read_text(path))
    return _file(f"answer of {head.silo!r}", answer_rows(head), answer=head._asdict())


def _opening(path: Path) -> FileDescription:
    head = opening_head(read_text(path))
    return _file(f"request of the coordinator to {head.opener!r}", round_rows(head), opening=head._asdict())


def _part(path: Path) -> FileDescription:
    head = part_head(read_text(path))
    return _file(f"part of {head.opener!r}", round_rows(head), part=head._asdict())


def _policy(path: Path) -> FileDescription:
    policy = read_policy(path)
    prints = {name: fingerprint(identity) for name, identity in policy.peers.items()}
    stated = {**vars(policy), "peers": dict(policy.peers)}
    return _file("policy of a silo", policy_rows(policy), policy=stated, fingerprints=prints)


def _silo_report(path: Path) -> FileDescription:
    report = SiloReport.load(path)
    estimate = vars(report.estimate)
    return FileDescription(describe(report), {"report": {"silo": report.silo, "epsilon": report.epsilon, **estimate}})


_BY_KIND: Mapping[FileKind, Callable[[Path], FileDescription]] = {
    FileKind.COUNTING: _counting,
    FileKind.SCHEDULE: _schedule,
    FileKind.LABELLING: _labelling,
    FileKind.COUNTS: _published,
    FileKind.EVALUATION: _measured,
    FileKind.SILO: _silo,
    FileKind.KEYS: _keys,
    FileKind.PLAN: _plan,
    FileKind.ANSWER: _answer,
    FileKind.OPENING: _opening,
    FileKind.PART: _part,
    FileKind.POLICY: _policy,
    FileKind.REPORT: _silo_report,
}


# A release in rows


def _words(released: Release) -> list[tuple[str, str]]:
    """The classes and the metadata of a release."""
    classes, about = classes_of(released), about_of(released)
    rows = [] if classes is None else [("classes", class_list(classes))]
    if released.disjoint and released.overlap is None and all(part.coverage for part in released.parts.values()):
        some = "classes" if released.by == "class" else "groups"
        rows.append(("shares", f"the promise holds for any shares of the {some} among new records"))
    rows += [(ABOUT[key].lower(), text) for key, text in about.items()]
    if (model := released.first.fingerprint) is not None:
        rows.append(("fingerprint", str(model)))
    if isinstance(released, Calibration):
        return rows  # its other rows contain the versions
    return [*rows, *(("made with", text) for text in dict.fromkeys(map(_versions, released.parts.values())))]


def _versions(released: Calibration) -> str:
    return versions_text(released.versions)


def _losses(privacy: PrivacyStatement, k: int) -> list[tuple[str, str]]:
    if isinstance(privacy, LabelPrivacy):
        return label_rows(privacy, k)
    rows = []
    for records in sorted({1, k}):
        what = "one record" if records == 1 else f"{records} records"
        for verb, relation in (("adding or removing", "add_remove"), ("replacing", "replace_one")):
            loss = privacy.loss(relation, records)  # type: ignore[arg-type]
            rows.append(
                (
                    f"loss, {verb} {what}",
                    _unlimited(privacy, relation) if math.isinf(loss) else decimal_text(loss, 6),
                )
            )
    return rows


def _unlimited(privacy: PrivacyStatement, relation: str) -> str:
    """The reason for an infinite loss."""
    if relation == "add_remove":
        return "unlimited: the number is public"
    return "unlimited: zCDP alone, no epsilon" if privacy.concentrated_only else "unlimited: not private"


def _making(released: Calibration) -> list[tuple[str, str]]:
    recipe = ", ".join(f"{key} {value}" for key, value in released.recipe.items() if key not in ("kind", "size"))
    return [
        ("calibration records", "secret" if released.n is None else str(released.n)),
        *(() if released.population is None else (("weights", rounding_text(released.population)),)),
        ("mechanism", _mechanism(released)),
        ("candidate thresholds", f"{released.candidates} ({released.recipe['kind']}{', ' if recipe else ''}{recipe})"),
        ("made with", _versions(released)),
    ]


def _mechanism(released: Calibration) -> str:
    mechanism = released.mechanism
    if isinstance(released, FederatedCalibration):
        among = f"; number {released.k} of {len(released.answered)} answers in order" if released.k else ""
        return f"{released.plan.method}, in {len(released.answered)} silos{among}"
    if isinstance(released, OwnShare):
        return f"the larger of the common threshold and the answer of {released.silo!r}; {_mechanism(released.common)}"
    if mechanism is None:
        return "none: +inf was returned without reading the data"
    if isinstance(mechanism, NoisyLabels):
        return (
            f"noisy-labels, {mechanism.classes} classes: counts of covered labels, corrected for noise, of at least "
            f"{mechanism.rank} at the threshold and every candidate above it"
        )
    if not isinstance(mechanism, Slopes):
        stated = mechanism_fields(mechanism)
        return ", ".join([stated.pop("name"), *(f"{key} {value}" for key, value in stated.items())])
    n = "n" if mechanism.weight is None else "weight/largest"
    grows = "" if mechanism.rate == 0 else f"{mechanism.rate} ({n}+1) + "
    return (
        f"slopes {mechanism.slope_left:.4g} below and {mechanism.slope_right:.4g} above rank "
        f"{grows}{float(mechanism.offset):g}, drawn by {mechanism.selector.replace('_', '-')}"
    )


# A chain of releases


def renewal_text(release: Release) -> str:
    """The release that a release renews, the origin of its candidates, and the records of its promise.

    Examples
    --------
    >>> import confide, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> first = confide.calibrate(rng.random(2000), 0.1, 1.0, score="lac")
    >>> print(renewal_text(confide.recalibrate(first, rng.random(2000), cold=True)))
    release 2 of a chain; it renews release 1
    start: cold; the promise does not depend on what was released before
    """
    line, parts = predecessors_of(release), list(parts_of(release).values())
    if not line:
        return ""
    warm = [part for part in parts if is_warm(part)]
    said = f"release {len(line) + 1} of a chain; it renews release {len(line)}"
    if not warm:
        return f"{said}\nstart: cold; the promise does not depend on what was released before"
    near = f"near the earlier threshold {short_number(line[-1].threshold)}"
    if len(parts) > 1:
        near = f"near the earlier thresholds, {len(warm)} of {len(parts)}"
    return f"{said}\nstart: {near}. {condition(release)}"


def condition(release: Release) -> str:
    """The condition of the promise after a warm start, and the coverage that remains without it."""
    missed = [miss_bound_for_reused_records(part) for part in parts_of(release).values() if is_warm(part)]
    least = None if None in missed else 1 - max(one for one in missed if one is not None)
    left = "no coverage" if least is None else f"only {math.floor(1000 * least) / 10:g} % coverage"
    return (
        "If no record was in an earlier calibration of the chain, the promise is whole. "
        f"If some were, {left} is certain for them: use --cold"
    )


def lineage_rows(release: Release) -> list[tuple[str, str]]:
    """A row for each release of the chain: number, date and threshold."""
    line = predecessors_of(release)
    if not line:
        return []
    parts = list(parts_of(release).values())
    rows = []
    for place, one in enumerate(line):
        thresholds = ", ".join(short_number(part.predecessors[place].threshold) for part in parts[:10])
        more = ", ..." if len(parts) > 10 else ""
        date = "" if one.date is None else f" ({one.date})"
        rows.append(
            (
                f"chain, release {place + 1}{date}",
                f"threshold {thresholds}{more}; epsilon {decimal_text(one.epsilon, 6)}; SHA-256 {one.checksum[:16]}...",
            )
        )
    total = sum(one.epsilon for one in line) + release.privacy.epsilon
    rows.append(("chain, all together", f"epsilon {decimal_text(total, 6)} for a person who is in each"))
    return rows


# Verification


@command("verify")
def verify(
    *,
    file: Path | None = None,
    required: Conditions,
    signer: Path | None = None,
    answer: tuple[Path, ...] = (),
    previous: tuple[Path, ...] = (),
    calibration: Path | None = None,
    as_json: bool = False,
) -> int:
    r"""Check a release: its claims, its chain, its signature, and your conditions.

    Every claim is recomputed from the file; a file that claims more than
    follows gives exit code 3. For a federation the output states who signed
    the release and which answers its threshold was computed from. No file
    shows that a threshold was drawn with noise: this rests on those who ran
    the calibration. Exit code 5, and a line for each reason, if the release is
    not private, does not meet a condition, is not signed by --signer, does not
    count an --answer, or its chain contradicts a --previous release.

    Example:

      confide verify released.json --epsilon-at-most 1.2 \
        --coverage-at-least 0.9 && publish released.json
    """
    path = named_release(file, calibration)
    released, key = read_as(path, read_signed)
    public = None if signer is None else read_silo(signer)
    conditions = required.check(released, key)
    head = f"claims: recomputed, and they hold\n{released}"
    if isinstance(released, FederatedRelease):
        if previous:
            raise InputError(
                "previous",
                f"{str(path)!r} is a federated calibration, which cannot renew a release: leave --previous out",
            )
        signed, what = verify_federated(released, public, [read_text(one) for one in answer]), "thresholds"
    else:
        if answer:
            raise InputError("answer", f"{str(path)!r} is not a federated calibration: leave --answer out")
        what = "noisy counts" if isinstance(released, Watch | PrivateEvaluation | CorrectedRelease) else "thresholds"
        signed = signed_by(key, public, what)
    chain, broken = _chain(released, previous)
    found = [head, *signed.statements, _noise_statement(what), *chain, *conditions.statements]
    return _report(found, [*conditions.failures, *signed.failures, *broken], as_json=as_json)


@command("sign")
def sign_release(*, file: Path, keys: Path, output: Output) -> None:
    """Sign a release of one machine, for `confide verify --signer`.

    RELEASE is a release of `confide calibrate` or `recalibrate`. Every claim is
    recomputed first. All commands that read a release read the signed file as
    well. `confide federated keygen` creates keys and their public file. (A
    federation's release is signed by `confide federated aggregate --keys`.)

    Example:

      confide sign released.json --keys office.key --out signed.json
    """
    output.check(FileKind.SIGNED, file, keys)
    output.save(sign(load_release(file), SiloKeys.load(keys)), "signed")


def _noise_statement(what: str) -> str:
    """The statement about noise, which no file can show."""
    return f"not shown: that the {what} were drawn with noise; this rests on those who ran the calibration"


def _chain(released: Document, previous: Sequence[Path]) -> tuple[list[str], Sequence[str]]:
    """Compare the earlier releases with the chain; return findings and errors."""
    if not predecessors_of(released) and not previous:
        return [], []
    result = verify_lineage(released, [load(path) for path in previous])
    return [f"chain: this is release {len(predecessors_of(released)) + 1}", *result.found], result.wrong


def _report(found: Sequence[str], wrong: Sequence[str], *, as_json: bool) -> int:
    """Print findings and errors, and return the exit code."""
    lines = [line for text in found for line in text.splitlines()]
    print_result(lambda: {"holds": not wrong, "found": lines, "wrong": wrong}, *found, as_json=as_json)
    for line in wrong:
        print_warning(line)
    return CLAIM_FAILED if wrong else DONE


# As a page


@command("report")
def report(
    *,
    file: Path | None = None,
    calibration: Path | None = None,
    evaluation: Path | None = None,
    title: str | None = None,
    answer: tuple[Path, ...] = (),
    silo_report: tuple[Path, ...] = (),
    ledger: str | None = None,
    explorer: bool = False,
    output: Output,
) -> None:
    """Write an HTML page about a release: promise, privacy, cost, provenance.

    RELEASE is a release of `confide calibrate` or `confide federated
    aggregate`. Every claim is recomputed first. The page is one HTML file that
    loads nothing; without --evaluation it contains nothing about the records
    except the release. With --ledger it states the budget spent before and
    with this release. With --explorer it has sliders for other values of
    epsilon, alpha and n.

    Example:

      confide report cal.json --out report.html
    """
    from confide.reports import report as make_report

    path = named_release(file, calibration)
    output.check(FileKind.PAGE, path, evaluation, file_of(ledger), *answer, *silo_report)
    measured = None if evaluation is None else load_evaluation(evaluation)
    released = load(path)
    page = make_report(
        released,
        title=title,
        file_name=path.name,
        evaluation=measured,
        answers=[read_text(path) for path in answer],
        ledger=ledger,
        silo_reports=[SiloReport.load(path) for path in silo_report],
        explorer=explorer,
    )
    output.save(page.html)
    if isinstance(measured, PrivateEvaluation):
        public = released.privacy.is_private and not any(map(demonstration_note, (released, measured)))
        print_text(f"The page shows a private evaluation{': the whole page may be published' if public else ''}.")
    elif measured is not None:
        print_text("The page shows numbers from labelled records: this part is not private.")


@command("card")
def card(
    *,
    file: Path | None = None,
    calibration: Path | None = None,
    evaluation: Path | None = None,
    title: str | None = None,
    task: str | None = None,
    output: Output,
) -> None:
    """Write a model card of a release, with metadata for the Hugging Face Hub.

    RELEASE is a release of `confide calibrate` or `confide federated
    aggregate`. Every claim is recomputed first. The card is Markdown that
    begins with YAML (`model-index`): guaranteed coverage, epsilon, and with
    --evaluation coverage with its interval. With a name that ends in .html it
    is a page.

    Example:

      confide card released.json --evaluation evaluation.json --out README.md
    """
    from confide.reports import card as make_card

    path = named_release(file, calibration)
    output.check(markdown_or_html(output.out, FileKind.CARD), path, evaluation)
    measured = None if evaluation is None else load_evaluation(evaluation)
    made = make_card(load_release(path), evaluation=measured, title=title, task=task, file_name=path.name)
    made.save(output.out, overwrite=output.force)
    print_text(f"saved: {output.out}")
    if measured is not None and not isinstance(measured, PrivateEvaluation):
        print_text("The card shows numbers from labelled records: this part is not private.")


@command("dossier")
def dossier(*, files: tuple[Path, ...], title: str | None = None, output: Output) -> None:
    r"""Map files to requirements of the EU AI Act and the FDA; no legal advice.

    The first FILE is the current release. The others are earlier releases of
    its chain, evaluations, monitors, schedules, and for a federation its plan
    and reports of silos. The dossier lists requirements of Annex IV and
    Article 72 of the EU AI Act and of a predetermined change control plan of
    the FDA, each with its evidence, the file and its SHA-256. A requirement
    without evidence is marked "not shown by these files".

    Example:

      confide dossier released.json evaluation.json monitor.json \
        --out dossier.md
    """
    from confide.reports import dossier as make_dossier

    output.check(markdown_or_html(output.out, FileKind.DOSSIER), *files)
    make_dossier(files, title=title).save(output.out, overwrite=output.force)
    print_text(f"saved: {output.out}")
