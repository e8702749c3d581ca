"""Simultaneous intervals from noisy counts: a function of public numbers and of the noisy counts alone.

Public lists divide the records into parts. A record is in one part of every partition, so a partition costs as much as
one count, for any number of parts (as much as two under `replace_one`). Several partitions are published one by one,
each with its share of epsilon, or crossed. Crossed means one table of all combinations with the whole epsilon, whose
cells are added up.

The error probability a = 1 - confidence is divided evenly among the families of statements (Bonferroni). For each
promise these are the coverage over all records and the coverage by each partition, and for each partition into bins the
shares of its bins. Within a partition the coverage intervals are independent given the part sizes, so each may miss
with probability 1 - (1 - a')^(1/k) (Sidak). Shares of bins are not independent and divide a' by k. The mean of a binned
number follows from its shares on the same event. It lies between the two optima of a linear program over the intervals
of the shares, at no further error.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.evaluation.parts import Part
from confide.noisy_counts import coverage_interval, coverage_share, one_count_interval, simultaneous
from confide.support import as_number, check_names, several

PartKind: TypeAlias = Literal["class", "group", "size", "width"]
"""Property that divides the records: true class, a column, set size, or interval width."""

OTHER = "(other)"
"""Part of the records whose group, or true class, is not in the public list."""

SIZE_EDGES = (0, 1, 2, 3, 4, *(digit * 10**power for power in range(9) for digit in (5, 10, 20)))
"""Lower ends of the bins of set sizes."""

MOST_PARTS = 100_000
MOST_ADDED = 30
"""Maximum number of cells that are summed for coverage over all records; above it, coverage has its own counts."""

_MOST_WIDTHS = 100


@dataclass(frozen=True)
class Partition:
    """Division of the records into parts by a public list.

    Parameters
    ----------
    kind
        Property that divides the records.
    names
        Names of the parts.
    promised
        Promised coverage of each part, if each has its own threshold; else None.
    edges
        Of bins: the lower ends, increasing. The first bin contains everything below the second edge.
    most
        Largest set size; infinite for widths.
    """

    kind: PartKind
    names: tuple[str, ...]
    promised: tuple[float, ...] | None = None
    edges: tuple[float, ...] = ()
    most: float = math.inf

    def __post_init__(self) -> None:
        if not 0 < len(self.names) <= MOST_PARTS:
            raise InputError("parts", f"must be 1 to {MOST_PARTS}", got=str(len(self.names)))
        check_names("names", self.names)
        if self.promised is not None and len(self.promised) != len(self.names):
            raise InputError("promised", "must have one entry for each part")

    @property
    def binned(self) -> bool:
        """Whether the parts are bins of a number, whose shares are reported."""
        return self.kind in ("size", "width")

    def __len__(self) -> int:
        return len(self.names)


def class_parts(names: Sequence[object], promised: Sequence[float] | None = None) -> Partition:
    """Partition by all true classes, and a part for labels that are not among them, for which nothing is promised."""
    return Partition("class", (*map(str, names), OTHER), None if promised is None else (*promised, 0.0))


def group_parts(names: Sequence[str | int], promised: Sequence[float] | None = None) -> Partition:
    """Partition by a public list of groups; without thresholds of their own, a part for all other records is added.

    Raises
    ------
    InputError
        If two names are equal, or one is the name of the part for other records.

    Examples
    --------
    >>> group_parts(["north", "south"]).names
    ('north', 'south', '(other)')
    """
    texts = tuple(map(str, check_names("group_names", names)))
    if promised is not None:
        return Partition("group", texts, tuple(promised))
    if OTHER in texts:
        raise InputError("group_names", f"must not contain {OTHER!r}, the part of the records of all other groups")
    return Partition("group", (*texts, OTHER))


def size_parts(classes: int) -> Partition:
    """Partition by set size, from 0 to the number of classes; larger sizes are binned.

    Examples
    --------
    >>> size_parts(3).names, size_parts(30).names
    (('0', '1', '2', '3'), ('0', '1', '2', '3', '4', '5-9', '10-19', '20-30'))
    """
    edges = [edge for edge in SIZE_EDGES if edge <= classes]
    ends = [*(edge - 1 for edge in edges[1:]), classes]
    names = tuple(f"{a}" if a == b else f"{a}-{b}" for a, b in zip(edges, ends, strict=True))
    return Partition("size", names, edges=tuple(map(float, edges)), most=float(classes))


def width_parts(bins: Sequence[float]) -> Partition:
    """Partition by interval width: below the first number, between successive numbers, and from the last number on.

    Raises
    ------
    InputError
        If they are not 1 to 100 finite increasing numbers above 0.

    Examples
    --------
    >>> width_parts([1, 2.5]).names
    ('below 1', '1 to 2.5', '2.5 or more')
    """
    ends = [as_number("width_bins", one) for one in several("width_bins", bins)]
    rising = all(a < b for a, b in zip([0.0, *ends], ends, strict=False))
    if not 0 < len(ends) <= _MOST_WIDTHS or not rising or not math.isfinite(ends[-1]):
        raise InputError("width_bins", f"must be 1 to {_MOST_WIDTHS} finite numbers above 0 that increase")
    shown = [f"{end!r}".removesuffix(".0") for end in ends]
    between = [f"{a} to {b}" for a, b in pairwise(shown)]
    return Partition("width", (f"below {shown[0]}", *between, f"{shown[-1]} or more"), edges=(0.0, *ends))


def arrangement(sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Choose which partitions are crossed in which table, from their numbers of parts alone.

    m partitions one by one have m times the noise in each count, so m^2 times its variance. In a crossed table a count
    is a sum of as many noises as the other partitions have combinations. Partitions are crossed if that is at most m^2.
    Coverage over all records is the sum of the table with the fewest cells. If that has more than 30 cells, coverage
    gets a table with one cell.

    Examples
    --------
    >>> arrangement([]), arrangement([10]), arrangement([3, 4]), arrangement([10, 4]), arrangement([1000])
    (((),), ((0,),), ((0, 1),), ((0,), (1,)), ((0,), ()))
    """
    m, cells = len(sizes), math.prod(sizes)
    if m < 2 or max(cells // size for size in sizes) <= m * m:
        tables: list[tuple[int, ...]] = [tuple(range(m))]
    else:
        tables = [(place,) for place in range(m)]
    if min(math.prod(sizes[place] for place in table) for table in tables) > MOST_ADDED:
        tables.append(())
    return tuple(tables)


_LEAST_ERROR = 1e-9


@dataclass(frozen=True)
class PrivateMean:
    """Bounds of a mean that hold together with all intervals, and an estimate between them for display."""

    value: float | None
    low: float
    high: float


@dataclass(frozen=True)
class PrivateFinding:
    """Statements about one promise.

    Parameters
    ----------
    coverage
        Coverage over all records.
    parts
        Coverage by class, group, set size or interval width, as requested.
    shares
        Share of each set size or interval width.
    mean_size
        Mean size of the sets.
    """

    coverage: Part
    parts: Mapping[PartKind, tuple[Part, ...]] = field(hash=False)
    shares: Mapping[PartKind, tuple[Part, ...]] = field(hash=False)
    mean_size: PrivateMean | None


@dataclass(frozen=True)
class Cells:
    """Noisy counts by table, with their meaning.

    Parameters
    ----------
    partitions, tables
        The partitions, and which of them are crossed in which table.
    noisy
        Counts of each table: one axis for each of its partitions, and a last axis for outcomes.
    held
        For each statement the outcomes in which it holds, and the other outcomes.
    noise
        One divided by the scale of the noise.
    n
        Public number of records, or None.
    one_count
        Whether only covered records were counted.
    """

    partitions: tuple[Partition, ...]
    tables: tuple[tuple[int, ...], ...]
    noisy: Sequence[NDArray[np.int64]]
    held: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]]
    noise: float
    n: int | None
    one_count: bool

    def of_all(self) -> tuple[NDArray[np.int64], int]:
        """Counts by outcome, shape (outcomes,), from the table with the fewest cells; and the noises in each count."""
        rows = [prod(table.shape[:-1]) for table in self.noisy]
        place = rows.index(min(rows))
        return self.noisy[place].reshape(rows[place], -1).sum(axis=0), rows[place]

    def of_parts(self, partition: int) -> tuple[NDArray[np.int64], int]:
        """Counts by part and outcome, shape (parts, outcomes), and the number of noises in each count."""
        place = next(i for i, table in enumerate(self.tables) if partition in table)
        axis, cells = self.tables[place].index(partition), self.noisy[place]
        moved = np.moveaxis(cells, axis, 0)
        others = prod(moved.shape[1:-1])
        return moved.reshape(moved.shape[0], others, moved.shape[-1]).sum(axis=1), others


