"""The parts into which records are divided, by class, group and size, and by subgroups of a table.

Parts of the records of an evaluation: a class, a group, those whose sets have one size, one end of the intervals.

Groups that have no threshold of their own are those that the records name, and at most 1000.
"""

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_array
from confide.errors import InputError, InputTypeError
from confide.sets import CoverageEstimate, Shortfall, coverage_from_counts
from confide.support import Name, canonical, refuse_marked

CONFIDENCE = 0.95
SIDES = ("lower end", "upper end")

Division: TypeAlias = Literal["group", "class", "side"]
"""What has a threshold of its own."""


@dataclass(frozen=True)
class Subgroup:
    """Coverage of the records of one class or group, of those whose sets have one size, or at one end of the intervals.

    Parameters
    ----------
    name
        Of the class, the group or the end, or the size.
    n
        Number of records, at least 1.
    covered
        How many of them are covered.
    members
        Labels in all their sets together; None without sets.
    promised
        The coverage that is promised for this part; None if the promise is about the average.
    mean_width
        Mean width of the intervals; None without intervals.
    """

    name: str
    n: int
    covered: int
    members: int | None = None
    promised: float | None = None
    mean_width: float | None = None

    @property
    def coverage(self) -> CoverageEstimate:
        """Share covered, with its exact interval."""
        return coverage_from_counts(self.covered, self.n, CONFIDENCE)

    @property
    def mean_size(self) -> float | None:
        """Labels per set; None without sets."""
        return None if self.members is None else self.members / self.n


class Counted(Protocol):
    """What is told of an evaluation in words; the fields of `Evaluation`."""

    @property
    def promised(self) -> float:
        """As in `Evaluation`."""

    @property
    def coverage(self) -> CoverageEstimate:
        """As in `Evaluation`."""

    @property
    def mean_size(self) -> float | None:
        """As in `Evaluation`."""

    @property
    def singletons(self) -> float | None:
        """As in `Evaluation`."""

    @property
    def empty(self) -> float | None:
        """As in `Evaluation`."""

    @property
    def mean_width(self) -> float | None:
        """As in `Evaluation`."""

    @property
    def classes(self) -> tuple[Subgroup, ...]:
        """As in `Evaluation`."""

    @property
    def sizes(self) -> tuple[Subgroup, ...]:
        """As in `Evaluation`."""

    @property
    def groups(self) -> tuple[Subgroup, ...]:
        """As in `Evaluation`."""

    @property
    def subgroups(self) -> tuple[Subgroup, ...]:
        """As in `Evaluation`."""

    @property
    def by(self) -> Division | None:
        """As in `Evaluation`."""

    @property
    def shortfall(self) -> Shortfall | None:
        """As in `Evaluation`."""


MOST_SUBGROUPS = 1000


class TooManyGroupsError(InputError):
    """So many values are no groups; what knows their column names it."""

    def __init__(self, what: str = "groups") -> None:
        super().__init__(
            f"{what} must have at most {MOST_SUBGROUPS:,} different values; found more: are they really groups?"
        )


def refuse_many_groups(number: int) -> None:
    """Refuse groups of which there are so many that they are hardly groups."""
    if number > MOST_SUBGROUPS:
        raise TooManyGroupsError


def group_names(groups: ArrayLike, n: int) -> tuple[list[str], NDArray[np.int64]]:
    """The different names of groups, as texts, and the position of each record's group among them.

    Examples
    --------
    >>> group_names([7, 3, 7], 3)
    (['3', '7'], array([1, 0, 1]))
    """
    names, place = named_groups(groups, n)
    return list(map(canonical, names)), place


def named_groups(groups: ArrayLike, n: int) -> tuple[list[Name], NDArray[np.int64]]:
    """The same with the names as they are: texts or integers.

    Examples
    --------
    >>> named_groups([7, 3, 7], 3)[0]
    [3, 7]
    """
    array = as_array("groups", groups)
    if array.shape != (n,):
        raise InputError(f"groups must have shape ({n},), one entry per record; found shape {array.shape}")
    if array.dtype.kind == "O":
        wrong = np.array([not isinstance(value, str | int) for value in array.tolist()], dtype=np.bool_)
        remedy = "; name the group of every record"
        refuse_marked(wrong, "groups must be texts or integers", "that are not", remedy)
        array = np.array([canonical(value) for value in array.tolist()], dtype=np.str_)
    elif array.dtype.kind not in "iubU":
        raise InputTypeError(
            f"groups must be texts or integers; found dtype {array.dtype}; name the group of every record, as by "
            ".astype(str)"
        )
    names, place = np.unique(array, return_inverse=True)
    return names.tolist(), place
