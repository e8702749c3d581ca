"""`Finding`: what the counts of an evaluation state about one promise."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

from confide.core import Release
from confide.evaluation.count_tables import CountTables
from confide.evaluation.mean_sizes import BinnedMean, Bounds, mean_of_shares
from confide.evaluation.partitions import Partition
from confide.evaluation.parts import CoverageTable, Measured, Part, TableKind, interval_text, marked
from confide.evaluation.query import CountQuery, json_fields
from confide.evaluation.statements import SIDES, Statement
from confide.guarantee import coverage_text
from confide.noisy_counts import simultaneous
from confide.sets import CHANCE, Shortfall, shortfall_at
from confide.support import Facts, Section, short_number


class Evaluated(Protocol):
    """What a finding needs of its evaluation, in addition to the counts."""

    @property
    def error(self) -> float:
        """Error probability of each family of intervals."""

    @property
    def release(self) -> Release | None:
        """The evaluated release, if it is known."""


@dataclass(frozen=True, repr=False)
class Finding(Measured):
    """What the counts state about one promise: that of the release, of a level, or of an end of its intervals."""

    evaluation: Evaluated
    name: str
    _counts: CountTables

    @property
    def _query(self) -> CountQuery:
        return self._counts.query

    @property
    def label(self) -> str:
        """Name of the statement for people."""
        return Statement(self.name).label

    @property
    def promised(self) -> float:
        """Promised coverage."""
        return self._query.statements[self.name]

    # Coverage.

    def coverage_at(self, error: float) -> Part:
        """Coverage over all records, with an interval that misses with probability at most `error`."""
        all_records = self._counts.part_counts(self.name, None).parts(error)
        if self._needs_marks:
            all_records = marked(all_records, 1 - error / len(self._query.statements))
        return all_records[0]

    @property
    def _needs_marks(self) -> bool:
        """Whether parts below their promise are still to be marked: with noise they are already, and areas never."""
        return self._query.epsilon is None and self._query.outcome != "area"

    @cached_property
    def coverage(self) -> Part:
        """Coverage over all records. For a bound on a loss it is that of critical thresholds."""
        return self.coverage_at(self.evaluation.error)

    @property
    def measured(self) -> Part:
        """Coverage over all records; of a release that bounds a loss, the loss."""
        return self.coverage if self._query.loss is None else self.coverage.as_loss(self._query.loss[1])

    @cached_property
    def tables(self) -> tuple[CoverageTable, ...]:
        """Coverage by class, group, set size, interval width or end; groups that overlap are in one table."""
        parts = dict[TableKind, tuple[Part, ...]]()
        have_thresholds = {"end", *(partition.kind for partition in self._query.partitions if partition.promised)}

        # The ends of intervals: each is a statement with a finding of its own.
        if self._query.outcome == "sides" and not self.name:
            ends = (replace(self, name=name) for name in SIDES[1:])
            parts["end"] = tuple(replace(end.coverage, name=end.name, mean_width=None) for end in ends)

        # The parts of each partition that belongs to this statement.
        for place, partition in enumerate(self._query.partitions):
            if partition.statement in ("", self.name):
                parts[partition.kind] = parts.get(partition.kind, ()) + self._parts_of(place)

        # Mark those that are covered less than promised, all of a kind at once.
        if self._needs_marks:
            parts = {kind: marked(of_kind) for kind, of_kind in parts.items()}
        advised = self.shortfall is None
        return tuple(
            CoverageTable(kind, of_kind, kind in have_thresholds, advised) for kind, of_kind in parts.items() if of_kind
        )

    def _parts_of(self, place: int) -> tuple[Part, ...]:
        """The parts of a partition; without noise those that do not occur are left out."""
        counts = self._counts.part_counts(self.name, place)
        if self._query.epsilon is None:
            return tuple(part for part in counts.parts(self.evaluation.error) if part.value is not None)
        return counts.parts(simultaneous(self.evaluation.error, len(counts.names)))

    # Sizes.

    @cached_property
    def shares(self) -> CoverageTable | None:
        """Share of all records in each bin of sizes or widths, None if they were not counted."""
        if (bins := self._bins) is None:
            return None
        shares = self._counts.bin_shares(bins, self.evaluation.error)
        return CoverageTable(bins.kind, shares, of="share")

    @property
    def _bins(self) -> Partition | None:
        partitions = self._query.partitions
        return next((bins for bins in partitions if bins.binned and bins.statement == self.name), None)

    @cached_property
    def _noisy_mean_size(self) -> BinnedMean | None:
        if self._query.epsilon is None or self.shares is None or self.shares.kind != "size":
            return None
        assert self._bins is not None  # of which these are the shares
        return mean_of_shares(self._bins, self.shares.parts)

    @property
    def mean_size(self) -> float | None:
        """Mean set size; with noise within its bounds."""
        return self.coverage.mean_size if self._noisy_mean_size is None else self._noisy_mean_size.value

    @property
    def mean_size_bounds(self) -> Bounds | None:
        """With noise: bounds of the mean set size, which hold together with all intervals."""
        return None if self._noisy_mean_size is None else self._noisy_mean_size.bounds

    @property
    def mean_width(self) -> float | None:
        """Mean interval width."""
        return self.coverage.mean_width

    # A broken guarantee.

    @cached_property
    def shortfall(self) -> Shortfall | None:
        """Finding that coverage over all records lies below the promise by more than chance in calibration explains.

        Without the evaluated release the result does not state whether an unlucky calibration explains the shortfall.
        """
        private = self._query.epsilon is not None
        coverage = self.coverage_at(CHANCE / 2 if private else CHANCE)
        if coverage.value is None:
            return None
        n = self._query.n if private else coverage.n

        # The release decides whether chance in calibration explains it.
        if (release := self.evaluation.release) is not None:
            return shortfall_at(Statement(self.name).part_of(release), coverage.value, coverage.high, n)
        if coverage.high >= self.promised:
            return None
        return Shortfall(coverage.value, coverage.high, n, self.promised, luck="not read", loss=self._query.loss)

    # In words.

    def _section(self) -> Section:
        tables = tuple(table.as_table() for table in self.shown)
        return Section(self.label, facts=self._facts(), tables=tables, notes=self.sentences)

    @property
    def shown(self) -> list[CoverageTable]:
        """Tables with losses if they are bounded; the ends of intervals have findings of their own."""
        tables = [table for table in self.tables if table.kind != "end"]
        if self._query.loss is not None:
            _, bound = self._query.loss
            tables = [table.as_loss(bound) for table in tables]
        return tables if self.shares is None else [*tables, self.shares]

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences about parts that are covered less than promised beyond chance; none for a bound on a loss."""
        tables = () if self._query.loss is not None else self.tables
        return tuple(table.sentence for table in tables if table.below)

    def _facts(self) -> Facts:
        # The coverage, or the loss.
        loss = self._query.loss
        quantity, side = ("coverage", "below") if loss is None else (f"loss {loss[0]!r}", "above")
        beyond = f", {side} the promise beyond chance" if self.coverage.below else ""
        rows = [(quantity, f"{self.measured.estimate}{beyond}"), ("promise", self._promise())]

        # Sizes, as far as they were measured.
        if self.mean_size is not None:
            bounds = self.mean_size_bounds
            ends = "" if bounds is None else f" (interval {interval_text(*bounds)})"
            rows.append(("classes per set, on average", f"{self.mean_size:.4g}{ends}"))
        if self.mean_width is not None:
            rows.append(("width of intervals, on average", short_number(self.mean_width)))
        if (ratio := self._counts.area_ratio) is not None:
            rows.append(("predicted area", f"{ratio:.2f} times the true area"))
        return tuple(rows)

    def _promise(self) -> str:
        # In the words of the release, if it is known.
        release = self.evaluation.release
        if release is not None and self._query.outcome != "sides":
            promises = Statement(self.name).part_of(release).promises
            return "; ".join(f"for {name}: {text}" if name else text for name, text in promises.items())
        if self._query.loss is None:
            return f"coverage at least {coverage_text(self.promised)}"
        _, bound = self._query.loss
        return f"at most {bound * (1 - self.promised):.6g} in expectation"

    def _brief(self) -> str:
        return f"{self.name!r}: {self.coverage.estimate}" if self.name else self.coverage.estimate

    def fields(self) -> dict[str, Any]:
        """JSON values of everything that follows from the counts about this statement."""
        names = (
            "name", "coverage", "tables", "shares", "mean_size", "mean_size_bounds", "mean_width", "shortfall",
            "sentences",
        )  # fmt: skip
        return json_fields({name: getattr(self, name) for name in names})


def number_of_intervals(finding: Finding) -> int:
    """Number of intervals with noise that a finding states."""
    parts = sum(len(table) for table in finding.tables if table.kind != "end")
    return 1 + parts + len(finding.shares or ()) + (finding.mean_size_bounds is not None)
