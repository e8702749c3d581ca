"""`Evaluation`: a public query and counts, with noise or without, as a value and as a file.

A file contains the query and the counts only. The maker and every reader compute everything else from them.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain
from types import MappingProxyType
from typing import Any, Literal, Self

import msgspec
from numpy.typing import NDArray

from confide.core import Document, Release, documents
from confide.errors import InputError
from confide.evaluation.count_tables import CountTables
from confide.evaluation.finding import Finding, number_of_intervals
from confide.evaluation.mean_sizes import Bounds
from confide.evaluation.partitions import OTHER
from confide.evaluation.parts import CONFIDENCE, CoverageTable, Measured, Part
from confide.evaluation.query import CountQuery, json_fields
from confide.evaluation.statements import Statement, statements_of
from confide.guarantee import coverage_text
from confide.mechanisms import PrivacyStatement
from confide.sets import Shortfall, sentence_of
from confide.support import (
    MOST_RECORDS,
    FileKind,
    Level,
    Section,
    check_version_texts,
    describe,
    exact_level,
    foreign_file,
    library_versions,
    parse_document,
    require,
)

KIND = "confide/evaluation"

MOST_NOISY = 4 * MOST_RECORDS
"""The largest count with noise."""

NOT_PRIVATE = "These numbers are computed from the records without noise: they are not private."


@dataclass(frozen=True, repr=False)
class Evaluation(Document, Measured):
    """Coverage and sizes on labelled records: a table of counts, by part and by outcome.

    With an epsilon the counts have noise, and the evaluation may be published: its intervals hold for finite samples,
    include the noise, and hold all at once with probability `confidence`. Without an epsilon it is **not private**, and
    each interval is exact by itself. Records must be independent of each other and of the calibration set.

    The properties are about the release as a whole; with several levels they are about the first one, and
    `evaluation[alpha]` is the evaluation of another level.

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
    versions
        Versions of the libraries that drew the noise.
    release
        The evaluated release, if it is known; files do not contain it.

    Examples
    --------
    >>> import confide, numpy as np
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
    versions: Mapping[str, str] = field(default_factory=dict, hash=False)
    release: Release | None = field(default=None, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "versions", MappingProxyType(dict(self.versions)))
        object.__setattr__(self, "confidence", float(exact_level("confidence", self.confidence)))

        # One number for each cell; with noise it may be negative.
        fit = [len(cells) for cells in self.counts] == self.query.cells
        require("counts", fit, "must have one number for each count of the query")
        numbers = list(chain(*self.counts))
        if any(abs(count) > MOST_NOISY for count in numbers):
            raise InputError("counts", f"must lie within +-{MOST_NOISY:,}, noise included")
        are_integers = self.query.outcome == "area" or all(isinstance(count, int) for count in numbers)
        require("counts", are_integers, "must be integers")

        # Without noise counts agree; with noise nothing else is stored.
        self.query.family_error(1 - self.confidence)  # raises if the confidence is too large for the query
        if not self.private:
            self._count_tables.check()
        elif self.sums:
            raise InputError("sums", "must be left out if counts have noise")

    @classmethod
    def longest_of(cls, query: CountQuery, confidence: float) -> "Evaluation":
        """Evaluation whose counts have the most digits, from public numbers alone."""
        counts = tuple((-MOST_NOISY,) * cells for cells in query.cells)
        return cls(query, counts, confidence, versions=library_versions())

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
    def _count_tables(self) -> CountTables:
        return CountTables.of(self.query, self.counts, self.sums)

    @property
    def cells(self) -> list[NDArray[Any]]:
        """Counts of each table: one axis for each of its partitions, and a last axis for outcomes."""
        return self._count_tables.cells

    @property
    def error(self) -> float:
        """Error probability of each family of intervals with noise; of each interval without."""
        return self.query.family_error(1 - self.confidence)

    @cached_property
    def findings(self) -> Mapping[str, Finding]:
        """Findings about the release as a whole (""), each level (`alpha 1/10`), and the ends of intervals."""
        return {name: Finding(self, name, self._count_tables) for name in self.query.statements}

    @property
    def finding(self) -> Finding:
        """Finding about the release as a whole; for several levels, about the first."""
        return next(iter(self.findings.values()))

    @property
    def levels(self) -> Mapping[Fraction, Finding]:
        """Findings by miscoverage level, for a release with several levels; else empty."""
        levels = {Statement(name).alpha: finding for name, finding in self.findings.items()}
        return {alpha: finding for alpha, finding in levels.items() if alpha is not None}

    def __getitem__(self, alpha: Level) -> Finding:
        level = exact_level("alpha", alpha)
        known = ", ".join(f"{float(a):g}" for a in self.levels) or "none"
        require("alpha", level in self.levels, f"must be one of the levels {known}", got=f"{float(level):g}")
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
        return None if self.query.loss is None else self.finding.measured.value

    @property
    def area_ratio(self) -> float | None:
        """For masks: predicted area divided by true area, both summed over images; NaN without any true area."""
        return self._count_tables.area_ratio

    def interval(self, confidence: Level = CONFIDENCE) -> Bounds:
        """Interval of the coverage over all records, by itself, noise included.

        Examples
        --------
        >>> import confide, numpy as np
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
            If this is an evaluation of another release, or states other promises.
        """
        is_of_release = self.calibration == release.checksum
        require("evaluation", is_of_release, "must be of this release", "one of another release", "evaluate again")

        # Its statements.
        outcome = "covered" if self.query.outcome == "area" else self.query.outcome
        statements = (outcome, dict(self.query.statements))
        same_statements = statements == statements_of(release) and self.query.loss == release.bounded
        same = same_statements and self._has_parts_of(release)
        require("evaluation", same, "must have the promises and the parts of this release", remedy="evaluate again")
        return replace(self, release=release)

    def _has_parts_of(self, release: Release) -> bool:
        """Whether the parts with thresholds of their own, and what they are promised, are those of a release."""
        thresholds = {str(key): threshold.coverage for key, threshold in release.parts.items()} | {OTHER: 0.0}
        divided = [partition for partition in self.query.partitions if partition.promised is not None]
        same_kinds = {partition.kind for partition in divided} == {release.by} & {"class", "group"}
        promises = [zip(partition.names, partition.promised or (), strict=True) for partition in divided]
        return same_kinds and set(chain(*promises)) <= set(thresholds.items())

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
        # One part for each statement.
        findings = self.findings.values()
        several = len(findings) > 1
        sections = tuple(replace(describe(finding), title=finding.label if several else "") for finding in findings)
        warnings = tuple(sentence_of(name, short) for name, short in self.shortfalls.items())
        if not self.private:
            return Section("Evaluation", warnings=warnings, parts=sections, notes=(NOT_PRIVATE,))

        # The number of intervals that hold together.
        number = sum(map(number_of_intervals, findings))
        together = f"the {number} intervals hold together" if number > 1 else "the interval holds"
        notes = (f"{together} with probability {100 * self.confidence:g} %, noise included", f"privacy: {self.privacy}")
        return Section("Evaluation", warnings=warnings, parts=sections, notes=notes)

    def _brief(self) -> str:
        short = ", SURELY LESS THAN PROMISED" if self.shortfalls else ""
        # Of several levels, a loss, or a coverage.
        if len(self.levels) > 1:
            values = ", ".join(f"{finding.label}: {finding.coverage.value_text}" for finding in self.levels.values())
            n = "" if self.private else f", n={self.coverage.n}"
            text = f"coverage {values}{short}{n}"
        elif self.query.loss is not None:
            loss = self.finding.measured
            text = f"loss {loss.estimate}, at most {loss.promised or 0.0:.6g} is promised{short}"
        else:
            promised = f"{coverage_text(self.coverage.promised or 0.0)} is promised"
            size = "" if self.mean_size is None else f", mean size {self.mean_size:.4g}"
            width = "" if self.mean_width is None else f", mean width {self.mean_width:.4g}"
            text = f"coverage {self.coverage.estimate}, {promised}{short}{size}{width}"
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


