"""The terms of one threshold: every public choice that its mechanism depends on, checked once."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TypedDict, Unpack

from confide.candidates import Candidates, Spread
from confide.errors import InputError, InputTypeError
from confide.mechanisms import MECHANISMS, NEIGHBORS, MechanismName, Neighbors, published_candidates
from confide.planning.choice import PARTS, Choice, Circumstances, choose
from confide.planning.combinations import CONCENTRATED, refuse_combinations
from confide.planning.population import ClassShift, Population, RecordWeights
from confide.selection import SELECTORS, Selector, range_of_zcdp
from confide.support import (
    LEAST_LOSS,
    MOST_CANDIDATES,
    MOST_PER_PERSON,
    MOST_RECORDS,
    Level,
    as_number,
    exact_level,
    float_below,
    one_of,
    positive_integer,
    privacy_loss,
)

_OF_PUBLISHED, _LARGEST_RISE = 1000, 100.0


class Choices(TypedDict, total=False):
    """Public choices of a threshold, besides its level, epsilon and candidates; `confide.plan` tells what they mean."""

    rho: float | None
    neighbors: Neighbors
    n_min: int
    n_typical: int | None
    delta: Level | None
    records_per_person: int
    selector: Selector | None
    slopes: tuple[int, int] | None
    rise: float | None
    shift: float | None
    mechanism: MechanismName


CHOICES = tuple(Choices.__annotations__)


@dataclass(frozen=True)
class Terms:
    """What is asked of one threshold: everything public that a plan depends on; made by `Terms.of`.

    See `plan` and `calibrate` for the meaning of the fields. `n` is the number of records under `replace_one` and None
    otherwise. Without privacy (`mechanism="none"`) epsilon is infinite, and so it is where a mechanism has zCDP alone,
    of which `rho` is the loss per person. `population` is the one that the promise is
    for, where it is a known shift away.
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
    selector: Selector
    slopes: tuple[int, int] | None = None
    rise: float | None = None
    shift: Fraction | None = None
    mechanism: MechanismName = "slopes"
    population: Population | None = None
    rho: float | None = None

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
        """The slopes and the rise that suit it, or those that it asks for."""
        return self.choice_of(self.candidates)

    def choice_of(self, candidates: Candidates | Spread) -> Choice:
        """The slopes and the rise that suit other candidates; of a spread as many as suit, besides."""
        return _choice(candidates, self.circumstances, self.slopes, self.rise)

    @cached_property
    def circumstances(self) -> Circumstances:
        """What candidates, slopes and rise are decided by; a secret n is guessed."""
        n = self.n_known if self.n is None else self.n
        weighted = self.population is not None
        return Circumstances(n, self.level, self.per_record, self.neighbors, self.delta, self.selector, weighted)

    @cached_property
    def n_known(self) -> int:
        """The public guess of a secret number of records; with weights, of records of the largest weight."""
        return max(1, round(self.heaviest_among(max(self.n_min, self.n_typical))))

    def heaviest_among(self, n: int) -> float:
        """How many records of the largest weight weigh as much as n typical records; n where all count alike."""
        return n if self.population is None else n * self.population.typical_share

    @cached_property
    def weight(self) -> int | None:
        """The largest integer weight of a record; None where all count alike."""
        return None if self.population is None else self.population.heaviest

    @cached_property
    def rho_per_record(self) -> float:
        """The zCDP loss that one record may cost, of a mechanism that has no other; it grows with the square."""
        assert self.rho is not None
        return float_below(Fraction(self.rho) / self.records_per_person**2)

    def suited(self, spread: Spread) -> "Terms":
        """The same terms over as many candidates of a spread as suit it; a published method takes 1000."""
        if self.mechanism != "slopes":
            return replace(self, candidates=Candidates.quantiles(spread, _OF_PUBLISHED))
        return replace(self, candidates=self.choice_of(spread).candidates)

    @cached_property
    def per_record(self) -> float:
        """The loss that one record may cost, rounded down: all records together stay within epsilon."""
        if math.isinf(self.epsilon):
            return math.inf
        return float_below(Fraction(self.epsilon) / self.records_per_person)

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
        """Check every choice, and fill in the defaults.

        Parameters
        ----------
        alpha
            The miscoverage level.
        candidates
            A list; how one is spread, of which as many are taken as suit the rest; or a number of even steps.
        n
            The number of records, where `neighbors="replace_one"` makes it public; not used else.
        epsilon
            The loss per person, in [1e-6, 1e6]; or `rho` among the choices.
        population
            The one that the promise is for, where it is a known shift away.
        **choices
            As in `confide.plan`.

        Raises
        ------
        InputError, InputTypeError
            If a choice cannot be used, or does not go with another.

        Examples
        --------
        >>> Terms.of(0.1, 100, epsilon=1.0).level
        Fraction(9, 10)
        """
        return cls.unsettled(alpha, epsilon, population, **choices).over(candidates, n)

    @classmethod
    def unsettled(
        cls,
        alpha: Level,
        epsilon: float | None = None,
        population: Population | None = None,
        **choices: Unpack[Choices],
    ) -> "Terms":
        """The same before candidates and a number of records are settled, by `over`."""
        refuse_combinations({**choices, "epsilon": epsilon, "population": population})
        method = one_of("mechanism", choices.get("mechanism", "slopes"), MECHANISMS)
        neighbors = one_of(
            "neighbors", "replace_one" if method == "none" else choices.get("neighbors", "add_remove"), NEIGHBORS
        )
        delta = choices.get("delta")
        if population is not None and not isinstance(population, ClassShift | RecordWeights):
            raise InputTypeError(f"population must be a ClassShift or RecordWeights; found {type(population).__name__}")
        exact = exact_level("alpha", alpha)
        if method == "pps" and neighbors == "add_remove" and exact > Fraction(1, 2):
            raise InputError(
                "alpha must be at most 1/2 for mechanism='pps' with neighbors='add_remove': for more nothing is "
                "proved; take neighbors='replace_one'"
            )
        loss = _Loss.of(method, epsilon, choices)
        n_min = positive_integer("n_min", choices.get("n_min", 1), most=MOST_RECORDS)
        typical = choices.get("n_typical")
        made = cls(
            alpha=exact,
            epsilon=loss.epsilon,
            neighbors=neighbors,
            n=None,
            n_min=n_min,
            n_typical=max(n_min, 1000)
            if typical is None
            else positive_integer("n_typical", typical, most=MOST_RECORDS),
            delta=None if delta is None else float(exact_level("delta", delta)),
            candidates=_NO_LIST,
            records_per_person=loss.records,
            selector=one_of("selector", loss.selector, SELECTORS),
            slopes=_pair(choices.get("slopes")),
            rise=_from_0_to("rise", choices.get("rise"), _LARGEST_RISE, "a number", f"{_LARGEST_RISE}"),
            shift=_sixteenths(_from_0_to("shift", choices.get("shift"), MOST_RECORDS, "a number of ranks", "2**48")),
            mechanism=method,
            population=population,
            rho=loss.rho,
        )
        if made.rho is not None and made.rho_per_record < LEAST_LOSS:
            raise InputError(_too_little(loss.records, f"rho={made.rho:g}", "rho"))
        return made

    def over(self, candidates: int | Candidates | Spread, n: int | None) -> "Terms":
        """The same terms over other candidates, for another public number of records."""
        known = positive_integer("n", n, most=MOST_RECORDS) if self.public_n else None
        listed = candidates if isinstance(candidates, Candidates | Spread) else _even(candidates)
        if self.mechanism == "pcoqs-published" and listed != published_candidates():
            raise InputError(
                "candidates must be left out with mechanism='pcoqs-published', whose list from 0 to 1 is fixed"
            )
        if isinstance(listed, Spread):
            return replace(self, n=known).suited(listed)
        return replace(self, candidates=listed, n=known)

    @cached_property
    def public_n(self) -> bool:
        """Whether the number of records is public."""
        return self.neighbors == "replace_one"


