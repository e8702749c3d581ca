"""The terms of one threshold, which contain every public choice, validated once."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, TypedDict, Unpack

from confide.candidates import Candidates, Spread
from confide.core.choice import FEW_SIZES, LEFTS, PARTS, Choice, ChoiceInputs, choose
from confide.core.population import ClassShift, Population, RecordWeights
from confide.core.rules import check_combinations
from confide.errors import InputError, InputTypeError
from confide.mechanisms import (
    MECHANISMS,
    NEIGHBORS,
    SHARE,
    SHARE_OF_RHO,
    UNIT,
    MechanismName,
    Neighbors,
    PrivacyStatement,
    design_for,
    size_scale,
    size_zcdp,
    slopes_for,
)
from confide.selection import range_of_zcdp, zcdp_of_range
from confide.support import (
    LEAST_LOSS,
    MOST_CANDIDATES,
    MOST_PER_PERSON,
    MOST_RECORDS,
    Level,
    exact_level,
    float_above,
    float_below,
    one_of,
    positive_integer,
    privacy_loss,
)

_OF_PUBLISHED = 1000

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
        conformal prediction on the scores themselves; leave out epsilon). See docs/methods.md.
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
class Terms:
    """All public parameters of one threshold that a plan depends on; made by `Terms.of`.

    See `plan` and `calibrate` for the meaning of the fields. `n` is the number of records under `replace_one` and None
    otherwise. epsilon is infinite without privacy (`mechanism="none"`). `population` is that of the guarantee, if it
    differs by a known shift. `slopes` and `rise`, if stated, are those of a mechanism, and are not chosen. If
    `size_scale` is a number, a noisy number of records with noise of this scale is released first, and `designed_for`
    returns the terms of the threshold. `longest` is then the length of the longest list among which the design chooses.
    """

    alpha: Fraction
    epsilon: float
    neighbors: Neighbors
    n: int | None
    n_min: int
    n_typical: int
    delta: float | None
    candidates: Candidates
    records_per_person: int
    slopes: tuple[int, int] | None = None
    rise: float | None = None
    mechanism: MechanismName = "slopes"
    population: Population | None = None
    size_scale: float | None = None
    longest: int | None = None

    @cached_property
    def level(self) -> Fraction:
        """1 - alpha, exactly."""
        return 1 - self.alpha

    @cached_property
    def m(self) -> int:
        """The number of candidates, +inf included."""
        return self.candidates.size

    @cached_property
    def choice(self) -> Choice:
        """The optimal slopes and rise."""
        return self.choice_of(self.candidates)

    def choice_of(self, candidates: Candidates | Spread) -> Choice:
        """Slopes and rise for other candidates; for a spread, also the number of candidates."""
        return _choice(candidates, self.circumstances, self.slopes, self.rise)

    @cached_property
    def circumstances(self) -> ChoiceInputs:
        """The inputs of the choice of candidates, slopes and rise; a secret n is guessed."""
        n = self.n_known if self.n is None else self.n
        weighted = self.population is not None
        counted = self.size_scale is not None
        return ChoiceInputs(n, self.level, self.per_record, self.neighbors, self.delta, weighted, counted, self.longest)

    @cached_property
    def n_known(self) -> int:
        """The public guess of a secret number of records; with weights, of records of the largest weight."""
        return max(1, round(self.heaviest_among(max(self.n_min, self.n_typical))))

    def heaviest_among(self, n: int) -> float:
        """The number of records of the largest weight that weigh as much as n typical records; n without weights."""
        return n if self.population is None else n * self.population.typical_share

    @cached_property
    def unit(self) -> int:
        """Target ranks are multiples of 1/unit."""
        denominator = self.level.denominator
        return UNIT if self.n is not None else denominator * -(-UNIT // denominator)

    @cached_property
    def weight(self) -> int | None:
        """The largest integer weight of a record; None without weights."""
        return None if self.population is None else self.population.heaviest

    def suited(self, spread: Spread) -> "Terms":
        """The same terms with a suitable number of candidates of a spread; 1000 for a published method."""
        if self.mechanism != "slopes":
            return replace(self, candidates=Candidates.quantiles(spread, _OF_PUBLISHED))
        return replace(self, candidates=self.choice_of(spread).candidates)

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

    def designed_for(self, n: int) -> "Terms":
        """The terms of the threshold for a noisy number n of records, which may be negative."""
        assert self.size_scale is not None
        return replace(self, n_typical=design_for(n, self.size_scale, self.n_min))

    def at(self, n: int) -> "Terms":
        """The terms for n records, a public number or a noisy one, over the same candidates."""
        return replace(self, n=n) if self.public_n else self.designed_for(n)

    @property
    def price(self) -> PrivacyStatement:
        """The privacy loss of a release with a noisy number of records: an upper bound over all designs."""
        assert self.size_scale is not None
        records, one, number = self.records_per_person, Fraction(self.per_record), 1 / Fraction(self.size_scale)
        rho = float_above(Fraction(zcdp_of_range(records * one)) + size_zcdp(self.size_scale, records))
        # Theorem P1: the ratio of both losses is at most 1/max(rate, 1 - rate), and the rate is at least the level. A
        # record of another weight is one that is removed and one that is added. Neither changes the number of records.
        replaced = 2 * one if self.population is not None else one * min(Fraction(2), 1 / self.level)
        return PrivacyStatement(
            self.neighbors, self.epsilon, records, float_above(one + number), float_above(replaced), rho
        )

    @classmethod
    def of(
        cls,
        alpha: Level,
        candidates: int | Candidates | Spread,
        n: int | None = 1,
        *,
        epsilon: float | None = None,
        population: Population | None = None,
        **choices: Unpack[Choices],
    ) -> "Terms":
        """Validate every choice, and set the defaults.

        Parameters
        ----------
        alpha
            The miscoverage level.
        candidates
            A list; a spread, from which a suitable number is taken; or a number of equal steps.
        n
            The number of records, if `neighbors="replace_one"` makes it public, or a noisy one, if that is released
            first; otherwise it is not used.
        epsilon
            The privacy loss per person, in [1e-6, 1e6]; or `rho` among the choices.
        population
            The population of the guarantee, if it differs by a known shift.
        **choices
            The fields of `Choices`.

        Raises
        ------
        InputError, InputTypeError
            If a choice cannot be used, or excludes another.

        Examples
        --------
        >>> Terms.of(0.1, 100, epsilon=1.0).level
        Fraction(9, 10)
        """
        check_combinations({**choices, "epsilon": epsilon, "population": population})
        made = cls.partial(alpha, epsilon, population, **choices)
        if made.size_scale is not None:
            made = made.designed_for(positive_integer("n", n, most=MOST_RECORDS))
        return made.with_candidates(candidates, n)

    @classmethod
    def partial(
        cls,
        alpha: Level,
        epsilon: float | None = None,
        population: Population | None = None,
        *,
        groups: int = 1,
        longest: int | None = None,
        **choices: Unpack[Choices],
    ) -> "Terms":
        """The terms before candidates and a number of records are fixed; combinations are valid already.

        `groups` is the number of groups that the records are divided into. `longest` is used only with a noisy number.
        """
        method = one_of("mechanism", choices.get("mechanism", "slopes"), MECHANISMS)
        neighbors = one_of(
            "neighbors", "replace_one" if method == "none" else choices.get("neighbors", "add_remove"), NEIGHBORS
        )
        delta = choices.get("delta")
        if population is not None and not isinstance(population, ClassShift | RecordWeights):
            raise InputTypeError("population", "must be a ClassShift or RecordWeights", got=type(population).__name__)
        exact = exact_level("alpha", alpha)
        if method == "pps" and neighbors == "add_remove" and exact > Fraction(1, 2):
            raise InputError(
                "alpha",
                ("must be at most 1/2 for mechanism='pps' with neighbors='add_remove': nothing is proved for more"),
                remedy="Take neighbors='replace_one'",
            )
        typical = choices.get("n_typical")
        sized = neighbors == "add_remove" and method == "slopes" and typical is None
        loss = _Loss.of(method, epsilon, choices, sized=sized)
        n_min = positive_integer("n_min", choices.get("n_min", 1), most=MOST_RECORDS)
        terms = cls(
            alpha=exact,
            epsilon=loss.epsilon,
            neighbors=neighbors,
            n=None,
            n_min=n_min,
            n_typical=typical_of_groups(groups, n_min)
            if typical is None
            else positive_integer("n_typical", typical, most=MOST_RECORDS),
            delta=None if delta is None else float(exact_level("delta", delta)),
            candidates=_NO_LIST,
            records_per_person=loss.records,
            mechanism=method,
            population=population,
            size_scale=loss.size_scale,
            longest=None if loss.size_scale is None else _longest(longest),
        )
        if terms.size_scale is not None:
            terms.check_designs()
        return terms

    def check_designs(self) -> None:
        """Raise if the utilities of a design for some noisy number of records do not fit into 64 bits.

        The scale is a convex function of the left slope, so that the ends of its range have the largest one. A design
        with `delta`, whose rate has another denominator, has no weights, and fits for every privacy loss.
        """
        for left, right in [self.slopes] if self.slopes else [(left, PARTS - left) for left in (LEFTS[0], LEFTS[-1])]:
            offset = Fraction(1, self.unit)
            slopes_for(self.level, offset, left, right, self.neighbors, self.per_record, self.weight)

    def with_candidates(self, candidates: int | Candidates | Spread, n: int | None) -> "Terms":
        """The same terms over other candidates, for another public number of records."""
        public_n = positive_integer("n", n, most=MOST_RECORDS) if self.public_n else None
        listed = candidates if isinstance(candidates, Candidates | Spread) else _even(candidates)
        if isinstance(listed, Spread):
            return replace(self, n=public_n).suited(listed)
        return replace(self, candidates=listed, n=public_n)

    @cached_property
    def public_n(self) -> bool:
        """Whether the number of records is public."""
        return self.neighbors == "replace_one"


@dataclass(frozen=True)
class _Loss:
    """A privacy budget in epsilon, and the number of records of a person."""

    epsilon: float
    records: int
    size_scale: float | None = None

    @classmethod
    def of(cls, method: MechanismName, epsilon: float | None, choices: Choices, *, sized: bool) -> "_Loss":
        rho = choices.get("rho")
        records = positive_integer("records_per_person", choices.get("records_per_person", 1), most=MOST_PER_PERSON)
        if method == "none":
            return cls(math.inf, records)
        if epsilon is None and rho is None:
            raise InputError(
                "epsilon", "epsilon or rho must be given: say how private, by epsilon=1.0, or by rho=0.1 for zCDP"
            )
        if epsilon is not None and rho is not None:
            raise InputError("epsilon", "epsilon or rho must be given, and not both")
        if rho is not None:
            concentrated = privacy_loss("rho", rho)
            if not sized:
                return cls._checked(range_of_zcdp(concentrated), records, None)
            scale = records * math.sqrt(SHARE_OF_RHO / (2 * concentrated))
            left = float_below(Fraction(concentrated) - size_zcdp(scale, records))
            total = Fraction(range_of_zcdp(left)) + records / Fraction(scale)
            return cls._checked(float_below(total), records, scale)
        exact = privacy_loss("epsilon", epsilon)
        noise = size_scale(exact / records) if sized and exact >= SHARE * LEAST_LOSS * records else None
        return cls._checked(exact, records, noise)

    @classmethod
    def _checked(cls, epsilon: float, records: int, scale: float | None) -> "_Loss":
        if epsilon < LEAST_LOSS * records:
            raise InputError(
                "records_per_person",
                f"leaves each record a privacy loss of less than {LEAST_LOSS:g}",
                got=f"{records} records for epsilon={epsilon:g}",
                remedy="Raise epsilon or keep fewer records of each person",
            )
        return cls(epsilon, records, scale)


def _longest(size: int | None) -> int | None:
    longest = FEW_SIZES[-4:]  # a ledger compares counts over the first of them
    if size is not None and size not in longest:
        raise InputError("longest", f"must be one of {', '.join(map(str, longest))}", got=repr(size))
    return size


def _even(number: int) -> Candidates:
    return Candidates.unit(positive_integer("candidates", number, most=MOST_CANDIDATES))


_NO_LIST = Candidates.unit(1)
"""+inf alone: a placeholder until a list is fixed."""


def _choice(
    of: Candidates | Spread, circumstances: ChoiceInputs, slopes: tuple[int, int] | None, rise: float | None
) -> Choice:
    return choose(of, circumstances, None if slopes is None else PARTS * slopes[0] / sum(slopes), rise)
