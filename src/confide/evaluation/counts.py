"""Counts for every evaluation: labelled records by part and by outcome, added up batch by batch.

An evaluation that is not private reports these counts; a private one adds noise first. No other data of a record are
kept. Groups without thresholds of their own take their names from the records; at most 1000 are allowed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_array
from confide.errors import InputError, InputTypeError
from confide.support import Name, canonical_name, raise_for_rows

SIDE_OUTCOMES = {"": (0,), "lower end": (0, 2), "upper end": (0, 1)}
"""Outcomes of sides in which each statement holds; 0: both ends hold, 1: lower fails, 2: upper fails, 3: both fail."""


@dataclass(frozen=True)
class RecordOutcomes:
    """Coverage and sizes of n records at one level of a release, before counting.

    Parameters
    ----------
    covered
        bool, shape (n,).
    size
        Sizes of the sets, or widths of the intervals, shape (n,); None for scores.
    ends
        Whether the lower and the upper end of the intervals hold, if each end has its own threshold; else None.
    """

    covered: NDArray[np.bool_]
    size: NDArray[Any] | None = None
    ends: tuple[NDArray[np.bool_], NDArray[np.bool_]] | None = None


def outcomes_of(record_outcomes: Sequence[RecordOutcomes]) -> NDArray[Any]:
    """Outcome of each record: the number of nested levels that do not cover it; 1 or 0 for one level.

    Examples
    --------
    >>> outcomes_of([RecordOutcomes(np.array([True, False, False])), RecordOutcomes(np.array([True, True, False]))])
    array([0, 1, 2])
    """
    first, *others = record_outcomes
    if first.ends is not None:
        low, high = map(_missed, first.ends)
        return low + 2 * high
    if not others:
        return _missed(first.covered)
    levels: NDArray[np.int64] = np.sum([_missed(look.covered) for look in record_outcomes], axis=0, dtype=np.int64)
    return levels


def _missed(covered: NDArray[np.bool_]) -> NDArray[np.uint8]:
    return (~covered).view(np.uint8)


class Counts:
    """Numbers of records by part and outcome, and the sum of their set sizes or interval widths by part.

    Parameters
    ----------
    parts
        Number of parts of each division. Several divisions are crossed; without any, all records are one part.
    outcomes
        Number of possible outcomes of a record; the first means covered.

    Examples
    --------
    >>> counts = Counts((2,))
    >>> counts.add([np.array([0, 1, 1])], np.array([0, 0, 1]), np.array([1, 2, 4]))
    >>> counts.cells.tolist(), counts.measured.tolist(), counts.n.tolist()
    ([[1, 0], [1, 1]], [1.0, 6.0], [1, 2])
    """

    def __init__(self, parts: Sequence[int] = (), outcomes: int = 2) -> None:
        self.cells, self.measured = np.zeros((*parts, outcomes), np.int64), np.zeros(parts)

    def add(
        self, places: Sequence[NDArray[np.int64]], outcome: NDArray[Any], measured: NDArray[Any] | None = None
    ) -> None:
        """Count records.

        Parameters
        ----------
        places
            Part of each record in each division, shape (n,).
        outcome
            Outcome of each record, shape (n,): an integer, or whether the record is missed.
        measured
            Set size or interval width of each record, shape (n,).
        """
        *parts, outcomes = self.cells.shape
        with np.errstate(over="ignore"):
            if not parts:
                self.cells += [np.count_nonzero(outcome == one) for one in range(outcomes)]
                self.measured += 0 if measured is None else measured.sum()
                return
            row = np.ravel_multi_index(tuple(places), tuple(parts)) if len(parts) > 1 else places[0]
            self.cells += np.bincount(row * outcomes + outcome, minlength=self.cells.size).reshape(self.cells.shape)
            if measured is not None:
                self.measured += np.bincount(row, measured, self.measured.size).reshape(parts)

    @property
    def n(self) -> NDArray[np.int64]:
        """Number of records of each part."""
        records: NDArray[np.int64] = self.cells.sum(axis=-1)
        return records

    def with_outcomes(self, outcomes: Sequence[int] = (0,)) -> NDArray[np.int64]:
        """Number of records of each part with one of the outcomes; by default the covered ones."""
        records: NDArray[np.int64] = self.cells[..., list(outcomes)].sum(axis=-1)
        return records

    def rows(self) -> list[tuple[int, int, float]]:
        """Records, covered records, and sum of set sizes or widths, for each part of one division."""
        columns = (np.atleast_1d(column).tolist() for column in (self.n, self.with_outcomes(), self.measured))
        return list(zip(*columns, strict=True))


class NamedCounts(Counts):
    """`Counts` by groups without thresholds of their own, whose names come from the records."""

    def __init__(self) -> None:
        super().__init__((0,))
        self._places: dict[str, int] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the groups that occur, in the order of their parts."""
        return tuple(self._places)

    def add_groups(self, groups: ArrayLike, outcome: NDArray[Any], measured: NDArray[Any] | None = None) -> None:
        """Count records with the group of each; the other arguments are as in `add`.

        Raises
        ------
        InputError, InputTypeError
            If a record has no group, a group is not a name, or there are more than 1000.
        """
        names, place = group_names(groups, len(outcome))
        own = [self._places.setdefault(name, len(self._places)) for name in names]
        refuse_many_groups(len(self._places))
        batch = Counts((len(names),))
        batch.add([place], outcome, measured)
        new = len(self._places) - len(self.cells)
        self.cells, self.measured = np.pad(self.cells, ((0, new), (0, 0))), np.pad(self.measured, (0, new))
        np.add.at(self.cells, own, batch.cells)
        np.add.at(self.measured, own, batch.measured)


