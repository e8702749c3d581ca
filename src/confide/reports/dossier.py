"""A dossier: which file of confide is evidence for which requirement of the EU AI Act and of the FDA.

The requirements are rows of `assets/requirements.csv`, in the words of this library and shorter than in the law. A row
names kinds of evidence, each of which is a text about a file. Without such a file the dossier says so.
"""

import csv
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files as resources
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from confide.errors import InputError, InputTypeError
from confide.evaluation import Evaluation, LevelEvaluation, PrivateEvaluation, load_evaluation
from confide.federated import FederatedPlan, FederatedRelease, SeveralPlans, SiloReport, plan_of, read_plan
from confide.ledger import Schedule
from confide.releases import ABOUT, Release, chain_section, facts_of, load, load_release, making_facts, verify_lineage
from confide.reports.markdown_page import MarkdownPage
from confide.reports.page import check_title
from confide.reports.protection import limits, metadata
from confide.support import FileKind, Section, Table, describe, kind_of, read_as
from confide.watching import Watch

NOT_SHOWN = "not shown by these files"
LEAD = f"""This dossier is not legal advice. It lists what files of confide contribute to technical documentation.
A row with evidence does not state that a requirement is met, or that it applies.
A row without evidence is marked: {NOT_SHOWN}. Requirements are shortened; read the original texts."""
SIGNED = "a signed file; `confide verify --signer` compares the key"
PURPOSE = [ABOUT[key] for key in ("purpose", "responsible", "contact", "model", "version", "date")]
REQUIREMENTS = "assets/requirements.csv"
HEADS = ("Place", "Requirement", "Evidence", "File, SHA-256")


@dataclass(frozen=True)
class EvidenceFile:
    """A file, the SHA-256 of its bytes, the value in it, and the release, plan or silo that it is about, if any."""

    name: str
    digest: str
    kind: FileKind
    value: Any
    about: str | None


def dossier(files: Sequence[str | Path], *, title: str | None = None) -> MarkdownPage:
    """Map a release and files about it to requirements of the EU AI Act and of the FDA; this is no legal advice.

    The document has a table for Annex IV and one for Article 72 of the EU AI Act, and one for a predetermined change
    control plan of the FDA. A row states a requirement, the evidence, and the file with the beginning of its SHA-256.
    Requirements without evidence are listed as well. The last part describes every file.

    Parameters
    ----------
    files
        First the current release; then earlier releases of its chain, evaluations, watches, schedules, and for a
        federation its plan and reports of its silos.
    title
        Heading, 1 to 200 printable characters.

    Raises
    ------
    InputError, InputTypeError
        If the first file is no release, another file is of another kind or about another release, or the title cannot
        be used.
    FormatError
        If a file was altered, or claims more than follows.

    Examples
    --------
    >>> import confide, numpy as np, tempfile
    >>> released = confide.calibrate(np.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="lac")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     released.save(f"{folder}/released.json")
    ...     written = dossier([f"{folder}/released.json"], title="Triage")
    >>> written
    MarkdownPage('Triage')
    >>> next(line for line in written.text.splitlines() if line.startswith("| 9 |"))
    '| 9 | system to evaluate performance after placing on the market | not shown by these files |  |'
    """
    check_title(title)
    if isinstance(files, str | Path) or not files:
        raise InputTypeError("files", "must be a sequence of file names, first a release", type(files).__name__)
    read = [_read(Path(path)) for path in files]
    _check(read[0], read[1:])
    asked = csv.DictReader(resources("confide.reports").joinpath(REQUIREMENTS).read_text("utf-8").splitlines())
    tables = [(law, tuple(_rows(rows, read))) for law, rows in groupby(asked, lambda row: row["law"])]
    parts = (
        *(Section(law, tables=(Table(HEADS, rows, law),)) for law, rows in tables),
        Section("Limits of the release", facts=limits(read[0].value)),
        Section("Files", parts=tuple(map(_described, read))),
    )
    return MarkdownPage(Section(title or "Dossier", LEAD, parts=parts))


def _rows(asked: Iterable[Mapping[str, str]], files: Sequence[EvidenceFile]) -> Iterator[tuple[str, ...]]:
    """A row for each piece of evidence, the requirement in the first of them."""
    for row in asked:
        found = [(text, f"{file.name}, {file.digest[:16]}...") for text, file in _findings(row["evidence"], files)]
        for number, finding in enumerate(found or [(NOT_SHOWN, "")]):
            yield row["place"], "" if number else row["requirement"], *finding


def _findings(evidence: str, files: Sequence[EvidenceFile]) -> list[tuple[str, EvidenceFile]]:
    """Texts of these kinds of evidence, each with its file."""
    found = []
    for name in evidence.split():
        kinds, text_of = EVIDENCE[name]
        about = files[:1] if kinds is None else [file for file in files[1:] if isinstance(file.value, kinds)]
        found += [(text, file) for file in about if (text := text_of(file))]
    return found


def _described(file: EvidenceFile) -> Section:
    section = describe(file.value)
    return replace(section, title=file.name, facts=(("kind", file.kind), ("SHA-256", file.digest), *section.facts))


# Evidence, from the descriptions of files


def _named(facts: Iterable[tuple[str, str | None]], *names: str) -> str:
    return "; ".join(f"{name}: {text}" for name, text in facts if name in names and text)


def _facts(value: object) -> list[tuple[str, str]]:
    """The facts of a value, and of its parts."""
    section = describe(value)
    return [*section.facts, *(fact for part in section.parts for fact in part.facts)]


