"""Counts of an evaluation as arrays: whether they agree with each other, and what they state about each part."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.evaluation.mean_sizes import mean_of
from confide.evaluation.partitions import Partition
from confide.evaluation.parts import Part
from confide.evaluation.query import CountQuery, Measure
from confide.noisy_counts import coverage_interval, coverage_share, one_count_interval
from confide.sets import exact_interval, mean_limit
from confide.support import MOST_RECORDS, Level, require


@dataclass(frozen=True)
class CountNoise:
    """The noise in counts of covered and of missed records.

    A count of covered records has `in_covered` noises with this parameter, and one of missed records `in_missed`.
    Intervals are shortest for a coverage of `guess`, a public number. `n` is the number of records, if it is public.
    """

    parameter: float
    in_covered: int
    in_missed: int
    guess: Level
    n: int | None

    def intervals(self, covered: NDArray[Any], missed: NDArray[Any], error: float) -> "Intervals":
        """Shares of covered records with intervals that include the noise."""
        size = None if self.n is None else np.full(len(covered), self.n)
        if size is not None and not self.in_missed:
            low, high = one_count_interval(covered, size, self.parameter, error=error)
        else:
            noises = (self.in_covered, self.in_missed)
            low, high = coverage_interval(
                covered, missed, self.parameter, error=error, guess=self.guess, noises=noises, size=size
            )
        return Intervals(coverage_share(covered, missed, size), low, high)


class Intervals(NamedTuple):
    """Shares of covered records of some parts, NaN without records, and the ends of their intervals."""

    shares: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


@dataclass(frozen=True)
class PartCounts:
    """Counts of covered and missed records of some parts, from which their shares and intervals follow."""

    # Numbers of records, shape (parts,): exact, noisy, or for masks sums of shares of the true area.
    names: Sequence[object]
    covered: NDArray[Any]
    missed: NDArray[Any]

    # Promised coverage, and mean size or width, of each part; empty if there is none.
    promised: Sequence[float] = ()
    means: Sequence[float | None] = ()
    measure: Measure | None = None
    noise: CountNoise | None = None

    def parts(self, error: float) -> tuple[Part, ...]:
        """The parts with intervals, each of which is wrong with probability `error`; intervals without noise are exact.

        Intervals with noise hold all at once, and decide which parts are below their promise.
        """
        nothing = [None] * len(self.covered)
        numbers = (values.tolist() for values in (self.covered, self.missed, *self._intervals(error)))
        rows = zip(self.names, *numbers, self.promised or nothing, self.means or nothing, strict=True)
        return tuple(
            Part(
                name=str(name),
                covered=covered,
                missed=missed,
                value=None if math.isnan(share) else share,
                low=low,
                high=high,
                promised=promised,
                below=self.noise is not None and high < (promised or 0.0),
                mean_size=mean if self.measure == "size" else None,
                mean_width=mean if self.measure == "width" else None,
                confidence=1 - error if self.noise is None else None,
            )
            for name, covered, missed, share, low, high, promised, mean in rows
        )

    def _intervals(self, error: float) -> Intervals:
        if self.noise is not None:
            return self.noise.intervals(self.covered, self.missed, error)
        n = self.covered + self.missed
        if n.dtype.kind != "f":
            return Intervals(coverage_share(self.covered, self.missed), *exact_interval(self.covered, n, 1 - error))

        # Sums of shares of areas: Hoeffding's limits for means.
        records = np.round(n)
        shares = self.covered / records
        low = 1 - _mean_limits(self.missed / records, records, error)
        return Intervals(shares, low, _mean_limits(shares, records, error))


def _mean_limits(means: NDArray[np.float64], n: NDArray[np.float64], error: float) -> NDArray[np.float64]:
    return np.array([mean_limit(mean, int(records), error) for mean, records in zip(means.tolist(), n, strict=True)])


class PartitionCells(NamedTuple):
    """Counts of a partition, shape (parts, outcomes), each summed over the partitions that are crossed with it."""

    counts: NDArray[Any]
    table: int
    summed: int
    """Number of cells of the table in each count; with noise each cell has a noise of its own."""


class BinCounts(NamedTuple):
    """Numbers of records in some bins, and how many noises each has, if counts have noise."""

    records: NDArray[Any]
    noises: int


@dataclass(frozen=True, eq=False)
class CountTables:
    """Counts of each table of a query, and without noise the sums of set sizes, interval widths or areas.

    An array of `cells` has one axis for each partition of its table, and a last axis for outcomes.
    """

    query: CountQuery
    cells: list[NDArray[Any]]
    sums: Sequence[Sequence[float]]

    @classmethod
    def of(cls, query: CountQuery, counts: Sequence[Sequence[float]], sums: Sequence[Sequence[float]]) -> Self:
        """Arrange the counts of each table; if only covered records are counted, all others are missed."""
        if query.one_count:
            ((covered,),) = counts
            return cls(query, [np.array([covered, (query.n or 0) - covered])], sums)
        shapes = map(query.shape, query.tables)
        return cls(query, [np.array(cells).reshape(shape) for cells, shape in zip(counts, shapes, strict=True)], sums)

    # Agreement of exact counts.

    def check(self) -> None:
        """Check counts and sums without noise."""
        # As many records and sums as there can be.
        total = self.cells[0]
        if any((counts < 0).any() for counts in self.cells) or not 0 < total.sum() <= MOST_RECORDS:
            raise InputError("counts", "must be at least 0, and count at least one record")
        measured = self._measured()

        # Without noise the first table counts all records, and each of the others divides them by one partition.
        for table, partition in enumerate(self.query.partitions, start=1):
            self._check_totals(table, partition)
            if partition.kind == "size":  # whose sums are those of the sizes
                _check_sizes(self.cells[table], partition, measured[table][:, 0])
            divides_all = self.query.measure == "size" and not partition.statement
            if divides_all and not np.array_equal(measured[table].sum(axis=0), measured[0]):
                raise InputError("sums", "must add up to the number of labels in all sets")

    def _measured(self) -> list[NDArray[Any]]:
        """The sums of each table as an array; without a measure there are none."""
        shapes = [self.query.sums_shape(table) for table in self.query.tables] if self.query.measure else []
        has_all = [len(sums) for sums in self.sums] == [math.prod(shape) for shape in shapes]
        if not has_all or any(number < 0 for number in chain(*self.sums)):
            raise InputError("sums", "must have one number of at least 0 for each part and level")
        return [np.array(sums).reshape(shape) for sums, shape in zip(self.sums, shapes, strict=True)]

    def _check_totals(self, table: int, partition: Partition) -> None:
        """Check that the parts of a table have as many records of each outcome as all records together."""
        if self.query.outcome == "area":  # areas of one record may be in several parts
            return
        total = self.cells[0]
        if partition.statement:  # sets of one level, which has two outcomes
            held = self.query.held(partition.statement, ())
            total = np.array([total[held].sum(), total[~held].sum()])
        if not np.array_equal(self.cells[table].sum(axis=0), total):
            raise InputError("counts", "must have the same total in each partition as over all records")

    # Counts of parts.

    def partition_cells(self, place: int | None) -> PartitionCells:
        """Counts of the partition at this place of the query; None stands for all records as one part."""
        # Of the tables that have the partition, the one whose sums have the fewest noises.
        tables = [table for table, crossed in enumerate(self.query.tables) if place is None or place in crossed]
        table = min(tables, key=lambda table: math.prod(self.cells[table].shape[:-1]))

        # One row for each part: the other partitions of a crossed table are added up.
        counts = self.cells[table]
        parts = 1
        if place is not None:
            counts = np.moveaxis(counts, self.query.tables[table].index(place), 0)
            parts = len(self.query.partitions[place])
        counts = counts.reshape(parts, -1, counts.shape[-1])
        return PartitionCells(counts.sum(axis=1), table, counts.shape[1])

    def part_counts(self, statement: str, place: int | None) -> PartCounts:
        """Records for which a statement holds, or fails, in each part of a partition; None for all records."""
        # The empty set covers no label, so only its share is reported.
        first = 1 if place is not None and self.query.partitions[place].kind == "size" else 0
        cells = self.partition_cells(place)
        held = self.query.held(statement, self.query.tables[cells.table])
        covered = cells.counts[first:, held].sum(axis=1)
        missed = cells.counts[first:, ~held].sum(axis=1)

        # What is stated about each part.
        names = [""] if place is None else self.query.partitions[place].names[first:]
        promised = self._promises(statement, place)[first:]
        means = list(map(mean_of, self._sums(statement, cells.table)[first:], (covered + missed).tolist()))
        noise = self._noise(statement, place, held, cells.summed)
        return PartCounts(names, covered, missed, promised, means, self.query.measure, noise)

    def _promises(self, statement: str, place: int | None) -> Sequence[float]:
        """What each part is promised: its own promise, or that of all records."""
        promised = self.query.statements[statement]
        if place is None:
            return [promised]
        if self.query.outcome == "area":  # a bound on the loss of all classes promises nothing to one
            return []
        partition = self.query.partitions[place]
        return partition.promised or [promised] * len(partition)

    def _sums(self, statement: str, table: int) -> list[float]:
        """Sums of sizes or widths of the parts of a table, at the level of a statement; none of areas."""
        if not self.sums or self.query.measure == "area":
            return []
        levels = self.query.sums_shape(self.query.tables[table])[-1]
        level = list(self.query.statements).index(statement) if levels > 1 else 0
        sums: list[float] = np.reshape(self.sums[table], (-1, levels))[:, level].tolist()
        return sums

    def _noise(self, statement: str, place: int | None, held: NDArray[np.bool_], summed: int) -> CountNoise | None:
        """The noise of counts, each of which sums as many cells of each outcome; the guess is what is promised."""
        if self.query.epsilon is None:
            return None
        in_covered = int(held.sum()) * summed
        in_missed = 0 if self.query.one_count else int((~held).sum()) * summed
        guess = min(max(round(self.query.statements[statement], 2), 0.01), 0.99)
        return CountNoise(self.query.noise, in_covered, in_missed, guess, self.query.n if place is None else None)

    def bin_counts(self, partition: Partition) -> BinCounts:
        """Records in each bin of a partition: a count has one noise from each outcome of each cell."""
        cells = self.partition_cells(self.query.partitions.index(partition))
        return BinCounts(cells.counts.sum(axis=1), cells.summed * cells.counts.shape[1])

    def bin_shares(self, partition: Partition, error: float) -> tuple[Part, ...]:
        """Share of all records in each bin of a partition; empty bins only with noise."""
        # A record in the bin counts as covered, and every other one as missed.
        inside, noises = self.bin_counts(partition)
        by_bin = PartCounts(partition.names, covered=inside, missed=inside.sum() - inside)
        if self.query.epsilon is None:
            return tuple(share for share in by_bin.parts(error) if share.covered)

        # With noise the other bins have the other noises.
        bins = len(partition)
        if bins == 1:
            return (Part(partition.names[0], covered=int(inside[0]), missed=0, value=1.0, low=1.0, high=1.0),)
        noise = CountNoise(self.query.noise, noises, noises * (bins - 1), Fraction(1, bins), self.query.n)
        return replace(by_bin, noise=noise).parts(error / bins)

    @property
    def area_ratio(self) -> float | None:
        """For masks: predicted area divided by true area, both summed over images; NaN without any true area."""
        if self.query.measure != "area":
            return None
        predicted, true = self.sums[0]
        return predicted / true if true else math.nan


def _check_sizes(counts: NDArray[Any], partition: Partition, labels: NDArray[Any]) -> None:
    """Check counts by set size: `labels` is the number of labels in the sets of each size."""
    sizes = np.arange(len(partition))
    if partition.edges != tuple(sizes) or counts[0, :-1].any():
        raise InputError(
            "partitions", "must have a part for each single set size, and no covered record in an empty set"
        )
    agree = np.array_equal(labels, counts.sum(axis=1) * sizes)
    require("sums", agree, "must be the number of labels in the sets of each size")
