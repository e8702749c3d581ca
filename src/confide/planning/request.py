"""What was asked of a calibration: every public choice that its mechanism depends on, checked once."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from confide.candidates import Candidates, Spread
from confide.errors import InputError, InputTypeError
from confide.mechanisms import MECHANISMS, NEIGHBORS, MechanismName, Neighbors, published_candidates
from confide.planning.choice import PARTS, Choice, Circumstances, choose
from confide.planning.population import ClassShift, Population, RecordWeights
from confide.selection import SELECTORS, Selector, range_of_zcdp
from confide.support import (
    LEAST_LOSS,
    MOST_CANDIDATES,
    MOST_LOSS,
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

CONCENTRATED: tuple[MechanismName, ...] = ("pcoqs", "pcoqs-published")
"""Methods that have zCDP and no pure epsilon: they are asked for by rho."""


@dataclass(frozen=True)
class Request:
    """What was asked for: everything public that a plan depends on.

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

    @property
    def level(self) -> Fraction:
        """1 - alpha, exactly."""
        return 1 - self.alpha

    @property
    def m(self) -> int:
        """The number of candidates, +inf included."""
        return self.candidates.size

    @property
    def choice(self) -> Choice:
        """The slopes and the rise that suit it, or those that it asks for."""
        return self.choice_of(self.candidates)

    def choice_of(self, candidates: Candidates | Spread) -> Choice:
        """The slopes and the rise that suit other candidates; of a spread as many as suit, besides."""
        return _choice(candidates, self.circumstances, self.slopes, self.rise)

    @property
    def circumstances(self) -> Circumstances:
        """What candidates, slopes and rise are decided by; a secret n is guessed."""
        n = self.n_known if self.n is None else self.n
        weighted = self.population is not None
        return Circumstances(n, self.level, self.per_record, self.neighbors, self.delta, self.selector, weighted)

    @property
    def n_known(self) -> int:
        """The public guess of a secret number of records; with weights, of records of the largest weight."""
        return max(1, round(self.heaviest_among(max(self.n_min, self.n_typical))))

    def heaviest_among(self, n: int) -> float:
        """How many records of the largest weight weigh as much as n typical records; n where all count alike."""
        return n if self.population is None else n * self.population.typical_share

    @property
    def weight(self) -> int | None:
        """The largest integer weight of a record; None where all count alike."""
        return None if self.population is None else self.population.heaviest

    @property
    def rho_per_record(self) -> float:
        """The zCDP loss that one record may cost, of a mechanism that has no other; it grows with the square."""
        assert self.rho is not None
        return float_below(Fraction(self.rho) / self.records_per_person**2)

    def suited(self, spread: Spread) -> "Request":
        """The same request over as many candidates of a spread as suit it; a published method takes 1000."""
        if self.mechanism != "slopes":
            return replace(self, candidates=Candidates.quantiles(spread, _OF_PUBLISHED))
        return replace(self, candidates=self.choice_of(spread).candidates)

    @property
    def per_record(self) -> float:
        """The loss that one record may cost, rounded down: all records together stay within epsilon."""
        if math.isinf(self.epsilon):
            return math.inf
        return float_below(Fraction(self.epsilon) / self.records_per_person)


