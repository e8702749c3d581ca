"""What the counts of an evaluation state about one promise: coverage in all and by part, sizes, shares, a shortfall."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from confide.core import Release
from confide.evaluation.parts import CoverageTable, Part, PartCounts, TableKind, interval_text, marked
from confide.evaluation.query import SIDES, Partition
from confide.guarantee import coverage_text
from confide.noisy_counts import simultaneous
from confide.sets import CHANCE, Shortfall, shortfall_at
from confide.support import Described, Facts, Section, short_number

if TYPE_CHECKING:
    from confide.evaluation.evaluation import Evaluation

Bounds = tuple[float, float]


@dataclass(frozen=True)
class Example:
    """A record that the user chose to show: its set, its true label, and its group if groups have thresholds."""

    members: tuple[str, ...]
    truth: str
    group: str | None = None


class Measured(Described, ABC):
    """Tables of coverage by kind of part, which an evaluation and each of its findings have."""

    @property
    @abstractmethod
    def finding(self) -> "Finding":
        """The finding whose tables these are."""

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

    Without noise every interval is exact by itself. With noise all intervals hold together: the error probability
    a = 1 - confidence is divided evenly among the families of statements (Bonferroni). For each promise these are the
    coverage over all records and the coverage by each partition, and for each partition into bins the shares of its
    bins. Within a partition the coverage intervals are independent given the part sizes, so each may miss with
    probability 1 - (1 - a')^(1/k) (Sidak). Shares of bins are not independent and divide a' by k. The mean of a binned
    number follows from its shares on the same event, at no further error.

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


def without_none(value: Any) -> Any:
    """JSON values without the fields that do not apply."""
    if isinstance(value, dict):
        return {name: without_none(inner) for name, inner in value.items() if inner is not None}
    return [without_none(inner) for inner in value] if isinstance(value, list | tuple) else value


# Means.


def mean_of(total: float, n: float) -> float | None:
    """Mean of n sizes or widths from their sum, which may be infinite; None without records."""
    if not n:
        return None
    return total / n if math.isfinite(total) else math.inf


def mean_of_shares(partition: Partition, shares: Sequence[Part]) -> tuple[float | None, Bounds]:
    """Mean of a binned number, and its bounds: extremes over all shares in their intervals that add up to 1."""
    # Smallest and largest number in each bin.
    assert partition.most is not None
    least = np.array(partition.edges)
    most = np.array([*(edge - 1 for edge in partition.edges[1:]), float(partition.most)])

    # The two optima of a linear program over the intervals of the shares.
    low, high = np.array([share.low for share in shares]), np.array([share.high for share in shares])
    if math.fsum(low) > 1 or math.fsum(high) < 1:  # no shares fit, so an interval misses: use the trivial bounds
        bounds = float(least[0]), float(most[-1])
    else:
        bounds = _extreme(least, low, high), -_extreme(-most[::-1], low[::-1], high[::-1])

    # The estimate takes the middle of each bin.
    estimates = np.array([share.value or 0.0 for share in shares])
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
