"""An evaluation as a value: a public query and counts, with noise or without. Everything else follows from them.

A file contains the query and the counts; the maker and every reader compute the rest by one class, `Finding`.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from types import MappingProxyType
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from confide.core import Document, Release, documents
from confide.errors import InputError
from confide.evaluation.consistency import Example, check_exact
from confide.evaluation.means import Bounds, mean_of, mean_of_shares
from confide.evaluation.partition import OTHER
from confide.evaluation.parts import (
    CONFIDENCE,
    CoverageTable,
    Measured,
    Part,
    PartCounts,
    TableKind,
    interval_text,
    marked,
)
from confide.evaluation.query import SIDES, CountQuery, statements_of, without_none
from confide.guarantee import coverage_text
from confide.mechanisms import PrivacyStatement
from confide.noisy_counts import simultaneous
from confide.sets import CHANCE, Shortfall, sentence_of, shortfall_at
from confide.support import (
    MOST_RECORDS,
    Facts,
    FileKind,
    Level,
    Section,
    exact_level,
    foreign_file,
    library_versions,
    parse_document,
    short_number,
)

KIND = "confide/evaluation"
MOST_NOISY = 4 * MOST_RECORDS
"""The largest count with noise."""

NOT_PRIVATE = "These numbers are computed from the records without noise: they are not private."


@dataclass(frozen=True, repr=False)
class Finding(Measured):
    """What the counts state about one promise: that of the release, of a level, or of an end of its intervals."""

    evaluation: "Evaluation"
    name: str

    @property
    def finding(self) -> "Finding":
        """The finding itself."""
        return self

    @property
    def label(self) -> str:
        """Name of the statement for people."""
        return f"alpha {float(self._alpha):g}" if self.name.startswith("alpha ") else self.name

    @property
    def _alpha(self) -> Fraction:
        return Fraction(self.name.removeprefix("alpha "))

    @property
    def promised(self) -> float:
        """Promised coverage."""
        return self.evaluation.query.statements[self.name]

    @property
    def examples(self) -> tuple[Example, ...]:
        """Records that the user chose to show; usually empty."""
        place, shown = list(self.evaluation.query.statements).index(self.name), self.evaluation.examples
        return shown[place] if place < len(shown) else ()

    # Coverage.

    def coverage_at(self, error: float) -> Part:
        """Coverage over all records, with an interval that misses with probability at most `error`."""
        total, q = self._counted().parts(error), self.evaluation.query
        return (marked(total, 1 - error / len(q.statements)) if self._marks else total)[0]

    @property
    def _marks(self) -> bool:
        """Whether exact tests mark what is below its promise: noisy counts have marks already, areas none."""
        return self.evaluation.query.epsilon is None and self.evaluation.query.outcome != "area"

    @cached_property
    def coverage(self) -> Part:
        """Coverage over all records. For a bound on a loss it is that of critical thresholds."""
        return self.coverage_at(self.evaluation.error)

    @cached_property
    def tables(self) -> tuple[CoverageTable, ...]:
        """Coverage by class, group, set size, interval width or end; groups that overlap are in one table."""
        # The ends of intervals: each is a statement with a finding of its own.
        q, rows, promised = self.evaluation.query, dict[TableKind, tuple[Part, ...]](), dict[TableKind, bool]()
        if q.outcome == "sides" and not self.name:
            ends = (self.evaluation.findings[name] for name in SIDES[1:])
            rows["end"] = tuple(replace(end.coverage, name=end.name, mean_width=None) for end in ends)
            promised["end"] = True

        # The parts of each partition; without noise those that do not occur are left out.
        for place, partition in enumerate(q.partitions):
            if partition.statement in ("", self.name):
                counts, error = self._counted(place), self.evaluation.error
                shares = counts.parts(error if q.epsilon is None else simultaneous(error, len(counts.names)))
                shares = tuple(share for share in shares if share.value is not None or q.epsilon is not None)
                rows[partition.kind] = rows.get(partition.kind, ()) + shares
                promised[partition.kind] = partition.promised is not None

        # Mark those that are covered less than promised, all of a kind at once.
        if self._marks:
            rows = {kind: marked(shares) for kind, shares in rows.items()}
        advised = self.shortfall is None
        return tuple(CoverageTable(kind, shares, promised[kind], advised) for kind, shares in rows.items() if shares)

    # Sizes.

    @cached_property
    def shares(self) -> CoverageTable | None:
        """Share of all records in each bin of sizes or widths, None if they were not counted."""
        q, error = self.evaluation.query, self.evaluation.error
        if self._bins is None:
            return None

        # A record in the bin counts as covered, and every other one as missed.
        partition, (counts, _, noises) = q.partitions[self._bins], self._cells(self._bins)
        inside, k = counts.sum(axis=1), len(partition)
        by_bin = PartCounts(partition.names, inside, inside.sum() - inside)

        # With noise a count of the bin has one noise from each outcome; the other bins have the rest.
        if q.epsilon is None:
            shares = tuple(share for share in by_bin.parts(error) if share.covered)
        elif k == 1:
            shares = (Part(partition.names[0], int(inside[0]), 0, 1.0, 1.0, 1.0),)
        else:
            noises *= counts.shape[1]
            noisy = replace(by_bin, noise=q.noise, noises=(noises, noises * (k - 1)), guess=f"1/{k}", n=q.n)
            shares = noisy.parts(error / k)
        return CoverageTable(partition.kind, shares, of="share")

    @property
    def _bins(self) -> int | None:
        partitions = enumerate(self.evaluation.query.partitions)
        return next((place for place, bins in partitions if bins.binned and bins.statement == self.name), None)

    @cached_property
    def _mean(self) -> tuple[float | None, Bounds | None]:
        q, shares = self.evaluation.query, self.shares
        if q.epsilon is None or self._bins is None or shares is None or shares.kind != "size":
            return self.coverage.mean_size, None
        return mean_of_shares(q.partitions[self._bins], shares.parts)

    @property
    def mean_size(self) -> float | None:
        """Mean set size; with noise within its bounds."""
        return self._mean[0]

    @property
    def mean_size_bounds(self) -> Bounds | None:
        """With noise: bounds of the mean set size, which hold together with all intervals."""
        return self._mean[1]

    @property
    def mean_width(self) -> float | None:
        """Mean interval width."""
        return self.coverage.mean_width

    # Counts.

    def _cells(self, place: int | None) -> tuple[NDArray[Any], int, int]:
        """Counts by part and outcome, or of all records; the place of their table; the number of noises in each."""
        # Of the tables that have the partition, the one whose sums have the fewest noises.
        q, cells = self.evaluation.query, self.evaluation.cells
        tables = [i for i, crossed in enumerate(q.tables) if place is None or place in crossed]
        table = min(tables, key=lambda table: prod(cells[table].shape[:-1]))

        # One row for each part: the other partitions of a crossed table are added up.
        counts, k = cells[table], 1
        if place is not None:
            counts, k = np.moveaxis(counts, q.tables[table].index(place), 0), len(q.partitions[place])
        counts = counts.reshape(k, -1, counts.shape[-1])
        return counts.sum(axis=1), table, counts.shape[1]

    def _counted(self, place: int | None = None) -> PartCounts:
        # Outcomes in which the statement holds, and all others.
        q, (counts, table, noises) = self.evaluation.query, self._cells(place)
        held = q.held(self.name, q.tables[table])
        x, y = counts[:, held].sum(axis=1), counts[:, ~held].sum(axis=1)

        # Mean sizes or widths at the level of the statement.
        means, columns = list[float | None](), q.sums_shape(q.tables[table])[-1]
        if self.evaluation.sums and q.measure != "area":
            level = list(q.statements).index(self.name) if columns > 1 else 0
            means = list(map(mean_of, self.evaluation.sums[table][level::columns], (x + y).tolist()))

        # What each part is called and promised; the empty set covers no label, so only its share is reported.
        names: Sequence[str] = [""]
        promised: Sequence[float] = [self.promised]
        first = 0
        if place is not None:
            partition = q.partitions[place]
            names, first = partition.names, int(partition.kind == "size")
            promised = partition.promised or [self.promised] * len(names)
            promised = () if q.outcome == "area" else promised  # a bound on the loss of all classes
        return PartCounts(
            names[first:],
            x[first:],
            y[first:],
            promised[first:],
            means[first:],
            q.measure,
            noise=None if q.epsilon is None else q.noise,
            noises=(int(held.sum()) * noises, 0 if q.one_count else int((~held).sum()) * noises),
            guess=f"{min(max(round(self.promised, 2), 0.01), 0.99):.2f}",
            n=q.n if place is None else None,
        )

    # A broken guarantee.

    @cached_property
    def shortfall(self) -> Shortfall | None:
        """Finding that coverage over all records lies below the promise by more than chance in calibration explains.

        Without the evaluated release the result does not state whether an unlucky calibration explains it.
        """
        evaluation = self.evaluation
        coverage = self.coverage_at(CHANCE / 2 if evaluation.private else CHANCE)
        if coverage.value is None:
            return None
        n = evaluation.query.n if evaluation.private else coverage.n
        if evaluation.release is not None:
            return shortfall_at(self._release_of(evaluation.release), coverage.value, coverage.high, n)
        if coverage.high >= self.promised:
            return None
        return Shortfall(coverage.value, coverage.high, n, self.promised, "not read", loss=evaluation.query.loss)

    def _release_of(self, release: Release) -> Release:
        if release.by == "level":
            return release.at(self._alpha)
        return release.alone(("low", "high")[SIDES.index(self.name) - 1]) if self.name else release

    # In words.

    def _section(self) -> Section:
        tables = tuple(table.as_table() for table in self.shown)
        return Section(self.label, facts=self._facts(), tables=tables, notes=self.sentences)

    @property
    def shown(self) -> list[CoverageTable]:
        """Tables with losses if they are bounded; the ends of intervals have findings of their own."""
        loss, tables = self.evaluation.query.loss, [table for table in self.tables if table.kind != "end"]
        tables = tables if loss is None else [table.as_loss(loss[1]) for table in tables]
        return tables if self.shares is None else [*tables, self.shares]

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences about parts that are covered less than promised beyond chance; none for a bound on a loss."""
        tables = () if self.evaluation.query.loss is not None else self.tables
        return tuple(table.sentence for table in tables if table.below)

    def _facts(self) -> Facts:
        # The coverage, or the loss.
        loss, total, head, side = self.evaluation.query.loss, self.coverage, "coverage", "below"
        if loss is not None:
            total, head, side = total.as_loss(loss[1]), f"loss {loss[0]!r}", "above"
        beyond = f", {side} the promise beyond chance" if total.below else ""
        rows = [(head, f"{total.estimate}{beyond}"), ("promise", self._promise())]

        # Sizes, as far as they were measured.
        bounds = self.mean_size_bounds
        if self.mean_size is not None:
            ends = "" if bounds is None else f" (interval {interval_text(*bounds)})"
            rows.append(("classes per set, on average", f"{self.mean_size:.4g}{ends}"))
        if self.mean_width is not None:
            rows.append(("width of intervals, on average", short_number(self.mean_width)))
        if self.evaluation.area_ratio is not None:
            rows.append(("predicted area", f"{self.evaluation.area_ratio:.2f} times the true area"))
        return tuple(rows)

    def _promise(self) -> str:
        # In the words of the release, if it is known.
        release, loss = self.evaluation.release, self.evaluation.query.loss
        if release is not None and self.evaluation.query.outcome != "sides":
            promises = self._release_of(release).promises
            return "; ".join(f"for {name}: {text}" if name else text for name, text in promises.items())
        if loss is None:
            return f"coverage at least {coverage_text(self.promised)}"
        return f"at most {loss[1] * (1 - self.promised):.6g} in expectation"

    def _brief(self) -> str:
        return f"{self.name!r}: {self.coverage.estimate}" if self.name else self.coverage.estimate

    def fields(self) -> dict[str, Any]:
        """JSON values of everything that follows from the counts about this statement."""
        stated: dict[str, Any] = without_none(msgspec.to_builtins({name: getattr(self, name) for name in _STATED}))
        return stated


