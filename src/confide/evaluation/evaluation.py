"""An evaluation as a value: a public query and counts, with noise or without. Everything else follows from them.

A file contains the query and the counts; the maker and every reader compute the rest by one class, `Finding`.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from confide.core import Document, Release, documents
from confide.errors import InputError
from confide.evaluation.finding import Bounds, Example, Finding, Measured
from confide.evaluation.parts import CONFIDENCE, CoverageTable, Part
from confide.evaluation.query import OTHER, CountQuery, Partition, statements_of
from confide.guarantee import coverage_text
from confide.mechanisms import PrivacyStatement
from confide.sets import Shortfall, sentence_of
from confide.support import (
    MOST_RECORDS,
    FileKind,
    Level,
    Section,
    exact_level,
    foreign_file,
    library_versions,
    parse_document,
)

KIND = "confide/evaluation"
MOST_EXAMPLES = 1000
MOST_NOISY = 4 * MOST_RECORDS
"""The largest count with noise."""

NOT_PRIVATE = "These numbers are computed from the records without noise: they are not private."


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
        # One number for each cell; with noise it may be negative.
        object.__setattr__(self, "versions", MappingProxyType(dict(self.versions)))
        object.__setattr__(self, "confidence", float(exact_level("confidence", self.confidence)))
        numbers = [count for cells in self.counts for count in cells]
        if [len(cells) for cells in self.counts] != self.query.cells:
            raise InputError("counts", "must have one number for each cell of each table")
        if any(abs(count) > MOST_NOISY for count in numbers):
            raise InputError("counts", "must not exceed the largest number of records with noise")
        if self.query.outcome != "area" and not all(isinstance(count, int) for count in numbers):
            raise InputError("counts", "must be integers")

        # Without noise counts agree with each other; with noise nothing else is stored.
        self.query.family_error(1 - self.confidence)
        if not self.private:
            _check_exact(self)
        elif self.sums or self.examples:
            raise InputError("sums", "must be left out of counts with noise, like examples")

    @classmethod
    def longest_of(cls, query: CountQuery, confidence: float) -> "Evaluation":
        """Evaluation whose counts have the most digits, from public numbers alone."""
        return cls(
            query, tuple((-MOST_NOISY,) * cells for cells in query.cells), confidence, versions=library_versions()
        )

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

    @cached_property
    def cells(self) -> list[NDArray[Any]]:
        """Counts of each table: one axis for each of its partitions, and a last axis for outcomes."""
        q = self.query
        if q.one_count:
            ((covered,),) = self.counts
            return [np.array([covered, (q.n or 0) - covered])]
        shapes = map(q.shape, q.tables)
        return [np.array(counts).reshape(shape) for counts, shape in zip(self.counts, shapes, strict=True)]

    @property
    def error(self) -> float:
        """Error probability of each family of intervals with noise; of each interval without."""
        return self.query.family_error(1 - self.confidence)

    @cached_property
    def findings(self) -> Mapping[str, Finding]:
        """Findings about the release as a whole (""), each level (`alpha 1/10`), and the ends of intervals."""
        return {name: Finding(self, name) for name in self.query.statements}

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
    def coverage(self) -> Part:
        """Coverage over all records with its interval."""
        return self.finding.coverage

    @property
    def tables(self) -> tuple[CoverageTable, ...]:
        """Coverage by part, one table for each kind of parts."""
        return self.finding.tables

    @property
    def shares(self) -> CoverageTable | None:
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
        return None if self.query.loss is None else self.coverage.as_loss(self.query.loss[1]).value

    @property
    def area_ratio(self) -> float | None:
        """For masks: predicted area divided by true area, both summed over images; NaN without any true area."""
        if self.query.measure != "area":
            return None
        predicted, true = self.sums[0]
        return predicted / true if true else math.nan

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
        total = self.finding.coverage_at(1 - float(exact_level("confidence", confidence)))
        return total.low, total.high

    # A broken guarantee.

    def of(self, release: Release) -> Self:
        """Return a copy with its release, which decides whether chance in calibration explains a shortfall.

        Raises
        ------
        InputError
            If it is an evaluation of another release, or states other promises.
        """
        if self.calibration != release.checksum:
            raise InputError("evaluation", "must be one of this calibration", "one of another", "evaluate again")

        # Its statements.
        counted = "covered" if self.query.outcome == "area" else self.query.outcome
        same = (counted, dict(self.query.statements)) == statements_of(release) and self.query.loss == release.bounded

        # The parts that have thresholds of their own.
        thresholds = {str(key): threshold.coverage for key, threshold in release.parts.items()} | {OTHER: 0.0}
        divided = [partition for partition in self.query.partitions if partition.promised is not None]
        promised = {pair for division in divided for pair in zip(division.names, division.promised or (), strict=True)}
        kinds = {partition.kind for partition in divided}
        if not same or not promised <= set(thresholds.items()) or kinds != {release.by} & {"class", "group"}:
            requirement = "must have the promises and parts of this calibration"
            raise InputError("evaluation", requirement, remedy="evaluate again")
        return replace(self, release=release)

    @property
    def shortfall(self) -> Shortfall | None:
        """The first finding that coverage lies below a promise by more than chance explains; None without one."""
        return next(iter(self.shortfalls.values()), None)

    @property
    def shortfalls(self) -> dict[str, Shortfall]:
        """Statements that cover less than promised beyond chance, by the label of the statement."""
        return {finding.label: finding.shortfall for finding in self.findings.values() if finding.shortfall is not None}

    # In words.

    def _section(self) -> Section:
        sections = {finding.label: finding._section() for finding in self.findings.values()}
        several = len(sections) > 1
        parts = tuple(replace(section, title=label if several else "") for label, section in sections.items())
        notes = (self._together, f"privacy: {self.privacy}") if self.private else (NOT_PRIVATE,)
        warnings = tuple(sentence_of(name, short) for name, short in self.shortfalls.items())
        return Section("Evaluation", warnings=warnings, parts=parts, notes=notes)

    @property
    def _together(self) -> str:
        findings = self.findings.values()
        counted = (len(table) for finding in findings for table in finding.tables if table.kind != "end")
        shared = (len(finding.shares or ()) + (finding.mean_size_bounds is not None) for finding in findings)
        number = len(findings) + sum(counted) + sum(shared)
        together = f"the {number} intervals hold together" if number > 1 else "the interval holds"
        return f"{together} with probability {100 * self.confidence:g} %, noise included"

    def _brief(self) -> str:
        coverage, short = self.coverage, ", SURELY LESS THAN PROMISED" if self.shortfalls else ""
        size = "" if self.mean_size is None else f", mean size {self.mean_size:.4g}"
        width = "" if self.mean_width is None else f", mean width {self.mean_width:.4g}"
        promised = f"{coverage_text(coverage.promised or 0.0)} is promised"

        # Of a coverage, a loss, or several levels.
        text = f"coverage {coverage.estimate}, {promised}{short}{size}{width}"
        if self.query.loss is not None:
            loss = coverage.as_loss(self.query.loss[1])
            text = f"loss {loss.estimate}, at most {loss.promised or 0.0:.6g} is promised{short}"
        if len(self.levels) > 1:
            values = ", ".join(f"{finding.label}: {finding.coverage.value_text}" for finding in self.levels.values())
            n = "" if self.private else f", n={coverage.n}"
            text = f"coverage {values}{short}{n}"
        return f"{text}, {self.privacy.brief}"

    def fields(self) -> dict[str, Any]:
        """JSON values: the content of its file, and what follows from it by statement."""
        stated = {name or "release": finding.fields() for name, finding in self.findings.items()}
        return {**json.loads(self.to_json()), "found": stated}

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


def _check_exact(evaluation: Evaluation) -> None:
    # As many records, examples and sums as there can be.
    q, (total, *others) = evaluation.query, evaluation.cells
    if any((counts < 0).any() for counts in evaluation.cells) or not 0 < total.sum() <= MOST_RECORDS:
        raise InputError("counts", "must be of at least one record, and not negative")
    forms = [q.sums_shape(table) for table in q.tables] if q.measure else []
    wrong = [len(sums) for sums in evaluation.sums] != [math.prod(form) for form in forms]
    if wrong or any(s < 0 for sums in evaluation.sums for s in sums):
        raise InputError("sums", "must be one for each part and level, and not negative")
    shown = {len(examples) for examples in evaluation.examples}
    if shown and (
        len(evaluation.examples) != q.levels or len(shown) != 1 or max(shown) > min(MOST_EXAMPLES, total.sum())
    ):
        raise InputError("examples", f"must be at most {MOST_EXAMPLES}, of the records, for each level")

    # Each partition divides all records and all labels.
    measured = [np.array(sums).reshape(form) for sums, form in zip(evaluation.sums, forms, strict=True)]
    for place, (counts, partition) in enumerate(zip(others, q.partitions, strict=True), start=1):
        held = q.held(partition.statement, ()) if partition.statement else None
        expected = total if held is None else np.array([total[held].sum(), total[~held].sum()])
        if q.outcome != "area" and not np.array_equal(counts.sum(axis=0), expected):
            raise InputError("counts", "must add up to those of all records in each partition")
        if partition.kind == "size":
            _check_sizes(counts, partition, measured[place][:, 0])
        if q.measure == "size" and held is None and not np.array_equal(measured[place].sum(axis=0), measured[0]):
            raise InputError("sums", "must add up to the labels in all sets")


def _check_sizes(counts: NDArray[Any], partition: Partition, labels: NDArray[Any]) -> None:
    sizes = np.arange(len(partition))
    if partition.edges != tuple(sizes) or counts[0, :-1].any():
        raise InputError("partitions", "must be of single sizes, of which 0 covers no label")
    if not np.array_equal(labels, counts.sum(axis=1) * sizes):
        raise InputError("sums", "must be the labels in sets of each size")
