"""Counts of an evaluation as arrays: whether they agree with each other, and what they state about each part."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.evaluation.parts import Part, PartCounts
from confide.evaluation.query import CountQuery, Partition
from confide.support import MOST_RECORDS, require

MOST_EXAMPLES = 1000


@dataclass(frozen=True)
class Example:
    """A record that the user chose to show: its set, its true label, and its group where these have thresholds."""

    members: tuple[str, ...]
    truth: str
    group: str | None = None


class PartitionCells(NamedTuple):
    """Counts of a partition, shape (parts, outcomes), each summed over the partitions that are crossed with it."""

    counts: NDArray[Any]
    table: int
    summed: int
    """Number of cells of the table in each count; with noise each cell has a noise of its own."""


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

    def check(self, examples: Sequence[Sequence[Example]]) -> None:
        """Check counts and sums without noise, and the examples at each level."""
        # As many records, sums and examples as there can be.
        total = self.cells[0]
        if any((counts < 0).any() for counts in self.cells) or not 0 < total.sum() <= MOST_RECORDS:
            raise InputError("counts", "must be at least 0, and count at least one record")
        measured = self._measured()
        shown = {len(of_level) for of_level in examples}
        most = min(MOST_EXAMPLES, total.sum())
        if shown and (len(examples) != self.query.levels or len(shown) != 1 or max(shown) > most):
            raise InputError(
                "examples", f"must be at most {MOST_EXAMPLES} for each level, and no more than there are records"
            )

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
        if not has_all or any(number < 0 for sums in self.sums for number in sums):
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
        counts, parts = self.cells[table], 1
        if place is not None:
            counts = np.moveaxis(counts, self.query.tables[table].index(place), 0)
            parts = len(self.query.partitions[place])
        counts = counts.reshape(parts, -1, counts.shape[-1])
        return PartitionCells(counts.sum(axis=1), table, counts.shape[1])

    def part_counts(self, statement: str, place: int | None) -> PartCounts:
        """Records for which a statement holds, or fails, in each part of a partition; None for all records."""
        # Outcomes in which the statement holds, and all others.
        q = self.query
        cells = self.partition_cells(place)
        table = q.tables[cells.table]
        promised = q.statements[statement]
        held = q.held(statement, table)
        covered = cells.counts[:, held].sum(axis=1)
        missed = cells.counts[:, ~held].sum(axis=1)

        # Mean sizes or widths at the level of the statement.
        means: list[float | None] = []
        levels = q.sums_shape(table)[-1]
        if self.sums and q.measure != "area":
            level = list(q.statements).index(statement) if levels > 1 else 0
            means = list(map(mean_of, self.sums[cells.table][level::levels], (covered + missed).tolist()))

        # What each part is called and promised; a bound on the loss of all classes promises nothing to one.
        names: Sequence[str] = [""]
        levels_promised: Sequence[float] = [promised]
        first = 0
        if place is not None:
            partition = q.partitions[place]
            names = partition.names
            levels_promised = partition.promised or [promised] * len(names)
            if q.outcome == "area":
                levels_promised = ()
            # The empty set covers no label, so only its share is reported.
            first = int(partition.kind == "size")
        return PartCounts(
            names=names[first:],
            covered=covered[first:],
            missed=missed[first:],
            promised=levels_promised[first:],
            means=means[first:],
            measure=q.measure,
            noise=None if q.epsilon is None else q.noise,
            noises=(int(held.sum()) * cells.summed, 0 if q.one_count else int((~held).sum()) * cells.summed),
            guess=f"{min(max(round(promised, 2), 0.01), 0.99):.2f}",
            n=q.n if place is None else None,
        )

    def bin_shares(self, partition: Partition, error: float) -> tuple[Part, ...]:
        """Share of all records in each bin of a partition; empty bins only with noise."""
        # A record in the bin counts as covered, and every other one as missed.
        q = self.query
        cells = self.partition_cells(q.partitions.index(partition))
        inside, k = cells.counts.sum(axis=1), len(partition)
        by_bin = PartCounts(partition.names, covered=inside, missed=inside.sum() - inside)
        if q.epsilon is None:
            return tuple(share for share in by_bin.parts(error) if share.covered)

        # With noise a count of the bin has one noise from each outcome; the other bins have the rest.
        if k == 1:
            return (Part(partition.names[0], covered=int(inside[0]), missed=0, value=1.0, low=1.0, high=1.0),)
        noises = cells.summed * cells.counts.shape[1]
        noisy = replace(by_bin, noise=q.noise, noises=(noises, noises * (k - 1)), guess=f"1/{k}", n=q.n)
        return noisy.parts(error / k)


def _check_sizes(counts: NDArray[Any], partition: Partition, labels: NDArray[Any]) -> None:
    """Check counts by set size: `labels` is the number of labels in the sets of each size."""
    sizes = np.arange(len(partition))
    if partition.edges != tuple(sizes) or counts[0, :-1].any():
        raise InputError(
            "partitions", "must have a part for each single set size, and no covered record in an empty set"
        )
    require(
        "sums",
        np.array_equal(labels, counts.sum(axis=1) * sizes),
        "must be the number of labels in the sets of each size",
    )


# Means of set sizes and interval widths: from their sum, or from the noisy shares of bins.

Bounds = tuple[float, float]


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
    low = np.array([share.low for share in shares])
    high = np.array([share.high for share in shares])
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
    # Every share has its lower end; what is missing from 1 goes to the smallest values that have room.
    room = np.diff(np.minimum(np.cumsum(high - low), 1 - math.fsum(low)), prepend=0.0)
    return _weighed(values, low + room)


def _weighed(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Sum of products, correctly rounded, so that files contain the same digits on every machine."""
    return math.fsum(values * weights)