def check_request(
    *,
    alpha: Level,
    candidates: int | Candidates | Spread,
    epsilon: float | None = None,
    n: int | None = 1,
    rho: float | None = None,
    neighbors: Neighbors = "add_remove",
    n_min: int = 1,
    n_typical: int | None = None,
    delta: Level | None = None,
    records_per_person: int = 1,
    selector: Selector | None = None,
    slopes: tuple[int, int] | None = None,
    rise: float | None = None,
    shift: float | None = None,
    mechanism: str = "slopes",
    population: Population | None = None,
) -> Request:
    """Check every argument of `plan` and `calibrate` and fill in the defaults.

    Of a `Spread` as many candidates are taken as suit the request; a number stands for so many, evenly apart.
    """
    method = one_of("mechanism", mechanism, MECHANISMS)
    if method != "slopes":
        options = {"delta": delta, "selector": selector, "slopes": slopes, "rise": rise, "shift": shift}
        _check_other(method, neighbors, alpha, **({} if method in CONCENTRATED else {"rho": rho}), **options)
    if population is not None:
        _check_shifted(population, method, neighbors, n_min=n_min != 1, delta=delta, shift=shift)
    if method == "none":
        if epsilon is not None:
            raise InputError("epsilon must be left out with mechanism='none', which is not private")
        neighbors, epsilon = "replace_one", MOST_LOSS
    concentrated: float | None = None
    if method in CONCENTRATED:
        if epsilon is not None or rho is None:
            raise InputError(
                f"rho must be given with mechanism={method!r}, and epsilon left out: it has zero-concentrated privacy "
                "alone and no pure epsilon; rho = epsilon**2/2, as its authors write, follows from epsilon and does "
                "not imply it"
            )
        concentrated, rho, epsilon = privacy_loss("rho", rho), None, MOST_LOSS
    if epsilon is None and rho is None:
        raise InputError("epsilon or rho must be given: say how private, by epsilon=1.0, or by rho=0.1 for zCDP")
    if epsilon is not None and rho is not None:
        raise InputError("epsilon or rho must be given, and not both")
    if rho is not None:
        if selector == "permute_and_flip":
            raise InputError("rho needs selector='exponential': permute-and-flip has no better zCDP bound")
        selector, epsilon = "exponential", range_of_zcdp(privacy_loss("rho", rho))
    n_min = positive_integer("n_min", n_min, most=MOST_RECORDS)
    if n_typical is not None:
        n_typical = positive_integer("n_typical", n_typical, most=MOST_RECORDS)
    if slopes is not None:
        if not isinstance(slopes, tuple) or len(slopes) != 2:
            raise InputTypeError("slopes must be a pair of positive integers (left, right)")
        left, right = (positive_integer(f"slopes[{i}]", v, most=1000) for i, v in enumerate(slopes))
        slopes = (left, right)
    if shift is not None:
        if delta is not None:
            raise InputError("shift cannot be combined with delta: a training-conditional target is computed")
        shift = _from_0_to("shift", shift, MOST_RECORDS, "a number of ranks", "2**48")
    if rise is not None:
        rise = _from_0_to("rise", rise, _LARGEST_RISE, "a number", f"{_LARGEST_RISE}")
    epsilon = privacy_loss("epsilon", epsilon)
    records = positive_integer("records_per_person", records_per_person, most=MOST_PER_PERSON)
    if epsilon < LEAST_LOSS * records:
        raise InputError(
            f"records_per_person leaves each record less than a loss of {LEAST_LOSS:g}; found {records} records for "
            f"epsilon={epsilon:g}; raise epsilon or keep fewer records of each person"
        )
    spread = candidates if isinstance(candidates, Spread) else None
    request = Request(
        alpha=exact_level("alpha", alpha),
        epsilon=math.inf if method in ("none", *CONCENTRATED) else epsilon,
        neighbors=one_of("neighbors", neighbors, NEIGHBORS),
        n=positive_integer("n", n, most=MOST_RECORDS) if neighbors == "replace_one" else None,
        n_min=n_min,
        n_typical=n_typical or max(n_min, 1000),
        delta=None if delta is None else float(exact_level("delta", delta)),
        candidates=_listed(candidates),
        records_per_person=records,
        selector=one_of("selector", "permute_and_flip" if selector is None else selector, SELECTORS),
        slopes=slopes,
        rise=rise,
        shift=None if shift is None else Fraction(shift).limit_denominator(16),
        mechanism=method,
        population=population,
        rho=concentrated,
    )
    if method == "pcoqs-published" and request.candidates != published_candidates():
        raise InputError(
            "candidates must be left out with mechanism='pcoqs-published', whose list from 0 to 1 is fixed"
        )
    if concentrated is not None and request.rho_per_record < LEAST_LOSS:
        raise InputError(
            f"records_per_person leaves each record less than a loss of {LEAST_LOSS:g}; found {records} records for "
            f"rho={concentrated:g}; raise rho or keep fewer records of each person"
        )
    return request if spread is None else request.suited(spread)


def _from_0_to(name: str, value: float, most: float, what: str, end: str) -> float:
    number = as_number(name, value, what)
    if not 0 <= number <= most:
        raise InputError(f"{name} must be {what} from 0 to {end}; found {number!r}")
    return number


def _listed(candidates: int | Candidates | Spread) -> Candidates:
    """A list of candidates: as it is, of as many even steps, or of +inf alone, until as many are spread as suit."""
    if isinstance(candidates, Candidates):
        return candidates
    if isinstance(candidates, Spread):
        return Candidates.unit(1)
    return Candidates.unit(positive_integer("candidates", candidates, most=MOST_CANDIDATES))


def _choice(
    of: Candidates | Spread, circumstances: Circumstances, slopes: tuple[int, int] | None, rise: float | None
) -> Choice:
    return choose(of, circumstances, None if slopes is None else PARTS * slopes[0] / sum(slopes), rise)


OPTIONS = frozenset(check_request.__kwdefaults__ or ())
"""The arguments of `calibrate` that are public choices."""


def _check_shifted(population: Population, method: MechanismName, neighbors: Neighbors, **given: object) -> None:
    """Refuse what has no statement about a shifted population."""
    if not isinstance(population, ClassShift | RecordWeights):
        raise InputTypeError(f"population must be a ClassShift or RecordWeights; found {type(population).__name__}")
    if method != "slopes":
        raise InputError(f"mechanism must be 'slopes' with weights: {method!r} counts all records alike")
    if neighbors != "add_remove":
        raise InputError(
            "neighbors must be 'add_remove' with weights: a replaced record changes the total weight, which stays "
            "secret; the release states the loss of replacing one besides, twice that of adding one"
        )
    for name, why in _NOT_SHIFTED.items():
        if given[name] not in (None, False):
            raise InputError(f"{name} must be left out with weights: {why}")


_NOT_SHIFTED = {
    "n_min": "they may make any number of records count for nothing, and the promise holds for every number",
    "delta": "the promise about a shifted population is one on average",
    "shift": "of a target that was not computed, nothing is promised about a shifted population",
}


def _check_other(method: MechanismName, neighbors: Neighbors, alpha: Level, **options: object) -> None:
    """Refuse options that only `slopes` has, and a secret n where the method's formulas need a public one."""
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise InputError(f"{given[0]} must be left out with mechanism={method!r}; it belongs to mechanism='slopes'")
    if method in ("pps-laplace", *CONCENTRATED) and neighbors != "replace_one":
        raise InputError(
            f"neighbors must be 'replace_one' for mechanism={method!r}: the rank that it aims at depends on n, which "
            "must be public"
        )
    if method == "pps" and neighbors == "add_remove" and exact_level("alpha", alpha) > Fraction(1, 2):
        raise InputError(
            "alpha must be at most 1/2 for mechanism='pps' with neighbors='add_remove': for more nothing is proved; "
            "take neighbors='replace_one'"
        )
