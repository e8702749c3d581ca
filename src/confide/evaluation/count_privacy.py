"""The privacy of tables of noisy counts: the noise of each count, and the statement."""

from dataclasses import dataclass, field
from fractions import Fraction

from confide.errors import InputError
from confide.mechanisms import NEIGHBORS, Neighbors, PrivacyStatement
from confide.support import (
    LEAST_LOSS,
    MOST_PER_PERSON,
    float_above,
    float_below,
    one_of,
    positive_integer,
    privacy_loss,
)


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
