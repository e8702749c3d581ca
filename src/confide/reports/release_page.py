"""A release as a page for three readers: users of the sets, people responsible for privacy, and people who check it."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from confide.core import (
    Plan,
    Release,
    about_facts,
    make_plan,
    making_section,
    meaning_of_infinity,
    records_of_design,
    remarks,
    terms_of,
)
from confide.errors import InputError, InputTypeError
from confide.evaluation import Evaluation, Example, Finding
from confide.ledger import Ledger
from confide.mechanisms import Slopes
from confide.plots import plot_coverage
from confide.reports.example import worked_example
from confide.reports.ledger_page import spending
from confide.reports.plan_page import price_section, sizes
from confide.reports.silos import silos
from confide.reports.words import (
    Failure,
    headline,
    limits,
    meaning,
    noun,
    protection,
    protection_warnings,
    say,
    variation,
)
from confide.sets import sentence_of
from confide.support import Section, Table, describe


def evaluation_of(release: Release, evaluation: Evaluation | str | Path | None) -> Evaluation | None:
    """An evaluation, or its file, which must be one of this release."""
    measured = Evaluation.load(evaluation) if isinstance(evaluation, str | Path) else evaluation
    if measured is not None and not isinstance(measured, Evaluation):
        raise InputTypeError("evaluation", "must be an Evaluation or a file name", type(measured).__name__)
    return None if measured is None else measured.of(release)


def release_section(
    release: Release, evaluation: Evaluation | None, answers: Sequence[str], ledger: Ledger | None, file_name: str
) -> Section:
    """The whole description of a release for a page."""
    described, shortfalls = describe(release), {} if evaluation is None else evaluation.shortfalls
    broken = any(shortfall.is_broken for shortfall in shortfalls.values())
    name, federation = noun(release), silos(release, answers)

    # What everybody must read first: a broken promise, a useless threshold, missing privacy, parts covered less.
    warnings = [sentence_of(label, shortfall) for label, shortfall in shortfalls.items()]
    if all(threshold.excludes_nothing for threshold in release.parts.values()):
        everything = meaning_of_infinity(release.first.score).capitalize()
        warnings.append(say("meaning", "infinite", everything=everything, noun=name))
    warnings += [f"{note[0].upper()}{note[1:]}." for note in remarks(release)]
    warnings += protection_warnings(release.privacy)
    if evaluation is not None and not shortfalls:
        how = "privately" if evaluation.private else "which is not private"
        sentences = [sentence for finding in evaluation.findings.values() for sentence in finding.sentences]
        warnings += [say("evaluation", "short", how=how, sentence=sentence) for sentence in sentences[:1]]

    # One part for each question, those of most readers first.
    failures, plan = _failures(release), _plan(release)
    parts = (
        about(release),
        meaning(release, worked_example(release), broken=broken),
        *([] if evaluation is None else [evaluation_section(evaluation)]),
        protection(release.privacy, Section("What is not protected or promised", facts=limits(release))),
        *([] if ledger is None else [spending(release, ledger)]),
        *([variation(failures, float(1 - release.first.alpha))] if failures else []),
        *([] if plan is None else [price_section(plan, name)]),
        *([] if federation is None else [federation]),
        making_section(release),
        check(release, file_name),
    )
    title = "Calibration report" if federation is None else "Federated calibration report"

    # A heading for people, and the facts of the release.
    lead = say("meaning", "broken") if broken else headline(release)
    first = (("threshold", described.lead.removeprefix("threshold ")),) if described.lead else ()
    return Section(title, lead, (*first, *described.facts), warnings=tuple(warnings), parts=parts)


EXPECTED = ("model", "version", "data", "purpose", "responsible", "contact", "date")
"""Metadata that every release should state; other metadata are shown if a release states them."""


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


def check(release: Release, file_name: str) -> Section:
    """How readers check the file of a release."""
    guarded = f"./{file_name}" if file_name.startswith("-") else file_name
    facts = (("command", f"confide show {shlex.quote(guarded)}"), ("SHA-256 of the file", release.checksum))
    return Section("How to check it", say("check", "lead"), facts)


def _plan(release: Release) -> Plan | None:
    """The plan of a release with one threshold at its public or noisy number of records; None for other methods."""
    first, terms = release.first, terms_of(release)
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


def evaluation_section(evaluation: Evaluation) -> Section:
    """The description of an evaluation, with pictures of its tables and the records that may be shown."""
    described, findings = describe(evaluation), evaluation.findings.values()
    shown = [(*_pictures(evaluation, finding), *_examples(finding.examples)) for finding in findings]
    named = zip(described.parts, shown, strict=True)
    parts = tuple(replace(section, warnings=section.notes, notes=(), parts=added) for section, added in named)
    bare, title = (say("evaluation", "bare"),), "Measured on labelled records"
    if not evaluation.private:
        return Section(title, warnings=bare, parts=parts)
    lead = say("evaluation", "private", privacy=evaluation.privacy)
    notes = (*described.notes, f"SHA-256 of the evaluation’s file: {evaluation.checksum}")
    return Section(f"{title}, privately", lead, parts=parts, notes=notes)


def _pictures(evaluation: Evaluation, finding: Finding) -> Iterator[Section]:
    """A picture of the coverage by each kind of parts; none of losses."""
    for table in finding.tables if evaluation.query.loss is None else ():
        if any(row.value is not None for row in table):
            yield Section("", picture=partial(plot_coverage, table))


def _examples(examples: Sequence[Example]) -> tuple[Section, ...]:
    if not examples:
        return ()
    rows = []
    for place, example in enumerate(examples, 1):
        record = f"{place}" if example.group is None else f"{place}, group {example.group}"
        held = "contained" if example.truth in example.members else "missed"
        rows.append((record, ", ".join(example.members) or "the empty set", example.truth, held))
    caption = say("evaluation", "examples")
    return (Section("", tables=(Table(("Record", "Set", "True label", "It is"), tuple(rows), caption),)),)