# Files.


class _File(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The content of a file, without kind, schema and checksum."""

    private: bool
    query: CountQuery
    confidence: float
    counts: tuple[tuple[int | float, ...], ...]
    sums: tuple[tuple[float | Literal["+inf"], ...], ...] = ()
    versions: dict[str, str] = {}


def _content(evaluation: Evaluation) -> dict[str, Any]:
    stored = {name: getattr(evaluation, name) for name in _File.__struct_fields__}
    stored["sums"] = tuple(tuple("+inf" if math.isinf(s) else s for s in sums) for sums in evaluation.sums)
    return json_fields(_File(**stored | {"versions": dict(evaluation.versions)}))


def _read_content(content: dict[str, Any]) -> Evaluation:
    """The evaluation of a file; raises an error if its counts contradict each other."""
    file = msgspec.convert(content, _File, strict=True)
    check_version_texts("evaluation.versions", file.versions)
    sums = tuple(tuple(map(float, of_table)) for of_table in file.sums)
    # A partition is made again, so that its constructor adds what files leave out.
    query = replace(file.query, partitions=tuple(map(replace, file.query.partitions)))
    return Evaluation(query, file.counts, file.confidence, sums, file.versions)


documents.register(Evaluation, documents.Kind(documents.common_form(KIND, "evaluation"), _content, _read_content))
