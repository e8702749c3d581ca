"""From noisy counts to statements with intervals that hold all at once: a pure function of public numbers and counts.

The chance of a miss, a = 1 - confidence, is divided evenly among the families of statements (Bonferroni): for each
promise the coverage over all and that of each partition, and for each partition into bins their shares. Within a
partition the intervals for coverage are independent given the parts' sizes, so each may miss with 1 - (1 - a')^(1/k)
(Sidak); shares of bins are not, and divide a' by k. The mean of a number that was binned follows from its shares on the
same event: it is at least, and at most, what a linear program over the shares' intervals says, and costs no chance.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.evaluation.private_parts import Partition, PartKind
from confide.noisy_counts import coverage_interval, coverage_share, one_count_interval, simultaneous

_LEAST_ERROR = 1e-9


@dataclass(frozen=True)
class PrivateCoverage:
    """Coverage of a part of the records, from its noisy counts.

    Parameters
    ----------
    name
        Of the part; "" for all records.
    value
        The share of covered among the noisy counts, for display; None if nothing is counted.
    low, high
        The interval, which holds together with all others of the evaluation.
    covered, missed
        The noisy counts, or sums of such; they may be negative.
    promised
        The coverage that is promised for the part, or on average.
    """

    name: str
    value: float | None
    low: float
    high: float
    covered: int
    missed: int
    promised: float

    @property
    def below(self) -> bool:
        """Whether the part is covered less than promised, with the confidence of the whole evaluation."""
        return self.high < self.promised


@dataclass(frozen=True)
class PrivateShare:
    """The share of records in one bin, from noisy counts; the interval holds together with all others."""

    name: str
    value: float | None
    low: float
    high: float


@dataclass(frozen=True)
class PrivateMean:
    """Bounds for a mean, which hold together with all intervals, and an estimate in between for display."""

    value: float | None
    low: float
    high: float


@dataclass(frozen=True)
class PrivateFinding:
    """What is stated of one promise.

    Parameters
    ----------
    coverage
        Over all records.
    parts
        By class, group, size of the set or width of the interval, as far as it was asked.
    shares
        Of each size of the set, or width of the interval.
    mean_size
        Of the sets.
    """

    coverage: PrivateCoverage
    parts: Mapping[PartKind, tuple[PrivateCoverage, ...]] = field(hash=False)
    shares: Mapping[PartKind, tuple[PrivateShare, ...]] = field(hash=False)
    mean_size: PrivateMean | None


@dataclass(frozen=True)
class Cells:
    """Noisy counts by table, and what they mean.

    Parameters
    ----------
    partitions, tables
        Which partitions are crossed in which table.
    noisy
        The counts of each table: one axis for each of its partitions, and one for outcomes.
    held
        For each statement the outcomes in which it holds, and the others.
    noise
        One over the scale of the noise.
    n
        The public number of records, or None.
    one_count
        Whether covered records alone were counted.
    """

    partitions: tuple[Partition, ...]
    tables: tuple[tuple[int, ...], ...]
    noisy: Sequence[NDArray[np.int64]]
    held: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]]
    noise: float
    n: int | None
    one_count: bool

    def of_all(self) -> tuple[NDArray[np.int64], int]:
        """Counts by outcome, shape (outcomes,), and how many noises each has: from the table with fewest cells."""
        rows = [prod(table.shape[:-1]) for table in self.noisy]
        place = rows.index(min(rows))
        return self.noisy[place].reshape(rows[place], -1).sum(axis=0), rows[place]

    def of_parts(self, partition: int) -> tuple[NDArray[np.int64], int]:
        """Counts by part and outcome, shape (parts, outcomes), and how many noises each has."""
        place = next(i for i, table in enumerate(self.tables) if partition in table)
        axis, cells = self.tables[place].index(partition), self.noisy[place]
        moved = np.moveaxis(cells, axis, 0)
        others = prod(moved.shape[1:-1])
        return moved.reshape(moved.shape[0], others, moved.shape[-1]).sum(axis=1), others


def find(cells: Cells, statements: Mapping[str, float], error: float) -> dict[str, PrivateFinding]:
    """What is stated of each promise, all at once with a chance of at most `error` to miss."""
    each = family_error(cells.partitions, len(statements), error)
    shares = {
        partition.kind: _shares(cells, place, each)
        for place, partition in enumerate(cells.partitions)
        if partition.binned
    }
    mean = next(
        (_mean(partition, shares["size"]) for partition in cells.partitions if partition.kind == "size"),
        None,
    )
    found = {}
    for name, promised in statements.items():
        parts = {
            partition.kind: _by_part(cells, place, name, promised, each)
            for place, partition in enumerate(cells.partitions)
        }
        found[name] = PrivateFinding(over_all(cells, name, promised, each), parts, shares, mean)
    return found


def family_error(partitions: Sequence[Partition], statements: int, error: float) -> float:
    """The chance of a miss that each family of statements has.

    Raises
    ------
    InputError
        If a single interval of some family would be left with less than 1e-9.

    Examples
    --------
    >>> family_error([], 1, 0.05)
    0.05
    """
    families = statements * (1 + len(partitions)) + sum(partition.binned for partition in partitions)
    each = error if families == 1 else error / families * (1 - 1e-12)
    if each / max([1, *map(len, partitions)]) < _LEAST_ERROR:
        raise InputError(
            "confidence must leave each interval a chance of 1e-9 to miss: ask for a smaller one, or for fewer parts"
        )
    return each


def over_all(cells: Cells, name: str, promised: float, error: float) -> PrivateCoverage:
    """Coverage over all records, with an interval that misses it with a chance of at most `error`."""
    counts, noises = cells.of_all()
    if cells.one_count:
        assert cells.n is not None
        low, high = one_count_interval(counts, np.array([cells.n]), cells.noise, error=error)
        return _coverages([""], counts, cells.n - counts, (low, high), [promised], cells.n)[0]
    held, others = cells.held[name]
    x, y = counts[list(held)].sum(keepdims=True), counts[list(others)].sum(keepdims=True)
    own = (len(held) * noises, len(others) * noises)
    size = None if cells.n is None else np.array([cells.n])
    ends = coverage_interval(x, y, cells.noise, error=error, guess=_guess(promised), noises=own, size=size)
    return _coverages([""], x, y, ends, [promised], cells.n)[0]


def _by_part(cells: Cells, place: int, name: str, promised: float, error: float) -> tuple[PrivateCoverage, ...]:
    partition = cells.partitions[place]
    counts, noises = cells.of_parts(place)
    held, others = cells.held[name]
    first = partition.kind == "size"  # the empty set covers nobody: only its share is stated
    names, levels = partition.names[first:], (partition.promised or (promised,) * len(partition))[first:]
    x, y = counts[first:, list(held)].sum(axis=1), counts[first:, list(others)].sum(axis=1)
    own = (len(held) * noises, len(others) * noises)
    chance = simultaneous(error, len(names))
    ends = coverage_interval(x, y, cells.noise, error=chance, guess=_guess(promised), noises=own)
    return _coverages(names, x, y, ends, levels, None)


def _coverages(
    names: Sequence[str],
    x: NDArray[np.int64],
    y: NDArray[np.int64],
    ends: tuple[NDArray[np.float64], NDArray[np.float64]],
    promised: Sequence[float],
    n: int | None,
) -> tuple[PrivateCoverage, ...]:
    shown = _shown(coverage_share(x, y, None if n is None else np.full(len(x), n)))
    columns = zip(names, shown, *(end.tolist() for end in ends), x.tolist(), y.tolist(), promised, strict=True)
    return tuple(PrivateCoverage(*column) for column in columns)


def _shown(shares: NDArray[np.float64]) -> list[float | None]:
    """Shares as they are shown: None where nothing is counted."""
    return [None if np.isnan(share) else share for share in shares.tolist()]


def _shares(cells: Cells, place: int, error: float) -> tuple[PrivateShare, ...]:
    partition = cells.partitions[place]
    counts, noises = cells.of_parts(place)
    inside = counts.sum(axis=1)
    if len(partition) == 1:
        return (PrivateShare(partition.names[0], 1.0, 1.0, 1.0),)
    rest = inside.sum() - inside
    own = noises * counts.shape[1]
    size = None if cells.n is None else np.full(len(partition), cells.n)
    low, high = coverage_interval(
        inside,
        rest,
        cells.noise,
        error=error / len(partition),
        guess=f"1/{len(partition)}",
        noises=(own, own * (len(partition) - 1)),
        size=size,
    )
    shown = _shown(coverage_share(inside, rest, size))
    return tuple(map(PrivateShare, partition.names, shown, low.tolist(), high.tolist()))


def _mean(partition: Partition, shares: Sequence[PrivateShare]) -> PrivateMean:
    """Bounds for the mean of what was binned: the extremes over all shares within their intervals that add up to 1."""
    least = np.array(partition.edges)
    most = np.array([*(edge - 1 for edge in partition.edges[1:]), partition.most])
    low, high = np.array([one.low for one in shares]), np.array([one.high for one in shares])
    if math.fsum(low) > 1 or math.fsum(high) < 1:  # no shares fit: one of the intervals misses, and nothing is known
        bounds = float(least[0]), float(most[-1])
    else:
        bounds = _extreme(least, low, high), -_extreme(-most[::-1], low[::-1], high[::-1])
    seen = np.array([one.value or 0.0 for one in shares])
    total = math.fsum(seen)
    value = float(np.clip(_weighed(seen, (least + most) / 2) / total, *bounds)) if total > 0 else None
    return PrivateMean(value, *bounds)


def _extreme(values: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]) -> float:
    """The least mean of increasing values whose shares lie in [low, high] and add up to 1."""
    room = np.diff(np.minimum(np.cumsum(high - low), 1 - math.fsum(low)), prepend=0.0)
    return _weighed(values, low + room)


def _weighed(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """The sum of products, to the last digit the same on every machine: files state it."""
    return math.fsum(values * weights)


def _guess(promised: float) -> str:
    """A public guess of the coverage: what is promised, away from 0 and 1."""
    return f"{min(max(round(promised, 2), 0.01), 0.99):.2f}"
