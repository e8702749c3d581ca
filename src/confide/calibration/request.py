"""What is asked of records, whole, and checked once where it is made: the promise, the loss, and by which choices.

A release has one threshold, or one for each of several levels, groups, classes or sides. Each of them is a
`ThresholdRequest`: which counts it sees, of which score, its own share of the loss and of the failure probability, and
over what it is asked. The tables of `confide.planning.combinations` say what does not go together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np

from confide.candidates import BUILDERS, AnyCandidates, Candidates, Spread
from confide.errors import InputError, InputTypeError
from confide.mechanisms import NEIGHBORS, MechanismName, Neighbors, published_candidates, shares_of
from confide.planning import CHOICES, COUNTED_SIZES, SIZES, Population, Terms, refuse_combinations
from confide.releases import (
    FALSE_NEGATIVES,
    Calibration,
    GroupCalibration,
    LevelCalibration,
    NoisyLabelCalibration,
    Predecessor,
    Release,
    RiskCalibration,
    SidesCalibration,
    Words,
    check_bound,
    critical_score,
)
from confide.scores import ScoreKind, score_kind
from confide.selection import Selector, range_of_zcdp
from confide.support import (
    Level,
    check_names,
    exact_level,
    fraction_of,
    one_of,
    positive_integer,
    privacy_loss,
    several,
)

Key: TypeAlias = Any
"""The name of a threshold: None of one alone, a level, a group, a class, the score of a side."""


By = Literal["level", "group", "class", "side"]
"""What tells the thresholds of one release apart."""

SIDES = ("cqr_low", "cqr_high")


@dataclass(frozen=True)
class ThresholdRequest:
    """One threshold that is asked for.

    Parameters
    ----------
    row
        The name of the counts that it sees: its group, its class, the score of its side, or None.
    score
        The name of the score.
    terms
        What is asked of it, before candidates and the number of records are settled.
    law
        Over what: a list, or how as many candidates are spread as suit what is asked.
    words
        Its public words.
    """

    row: Key
    score: str | None
    terms: Terms
    law: Candidates | Spread
    words: Words


@dataclass(frozen=True, kw_only=True)
class Request:
    """Everything public that is asked of records. The fields are the arguments of `confide.calibrate` and its kin.

    Parameters
    ----------
    alpha
        The miscoverage level; a sequence of them with `by="level"`, one or a pair with `by="side"`; the bound on the
        expected loss with `loss`.
    by, names
        What there is a threshold for each of; the public names of groups or classes.
    shares
        How the loss is divided among levels or sides; evenly by default.
    loss, bound
        For risk control: the name of the loss, and its largest value.
    renews, cold
        An earlier release whose request is put again, and whether candidates are placed without its thresholds: see
        `recalibrate`.
    neighbors, n_min, n_typical, delta, records_per_person, selector, slopes, rise, shift, mechanism
        The choices of each threshold: see `confide.calibrate`.

    Raises
    ------
    InputError, InputTypeError
        If a field cannot be used, or does not go with another.

    Examples
    --------
    >>> request = Request(alpha=(0.1, 0.2), by="level", epsilon=1.0, score="lac")
    >>> [(str(key), part.terms.epsilon) for key, part in request.parts.items()]
    [('1/10', 0.5), ('1/5', 0.5)]
    """

    alpha: Any = None
    epsilon: float | None = None
    rho: float | None = None
    by: By | None = None
    names: Sequence[Any] = ()
    shares: Sequence[Level] | None = None
    loss: str | None = None
    bound: float = 1.0
    population: Population | None = None
    score: str | None = None
    classes: Any = None
    about: Mapping[str, str] | None = None
    candidates: AnyCandidates = None
    unit: float | None = None
    neighbors: Neighbors = "add_remove"
    n_min: int = 1
    n_typical: int | Literal["noisy"] | None = None
    delta: Level | None = None
    records_per_person: int = 1
    selector: Selector | None = None
    slopes: tuple[int, int] | None = None
    rise: float | None = None
    shift: float | None = None
    mechanism: MechanismName = "slopes"
    renews: Release | None = None
    cold: bool = False
    parts: Mapping[Key, ThresholdRequest] = field(init=False, repr=False, compare=False)
    """The thresholds by what tells them apart."""

    def __post_init__(self) -> None:
        refuse_combinations({one.name: getattr(self, one.name) for one in fields(self) if one.init})
        if self.renews is not None:
            known = read_again(self, self.renews)
        else:
            one_of("neighbors", self.neighbors, NEIGHBORS)
            known = {"parts": self._divided()}
        for name, value in known.items():
            object.__setattr__(self, name, value)

    @cached_property
    def disjoint(self) -> bool:
        """Whether a record is in one part alone; then nobody learns how many are in which."""
        return self.by in ("group", "class")

    @cached_property
    def public_n(self) -> bool:
        """Whether the number of records is public, and candidates follow from it."""
        return not self.disjoint and self._first.terms.public_n

    @cached_property
    def sized(self) -> bool:
        """Whether a noisy number of records is released first, which decides candidates and the mechanism."""
        return any(part.terms.size_scale is not None for part in self.parts.values())

    @cached_property
    def rows(self) -> dict[Key, str | None]:
        """What has counts of its own, and of which score."""
        return {part.row: part.score for part in self.parts.values()}

    def lists(self, n: int | None = None, *, known_later: bool = False) -> dict[Key, Candidates]:
        """The candidates of each threshold, decided from public numbers before anything is counted.

        Parameters
        ----------
        n
            The number of records where it is public; where it is secret `n_typical` stands for it.
        known_later
            The number is public, but nobody knows it before records are counted: every candidate that may be chosen
            then, see `ScoreHistogram.over`. Where a noisy number of records decides, these are all that may be chosen.
        """
        if self._shared is not None:
            return dict.fromkeys(self.parts, _listed(self._first.law, self._shared, n, known_later))
        return {key: _listed(part.law, part.terms, n, known_later) for key, part in self.parts.items()}

    def counted_over(self, n: int | None = None, *, known_later: bool = False) -> Candidates:
        """One list that has all of these: counts over it are counts over each."""
        return joined(self.lists(n, known_later=known_later).values())

    @cached_property
    def _first(self) -> ThresholdRequest:
        return next(iter(self.parts.values()))

    @cached_property
    def _shared(self) -> Terms | None:
        """By what the candidates of all thresholds are chosen: of levels and sides the least demanding, an even share.

        None where each has its own: a renewal that starts around earlier thresholds.
        """
        parts = list(self.parts.values())
        again = self.renews is not None
        if any(part.law != parts[0].law for part in parts):
            return None
        if all(part.terms == parts[0].terms for part in parts):
            return parts[0].terms
        if self.by not in ("level", "side"):
            return None
        if again and isinstance(parts[0].law, Spread) and parts[0].law.around is not None:
            return None
        k, first = len(parts), parts[0].terms
        if self.rho is not None:
            epsilon = range_of_zcdp(privacy_loss("rho", self.rho) / k)
        elif self.epsilon is not None:
            epsilon = privacy_loss("epsilon", self.epsilon) / k
        else:
            epsilon = sum(part.terms.epsilon for part in parts) / k
        return replace(first, alpha=max(part.terms.alpha for part in parts), epsilon=epsilon)

    def _divided(self) -> dict[Key, ThresholdRequest]:
        """A part for each level, group, class or side; or one, named None."""
        levels = self._levels()
        k, choices = len(levels), {name: getattr(self, name) for name in CHOICES if name != "rho"}
        if self.disjoint:  # a replaced record may leave one and enter another, whose sizes stay secret
            replaced = self.neighbors == "replace_one"
            losses = divide_budget(self.epsilon, self.rho, [Fraction(1)], replaced=replaced) * k
            guess = typical_of_groups(k, self.n_min) if self.n_typical is None else self.n_typical
            choices |= {"neighbors": "add_remove", "n_typical": guess}
        elif self.by is None:
            losses = [{"epsilon": self.epsilon, "rho": self.rho}]
        else:
            losses = divide_budget(self.epsilon, self.rho, exact_shares(self.shares, k))
            choices["delta"] = part_of_failure(self.delta, k)
        own = self.score if self.loss is None else critical_score(self.loss)
        law = self._law(SIDES[0] if self.by == "side" else own)
        words = Words.stated(None if self.by == "class" else self.classes, self.about)  # classes have their names
        parts = {}
        for (key, level), loss in zip(levels.items(), losses, strict=True):
            row, score = None if self.by == "level" else key, key if self.by == "side" else own
            listed = isinstance(law, Candidates)
            terms = Terms.unsettled(level, population=self.population, listed=listed, **(choices | loss))
            parts[key] = ThresholdRequest(row, score, terms, law, words)
        return parts

    def _levels(self) -> dict[Key, Any]:
        """The level of each threshold."""
        if self.by == "level":
            levels = different_levels(self.alpha)
            return dict(zip(levels, levels, strict=True))
        if self.by == "side":
            return dict(zip(SIDES, levels_of_sides(self.alpha), strict=True))
        keys = check_names("names", self.names) if self.disjoint else (None,)
        return dict.fromkeys(keys, self.alpha if self.loss is None else share_of(self.alpha, self.loss, self.bound))

    def _law(self, score: str | None) -> Candidates | Spread:
        """Over what is asked: the list that was given, or how one is spread."""
        free = self.candidates is None and self.unit is None
        if free and self.mechanism == "pcoqs-published":
            return published_candidates()
        if self.loss is not None and (kind := kind_asked(score)).name == "lac":
            return kind.asked(self.candidates)
        if free and self.mechanism != "slopes":
            return score_kind(score).candidates()
        return score_kind(score).asked(self.candidates, self.unit)


def share_of(risk: Level, loss: str, bound: float) -> Fraction:
    """The share of the bound of a loss that may be lost: the level of its threshold.

    Raises
    ------
    InputError, InputTypeError
        If the bound is no positive number, or the risk is not between 0 and it.
    """
    bound = check_bound(loss, bound)
    if bound == 1:
        return exact_level("risk", risk)
    try:
        share = fraction_of(risk) / Fraction(str(bound))
    except (ValueError, TypeError, ZeroDivisionError, OverflowError):
        raise InputError(
            "risk", f"must be a number between 0 and {bound:g}, the largest loss", got=repr(risk)
        ) from None
    return exact_level("risk / bound", share)


def levels_of_sides(alpha: Any) -> list[Fraction]:
    """The level of each side: half of the interval's, or its own."""
    if not isinstance(alpha, tuple):
        return [exact_level("alpha", alpha) / 2] * 2
    if len(alpha) != 2:
        raise InputError(
            "alpha", "must be one level, or a pair of those of the lower and the upper side", got=str(len(alpha))
        )
    levels = [exact_level("alpha", side) for side in alpha]
    if sum(levels) >= 1:
        raise InputError("alpha", "must sum to less than one")
    return levels


