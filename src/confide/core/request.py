"""What is requested of a release: one value with all public parameters, and its division among thresholds.

`Request.terms` has the `Terms` of each threshold: its level, its shares of the budget and of the failure probability,
its candidates. The tables of `confide.core.rules` list invalid combinations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Literal

from confide.arrays import GroupColumns
from confide.candidates import AnyCandidates, Candidates, OwnCandidates, Spread
from confide.core.budget import Budget, different_levels, exact_shares, levels_of_sides, part_of_failure
from confide.core.design import Design, design, longest_list
from confide.core.fingerprint import ModelFingerprint, check_fingerprint
from confide.core.losses import critical_score, kind_asked, share_of
from confide.core.population import ClassShift, Population, RecordWeights
from confide.core.reference_laws import law_of
from confide.core.rules import check_combinations
from confide.core.terms import NUMBERED, Terms, share_of_number, typical_of_groups
from confide.core.thresholds import SCORE_OF_SIDE, By, Key
from confide.errors import InputError, InputTypeError
from confide.mechanisms import MECHANISMS, NEIGHBORS, Chosen, MechanismName, Neighbors, Noise, PublishedHistogram
from confide.scores import score_kind
from confide.support import (
    MOST_PER_PERSON,
    MOST_RECORDS,
    Level,
    check_names,
    class_count,
    exact_level,
    fraction_of,
    one_of,
    positive_integer,
    public_classes,
    require,
)

# The keys of the metadata, and their printed names.
ABOUT = {
    "model": "model",
    "version": "version of the model",
    "outputs": "outputs of the model",
    "data": "calibration data",
    "purpose": "purpose",
    "responsible": "responsible",
    "contact": "contact",
    "date": "date",
}

# The value of `outputs` in a release that was made from columns of logits.
FROM_LOGITS = "logits; softmax in double precision"

# The longest text of the metadata.
MOST_CHARACTERS = 500


def check_about(about: Mapping[str, str] | None) -> Mapping[str, str]:
    """Validate metadata, and return them in the order of `ABOUT`, read only."""
    if about is None:
        return MappingProxyType({})
    if not isinstance(about, Mapping):
        raise InputTypeError("about", "must map keys such as 'model' to str", got=type(about).__name__)
    for key, text in about.items():
        require("about", key in ABOUT, f"must have the keys {', '.join(ABOUT)}", got=repr(key))
        if not isinstance(text, str):
            raise InputTypeError(f"about[{key!r}]", "must be a str", got=type(text).__name__)
        if not (text.strip() and len(text) <= MOST_CHARACTERS and text.isprintable()):
            must = f"must be 1 to {MOST_CHARACTERS} printable characters"
            raise InputError(f"about[{key!r}]", must, got=str(len(text)))
    return MappingProxyType({key: about[key] for key in ABOUT if key in about})


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
        The SHA-256 checksum of the earlier release that is renewed, 64 hexadecimal digits: see `recalibrate`.
    noise
        The law of the noise in counts that another engine made: see `calibrate_counts`. `epsilon` is then the privacy
        loss that their maker states.
    n_noise
        For such counts with a noisy number of records: the scale of its discrete Laplace noise.
    chosen
        The statement of a private choice of the score (`choose_score`). This request is about the records that were not
        used for the choice.
    neighbors, n_min, delta, records_per_person, mechanism
        The choices of each threshold: see `confide.calibrate`.

    Raises
    ------
    InputError, InputTypeError
        If a field cannot be used, or excludes another.

    Examples
    --------
    >>> request = Request(alpha=(0.1, 0.2), by="level", rho=0.1, score="lac")
    >>> [(str(key), round(terms.epsilon, 2)) for key, terms in request.terms.items()]
    [('1/10', 0.7), ('1/5', 0.7)]
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
    about: Any = None
    fingerprint: ModelFingerprint | None = None
    candidates: AnyCandidates | OwnCandidates = None
    unit: float | None = None
    neighbors: Neighbors = "add_remove"
    n_min: int = 1
    delta: Level | None = None
    records_per_person: int = 1
    mechanism: MechanismName = "slopes"
    renews: str | None = None
    chosen: Chosen | None = None
    noise: Noise | None = None
    n_noise: float | None = None
    terms: Mapping[Key, Terms] = field(init=False, repr=False, compare=False)
    """The terms of each threshold, by key."""

    def __post_init__(self) -> None:
        # Invalid combinations, and values of another type.
        check_combinations({spec.name: getattr(self, spec.name) for spec in fields(self) if spec.init})
        if self.chosen is not None and self.overlap is not None:
            why = "with a score chosen by choose_score: the release states the larger loss of choice and threshold"
            raise InputError("names", f"must be one list of disjoint groups {why}", got="columns of groups")
        one_of("neighbors", self.neighbors, NEIGHBORS)
        if self.chosen is not None and not isinstance(self.chosen, Chosen):
            raise InputTypeError(
                "chosen", "must be of type Chosen, as choose_score states its choice", got=type(self.chosen).__name__
            )
        if self.renews is not None and not re.fullmatch("[0-9a-f]{64}", str(self.renews)):
            raise InputError("renews", "must be None or 64 hexadecimal digits")
        if self.population is not None and not isinstance(self.population, ClassShift | RecordWeights):
            got = type(self.population).__name__
            raise InputTypeError("population", "must be a ClassShift or RecordWeights", got=got)
        check_fingerprint(self.fingerprint)
        # The fields as a release contains them, however they were typed.
        by_class = self.by == "class"  # then the keys are the names of the classes
        classes = None if self.classes is None or by_class else public_classes("classes", self.classes)
        self._set(about=check_about(self.about), classes=classes)
        terms = self._terms()
        self._set(terms=terms, **self._exact(terms))

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    # Requests that follow from it.

    def stated(self) -> Request:
        """The request as a release states it: of candidates of your own, only their number."""
        if not isinstance(self.candidates, Candidates) or self.candidates.is_built:
            return self
        stated = copy(self)
        stated._set(candidates=OwnCandidates.of(self.candidates))
        return stated

    def at(self, key: Key) -> Request:
        """The request of one of several levels, or of one side, alone, with its share of the budget."""
        if self.joint:
            return self.at_level(key)
        terms = self.terms[key]
        budgets, delta = self._divided(len(self.terms), joint=False)
        budget = dict(zip(self.terms, budgets, strict=True))[key]
        stated = {"alpha": terms.alpha, "score": terms.score, "delta": delta, **vars(budget)}
        alone = copy(self)
        alone._set(by=None, shares=None, terms={None: terms}, **stated)
        return alone

    def at_level(self, alpha: Fraction) -> Request:
        """The request of another level, which a noisy histogram answers as well."""
        of_several = self.by == "level"
        stated = {None: self._first} if of_several else self.terms
        terms = {key: replace(each, alpha=alpha, levels=()) for key, each in stated.items()}
        another = copy(self)
        another._set(by=None if of_several else self.by, alpha=alpha, mechanism="noisy-histogram", terms=terms)
        return another

    # Its thresholds and their draws.

    @property
    def disjoint(self) -> bool:
        """Whether each record belongs to one part, or to one of each column, and the sizes of the parts stay secret."""
        return self.by in ("group", "class")

    @property
    def joint(self) -> bool:
        """Whether one noisy histogram serves all of several levels, each at the whole privacy loss (Theorem W3)."""
        return bool(self._first.levels)

    @property
    def draws(self) -> dict[Key, tuple[Key, ...]]:
        """The thresholds that each draw decides: one, or those of all levels that one noisy histogram serves."""
        return {None: tuple(self.terms)} if self.joint else {key: (key,) for key in self.terms}

    @property
    def overlap(self) -> GroupColumns | None:
        """The columns of groups that overlap; None for all others."""
        return self.names if isinstance(self.names, GroupColumns) else None

    @property
    def public_n(self) -> bool:
        """Whether the number of records is public; the sizes of groups and classes never are."""
        return not self.disjoint and self._first.public_n

    # How its records are counted.

    def row(self, key: Key) -> Key:
        """The name of the counts that a threshold uses: several levels are counted together, sides by their score."""
        if self.by == "level":
            return None
        return SCORE_OF_SIDE[key] if self.by == "side" else key

    @property
    def rows(self) -> dict[Key, str | None]:
        """The score of each row of counts, by the name of the row."""
        return {self.row(key): terms.score for key, terms in self.terms.items()}

    def designs(self, n: int | None) -> dict[Key, Design | None]:
        """The design of each threshold for a public number of records, or for a guess of a secret one.

        It is None for a threshold whose design follows from a noisy number of records, which is drawn later.
        """
        return {
            key: None if terms.size_scale is not None else design(terms, n or terms.guess)
            for key, terms in self.terms.items()
        }

    def counted_over(self, n: int | None = None) -> Candidates:
        """The candidates over which records are counted: the list of all designs, or one that contains their lists.

        `n` is the number of records if it is public. If `n` is still unknown, the result contains every list that a
        design can have.
        """
        if n is None and self.public_n:
            return longest_list(self._first)
        lists = {None if design is None else design.candidates for design in self.designs(n).values()}
        only = lists.pop() if len(lists) == 1 else None
        return longest_list(self._first) if only is None else only

    @property
    def _first(self) -> Terms:
        return next(iter(self.terms.values()))

    # Its division among thresholds.

    def _terms(self) -> dict[Key, Terms]:
        """The terms of each threshold, validated."""
        # The level and the budget of each.
        levels = self._levels()
        joint = self.by == "level" and self._is_joint()
        budgets, delta = self._divided(len(levels), joint=joint)

        # What all have in common.
        first_score = self._score_of(next(iter(levels)))
        mechanism = self._mechanism(joint=joint)
        n_min = positive_integer("n_min", self.n_min, most=MOST_RECORDS)
        neighbors = self._neighbors(mechanism)
        spread = self._spread(first_score)
        guess = typical_of_groups(self._most_groups(len(levels)), n_min)
        failure = None if delta is None else float(exact_level("delta", delta))
        records = positive_integer("records_per_person", self.records_per_person, most=MOST_PER_PERSON)
        largest = kind_asked(first_score).largest(None if self.classes is None else class_count(self.classes))

        # The share of a secret number of records in each budget.
        share_of_noise = None
        if neighbors == "add_remove" and mechanism in NUMBERED:
            share_of_noise = share_of_number(mechanism, failure, self.population)

        # The terms of each, with the noise of its number of records.
        terms = {}
        for (key, level), budget in zip(levels.items(), budgets, strict=True):
            spent = budget.spent(mechanism, records, share_of_noise)
            terms[key] = Terms(
                alpha=exact_level("alpha", level),
                score=self._score_of(key),
                epsilon=spent.epsilon,
                size_scale=spent.size_scale if self.noise is None else self.n_noise,
                spread=spread,
                neighbors=neighbors,
                n_min=n_min,
                guess=guess,
                delta=failure,
                records_per_person=records,
                mechanism=mechanism,
                population=self.population,
                choice=None if self.chosen is None else self.chosen.epsilon,
                noise=self.noise,
                largest=largest,
                levels=tuple(levels) if joint else (),
            )
        return terms

    def _levels(self) -> dict[Key, Any]:
        """The level of each threshold, as it was given or follows from the bound on a loss."""
        if self.by == "level":
            levels = different_levels(self.alpha)
            return dict(zip(levels, levels, strict=True))
        if self.by == "side":
            return dict(zip(SCORE_OF_SIDE, levels_of_sides(self.alpha), strict=True))
        if self.overlap is not None and self.by != "group":
            raise InputError("names", "must be a list, not columns of groups, unless by='group'")
        level = self.alpha if self.loss is None else share_of(self.alpha, self.loss, self.bound)
        if not self.disjoint:
            return {None: level}
        return dict.fromkeys(check_names("names", self.names) if self.overlap is None else self.overlap.names, level)

    def _divided(self, count: int, *, joint: bool) -> tuple[list[Budget], Level | None]:
        """The budget of each threshold, and the failure probability of each."""
        budget = Budget(self.epsilon, self.rho)
        if self.disjoint:
            # A replaced record may leave one part and enter another; each column has an equal share.
            share = Fraction(1, 1 if self.overlap is None else len(self.overlap))
            return budget.divided([share], replaced=self.neighbors == "replace_one") * count, self.delta
        if self.by is None or joint:
            return [budget] * count, self.delta
        return budget.divided(exact_shares(self.shares, count)), part_of_failure(self.delta, count)

    def _is_joint(self) -> bool:
        """Whether one noisy histogram serves several levels, instead of a division of the budget among them.

        A histogram has no guarantee with `delta`. For a zCDP loss, and for candidates over many orders of magnitude, a
        division of the budget needs fewer records.
        """
        divides = any(option is not None for option in (self.shares, self.delta, self.rho))
        if self.mechanism not in NUMBERED or divides:
            return False
        spread = self._spread(self.score)
        law = law_of(spread) if isinstance(spread, Candidates) else spread
        decades = isinstance(law, Spread) and law.shape.is_log_spaced and law.unit is None and not law.around
        return self.mechanism == "noisy-histogram" or not decades

    def _mechanism(self, *, joint: bool) -> MechanismName | Literal["published-counts"]:
        requested = one_of("mechanism", self.mechanism, MECHANISMS)
        if joint:
            return "noisy-histogram"
        return requested if self.noise is None else PublishedHistogram.name

    def _neighbors(self, mechanism: str) -> Neighbors:
        """The adjacency of each threshold: the sizes of groups stay secret."""
        if mechanism == "none":
            return "replace_one"
        return "add_remove" if self.disjoint else self.neighbors

    def _most_groups(self, count: int) -> int:
        """The largest number of groups among which the records are divided, for so many thresholds."""
        if not self.disjoint:
            return 1
        return count if self.overlap is None else max(map(len, self.overlap.columns.values()))

    def _score_of(self, key: Key) -> str | None:
        if self.by == "side":
            return SCORE_OF_SIDE[key]
        return self.score if self.loss is None else critical_score(self.loss)

    def _spread(self, score: str | None) -> Candidates | Spread | OwnCandidates:
        if isinstance(self.candidates, OwnCandidates):
            return self.candidates
        # Critical thresholds of shares are spread as the scores of `lac` are, and a published method has a fixed list.
        if self.loss is not None and (kind := kind_asked(score)).name == "lac":
            return kind.choose_candidates(self.candidates)
        if self.candidates is None and self.unit is None and self.mechanism not in (*NUMBERED, "none"):
            return score_kind(score).candidates()
        return score_kind(score).choose_candidates(self.candidates, self.unit)

    def _exact(self, terms: Mapping[Key, Terms]) -> dict[str, Any]:
        """The numbers and lists of the request as exact and plain values, which the terms have validated."""
        first = next(iter(terms.values()))
        if self.by == "level":
            alpha: Any = tuple(terms)
        elif isinstance(self.alpha, tuple):
            alpha = tuple(side.alpha for side in terms.values())
        else:
            alpha = fraction_of(self.alpha)
        return {
            "alpha": alpha,
            "epsilon": _float(self.epsilon),
            "rho": _float(self.rho),
            "bound": _float(self.bound),
            "n_noise": _float(self.n_noise),
            "delta": None if self.delta is None else exact_level("delta", self.delta),
            "shares": None if self.shares is None else tuple(exact_shares(self.shares, len(terms))),
            "names": tuple(terms) if self.disjoint and self.overlap is None else self.names,
            "candidates": first.spread,  # with the unit, and whatever the default of the score will be later
            "unit": None,
            "n_min": first.n_min,
            "records_per_person": first.records_per_person,
        }


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)
