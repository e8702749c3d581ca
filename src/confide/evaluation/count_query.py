"""The public query of a private evaluation, and its privacy: counts of records by part and outcome, with noise.

Every record is in one cell of every table, by its part of each partition and by its outcome. Cells are counted, and
each count gets discrete Laplace noise.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import Any, Literal, TypeAlias

from confide.errors import InputError
from confide.evaluation.counts import SIDE_OUTCOMES
from confide.evaluation.intervals import Partition, size_parts, width_parts
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
    shapes,
)

Outcome: TypeAlias = Literal["covered", "levels", "sides"]
"""Outcome of a record: covered or missed; the first level that covers it, or none; which ends of its interval hold."""

SIDES = tuple(SIDE_OUTCOMES)

MOST_CELLS = 2_000_000


@dataclass(frozen=True)
class CountPrivacy:
    """Privacy of counts with discrete Laplace noise, from which the noise and the privacy statement follow.

    Parameters
    ----------
    neighbors, epsilon, records_per_person
        Adjacency, privacy loss of one person, and maximum number of records of one person.
    public_n
        Whether the number of records is public.
    tables
        Number of counted tables; a record is in one cell of each.
    one_count
        Whether a replaced record changes one count of a table instead of two, because only covered records are counted.

    Examples
    --------
    >>> paid = CountPrivacy("add_remove", 1.0, 3, public_n=False)
    >>> paid.noise <= 1 / 3 < paid.statement.add_remove
    True
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
        if self.noise < LEAST_LOSS:
            requirement = f"must leave at least {LEAST_LOSS:g} to each count of each record of a person"
            raise InputError("epsilon", requirement, got=f"{self.noise:.3g} for each")

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


