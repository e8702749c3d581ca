"""What a private evaluation finds: intervals from noisy counts, in words and in parts.

Public lists of parts that records are divided into, and how they share a budget. No record is looked at.

A record is in one part of every partition, so a partition costs what one count costs, however many parts it has (under
`replace_one` what two cost). Several partitions are published one by one, each with its share of epsilon, or crossed:
one table of all combinations with the whole epsilon, whose cells are added up.

From noisy counts to statements with intervals that hold all at once: a pure function of public numbers and counts.

The chance of a miss, a = 1 - confidence, is divided evenly among the families of statements (Bonferroni): for each
promise the coverage over all and that of each partition, and for each partition into bins their shares. Within a
partition the intervals for coverage are independent given the parts' sizes, so each may miss with 1 - (1 - a')^(1/k)
(Sidak); shares of bins are not, and divide a' by k. The mean of a number that was binned follows from its shares on the
same event: it is at least, and at most, what a linear program over the shares' intervals says, and costs no chance.

A private evaluation in words, as it is printed.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import prod
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.guarantee import coverage_text
from confide.noisy_counts import coverage_interval, coverage_share, one_count_interval, simultaneous
from confide.support import aligned, as_number, check_names, several

PartKind: TypeAlias = Literal["class", "group", "size", "width"]
"""By what records are divided: the true class, a column, the size of the set, the width of the interval."""

OTHER = "(other)"
"""The part of records whose group is not in the public list."""

SIZE_EDGES = (0, 1, 2, 3, 4, *(digit * 10**power for power in range(9) for digit in (5, 10, 20)))
"""Where bins of set sizes begin."""

MOST_PARTS = 100_000
MOST_ADDED = 30
"""Cells that are added up for the coverage over all; above that it gets counts of its own."""

_MOST_WIDTHS = 100


@dataclass(frozen=True)
class Partition:
    """Parts of the records, by a public list.

    Parameters
    ----------
    kind
        By what records are divided.
    names
        The parts.
    promised
        What each part is promised, if each has a threshold of its own.
    edges
        Of bins: where each begins, increasing; the first one holds everything below the second.
    most
        The largest set size; infinite for widths.
    """

    kind: PartKind
    names: tuple[str, ...]
    promised: tuple[float, ...] | None = None
    edges: tuple[float, ...] = ()
    most: float = math.inf

    def __post_init__(self) -> None:
        if not 0 < len(self.names) <= MOST_PARTS:
            raise InputError(f"parts must be 1 to {MOST_PARTS}; found {len(self.names)}")
        check_names(f"names of {self.kind} parts", self.names)
        if self.promised is not None and len(self.promised) != len(self.names):
            raise InputError("promised must have one entry for each part")

    @property
    def binned(self) -> bool:
        """Whether the parts are bins of a number, of which shares are stated."""
        return self.kind in ("size", "width")

    def __len__(self) -> int:
        return len(self.names)


def class_parts(names: Sequence[object], promised: Sequence[float] | None = None) -> Partition:
    """The true classes, all of them."""
    return Partition("class", tuple(map(str, names)), None if promised is None else tuple(promised))


def group_parts(names: Sequence[str | int], promised: Sequence[float] | None = None) -> Partition:
    """Groups by a public list; without thresholds of their own with a part for every other record.

    Raises
    ------
    InputError
        If there are no names, or two are the same, or one is that of the part for other records.

    Examples
    --------
    >>> group_parts(["north", "south"]).names
    ('north', 'south', '(other)')
    """
    texts = tuple(map(str, check_names("groups", names)))
    if not texts:
        raise InputError("groups must name at least one group; found none")
    if promised is not None:
        return Partition("group", texts, tuple(promised))
    if OTHER in texts:
        raise InputError(f"groups must not be called {OTHER!r}: that part holds the records of every other group")
    return Partition("group", (*texts, OTHER))


def size_parts(classes: int) -> Partition:
    """Set sizes from 0 to the number of classes, the larger ones in bins.

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
    """Widths of intervals between public numbers: below the first, from each to the next, from the last on.

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
        raise InputError(f"width_bins must be 1 to {_MOST_WIDTHS} finite numbers above 0 that increase")
    shown = [f"{end!r}".removesuffix(".0") for end in ends]
    between = [f"{a} to {b}" for a, b in pairwise(shown)]
    return Partition("width", (f"below {shown[0]}", *between, f"{shown[-1]} or more"), edges=(0.0, *ends))


def arrangement(sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Which partitions are crossed in which table, from their numbers of parts alone.

    m partitions one by one have m times the noise in each count, so m^2 times its variance; crossed, a count is a sum
    of as many noises as there are combinations of the other partitions. They are crossed where that is never more. The
    coverage over all is added up from the table with the fewest cells; where that has more than 30, it gets a table
    with one cell.

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


MOST_SHOWN = 30
_CALLED = {"class": "class", "group": "group", "size": "sets of size", "width": "width"}


def in_words(findings: Mapping[str, PrivateFinding], loss: tuple[str, float] | None, confidence: float) -> str:
    """Coverage beside the promise, part by part, level by level, and what the intervals mean.

    Of more than 30 parts those are shown whose intervals end lowest; files have all of them.
    """
    blocks = [_block(name, finding, loss) for name, finding in findings.items()]
    number = sum(map(_intervals, findings.values())) + _shared(next(iter(findings.values())))
    together = f"the {number} intervals hold together" if number > 1 else "the interval holds"
    return "\n".join([*blocks, f"{together} with probability {100 * confidence:g} %, noise included"])


def _block(name: str, finding: PrivateFinding, loss: tuple[str, float] | None) -> str:
    if loss is not None:
        rows = [(f"loss {loss[0]!r}", _loss(finding.coverage, loss[1]))]
    else:
        rows = [(f"coverage, {name}" if name else "coverage", covered_text(finding.coverage))]
    for kind, parts in finding.parts.items():
        shown = sorted(parts, key=_seeming)[:MOST_SHOWN] if len(parts) > MOST_SHOWN else parts
        tell = covered_text if loss is None else lambda part: _loss(part, loss[1])
        rows += [(f"{_CALLED[kind]} {part.name}", tell(part)) for part in shown]
        if len(parts) > len(shown):
            rows.append((f"{len(parts) - len(shown)} more", "in the file"))
    for kind, shares in ({} if name else finding.shares).items():
        rows += [(f"share, {_CALLED[kind]} {one.name}", interval_text(one.value, one.low, one.high)) for one in shares]
    if finding.mean_size is not None and not name:
        mean = finding.mean_size
        rows.append(("classes per set, on average", interval_text(mean.value, mean.low, mean.high)))
    return aligned(rows)


def covered_text(part: PrivateCoverage) -> str:
    """Share, interval and promise."""
    below = ", below that beyond chance" if part.below else ""
    return f"{interval_text(part.value, part.low, part.high)}; {coverage_text(part.promised)} is promised{below}"


def interval_text(value: float | None, low: float, high: float) -> str:
    """An estimate with its interval, rounded outwards.

    Examples
    --------
    >>> interval_text(0.9051, 0.88345, 0.92311), interval_text(None, 0.0, 1.0)
    ('0.905 (interval 0.883 to 0.924)', 'not known (interval 0 to 1)')
    """
    least, most = outwards(low, high)
    ends = f"interval {least} to {most}"
    return f"{'not known' if value is None else f'{value:.3f}'} ({ends})"


def outwards(low: float, high: float) -> tuple[str, str]:
    """The ends of an interval with three decimals, rounded outwards; whole numbers without.

    Examples
    --------
    >>> outwards(0.88345, 0.92311), outwards(0.5, 1.0)
    (('0.883', '0.924'), ('0.500', '1'))
    """
    least, most = Fraction(low) * 1000, Fraction(high) * 1000
    return _thousandths(math.floor(least)), _thousandths(math.ceil(most))


def _thousandths(count: int) -> str:
    return f"{count / 1000:.3f}" if count % 1000 else f"{count // 1000}"


def _loss(part: PrivateCoverage, bound: float) -> str:
    value = None if part.value is None else bound * (1 - part.value)
    below = ", above that beyond chance" if part.below else ""
    ends = interval_text(value, bound * (1 - part.high), bound * (1 - part.low))
    return f"{ends}; at most {bound * (1 - part.promised):.6g} is promised{below}"


def _seeming(part: PrivateCoverage) -> tuple[float, float]:
    """Those that are surely covered little come first, and then those that seem to be."""
    return part.high, 1.0 if part.value is None else part.value


def _intervals(finding: PrivateFinding) -> int:
    return 1 + sum(map(len, finding.parts.values()))


def _shared(finding: PrivateFinding) -> int:
    """Intervals that are the same for all promises: shares, and the mean."""
    return sum(map(len, finding.shares.values())) + (finding.mean_size is not None)
