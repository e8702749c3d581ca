"""The public parameters of a release, validated once on construction: level, privacy budget and all choices.

A release has one threshold, or one for each of several levels, groups, classes or sides. Each is described by a
`ThresholdRequest`: the counts that it uses, the score, its shares of the budget and of the failure probability, and its
candidates. The tables of `confide.planning.combinations` list invalid combinations.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np

from confide.arrays import GroupColumns
from confide.candidates import BUILDERS, AnyCandidates, Candidates, Spread
from confide.errors import InputError, InputTypeError
from confide.mechanisms import NEIGHBORS, Chosen, MechanismName, Neighbors, published_candidates, split_epsilon
from confide.planning import CHOICES, Population, Terms, check_combinations
from confide.releases import (
    FALSE_NEGATIVES,
    Calibration,
    CountsCalibration,
    GroupCalibration,
    LevelCalibration,
    Metadata,
    ModelFingerprint,
    NoisyLabelCalibration,
    OverlappingCalibration,
    Predecessor,
    Release,
    RiskCalibration,
    SidesCalibration,
    check_bound,
    critical_score,
    own_loss,
)
from confide.scores import ScoreKind, score_kind
from confide.selection import Selector, range_of_zcdp
from confide.support import (
    Level,
    check_names,
    exact_level,
    fraction_of,
    one_of,
    privacy_loss,
    several,
)

Key: TypeAlias = Any
"""The key of a threshold: None for a single one, a level, a group, a class, or the score of a side."""


By = Literal["level", "group", "class", "side"]
"""The property that distinguishes the thresholds of a release."""

SIDES = ("cqr_low", "cqr_high")


@dataclass(frozen=True)
class ThresholdRequest:
    """Parameters of one threshold.

    Parameters
    ----------
    row
        The name of the counts that it uses: its group, its class, the score of its side, or None.
    score
        The name of the score.
    terms
        Its terms, before candidates and the number of records are fixed.
    law
        Its candidates: a list, or a spread, from which a suitable number of candidates is made.
    words
        Its public metadata.
    """

    row: Key
    score: str | None
    terms: Terms
    law: Candidates | Spread
    words: Metadata


@dataclass(frozen=True, kw_only=True)
class Request:
    """All public parameters of a release. The fields are the arguments of `confide.calibrate` and related functions.

    Parameters
    ----------
    alpha
        The miscoverage level; a sequence of levels with `by="level"`; one level or a pair with `by="side"`; the bound
        on the expected loss with `loss`.
    by, names
        The property that distinguishes the thresholds; the public names of groups or classes. `GroupColumns` instead of
        a list of names: groups that overlap, one of each column for every record.
    shares
        Division of the privacy budget among levels or sides; equal shares by default.
    loss, bound
        For risk control: the name of the loss, and its largest value.
    renews, cold
        An earlier release whose request is repeated, and whether candidates are chosen without its thresholds: see
        `recalibrate`.
    chosen
        The statement of a private choice of the score (`choose_score`), whose other records are calibrated.
    longest
        The longest list among which a design for a noisy number of records chooses, if one pass counts over few
        lists, as in a warehouse; by default there are more and longer ones.
    neighbors, n_min, n_typical, delta, records_per_person, selector, slopes, rise, shift, mechanism
        The choices of each threshold: see `confide.calibrate`.

    Raises
    ------
    InputError, InputTypeError
        If a field cannot be used, or excludes another.

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
    names: Any = ()
    shares: Sequence[Level] | None = None
    loss: str | None = None
    bound: float = 1.0
    population: Population | None = None
    score: str | None = None
    classes: Any = None
    about: Mapping[str, str] | None = None
    fingerprint: ModelFingerprint | None = None
    candidates: AnyCandidates = None
    unit: float | None = None
    neighbors: Neighbors = "add_remove"
    n_min: int = 1
    n_typical: int | None = None
    delta: Level | None = None
    records_per_person: int = 1
    selector: Selector | None = None
    slopes: tuple[int, int] | None = None
    rise: float | None = None
    shift: float | None = None
    mechanism: MechanismName = "slopes"
    renews: Release | None = None
    cold: bool = False
    chosen: Chosen | None = None
    longest: int | None = None
    parts: Mapping[Key, ThresholdRequest] = field(init=False, repr=False, compare=False)
    """The parameters of each threshold, by key."""

    def __post_init__(self) -> None:
        check_combinations({spec.name: getattr(self, spec.name) for spec in fields(self) if spec.init})
        if self.chosen is not None and self.overlap is not None:
            why = "with a chosen score: its loss is compared with that of one threshold of each record"
            raise InputError("names", f"must be groups that divide the records {why}", got="columns of groups")
        if self.renews is not None:
            fields_read = read_again(self, self.renews)
        else:
            one_of("neighbors", self.neighbors, NEIGHBORS)
            fields_read = {"parts": self._divided()}
        for name, value in fields_read.items():
            object.__setattr__(self, name, value)

    @cached_property
    def disjoint(self) -> bool:
        """Whether each record belongs to one part, or to one of each column, and the sizes of the parts stay secret."""
        return self.by in ("group", "class")

    @cached_property
    def overlap(self) -> GroupColumns | None:
        """The columns of groups that overlap, or None."""
        return self.names if isinstance(self.names, GroupColumns) else None

    @cached_property
    def public_n(self) -> bool:
        """Whether the number of records is public, and candidates follow from it."""
        return not self.disjoint and self._first.terms.public_n

    @cached_property
    def sized(self) -> bool:
        """Whether a noisy number of records is released first."""
        return any(part.terms.size_scale is not None for part in self.parts.values())

    @cached_property
    def rows(self) -> dict[Key, str | None]:
        """The score of each row of counts, by the name of the row."""
        return {part.row: part.score for part in self.parts.values()}

    def lists(self, n: int | None = None, *, known_later: bool = False) -> dict[Key, Candidates]:
        """The candidates of each threshold, chosen from public numbers before anything is counted.

        Parameters
        ----------
        n
            The number of records if it is public. If it is secret, `n_typical` is used.
        known_later
            The number is public, but unknown until records are counted: return every candidate that may be chosen
            then, see `ScoreHistogram.over`. The same holds for a noisy number of records, whatever this argument is.
        """
        if self._shared_terms is not None:
            return dict.fromkeys(self.parts, _candidate_list(self._first.law, self._shared_terms, n, known_later))
        return {key: _candidate_list(part.law, part.terms, n, known_later) for key, part in self.parts.items()}

    def counted_over(self, n: int | None = None, *, known_later: bool = False) -> Candidates:
        """The union of all candidates: counts over it determine the counts over each list."""
        return joined(self.lists(n, known_later=known_later).values())

    @cached_property
    def _first(self) -> ThresholdRequest:
        return next(iter(self.parts.values()))

    @cached_property
    def _shared_terms(self) -> Terms | None:
        """The terms that choose candidates for all thresholds: for levels and sides the largest alpha, an equal share.

        None if each threshold has its own: a renewal that starts around earlier thresholds.
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
        """One part for each level, group, class or side, or a single part with the key None."""
        levels = self._levels()
        k, names = len(levels), (*CHOICES, "population", "longest")
        choices = {name: getattr(self, name) for name in names if name != "rho"}
        if self.disjoint:  # a replaced record may leave one part and enter another, whose sizes stay secret
            replaced = self.neighbors == "replace_one"
            share = Fraction(1, len(self.overlap or [1]))
            losses = divide_budget(self.epsilon, self.rho, [share], replaced=replaced) * k
            choices["neighbors"] = "add_remove"
        elif self.by is None:
            losses = [{"epsilon": self.epsilon, "rho": self.rho}]
        else:
            losses = divide_budget(self.epsilon, self.rho, exact_shares(self.shares, k))
            choices["delta"] = part_of_failure(self.delta, k)
        name = self.score if self.loss is None else critical_score(self.loss)
        law = self._law(SIDES[0] if self.by == "side" else name)
        classes = None if self.by == "class" else self.classes  # keys are the names of classes
        words = Metadata.stated(classes, self.about, chosen=self.chosen, fingerprint=self.fingerprint)
        parts = {}
        for (key, level), loss in zip(levels.items(), losses, strict=True):
            row, score = None if self.by == "level" else key, key if self.by == "side" else name
            listed = isinstance(law, Candidates)
            groups = most_groups(self.overlap, k) if self.disjoint else 1
            terms = Terms.partial(level, listed=listed, groups=groups, **(choices | loss))
            parts[key] = ThresholdRequest(row, score, terms, law, words)
        return parts

    def _levels(self) -> dict[Key, Any]:
        """The level of each threshold."""
        if self.by == "level":
            levels = different_levels(self.alpha)
            return dict(zip(levels, levels, strict=True))
        if self.by == "side":
            return dict(zip(SIDES, levels_of_sides(self.alpha), strict=True))
        if self.overlap is not None and self.by != "group":
            raise InputError("names", "must be a list, not columns of groups, unless by='group'")
        keys: tuple[Key, ...] = (None,)
        if self.disjoint:
            keys = self.overlap.names if self.overlap is not None else check_names("names", self.names)
        return dict.fromkeys(keys, self.alpha if self.loss is None else share_of(self.alpha, self.loss, self.bound))

    def _law(self, score: str | None) -> Candidates | Spread:
        """The candidates of a threshold: the given list, or the spread from which one is made."""
        free = self.candidates is None and self.unit is None
        if free and self.mechanism == "pcoqs-published":
            return published_candidates()
        if self.loss is not None and (kind := kind_asked(score)).name == "lac":
            return kind.choose_candidates(self.candidates)
        if free and self.mechanism != "slopes":
            return score_kind(score).candidates()
        return score_kind(score).choose_candidates(self.candidates, self.unit)


def share_of(risk: Level, loss: str, bound: float) -> Fraction:
    """The level of a threshold for risk control: the admissible expected loss, relative to the bound of the loss.

    Raises
    ------
    InputError, InputTypeError
        If the bound is not a positive number, or the risk is not between 0 and the bound.
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
    """The level of each side: half of the interval's level, or the given pair."""
    if not isinstance(alpha, tuple):
        return [exact_level("alpha", alpha) / 2] * 2
    if len(alpha) != 2:
        raise InputError(
            "alpha", "must be one level, or a pair of levels for the lower and the upper side", got=str(len(alpha))
        )
    levels = [exact_level("alpha", side) for side in alpha]
    if sum(levels) >= 1:
        raise InputError("alpha", "must sum to less than one")
    return levels


