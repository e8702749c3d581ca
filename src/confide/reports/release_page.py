"""A release as a page for three readers: users of the sets, people responsible for privacy, and people who check it.

A plan is described by the same parts, before there is a release.
"""

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from confide.core import (
    Plan,
    Release,
    about_facts,
    law_of,
    make_plan,
    making_section,
    meaning_of_infinity,
    records_of_design,
    remarks,
    terms_of,
)
from confide.errors import InputError, InputTypeError
from confide.evaluation import Evaluation, Finding
from confide.federated import CODES, FederatedRelease, FederatedThreshold, distant_replies, read_answers, replies_of
from confide.guarantee import law_failure
from confide.ledger import Ledger
from confide.mechanisms import Slopes, mechanism_facts
from confide.plots import plot_coverage, plot_price
from confide.reports.example import worked_example
from confide.reports.ledger_page import spending
from confide.reports.words import (
    Failure,
    as_sentence,
    explanation,
    headline,
    limits,
    meaning,
    noun,
    number,
    promise,
    protection,
    protection_warnings,
    say,
    variation,
)
from confide.sets import sentence_of
from confide.support import Section, Table, describe, require

# Numbers of records for which the variation of coverage is stated if their number is secret
SECRET_SIZES = (100, 300, 1000, 3000, 10_000, 30_000, 100_000)

# Numbers of records in the picture of a plan, as multiples of its own
AROUND = (0.1, 0.3, 1, 3, 10)

# Metadata that every release should state; other metadata are shown if a release states them
EXPECTED = ("model", "version", "data", "purpose", "responsible", "contact", "date")


# A release


def release_section(
    release: Release, evaluation: Evaluation | None, answers: Sequence[str], ledger: Ledger | None, file_name: str
) -> Section:
    """The whole description of a release for a page."""
    described = describe(release)
    federation = silos(release, answers)
    broken = evaluation is not None and any(shortfall.is_broken for shortfall in evaluation.shortfalls.values())

    # One part for each question, those of most readers first.
    parts = [about(release), meaning(release, worked_example(release), broken=broken)]
    if evaluation is not None:
        parts.append(evaluation_section(evaluation))
    parts.append(protection(release.privacy, Section("What is not protected or promised", facts=limits(release))))
    if ledger is not None:
        parts.append(spending(release, ledger))
    if failures := _failures(release):
        parts.append(variation(failures, float(1 - release.first.alpha)))
    if (plan := _plan(release)) is not None:
        parts.append(price_section(plan, noun(release)))
    if federation is not None:
        parts.append(federation)
    parts += [making_section(release), checking(release, file_name)]
    title = "Calibration report" if federation is None else "Federated calibration report"

    # The promise as the heading, and the facts of the release.
    lead = say("meaning", "broken") if broken else headline(release)
    first = (("threshold", described.lead.removeprefix("threshold ")),) if described.lead else ()
    warnings = tuple(_warnings(release, evaluation))
    return Section(title, lead, (*first, *described.facts), warnings=warnings, parts=tuple(parts))


def _warnings(release: Release, evaluation: Evaluation | None) -> Iterator[str]:
    """What must be read first: a broken promise, a useless threshold, missing privacy, parts covered less."""
    shortfalls = {} if evaluation is None else evaluation.shortfalls
    yield from (sentence_of(label, shortfall) for label, shortfall in shortfalls.items())
    if all(threshold.excludes_nothing for threshold in release.parts.values()):
        everything = meaning_of_infinity(release.first.score).capitalize()
        yield say("meaning", "infinite", everything=everything, noun=noun(release))
    yield from map(as_sentence, remarks(release))
    yield from protection_warnings(release.privacy)

    # Of parts that are covered less, the first finding is enough.
    if evaluation is not None and not shortfalls:
        how = "privately" if evaluation.private else "which is not private"
        sentences = [sentence for finding in evaluation.findings.values() for sentence in finding.sentences]
        if sentences:
            yield say("evaluation", "short", how=how, sentence=sentences[0])


