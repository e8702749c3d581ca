"""What is asked of records, whole, and checked once where it is made: the promise, the loss, and by which choices.

A release has one threshold, or one for each of several levels, groups, classes or sides. Each of them is a
`ThresholdRequest`: which counts it sees, of which score, its own share of the loss and of the failure probability, and
over what it is asked. What does not go together is said by the tables of `confide.planning.combinations`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np

from confide.calibration.parts import (
    Key,
    ThresholdRequest,
    different_levels,
    divide_budget,
    exact_shares,
    part_of_failure,
    typical_of_groups,
)
from confide.calibration.renewal import read_again
from confide.candidates import AnyCandidates, Candidates, Spread
from confide.errors import InputError
from confide.mechanisms import NEIGHBORS, MechanismName, Neighbors, published_candidates
from confide.planning import CHOICES, SIZES, Population, Terms, refuse_combinations
from confide.releases import FALSE_NEGATIVES, Release, Words, check_bound, critical_score
from confide.scores import score_kind
from confide.selection import Selector, range_of_zcdp
from confide.support import Level, check_names, exact_level, fraction_of, one_of, privacy_loss

By = Literal["level", "group", "class", "side"]
"""What tells the thresholds of one release apart."""

SIDES = ("cqr_low", "cqr_high")


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
        An earlier release whose request is put again, and whether its thresholds are not looked at: see `recalibrate`.

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
            then, see `ScoreHistogram.over`.
        """
        if self._shared is not None:
            return dict.fromkeys(self.parts, _listed(self._first.law, self._shared, n, known_later))
        return {key: _listed(part.law, part.terms, n, known_later) for key, part in self.parts.items()}

    def counted_over(self, n: int | None = None, *, known_later: bool = False) -> Candidates:
        """One list that has all of these: counts over it are counts over each."""
        lists = list(self.lists(n, known_later=known_later).values())
        if all(one == lists[0] for one in lists):
            return lists[0]
        return Candidates.of(np.unique(np.concatenate([one.edges for one in lists])))

    @cached_property
    def _first(self) -> ThresholdRequest:
        return next(iter(self.parts.values()))

    @cached_property
    def _shared(self) -> Terms | None:
        """By what the candidates of levels, or of sides, are chosen for all: the least demanding, with an even share.

        None where each has its own: a renewal that starts around earlier thresholds, and what is one alone.
        """
        parts = list(self.parts.values())
        again = self.renews is not None
        if self.by not in ("level", "side") or any(part.law != parts[0].law for part in parts):
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
            terms = Terms.unsettled(level, population=self.population, **(choices | loss))
            parts[key] = ThresholdRequest(row, score, terms, law, words)
        return parts

    def _levels(self) -> dict[Key, Any]:
        """The level of each threshold."""
        if self.by == "level":
            levels = different_levels(self.alpha)
            return dict(zip(levels, levels, strict=True))
        if self.by == "side":
            return dict(zip(SIDES, _of_both(self.alpha), strict=True))
        keys = check_names("names", self.names) if self.disjoint else (None,)
        return dict.fromkeys(keys, self.alpha if self.loss is None else share_of(self.alpha, self.loss, self.bound))

    def _law(self, score: str | None) -> Candidates | Spread:
        """Over what is asked: the list that was given, or how one is spread."""
        free = self.candidates is None and self.unit is None
        if free and self.mechanism == "pcoqs-published":
            return published_candidates()
        if self.loss is not None and self.loss.startswith((FALSE_NEGATIVES, "missed_area")):
            return score_kind("lac").asked(self.candidates)  # thresholds of 1 - p, as those of lac
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
        raise InputError(f"risk must be a number between 0 and {bound:g}, the largest loss; found {risk!r}") from None
    return exact_level("risk / bound", share)


def _of_both(alpha: Any) -> list[Fraction]:
    """The level of each side: half of the interval's, or its own."""
    if not isinstance(alpha, tuple):
        return [exact_level("alpha", alpha) / 2] * 2
    if len(alpha) != 2:
        raise InputError(
            f"alpha must be one level, or a pair of those of the lower and the upper side; found {len(alpha)}"
        )
    levels = [exact_level("alpha", side) for side in alpha]
    if sum(levels) >= 1:
        raise InputError("alpha of both sides must sum to less than one")
    return levels


def _listed(law: Candidates | Spread, terms: Terms, n: int | None, known_later: bool) -> Candidates:
    if isinstance(law, Candidates):
        return law
    if known_later and terms.mechanism == "slopes":
        return Candidates.of(np.unique(np.concatenate([Candidates.quantiles(law, size).edges for size in SIZES])))
    return terms.over(law, n or terms.n_typical).candidates