_STATED = (
    "name", "coverage", "tables", "shares", "mean_size", "mean_size_bounds", "mean_width", "shortfall", "examples",
    "sentences",
)  # fmt: skip


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

        # Without noise counts agree; with noise nothing else is stored.
        self.query.family_error(1 - self.confidence)
        if not self.private:
            check_exact(self.query, self.cells, self.sums, self.examples)
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
        # One part for each statement.
        findings = self.findings.values()
        sections = {finding.label: finding._section() for finding in findings}
        parts = tuple(replace(each, title=label if len(findings) > 1 else "") for label, each in sections.items())
        warnings = tuple(sentence_of(name, short) for name, short in self.shortfalls.items())
        if not self.private:
            return Section("Evaluation", warnings=warnings, parts=parts, notes=(NOT_PRIVATE,))

        # The number of intervals that hold together.
        counted = (len(table) for finding in findings for table in finding.tables if table.kind != "end")
        shared = (len(finding.shares or ()) + (finding.mean_size_bounds is not None) for finding in findings)
        number = len(findings) + sum(counted) + sum(shared)
        together = f"the {number} intervals hold together" if number > 1 else "the interval holds"
        simultaneity = f"{together} with probability {100 * self.confidence:g} %, noise included"
        notes = (simultaneity, f"privacy: {self.privacy}")
        return Section("Evaluation", warnings=warnings, parts=parts, notes=notes)

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
