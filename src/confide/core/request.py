"""The public parameters of a release, validated once on construction: level, privacy budget and all choices.

A release has one threshold, or one for each of several levels, groups, classes or sides. Each is described by a
`ThresholdRequest`: the counts that it uses, the score, its shares of the budget and of the failure probability, and its
candidates. The tables of `confide.core.rules` list invalid combinations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np

from confide.arrays import GroupColumns
from confide.candidates import AnyCandidates, Candidates, Spread
from confide.core.calibration import Release, critical_score, kind_asked
from confide.core.fingerprint import ModelFingerprint
from confide.core.metadata import Metadata
from confide.core.population import Population
from confide.core.renewal import read_again
from confide.core.rules import check_combinations
from confide.core.terms import CHOICES, Terms
from confide.core.threshold_request import (
    Key,
    ThresholdRequest,
    different_levels,
    divide_budget,
    exact_shares,
    levels_of_sides,
    most_groups,
    part_of_failure,
    share_of,
)
from confide.errors import InputError
from confide.mechanisms import NEIGHBORS, Chosen, MechanismName, Neighbors
from confide.scores import score_kind
from confide.selection import range_of_zcdp
from confide.support import Level, check_names, one_of, privacy_loss

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
    longest
        The longest list among which a design for a noisy number of records chooses, if one pass counts over few
        lists, as in a warehouse; by default there are more and longer ones.
    neighbors, n_min, n_typical, delta, records_per_person, mechanism
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
    mechanism: MechanismName = "slopes"
    renews: Release | None = None
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

        None if each threshold has its own.
        """
        parts = list(self.parts.values())
        if any(part.law != parts[0].law for part in parts):
            return None
        if all(part.terms == parts[0].terms for part in parts):
            return parts[0].terms
        if self.by not in ("level", "side"):
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
            groups = most_groups(self.overlap, k) if self.disjoint else 1
            terms = Terms.partial(level, groups=groups, **(choices | loss))
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
        if self.loss is not None and (kind := kind_asked(score)).name == "lac":
            return kind.choose_candidates(self.candidates)
        if free and self.mechanism != "slopes":
            return score_kind(score).candidates()
        return score_kind(score).choose_candidates(self.candidates, self.unit)


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
