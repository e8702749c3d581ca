"""The terms of one threshold: every public number from which its design follows, validated once.

A request divides its privacy budget, its failure probability and its levels among the terms of its thresholds.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, TypedDict

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
    PublishedHistogram,
    SizeShare,
    design_for,
    size_scale,
    size_zcdp,
    slopes_for,
    split_epsilon,
)
from confide.selection import range_of_zcdp
from confide.support import (
    LEAST_LOSS,
    MOST_RECORDS,
    Level,
    exact_level,
    float_below,
    positive_integer,
    privacy_loss,
    several,
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


class Choices(TypedDict, total=False):
    """Public choices of a threshold, in addition to its level, epsilon and candidates.

    Parameters
    ----------
    rho
        zCDP loss per person, instead of epsilon: the mechanism has the largest epsilon that it allows
        (docs/theory.md, Lemma P3).
    neighbors
        The adjacency: `"add_remove"` (n stays secret) or `"replace_one"` (n is public).
    n_min
        Public lower bound on the secret number of records (`add_remove` only). With `delta`, and for published methods,
        the coverage guarantee holds for every n >= n_min. The default guarantee holds for every n.
    delta
        Guarantee "coverage at least 1-alpha with probability 1-delta over the calibration data" instead of marginal
        coverage; in (0, 1).
    records_per_person
        Public bound on the number of records of one person; each record then gets epsilon/records_per_person.
    mechanism
        `"slopes"` (default), or the name of a published method, for comparisons: `"pps"`, `"pps-laplace"`,
        `"noisy-histogram"`, `"opendp-quantile"` (no coverage guarantee) or `"none"` (**not private**: split
        conformal prediction; leave out epsilon). See docs/methods.md.
    """

    rho: float | None
    neighbors: Neighbors
    n_min: int
    delta: Level | None
    records_per_person: int
    mechanism: MechanismName


CHOICES = tuple(Choices.__annotations__)


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


# The division of a request among the terms of its thresholds.


@dataclass(frozen=True)
class Budget:
    """The privacy loss of a person: epsilon, or a zCDP loss rho; neither without privacy."""

    epsilon: float | None = None
    rho: float | None = None

    def __post_init__(self) -> None:
        if self.epsilon is not None and self.rho is not None:
            raise InputError("epsilon", "epsilon or rho must be given, and not both")

    def divided(self, shares: Sequence[Fraction], *, replaced: bool = False) -> list["Budget"]:
        """A budget for each share."""
        if self.epsilon is None and self.rho is None:
            return [self for _ in shares]
        # Where a replaced record changes two parts, each has half of the epsilon, or a quarter of the rho.
        name, total, parts = ("epsilon", self.epsilon, 2) if self.rho is None else ("rho", self.rho, 4)
        pieces = [share / parts if replaced else share for share in shares]
        return [Budget(**{name: loss}) for loss in split_epsilon(privacy_loss(name, total), pieces)]

    def spent(self, method: str, records: int, share: SizeShare | None) -> tuple[float, float | None]:
        """The epsilon of a person, and the scale of the noise in the number of records that is released first.

        `share` is the share of the budget for the noisy number of records, if the budget suffices for one. The epsilon
        is infinite without privacy; the scale is None without a noisy number.
        """
        if method == "none":
            return math.inf, None
        if method == PublishedHistogram.name:  # its maker's budget, if it is stated
            return math.inf if self.epsilon is None else privacy_loss("epsilon", self.epsilon), None
        if self.epsilon is None and self.rho is None:
            must = "epsilon or rho must be given: say how private, by epsilon=1.0, or by rho=0.1 for zCDP"
            raise InputError("epsilon", must)

        # The scale of the noise, and for a zCDP loss the largest epsilon of what remains.
        scale = None
        if self.rho is None:
            epsilon = privacy_loss("epsilon", self.epsilon)
            if share is not None and epsilon >= LEAST_LOSS / share.loss * records:
                scale = size_scale(epsilon / records, share)
        elif share is None:
            epsilon = range_of_zcdp(privacy_loss("rho", self.rho))
        else:
            rho = privacy_loss("rho", self.rho)
            scale = records / math.sqrt(2 * share.rho * Fraction(rho))
            rest = float_below(Fraction(rho) - size_zcdp(scale, records))
            epsilon = float_below(Fraction(range_of_zcdp(rest)) + records / Fraction(scale))
        if epsilon < LEAST_LOSS * records:
            must = f"leaves each record a privacy loss of less than {LEAST_LOSS:g}"
            got = f"{records} records for epsilon={epsilon:g}"
            remedy = "Raise epsilon or keep fewer records of each person"
            raise InputError("records_per_person", must, got=got, remedy=remedy)
        return epsilon, scale


def exact_shares(shares: Sequence[Level] | None, count: int) -> list[Fraction]:
    """Positive shares that sum to one; equal shares by default."""
    if shares is None:
        return [Fraction(1, count)] * count
    exact = [exact_level("shares", share) for share in shares] if count > 1 else [Fraction(1)]
    if len(exact) != count or sum(exact) != 1:
        must = f"must be {count} positive numbers that sum to one"
        raise InputError("shares", must, got=f"{len(exact)}, sum {sum(exact)}")
    return exact


def part_of_failure(delta: Level | None, count: int) -> Fraction | None:
    """An equal part of a failure probability; by the union bound all guarantees then hold together."""
    return None if delta is None else exact_level("delta", exact_level("delta", delta) / count)


def different_levels(alphas: Sequence[Level]) -> list[Fraction]:
    """Return distinct levels as exact fractions."""
    levels = [exact_level("alpha", alpha) for alpha in several("alpha", alphas)]
    if not levels or len(set(levels)) != len(levels):
        got = f"{len(levels)}, {len(set(levels))} different"
        raise InputError("alpha", "must be one or more different levels", got=got)
    return levels


def levels_of_sides(alpha: Any) -> list[Fraction]:
    """The level of each side: half of the interval's level, or the given pair."""
    if not isinstance(alpha, tuple):
        return [exact_level("alpha", alpha) / 2] * 2
    if len(alpha) != 2:
        must = "must be one level, or a pair of levels for the lower and the upper side"
        raise InputError("alpha", must, got=str(len(alpha)))
    levels = [exact_level("alpha", side) for side in alpha]
    if sum(levels) >= 1:
        raise InputError("alpha", "must sum to less than one")
    return levels
