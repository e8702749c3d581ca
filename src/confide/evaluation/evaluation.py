"""An evaluation as a value: a public query and counts, with noise or without. Everything else follows from them.

A file contains the query and the counts. Coverage, intervals, shares and means are computed by one function
(`confide.evaluation.estimates`), by the maker and by every reader.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, Self

import msgspec
import numpy as np

from confide.core import Document, Release, documents
from confide.errors import FormatError, InputError
from confide.evaluation.estimates import Bounds, Estimates
from confide.evaluation.parts import CONFIDENCE, CoverageTable, Part, TableKind, format_interval_ends
from confide.evaluation.query import OTHER, SIDES, CountQuery, statements_of
from confide.guarantee import coverage_text
from confide.mechanisms import PrivacyStatement
from confide.sets import CHANCE, Shortfall, sentence_of, shortfall_at
from confide.support import (
    MOST_RECORDS,
    UNUSABLE,
    VERSIONS,
    Described,
    Facts,
    Fields,
    FileKind,
    Level,
    Section,
    exact_level,
    foreign_file,
    library_versions,
    parse_document,
    refused_content,
    shapes,
    short_number,
)

KIND = "confide/evaluation"
MOST_EXAMPLES = 1000
MOST_NOISY = 4 * MOST_RECORDS
"""The largest count with noise."""

NOT_PRIVATE = "These numbers are computed from the records without noise: they are not private."


@dataclass(frozen=True)
class Example:
    """A record that the user chose to show: its set, its true label, and its group if groups have thresholds."""

    members: tuple[str, ...]
    truth: str
    group: str | None = None


class Measured(Described):
    """Coverage of all records and by part, at one statement of a release."""

    coverage: Part
    tables: tuple[CoverageTable, ...]
    shares: CoverageTable | None

    def table(self, kind: TableKind) -> CoverageTable:
        """Coverage of the parts of one kind; without parts if it was not counted."""
        return next((table for table in self.tables if table.kind == kind), CoverageTable(kind, ()))

    @property
    def classes(self) -> CoverageTable:
        """Coverage by true class."""
        return self.table("class")

    @property
    def groups(self) -> CoverageTable:
        """Coverage by group, with or without thresholds of their own."""
        return self.table("group")

    @property
    def sizes(self) -> CoverageTable:
        """Coverage by set size, from 1 on."""
        return self.table("size")

    @property
    def widths(self) -> CoverageTable:
        """Coverage by interval width."""
        return self.table("width")

    @property
    def ends(self) -> CoverageTable:
        """Coverage of the two ends of intervals, if each has its own threshold."""
        return self.table("end")

    @property
    def singletons(self) -> float | None:
        """Share of sets with one class; None without sets."""
        return self._share("1")

    @property
    def empty(self) -> float | None:
        """Share of empty sets; None without sets."""
        return self._share("0")

    def _share(self, name: str) -> float | None:
        if self.shares is None or self.shares.kind != "size":
            return None
        return next((part.value for part in self.shares if part.name == name), 0.0)


@dataclass(frozen=True, repr=False)
class Finding(Measured):
    """What the counts state about one promise: that of the release, of a level, or of an end of its intervals.

    Parameters
    ----------
    name
        Name of the statement.
    coverage
        Coverage over all records. For a bound on a loss it is that of critical thresholds.
    tables
        Coverage by class, group, set size, interval width or end.
    shares
        Share of each set size or interval width; None if they were not counted.
    mean_size, mean_size_bounds
        Mean set size; with noise also its bounds, which hold together with all intervals.
    mean_width
        Mean interval width.
    shortfall
        Finding that coverage over all records lies below the promise by more than chance in calibration explains; else
        None. Without the evaluated release it is not known whether an unlucky calibration explains it.
    examples
        Records that the user chose to show; usually empty.
    """

    name: str
    coverage: Part
    tables: tuple[CoverageTable, ...]
    shares: CoverageTable | None
    mean_size: float | None
    mean_size_bounds: Bounds | None
    mean_width: float | None
    shortfall: Shortfall | None
    examples: tuple[Example, ...] = ()

    @property
    def label(self) -> str:
        """Name of the statement for people."""
        return f"alpha {float(Fraction(self.name[6:])):g}" if self.name.startswith("alpha ") else self.name

    def _section(self) -> Section:
        return Section("Finding", self._brief())

    def _brief(self) -> str:
        return f"{self.name!r}: {self.coverage.estimate}" if self.name else self.coverage.estimate


@dataclass(frozen=True, repr=False)
class Evaluation(Document, Measured):
    """Coverage and sizes on labelled records: a table of counts, by part and by outcome.

    With an epsilon the counts have noise, and the evaluation may be published: its intervals hold for finite samples,
    include the noise, and hold all at once with probability `confidence`. Without an epsilon it is **not private**, and
    each interval is exact by itself. Records must be independent of each other and of the calibration set.

    Its properties are those of the release as a whole, or of its first level; `evaluation[alpha]` has those of a level.

    Parameters
    ----------
    query
        The public query.
    counts
        Counts of each table, in the order of its cells.
    confidence
        Confidence of the intervals.
    sums
        Without noise: sums of set sizes, interval widths or areas of each table.
    examples
        Records that the user chose to show, for each level.
    versions
        Versions of the libraries that drew the noise.
    release
        The evaluated release, if it is known; files do not contain it.

    Examples
    --------
    >>> import confide
    >>> rng = np.random.default_rng(0)
    >>> released = confide.calibrate(rng.random(2000), alpha=0.1, epsilon=1.0, score="lac")
    >>> found = confide.evaluate(released, scores=rng.random(5000), epsilon=1.0)
    >>> print(found.privacy)
    1-differential privacy for adding or removing one record
    >>> 0.87 < found.coverage.low < found.coverage.high < 0.93
    True
    """

    query: CountQuery
    counts: tuple[tuple[float, ...], ...]
    confidence: float = CONFIDENCE
    sums: tuple[tuple[float, ...], ...] = ()
    examples: tuple[tuple[Example, ...], ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict, hash=False)
    release: Release | None = field(default=None, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "versions", MappingProxyType(dict(self.versions)))
        object.__setattr__(self, "confidence", float(exact_level("confidence", self.confidence)))
        q = self.query
        if [len(cells) for cells in self.counts] != q.cells:
            raise InputError("counts", "must have one number for each cell of each table")
        if any(abs(count) > MOST_NOISY for cells in self.counts for count in cells):
            raise InputError("counts", "must not exceed the largest number of records with noise")
        q.family_error(1 - self.confidence)
        if q.epsilon is None:
            _check_exact(self)
        elif self.sums or self.examples:
            raise InputError("sums", "must be left out of counts with noise, like examples")

    @classmethod
    def empty_of(cls, query: CountQuery, confidence: float) -> "Evaluation":
        """Evaluation with all counts 0, from public numbers alone."""
        return cls(query, tuple((0,) * cells for cells in query.cells), confidence, versions=library_versions())

    # What it states.

    @property
    def calibration(self) -> str:
        """SHA-256 of the evaluated release."""
        return self.query.calibration

    @property
    def private(self) -> bool:
        """Whether the counts have noise."""
        return self.query.epsilon is not None

    @property
    def privacy(self) -> PrivacyStatement:
        """Privacy loss of the evaluation; infinite without noise."""
        return self.query.privacy

    @property
    def epsilon(self) -> float:
        """Privacy loss of one person; infinite without noise."""
        return self.privacy.epsilon

    @property
    def _estimates(self) -> Estimates:
        return Estimates(self.query, self.counts, self.sums, self.query.family_error(1 - self.confidence))

    @cached_property
    def findings(self) -> Mapping[str, Finding]:
        """Findings about the release as a whole (""), each level (`alpha 1/10`), and the ends of intervals."""
        return {name: self._finding(place, name) for place, name in enumerate(self.query.statements)}

    def _finding(self, place: int, name: str) -> Finding:
        estimates = self._estimates
        coverage, shortfall = estimates.total(name), self._shortfall(name)
        size, bounds = estimates.mean_size(name)
        return Finding(
            name=name,
            coverage=coverage,
            tables=estimates.tables(name, advised=shortfall is None),
            shares=estimates.shares(name),
            mean_size=size,
            mean_size_bounds=bounds,
            mean_width=coverage.mean_width,
            shortfall=shortfall,
            examples=self.examples[place] if place < len(self.examples) else (),
        )

    @property
    def finding(self) -> Finding:
        """Finding about the release as a whole; for several levels, about the first."""
        return next(iter(self.findings.values()))

    @property
    def levels(self) -> Mapping[Fraction, Finding]:
        """Findings by miscoverage level, for a release with several levels; else empty."""
        named = self.findings.items() if self.query.outcome == "levels" else ()
        return {Fraction(name[6:]): finding for name, finding in named}

    def __getitem__(self, alpha: Level) -> Finding:
        level = exact_level("alpha", alpha)
        if level not in self.levels:
            known = ", ".join(f"{float(a):g}" for a in self.levels) or "none"
            raise InputError("alpha", f"must be one of the levels {known}", got=f"{float(level):g}")
        return self.levels[level]

    @property
    def coverage(self) -> Part:  # type: ignore[override]
        """Coverage over all records with its interval."""
        return self.finding.coverage

    @property
    def tables(self) -> tuple[CoverageTable, ...]:  # type: ignore[override]
        """Coverage by part, one table for each kind of parts."""
        return self.finding.tables

    @property
    def shares(self) -> CoverageTable | None:  # type: ignore[override]
        """Share of each set size or interval width."""
        return self.finding.shares

    @property
    def mean_size(self) -> float | None:
        """Mean set size."""
        return self.finding.mean_size

    @property
    def mean_width(self) -> float | None:
        """Mean interval width."""
        return self.finding.mean_width

    @property
    def loss(self) -> float | None:
        """The bounded loss, averaged over all records; None for a coverage guarantee."""
        if self.query.loss is None or self.coverage.value is None:
            return None
        return self.coverage.as_loss(self.query.loss[1]).value

    @property
    def area_ratio(self) -> float | None:
        """For masks: predicted area divided by true area, both summed over images; NaN without any true area."""
        return self._estimates.area_ratio

    def interval(self, confidence: Level = CONFIDENCE) -> Bounds:
        """Interval of the coverage over all records, by itself, noise included.

        Examples
        --------
        >>> import confide
        >>> released = confide.calibrate(np.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="lac")
        >>> found = confide.evaluate(released, scores=np.linspace(0, 1, 500))
        >>> narrow, wide = found.interval(0.8), found.interval("0.999")
        >>> wide[0] < narrow[0] < found.coverage.value < narrow[1] < wide[1]
        True
        """
        part = self._estimates.total(self.finding.name, 1 - float(exact_level("confidence", confidence)))
        return part.low, part.high

    # A broken guarantee.

    def of(self, release: Release) -> Self:
        """Return a copy that knows its release, which decides whether chance in calibration explains a shortfall.

        Raises
        ------
        InputError
            If it is an evaluation of another release, or states other promises.
        """
        if self.calibration != release.checksum:
            raise InputError("evaluation", "must be one of this calibration", "one of another", "evaluate again")
        outcome, statements = statements_of(release)
        counted = "covered" if self.query.outcome == "area" else self.query.outcome
        own = {str(key): part.coverage for key, part in release.parts.items()} | {OTHER: 0.0}
        divided = [part for part in self.query.partitions if part.promised is not None]
        same = all(
            own.get(name) == level
            for part in divided
            for name, level in zip(part.names, part.promised or (), strict=True)
        )
        if (counted, dict(self.query.statements)) != (outcome, statements) or self.query.loss != release.bounded:
            raise InputError("evaluation", "must contain the promises of this calibration", "other promises")
        if not same or {part.kind for part in divided} != {release.by} & {"class", "group"}:
            raise InputError("evaluation", "must have the groups of this calibration", remedy="evaluate again")
        return replace(self, release=release)

    @property
    def shortfall(self) -> Shortfall | None:
        """The first finding that coverage lies below a promise by more than chance explains; None without one."""
        return next(iter(self.shortfalls.values()), None)

    @property
    def shortfalls(self) -> dict[str, Shortfall]:
        """Statements that cover less than promised beyond chance, by the label of the statement."""
        return {one.label: one.shortfall for one in self.findings.values() if one.shortfall is not None}

    def _shortfall(self, name: str) -> Shortfall | None:
        """Compare the upper limit of coverage with the promise, and with the law of coverage of a known release."""
        part = self._estimates.total(name, CHANCE / 2 if self.private else CHANCE)
        if part.value is None:
            return None
        promised, n = self.query.statements[name], self.query.n if self.private else part.n
        if self.release is not None:
            return shortfall_at(self._part_of(self.release, name), part.value, part.high, n)
        if part.high >= promised:
            return None
        return Shortfall(part.value, part.high, n, promised, "not read", loss=self.query.loss)

    @staticmethod
    def _part_of(release: Release, name: str) -> Release:
        """The release of one statement."""
        if release.by == "level":
            return release.at(Fraction(name[6:]))
        return release.alone(("low", "high")[SIDES.index(name) - 1]) if name else release

    # In words.

    def _section(self) -> Section:
        several = len(self.findings) > 1
        together = hold_together(self.findings, self.confidence), f"privacy: {self.privacy}"
        return Section(
            "Evaluation",
            warnings=tuple(sentence_of(name, one) for name, one in self.shortfalls.items()),
            parts=tuple(replace(self.describe(f), title=f.label if several else "") for f in self.findings.values()),
            notes=together if self.private else (NOT_PRIVATE,),
        )

    def describe(self, finding: Finding) -> Section:
        """Coverage or loss of all records, the promise, sizes, and a table for each kind of parts."""
        facts, tables = self._facts(finding), [table.as_table() for table in self.shown(finding)]
        return Section(finding.label, facts=facts, tables=tuple(tables), notes=self.sentences(finding))

    def shown(self, finding: Finding) -> list[CoverageTable]:
        """Tables of a finding, with losses if they are bounded; the ends of intervals have findings of their own."""
        loss, tables = self.query.loss, [table for table in finding.tables if table.kind != "end"]
        tables = tables if loss is None else [table.as_loss(loss[1]) for table in tables]
        return [*tables, *([finding.shares] if finding.shares is not None else [])]

    def sentences(self, finding: Finding) -> tuple[str, ...]:
        """Sentences about parts that are covered less than promised beyond chance; none for a bound on a loss."""
        tables = () if self.query.loss is not None else finding.tables
        return tuple(table.sentence for table in tables if table.below)

    def _facts(self, finding: Finding) -> Facts:
        """Coverage of all records, or their loss, the promise, and the sizes of all sets or intervals."""
        loss, part, bounds = self.query.loss, finding.coverage, finding.mean_size_bounds
        head, total = ("coverage", part) if loss is None else (f"loss {loss[0]!r}", part.as_loss(loss[1]))
        beyond = f", {'below' if loss is None else 'above'} the promise beyond chance" if part.below else ""
        rows = [(head, f"{total.estimate}{beyond}"), ("promise", self._promise(finding))]
        if finding.mean_size is not None:
            ends = "" if bounds is None else f" (interval {' to '.join(format_interval_ends(*bounds))})"
            rows.append(("classes per set, on average", f"{finding.mean_size:.4g}{ends}"))
        if finding.mean_width is not None:
            rows.append(("width of intervals, on average", short_number(finding.mean_width)))
        if self.area_ratio is not None:
            rows.append(("predicted area", f"{self.area_ratio:.2f} times the true area"))
        return tuple(rows)

    def _promise(self, finding: Finding) -> str:
        """The promise of a statement; that of the release in its words, if the release is known."""
        if self.release is not None and self.query.outcome != "sides":
            promises = self._part_of(self.release, finding.name).promises
            return "; ".join(f"for {name}: {text}" if name else text for name, text in promises.items())
        promised, loss = self.query.statements[finding.name], self.query.loss
        if loss is None:
            return f"coverage at least {coverage_text(promised)}"
        return f"at most {loss[1] * (1 - promised):.6g} in expectation"

    def _brief(self) -> str:
        first, short = self.finding, ", SURELY LESS THAN PROMISED" if self.shortfalls else ""
        size = "" if first.mean_size is None else f", mean size {first.mean_size:.4g}"
        width = "" if first.mean_width is None else f", mean width {first.mean_width:.4g}"
        promised = f"{coverage_text(first.coverage.promised or 0.0)} is promised"
        text = f"coverage {first.coverage.estimate}, {promised}{short}{size}{width}"
        if self.query.loss is not None:
            loss = first.coverage.as_loss(self.query.loss[1])
            text = f"loss {loss.estimate}, at most {loss.promised or 0.0:.6g} is promised{short}"
        if len(self.levels) > 1:
            values = (
                f"{one.label}: {'not known' if (v := one.coverage.value) is None else f'{v:.3f}'}"
                for one in self.levels.values()
            )
            n = "" if self.private else f", n={first.coverage.n}"
            text = f"coverage {', '.join(values)}{short}{n}"
        return f"{text}, {self.privacy.brief}"

    def fields(self) -> dict[str, Any]:
        """JSON values: the content of its file, and what follows from it by statement."""
        found = {
            name or "release": {**_without_none(msgspec.to_builtins(one)), "sentences": self.sentences(one)}
            for name, one in self.findings.items()
        }
        return {**json.loads(self.to_json()), "found": found}

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read an evaluation; all numbers are computed again from its counts.

        Raises
        ------
        FormatError
            If the text is not an evaluation, is damaged or altered, or contradicts itself.
        """
        if parse_document(text, "file", documents.MOST_CHARACTERS).get("kind") != KIND:
            raise foreign_file(text, FileKind.EVALUATION, "Make one with `confide evaluate --out FILE`")
        return super().from_json(text)


