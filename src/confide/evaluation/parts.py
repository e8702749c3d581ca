"""Parts of the records of an evaluation: a class, a group, those whose sets have one size, one end of the intervals."""

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from confide.sets import CoverageEstimate, Shortfall, coverage_from_counts

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
