"""A private choice among models or scores, on a share of the records (docs/theory-one-number.md, Theorem S1).

For score k and candidate t, the utility is minus a sum: of the sizes of the share's sets at t, each at most C and
divided by C, and of twice the number of covered records that are missing to the target. The utility of k is the largest
over t. One record more moves all utilities by numbers from a range of length 3.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.selection import select
from confide.support import float_above, positive_number, require, scale_for

# The largest number of scores to choose from, and the largest length of a name.
MOST_AMONG = 1000
MOST_NAME = 200

# The weight of a covered record that is missing to the target; a set of size C has weight 1.
MISSING = 2

# The utilities are integers in units of 1/(steps d), where d, at most this, is a denominator of the level.
_LARGEST_DENOMINATOR = 1000


@dataclass(frozen=True)
class Chosen:
    """The public statement of a private choice.

    Parameters
    ----------
    name
        The name of the chosen model or score.
    among
        The names of all models or scores, in the order in which they were given: 2 to 1000, public and fixed before.
    share
        The probability of each record to be in the share that chose, at most 1/2.
    epsilon
        The privacy loss of one record of the share.
    largest_size
        Scores were compared by the mean size of their sets; a larger size counted as this one. A number of labels, or a
        width.

    Raises
    ------
    InputError
        If names are not different and printable, the chosen one is not among them, the share is above 1/2, or a number
        is not positive.

    Examples
    --------
    >>> print(Chosen("aps", ("lac", "aps"), Fraction(1, 5), 1.0, 8))
    'aps', chosen among 2 (lac, aps) by the mean size, each at most 8, on a share of 1/5 of the records, at epsilon 1
    """

    name: str
    among: tuple[str, ...]
    share: Fraction
    epsilon: float
    largest_size: float | None = None

    def __post_init__(self) -> None:
        # Positive numbers.
        object.__setattr__(self, "epsilon", positive_number("epsilon", self.epsilon))
        if self.largest_size is not None:
            object.__setattr__(self, "largest_size", positive_number("largest_size", self.largest_size))

        # Different names, one of them chosen, and a share of at most one half.
        names = self.among
        if not 2 <= len(names) <= MOST_AMONG or len(set(names)) != len(names):
            raise InputError("scores", f"must have 2 to {MOST_AMONG} different names", got=str(len(names)))
        if not all(isinstance(name, str) and 0 < len(name) <= MOST_NAME and name.isprintable() for name in names):
            raise InputError("scores", f"must have names of 1 to {MOST_NAME} printable characters")
        require("name", self.name in names, "must be one of the names among which it was chosen")
        require("choice_share", 0 < self.share <= Fraction(1, 2), "must be above 0 and at most 1/2", str(self.share))

    def __str__(self) -> str:
        names = ", ".join(self.among[:5]) + (", ..." if len(self.among) > 5 else "")
        objective = "" if self.largest_size is None else f" by the mean size, each at most {self.largest_size:g},"
        price = f"on a share of {self.share} of the records, at epsilon {self.epsilon:g}"
        return f"{self.name!r}, chosen among {len(self.among)} ({names}){objective} {price}"


@dataclass(frozen=True)
class ScoreChoice:
    """The exponential mechanism that chooses one of several scores.

    Parameters
    ----------
    level
        The coverage level at which scores are compared, a fraction in (0, 1).
    steps
        The number of steps from size 0 to the size C, from which on all sizes are equal.
    epsilon
        A bound on the privacy loss of one record.

    Examples
    --------
    >>> choice = ScoreChoice(Fraction(9, 10), 3, 1.0)
    >>> choice.utility(np.array([0, 120, 300]), np.array([50, 95, 100]), 100), choice.range_distance
    (-1200, 90)
    """

    level: Fraction
    steps: int
    epsilon: float

    @cached_property
    def target(self) -> Fraction:
        """The level with a denominator of at most 1000; it affects the choice, and no guarantee."""
        return self.level.limit_denominator(_LARGEST_DENOMINATOR)

    @property
    def range_distance(self) -> int:
        """The largest difference between the changes of two utilities by one record that is added or removed."""
        return (1 + MISSING) * self.steps * self.target.denominator

    @cached_property
    def scale(self) -> float:
        """The noise scale."""
        return scale_for(self.range_distance, self.epsilon)

    @property
    def loss(self) -> float:
        """The privacy loss of one record that is added or removed."""
        return float_above(Fraction(self.range_distance) / Fraction(self.scale))

    def utility(self, sizes: NDArray[np.int64], covered: NDArray[np.int64], n: int) -> int:
        """The utility of a score, the largest over its candidates, from counts of the n records of the share.

        At each candidate, int64 of shape (m,): the sum of the sizes of all sets, in steps, and the number of covered
        records.
        """
        d = self.target.denominator
        missing = np.maximum(self.target.numerator * (n + 1) - d * covered, 0)
        return int((-d * sizes - MISSING * self.steps * missing).max())

    def choose(self, utilities: NDArray[np.int64]) -> int:
        """Draw the position of a score, with OpenDP's sampler; int64, shape (K,)."""
        return select(utilities, self.scale)
