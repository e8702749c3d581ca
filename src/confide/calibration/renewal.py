"""An earlier release's request, read off it, to be put to new records: `Request(renews=...)`.

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
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Protocol

from confide.calibration.parts import Key, ThresholdRequest, divide_budget, typical_of_groups
from confide.candidates import BUILDERS, AnyCandidates, Candidates, Spread
from confide.errors import InputError, InputTypeError
from confide.mechanisms import published_candidates
from confide.planning import Terms
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


class Anew(Protocol):
    """What a request that renews a release asks anew; see `Request`."""

    @property
    def epsilon(self) -> float | None: ...  # noqa: D102
    @property
    def rho(self) -> float | None: ...  # noqa: D102
    @property
    def n_typical(self) -> int | None: ...  # noqa: D102
    @property
    def slopes(self) -> tuple[int, int] | None: ...  # noqa: D102
    @property
    def rise(self) -> float | None: ...  # noqa: D102
    @property
    def shift(self) -> float | None: ...  # noqa: D102
    @property
    def candidates(self) -> AnyCandidates: ...  # noqa: D102
    @property
    def about(self) -> Mapping[str, str] | None: ...  # noqa: D102
    @property
    def cold(self) -> bool: ...  # noqa: D102


def read_again(request: Anew, previous: Release) -> dict[str, Any]:
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
        raise InputTypeError(f"cold must be True or False; found {type(request.cold).__name__}")
    old = _by_key(previous)
    typical = request.n_typical
    if previous.disjoint and typical is None:
        typical = typical_of_groups(len(old), max(part.guarantee.n_min or 1 for part in old.values()))
    anew = {"n_typical": typical, "slopes": request.slopes, "rise": request.rise, "shift": request.shift}
    parts: dict[Key, ThresholdRequest] = {}
    for (key, part), budget in zip(old.items(), _budgets(previous, old, request), strict=True):
        said = Predecessor(previous.checksum, part.threshold, previous.privacy.epsilon, part.about.get("date"))
        words = Words.stated(part.classes, request.about, (*part.predecessors, said))
        terms = Terms.unsettled(population=part.population, **(_choices(part) | budget | anew))
        law = _law(part, request.cold, request.candidates)
        parts[key] = ThresholdRequest(None if previous.by == "level" else key, part.score, terms, law, words)
    first = previous.first
    known: dict[str, Any] = {"parts": parts, "by": None if previous.by == "loss" else previous.by}
    known |= {"population": first.population, "records_per_person": first.privacy.records_per_person}
    if isinstance(previous, GroupCalibration):
        known["neighbors"] = previous.neighbors
    if previous.bounded is not None:
        known |= dict(zip(("loss", "bound"), previous.bounded, strict=True))
    return known


def _refuse_others(previous: Release) -> None:
    """Refuse what is no release of one owner's records."""
    if type(previous) in _KINDS:
        return
    if isinstance(previous, NoisyLabelCalibration):
        raise InputTypeError(
            "previous must be a release of records that whoever calibrates may see; one of randomised labels is "
            "renewed by calibrating on the randomised labels of new records (calibrate_noisy_labels, --label-epsilon)"
        )
    if isinstance(previous, _KINDS):
        raise InputTypeError(
            f"previous must be a release of one owner's records; this {type(previous).__name__} is of several silos, "
            "which renew it together: send them a new plan (`confide federated plan`), or calibrate your own records "
            "alone"
        )
    raise InputTypeError(
        "previous must be a release of calibrate or its kin, as confide.load reads them; found "
        f"{type(previous).__name__}"
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


def _budgets(previous: Release, parts: Mapping[Any, Calibration], request: Anew) -> list[dict[str, Any]]:
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