def statements_from_cells(cells: Cells, statements: Mapping[str, float], error: float) -> dict[str, PrivateFinding]:
    """Statements about each promise; the probability that any of them is wrong is at most `error`."""
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
        parts: dict[PartKind, tuple[Part, ...]] = {}
        for place, partition in enumerate(cells.partitions):  # several are of kind group if groups overlap
            own = _by_part(cells, place, name, promised, each)
            parts[partition.kind] = parts.get(partition.kind, ()) + own
        found[name] = PrivateFinding(over_all(cells, name, promised, each), parts, shares, mean)
    return found


def family_error(partitions: Sequence[Partition], statements: int, error: float) -> float:
    """Error probability of each family of statements.

    Raises
    ------
    InputError
        If an interval of some family would have an error probability below 1e-9.

    Examples
    --------
    >>> family_error([], 1, 0.05)
    0.05
    """
    families = statements * (1 + len(partitions)) + sum(partition.binned for partition in partitions)
    each = error if families == 1 else error / families * (1 - 1e-12)
    if each / max([1, *map(len, partitions)]) < _LEAST_ERROR:
        raise InputError(
            "confidence",
            "must leave each interval an error probability of at least 1e-9",
            remedy="Choose a smaller confidence, or fewer parts",
        )
    return each


def over_all(cells: Cells, name: str, promised: float, error: float) -> Part:
    """Coverage over all records, with an interval that misses with probability at most `error`."""
    counts, noises = cells.of_all()
    if cells.one_count:
        assert cells.n is not None
        low, high = one_count_interval(counts, np.array([cells.n]), cells.noise, error=error)
        return _noisy_parts([""], (counts, cells.n - counts), (low, high), [promised], cells.n)[0]
    held, others = cells.held[name]
    x, y = counts[list(held)].sum(keepdims=True), counts[list(others)].sum(keepdims=True)
    own = (len(held) * noises, len(others) * noises)
    size = None if cells.n is None else np.array([cells.n])
    ends = coverage_interval(x, y, cells.noise, error=error, guess=_guess(promised), noises=own, size=size)
    return _noisy_parts([""], (x, y), ends, [promised], cells.n)[0]


