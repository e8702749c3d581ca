"""The terms of one threshold: every public number from which its design follows, validated once."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

from confide.candidates import Candidates, OwnCandidates, Spread
from confide.core.population import Population
from confide.core.tuning import LEFTS, PARTS, TuningInputs
from confide.errors import InputError
from confide.guarantee import moving_rate
from confide.mechanisms import (
    OF_DESIGN,
    OF_TARGET,
    UNIT,
    MechanismName,
    Neighbors,
    Noise,
    NoisySize,
    SizeShare,
    design_for,
    size_scale,
    slopes_for,
)
from confide.support import (
    LEAST_LOSS,
    MOST_RECORDS,
    float_below,
    positive_integer,
)

# The guess of a secret number of records.
_TYPICAL = 1000

# The least guess of the number in a group: candidates for 83 records make thresholds 20 % too high for thousands.
_LEAST_TYPICAL = 150


def typical_of_groups(groups: int, n_min: Any) -> int:
    """The public guess of the number of records in each group: 1000 by the number of groups, but at least 150."""
    return max(positive_integer("n_min", n_min, most=MOST_RECORDS), -(-_TYPICAL // groups), _LEAST_TYPICAL)


# The mechanisms that choose among the lists of a spread. A noisy number of records comes first if it is secret.
NUMBERED = ("slopes", "noisy-histogram")


def share_of_number(mechanism: str, delta: float | None, population: Population | None) -> SizeShare:
    """The share of a noisy number of records in the budget: more where the target moves with it (Theorem H1)."""
    return OF_TARGET if mechanism == "slopes" and delta is None and population is None else OF_DESIGN


@dataclass(frozen=True)
class Terms:
    """All public parameters of one threshold except the number of records; a `Request` makes them.

    See `plan` and `calibrate` for the meaning of most fields.

    Parameters
    ----------
    epsilon
        The privacy loss of a person for all that is released; infinite without privacy (`mechanism="none"`).
    size_scale
        If it is a number, a noisy number of records with noise of this scale is released first, and the design follows
        it. Otherwise the design is for the public number, or for a guess.
    choice
        The privacy loss of one record in a private choice of the score, which used other records; None without a
        choice.
    noise
        The law of the noise in counts that another engine made (`mechanism="published-counts"`).
    largest
        The largest value of the score; a threshold of at least this value excludes nothing.
    levels
        The miscoverage levels that one noisy histogram serves; empty if it serves this one alone.
    """

    spread: Candidates | Spread | OwnCandidates
    score: str | None
    alpha: Fraction
    epsilon: float
    neighbors: Neighbors
    n_min: int
    guess: int
    delta: float | None
    records_per_person: int
    mechanism: MechanismName | Literal["published-counts"] = "slopes"
    population: Population | None = None
    size_scale: float | None = None
    choice: float | None = None
    noise: Noise | None = None
    largest: float = math.inf
    levels: tuple[Fraction, ...] = ()

    def __post_init__(self) -> None:
        if self.mechanism == "pps" and not self.public_n and self.alpha > Fraction(1, 2):
            must = "must be at most 1/2 for mechanism='pps' with neighbors='add_remove': nothing is proved for more"
            raise InputError("alpha", must, remedy="Take neighbors='replace_one'")
        if self.mechanism in NUMBERED and not self.public_n and self.size_scale is None:
            least = float(LEAST_LOSS / self._share.loss) * self.records_per_person
            raise InputError("epsilon", f"must be at least {least:g}, for a noisy number of records")
        if self.size_scale is not None and self.mechanism == "slopes":
            self.check_designs()

    @property
    def known_spread(self) -> Candidates | Spread:
        """The list, or the spread of one; raises an error if a release contains only the number of its candidates."""
        if isinstance(self.spread, OwnCandidates):
            must = f"must be given again: the release has {self.spread.size} of its own, and contains only their number"
            raise InputError("candidates", must)
        return self.spread

    @cached_property
    def public_n(self) -> bool:
        """Whether the number of records is public."""
        return self.neighbors == "replace_one"

    @cached_property
    def level(self) -> Fraction:
        """1 - alpha, exactly."""
        return 1 - self.alpha

    @property
    def served(self) -> tuple[Fraction, ...]:
        """The levels of coverage that its candidates serve."""
        return tuple(1 - alpha for alpha in self.levels or (self.alpha,))

    @cached_property
    def moves(self) -> bool:
        """Whether the target moves half with a secret number of records and half with a noisy one (Theorem H1)."""
        return self.size_scale is not None and self._share is OF_TARGET

    @property
    def sized(self) -> bool:
        """Whether the guarantee is also on average over a noisy number of records."""
        return self.moves or (self.size_scale is not None and self.mechanism != "slopes")

    @cached_property
    def rate(self) -> Fraction:
        """The ranks by which the target moves with each record; with `delta` it is larger than this."""
        if self.public_n:
            return Fraction(0)
        return moving_rate(self.level) if self.moves else self.level

    @cached_property
    def unit(self) -> int:
        """Target ranks are multiples of 1/unit."""
        denominator = math.lcm(self.level.denominator, self.rate.denominator)
        return UNIT if self.public_n else denominator * -(-UNIT // denominator)

    @cached_property
    def weight(self) -> int | None:
        """The largest integer weight of a record; None without weights."""
        return None if self.population is None else self.population.heaviest

    @cached_property
    def per_record(self) -> float:
        """The privacy loss of one record, without that of a noisy number; rounded down for the sum over a person."""
        if math.isinf(self.epsilon):
            return math.inf
        number = 0 if self.size_scale is None else 1 / Fraction(self.size_scale)
        return float_below(Fraction(self.epsilon) / self.records_per_person - number)

    def noisy_size(self, counted: int) -> NoisySize:
        """What this noisy number of records states, if one is released first."""
        assert self.size_scale is not None
        return NoisySize.of(counted, self.size_scale, self.n_min)

    def with_loss(self, epsilon: float) -> "Terms":
        """The same terms for another privacy loss, of which a noisy number of records has the same share."""
        if self.size_scale is None:
            return replace(self, epsilon=epsilon)
        return replace(self, epsilon=epsilon, size_scale=size_scale(epsilon / self.records_per_person, self._share))

    @property
    def _share(self) -> SizeShare:
        return share_of_number(self.mechanism, self.delta, self.population)

    def effective(self, n: int) -> int:
        """About the number of records of the largest weight that weigh as much as n typical ones; n without weights."""
        return max(1, n if self.population is None else round(n * self.population.typical_share))

    def records_of_design(self, n: int) -> int:
        """The number of records that a design is for: n if it is public, a round one near a noisy n, or a guess."""
        if self.public_n:
            return n
        return self.guess if self.size_scale is None else design_for(n, self.size_scale, self.n_min)

    def tuning_inputs(self, n: int) -> TuningInputs:
        """The inputs of the tuning for n records; a secret number is at least n_min."""
        known = n if self.public_n else self.effective(max(self.n_min, n))
        return TuningInputs(
            n=known,
            level=self.level,
            epsilon=self.per_record,
            rate=self.rate,
            delta=self.delta,
            weighted=self.population is not None,
            counted=self.size_scale is not None,
            moves=self.moves,
        )

    def check_designs(self) -> None:
        """Raise if the utilities of a design for some noisy number of records do not fit into 64 bits.

        The scale of the utilities is a convex function of the left slope, so it is largest at an end of the slope's
        range. A design with `delta`, whose rate has another denominator, has no weights, and fits for every privacy
        loss.
        """
        for left in (LEFTS[0], LEFTS[-1]):
            offset = Fraction(1, self.unit)
            slopes_for(self.rate, offset, left, PARTS - left, self.neighbors, self.per_record, self.weight)
