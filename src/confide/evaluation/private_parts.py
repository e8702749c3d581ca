"""Public lists of parts that records are divided into, and how they share a budget. No record is looked at.

A record is in one part of every partition, so a partition costs what one count costs, however many parts it has (under
`replace_one` what two cost). Several partitions are published one by one, each with its share of epsilon, or crossed:
one table of all combinations with the whole epsilon, whose cells are added up.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

from confide.errors import InputError
from confide.support import as_number, check_names, several

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