def joined(lists: Iterable[Candidates]) -> Candidates:
    """The union of candidate lists."""
    every = list(lists)
    if all(candidates is every[0] or candidates == every[0] for candidates in every):
        return every[0]
    return Candidates.of(np.unique(np.concatenate([candidates.edges for candidates in every])))


@lru_cache(maxsize=16)
def every_candidate(law: Spread, sizes: tuple[int, ...]) -> Candidates:
    """The union of the lists of these sizes: counts over it determine the counts over each list."""
    return Candidates.of(np.unique(np.concatenate([Candidates.quantiles(law, size).edges for size in sizes])))


def _candidate_list(law: Candidates | Spread, terms: Terms, n: int | None, known_later: bool) -> Candidates:
    if isinstance(law, Candidates):
        return law
    if terms.size_scale is not None or (known_later and terms.mechanism == "slopes"):
        return every_candidate(law, terms.circumstances.sizes)
    return terms.with_candidates(law, n or terms.n_typical).candidates


# Division of a budget and of a failure probability among thresholds.


def divide_budget(
    epsilon: float | None, rho: float | None, shares: Sequence[Fraction], *, replaced: bool = False
) -> list[dict[str, Any]]:
    """Keyword arguments for `calibrate`, one dictionary for each share of a budget.

    If a replaced record can change two groups, each gets half of epsilon, or a quarter of rho.
    """
    if epsilon is None and rho is None:
        return [{} for _ in shares]
    if epsilon is not None and rho is not None:
        raise InputError("epsilon", "epsilon or rho must be given, and not both")
    name, total = ("epsilon", epsilon) if epsilon is not None else ("rho", rho)
    part = Fraction(1, {"epsilon": 2, "rho": 4}[name]) if replaced else Fraction(1)
    return [{name: value} for value in split_epsilon(privacy_loss(name, total), [share * part for share in shares])]