@dataclass(frozen=True)
class _Loss:
    """What may be spent: epsilon, or for methods without a pure epsilon rho; among how many records of a person."""

    epsilon: float
    rho: float | None
    selector: str
    records: int

    @classmethod
    def of(cls, method: MechanismName, epsilon: float | None, choices: Choices) -> "_Loss":
        rho, selector = choices.get("rho"), choices.get("selector")
        selector = "permute_and_flip" if selector is None else selector
        records = positive_integer("records_per_person", choices.get("records_per_person", 1), most=MOST_PER_PERSON)
        if method in CONCENTRATED:
            if epsilon is not None or rho is None:
                raise InputError(
                    f"rho must be given with mechanism={method!r}, and epsilon left out: it has zero-concentrated "
                    "privacy alone and no pure epsilon; rho = epsilon**2/2, as its authors write, follows from "
                    "epsilon and does not imply it"
                )
            return cls(math.inf, privacy_loss("rho", rho), selector, records)
        if method == "none":
            return cls(math.inf, None, selector, records)
        if epsilon is None and rho is None:
            raise InputError("epsilon or rho must be given: say how private, by epsilon=1.0, or by rho=0.1 for zCDP")
        if epsilon is not None and rho is not None:
            raise InputError("epsilon or rho must be given, and not both")
        if rho is not None:
            selector, epsilon = "exponential", range_of_zcdp(privacy_loss("rho", rho))
        exact = privacy_loss("epsilon", epsilon)
        if exact < LEAST_LOSS * records:
            raise InputError(_too_little(records, f"epsilon={exact:g}", "epsilon"))
        return cls(exact, None, selector, records)