def joined(lists: Iterable[Candidates]) -> Candidates:
    """One list that has all of these."""
    every = list(lists)
    if all(one is every[0] or one == every[0] for one in every):
        return every[0]
    return Candidates.of(np.unique(np.concatenate([one.edges for one in every])))


@lru_cache(maxsize=16)
def every_candidate(law: Spread, sizes: tuple[int, ...]) -> Candidates:
    """All candidates of lists of these sizes: counts over them are counts over each list."""
    return Candidates.of(np.unique(np.concatenate([Candidates.quantiles(law, size).edges for size in sizes])))


def _listed(law: Candidates | Spread, terms: Terms, n: int | None, known_later: bool) -> Candidates:
    if isinstance(law, Candidates):
        return law
    if terms.size_scale is not None:
        return every_candidate(law, COUNTED_SIZES)
    if known_later and terms.mechanism == "slopes":
        return every_candidate(law, SIZES)
    return terms.over(law, n or terms.n_typical).candidates


# How a budget and a failure probability are divided among thresholds.


def divide_budget(
    epsilon: float | None, rho: float | None, shares: Sequence[Fraction], *, replaced: bool = False
) -> list[dict[str, Any]]:
    """Keyword arguments for `calibrate` per share of a budget.

    Half of epsilon, or a quarter of rho, if a record that is replaced can change two groups.
    """
    if epsilon is None and rho is None:
        return [{} for _ in shares]
    if epsilon is not None and rho is not None:
        raise InputError("epsilon", "epsilon or rho must be given, and not both")
    name, total = ("epsilon", epsilon) if epsilon is not None else ("rho", rho)
    part = Fraction(1, {"epsilon": 2, "rho": 4}[name]) if replaced else Fraction(1)
    return [{name: value} for value in shares_of(privacy_loss(name, total), [share * part for share in shares])]