def exact_shares(shares: Sequence[Level] | None, count: int) -> list[Fraction]:
    """Positive shares that sum to one; equal shares by default."""
    if shares is None:
        return [Fraction(1, count)] * count
    exact = [exact_level("shares", share) for share in shares] if count > 1 else [Fraction(1)]
    if len(exact) != count or sum(exact) != 1:
        raise InputError(
            "shares", f"must be {count} positive numbers that sum to one", got=f"{len(exact)}, sum {sum(exact)}"
        )
    return exact


def part_of_failure(delta: Level | None, count: int) -> Fraction | None:
    """An equal part of a failure probability; by the union bound all guarantees then hold together."""
    return None if delta is None else exact_level("delta", exact_level("delta", delta) / count)


def different_levels(alphas: Sequence[Level]) -> list[Fraction]:
    """Return distinct levels as exact fractions."""
    levels = [exact_level("alphas", alpha) for alpha in several("alphas", alphas)]
    if not levels or len(set(levels)) != len(levels):
        raise InputError(
            "alphas", "must be one or more different levels", got=f"{len(levels)}, {len(set(levels))} different"
        )
    return levels


def most_groups(columns: GroupColumns | None, groups: int) -> int:
    """The largest number of groups of one column; the number of all groups if they do not overlap."""
    return groups if columns is None else max(map(len, columns.columns.values()))