@dataclass(frozen=True)
class CountQuery:
    """Query about labelled records and its privacy loss; all of it is public.

    Parameters
    ----------
    calibration
        SHA-256 of the evaluated release.
    neighbors, epsilon, records_per_person
        Adjacency, privacy loss of one person, and maximum number of records of one person.
    n
        Number of records if it is public (`replace_one`); None if it is secret.
    outcome
        Outcomes that are counted.
    statements
        Promised coverage by name: "" for the release as a whole, `alpha 1/10` for levels, or the ends of intervals.
    partitions
        Divisions of the records into parts.
    tables
        Positions of the partitions that are crossed in each table.
    loss
        For risk control: name and largest value of the loss. Coverage is then that of critical thresholds.
    """

    calibration: str
    neighbors: Neighbors
    epsilon: float
    records_per_person: int
    n: int | None
    outcome: Outcome
    statements: Mapping[str, float] = field(hash=False)
    partitions: tuple[Partition, ...] = ()
    tables: tuple[tuple[int, ...], ...] = ((),)
    loss: tuple[str, float] | None = None

    def __post_init__(self) -> None:
        cost, n = self.cost, None if self.n is None else positive_integer("n", self.n, most=MOST_RECORDS)
        plain = {"epsilon": cost.epsilon, "records_per_person": cost.records_per_person, "n": n}
        for name, value in plain.items():
            object.__setattr__(self, name, value)
        if (self.n is None) != (self.neighbors == "add_remove"):
            raise InputError("n", "must be given if and only if neighbors is 'replace_one'; else it is secret")
        self._check_statements()
        used = {place for table in self.tables for place in table}
        if used != set(range(len(self.partitions))) or any(len(set(table)) != len(table) for table in self.tables):
            raise InputError("tables", "must cross the partitions, each of them somewhere and once in a table")
        different = {(part.kind, part.names if part.kind == "group" else ()) for part in self.partitions}
        if len(different) != len(self.partitions) or not self.tables:
            must = "must be of different kinds, or of different columns of groups, and be in at least one table"
            raise InputError("partitions", must)
        if sum(prod(self.shape(table)) for table in self.tables) > MOST_CELLS:
            raise InputError("tables", f"must have at most {MOST_CELLS:,} counts", remedy="Request fewer parts at once")

    def _check_statements(self) -> None:
        names = tuple(self.statements)
        expected = {"covered": ("",), "sides": SIDES}.get(self.outcome, names)
        if names != expected or not names or not all(0 <= level <= 1 for level in self.statements.values()):
            raise InputError("statements", "must be those of the outcome, with a coverage in [0, 1] each")
        rising = list(self.statements.values())
        if self.outcome == "levels" and not (rising == sorted(rising) and all(n.startswith("alpha ") for n in names)):
            raise InputError("statements", "must be named by alpha for levels, in increasing order of coverage")
        if self.loss is not None:
            positive_number("bound", self.loss[1])

    @property
    def cost(self) -> CountPrivacy:
        """Privacy of all counts together."""
        return CountPrivacy(
            self.neighbors,
            self.epsilon,
            self.records_per_person,
            public_n=self.n is not None,
            tables=max(len(self.tables), 1),
            one_count=self.one_count,
        )

    @property
    def outcomes(self) -> int:
        """Number of possible outcomes of a record."""
        return {"covered": 2, "sides": 4}.get(self.outcome, len(self.statements) + 1)

    def shape(self, table: tuple[int, ...]) -> tuple[int, ...]:
        """Shape of a table: one axis for each of its partitions, and one for outcomes."""
        return (*(len(self.partitions[place]) for place in table), self.outcomes)

    @property
    def cells(self) -> list[int]:
        """Number of counts in each table."""
        return [1] if self.one_count else [prod(self.shape(table)) for table in self.tables]

    @property
    def one_count(self) -> bool:
        """Whether only covered records are counted, because n is public and all others are missed."""
        return self.n is not None and self.outcome == "covered" and self.tables == ((),)

    @property
    def noise(self) -> float:
        """Parameter of the noise of each count, one divided by its scale."""
        return self.cost.noise

    @property
    def privacy(self) -> PrivacyStatement:
        """Privacy loss of all counts together."""
        return self.cost.statement

    def statement_cells(self, name: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Outcomes in which a statement holds, and the other outcomes."""
        held = SIDE_OUTCOMES[name] if self.outcome == "sides" else tuple(range(list(self.statements).index(name) + 1))
        return held, tuple(place for place in range(self.outcomes) if place not in held)


def level_name(alpha: Fraction) -> str:
    """Name of a level among the statements.

    Examples
    --------
    >>> level_name(Fraction(1, 10))
    'alpha 1/10'
    """
    return f"alpha {alpha}"


# As JSON

MOST_NOISY = 4 * MOST_RECORDS
"""The largest count with noise in a file."""
_HEXADECIMAL = frozenset("0123456789abcdef")


def _partition_shape(content: Mapping[str, Any]) -> shapes.Shape:
    """Fields of a partition, by its kind."""
    kind = {"kind": shapes.choice("class", "group", "size", "width")}
    match content.get("kind"):
        case "size":
            return {**kind, "classes": shapes.INTEGER}
        case "width":
            return {**kind, "bins": shapes.listed(shapes.number())}
        case "class" | "group":
            promised = shapes.optional(shapes.listed(shapes.number()))
            return {**kind, "names": shapes.listed(shapes.TEXT), "promised": promised}
    return kind


def _partition(values: dict[str, Any]) -> Partition:
    match values["kind"]:
        case "size":
            return size_parts(min(values["classes"], 10**9))
        case "width":
            return width_parts(values["bins"])
    return Partition(**values)


def _write_partition(partition: Partition) -> dict[str, Any]:
    if partition.kind == "size":
        return {"kind": "size", "classes": int(partition.most)}
    if partition.kind == "width":
        return {"kind": "width", "bins": list(partition.edges[1:])}
    own = {} if partition.promised is None else {"promised": list(partition.promised)}
    return {"kind": partition.kind, "names": list(partition.names), **own}


def _statements(stated: dict[str, Any]) -> dict[str, float]:
    if not all(type(coverage) in (int, float) for coverage in stated.values()):
        raise ValueError
    return {name: float(coverage) for name, coverage in stated.items()}


QUERY: shapes.Shape = {
    "calibration": shapes.Field(
        "64 hexadecimal digits", (str,), shapes.reads_if(lambda text: len(text) == 64 and not set(text) - _HEXADECIMAL)
    ),
    "privacy": shapes.Field(
        "a relation and a loss",
        (dict,),
        attribute="",
        shape={
            "neighbors": shapes.TEXT,
            "epsilon": shapes.number(),
            "records_per_person": shapes.INTEGER,
        },
    ),
    "n": shapes.nullable(shapes.INTEGER),
    "outcome": shapes.choice("covered", "levels", "sides"),
    "statements": shapes.Field("names with a number each", (dict,), _statements, dict),
    "partitions": shapes.listed(
        shapes.Field("a partition", (dict,), _partition, _write_partition, shape=_partition_shape)
    ),
    "tables": shapes.listed(shapes.listed(shapes.integer(MOST_NOISY, -MOST_NOISY))),
    "loss": shapes.Field(
        "a loss and its bound",
        (dict,),
        lambda loss: (loss["name"], loss["bound"]),
        lambda loss: {"name": loss[0], "bound": loss[1]},
        optional=True,
        shape=lambda _: {"name": shapes.TEXT, "bound": shapes.number()},
    ),
}
"""The fields of a query in a file."""


def query_fields(query: CountQuery) -> dict[str, Any]:
    """JSON values of a query; together with the data they identify a request."""
    return shapes.write_shape(query, QUERY)
