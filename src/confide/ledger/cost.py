"""The privacy cost of one release, in units that compose."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from confide.errors import InputTypeError
from confide.ledger.decimals import decimal, finite_loss
from confide.mechanisms import NEIGHBORS, Neighbors, PrivacyStatement
from confide.selection import zcdp_of_range
from confide.support import one_of, require

# Most characters of a name
MOST_NAME = 200

# Kinds of releases other than calibrations; a mechanism's name begins with its kind: `look by discrete-laplace`
KINDS = ("evaluation", "look", "choice", "transfer")


def check_name(argument: str, value: object) -> str:
    """A name of 1 to 200 printable characters."""
    if not isinstance(value, str):
        raise InputTypeError(argument, "must be a name", got=type(value).__name__)
    is_name = 0 < len(value) <= MOST_NAME and value.isprintable() and value.strip() == value
    must = f"must be a name of 1 to {MOST_NAME} printable characters without spaces at its ends"
    require(argument, is_name, must)
    return value


class Group(NamedTuple):
    """One cell of a public partition of the records. The contents of a record determine its cell.

    Releases about different cells cost their maximum if `records_per_person` bounds a person's records in all cells
    together: one record, or k records in any cells.

    Examples
    --------
    >>> Group("region", "north")
    Group(partition='region', cell='north')
    """

    partition: str
    cell: str


def check_group(value: object) -> Group:
    """A pair of names (partition, cell)."""
    if not isinstance(value, tuple) or len(value) != 2:
        raise InputTypeError("group", "must be a pair of names (partition, cell), such as ('region', 'north')")
    return Group(check_name("group's partition", value[0]), check_name("group's cell", value[1]))


@dataclass(frozen=True)
class Cost:
    """The privacy cost of one release.

    Parameters
    ----------
    epsilon
        Pure differential-privacy loss per person, at least 0. It is infinite for a release without privacy, and for one
        with zero-concentrated privacy (rho) alone.
    neighbors
        The adjacency for which it is stated: `"add_remove"` or `"replace_one"`.
    mechanism
        Name of the mechanism, 1 to 200 printable characters; for an evaluation or a look it begins with its `kind`.
    rho
        Zero-concentrated (zCDP) loss per person, or None if no better bound than epsilon**2/2 is known. The exponential
        mechanism has the better bound `zcdp_of_range(epsilon)` (docs/theory.md, Lemma P3).
    group
        The cell of a public partition that the release is about, or None if it is about all records.

    Raises
    ------
    InputError, InputTypeError
        If a loss is negative or not a number, rho is not finite, or a name cannot be used. If a group is given under
        `replace_one`, where a replaced record can leave one group and enter another.

    Examples
    --------
    >>> Cost(1.0, "add_remove", "slopes").exact
    Fraction(1, 1)
    """

    epsilon: float
    neighbors: Neighbors
    mechanism: str
    rho: float | None = None
    group: Group | None = None

    def __post_init__(self) -> None:
        if self.epsilon != math.inf:
            object.__setattr__(self, "epsilon", finite_loss("epsilon", self.epsilon))
        one_of("neighbors", self.neighbors, NEIGHBORS)
        check_name("mechanism", self.mechanism)
        if self.rho is not None:
            object.__setattr__(self, "rho", finite_loss("rho", self.rho))
        if self.group is not None:
            object.__setattr__(self, "group", check_group(self.group))
            must = "needs neighbors='add_remove': a replaced record can leave one group and enter another"
            require("group", self.neighbors == "add_remove", must)

    @property
    def kind(self) -> str:
        """The kind of release: `"calibration"`, or one of `KINDS`.

        Examples
        --------
        >>> Cost(1.0, "add_remove", "look by discrete-laplace").kind, Cost(1.0, "add_remove", "slopes").kind
        ('look', 'calibration')
        """
        kind = self.mechanism.partition(" by ")[0]
        return kind if kind in KINDS else "calibration"

    @property
    def private(self) -> bool:
        """Whether the loss is finite."""
        return math.isfinite(self.epsilon)

    @property
    def concentrated_only(self) -> bool:
        """Whether the release has zero-concentrated privacy without a pure epsilon."""
        return self.epsilon == math.inf and self.rho is not None

    @property
    def exact(self) -> Fraction:
        """A finite epsilon as its printed decimal number, so that ten times 0.1 is 1."""
        return decimal(self.epsilon)

    @property
    def zcdp(self) -> Fraction:
        """The best known zCDP loss: rho if stated, else epsilon**2/2 (Bun and Steinke 2016, Proposition 1.4)."""
        if self.rho is None:
            return self.exact**2 / 2
        stated = decimal(self.rho)
        return min(self.exact**2 / 2, stated) if self.private else stated

    @classmethod
    def of(
        cls, privacy: PrivacyStatement, mechanism: str, neighbors: Neighbors | None = None, group: Group | None = None
    ) -> "Cost":
        """The cost of a release with this privacy statement, under `neighbors` (default: the statement's own).

        Raises
        ------
        InputError
            If n is public and `neighbors` is `"add_remove"`, under which the loss is infinite.

        Examples
        --------
        >>> Cost.of(PrivacyStatement("add_remove", 1.0, 1, 1.0, 1.2, None), "slopes", "replace_one").epsilon
        1.2
        """
        # Before the loss: a release with public n reveals n even if it spends nothing, such as one of +inf
        relation = neighbors or privacy.neighbors
        publishes_n = relation == "add_remove" and privacy.neighbors == "replace_one"
        must = (
            "neighbors='replace_one' publishes the number of records, which has no finite loss for "
            "adding or removing one"
        )
        remedy = "This data set is accounted under add_remove: use neighbors='add_remove'"
        require("neighbors", not publishes_n, must, remedy=remedy)
        if privacy.epsilon == 0:
            return cls(0.0, relation, mechanism, 0.0, group)
        if relation == privacy.neighbors or privacy.epsilon == math.inf:
            return cls(privacy.epsilon, relation, mechanism, privacy.rho, group)
        epsilon = privacy.loss(relation, privacy.records_per_person)
        return cls(epsilon, relation, mechanism, None if privacy.rho is None else zcdp_of_range(epsilon), group)
