"""Count labelled records, batch by batch, by part and by outcome.

A `Tally` counts the outcomes of a comparison in the tables of a query, whether noise is added later or not. It stores
no other data of a record.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import Groups, as_array
from confide.errors import InputError, InputTypeError
from confide.evaluation.comparison import LabelledRecords, RecordComparison, RecordOutcomes, SetOutcomes, outcomes_of
from confide.evaluation.evaluation import Evaluation
from confide.evaluation.partitions import Partition, size_parts
from confide.evaluation.query import CountQuery
from confide.noisy_counts import draw_counts
from confide.support import canonical_name, library_versions, positions, raise_for_rows, require

# Groups without thresholds of their own.

MOST_GROUPS = 1000


class TooManyGroupsError(InputError):
    """More different groups than an evaluation allows."""


def too_many_groups(argument: str = "groups", column: str = "") -> TooManyGroupsError:
    """Return the error for more than 1000 groups; `column` is the name of their column."""
    more = f"more in column {column!r}" if column else "more"
    remedy = "Give groups of people, not the names of records"
    return TooManyGroupsError(argument, f"must have at most {MOST_GROUPS:,} different values", more, remedy)


def group_names(groups: ArrayLike, n: int) -> tuple[list[str], NDArray[np.int64]]:
    """Distinct group names as strings, and the position of each record's group among them.

    Examples
    --------
    >>> group_names([7, 3, 7], 3)
    (['3', '7'], array([1, 0, 1]))
    """
    array = as_array("groups", groups)
    require("groups", array.shape == (n,), f"must have shape ({n},), one entry per record", got=f"shape {array.shape}")

    # Every group is a text or an integer.
    if array.dtype.kind == "O":
        wrong = np.array([not isinstance(value, str | int) for value in array.tolist()], dtype=np.bool_)
        raise_for_rows("groups", wrong, "must be texts or integers", "that are not", "Name the group of every record")
        array = np.array([canonical_name(value) for value in array.tolist()], dtype=np.str_)
    elif array.dtype.kind not in "iubU":
        remedy = "Name the group of every record, for example by .astype(str)"
        raise InputTypeError("groups", "must be texts or integers", got=f"dtype {array.dtype}", remedy=remedy)

    # The distinct ones.
    names, place = np.unique(array, return_inverse=True)
    return list(map(canonical_name, names.tolist())), place


# Counts.


class Counts:
    """Numbers of records by part and outcome, and the sums of their set sizes or interval widths by part and level.

    Shapes: the numbers of parts of the divisions that are crossed, then the number of outcomes (of `cells`), or of
    levels at which sizes or widths are added up (of `sums`). Without a division all records are one part.
    """

    def __init__(self, cells: Sequence[int], sums: Sequence[int] = (0,)) -> None:
        self.cells = np.zeros(cells, np.int64)
        self.sums = np.zeros(sums)

    def add(
        self, places: Sequence[NDArray[np.int64]], outcome: NDArray[Any], sizes: Sequence[NDArray[Any] | None] = ()
    ) -> None:
        """Count n records by their part in each division, their outcome (0: covered), and their set size at each level.

        Sums of widths may overflow to infinity.
        """
        *parts, outcomes = self.cells.shape
        with np.errstate(over="ignore"):
            # All records are one part.
            if not parts:
                self.cells += [np.count_nonzero(outcome == number) for number in range(outcomes)]
                self.sums += [0 if size is None else size.sum() for size in sizes[: len(self.sums)]]
                return

            # Count by the combination of parts.
            row = np.ravel_multi_index(tuple(places), tuple(parts)) if len(parts) > 1 else places[0]
            self.cells += np.bincount(row * outcomes + outcome, minlength=self.cells.size).reshape(self.cells.shape)
            for level, size in zip(range(self.sums.shape[-1]), sizes, strict=False):
                self.sums[..., level] += np.bincount(row, size, self.sums[..., level].size).reshape(parts)


class Tally:
    """Exact counts of the cells of a query, whose `n` is not used."""

    def __init__(self, comparison: RecordComparison, query: CountQuery) -> None:
        self.comparison = comparison
        self.query = query
        self._tables = [Counts(query.shape(table), query.sums_shape(table)) for table in query.tables]
        self._groups: dict[str, int] = {}  # without noise, the groups so far in order of appearance

    def add(
        self, records: LabelledRecords, groups: Groups | None = None, places: NDArray[np.int64] | None = None
    ) -> None:
        """Count records.

        Parameters
        ----------
        groups
            Group of each record, shape (n,); its true class if these have their own thresholds.
        places
            Instead of `groups`, if groups have no thresholds of their own: the position of each record's group in the
            public list, -1 for other groups.
        """
        # Compare with the release at each level.
        groups_of_release = groups if self.comparison.needs_groups else None
        compared = self.comparison.outcomes(records, groups_of_release)
        by_statement = dict(zip(self.query.statements, compared, strict=False))

        # The part of each record in each partition.
        n = len(compared[0].covered)
        if self.comparison.needs_groups:
            places = self.comparison.places(groups, n)
        elif groups is not None:
            places = self._places(groups, n)
        parts = self._parts(by_statement, places, records.truth)

        # Count in each table, of one level or of all.
        for table, counts in zip(self.query.tables, self._tables, strict=True):
            level = self.query.level_of(table)
            levels = [by_statement[level]] if level else compared
            counts.add([parts[place] for place in table], outcomes_of(levels), [of_level.size for of_level in levels])

    def _places(self, groups: Groups, n: int) -> NDArray[np.int64]:
        """Position of each record's group in the public list, -1 for others; without noise in order of appearance."""
        names, place = group_names(groups, n)  # type: ignore[arg-type]  # a mapping raises
        if self.query.epsilon is not None:
            listed = next(partition.names for partition in self.query.partitions if partition.kind == "group")
            return positions("groups", names, listed[:-1])[place]
        numbers = [self._groups.setdefault(name, len(self._groups)) for name in names]
        if len(self._groups) > MOST_GROUPS:
            raise too_many_groups()
        return np.array(numbers, np.int64)[place]

    def _parts(
        self,
        by_statement: Mapping[str, RecordOutcomes],
        places: NDArray[np.int64] | None,
        truth: NDArray[np.int64] | None,
    ) -> list[NDArray[np.int64]]:
        """Part of each record in each partition, from its set size or interval width, its group, or its true class."""
        # Of sets, classes are those of the labels; else they are the groups.
        classes = truth if isinstance(self.comparison, SetOutcomes) else places
        groups = self._group_places(places)
        first_level, *_ = by_statement.values()

        parts = []
        for partition in self.query.partitions:
            if partition.binned:
                size = by_statement.get(partition.statement, first_level).size
                assert size is not None
                parts.append(partition.bin_of(size))
            else:
                parts.append(_listed(partition, next(groups, None) if partition.kind == "group" else classes))
        return parts

    def _group_places(self, places: NDArray[np.int64] | None) -> Iterator[NDArray[np.int64]]:
        """Place of each record's group in each partition by group, from the places in all of them, one after the other.

        Groups that overlap have several partitions, and `places` has a column for each.
        """
        if places is None:
            return
        partitions = [partition for partition in self.query.partitions if partition.kind == "group"]
        first = 0
        for partition, column in zip(partitions, np.atleast_2d(places.T), strict=False):
            yield column - first
            first += len(partition)

    @property
    def total(self) -> int:
        """Number of records."""
        return int(self._tables[0].cells.sum())

    def content(self) -> bytes:
        """All counts as bytes, which are the same for the same data on every machine and engine."""
        return b"".join(counts.cells.astype("<i8").tobytes() for counts in self._tables)

    def draw(self, query: CountQuery, confidence: float) -> Evaluation:
        """Draw the private evaluation with fresh noise; `query` is the counted one, with `n` if it is public."""
        cells = [counts.cells.ravel() for counts in self._tables]
        exact = [cells[0][:1]] if query.one_count else cells  # the first outcome is: covered
        noisy = tuple(tuple(draw_counts(counts, query.noise).tolist()) for counts in exact)
        return Evaluation(query, noisy, confidence, versions=library_versions(), release=self.comparison.release)

    def result(self) -> Evaluation:
        """Evaluation of all records so far, without noise; parts that do not occur are left out."""
        # Only the parts that occur; the first table counts all records.
        partitions = []
        for partition, counts in zip(self.query.partitions, self._tables[1:], strict=True):
            occurring, places = self._occurring(partition, counts.cells.sum(axis=1))
            counts.cells = counts.cells[places]
            counts.sums = counts.sums[places]
            partitions.append(occurring)

        # The counts in their order.
        return Evaluation(
            replace(self.query, partitions=tuple(partitions)),
            tuple(tuple(counts.cells.ravel().tolist()) for counts in self._tables),
            sums=tuple(tuple(counts.sums.ravel().tolist()) for counts in self._tables) if self.query.measure else (),
            release=self.comparison.release,
        )

    def _occurring(self, partition: Partition, n: NDArray[np.int64]) -> tuple[Partition, NDArray[np.int64]]:
        """The parts of a partition that have records, or all sizes up to the largest, and their positions."""
        occurring = np.flatnonzero(n)
        if partition.kind == "size":
            most = int(occurring[-1])
            return size_parts(most, exact=True, statement=partition.statement), np.arange(most + 1)
        # Groups without thresholds of their own got their positions in order of appearance.
        if partition.kind == "group" and self._groups:
            names = tuple(sorted(self._groups))
            return Partition("group", names), np.array([self._groups[name] for name in names])
        names = tuple(partition.names[i] for i in occurring)
        promised = None if partition.promised is None else tuple(partition.promised[i] for i in occurring)
        return Partition(partition.kind, names, promised), occurring

    def covered_and_missed(self) -> NDArray[np.int64]:
        """Covered and missed records, int64, shape (parts, 2): of each group or class with a threshold, or in all."""
        total, *others = (counts.cells for counts in self._tables)
        divided = zip(self.query.partitions, others, strict=True)
        promised = [cells for partition, cells in divided if partition.promised is not None]
        if not promised:
            return np.array([[total[0], total[1:].sum()]])
        # Classes are counted in the order of the columns, with a part for other labels at the end.
        keys = self.comparison.keys
        return np.concatenate(promised)[[keys.index(key) for key in self.comparison.release.parts]]


def _listed(partition: Partition, place: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Part of each record by the place of its class or group, -1 for all others, which are the last part."""
    if place is None:
        raise InputError("groups", f"must be given to evaluate coverage by {partition.kind}")
    return np.where(place < 0, len(partition) - 1, place)