_OF_SHARES = tuple(map(critical_score, (FALSE_NEGATIVES, "missed_area")))


def kind_asked(score: str | None) -> ScoreKind:
    """The kind of score whose candidates a threshold uses: for shares of true labels that of 1 - p, as for lac."""
    return score_kind("lac" if str(score).startswith(_OF_SHARES) else score)


# The request of an earlier release, for new records: `Request(renews=...)`.
#
# A release states its own request: level, privacy loss, adjacency, selector, method, classes, groups, sides. The new
# candidates start at the earlier threshold. Part of them is spread independently of it, so that a threshold that has
# moved far costs little:
#
#     the score's own spread, threshold inside it     half of them around the earlier threshold: a warm start
#     the same, threshold +inf or at an end           spread as without an earlier release: a cold start
#     a list with another recipe                      the same list
#     your own values, or a public sample's           must be given again; the release contains only their number
#
# Every threshold of a release starts from its own predecessor. The earlier thresholds are public, so the new release
# has no additional cost. Its coverage guarantee holds for records that were in none of the earlier releases, and with
# a cold start for all records (docs/theory-after-release.md).


_KINDS = (
    Calibration, LevelCalibration, GroupCalibration, OverlappingCalibration, SidesCalibration, RiskCalibration,
)  # fmt: skip

_AT_AN_END: Mapping[str, tuple[float, ...]] = {
    "probability": (0.0, 1.0), "margin": (-1.0, 1.0), "mass": (0.0, 1.0), "penalised": (0.0, 1.0), "rank": (),
    "residual": (0.0,), "signed": (0.0,),
}  # fmt: skip
"""Thresholds around which no list can be centred, by the kind of spread; scores of unknown range have none."""

_TWICE_ROUNDED = 1e-14


