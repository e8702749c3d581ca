"""What is requested of a release: one value with all public parameters, and its division among thresholds.

A release has one threshold, or one for each of several levels, groups, classes or sides. `Request.terms` has the
`Terms` of each: its level, its shares of the budget and of the failure probability, its candidates. The tables of
`confide.core.rules` list invalid combinations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, TypeAlias

from confide.arrays import GroupColumns
from confide.candidates import AnyCandidates, Candidates, Spread
from confide.core.calibration import Release, critical_score, kind_asked
from confide.core.design import Design, design, longest_list
from confide.core.fingerprint import ModelFingerprint
from confide.core.metadata import Metadata
from confide.core.population import Population
from confide.core.renewal import read_again
from confide.core.rules import check_combinations
from confide.core.several import check_bound
from confide.core.terms import Budget, Terms, most_groups
from confide.errors import InputError
from confide.mechanisms import NEIGHBORS, Chosen, MechanismName, Neighbors
from confide.scores import score_kind
from confide.support import Level, check_names, exact_level, fraction_of, one_of, several

Key: TypeAlias = Any
"""The key of a threshold: None for a single one, a level, a group, a class, or the score of a side."""

By = Literal["level", "group", "class", "side"]
"""The property that distinguishes the thresholds of a release."""

SIDES = ("cqr_low", "cqr_high")


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
    renews
        An earlier release whose request is repeated: see `recalibrate`.
    chosen
        The statement of a private choice of the score (`choose_score`), whose other records are calibrated.
    neighbors, n_min, n_typical, delta, records_per_person, mechanism
        The choices of each threshold: see `confide.calibrate`.

    Raises
    ------
    InputError, InputTypeError
        If a field cannot be used, or excludes another.

    Examples
    --------
    >>> request = Request(alpha=(0.1, 0.2), by="level", epsilon=1.0, score="lac")
    >>> [(str(key), terms.epsilon) for key, terms in request.terms.items()]
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
    mechanism: MechanismName = "slopes"
    renews: Release | None = None
    chosen: Chosen | None = None
    terms: Mapping[Key, Terms] = field(init=False, repr=False, compare=False)
    """The terms of each threshold, by key."""

    words: Metadata = field(init=False, repr=False, compare=False)
    """The public metadata of the release."""

    def __post_init__(self) -> None:
        check_combinations({spec.name: getattr(self, spec.name) for spec in fields(self) if spec.init})
        if self.chosen is not None and self.overlap is not None:
            why = "with a chosen score: its loss is compared with that of one threshold of each record"
            raise InputError("names", f"must be groups that divide the records {why}", got="columns of groups")
        if self.renews is not None:
            fields_read = read_again(self, self.renews)
        else:
            one_of("neighbors", self.neighbors, NEIGHBORS)
            fields_read = {"terms": self._divided(), "words": self._metadata()}
        for name, value in fields_read.items():
            object.__setattr__(self, name, value)

    @cached_property
    def disjoint(self) -> bool:
        """Whether each record belongs to one part, or to one of each column, and the sizes of the parts stay secret."""
        return self.by in ("group", "class")

    @cached_property
    def overlap(self) -> GroupColumns | None:
        """The columns of groups that overlap; None for all others."""
        return self.names if isinstance(self.names, GroupColumns) else None

    @cached_property
    def public_n(self) -> bool:
        """Whether the number of records is public; the sizes of groups and classes never are."""
        return not self.disjoint and self._first.public_n

    @cached_property
    def sized(self) -> bool:
        """Whether a noisy number of records is released first."""
        return any(terms.size_scale is not None for terms in self.terms.values())

    def row(self, key: Key) -> Key:
        """The name of the counts that a threshold uses: several levels are counted together."""
        return None if self.by == "level" else key

    @cached_property
    def rows(self) -> dict[Key, str | None]:
        """The score of each row of counts, by the name of the row."""
        return {self.row(key): terms.score for key, terms in self.terms.items()}

    def designs(self, n: int | None) -> dict[Key, Design | None]:
        """The design of each threshold for the public number of records, or a guess of it.

        None for a threshold whose design waits for a noisy number.
        """
        return {
            key: None if terms.size_scale is not None else design(terms, n or terms.n_typical)
            for key, terms in self.terms.items()
        }

    def counted_over(self, n: int | None = None) -> Candidates:
        """The candidates over which records are counted: the list of all designs, or the one that they are parts of.

        `n` is the number of records if it is public. If it is still unknown, all lists that may be chosen are parts.
        """
        known = self.designs(n) if n is not None or not self.public_n else {None: None}
        chosen = {None if design is None else design.candidates for design in known.values()}
        only = chosen.pop()
        return longest_list(self._first) if only is None or chosen else only

    @cached_property
    def _first(self) -> Terms:
        return next(iter(self.terms.values()))

    def _divided(self) -> dict[Key, Terms]:
        """The terms of each threshold."""
        levels = self._levels()
        k, budget, delta, neighbors = len(levels), Budget(self.epsilon, self.rho), self.delta, self.neighbors
        if self.disjoint:  # a replaced record may leave one part and enter another, whose sizes stay secret
            share = Fraction(1, len(self.overlap or [1]))
            budgets = budget.divided([share], replaced=neighbors == "replace_one") * k
            neighbors = "add_remove"
        elif self.by is None:
            budgets = [budget]
        else:
            budgets = budget.divided(exact_shares(self.shares, k))
            delta = part_of_failure(delta, k)
        name = self.score if self.loss is None else critical_score(self.loss)
        spread = self._spread(SIDES[0] if self.by == "side" else name)
        groups = most_groups(self.overlap, k) if self.disjoint else 1
        return {
            key: Terms.of(
                level,
                spread,
                part,
                score=key if self.by == "side" else name,
                population=self.population,
                groups=groups,
                neighbors=neighbors,
                delta=delta,
                n_min=self.n_min,
                n_typical=self.n_typical,
                records_per_person=self.records_per_person,
                mechanism=self.mechanism,
            )
            for (key, level), part in zip(levels.items(), budgets, strict=True)
        }

    def _levels(self) -> dict[Key, Any]:
        """The miscoverage level of each threshold."""
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

    def _spread(self, score: str | None) -> Candidates | Spread:
        """The list of candidates, or the spread of which a list is chosen."""
        free = self.candidates is None and self.unit is None
        if self.loss is not None and (kind := kind_asked(score)).name == "lac":
            return kind.choose_candidates(self.candidates)
        if free and self.mechanism != "slopes":
            return score_kind(score).candidates()
        return score_kind(score).choose_candidates(self.candidates, self.unit)

    def _metadata(self) -> Metadata:
        classes = None if self.by == "class" else self.classes  # keys are the names of classes
        return Metadata.stated(classes, self.about, chosen=self.chosen, fingerprint=self.fingerprint)


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