def _chain(file: EvidenceFile) -> str:
    if (chain := chain_section(file.value)) is None:
        return ""
    (table,) = chain.tables
    rows = [", ".join(map(" ".join, zip(table.heads, row, strict=True))) for row in table.rows]
    return f"{len(rows)} releases, {_named(chain.facts, 'all together')}: {'; '.join(rows)}"


def _coverage(file: EvidenceFile) -> str:
    """The first fact about each level of an evaluation."""
    private = "private" if isinstance(file.value, PrivateEvaluation) else "not private"
    facts = [f"{part.title} {' '.join(part.facts[0])}".strip() for part in describe(file.value).parts]
    return f"{'; '.join(facts)} ({private})"


def _parts(file: EvidenceFile) -> str:
    """Coverage of some classes and groups."""
    named = [fact for fact in map(" ".join, _facts(file.value)) if re.match(r"(worst )?(class|group) ", fact)]
    return "; ".join(named[:6]) + ("; and more in the file" if len(named) > 6 else "")


def _watched(file: EvidenceFile) -> str:
    """What a watch promises, without the release that it belongs to."""
    facts = [": ".join(fact) for fact in _facts(file.value) if "SHA-256" not in fact[0]]
    return "; ".join((describe(file.value).lead, *facts))


def _nameless(file: EvidenceFile) -> str:
    return f"{describe(file.value).lead} (this file does not name the release)"


_EVALUATIONS, _PLANS = (Evaluation, LevelEvaluation, PrivateEvaluation), (FederatedPlan, SeveralPlans)
EVIDENCE: Mapping[str, tuple[tuple[type, ...] | None, Callable[[EvidenceFile], str]]] = {
    "purpose": (None, lambda file: _named(metadata(file.value)["rows"], *PURPOSE)),
    "data": (None, lambda file: _named(metadata(file.value)["rows"], ABOUT["data"], ABOUT["outputs"])),
    "promise": (None, lambda file: facts_of(file.value)["promise"]),
    "privacy": (None, lambda file: facts_of(file.value)["privacy"]),
    "mechanism": (None, lambda file: _named(making_facts(file.value.first), "mechanism", "method", "certified by")),
    "records": (None, lambda file: _named(making_facts(file.value.first), "calibration records")),
    "limits": (None, lambda file: f"{len(limits(file.value))} limits, listed below"),
    "thresholds": (None, lambda file: f"a threshold for each {file.value.by}" if file.value.disjoint else ""),
    "signature": (None, lambda file: SIGNED if getattr(file.value, "signature", file.kind is FileKind.SIGNED) else ""),
    "chain": (None, _chain),
    "earlier": ((Release,), lambda file: f"an earlier release of the chain: {describe(file.value).lead}"),
    "coverage": (_EVALUATIONS, _coverage),
    "parts": (_EVALUATIONS, _parts),
    "silos": ((SiloReport,), _nameless),
    "schedule": ((Schedule,), _nameless),
    "federation": (_PLANS, lambda file: _named(_facts(file.value), "method", "silos", "privacy of an answer")),
    "watch": ((Watch,), _watched),
    "looks": ((Watch,), lambda file: "; ".join(describe(file.value).notes) if file.value.looks else ""),
}
"""Kinds of evidence: types of values, or None for the current release, and the text about a file."""


# The files

_LOADERS: Mapping[FileKind, tuple[Callable[[Path], Any], str | None]] = {
    FileKind.RELEASE: (load_release, None),
    FileKind.SIGNED: (load_release, None),
    FileKind.EVALUATION: (load_evaluation, "calibration"),
    FileKind.PRIVATE_EVALUATION: (load, "calibration"),
    FileKind.WATCH: (load, "settings.release"),
    FileKind.SCHEDULE: (Schedule.load, None),
    FileKind.REPORT: (SiloReport.load, "silo"),
    FileKind.PLAN: (lambda path: read_as(path, read_plan)[0], "digest"),
}
"""Readers of files, and the attribute that names what the file is about."""


def _read(path: Path) -> EvidenceFile:
    kind = kind_of(path)
    if kind not in _LOADERS:
        remedy = "Give releases, evaluations, watches, schedules, federated plans and reports of silos"
        raise InputError("files", f"{str(path)!r} is {kind}, which is no evidence here", remedy=remedy)
    loader, attribute = _LOADERS[kind]
    value = loader(path)
    about = None if attribute is None else attrgetter(attribute)(value)
    return EvidenceFile(path.name, hashlib.sha256(path.read_bytes()).hexdigest(), kind, value, about)


def _check(current: EvidenceFile, others: Sequence[EvidenceFile]) -> None:
    """Check that all files are about the release or its chain."""
    release = current.value
    if not isinstance(release, Release):
        raise InputError("files", "must begin with the current release", str(current.kind))
    if wrong := verify_lineage(release, [file.value for file in others if isinstance(file.value, Release)]).wrong:
        raise InputError("files", f"must have earlier releases of one chain only: {wrong[0]}")
    known: set[str | None] = {None, release.checksum, *(part.checksum for part in release.parts.values())}
    known |= {one.checksum for part in release.parts.values() for one in part.predecessors}
    if isinstance(release, FederatedRelease):
        known |= {plan_of(release).digest, *(silo.name for silo in plan_of(release).silos)}
    for file in others:
        if file.about not in known:
            raise InputError("files", f"{file.name!r} must be about {current.name!r} or its chain")