def read_again(request: Request, previous: Release) -> dict[str, Any]:
    """Read the request of an earlier release, as fields of a request that renews it.

    Parameters
    ----------
    request
        The new choices: another budget, candidates that the release does not contain, slopes, metadata, a cold start.
    previous
        A release of `calibrate` or a related function.

    Raises
    ------
    InputError, InputTypeError
        If the release cannot be renewed in this way.
    """
    _check_renewable(previous)
    if not isinstance(request.cold, bool):
        raise InputTypeError("cold", "must be True or False", got=type(request.cold).__name__)
    old = _by_key(previous)
    groups = most_groups(previous.overlap, len(old)) if previous.disjoint else 1
    new_choices = {"slopes": request.slopes, "rise": request.rise, "shift": request.shift}
    parts: dict[Key, ThresholdRequest] = {}
    for (key, part), budget in zip(old.items(), _budgets(previous, old, request), strict=True):
        predecessor = Predecessor(previous.checksum, part.threshold, previous.privacy.epsilon, part.about.get("date"))
        model = part.fingerprint if request.fingerprint is None else request.fingerprint
        words = Metadata.stated(part.classes, request.about, (*part.predecessors, predecessor), fingerprint=model)
        choices = _choices(part) | budget | new_choices | {"population": part.population}
        choices["n_typical"] = _typical(request, part)
        check_combinations(choices)
        law = _law(part, request.cold, request.candidates)
        listed = isinstance(law, Candidates)
        terms = Terms.partial(listed=listed, groups=groups, longest=request.longest, **choices)
        if part.size is not None and terms.size_scale is not None and request.epsilon is None and request.rho is None:
            terms = replace(terms, size_scale=part.size.scale)  # epsilon does not determine its share of a zCDP loss
        parts[key] = ThresholdRequest(None if previous.by == "level" else key, part.score, terms, law, words)
    first = previous.first
    fields: dict[str, Any] = {"parts": parts, "by": None if previous.by == "loss" else previous.by}
    fields |= {"population": first.population, "records_per_person": first.privacy.records_per_person}
    if isinstance(previous, GroupCalibration):
        fields |= {"neighbors": previous.neighbors, "names": previous.overlap or ()}
    if previous.bounded is not None:
        fields |= dict(zip(("loss", "bound"), previous.bounded, strict=True))
    return fields


def _typical(request: Request, part: Calibration) -> int | None:
    """`n_typical` of a renewal: the stated one, else the design of the earlier noisy number, else a new number."""
    if request.n_typical is not None or part.size is None or request.cold:
        return request.n_typical
    return part.size.design_for  # it is public, so that reusing it costs nothing


def _check_renewable(previous: Release) -> None:
    """Reject everything but a release of one owner's records."""
    if type(previous) in _KINDS:
        return
    if isinstance(previous, NoisyLabelCalibration):
        raise InputTypeError(
            "previous",
            "must be a release of records that you may read",
            remedy=(
                "To renew a release of randomised labels, calibrate on the randomised labels of new records "
                "(calibrate_noisy_labels, --label-epsilon)"
            ),
        )
    if isinstance(previous, CountsCalibration):
        remedy = "Calibrate on new counts (calibrate_counts, --noisy-counts)"
        raise InputTypeError("previous", "must be a release of records that were counted here", remedy=remedy)
    if isinstance(previous, _KINDS):
        raise InputTypeError(
            "previous",
            "must be a release of one owner's records",
            remedy=(
                f"This {type(previous).__name__} is of several silos, which must renew it together: send them a "
                "new plan (`confide federated plan`), or calibrate your own records alone"
            ),
        )
    raise InputTypeError(
        "previous",
        "must be a release of calibrate or a related function, as confide.load returns it",
        got=type(previous).__name__,
    )


def _by_key(previous: Release) -> dict[Key, Calibration]:
    """Thresholds by the keys of a request: for sides their scores, for a single one None."""
    if previous.by == "side":
        return {part.score: part for part in previous.parts.values()}
    return {None: previous.first} if previous.by in (None, "loss") else dict(previous.parts)


