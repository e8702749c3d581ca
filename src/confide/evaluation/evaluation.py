"""An evaluation as a value: a public query and counts, with noise or without. Everything else follows from them.

A file contains the query and the counts (`confide.evaluation.files`). Coverage, intervals, shares and means are
computed by one class, `Finding`, by the maker and by every reader.

Without noise every interval is exact by itself. With noise all intervals hold together: the error probability
a = 1 - confidence is divided evenly among the families of statements (Bonferroni). For each promise these are the
coverage over all records and the coverage by each partition, and for each partition into bins the shares of its bins.
Within a partition the coverage intervals are independent given the part sizes, so each may miss with probability
1 - (1 - a')^(1/k) (Sidak). Shares of bins are not independent and divide a' by k. The mean of a binned number follows
from its shares on the same event. It lies between the two optima of a linear program over the intervals of the shares,
at no further error.
"""

import json
import math
from abc import ABC, abstractmethod
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
from confide.evaluation.parts import CONFIDENCE, CoverageTable, Part, PartCounts, TableKind, interval_text, marked
from confide.evaluation.query import OTHER, SIDES, CountQuery, Partition, statements_of
from confide.guarantee import coverage_text
from confide.mechanisms import PrivacyStatement
from confide.noisy_counts import simultaneous
from confide.sets import CHANCE, Shortfall, sentence_of, shortfall_at
from confide.support import (
    MOST_RECORDS,
    Described,
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
MOST_EXAMPLES = 1000
MOST_NOISY = 4 * MOST_RECORDS
"""The largest count with noise."""

NOT_PRIVATE = "These numbers are computed from the records without noise: they are not private."

Bounds = tuple[float, float]


@dataclass(frozen=True)
class Example:
    """A record that the user chose to show: its set, its true label, and its group if groups have thresholds."""

    members: tuple[str, ...]
    truth: str
    group: str | None = None


class Measured(Described, ABC):
    """Coverage of all records and by part, at one statement of a release."""

    @property
    @abstractmethod
    def finding(self) -> "Finding":
        """Finding about this statement."""

    def table(self, kind: TableKind) -> CoverageTable:
        """Coverage of the parts of one kind; without parts if it was not counted."""
        return next((table for table in self.finding.tables if table.kind == kind), CoverageTable(kind, ()))

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


@dataclass(frozen=True, repr=False)
class Finding(Measured):
    """What the counts state about one promise: that of the release, of a level, or of an end of its intervals.

    Parameters
    ----------
    evaluation
        The counts and their question.
    name
        Name of the statement.
    """

    evaluation: "Evaluation"
    name: str

    @property
    def finding(self) -> "Finding":
        """The finding itself."""
        return self

    @property
    def label(self) -> str:
        """Name of the statement for people."""
        return f"alpha {float(Fraction(self.name[6:])):g}" if self.name.startswith("alpha ") else self.name

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
        parts, q = self._counted().parts(error), self.evaluation.query
        return (marked(parts, 1 - error / len(q.statements)) if self._exact else parts)[0]

    @property
    def _exact(self) -> bool:
        """Whether records are counted, without noise."""
        return self.evaluation.query.epsilon is None and self.evaluation.query.outcome != "area"

    @cached_property
    def coverage(self) -> Part:
        """Coverage over all records. For a bound on a loss it is that of critical thresholds."""
        return self.coverage_at(self.evaluation.error)

    @cached_property
    def tables(self) -> tuple[CoverageTable, ...]:
        """Coverage by class, group, set size, interval width or end; groups that overlap are in one table."""
        # The parts of each kind: first the ends of intervals, each of which is a statement.
        q, parts, own = self.evaluation.query, dict[TableKind, tuple[Part, ...]](), dict[TableKind, bool]()
        if q.outcome == "sides" and not self.name:
            ends = (self.evaluation.findings[name] for name in SIDES[1:])
            parts["end"] = tuple(replace(end.coverage, name=end.name, mean_width=None) for end in ends)
            own["end"] = True
        for place, partition in enumerate(q.partitions):
            if partition.statement in ("", self.name):
                counted, error = self._counted(place), self.evaluation.error
                some = counted.parts(error if q.epsilon is None else simultaneous(error, len(counted.names)))
                some = tuple(part for part in some if part.value is not None or q.epsilon is not None)
                parts[partition.kind] = parts.get(partition.kind, ()) + some
                own[partition.kind] = partition.promised is not None

        # Those that are covered less than promised; with noise they are known already.
        if self._exact:
            parts = {kind: marked(some) for kind, some in parts.items()}
        advised = self.shortfall is None
        return tuple(CoverageTable(kind, some, own[kind], advised) for kind, some in parts.items() if some)

    # Sizes.

    @cached_property
    def shares(self) -> CoverageTable | None:
        """Share of all records in each bin of sizes or widths, None if they were not counted."""
        # A record in the bin counts as covered, and every other one as missed.
        q, error = self.evaluation.query, self.evaluation.error
        if self._bins is None:
            return None
        partition, (counts, _, noises) = q.partitions[self._bins], self._cells(self._bins)
        inside, own, k = counts.sum(axis=1), noises * counts.shape[1], len(partition)
        counted = PartCounts(partition.names, inside, inside.sum() - inside)
        if q.epsilon is None:
            parts = tuple(part for part in counted.parts(error) if part.covered)
        elif k == 1:
            parts = (Part(partition.names[0], int(inside[0]), 0, 1.0, 1.0, 1.0),)
        else:
            noisy = replace(counted, noise=q.noise, noises=(own, own * (k - 1)), guess=f"1/{k}", n=q.n)
            parts = noisy.parts(error / k)
        return CoverageTable(partition.kind, parts, of="share")

    @property
    def _bins(self) -> int | None:
        """Place of the partition into sizes or widths."""
        partitions = self.evaluation.query.partitions
        return next((i for i, one in enumerate(partitions) if one.binned and one.statement == self.name), None)

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
        q, cells = self.evaluation.query, self.evaluation.cells
        tables = [i for i, crossed in enumerate(q.tables) if place is None or place in crossed]
        table = min(tables, key=lambda table: prod(cells[table].shape[:-1]))
        counts, k = cells[table], 1
        if place is not None:
            counts, k = np.moveaxis(counts, q.tables[table].index(place), 0), len(q.partitions[place])
        counts = counts.reshape(k, -1, counts.shape[-1])
        return counts.sum(axis=1), table, counts.shape[1]

    def _counted(self, place: int | None = None) -> PartCounts:
        """Covered and missed records: of all, or of each part of a partition."""
        # Outcomes in which the statement holds, and all others.
        q, (counts, table, noises) = self.evaluation.query, self._cells(place)
        held = q.held(self.name, q.tables[table])
        x, y = counts[:, held].sum(axis=1), counts[:, ~held].sum(axis=1)
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

        Without the evaluated release it is not known whether an unlucky calibration explains it.
        """
        evaluation = self.evaluation
        part = self.coverage_at(CHANCE / 2 if evaluation.private else CHANCE)
        if part.value is None:
            return None
        n = evaluation.query.n if evaluation.private else part.n
        if evaluation.release is not None:
            return shortfall_at(self._release_of(evaluation.release), part.value, part.high, n)
        if part.high >= self.promised:
            return None
        return Shortfall(part.value, part.high, n, self.promised, "not read", loss=evaluation.query.loss)

    def _release_of(self, release: Release) -> Release:
        """The release of this statement."""
        if release.by == "level":
            return release.at(Fraction(self.name[6:]))
        return release.alone(("low", "high")[SIDES.index(self.name) - 1]) if self.name else release

    # In words.

    def _section(self) -> Section:
        """Coverage or loss of all records, the promise, sizes, and a table for each kind of parts."""
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
        """Coverage of all records, or their loss, the promise, and the sizes of all sets or intervals."""
        loss, part, bounds = self.evaluation.query.loss, self.coverage, self.mean_size_bounds
        head, total = ("coverage", part) if loss is None else (f"loss {loss[0]!r}", part.as_loss(loss[1]))
        beyond = f", {'below' if loss is None else 'above'} the promise beyond chance" if part.below else ""
        rows = [(head, f"{total.estimate}{beyond}"), ("promise", self._promise())]
        if self.mean_size is not None:
            ends = "" if bounds is None else f" (interval {interval_text(*bounds)})"
            rows.append(("classes per set, on average", f"{self.mean_size:.4g}{ends}"))
        if self.mean_width is not None:
            rows.append(("width of intervals, on average", short_number(self.mean_width)))
        if self.evaluation.area_ratio is not None:
            rows.append(("predicted area", f"{self.evaluation.area_ratio:.2f} times the true area"))
        return tuple(rows)

    def _promise(self) -> str:
        """The promise of a statement; that of the release in its words, if the release is known."""
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


def without_none(value: Any) -> Any:
    """JSON values without the fields that do not apply."""
    if isinstance(value, dict):
        return {name: without_none(inner) for name, inner in value.items() if inner is not None}
    return [without_none(inner) for inner in value] if isinstance(value, list | tuple) else value


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
        numbers = [count for cells in self.counts for count in cells]
        if [len(cells) for cells in self.counts] != self.query.cells:
            raise InputError("counts", "must have one number for each cell of each table")
        if any(abs(count) > MOST_NOISY for count in numbers):
            raise InputError("counts", "must not exceed the largest number of records with noise")
        if self.query.outcome != "area" and not all(isinstance(count, int) for count in numbers):
            raise InputError("counts", "must be integers")
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
        part = self.finding.coverage_at(1 - float(exact_level("confidence", confidence)))
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

        # Its statements, and the parts that have thresholds of their own.
        outcome, statements = statements_of(release)
        counted = "covered" if self.query.outcome == "area" else self.query.outcome
        own = {str(key): part.coverage for key, part in release.parts.items()} | {OTHER: 0.0}
        divided = [part for part in self.query.partitions if part.promised is not None]
        promised = {pair for part in divided for pair in zip(part.names, part.promised or (), strict=True)}
        same = (counted, dict(self.query.statements), self.query.loss) == (outcome, statements, release.bounded)
        if (
            not same
            or not promised <= set(own.items())
            or {part.kind for part in divided} != {release.by} & {"class", "group"}
        ):
            raise InputError(
                "evaluation", "must have the promises and parts of this calibration", remedy="evaluate again"
            )
        return replace(self, release=release)

    @property
    def shortfall(self) -> Shortfall | None:
        """The first finding that coverage lies below a promise by more than chance explains; None without one."""
        return next(iter(self.shortfalls.values()), None)

    @property
    def shortfalls(self) -> dict[str, Shortfall]:
        """Statements that cover less than promised beyond chance, by the label of the statement."""
        return {one.label: one.shortfall for one in self.findings.values() if one.shortfall is not None}

    # In words.

    def _section(self) -> Section:
        several = len(self.findings) > 1
        parts = tuple(replace(one._section(), title=one.label if several else "") for one in self.findings.values())
        notes = (self._together, f"privacy: {self.privacy}") if self.private else (NOT_PRIVATE,)
        warnings = tuple(sentence_of(name, short) for name, short in self.shortfalls.items())
        return Section("Evaluation", warnings=warnings, parts=parts, notes=notes)

    @property
    def _together(self) -> str:
        """Sentence about the simultaneous confidence of all intervals."""
        findings = self.findings.values()
        counted = (len(table) for one in findings for table in one.tables if table.kind != "end")
        shared = (len(one.shares or ()) + (one.mean_size_bounds is not None) for one in findings)
        number = len(findings) + sum(counted) + sum(shared)
        together = f"the {number} intervals hold together" if number > 1 else "the interval holds"
        return f"{together} with probability {100 * self.confidence:g} %, noise included"

    def _brief(self) -> str:
        coverage, short = self.coverage, ", SURELY LESS THAN PROMISED" if self.shortfalls else ""
        size = "" if self.mean_size is None else f", mean size {self.mean_size:.4g}"
        width = "" if self.mean_width is None else f", mean width {self.mean_width:.4g}"
        promised = f"{coverage_text(coverage.promised or 0.0)} is promised"
        text = f"coverage {coverage.estimate}, {promised}{short}{size}{width}"
        if self.query.loss is not None:
            loss = coverage.as_loss(self.query.loss[1])
            text = f"loss {loss.estimate}, at most {loss.promised or 0.0:.6g} is promised{short}"
        if len(self.levels) > 1:
            values = ", ".join(f"{one.label}: {one.coverage.value_text}" for one in self.levels.values())
            n = "" if self.private else f", n={coverage.n}"
            text = f"coverage {values}{short}{n}"
        return f"{text}, {self.privacy.brief}"

    def fields(self) -> dict[str, Any]:
        """JSON values: the content of its file, and what follows from it by statement."""
        found = {name or "release": finding.fields() for name, finding in self.findings.items()}
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


def _check_exact(evaluation: Evaluation) -> None:
    """Raise `InputError` if counts without noise contradict each other."""
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
    """Check that sets have as many labels as their sizes state, and that empty sets cover no label."""
    sizes = np.arange(len(partition))
    if partition.edges != tuple(sizes) or counts[0, :-1].any():
        raise InputError("partitions", "must be of single sizes, of which 0 covers no label")
    if not np.array_equal(labels, counts.sum(axis=1) * sizes):
        raise InputError("sums", "must be the labels in sets of each size")


# Means.


def mean_of(total: float, n: float) -> float | None:
    """Mean of n sizes or widths from their sum, which may be infinite; None without records."""
    if not n:
        return None
    return total / n if math.isfinite(total) else math.inf


def mean_of_shares(partition: Partition, shares: Sequence[Part]) -> tuple[float | None, Bounds]:
    """Mean of a binned number, and its bounds: extremes over all shares in their intervals that add up to 1."""
    assert partition.most is not None
    least = np.array(partition.edges)
    most = np.array([*(edge - 1 for edge in partition.edges[1:]), float(partition.most)])
    low, high = np.array([one.low for one in shares]), np.array([one.high for one in shares])
    if math.fsum(low) > 1 or math.fsum(high) < 1:  # no shares fit, so an interval misses: use the trivial bounds
        bounds = float(least[0]), float(most[-1])
    else:
        bounds = _extreme(least, low, high), -_extreme(-most[::-1], low[::-1], high[::-1])
    estimates = np.array([one.value or 0.0 for one in shares])
    total = math.fsum(estimates)
    value = float(np.clip(_weighed(estimates, (least + most) / 2) / total, *bounds)) if total > 0 else None
    return value, bounds


def _extreme(values: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]) -> float:
    """Smallest mean of increasing values whose shares lie in [low, high] and add up to 1."""
    room = np.diff(np.minimum(np.cumsum(high - low), 1 - math.fsum(low)), prepend=0.0)
    return _weighed(values, low + room)


def _weighed(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Sum of products, correctly rounded, so that files contain the same digits on every machine."""
    return math.fsum(values * weights)
