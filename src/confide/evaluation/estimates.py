"""Coverage and sizes from the counts of an evaluation: a function of its public query and of these numbers alone.

Without noise every interval is exact by itself. With noise all intervals hold together: the error probability
a = 1 - confidence is divided evenly among the families of statements (Bonferroni). For each promise these are the
coverage over all records and the coverage by each partition, and for each partition into bins the shares of its bins.
Within a partition the coverage intervals are independent given the part sizes, so each may miss with probability
1 - (1 - a')^(1/k) (Sidak). Shares of bins are not independent and divide a' by k. The mean of a binned number follows
from its shares on the same event. It lies between the two optima of a linear program over the intervals of the shares,
at no further error.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.evaluation.parts import CoverageTable, Part, TableKind, below_at_once, exact_parts, mean_of
from confide.evaluation.query import CountQuery, Partition
from confide.noisy_counts import coverage_interval, coverage_share, one_count_interval, simultaneous
from confide.sets import mean_limit

Bounds = tuple[float, float]


@dataclass(frozen=True)
class Estimates:
    """Coverage, shares and means from counts.

    Parameters
    ----------
    query
        The public query.
    counts, sums
        Counts of each table in the order of its cells; and without noise, sums of sizes or widths.
    error
        Error probability of each family of intervals with noise; of each interval without.
    """

    query: CountQuery
    counts: Sequence[Sequence[float]]
    sums: Sequence[Sequence[float]]
    error: float

    @cached_property
    def _cells(self) -> list[NDArray[Any]]:
        """Counts of each table: one axis for each of its partitions, and a last axis for outcomes."""
        q = self.query
        kind, shapes = (
            np.float64 if q.outcome == "area" else np.int64,
            [(1,)] if q.one_count else map(q.shape, q.tables),
        )
        return [np.array(cells, kind).reshape(shape) for cells, shape in zip(self.counts, shapes, strict=True)]

    def _of_all(self) -> tuple[NDArray[Any], int, int]:
        """Counts by outcome from the table with the fewest cells, its place, and the number of noises in each count."""
        rows = [prod(table.shape[:-1]) for table in self._cells]
        place = rows.index(min(rows))
        return self._cells[place].reshape(rows[place], -1).sum(axis=0), place, rows[place]

    def _of_parts(self, partition: int) -> tuple[NDArray[Any], int, int]:
        """Counts by part and outcome, the place of the table, and the number of noises in each count."""
        place = next(i for i, table in enumerate(self.query.tables) if partition in table)
        axis, cells = self.query.tables[place].index(partition), self._cells[place]
        moved = np.moveaxis(cells, axis, 0)
        others = prod(moved.shape[1:-1])
        return moved.reshape(moved.shape[0], others, moved.shape[-1]).sum(axis=1), place, others

    def _means(self, name: str, place: int, n: Sequence[float]) -> list[float | None]:
        """Mean set size or width of each part of a table without crossed partitions; empty if it was not measured."""
        q = self.query
        *_, columns = shape = q.sums_shape(q.tables[place]) if self.sums else (0,)
        if not columns or q.measure == "area":
            return []
        level = list(q.statements).index(name) if columns > 1 else 0
        totals = np.array(self.sums[place], np.float64).reshape(-1, shape[-1])[:, level].tolist()
        return [mean_of(total, records) for total, records in zip(totals, n, strict=True)]

    def total(self, name: str, error: float | None = None) -> Part:
        """Coverage over all records, with an interval that misses with probability at most `error`."""
        error = self.error if error is None else error
        q, (counts, place, noises) = self.query, self._of_all()
        promised = q.statements[name]
        if q.one_count:
            assert q.n is not None
            ends = one_count_interval(counts, np.array([q.n]), q.noise, error=error)
            return _noisy_parts([""], counts, q.n - counts, ends, [promised], q.n)[0]
        held, others = q.statement_cells(name, q.tables[place])
        x, y = counts[held].sum(keepdims=True), counts[others].sum(keepdims=True)
        if q.epsilon is None:
            means = self._means(name, place, (x + y).tolist())
            (part,) = self._exact([""], x, y, [promised], means, error)
            below = below_at_once(x, x + y, promised, 1 - error / len(q.statements)) if q.outcome != "area" else [False]
            return replace(part, below=bool(below[0]))
        own = (len(held) * noises, len(others) * noises)
        size = None if q.n is None else np.array([q.n])
        ends = coverage_interval(x, y, q.noise, error=error, guess=_guess(promised), noises=own, size=size)
        return _noisy_parts([""], x, y, ends, [promised], q.n)[0]

    def _exact(
        self,
        names: Sequence[str],
        x: NDArray[Any],
        y: NDArray[Any],
        promised: Sequence[float | None],
        means: Sequence[float | None],
        error: float,
    ) -> tuple[Part, ...]:
        """Parts without noise; the interval of a mean loss is that of Hoeffding."""
        if self.query.outcome != "area":
            return exact_parts(names, x, x + y, promised, means=means, measure=self.query.measure, confidence=1 - error)
        parts = []
        for name, covered, missed, level in zip(names, x.tolist(), y.tolist(), promised, strict=True):
            n = round(covered + missed)
            low, high = 1 - mean_limit(missed / n, n, error), mean_limit(covered / n, n, error)
            parts.append(Part(name, covered, missed, covered / n, low, high, level, confidence=1 - error))
        return tuple(parts)

    def tables(self, name: str, *, advised: bool) -> tuple[CoverageTable, ...]:
        """Coverage by each partition; several partitions are of kind group if groups overlap."""
        q, parts, own = self.query, dict[TableKind, tuple[Part, ...]](), dict[TableKind, bool]()
        if q.outcome == "sides" and not name:
            ends = [replace(self.total(end), name=end, mean_width=None) for end in list(q.statements)[1:]]
            parts["end"], own["end"] = tuple(ends), True
        for place, partition in enumerate(q.partitions):
            if partition.statement in ("", name):
                parts[partition.kind] = parts.get(partition.kind, ()) + self._by_part(place, name)
                own[partition.kind] = partition.promised is not None
        if q.epsilon is None and q.outcome != "area":
            parts = {kind: _marked(some) for kind, some in parts.items()}
        return tuple(CoverageTable(kind, some, own[kind], advised) for kind, some in parts.items() if some)

    def _by_part(self, place: int, name: str) -> tuple[Part, ...]:
        q, partition, (counts, table, noises) = self.query, self.query.partitions[place], self._of_parts(place)
        promised = q.statements[name]
        held, others = q.statement_cells(name, q.tables[table])
        x, y = counts[:, held].sum(axis=1), counts[:, others].sum(axis=1)
        first = partition.kind == "size"  # the empty set covers no label, so only its share is reported
        names, levels = partition.names[first:], (partition.promised or (promised,) * len(partition))[first:]
        if q.epsilon is None:
            means = self._means(name, table, (x + y).tolist())[first:]
            stated = [None] * len(names) if q.outcome == "area" else levels  # a bound on the loss of all classes
            parts = self._exact(names, x[first:], y[first:], stated, means, self.error)
            return tuple(part for part in parts if part.value is not None)
        own, chance = (len(held) * noises, len(others) * noises), simultaneous(self.error, len(names))
        x, y = x[first:], y[first:]
        ends = coverage_interval(x, y, q.noise, error=chance, guess=_guess(promised), noises=own)
        return _noisy_parts(names, x, y, ends, levels, None)

    def shares(self, name: str) -> CoverageTable | None:
        """Share of all records in each bin of sizes or widths: "covered" records are those in the bin."""
        for place, partition in enumerate(self.query.partitions):
            if partition.binned and partition.statement == name:
                return CoverageTable(partition.kind, self._shares(place), of="share")
        return None

    def _shares(self, place: int) -> tuple[Part, ...]:
        q, partition, (counts, _, noises) = self.query, self.query.partitions[place], self._of_parts(place)
        inside = counts.sum(axis=1)
        rest, k = inside.sum() - inside, len(partition)
        if q.epsilon is None:
            parts = exact_parts(partition.names, inside, inside + rest, confidence=1 - self.error)
            return tuple(part for part in parts if part.covered)
        if k == 1:
            return (Part(partition.names[0], int(inside[0]), 0, 1.0, 1.0, 1.0),)
        own = noises * counts.shape[1]
        size = None if q.n is None else np.full(k, q.n)
        ends = coverage_interval(
            inside, rest, q.noise, error=self.error / k, guess=f"1/{k}", noises=(own, own * (k - 1)), size=size
        )
        return _noisy_parts(partition.names, inside, rest, ends, [None] * k, q.n)

    def mean_size(self, name: str) -> tuple[float | None, Bounds | None]:
        """Mean set size, and with noise its bounds, which hold together with all intervals."""
        if self.query.epsilon is None:
            return (self.total(name).mean_size, None)
        for place, partition in enumerate(self.query.partitions):
            if partition.kind == "size" and partition.statement == name:
                return mean_of_shares(partition, self._shares(place))
        return None, None

    @property
    def area_ratio(self) -> float | None:
        """Predicted area divided by true area, both summed over all images; None for others than masks."""
        if self.query.measure != "area":
            return None
        predicted, true = self.sums[0]
        return predicted / true if true else math.nan


def _marked(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Mark parts without noise that are covered less than promised, all parts of a kind at once."""
    hits, n = np.array([part.covered for part in parts]), np.array([part.n for part in parts])
    short = below_at_once(hits, n, [part.promised or 0.0 for part in parts])
    return tuple(replace(part, below=below) for part, below in zip(parts, short.tolist(), strict=True))


def _noisy_parts(
    names: Sequence[str],
    x: NDArray[np.int64],
    y: NDArray[np.int64],
    ends: tuple[NDArray[np.float64], NDArray[np.float64]],
    promised: Sequence[float | None],
    n: int | None,
) -> tuple[Part, ...]:
    """Parts from noisy counts of covered and missed records, with their intervals; n is the number of all records."""
    shares = coverage_share(x, y, None if n is None else np.full(len(x), n)).tolist()
    columns = zip(names, x.tolist(), y.tolist(), shares, *(end.tolist() for end in ends), promised, strict=True)
    return tuple(
        Part(name, hits, misses, None if math.isnan(share) else share, low, high, level, high < (level or 0.0))
        for name, hits, misses, share, low, high, level in columns
    )


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


def _guess(promised: float) -> str:
    """Public guess of the coverage: the promised value, moved away from 0 and 1."""
    return f"{min(max(round(promised, 2), 0.01), 0.99):.2f}"