def about(release: Release) -> Section:
    """Metadata of a release, and the options that would state missing ones.

    Examples
    --------
    >>> import confide, numpy as np
    >>> about(confide.calibrate(np.linspace(0, 1, 2000), 0.1, 1.0, about={"model": "resnet"})).facts[:2]
    (('model', 'resnet'), ('version of the model', 'not stated'))
    """
    facts = tuple((name, text or "not stated") for name, text in about_facts(release, EXPECTED))
    missing = " ".join(f"--set about.{key}=TEXT" for key in EXPECTED if key not in release.about)
    how = say("about", "how", options=missing)
    return Section("Model, data, date and purpose", facts=facts, notes=(how,) if missing else ())


def checking(release: Release, file_name: str) -> Section:
    """How readers check the file of a release."""
    guarded = f"./{file_name}" if file_name.startswith("-") else file_name
    facts = (("command", f"confide show {shlex.quote(guarded)}"), ("SHA-256 of the file", release.checksum))
    return Section("How to check it", say("check", "lead"), facts)


def price_section(plan: Plan, name: str) -> Section:
    """What privacy costs at a plan's point, from public numbers; `name` is that of sets or intervals."""
    longer = "longer intervals" if name == "interval" else "larger sets"
    note = say("price", "note", typical=plan.typical_scores)
    return Section("What privacy costs", say("price", "lead", longer=longer), parts=describe(plan).parts, notes=(note,))


def sizes(known: int | None, least: int | None) -> list[int]:
    """Numbers of records for which the variation of coverage is stated: the known one, or several from `least` on."""
    least = least or 1
    return [max(1, known)] if known is not None else [n for n in SECRET_SIZES if n >= least] or [least]


def _plan(release: Release) -> Plan | None:
    """The plan of a release with one threshold at its public or noisy number of records; None for other methods."""
    first = release.first
    terms = terms_of(release)
    if release.by is not None or not terms or not isinstance(first.mechanism, Slopes):
        return None
    n = records_of_design(first) if first.size is None else max(first.guarantee.n_min or 1, first.size.counted)
    return make_plan(terms[None], n)


def _failures(release: Release) -> dict[str, Failure]:
    """The law of coverage of a release with one threshold, by number of records; empty if there is none."""
    first = release.first
    if release.by is not None or first.excludes_nothing:
        return {}
    known = first.size.counted if first.size is not None and first.guarantee.sized else first.n
    try:
        if first.mechanism is None:
            return {"all silos": first.coverage_failure()}
        return {f"{n:,}": first.coverage_failure(n) for n in sizes(known, first.guarantee.n_min)}
    except InputError:  # a sum of noisy counts, or a method without a law
        return {}


# An evaluation


def evaluation_of(release: Release, evaluation: Evaluation | str | Path | None) -> Evaluation | None:
    """An evaluation, or its file, which must be one of this release."""
    measured = Evaluation.load(evaluation) if isinstance(evaluation, str | Path) else evaluation
    if measured is not None and not isinstance(measured, Evaluation):
        raise InputTypeError("evaluation", "must be an Evaluation or a file name", type(measured).__name__)
    return None if measured is None else measured.of(release)


def evaluation_section(evaluation: Evaluation) -> Section:
    """The description of an evaluation, with pictures of its tables."""
    # Each finding, with its notes as warnings
    described = describe(evaluation)
    parts = tuple(
        replace(
            section,
            warnings=section.notes,
            notes=(),
            parts=tuple(_pictures(evaluation, finding)),
        )
        for section, finding in zip(described.parts, evaluation.findings.values(), strict=True)
    )
    # Numbers that may not be published, or the privacy of those that may
    title = "Measured on labelled records"
    if not evaluation.private:
        return Section(title, warnings=(say("evaluation", "bare"),), parts=parts)
    lead = say("evaluation", "private", privacy=evaluation.privacy)
    notes = (*described.notes, f"SHA-256 of the evaluation’s file: {evaluation.checksum}")
    return Section(f"{title}, privately", lead, parts=parts, notes=notes)


def _pictures(evaluation: Evaluation, finding: Finding) -> Iterator[Section]:
    """A picture of the coverage by each kind of parts; none of losses."""
    for table in finding.tables if evaluation.query.loss is None else ():
        if any(row.value is not None for row in table):
            yield Section("", picture=partial(plot_coverage, table))


# Silos


