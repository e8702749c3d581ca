"""The public question of an evaluation: into which parts records are divided, and which outcomes are counted.

Every record is in one cell of every table, by its part of each partition of the table and by its outcome. So noise on a
partition costs as much as on one count, for any number of parts.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from confide.core import Release
from confide.errors import InputError
from confide.evaluation.partitions import Partition
from confide.evaluation.statements import SIDE_OUTCOMES, SIDES, Outcome, Statement, statements_of
from confide.mechanisms import NEIGHBORS, Neighbors, PrivacyStatement
from confide.support import (
    LEAST_LOSS,
    MOST_PER_PERSON,
    MOST_RECORDS,
    float_above,
    float_below,
    one_of,
    positive_integer,
    positive_number,
    privacy_loss,
    require,
)

# The privacy of counts.


@dataclass(frozen=True)
class CountPrivacy:
    """Privacy of counts with discrete Laplace noise, from which the noise and the privacy statement follow.

    A record is in one cell of each of the `tables`. With `one_count` only covered records are counted, so that a
    replaced record changes one count of a table instead of two.
    """

    neighbors: Neighbors
    epsilon: float
    records_per_person: int
    public_n: bool = field(kw_only=True)
    tables: int = field(default=1, kw_only=True)
    one_count: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        one_of("neighbors", self.neighbors, NEIGHBORS)
        object.__setattr__(self, "epsilon", privacy_loss("epsilon", self.epsilon))
        people = positive_integer("records_per_person", self.records_per_person, most=MOST_PER_PERSON)
        object.__setattr__(self, "records_per_person", people)
        must = f"must leave each count a privacy loss of at least {LEAST_LOSS:g} for each record of a person"
        require("epsilon", self.noise >= LEAST_LOSS, must, got=f"{self.noise:.3g} for each")

    @property
    def changes(self) -> int:
        """Largest change of all counts by one record: one cell of each table, or two if the record is replaced."""
        return self.tables * (2 if self.neighbors == "replace_one" and not self.one_count else 1)

    @property
    def noise(self) -> float:
        """Parameter of the noise, one divided by its scale, rounded down."""
        return float_below(Fraction(self.epsilon) / (self.records_per_person * self.changes))

    @property
    def statement(self) -> PrivacyStatement:
        """Privacy loss of all counts together; the loss of one record is rounded up.

        Replacing a record means removing one and adding another, which costs twice as much. If n is public, adding a
        record changes n itself.
        """
        k = self.records_per_person
        single = float_above(Fraction(self.epsilon) / k)
        if self.neighbors == "add_remove":
            return PrivacyStatement("add_remove", self.epsilon, k, single, 2 * single, None)
        return PrivacyStatement("replace_one", self.epsilon, k, None if self.public_n else single / 2, single, None)


# The query.

Measure: TypeAlias = Literal["size", "width", "area"]
"""Quantity that is added up without noise: labels in sets, widths of intervals, or predicted and true area of masks."""

_MOST_CELLS = 2_000_000
"""Largest number of counts with noise in all tables together."""

_MOST_ADDED = 30
"""Maximum number of cells that are summed for coverage over all records; above it, coverage has its own counts."""

_LEAST_ERROR = 1e-9
"""Smallest error probability of an interval."""


def arrangement(sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Choose which partitions are crossed in which table, from their numbers of parts alone.

    Several partitions are published one by one, each with its share of epsilon, or crossed: one table of all
    combinations with the whole epsilon, whose cells are added up. m partitions one by one have m times the noise in
    each count, so m^2 times its variance. In a crossed table a count is a sum of as many noises as the other partitions
    have combinations. Partitions are crossed if that is at most m^2. Coverage over all records is the sum of the table
    with the fewest cells. If that has more than 30 cells, coverage gets a table with one cell.

    Examples
    --------
    >>> arrangement([]), arrangement([10]), arrangement([3, 4]), arrangement([10, 4]), arrangement([1000])
    (((),), ((0,),), ((0, 1),), ((0,), (1,)), ((0,), ()))
    """
    # One by one, or crossed.
    m = len(sizes)
    cells = prod(sizes)
    if m < 2 or max(cells // size for size in sizes) <= m * m:
        tables: list[tuple[int, ...]] = [tuple(range(m))]
    else:
        tables = [(place,) for place in range(m)]

    # Coverage over all records.
    if min(prod(sizes[place] for place in table) for table in tables) > _MOST_ADDED:
        tables.append(())
    return tuple(tables)


@dataclass(frozen=True, kw_only=True)
class CountQuery:
    """Query about labelled records and its privacy loss; all of it is public.

    Parameters
    ----------
    calibration
        SHA-256 of the evaluated release.
    outcome
        Outcomes that are counted.
    statements
        Promised coverage by name: "" for the release as a whole, `alpha 1/10` for levels, or the ends of intervals.
    partitions
        Divisions of the records into parts.
    loss
        For risk control: name and largest value of the loss. Coverage is then that of critical thresholds.
    measure
        Quantity that is added up in each part; only without noise.
    neighbors, epsilon, records_per_person
        Adjacency, privacy loss of one person, and maximum number of records of one person. Without an epsilon there is
        no noise, and the counts are not private.
    n
        Number of records if it is public (`replace_one`); None if it is secret, or counted without noise.

    Attributes
    ----------
    tables
        Positions of the partitions that are crossed in each table: those of `arrangement`; without noise a table for
        all records, and one for each partition.
    """

    calibration: str
    outcome: Outcome
    statements: Mapping[str, float] = field(hash=False)
    partitions: tuple[Partition, ...] = ()
    tables: tuple[tuple[int, ...], ...] = field(init=False)
    loss: tuple[str, float] | None = None
    measure: Measure | None = None
    neighbors: Neighbors = "add_remove"
    epsilon: float | None = None
    records_per_person: int = 1
    n: int | None = None

    def __post_init__(self) -> None:
        # The tables follow from the partitions.
        noisy = self.epsilon is not None
        sizes = list(map(len, self.partitions))
        tables = arrangement(sizes) if noisy else ((), *((place,) for place in range(len(sizes))))
        object.__setattr__(self, "tables", tables)

        # Numbers as Python has them.
        if self.n is not None:
            object.__setattr__(self, "n", positive_integer("n", self.n, most=MOST_RECORDS))
        if noisy:
            object.__setattr__(self, "epsilon", self.cost.epsilon)
            object.__setattr__(self, "records_per_person", self.cost.records_per_person)

        self._check_statements()
        self._check_partitions()
        self._check_noise()

    def _check_statements(self) -> None:
        is_sha256 = re.fullmatch("[0-9a-f]{64}", self.calibration)
        require("calibration", is_sha256, "must be a SHA-256, 64 hexadecimal digits")
        names = tuple(self.statements)
        promised = list(self.statements.values())
        expected = {"covered": ("",), "area": ("",), "sides": SIDES}.get(self.outcome, names)
        are_shares = names == expected and names and all(0 <= level <= 1 for level in promised)
        must = "must have the names that belong to the outcome, and each a coverage in [0, 1]"
        require("statements", are_shares, must)
        are_levels = None not in [Statement(name).alpha for name in names] and promised == sorted(promised)
        must = "must have names such as 'alpha 1/10' for levels, in increasing order of coverage"
        require("statements", self.outcome != "levels" or are_levels, must)
        if self.loss is not None:
            positive_number("bound", self.loss[1])

    def _check_partitions(self) -> None:
        are_stated = all(partition.statement in ("", *self.statements) for partition in self.partitions)
        require("partitions", are_stated, "must each be about all levels, or about one stated level")
        # Records may be divided by several columns of groups, which have different names.
        kinds = {(p.kind, p.statement, p.names if p.kind == "group" else ()) for p in self.partitions}
        must = "must differ in their kinds, or be groups by different columns"
        require("partitions", len(kinds) == len(self.partitions), must)

    def _check_noise(self) -> None:
        noisy = self.epsilon is not None
        is_public = noisy and self.neighbors == "replace_one"
        if is_public != (self.n is not None):
            raise InputError("n", "must be given if and only if neighbors is 'replace_one'; else it is secret")
        if noisy and (self.measure or self.outcome == "area"):
            raise InputError("measure", "must be left out if counts have noise")
        if not noisy and (self.measure == "size") != any(partition.kind == "size" for partition in self.partitions):
            raise InputError("measure", "must be 'size' if and only if a partition is by set size")
        if noisy and sum(self.cells) > _MOST_CELLS:
            must = f"must have at most {_MOST_CELLS:,} counts"
            raise InputError("tables", must, remedy="Request fewer parts at once")

    @classmethod
    def of(cls, release: Release, partitions: Sequence[Partition], **fields: Any) -> "CountQuery":
        """Query about the promises of a release, with these other fields."""
        outcome, statements = statements_of(release)
        stated = {"outcome": outcome, "statements": statements, "loss": release.bounded, **fields}
        return cls(calibration=release.checksum, partitions=tuple(partitions), **stated)

    @property
    def cost(self) -> CountPrivacy:
        """Privacy of all counts together."""
        assert self.epsilon is not None
        return CountPrivacy(
            self.neighbors,
            self.epsilon,
            self.records_per_person,
            public_n=self.n is not None,
            tables=len(self.tables),
            one_count=self.one_count,
        )

    @property
    def privacy(self) -> PrivacyStatement:
        """Privacy loss of all counts together; infinite without noise."""
        if self.epsilon is None:
            return PrivacyStatement("replace_one", math.inf, 1, None, math.inf, None)
        return self.cost.statement

    @property
    def noise(self) -> float:
        """Parameter of the noise of each count, one divided by its scale."""
        return self.cost.noise

    @property
    def levels(self) -> int:
        """Number of levels, each of which has its own sets or intervals."""
        return len(self.statements) if self.outcome == "levels" else 1

    def shape(self, table: tuple[int, ...]) -> tuple[int, ...]:
        """Shape of a table: one axis for each of its partitions, and one for outcomes."""
        outcomes = {"levels": self.levels + 1, "sides": 4}.get(self.outcome, 2)
        return (*self._parts_of(table), 2 if self.level_of(table) else outcomes)

    def sums_shape(self, table: tuple[int, ...]) -> tuple[int, ...]:
        """Shape of the sums of sizes or widths in a table: one axis for each partition, and one for levels."""
        columns = {None: 0, "area": 2}.get(self.measure, 1 if self.level_of(table) else self.levels)
        return (*self._parts_of(table), columns)

    def _parts_of(self, table: tuple[int, ...]) -> list[int]:
        return [len(self.partitions[place]) for place in table]

    def level_of(self, table: tuple[int, ...]) -> str:
        """The level of the sets that a table counts, if it is of one level; "" for all levels."""
        return "".join(self.partitions[place].statement for place in table)

    @property
    def cells(self) -> list[int]:
        """Number of counts in each table."""
        return [1] if self.one_count else [prod(self.shape(table)) for table in self.tables]

    @property
    def one_count(self) -> bool:
        """Whether only covered records are counted, because n is public and all others are missed."""
        return self.n is not None and self.outcome == "covered" and self.tables == ((),)

    def held(self, name: str, table: tuple[int, ...]) -> NDArray[np.bool_]:
        """Whether a statement holds in each outcome of a table."""
        outcomes = np.arange(self.shape(table)[-1])
        if self.outcome == "sides":
            return np.isin(outcomes, SIDE_OUTCOMES[name])
        return outcomes <= (0 if self.level_of(table) else list(self.statements).index(name))

    def family_error(self, error: float) -> float:
        """Error probability of each family of intervals; without noise each interval is exact by itself.

        With noise all intervals hold together: the error probability a = 1 - confidence is divided evenly among the
        families of statements (Bonferroni). For each promise these are the coverage over all records and the coverage
        by each partition, and for each partition into bins the shares of its bins. Within a partition the coverage
        intervals are independent given the part sizes, so each may miss with probability 1 - (1 - a')^(1/k) (Sidak).
        Shares of bins are not independent and divide a' by k. The mean of a binned number follows from its shares on
        the same event, at no further error.

        Raises
        ------
        InputError
            If an interval of some family would have an error probability below 1e-9.
        """
        if self.epsilon is None:
            return error

        # Of each promise all records and each partition, and the shares of each partition into bins. Rounding must not
        # make the sum of the errors larger.
        binned = sum(partition.binned for partition in self.partitions)
        families = len(self.statements) * (1 + len(self.partitions)) + binned
        each = error if families == 1 else error / families * (1 - 1e-12)
        if each / max([1, *map(len, self.partitions)]) < _LEAST_ERROR:
            must = "must leave each interval an error probability of at least 1e-9"
            raise InputError("confidence", must, remedy="Choose a smaller confidence, or fewer parts")
        return each


def json_fields(value: Any) -> dict[str, Any]:
    """JSON values of a query, of a file, or of findings, without the fields that do not apply."""
    fields: dict[str, Any] = _without_none(msgspec.to_builtins(value))
    return fields


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_none(inner) for name, inner in value.items() if inner is not None}
    return [_without_none(inner) for inner in value] if isinstance(value, list | tuple) else value
