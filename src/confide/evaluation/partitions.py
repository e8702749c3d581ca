"""`Partition`: a public division of the records into parts, by class, by group, or into bins of set sizes or widths."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.support import as_number, check_names, require, several

PartKind: TypeAlias = Literal["class", "group", "size", "width"]
"""Property that divides the records: true class, group, set size, or interval width."""

OTHER = "(other)"
"""Part of the records whose group, or true class, is not in the public list."""

SIZE_EDGES = (0, 1, 2, 3, 4, *(digit * 10**power for power in range(9) for digit in (5, 10, 20)))
"""Lower ends of the bins of set sizes with noise."""

_MOST_PARTS = 100_000
"""Largest number of parts of one partition."""

_MOST_WIDTHS = 100
"""Largest number of limits between bins of interval widths."""


@dataclass(frozen=True)
class Partition:
    """Division of the records into parts by a public list.

    Parameters
    ----------
    kind
        Property that divides the records.
    names
        Names of the parts; those of sizes and widths follow from the edges.
    promised
        Promised coverage of each part, if each has its own threshold; else None.
    edges
        Of sizes and widths: the lower ends, increasing. The first bin contains everything below the second edge.
    most
        Largest set size; None for widths, which have no largest one.
    statement
        For sizes without noise at several levels: the level of the sets.
    """

    kind: PartKind
    names: tuple[str, ...] = ()
    promised: tuple[float, ...] | None = None
    edges: tuple[float, ...] = ()
    most: int | None = None
    statement: str = ""

    def __post_init__(self) -> None:
        # The names of bins follow from their edges.
        if self.binned:
            names = _width_names(self.edges) if self.kind == "width" else _names_of_sizes(self.edges, self.most)
            require("names", self.names in ((), names), "must be left out, or follow from the edges of the bins")
            object.__setattr__(self, "names", names)

        # The names are different, and each has its promise.
        number = len(self.names)
        require("parts", 0 < number <= _MOST_PARTS, f"must number from 1 to {_MOST_PARTS}", got=str(number))
        check_names("names", self.names)
        fits = self.promised is None or len(self.promised) == len(self.names)
        require("promised", fits, "must have one entry for each part")

    @property
    def binned(self) -> bool:
        """Whether the parts are bins of a number, whose shares are reported."""
        return self.kind in ("size", "width")

    def __len__(self) -> int:
        return len(self.names)

    def bin_of(self, numbers: NDArray[Any]) -> NDArray[np.int64]:
        """The bin of each size or width; an interval whose ends are crossed has no width, and is in the first one."""
        return np.maximum(np.searchsorted(np.array(self.edges), numbers, side="right") - 1, 0)


def class_parts(names: Sequence[object], promised: Sequence[float] | None = None) -> Partition:
    """Partition by true class, with a part for labels that are not among the names, for which nothing is promised."""
    return Partition("class", (*map(str, names), OTHER), None if promised is None else (*promised, 0.0))


def group_parts(names: Sequence[str | int], promised: Sequence[float] | None = None) -> Partition:
    """Partition by a public list of groups; unless each has a promise, a part for all other records is added.

    Examples
    --------
    >>> group_parts(["north", "south"]).names
    ('north', 'south', '(other)')
    """
    texts = tuple(map(str, check_names("group_names", names)))
    if promised is not None:
        return Partition("group", texts, tuple(promised))
    must = f"must not contain {OTHER!r}, the part of the records of all other groups"
    require("group_names", OTHER not in texts, must)
    return Partition("group", (*texts, OTHER))


def size_parts(classes: int, *, exact: bool = False, statement: str = "") -> Partition:
    """Partition by set size, from 0 to the number of classes; larger sizes are binned, unless `exact` is true.

    Examples
    --------
    >>> size_parts(3).names, size_parts(30).names
    (('0', '1', '2', '3'), ('0', '1', '2', '3', '4', '5-9', '10-19', '20-30'))
    """
    return Partition("size", edges=_size_edges(classes, exact=exact), most=classes, statement=statement)


def _size_edges(most: int, *, exact: bool) -> tuple[float, ...]:
    edges = range(most + 1) if exact else (edge for edge in SIZE_EDGES if edge <= most)
    return tuple(map(float, edges))


def _names_of_sizes(edges: tuple[float, ...], most: int | None) -> tuple[str, ...]:
    if most is None or edges != _size_edges(most, exact=len(edges) == most + 1):
        raise InputError("edges", "must be the bins of set sizes that a query has for its largest set size")
    return size_names(list(map(int, edges)), most)


def size_names(edges: Sequence[int], most: int | None = None) -> tuple[str, ...]:
    """Names of bins of set sizes from their smallest sizes; without a largest size the last bin has no end.

    Examples
    --------
    >>> size_names([0, 1, 5], 9), size_names([0, 1, 5])
    (('0', '1-4', '5-9'), ('0', '1-4', '5+'))
    """
    ends = [edge - 1 for edge in edges[1:]]
    if most is not None:
        ends.append(most)
    names = [str(low) if low == high else f"{low}-{high}" for low, high in zip(edges, ends, strict=False)]
    return tuple(names if most is not None else [*names, f"{edges[-1]}+"])


def width_parts(bins: Sequence[float]) -> Partition:
    """Partition by interval width: below the first number, between successive numbers, and from the last number on.

    Examples
    --------
    >>> width_parts([1, 2.5]).names
    ('below 1', '1 to 2.5', '2.5 or more')
    """
    ends = [as_number("width_bins", end) for end in several("width_bins", bins)]
    return Partition("width", edges=(0.0, *ends))


def _width_names(edges: Sequence[float]) -> tuple[str, ...]:
    first, *ends = edges or (0.0,)
    rising = first == 0 and all(a < b for a, b in pairwise(edges))
    if not 0 < len(ends) <= _MOST_WIDTHS or not rising or not math.isfinite(ends[-1]):
        raise InputError("width_bins", f"must be 1 to {_MOST_WIDTHS} finite numbers above 0 that increase")
    shown = [f"{end!r}".removesuffix(".0") for end in ends]
    between = [f"{a} to {b}" for a, b in pairwise(shown)]
    return (f"below {shown[0]}", *between, f"{shown[-1]} or more")