def exact_shares(shares: Sequence[Level] | None, count: int) -> list[Fraction]:
    """Positive shares that sum to one; even ones by default."""
    if shares is None:
        return [Fraction(1, count)] * count
    exact = [exact_level("shares", share) for share in shares] if count > 1 else [Fraction(1)]
    if len(exact) != count or sum(exact) != 1:
        raise InputError(
            "shares", f"must be {count} positive numbers that sum to one", got=f"{len(exact)}, sum {sum(exact)}"
        )
    return exact


def part_of_failure(delta: Level | None, count: int) -> Fraction | None:
    """An equal part of a failure probability: all promises hold together by the union bound."""
    return None if delta is None else exact_level("delta", exact_level("delta", delta) / count)


def different_levels(alphas: Sequence[Level]) -> list[Fraction]:
    """One or more levels, exactly, each once."""
    levels = [exact_level("alphas", alpha) for alpha in several("alphas", alphas)]
    if not levels or len(set(levels)) != len(levels):
        raise InputError(
            "alphas", "must be one or more different levels", got=f"{len(levels)}, {len(set(levels))} different"
        )
    return levels


_LEAST_TYPICAL = 150
"""A guess below it suits few groups: candidates for 83 records make thresholds a fifth too high for thousands."""


def typical_of_groups(groups: int, n_min: Any) -> int:
    """A public guess of the number of records in one of so many groups: an even part of a thousand, at least 150.

    Examples
    --------
    >>> typical_of_groups(4, 1), typical_of_groups(10, 1), typical_of_groups(10, 500)
    (250, 150, 500)
    """
    return max(positive_integer("n_min", n_min), -(-1000 // groups), _LEAST_TYPICAL)


_OF_SHARES = tuple(map(critical_score, (FALSE_NEGATIVES, "missed_area")))


def kind_asked(score: str | None) -> ScoreKind:
    """The kind of score over whose candidates a threshold is asked: of shares of truths those of 1 - p, as of lac."""
    return score_kind("lac" if str(score).startswith(_OF_SHARES) else score)


# An earlier release's request, read off it, to be put to new records: `Request(renews=...)`.
#
# What was asked is read off the release, which states all of it: level, loss, relation, selector, method, classes,
# groups, sides. Candidates begin where the earlier threshold was found, hedged, so that a threshold that has moved far
# costs little:
#
#     the score's own spread, threshold inside it     half of them around the earlier threshold: a warm start
#     the same, threshold +inf or at an end           spread as if there were none: a cold start
#     a list of another recipe                        the same list
#     values of one's own, or a public sample's       have to be given again, for the release only knows how many
#
# Every threshold of a release starts for itself, from its own predecessor. The earlier thresholds are public, so that
# the new release costs what any costs; its promise is for records that were in none of the earlier ones, and with a
# cold start for any (docs/theory-after-release.md).


_KINDS = (Calibration, LevelCalibration, GroupCalibration, SidesCalibration, RiskCalibration)

_AT_AN_END: Mapping[str, tuple[float, ...]] = {
    "probability": (0.0, 1.0), "margin": (-1.0, 1.0), "mass": (0.0, 1.0), "penalised": (0.0, 1.0), "rank": (),
    "residual": (0.0,), "signed": (0.0,),
}  # fmt: skip
"""Thresholds by which no list can be centred, by the kind of spread; none is for scores of which nothing is known."""

_TWICE_ROUNDED = 1e-14


def read_again(request: Request, previous: Release) -> dict[str, Any]:
    """What an earlier release asked, as fields of a request that renews it.

    Parameters
    ----------
    request
        What is asked anew: another budget, candidates that the release does not hold, slopes, words, a cold start.
    previous
        One that calibrate and its kin made.

    Raises
    ------
    InputError, InputTypeError
        If the release cannot be renewed so.
    """
    _refuse_others(previous)
    if not isinstance(request.cold, bool):
        raise InputTypeError("cold", "must be True or False", got=type(request.cold).__name__)
    old = _by_key(previous)
    guess = None
    if previous.disjoint:
        guess = typical_of_groups(len(old), max(part.guarantee.n_min or 1 for part in old.values()))
    anew = {"slopes": request.slopes, "rise": request.rise, "shift": request.shift}
    parts: dict[Key, ThresholdRequest] = {}
    for (key, part), budget in zip(old.items(), _budgets(previous, old, request), strict=True):
        said = Predecessor(previous.checksum, part.threshold, previous.privacy.epsilon, part.about.get("date"))
        words = Words.stated(part.classes, request.about, (*part.predecessors, said))
        asked = _choices(part) | budget | anew | {"population": part.population}
        asked["n_typical"] = _typical(request, part, guess)
        refuse_combinations(asked)
        law = _law(part, request.cold, request.candidates)
        terms = Terms.unsettled(listed=isinstance(law, Candidates), **asked)
        parts[key] = ThresholdRequest(None if previous.by == "level" else key, part.score, terms, law, words)
    first = previous.first
    known: dict[str, Any] = {"parts": parts, "by": None if previous.by == "loss" else previous.by}
    known |= {"population": first.population, "records_per_person": first.privacy.records_per_person}
    if isinstance(previous, GroupCalibration):
        known["neighbors"] = previous.neighbors
    if previous.bounded is not None:
        known |= dict(zip(("loss", "bound"), previous.bounded, strict=True))
    return known


def _typical(request: Request, part: Calibration, guess: int | None) -> int | Literal["noisy"] | None:
    """The number of records that a renewal is designed for: a given one, that of the earlier release, or a guess."""
    if request.n_typical is not None:
        return request.n_typical
    return guess if part.size is None else part.size.design_for  # which is public, and costs nothing again


def _refuse_others(previous: Release) -> None:
    """Refuse what is no release of one owner's records."""
    if type(previous) in _KINDS:
        return
    if isinstance(previous, NoisyLabelCalibration):
        raise InputTypeError(
            "previous",
            "must be a release of records that whoever calibrates may see",
            remedy=(
                "One of randomised labels is renewed by calibrating on the randomised labels of new records "
                "(calibrate_noisy_labels, --label-epsilon)"
            ),
        )
    if isinstance(previous, _KINDS):
        raise InputTypeError(
            "previous",
            "must be a release of one owner's records",
            remedy=(
                f"This {type(previous).__name__} is of several silos, which renew it together: send them a "
                "new plan (`confide federated plan`), or calibrate your own records alone"
            ),
        )
    raise InputTypeError(
        "previous",
        "must be a release of calibrate or its kin, as confide.load reads them",
        got=type(previous).__name__,
    )


def _by_key(previous: Release) -> dict[Key, Calibration]:
    """Its thresholds by the keys of a request: those of sides by their scores, one alone by None."""
    if previous.by == "side":
        return {part.score: part for part in previous.parts.values()}
    return {None: previous.first} if previous.by in (None, "loss") else dict(previous.parts)


def _choices(part: Calibration) -> dict[str, Any]:
    """The choices behind a threshold; its budget apart."""
    privacy, guarantee = part.privacy, part.guarantee
    method = "slopes" if part.mechanism is None else part.mechanism.name
    asked: dict[str, Any] = {
        "alpha": part.alpha,
        "mechanism": method,
        "neighbors": privacy.neighbors,
        "records_per_person": privacy.records_per_person,
        "n_min": guarantee.n_min or 1,
    }
    if method == "slopes":
        asked["delta"] = guarantee.delta
        asked["selector"] = None if privacy.rho is None else "exponential"
    return asked


def _budgets(previous: Release, parts: Mapping[Any, Calibration], request: Request) -> list[dict[str, Any]]:
    """What each threshold may spend: what it spent, or its share of another budget."""
    epsilon, rho = request.epsilon, request.rho
    # Of the published method that claims another loss than it has, the claimed one was asked for.
    if epsilon is None and rho is None and all(part.privacy.concentrated_only for part in parts.values()):
        return [{"rho": _as_typed(part.privacy.rho or 0.0)} for part in parts.values()]
    spent = [part.privacy.claimed or part.privacy.epsilon for part in parts.values()]
    if epsilon is None and rho is None:
        if all(math.isinf(one) for one in spent):
            return [{} for _ in spent]
        if not all(spent):
            raise InputError(
                "epsilon",
                (
                    "must be given: previous answered +inf without touching its data, so it does not say what it "
                    "might have spent"
                ),
            )
        return [{"epsilon": _as_typed(one)} for one in spent]
    if isinstance(previous, GroupCalibration):
        replaced = previous.neighbors == "replace_one"
        return divide_budget(epsilon, rho, [Fraction(1)], replaced=replaced) * len(parts)
    known = all(0 < one < math.inf for one in spent)
    weights = [Fraction(_as_typed(one)) for one in spent] if known else [Fraction(1)] * len(spent)
    return divide_budget(epsilon, rho, [weight / sum(weights) for weight in weights])


def _as_typed(epsilon: float) -> float:
    """A loss as it was asked for: a mechanism realises it rounded down, so a short decimal lies just above.

    Examples
    --------
    >>> _as_typed(3.8639999999999994), _as_typed(1 / 3)
    (3.864, 0.3333333333333333)
    """
    short = float(f"{epsilon:.9g}")
    return short if abs(short - epsilon) <= _TWICE_ROUNDED * epsilon else epsilon


def _law(part: Calibration, cold: bool, given: AnyCandidates) -> Candidates | Spread:
    """Over what a threshold is asked for again (see the head of this file)."""
    if given is None and part.mechanism is not None and part.mechanism.name == "pcoqs-published":
        return published_candidates()
    if given is not None:
        law = kind_asked(part.score).asked(given)
        if isinstance(law, Spread) and law.around is not None:
            raise InputError("candidates", "must leave out around: a renewal starts around its predecessor by itself")
        return law
    recipe = dict(part.recipe)
    kind = recipe.pop("kind")
    if kind == "spread":
        own = Spread(recipe["of"], recipe.get("unit"))
        at_an_end = own.kind is None or part.threshold in _AT_AN_END.get(own.kind, (part.threshold,))
        if cold or math.isinf(part.threshold) or at_an_end:
            return own
        return replace(own, around=part.threshold, hedged=True)
    if kind == "scores":
        return score_kind(part.score).candidates()
    if kind in BUILDERS:
        return Candidates.made_by(part.recipe)
    raise InputError(
        "candidates",
        (f"must be given again: previous has {part.candidates} of its own, and only their number is in it"),
    )
