"""The terms of one threshold, which contain every public choice, validated once; and the mechanism for them."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from typing import TypedDict, Unpack

import numpy as np

from confide.candidates import Candidates, Spread
from confide.errors import InputError, InputTypeError
from confide.guarantee import (
    LARGE_N_MIN,
    public_shift,
    public_target,
    secret_offset,
    secret_prior_bonus,
    secret_shift,
    tangent_rate,
    two_sided_secret,
    two_sided_shift,
    weighted_loss,
    weighted_prior_bonus,
)
from confide.mechanisms import (
    MECHANISMS,
    NEIGHBORS,
    SHARE,
    SHARE_OF_RHO,
    UNIT,
    Mechanism,
    MechanismName,
    Neighbors,
    PrivacyStatement,
    Slopes,
    certify,
    design_for,
    free_fade,
    noisy_histogram_for,
    opendp_quantile_for,
    pcoqs_for,
    pps_for,
    pps_laplace_for,
    pps_of_secret_size,
    published_candidates,
    published_pcoqs_for,
    size_scale,
    size_zcdp,
    slopes_for,
    split_conformal_for,
)
from confide.planning.choice import PARTS, Choice, ChoiceInputs, choose
from confide.planning.combinations import CONCENTRATED, check_combinations
from confide.planning.population import ClassShift, Population, RecordWeights
from confide.selection import SELECTORS, Selector, range_of_zcdp, zcdp_of_range
from confide.support import (
    DEBUG,
    LEAST_LOSS,
    MOST_CANDIDATES,
    MOST_PER_PERSON,
    MOST_RECORDS,
    Level,
    as_number,
    ceil_to,
    exact_level,
    float_above,
    float_below,
    listening,
    log_event,
    one_of,
    positive_integer,
    privacy_loss,
)

_OF_PUBLISHED, _LARGEST_RISE = 1000, 100.0

_GUESS = 1000
"""The guess of a secret number of records where no noisy number is released and none is stated."""


class Choices(TypedDict, total=False):
    """Public choices of a threshold, in addition to its level, epsilon and candidates.

    Parameters
    ----------
    rho
        zCDP loss per person; selects the exponential mechanism with the largest epsilon that it allows
        (docs/theory.md, Lemma P3).
    neighbors
        The adjacency: `"add_remove"` (n stays secret) or `"replace_one"` (n is public).
    n_min
        Public lower bound on the secret number of records (`add_remove` only). The coverage guarantee holds for every
        n >= n_min.
    n_typical
        Public guess of the secret number of records, for which candidates, slopes, rise and a training-conditional
        target are chosen. It affects efficiency, never validity. By default a noisy number of records is released
        first, at a twentieth of the privacy loss, and takes the place of the guess. With `shift`, with weights, with a
        published method, or with epsilon below 2e-5 per record there is no noisy number, and the default is the
        larger of n_min and 1000.
    delta
        Guarantee "coverage at least 1-alpha with probability 1-delta over the calibration data" instead of marginal
        coverage; in (0, 1).
    records_per_person
        Public bound on the number of records of one person; each record then gets epsilon/records_per_person.
    selector
        `"permute_and_flip"` (default) or `"exponential"` (default with `rho`).
    slopes
        Positive integers (left, right) to override the choice of slopes; only their ratio matters.
    rise
        The logarithm of the ratio of the last candidate's prior weight to the first's, to override the choice; 0 for
        equal weights.
    shift
        The target rank minus (1-alpha)(n+1), to override the choice of target (marginal guarantee only). The guaranteed
        coverage is then computed, and may be below 1-alpha.
    mechanism
        `"slopes"` (default), or the name of a published method, for comparisons: `"pps"`, `"pps-laplace"`,
        `"noisy-histogram"`, `"opendp-quantile"` (no coverage guarantee), `"pcoqs"` and `"pcoqs-published"` (no coverage
        guarantee, with `rho`: zero-concentrated privacy and no pure epsilon) or `"none"` (**not private**: split
        conformal prediction on the scores themselves; leave out epsilon). See docs/methods.md.
    """

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
    """All public parameters of one threshold that a plan depends on; made by `Terms.of`.

    See `plan` and `calibrate` for the meaning of the fields. `n` is the number of records under `replace_one` and None
    otherwise. epsilon is infinite without privacy (`mechanism="none"`), and for a mechanism with zCDP alone, whose
    privacy loss per person is `rho`. `population` is that of the guarantee, if it differs by a known shift. If
    `size_scale` is a number, a noisy number of records with noise of this scale is released first, and `designed_for`
    returns the terms of the threshold.
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
    size_scale: float | None = None

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
        """The optimal slopes and rise, unless they are set by hand."""
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
        return ChoiceInputs(
            n, self.level, self.per_record, self.neighbors, self.delta, self.selector, weighted, counted
        )

    @cached_property
    def n_known(self) -> int:
        """The public guess of a secret number of records; with weights, of records of the largest weight."""
        return max(1, round(self.heaviest_among(max(self.n_min, self.n_typical))))

    def heaviest_among(self, n: int) -> float:
        """The number of records of the largest weight that weigh as much as n typical records; n without weights."""
        return n if self.population is None else n * self.population.typical_share

    @cached_property
    def weight(self) -> int | None:
        """The largest integer weight of a record; None without weights."""
        return None if self.population is None else self.population.heaviest

    @cached_property
    def rho_per_record(self) -> float:
        """The zCDP loss of one record, for a mechanism without pure epsilon; that of a group grows with its square."""
        assert self.rho is not None
        return float_below(Fraction(self.rho) / self.records_per_person**2)

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
        rho = None
        if self.selector == "exponential":
            rho = float_above(Fraction(zcdp_of_range(records * one)) + size_zcdp(self.size_scale, records))
        # Theorem P1: the ratio of both losses is at most 1/max(rate, 1 - rate), and the rate is at least the level.
        replaced = one * min(Fraction(2), 1 / self.level)
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
        listed = not isinstance(candidates, Spread)
        made = cls.partial(alpha, epsilon, population, listed=listed, **choices)
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
        listed: bool = False,
        guess: int = _GUESS,
        **choices: Unpack[Choices],
    ) -> "Terms":
        """The terms before candidates and a number of records are fixed; combinations are valid already.

        `listed` states that the candidates are a list. With slopes and a rise, no number of records is then needed.
        `guess` replaces `n_typical` if neither it nor a noisy number is available.
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
        typical, shift = choices.get("n_typical"), choices.get("shift")
        decided = listed and choices.get("slopes") is not None and choices.get("rise") is not None and delta is None
        sized = neighbors == "add_remove" and method == "slopes" and not decided
        sized = sized and typical is None and shift is None and population is None
        loss = _Loss.of(method, epsilon, choices, sized=sized)
        n_min = positive_integer("n_min", choices.get("n_min", 1), most=MOST_RECORDS)
        terms = cls(
            alpha=exact,
            epsilon=loss.epsilon,
            neighbors=neighbors,
            n=None,
            n_min=n_min,
            n_typical=max(n_min, guess)
            if typical is None
            else positive_integer("n_typical", typical, most=MOST_RECORDS),
            delta=None if delta is None else float(exact_level("delta", delta)),
            candidates=_NO_LIST,
            records_per_person=loss.records,
            selector=one_of("selector", loss.selector, SELECTORS),
            slopes=_pair(choices.get("slopes")),
            rise=_from_0_to("rise", choices.get("rise"), _LARGEST_RISE, "a number", f"{_LARGEST_RISE}"),
            shift=_sixteenths(_from_0_to("shift", shift, MOST_RECORDS, "a number of ranks", "2**48")),
            mechanism=method,
            population=population,
            rho=loss.rho,
            size_scale=loss.size_scale,
        )
        if terms.rho is not None and terms.rho_per_record < LEAST_LOSS:
            raise _too_little(loss.records, f"rho={terms.rho:g}", "rho")
        return terms

    def with_candidates(self, candidates: int | Candidates | Spread, n: int | None) -> "Terms":
        """The same terms over other candidates, for another public number of records."""
        public_n = positive_integer("n", n, most=MOST_RECORDS) if self.public_n else None
        listed = candidates if isinstance(candidates, Candidates | Spread) else _even(candidates)
        if self.mechanism == "pcoqs-published" and listed != published_candidates():
            raise InputError(
                "candidates", "must be left out with mechanism='pcoqs-published', whose list from 0 to 1 is fixed"
            )
        if isinstance(listed, Spread):
            return replace(self, n=public_n).suited(listed)
        return replace(self, candidates=listed, n=public_n)

    @cached_property
    def public_n(self) -> bool:
        """Whether the number of records is public."""
        return self.neighbors == "replace_one"


@dataclass(frozen=True)
class _Loss:
    """A privacy budget, epsilon or for methods without a pure epsilon rho, and the number of records of a person."""

    epsilon: float
    rho: float | None
    selector: str
    records: int
    size_scale: float | None = None

    @classmethod
    def of(cls, method: MechanismName, epsilon: float | None, choices: Choices, *, sized: bool) -> "_Loss":
        rho, selector = choices.get("rho"), choices.get("selector")
        selector = "permute_and_flip" if selector is None else selector
        records = positive_integer("records_per_person", choices.get("records_per_person", 1), most=MOST_PER_PERSON)
        if method in CONCENTRATED:
            if epsilon is not None or rho is None:
                raise InputError(
                    "rho",
                    (
                        f"must be given with mechanism={method!r}, and epsilon left out: it has zero-concentrated "
                        "privacy and no pure epsilon"
                    ),
                    remedy="The authors' rho = epsilon**2/2 follows from epsilon and does not imply it",
                )
            return cls(math.inf, privacy_loss("rho", rho), selector, records)
        if method == "none":
            return cls(math.inf, None, selector, records)
        if epsilon is None and rho is None:
            raise InputError(
                "epsilon", "epsilon or rho must be given: say how private, by epsilon=1.0, or by rho=0.1 for zCDP"
            )
        if epsilon is not None and rho is not None:
            raise InputError("epsilon", "epsilon or rho must be given, and not both")
        if rho is not None:
            concentrated = privacy_loss("rho", rho)
            if not sized:
                return cls._checked(range_of_zcdp(concentrated), "exponential", records, None)
            scale = records * math.sqrt(SHARE_OF_RHO / (2 * concentrated))
            left = float_below(Fraction(concentrated) - size_zcdp(scale, records))
            total = Fraction(range_of_zcdp(left)) + records / Fraction(scale)
            return cls._checked(float_below(total), "exponential", records, scale)
        exact = privacy_loss("epsilon", epsilon)
        noise = size_scale(exact / records) if sized and exact >= SHARE * LEAST_LOSS * records else None
        return cls._checked(exact, selector, records, noise)

    @classmethod
    def _checked(cls, epsilon: float, selector: str, records: int, scale: float | None) -> "_Loss":
        if epsilon < LEAST_LOSS * records:
            raise _too_little(records, f"epsilon={epsilon:g}", "epsilon")
        return cls(epsilon, None, selector, records, scale)


def _too_little(records: int, stated: str, name: str) -> InputError:
    return InputError(
        "records_per_person",
        f"leaves each record a privacy loss of less than {LEAST_LOSS:g}",
        got=f"{records} records for {stated}",
        remedy=f"Raise {name} or keep fewer records of each person",
    )


def _pair(slopes: tuple[int, int] | None) -> tuple[int, int] | None:
    if slopes is None:
        return None
    if not isinstance(slopes, tuple) or len(slopes) != 2:
        raise InputTypeError("slopes", "must be a pair of positive integers (left, right)")
    left, right = (positive_integer(f"slopes[{i}]", v, most=1000) for i, v in enumerate(slopes))
    return left, right


def _from_0_to(name: str, value: float | None, most: float, what: str, end: str) -> float | None:
    if value is None:
        return None
    number = as_number(name, value, what)
    if not 0 <= number <= most:
        raise InputError(name, f"must be {what} from 0 to {end}", got=repr(number))
    return number


def _sixteenths(shift: float | None) -> Fraction | None:
    return None if shift is None else Fraction(shift).limit_denominator(16)


def _even(number: int) -> Candidates:
    return Candidates.unit(positive_integer("candidates", number, most=MOST_CANDIDATES))


_NO_LIST = Candidates.unit(1)
"""+inf alone: a placeholder until a list is fixed."""


def _choice(
    of: Candidates | Spread, circumstances: ChoiceInputs, slopes: tuple[int, int] | None, rise: float | None
) -> Choice:
    return choose(of, circumstances, None if slopes is None else PARTS * slopes[0] / sum(slopes), rise)


# From terms to a mechanism: slopes and rise, then the smallest target rank that is certified.

_GONE_AT = 0.15
"""The share of n_typical at which the prior bonus of +inf has decreased to 0."""
_TRIES, _LITTLE = 8, Fraction(1, 20)
"""Number of increments: an offset is increased in ranks, a prior bonus in log-odds."""

_Build = Callable[[Fraction, Fraction], Slopes]
"""From rate and offset of the target line to the mechanism, with its noise and its rise."""


def mechanism_for(request: Terms) -> Mechanism | None:
    """The mechanism for validated terms; None if the answer must be +inf without reading the data.

    Examples
    --------
    >>> from confide.planning.terms import Terms
    >>> request = Terms.of(
    ...     alpha=0.1, epsilon=1.0, neighbors="replace_one", n=1000, candidates=1000, mechanism="pps"
    ... )
    >>> round(float(mechanism_for(request).level), 4)
    0.9289
    """
    if request.mechanism == "slopes":
        return slopes_for_request(request)
    n, m, level, epsilon = request.n, request.m, request.level, request.per_record
    match request.mechanism:
        case "noisy-histogram":
            return noisy_histogram_for(level, epsilon, m, n, request.n_min)
        case "opendp-quantile":
            return opendp_quantile_for(level, epsilon, n)
        case "pps" if n is None:
            return pps_of_secret_size(request.alpha, epsilon, m, request.n_known)
    assert n is not None  # the terms were validated
    match request.mechanism:
        case "pps":
            return pps_for(n, request.alpha, epsilon, m)
        case "pps-laplace":
            return pps_laplace_for(n, request.alpha, epsilon, m)
        case "pcoqs":
            return pcoqs_for(n, level, request.rho_per_record, m)
        case "pcoqs-published":
            return published_pcoqs_for(n, level, request.rho_per_record)
        case "none":
            return split_conformal_for(level, n)


@lru_cache(maxsize=1024)
def slopes_for_request(request: Terms) -> Slopes | None:
    """The slope mechanism for validated terms, or None if the answer must be +inf without reading the data."""
    begin = time.perf_counter()
    mechanism = _slopes(request)
    if listening("planning", DEBUG):
        log_event(
            "planning",
            "plan searched",
            DEBUG,
            seconds=round(time.perf_counter() - begin, 3),
            alpha=1 - request.level,
            epsilon=request.per_record,
            neighbors=request.neighbors,
            n="secret" if request.n is None else request.n,
        )
    return mechanism


@np.errstate(under="ignore")
def _slopes(request: Terms) -> Slopes | None:
    choice = request.choice
    left, right = request.slopes or (choice.left, PARTS - choice.left)

    @cache
    def build(rate: Fraction, offset: Fraction) -> Slopes:
        plain = slopes_for(
            rate, offset, left, right, request.neighbors, request.per_record, request.selector, request.weight
        )
        flat, rise = choice.flat, math.floor(choice.rise * plain.scale)
        return replace(plain, flat=flat, rise=rise) if flat and rise else plain

    if request.n is not None:
        return _certified(_public_line(request, build), request, build)
    if request.population is not None:
        return _weighted(request, build)
    plain = _certified(_private_line(request, build), request, build)
    if plain is None or request.delta is not None:
        return plain
    lower = _two_sided(request, build, plain.offset) if request.shift is None else None
    return lower or _with_head_start(plain, request)


def _certified(line: tuple[Fraction, Fraction] | None, request: Terms, build: _Build) -> Slopes | None:
    """The certified mechanism with the least target from this line on; None if a public n does not reach it."""
    if line is None:
        return None
    rate, offset = line
    # The rounding of prior weights, and with it G, depends slightly on the offset's denominator.
    while not _is_certified(build(rate, offset), request):
        offset += Fraction(1, _unit(request))
    return None if request.n is not None and offset > request.n else build(rate, offset)


def _unit(request: Terms) -> int:
    """Target ranks are multiples of 1/unit."""
    denominator = request.level.denominator
    return UNIT if request.n is not None else denominator * -(-UNIT // denominator)


def _public_line(request: Terms, build: _Build) -> tuple[Fraction, Fraction] | None:
    """Rate 0 and the target rank for a public n, or None if no rank up to n suffices."""
    n, level, unit = request.n or 0, request.level, _unit(request)
    trial = build(Fraction(0), Fraction(1, unit))
    rivals, selector = trial.rivals(request.m), request.selector
    if request.shift is not None:
        target: Fraction | None = ceil_to(level * (n + 1) + request.shift, unit)
    elif request.delta is not None:
        target = public_target(n, level, request.delta, trial.slope_left, rivals, selector, unit)
    else:
        terms = n, level, trial.slope_left, trial.slope_right, rivals, selector, unit
        shifts = public_shift(*terms), two_sided_shift(*terms, step=trial.step(request.m))
        target = min((shift for shift in shifts if shift is not None), default=None)
    return None if target is None or target > n else (Fraction(0), target)


def _private_line(request: Terms, build: _Build) -> tuple[Fraction, Fraction]:
    """Rate and offset of the target line for a secret n."""
    level, n_min, unit, selector = request.level, request.n_min, _unit(request), request.selector
    trial = build(level, Fraction(1, unit))
    rivals = trial.rivals(request.m)
    if request.delta is not None:
        # The rate exceeds the level, which changes the privacy map: choose the rate first, then slopes and offset.
        n_typical = max(n_min, request.n_typical)
        rate = tangent_rate(level, request.delta, n_typical)
        slope = build(rate, Fraction(1, unit)).slope_left
        return rate, secret_offset(rate, level, request.delta, n_min, n_typical, slope, rivals, selector, unit)
    if request.shift is not None:
        return level, ceil_to(request.shift, unit)
    return level, secret_shift(level, trial.slope_left, trial.slope_right, rivals, selector, unit)


def _is_certified(mechanism: Slopes, request: Terms) -> bool:
    """Whether the target is certified (from the n on that reach it, if n is secret), or was set by hand."""
    if request.shift is not None:
        return True
    n_min = LARGE_N_MIN if request.delta is None else request.n_min
    secret_from = n_min if request.n is None else None
    promised = certify(mechanism, request.alpha, request.m, request.n, secret_from, request.delta)
    return promised.coverage >= float(request.level)


def _two_sided(request: Terms, build: _Build, most: Fraction) -> Slopes | None:
    """The mechanism with the offset and prior bonus of the two-sided certificate; None if the offset reaches `most`.

    The bonus ends at a seventh of n_typical, if the privacy loss allows it: with a slower decrease the offset is less.
    """
    level, unit = request.level, _unit(request)
    trial, parts = build(level, Fraction(1, unit)), unit // level.denominator
    needed = 2.5 - math.log(request.alpha)  # approximate constant prior bonus of +inf that suffices, in log-odds
    fade = needed * trial.scale / (_GONE_AT * max(request.n_min, request.n_typical))
    # A multiple of `parts` stays an integer if the offset has a smaller denominator.
    fade = min(max(1, math.ceil(fade / parts)), free_fade(trial) // parts) * parts / trial.scale
    few = float((most + 1) / (1 - level))  # about the n from which on a target rank is among the records
    terms = request.n_min, trial.slope_left, trial.slope_right, trial.rivals(request.m), request.selector, unit
    step = trial.step(request.m)
    # The certificate checks all n in any case: mostly the requirement of a few suffices, without a second check.
    for sampled in (True, False):
        least = two_sided_secret(level, fade, needed + fade * few, *terms, step=step, sampled=sampled)
        if least is None:
            return None
        offset, ahead = least
        # Again because of the rounding of prior weights: either value may have to increase slightly.
        for more in range(1 if sampled and request.size_scale is None else _TRIES):
            plain = build(level, offset + more * ceil_to(_LITTLE, unit))
            if plain.offset >= most:
                return None
            head_start = math.ceil((ahead + float(more * _LITTLE)) * plain.scale)
            candidate = replace(plain, fade=round(fade * plain.scale), head_start=head_start)
            if certify(candidate, request.alpha, request.m, None, request.n_min, None).coverage >= float(level):
                return candidate
    return None


def _weighted(request: Terms, build: _Build) -> Slopes:
    """The least offset that is certified if records have different weights, and the prior bonus of +inf for it."""
    level, unit, m, selector = request.level, _unit(request), request.m, request.selector
    trial = build(level, Fraction(1, unit))
    offset = ceil_to(weighted_loss(0.0, trial.slope_left, trial.rivals(m), selector), unit)
    while True:
        plain = build(level, offset)
        fading = replace(plain, fade=free_fade(plain))
        ahead = weighted_prior_bonus(
            level, offset, fading.fade_ranks, plain.slope_left, plain.rivals(m), selector
        ) * (plain.unit * plain.heaviest * plain.left)  # fmt: skip
        with_head_start = replace(fading, head_start=math.ceil(ahead))
        if certify(with_head_start, request.alpha, m, None, request.n_min, None).coverage >= float(level):
            return with_head_start
        offset += Fraction(1, unit)  # the rounding of prior weights, and with it G, depends slightly on the offset


def _with_head_start(mechanism: Slopes, request: Terms) -> Slopes:
    """Set the least prior bonus of +inf that suffices for every n >= n_min, with the fastest admissible decrease."""
    fading = replace(mechanism, fade=free_fade(mechanism))
    ahead = secret_prior_bonus(
        request.level, mechanism.offset, fading.fade_ranks, request.n_min,
        mechanism.slope_left, mechanism.slope_right, mechanism.rivals(request.m), request.selector,
    )  # fmt: skip
    return replace(fading, head_start=math.ceil(ahead * mechanism.unit * mechanism.left))