def _choices(part: Calibration) -> dict[str, Any]:
    """The choices of a threshold, without its budget."""
    privacy, guarantee = part.privacy, part.guarantee
    method = "slopes" if part.mechanism is None else part.mechanism.name
    choices: dict[str, Any] = {
        "alpha": part.alpha,
        "mechanism": method,
        "neighbors": privacy.neighbors,
        "records_per_person": privacy.records_per_person,
        "n_min": guarantee.n_min or 1,
    }
    if method == "slopes":
        choices["delta"] = guarantee.delta
        choices["selector"] = None if privacy.rho is None else "exponential"
    return choices


def _budgets(previous: Release, parts: Mapping[Any, Calibration], request: Request) -> list[dict[str, Any]]:
    """The budget of each threshold: what it spent before, or its share of a new budget."""
    epsilon, rho = request.epsilon, request.rho
    # If a published method claims another privacy loss than it has, the claimed one was requested.
    if epsilon is None and rho is None and all(part.privacy.concentrated_only for part in parts.values()):
        return [{"rho": _as_typed(part.privacy.rho or 0.0)} for part in parts.values()]
    spent = [part.privacy.claimed or own_loss(part) for part in parts.values()]
    if epsilon is None and rho is None:
        if all(math.isinf(epsilon_spent) for epsilon_spent in spent):
            return [{} for _ in spent]
        if not all(spent):
            raise InputError(
                "epsilon",
                ("must be given: previous returned +inf without reading its data, so it does not state its budget"),
            )
        return [{"epsilon": _as_typed(epsilon_spent)} for epsilon_spent in spent]
    if isinstance(previous, GroupCalibration):
        replaced = previous.neighbors == "replace_one"
        share = Fraction(1, len(previous.overlap or [1]))
        return divide_budget(epsilon, rho, [share], replaced=replaced) * len(parts)
    all_finite = all(0 < epsilon_spent < math.inf for epsilon_spent in spent)
    weights = (
        [Fraction(_as_typed(epsilon_spent)) for epsilon_spent in spent] if all_finite else [Fraction(1)] * len(spent)
    )
    return divide_budget(epsilon, rho, [weight / sum(weights) for weight in weights])


def _as_typed(epsilon: float) -> float:
    """The privacy loss as it was requested: a mechanism rounds it down, so a short decimal lies just above.

    Examples
    --------
    >>> _as_typed(3.8639999999999994), _as_typed(1 / 3)
    (3.864, 0.3333333333333333)
    """
    short = float(f"{epsilon:.9g}")
    return short if abs(short - epsilon) <= _TWICE_ROUNDED * epsilon else epsilon


def _law(part: Calibration, cold: bool, given: AnyCandidates) -> Candidates | Spread:
    """The candidates of a renewed threshold (see the comment at the head of this section)."""
    if given is None and part.mechanism is not None and part.mechanism.name == "pcoqs-published":
        return published_candidates()
    if given is not None:
        law = kind_asked(part.score).choose_candidates(given)
        if isinstance(law, Spread) and law.around is not None:
            raise InputError("candidates", "must leave out around: a renewal starts around the earlier threshold")
        return law
    recipe = dict(part.recipe)
    kind = recipe.pop("kind")
    if kind == "spread":
        default = Spread(recipe["of"], recipe.get("unit"))
        at_an_end = default.kind is None or part.threshold in _AT_AN_END.get(default.kind, (part.threshold,))
        if cold or math.isinf(part.threshold) or at_an_end:
            return default
        return replace(default, around=part.threshold, hedged=True)
    if kind == "scores":
        return score_kind(part.score).candidates()
    if kind in BUILDERS:
        return Candidates.from_recipe(part.recipe)
    raise InputError(
        "candidates",
        (f"must be given again: previous has {part.candidates} of its own, and contains only their number"),
    )
