"""Counts for every evaluation: labelled records by part and by outcome, added up batch by batch.

An evaluation that is not private reports these counts; a private one adds noise first. No other data of a record are
kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_array
from confide.errors import InputError, InputTypeError
from confide.support import canonical_name, raise_for_rows

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
    shown
        Sets of the first records, for examples, bool, shape (examples, K).
    """

    covered: NDArray[np.bool_]
    size: NDArray[Any] | None = None
    ends: tuple[NDArray[np.bool_], NDArray[np.bool_]] | None = None
    shown: NDArray[np.bool_] | None = None


def outcomes_of(record_outcomes: Sequence[RecordOutcomes]) -> NDArray[Any]:
    """Outcome of each record: the number of nested levels that do not cover it; 1 or 0 for one level.

    Examples
    --------
    >>> outcomes_of([RecordOutcomes(np.array([True, False, False])), RecordOutcomes(np.array([True, True, False]))])
    array([0, 1, 2])
    """
    first, *others = record_outcomes
    if first.ends is not None:
        low, high = map(missed, first.ends)
        return low + 2 * high
    if not others:
        return missed(first.covered)
    levels: NDArray[np.int64] = np.sum([missed(level.covered) for level in record_outcomes], axis=0, dtype=np.int64)
    return levels


def missed(covered: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """1 for each record that is not covered, else 0."""
    return (~covered).view(np.uint8)


class Counts:
    """Numbers of records by part and outcome, and the sums of their set sizes or interval widths by part and level.

    Parameters
    ----------
    parts
        Number of parts of each division. Several divisions are crossed; without any, all records are one part.
    outcomes
        Number of possible outcomes of a record; the first means covered.
    levels
        Number of levels at which sizes or widths are added up.

    Examples
    --------
    >>> counts = Counts((2,), levels=1)
    >>> counts.add([np.array([0, 1, 1])], np.array([0, 0, 1]), [np.array([1, 2, 4])])
    >>> counts.cells.tolist(), counts.sums.tolist()
    ([[1, 0], [1, 1]], [[1.0], [6.0]])
    """

    def __init__(self, parts: Sequence[int] = (), outcomes: int = 2, levels: int = 0) -> None:
        self.cells, self.sums = np.zeros((*parts, outcomes), np.int64), np.zeros((*parts, levels))

    def add(
        self, places: Sequence[NDArray[np.int64]], outcome: NDArray[Any], sizes: Sequence[NDArray[Any]] = ()
    ) -> None:
        """Count records.

        Parameters
        ----------
        places
            Part of each record in each division, shape (n,).
        outcome
            Outcome of each record, shape (n,): an integer, or whether the record is missed.
        sizes
            Set size or interval width of each record at each level, shape (n,).
        """
        *parts, outcomes = self.cells.shape
        with np.errstate(over="ignore"):
            if not parts:
                self.cells += [np.count_nonzero(outcome == one) for one in range(outcomes)]
                self.sums += [size.sum() for size in sizes]
                return
            row = np.ravel_multi_index(tuple(places), tuple(parts)) if len(parts) > 1 else places[0]
            self.cells += np.bincount(row * outcomes + outcome, minlength=self.cells.size).reshape(self.cells.shape)
            for level, size in enumerate(sizes):
                self.sums[..., level] += np.bincount(row, size, self.sums[..., level].size).reshape(parts)


MOST_GROUPS = 1000


class TooManyGroupsError(InputError):
    """More different groups than an evaluation allows."""


def too_many_groups(argument: str = "groups", column: str = "") -> TooManyGroupsError:
    """Return the error for more than 1000 groups; `column` is the name of their column."""
    more = f"more in column {column!r}" if column else "more"
    remedy = "Give groups of people, not the names of records"
    return TooManyGroupsError(argument, f"must have at most {MOST_GROUPS:,} different values", more, remedy)


def refuse_many_groups(number: int) -> None:
    """Raise `TooManyGroupsError` for more than 1000 groups."""
    if number > MOST_GROUPS:
        raise too_many_groups()


def group_names(groups: ArrayLike, n: int) -> tuple[list[str], NDArray[np.int64]]:
    """Distinct group names as strings, and the position of each record's group among them.

    Examples
    --------
    >>> group_names([7, 3, 7], 3)
    (['3', '7'], array([1, 0, 1]))
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
    return list(map(canonical_name, names.tolist())), place