def silos(release: Release, answers: Sequence[str]) -> Section | None:
    """Section about the silos; None for a calibration without silos. Answers must give the released threshold."""
    # Answers can be shown for one threshold.
    if not isinstance(release, FederatedRelease):
        require("answers", not answers, "must be left out: the calibration is not federated")
        return None
    is_single = release.by is None
    require("answers", is_single or not answers, "must be left out: the calibration has several thresholds")

    # One row for each silo, and for each message of a sender that is not in the plan.
    plan = release.plan
    replies = _replies(release, answers)
    rows = [_silo_row(release, replies, i) for i in range(len(plan.silos))]
    known = {silo.name for silo in plan.silos}
    rows += [
        ("unknown sender", "", "", "", f"left out: {CODES[why]}", "")
        for name, why in release.refused
        if name not in known
    ]

    # What was sent; replies that are far from each other indicate silos that are not IID.
    sent = say("silos", "single" if plan.channel.single_replies else "sum")
    lead = f"{len(release.answered)} of {len(plan.silos)} silos answered. {sent}"
    table = Table(("Silo", "Records", "Target rank", "ε", "State", "Answer"), tuple(rows), "The silos of the plan")
    far = distant_replies(plan, replies)
    return Section("The silos", lead, tables=(table,), warnings=(as_sentence(far),) if far else ())


def _silo_row(release: FederatedRelease, replies: Mapping[str, float], i: int) -> tuple[str, ...]:
    plan = release.plan
    refused = dict(release.refused)
    silo = plan.silos[i]
    size = "secret" if silo.size is None else f"{silo.size:,}"
    targets = dict.fromkeys(threshold.target_rank(i) for threshold in plan.different)
    rank = "; ".join("in the sum" if target is None else number(float(target)) for target in targets)
    if silo.name in release.answered:
        state = "answered"
    elif silo.name in refused:
        state = f"left out: {CODES[refused[silo.name]]}"
    else:
        state = "did not answer"
    answer = number(replies[silo.name]) if silo.name in replies else ""
    return (silo.name, size, rank, number(plan.loss(i)), state, answer)


def _replies(release: FederatedRelease, answers: Sequence[str]) -> dict[str, float]:
    """The replies of the given answers, which give the released threshold, or are some of those that count."""
    accepted, _ = read_answers(release.plan, answers, drop_refused=False)
    replies = replies_of(release.plan, accepted)
    threshold = release.first
    assert isinstance(threshold, FederatedThreshold)
    if replies and set(replies) == set(release.answered):
        ordered = [*replies.values(), math.inf]
        released = ordered[min(threshold.k, len(replies) + 1) - 1]
        must = "must be those of this threshold; these give another threshold"
        require("answers", released == release.threshold, must)
    else:
        counted = set(replies) <= set(release.answered)
        require("answers", counted, "must come from silos with counted answers; some silos were left out")
    return replies


# A plan


def plan_section(plan: Plan) -> Section:
    """The whole description of a plan for a page."""
    # What is promised.
    described = describe(plan)
    law = law_of(plan.candidates)
    name = "interval" if law and law.shape.has_unit else "set"
    promised = promise(plan.guarantee, f"in the {name}")

    # What privacy costs around the plan.
    around = [max(1, round(plan.n * factor)) for factor in AROUND]
    picture = partial(plot_price, plan, epsilons=[plan.terms.epsilon], records=around)

    # One part for each question.
    parts = [
        replace(price_section(plan, name), picture=picture),
        Section("What will be promised", f"{promised} {explanation(plan.guarantee)}"),
        protection(plan.privacy),
    ]
    if failures := _failures_of_plan(plan):
        parts.append(variation(failures, float(plan.terms.level)))
    parts.append(Section("What will be run", facts=mechanism_facts(plan.mechanism, plan.candidates.size)))
    warnings = (*described.warnings, *protection_warnings(plan.privacy))
    return Section("Plan of a private calibration", promised, described.facts, warnings=warnings, parts=tuple(parts))


def _failures_of_plan(plan: Plan) -> dict[str, Failure]:
    """The law of coverage of a plan, by number of records; empty if its mechanism has none."""
    terms = plan.terms
    mechanism = plan.mechanism
    failures: dict[str, Failure] = {}
    for n in sizes(plan.n if terms.sized else plan.guarantee.n, terms.n_min):
        ranks = None if mechanism is None else mechanism.rank_law(n, plan.candidates.size)
        if ranks is not None:
            failures[f"{n:,}"] = partial(law_failure, ranks, n)
    return failures