MOST_SUBGROUPS = 1000


class TooManyGroupsError(InputError):
    """More different groups than an evaluation allows."""


def too_many_groups(argument: str = "groups", column: str = "") -> TooManyGroupsError:
    """Return the error for more than 1000 groups; `column` is the name of their column."""
    found = f"more in column {column!r}" if column else "more"
    remedy = "Give groups of people, not the names of records"
    return TooManyGroupsError(argument, f"must have at most {MOST_SUBGROUPS:,} different values", found, remedy)


def refuse_many_groups(number: int) -> None:
    """Raise `TooManyGroupsError` for more than 1000 groups."""
    if number > MOST_SUBGROUPS:
        raise too_many_groups()


def group_names(groups: ArrayLike, n: int) -> tuple[list[str], NDArray[np.int64]]:
    """Distinct group names as strings, and the position of each record's group among them.

    Examples
    --------
    >>> group_names([7, 3, 7], 3)
    (['3', '7'], array([1, 0, 1]))
    """
    names, place = named_groups(groups, n)
    return list(map(canonical_name, names)), place


def named_groups(groups: ArrayLike, n: int) -> tuple[list[Name], NDArray[np.int64]]:
    """As `group_names`, with the names as given: strings or integers.

    Examples
    --------
    >>> named_groups([7, 3, 7], 3)[0]
    [3, 7]
    """
    array = as_array("groups", groups)
    if array.shape != (n,):
        raise InputError("groups", f"must have shape ({n},), one entry per record", got=f"shape {array.shape}")
    if array.dtype.kind == "O":
        wrong = np.array([not isinstance(value, str | int) for value in array.tolist()], dtype=np.bool_)
        remedy = "Name the group of every record"
        raise_for_rows("groups", wrong, "must be texts or integers", "that are not", remedy)
        array = np.array([canonical_name(value) for value in array.tolist()], dtype=np.str_)
    elif array.dtype.kind not in "iubU":
        remedy = "Name the group of every record, for example by .astype(str)"
        raise InputTypeError("groups", "must be texts or integers", got=f"dtype {array.dtype}", remedy=remedy)
    names, place = np.unique(array, return_inverse=True)
    return names.tolist(), place