def _too_little(records: int, stated: str, name: str) -> str:
    return (
        f"records_per_person leaves each record less than a loss of {LEAST_LOSS:g}; found {records} records for "
        f"{stated}; raise {name} or keep fewer records of each person"
    )


def _pair(slopes: tuple[int, int] | None) -> tuple[int, int] | None:
    if slopes is None:
        return None
    if not isinstance(slopes, tuple) or len(slopes) != 2:
        raise InputTypeError("slopes must be a pair of positive integers (left, right)")
    left, right = (positive_integer(f"slopes[{i}]", v, most=1000) for i, v in enumerate(slopes))
    return left, right


def _from_0_to(name: str, value: float | None, most: float, what: str, end: str) -> float | None:
    if value is None:
        return None
    number = as_number(name, value, what)
    if not 0 <= number <= most:
        raise InputError(f"{name} must be {what} from 0 to {end}; found {number!r}")
    return number


def _sixteenths(shift: float | None) -> Fraction | None:
    return None if shift is None else Fraction(shift).limit_denominator(16)


def _even(number: int) -> Candidates:
    return Candidates.unit(positive_integer("candidates", number, most=MOST_CANDIDATES))


_NO_LIST = Candidates.unit(1)
"""+inf alone: what stands for a list until one is settled."""


def _choice(
    of: Candidates | Spread, circumstances: Circumstances, slopes: tuple[int, int] | None, rise: float | None
) -> Choice:
    return choose(of, circumstances, None if slopes is None else PARTS * slopes[0] / sum(slopes), rise)


# Numbers that are allowed, and that are mostly typed by mistake: what a reader of another library would mean by them.
#
# Every front says the same of them, before anything is drawn: they are read off the request, never off the records.

_SMALL_DELTA = 0.001


def unusual(alpha: Fraction | None, delta: float | None = None) -> tuple[str, ...]:
    """What is to be said of a level (None where it is of no coverage) and a failure probability; empty if nothing is.

    Examples
    --------
    >>> unusual(Fraction(1, 10), 0.05)
    ()
    >>> unusual(Fraction(9, 10))
    ('alpha=0.9 is the share of new records that may be missed: coverage of only 0.1 is promised. For coverage of ...',)
    """
    found = []
    if alpha is not None and alpha > Fraction(1, 2):
        kept = 1 - alpha
        found.append(
            f"alpha={float(alpha):g} is the share of new records that may be missed: coverage of only "
            f"{float(kept):g} is promised. For coverage of {float(alpha):g} write alpha={float(kept):g}"
        )
    if delta is not None and delta < _SMALL_DELTA:
        found.append(
            f"delta={delta:g} is the chance that this calibration covers less than promised. It is not the delta of "
            "differential privacy, which is 0 here. Common values are 0.05 and 0.1; smaller ones make sets larger"
        )
    return tuple(found)