def _by_part(cells: Cells, place: int, name: str, promised: float, error: float) -> tuple[Part, ...]:
    partition = cells.partitions[place]
    counts, noises = cells.of_parts(place)
    held, others = cells.held[name]
    first = partition.kind == "size"  # the empty set covers no label, so only its share is reported
    names, levels = partition.names[first:], (partition.promised or (promised,) * len(partition))[first:]
    x, y = counts[first:, list(held)].sum(axis=1), counts[first:, list(others)].sum(axis=1)
    own = (len(held) * noises, len(others) * noises)
    chance = simultaneous(error, len(names))
    ends = coverage_interval(x, y, cells.noise, error=chance, guess=_guess(promised), noises=own)
    return _noisy_parts(names, (x, y), ends, levels, None)


def _noisy_parts(
    names: Sequence[str],
    counts: tuple[NDArray[np.int64], NDArray[np.int64]],
    ends: tuple[NDArray[np.float64], NDArray[np.float64]],
    promised: Sequence[float | None],
    n: int | None,
) -> tuple[Part, ...]:
    """Parts from noisy counts of covered and missed records, with their intervals; n is the number of all records."""
    x, y = counts
    shares = coverage_share(x, y, None if n is None else np.full(len(x), n)).tolist()
    shown = [None if math.isnan(share) else share for share in shares]
    columns = zip(names, x.tolist(), y.tolist(), shown, *(end.tolist() for end in ends), promised, strict=True)
    return tuple(Part(*column) for column in columns)


def _shares(cells: Cells, place: int, error: float) -> tuple[Part, ...]:
    """Share of all records in each bin, as parts: "covered" records are those in the bin."""
    partition = cells.partitions[place]
    counts, noises = cells.of_parts(place)
    inside = counts.sum(axis=1)
    rest = inside.sum() - inside
    if len(partition) == 1:
        return (Part(partition.names[0], int(inside[0]), 0, 1.0, 1.0, 1.0),)
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
    return _noisy_parts(partition.names, (inside, rest), (low, high), [None] * len(partition), cells.n)


def _mean(partition: Partition, shares: Sequence[Part]) -> PrivateMean:
    """Bounds for the mean of a binned number: extremes over all shares in their intervals that add up to 1."""
    least = np.array(partition.edges)
    most = np.array([*(edge - 1 for edge in partition.edges[1:]), partition.most])
    low, high = np.array([one.low for one in shares]), np.array([one.high for one in shares])
    if math.fsum(low) > 1 or math.fsum(high) < 1:  # no shares fit, so an interval misses: use the trivial bounds
        bounds = float(least[0]), float(most[-1])
    else:
        bounds = _extreme(least, low, high), -_extreme(-most[::-1], low[::-1], high[::-1])
    seen = np.array([one.value or 0.0 for one in shares])
    total = math.fsum(seen)
    value = float(np.clip(_weighed(seen, (least + most) / 2) / total, *bounds)) if total > 0 else None
    return PrivateMean(value, *bounds)


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