def hold_together(findings: Mapping[str, Finding], confidence: float) -> str:
    """Sentence about the simultaneous confidence of all intervals."""
    counted = (len(table) for one in findings.values() for table in one.tables if table.kind != "end")
    shared = (len(one.shares or ()) + (one.mean_size_bounds is not None) for one in findings.values())
    number = len(findings) + sum(counted) + sum(shared)
    together = f"the {number} intervals hold together" if number > 1 else "the interval holds"
    return f"{together} with probability {100 * confidence:g} %, noise included"


def _check_exact(evaluation: Evaluation) -> None:
    """Raise `InputError` if counts without noise contradict each other."""
    q, area = evaluation.query, evaluation.query.outcome == "area"
    cells = [np.array(c).reshape(q.shape(table)) for c, table in zip(evaluation.counts, q.tables, strict=True)]
    total, *others = cells
    if any((counts < 0).any() for counts in cells) or not 0 < total.sum() <= MOST_RECORDS:
        raise InputError("counts", "must be of at least one record, and not negative")
    measured = [math.prod(q.sums_shape(table)) for table in q.tables] if q.measure else []
    if [len(sums) for sums in evaluation.sums] != measured or any(s < 0 for sums in evaluation.sums for s in sums):
        raise InputError("sums", "must be one for each part and level, and not negative")
    for place, (counts, partition) in enumerate(zip(others, q.partitions, strict=True), start=1):
        expected = total
        if partition.statement:
            held, missed = q.statement_cells(partition.statement, ())
            expected = np.array([total[held].sum(), total[missed].sum()])
        if not area and not np.array_equal(counts.sum(axis=0), expected):
            raise InputError("counts", "must add up to those of all records in each partition")
        if partition.kind == "size":
            _check_sizes(counts, partition.edges, evaluation.sums[place] if evaluation.sums else ())
        if q.measure == "size" and not partition.statement:
            columns = np.array(evaluation.sums[place]).reshape(len(partition), -1)
            if columns.sum(axis=0).tolist() != list(evaluation.sums[0]):
                raise InputError("sums", "must add up to the labels in all sets")
    shown = {len(examples) for examples in evaluation.examples}
    if shown and (
        len(evaluation.examples) != q.levels or len(shown) != 1 or max(shown) > min(MOST_EXAMPLES, total.sum())
    ):
        raise InputError("examples", f"must be at most {MOST_EXAMPLES}, of the records, for each level")


