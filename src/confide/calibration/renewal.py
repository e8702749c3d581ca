"""An earlier release's request, put again to new records: what it was, and the candidates that it is asked over now.

What was asked is read off the release, which states all of it: level, loss, relation, selector, method, classes,
groups, sides. Candidates begin where the earlier threshold was found, hedged, so that a threshold that has moved far
costs little:

    the score's own spread, threshold inside it     half of them around the earlier threshold: a warm start
    the same, threshold +inf or at an end           spread as if there were none: a cold start
    a list of another recipe                        the same list
    values of one's own, or a public sample's       have to be given again, for the release only knows how many

Every threshold of a release starts for itself, from its own predecessor. The earlier thresholds are public, so that the
new release costs what any costs; its promise is for records that were in none of the earlier ones, and with a cold
start for any (docs/theory-after-release.md).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from confide.calibration.groups import payers_of, warned
from confide.calibration.levels import nested
from confide.calibration.priced import PricedRelease
from confide.calibration.shares import divide_budget, typical_of_groups
from confide.calibration.sides import SIDES, suited_for_sides
from confide.calibration.suited import suited_candidates, suited_for_levels
from confide.calibration.threshold import price_threshold
from confide.candidates import BUILDERS, AnyCandidates, Candidates, Spread
from confide.errors import InputError, InputTypeError
from confide.mechanisms import published_candidates
from confide.planning import Population
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
    critical_score,
)
from confide.scores import score_kind

_KINDS = (Calibration, LevelCalibration, GroupCalibration, SidesCalibration, RiskCalibration)
_AT_AN_END: Mapping[str, tuple[float, ...]] = {
    "probability": (0.0, 1.0), "margin": (-1.0, 1.0), "mass": (0.0, 1.0), "penalised": (0.0, 1.0), "rank": (),
    "residual": (0.0,), "signed": (0.0,),
}  # fmt: skip
"""Thresholds by which no list can be centred, by the kind of spread; none is for scores of which nothing is known."""

_TWICE_ROUNDED = 1e-14


@dataclass(frozen=True)
class Renewal:
    """What an earlier release asked, to be asked of new records.

    Parameters
    ----------
    previous
        The earlier release.
    parts
        Its thresholds, by what tells them apart: a level, a group, a side; None for one alone.
    asked
        The choices of each, as arguments of `price_threshold`.
    laws
        Over what each is asked now: how candidates are spread, or a list.
    """

    previous: Release
    parts: Mapping[Any, Calibration]
    asked: Mapping[Any, dict[str, Any]]
    laws: Mapping[Any, Candidates | Spread]

    @classmethod
    def of(
        cls,
        previous: Release,
        *,
        epsilon: float | None = None,
        rho: float | None = None,
        n_typical: int | None = None,
        cold: bool = False,
        candidates: AnyCandidates = None,
        **options: Any,
    ) -> "Renewal":
        """Read the request off a release.

        Parameters
        ----------
        previous
            One that calibrate and its kin made.
        epsilon, rho
            Another budget of the whole, divided as the earlier one was; by default that one.
        n_typical
            As in `confide.plan`.
        cold
            Candidates that do not depend on the earlier thresholds.
        candidates
            As in `calibrate`, to spread them anew; for lists that the release does not hold: the list again.
        **options
            `slopes`, `rise` and `shift`, as in `confide.plan`: a release does not say which were asked for.

        Raises
        ------
        InputError, InputTypeError
            If the release cannot be renewed so.

        Examples
        --------
        >>> import confide
        >>> first = confide.calibrate(np.linspace(0, 1, 2000), 0.1, 1.0, score="lac")
        >>> renewal = Renewal.of(first)
        >>> renewal.asked[None]["epsilon"], renewal.laws[None].around == first.threshold
        (1.0, True)
        """
        if type(previous) not in _KINDS:
            if isinstance(previous, NoisyLabelCalibration):
                raise InputTypeError(
                    "previous must be a release of records that whoever calibrates may see; one of randomised labels "
                    "is renewed by calibrating on the randomised labels of new records (calibrate_noisy_labels, "
                    "--label-epsilon)"
                )
            if isinstance(previous, _KINDS):
                raise InputTypeError(
                    f"previous must be a release of one owner's records; this {type(previous).__name__} is of several "
                    "silos, which renew it together: send them a new plan (`confide federated plan`), or calibrate "
                    "your own records alone"
                )
            raise InputTypeError(
                "previous must be a release of calibrate or its kin, as confide.load reads them; found "
                f"{type(previous).__name__}"
            )
        if not isinstance(cold, bool):
            raise InputTypeError(f"cold must be True or False; found {type(cold).__name__}")
        if unknown := sorted(set(options) - {"slopes", "rise", "shift"}):
            raise InputError(f"options must be slopes, rise or shift; found {', '.join(unknown)}")
        parts = _parts(previous)
        budgets = _budgets(previous, parts, epsilon, rho)
        if isinstance(previous, GroupCalibration) and n_typical is None:
            n_typical = typical_of_groups(len(parts), max(part.guarantee.n_min or 1 for part in parts.values()))
        more = {**options, "n_typical": n_typical}
        asked = {
            name: _asked(part) | budget | more for (name, part), budget in zip(parts.items(), budgets, strict=True)
        }
        laws = {name: _law(part, cold, candidates) for name, part in parts.items()}
        return cls(previous, parts, asked, laws)

    @property
    def public_n(self) -> bool:
        """Whether the number of records is public."""
        first = next(iter(self.parts.values()))
        return first.privacy.neighbors == "replace_one" and not isinstance(self.previous, GroupCalibration)

    @property
    def population(self) -> Population | None:
        """The population that the promise is for, where it is a known shift away."""
        return next(iter(self.parts.values())).population

    @property
    def records_per_person(self) -> int:
        """How many records of one person count at most."""
        return next(iter(self.parts.values())).privacy.records_per_person

    @property
    def warm(self) -> tuple[Any, ...]:
        """The names of the thresholds that start around their predecessor."""
        return tuple(name for name, law in self.laws.items() if isinstance(law, Spread) and law.around is not None)

    @property
    def counted(self) -> dict[Any, Any]:
        """From the name of a threshold to that of the records that it is for: a group, the score of a side, or None."""
        own = isinstance(self.previous, GroupCalibration | SidesCalibration)
        return {name: name if own else None for name in self.parts}

    def candidates(self, n: int | None, *, known_later: bool = False) -> dict[Any, Candidates]:
        """The candidates of each threshold; n and known_later as in `suited_candidates`."""
        several = isinstance(self.previous, LevelCalibration | SidesCalibration)
        if several and not self.warm and (shared := self._shared(n, known_later)):
            return dict.fromkeys(self.parts, shared)
        return {
            name: suited_candidates(law, part.score, n=n, known_later=known_later, **self.asked[name])
            for (name, part), law in zip(self.parts.items(), self.laws.values(), strict=True)
        }

    def counted_over(self, n: int | None, *, known_later: bool = False) -> Candidates:
        """One list that has all of these: counts over it are counts over each."""
        lists = list(self.candidates(n, known_later=known_later).values())
        if all(one == lists[0] for one in lists):
            return lists[0]
        return Candidates.of(np.unique(np.concatenate([one.edges for one in lists])))

    def price(
        self,
        n: int | None,
        *,
        about: Mapping[str, str] | None = None,
        partition: str | None = None,
        ledger: Any = None,
        dataset: Any = None,
        again: bool = False,
    ) -> PricedRelease:
        """The release, priced; each threshold sees counts of its own, over its own candidates, by its name.

        `partition` is the name of the division into groups, for the ledger; the rest is as in `calibrate`.
        """
        if isinstance(self.previous, GroupCalibration):
            payers = payers_of(self.parts, ledger, dataset, partition)
        elif partition is not None:
            raise InputError("partition must be left out: the release has no groups")
        else:
            paid = {"ledger": ledger, "dataset": dataset}
            payers = {name: {key: value for key, value in paid.items() if value is not None} for name in self.parts}
        lists, checksum, total = self.candidates(n), self.previous.checksum, self.previous.privacy.epsilon
        priced = {}
        for name, part in self.parts.items():
            said = Predecessor(checksum, part.threshold, total, part.about.get("date"))
            own = {"score": part.score, "classes": part.classes, "about": about, "again": again, **payers[name]}
            line = (*part.predecessors, said)
            terms = price_threshold(**self.asked[name], n=n, candidates=lists[name], predecessors=line, **own)
            priced[name] = (name, terms)
        return PricedRelease(priced, self._assemble(lists), warns_together=isinstance(self.previous, GroupCalibration))

    def _assemble(self, lists: Mapping[Any, Candidates]) -> Callable[[Mapping[Any, Calibration]], Any]:
        """From new thresholds to a release of the kind of the earlier one."""
        match self.previous:
            case LevelCalibration():
                return partial(nested, candidates=lists)
            case GroupCalibration(by, neighbors):
                return lambda drawn: warned(GroupCalibration(by, neighbors, drawn))
            case SidesCalibration():
                return lambda drawn: SidesCalibration(*(drawn[side] for side in SIDES))
            case RiskCalibration(loss, bound):
                return lambda drawn: RiskCalibration(loss, bound, drawn[None])
        return lambda drawn: drawn[None]

    def _shared(self, n: int | None, known_later: bool) -> Candidates | None:
        """What a cold start of levels or sides counts over, as their first release; None if their laws are several."""
        laws = list(self.laws.values())
        if any(law != laws[0] for law in laws):
            return None
        terms = dict(next(iter(self.asked.values())))
        score = next(iter(self.parts.values())).score
        del terms["alpha"]
        for key in {"epsilon", "rho"} & set(terms):
            terms[key] = sum(one[key] for one in self.asked.values())
        terms["known_later"] = known_later
        if terms.get("delta") is not None:
            terms["delta"] = len(laws) * Fraction(terms["delta"]).limit_denominator(10**6)
        alphas = [part.alpha for part in self.parts.values()]
        if isinstance(self.previous, LevelCalibration):
            return suited_for_levels(laws[0], score, alphas, n=n, **terms)
        return suited_for_sides(laws[0], (alphas[0], alphas[1]), terms.pop("epsilon", None), n, **terms)


def _parts(previous: Release) -> dict[Any, Calibration]:
    match previous:
        case LevelCalibration() | GroupCalibration():
            return dict(previous.parts)
        case SidesCalibration():
            return dict(zip(SIDES, (previous.low, previous.high), strict=True))
        case RiskCalibration():
            return {None: previous.calibration}
    assert isinstance(previous, Calibration)
    return {None: previous}


def _asked(part: Calibration) -> dict[str, Any]:
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
    if part.population is not None:
        asked["population"] = part.population
    if method == "slopes":
        asked["delta"] = guarantee.delta
        asked["selector"] = "permute_and_flip" if privacy.rho is None else "exponential"
    return asked


def _budgets(
    previous: Release, parts: Mapping[Any, Calibration], epsilon: float | None, rho: float | None
) -> list[dict[str, Any]]:
    """What each threshold may spend: what it spent, or its share of another budget."""
    # Of the published method that claims another loss than it has, the claimed one was asked for.
    if epsilon is None and rho is None and all(part.privacy.concentrated_only for part in parts.values()):
        return [{"rho": _as_typed(part.privacy.rho or 0.0)} for part in parts.values()]
    spent = [part.privacy.claimed or part.privacy.epsilon for part in parts.values()]
    if epsilon is None and rho is None:
        if all(math.isinf(one) for one in spent):
            return [{} for _ in spent]
        if not all(spent):
            raise InputError(
                "epsilon must be given: previous answered +inf without touching its data, so it does not say what it "
                "might have spent"
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
        of_shares = tuple(map(critical_score, (FALSE_NEGATIVES, "missed_area")))  # thresholds of 1 - p, as those of lac
        law = score_kind("lac" if str(part.score).startswith(of_shares) else part.score).asked(given)
        if isinstance(law, Spread) and law.around is not None:
            raise InputError("candidates must leave out around: a renewal starts around its predecessor by itself")
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
        f"candidates must be given again: previous has {part.candidates} of its own, and only their number is in it"
    )
