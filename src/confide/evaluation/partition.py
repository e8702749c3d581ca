"""Partitions: divisions of the records into parts by a public list, of classes, groups, set sizes or widths."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

from confide.errors import InputError
from confide.support import as_number, check_names, several

PartKind: TypeAlias = Literal["class", "group", "size", "width"]
"""Property that divides the records: true class, a column, set size, or interval width."""

OTHER = "(other)"
"""Part of the records whose group, or true class, is not in the public list."""

SIZE_EDGES = (0, 1, 2, 3, 4, *(digit * 10**power for power in range(9) for digit in (5, 10, 20)))
"""Lower ends of the bins of set sizes with noise."""

MOST_PARTS = 100_000
_MOST_WIDTHS = 100


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
        if self.binned:
            names = _width_names(self.edges) if self.kind == "width" else _size_names(self.edges, self.most)
            if self.names not in ((), names):
                raise InputError("names", "must follow from the edges of sizes and widths")
            object.__setattr__(self, "names", names)
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


def _size_names(edges: tuple[float, ...], most: int | None) -> tuple[str, ...]:
    if most is None or edges != _size_edges(most, exact=len(edges) == most + 1):
        raise InputError("edges", "must be those of set sizes up to the largest one")
    ends = [*(int(edge) - 1 for edge in edges[1:]), most]
    return tuple(f"{a:.0f}" if a == b else f"{a:.0f}-{b}" for a, b in zip(edges, ends, strict=True))


def width_parts(bins: Sequence[float]) -> Partition:
    """Partition by interval width: below the first number, between successive numbers, and from the last number on.

    Examples
    --------
    >>> width_parts([1, 2.5]).names
    ('below 1', '1 to 2.5', '2.5 or more')
    """
    return Partition("width", edges=(0.0, *(as_number("width_bins", end) for end in several("width_bins", bins))))


def _width_names(edges: Sequence[float]) -> tuple[str, ...]:
    first, *ends = edges or (0.0,)
    rising = first == 0 and all(a < b for a, b in pairwise(edges))
    if not 0 < len(ends) <= _MOST_WIDTHS or not rising or not math.isfinite(ends[-1]):
        raise InputError("width_bins", f"must be 1 to {_MOST_WIDTHS} finite numbers above 0 that increase")
    shown = [f"{end!r}".removesuffix(".0") for end in ends]
    between = [f"{a} to {b}" for a, b in pairwise(shown)]
    return (f"below {shown[0]}", *between, f"{shown[-1]} or more")