def _check_sizes(counts: Any, edges: Sequence[float], sums: Sequence[float]) -> None:
    """Check that sets have as many labels as their sizes state, and that empty sets cover no label."""
    if edges != tuple(range(len(edges))) or counts[0, :-1].any():
        raise InputError("partitions", "must be of single sizes, of which 0 covers no label")
    if list(sums) != (counts.sum(axis=1) * np.array(edges)).tolist():
        raise InputError("sums", "must be the labels in sets of each size")


# As JSON.


class _File(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The content of a file, without kind, schema and checksum."""

    private: bool
    query: CountQuery
    confidence: float
    counts: tuple[tuple[int | float, ...], ...]
    sums: tuple[tuple[float | Literal["+inf"], ...], ...] = ()
    examples: tuple[tuple[Example, ...], ...] = ()
    versions: dict[str, str] = {}


def query_fields(query: CountQuery) -> dict[str, Any]:
    """JSON values of a query; together with the data they identify a request."""
    fields: dict[str, Any] = _without_none(msgspec.to_builtins(query))
    return fields


def _without_none(value: Any) -> Any:
    """JSON values without the fields that do not apply."""
    if isinstance(value, dict):
        return {name: _without_none(inner) for name, inner in value.items() if inner is not None}
    return [_without_none(inner) for inner in value] if isinstance(value, list | tuple) else value


def _content(evaluation: Evaluation) -> dict[str, Any]:
    sums = tuple(tuple("+inf" if math.isinf(one) else one for one in row) for row in evaluation.sums)
    file = _File(
        evaluation.private,
        evaluation.query,
        evaluation.confidence,
        evaluation.counts,
        sums,  # type: ignore[arg-type]  # +inf is a text
        evaluation.examples,
        dict(evaluation.versions),
    )
    fields: dict[str, Any] = _without_none(msgspec.to_builtins(file))
    return fields


def _read_content(fields: Fields) -> Evaluation:
    """The evaluation of a file; raises `FormatError` if it was altered, or if its counts contradict each other."""
    content = fields.content.copy()
    fields.content.clear()
    with refused_content("evaluation", "evaluation"):
        file = msgspec.convert(content, _File, strict=True)
        VERSIONS.of(file.versions, "evaluation.versions")
        sums = tuple(tuple(map(float, row)) for row in file.sums)
        found = Evaluation(file.query, file.counts, file.confidence, sums, file.examples, file.versions)
    if shapes.checksum(content) != shapes.checksum(_content(found)):
        raise FormatError("evaluation", "must be written as its content is: it was altered", remedy=UNUSABLE)
    return found


documents.register(Evaluation, documents.Kind(documents.common_form(KIND, "evaluation"), _content, _read_content))
