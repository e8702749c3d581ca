"""The terms of one threshold: every public number from which its design follows, validated once."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, TypedDict

from confide.arrays import GroupColumns
from confide.candidates import Candidates, OwnCandidates, Spread
from confide.core.choice import LEFTS, PARTS, ChoiceInputs
from confide.core.population import Population
from confide.errors import InputError
from confide.mechanisms import (
    SHARE,
    SHARE_OF_RHO,
    UNIT,
    MechanismName,
    Neighbors,
    Noise,
    PublishedHistogram,
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
    float_below,
    positive_integer,
    privacy_loss,
)

_TYPICAL, _LEAST_TYPICAL = 1000, 150
"""The guess of a secret number of records, and the least guess of the number in a group: candidates for 83 records make
thresholds 20 % too high for thousands of records."""


def typical_of_groups(groups: int, n_min: Any) -> int:
    """The public guess of the number of records in each group where no noisy number is released and none is stated.

    It is 1000 divided by the number of groups, at least 150, and at least n_min.

    Examples
    --------
    >>> typical_of_groups(1, 1), typical_of_groups(4, 1), typical_of_groups(10, 1), typical_of_groups(10, 500)
    (1000, 250, 150, 500)
    """
    return max(positive_integer("n_min", n_min, most=MOST_RECORDS), -(-_TYPICAL // groups), _LEAST_TYPICAL)


def most_groups(columns: GroupColumns | None, groups: int) -> int:
    """The largest number of groups of one column; the number of all groups if they do not overlap."""
    return groups if columns is None else max(map(len, columns.columns.values()))


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
        Public lower bound on the secret number of records (`add_remove` only). The coverage guarantee holds for every
        n >= n_min.
    n_typical
        Public guess of the secret number of records, for which candidates, slopes, rise and a training-conditional
        target are chosen. It affects efficiency, never validity. By default a noisy number of records is released
        first, at a twentieth of the privacy loss, and takes the place of the guess. With a published
        method, or with epsilon below 2e-5 per record there is no noisy number, and the default is the larger of n_min
        and 1000. With weights it is the number of records, not their weight.
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
    n_typical: int | None
    delta: Level | None
    records_per_person: int
    mechanism: MechanismName


CHOICES = tuple(Choices.__annotations__)


@dataclass(frozen=True)
class Budget:
    """The privacy loss of a person: epsilon, or a zCDP loss rho; neither without privacy."""

    epsilon: float | None = None
    rho: float | None = None

    def divided(self, shares: Sequence[Fraction], *, replaced: bool = False) -> list["Budget"]:
        """A budget for each share.

        Where a replaced record changes two parts, each has half of the epsilon, or a quarter of the rho.

        Examples
        --------
        >>> [round(budget.epsilon, 2) for budget in Budget(1.0).divided([Fraction(1, 4), Fraction(3, 4)])]
        [0.25, 0.75]
        >>> Budget(rho=0.5).divided([Fraction(1)], replaced=True)
        [Budget(epsilon=None, rho=0.125)]
        """
        if self.epsilon is None and self.rho is None:
            return [self for _ in shares]
        if self.epsilon is not None and self.rho is not None:
            raise InputError("epsilon", "epsilon or rho must be given, and not both")
        if self.rho is None:
            part = Fraction(1, 2 if replaced else 1)
            return [Budget(loss) for loss in self._split("epsilon", self.epsilon, shares, part)]
        part = Fraction(1, 4 if replaced else 1)
        return [Budget(None, loss) for loss in self._split("rho", self.rho, shares, part)]

    @staticmethod
    def _split(name: str, total: float | None, shares: Sequence[Fraction], part: Fraction) -> list[float]:
        return split_epsilon(privacy_loss(name, total), [share * part for share in shares])

    def spent(self, method: str, records: int, *, sized: bool) -> tuple[float, float | None]:
        """The epsilon of a person, and the scale of the noise of a number of records that is released first.

        Parameters
        ----------
        method
            The mechanism.
        records
            The largest number of records of a person.
        sized
            Whether a noisy number of records is released first, if the budget suffices for it.

        Returns
        -------
        epsilon, scale
            The epsilon is infinite without privacy; the scale is None without a noisy number.
        """
        if method == "none":
            return math.inf, None
        if method == PublishedHistogram.name:  # its maker's budget, if it is stated
            return math.inf if self.epsilon is None else privacy_loss("epsilon", self.epsilon), None
        if self.epsilon is None and self.rho is None:
            raise InputError(
                "epsilon", "epsilon or rho must be given: say how private, by epsilon=1.0, or by rho=0.1 for zCDP"
            )
        if self.epsilon is not None and self.rho is not None:
            raise InputError("epsilon", "epsilon or rho must be given, and not both")
        scale = None
        if self.rho is None:
            epsilon = privacy_loss("epsilon", self.epsilon)
            if sized and epsilon >= SHARE * LEAST_LOSS * records:
                scale = size_scale(epsilon / records)
        elif not sized:
            epsilon = range_of_zcdp(privacy_loss("rho", self.rho))
        else:
            rho = privacy_loss("rho", self.rho)
            scale = records * math.sqrt(SHARE_OF_RHO / (2 * rho))
            rest = float_below(Fraction(rho) - size_zcdp(scale, records))
            epsilon = float_below(Fraction(range_of_zcdp(rest)) + records / Fraction(scale))
        if epsilon < LEAST_LOSS * records:
            raise InputError(
                "records_per_person",
                f"leaves each record a privacy loss of less than {LEAST_LOSS:g}",
                got=f"{records} records for epsilon={epsilon:g}",
                remedy="Raise epsilon or keep fewer records of each person",
            )
        return epsilon, scale


@dataclass(frozen=True)
class Terms:
    """All public parameters of one threshold but the number of records; a `Request` makes them.

    See `plan` and `calibrate` for the meaning of most fields.

    Parameters
    ----------
    spread
        The list of candidates, or the spread of which a list is chosen that suits the number of records.
    score
        The name of the score.
    epsilon
        The privacy loss of a person for all that is released; infinite without privacy (`mechanism="none"`).
    population
        The population of the guarantee, if it differs by a known shift.
    size_scale
        If it is a number, a noisy number of records with noise of this scale is released first, and the design follows
        it. Otherwise the design is for the public number, or for `n_typical`, a guess.
    choice
        The privacy loss of one record of a private choice of the score, on other records; None without one.
    noise
        The law of the noise in counts that another engine made (`mechanism="published-counts"`).
    largest
        The largest value of the score, from which on a threshold excludes nothing.
    """

    spread: Candidates | Spread | OwnCandidates
    score: str | None
    alpha: Fraction
    epsilon: float
    neighbors: Neighbors
    n_min: int
    n_typical: int
    delta: float | None
    records_per_person: int
    mechanism: MechanismName | Literal["published-counts"] = "slopes"
    population: Population | None = None
    size_scale: float | None = None
    choice: float | None = None
    noise: Noise | None = None
    largest: float = math.inf

    def __post_init__(self) -> None:
        if self.mechanism == "pps" and not self.public_n and self.alpha > Fraction(1, 2):
            raise InputError(
                "alpha",
                ("must be at most 1/2 for mechanism='pps' with neighbors='add_remove': nothing is proved for more"),
                remedy="Take neighbors='replace_one'",
            )
        if self.mechanism == "noisy-histogram" and not self.public_n and self.size_scale is None:
            least = SHARE * LEAST_LOSS * self.records_per_person
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

    @cached_property
    def unit(self) -> int:
        """Target ranks are multiples of 1/unit."""
        denominator = self.level.denominator
        return UNIT if self.public_n else denominator * -(-UNIT // denominator)

    @cached_property
    def weight(self) -> int | None:
        """The largest integer weight of a record; None without weights."""
        return None if self.population is None else self.population.heaviest

    @cached_property
    def per_record(self) -> float:
        """The privacy loss of one record, rounded down, so that all records of a person stay within epsilon.

        The privacy loss of a noisy number of records is subtracted.
        """
        if math.isinf(self.epsilon):
            return math.inf
        number = 0 if self.size_scale is None else 1 / Fraction(self.size_scale)
        return float_below(Fraction(self.epsilon) / self.records_per_person - number)

    def with_loss(self, epsilon: float) -> "Terms":
        """The same terms for another privacy loss, of which a noisy number of records has the same share."""
        if self.size_scale is None:
            return replace(self, epsilon=epsilon)
        return replace(self, epsilon=epsilon, size_scale=size_scale(epsilon / self.records_per_person))

    def heaviest_among(self, n: int) -> float:
        """The number of records of the largest weight that weigh as much as n typical records; n without weights."""
        return n if self.population is None else n * self.population.typical_share

    def records_of_design(self, n: int) -> int:
        """The number of records that a design is for: n if it is public, a round one near a noisy n, or a guess."""
        if self.public_n:
            return n
        return self.n_typical if self.size_scale is None else design_for(n, self.size_scale, self.n_min)

    def inputs(self, n: int) -> ChoiceInputs:
        """The inputs of the choice of candidates, slopes and rise for n records; a secret number is at least n_min."""
        known = n if self.public_n else max(1, round(self.heaviest_among(max(self.n_min, n))))
        weighted, counted = self.population is not None, self.size_scale is not None
        return ChoiceInputs(known, self.level, self.per_record, self.neighbors, self.delta, weighted, counted)

    def check_designs(self) -> None:
        """Raise if the utilities of a design for some noisy number of records do not fit into 64 bits.

        The scale is a convex function of the left slope, so that the ends of its range have the largest one. A design
        with `delta`, whose rate has another denominator, has no weights, and fits for every privacy loss.
        """
        for left in (LEFTS[0], LEFTS[-1]):
            offset = Fraction(1, self.unit)
            slopes_for(self.level, offset, left, PARTS - left, self.neighbors, self.per_record, self.weight)
