"""The request of an earlier release, for new records: `Request(renews=...)`.

A release states its own request: level, privacy loss, adjacency, method, classes, groups, sides, and the recipe of its
candidates. The renewal repeats it and starts from none of the earlier thresholds, so that its coverage guarantee does
not depend on what was released before. Candidates of your own, or those of a public sample, must be given again,
because a release contains only their number.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Protocol

from confide.candidates import BUILDERS, AnyCandidates, Candidates, Spread, spread_of
from confide.core.calibration import Calibration, Release, kind_asked
from confide.core.fingerprint import ModelFingerprint
from confide.core.metadata import Metadata
from confide.core.needed import own_loss
from confide.core.published_counts import CountsCalibration
from confide.core.rules import check_combinations
from confide.core.several import (
    GroupCalibration,
    LevelCalibration,
    OverlappingCalibration,
    RiskCalibration,
    SidesCalibration,
)
from confide.core.terms import Budget, Terms, most_groups
from confide.errors import InputError, InputTypeError
from confide.scores import score_kind


class NewChoices(Protocol):
    """The choices of a renewal; `Request` is defined in a higher module."""

    @property
    def epsilon(self) -> float | None: ...  # noqa: D102
    @property
    def rho(self) -> float | None: ...  # noqa: D102
    @property
    def about(self) -> Mapping[str, str] | None: ...  # noqa: D102
    @property
    def fingerprint(self) -> ModelFingerprint | None: ...  # noqa: D102
    @property
    def candidates(self) -> AnyCandidates: ...  # noqa: D102
    @property
    def n_typical(self) -> int | None: ...  # noqa: D102


_KINDS = (
    Calibration, LevelCalibration, GroupCalibration, OverlappingCalibration, SidesCalibration, RiskCalibration,
)  # fmt: skip

_TWICE_ROUNDED = 1e-14


def read_again(request: NewChoices, previous: Release) -> dict[str, Any]:
    """Read the request of an earlier release, as fields of a request that renews it.

    Parameters
    ----------
    request
        The new choices: another budget, candidates that the release does not contain, metadata.
    previous
        A release of `calibrate` or a related function.

    Raises
    ------
    InputError, InputTypeError
        If the release cannot be renewed in this way.
    """
    _check_renewable(previous)
    old = _by_key(previous)
    groups = most_groups(previous.overlap, len(old)) if previous.disjoint else 1
    terms: dict[Any, Terms] = {}
    for (key, part), budget in zip(old.items(), _budgets(previous, old, request), strict=True):
        choices = _choices(part)
        choices["n_typical"] = request.n_typical
        check_combinations(choices | vars(budget) | {"population": part.population})
        terms[key] = Terms.of(
            part.alpha,
            _spread(part, request.candidates),
            budget,
            score=part.score,
            population=part.population,
            groups=groups,
            **choices,
        )
        sized = part.size is not None and terms[key].size_scale is not None
        if sized and request.epsilon is None and request.rho is None and part.size is not None:
            # epsilon does not determine its share of a zCDP loss
            terms[key] = replace(terms[key], size_scale=part.size.scale)
    first = previous.first
    model = first.fingerprint if request.fingerprint is None else request.fingerprint
    words = Metadata.stated(first.classes, request.about, previous.checksum, fingerprint=model)
    fields: dict[str, Any] = {"terms": terms, "words": words, "by": None if previous.by == "loss" else previous.by}
    fields |= {"population": first.population, "records_per_person": first.privacy.records_per_person}
    if isinstance(previous, GroupCalibration):
        fields |= {"neighbors": previous.neighbors, "names": previous.overlap or ()}
    if previous.bounded is not None:
        fields |= dict(zip(("loss", "bound"), previous.bounded, strict=True))
    return fields


def _check_renewable(previous: Release) -> None:
    """Reject everything but a release of one owner's records."""
    if type(previous) in _KINDS:
        return
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


def _by_key(previous: Release) -> dict[Any, Calibration]:
    """Thresholds by the keys of a request: for sides their scores, for a single one None."""
    if previous.by == "side":
        return {part.score: part for part in previous.parts.values()}
    return {None: previous.first} if previous.by in (None, "loss") else dict(previous.parts)


def _choices(part: Calibration) -> dict[str, Any]:
    """The choices of a threshold, without its budget."""
    privacy, guarantee = part.privacy, part.guarantee
    method = "slopes" if part.mechanism is None else part.mechanism.name
    choices: dict[str, Any] = {
        "mechanism": method,
        "neighbors": privacy.neighbors,
        "records_per_person": privacy.records_per_person,
        "n_min": guarantee.n_min or 1,
    }
    if method == "slopes":
        choices["delta"] = guarantee.delta
    return choices


def _budgets(previous: Release, parts: Mapping[Any, Calibration], request: NewChoices) -> list[Budget]:
    """The budget of each threshold: what it spent before, or its share of a new budget."""
    epsilon, rho = request.epsilon, request.rho
    # If a published method claims another privacy loss than it has, the claimed one was requested.
    spent = [part.privacy.claimed or own_loss(part) for part in parts.values()]
    if epsilon is None and rho is None:
        if all(math.isinf(epsilon_spent) for epsilon_spent in spent):
            return [Budget() for _ in spent]
        if not all(spent):
            raise InputError(
                "epsilon",
                ("must be given: previous returned +inf without reading its data, so it does not state its budget"),
            )
        return [Budget(_as_typed(epsilon_spent)) for epsilon_spent in spent]
    if isinstance(previous, GroupCalibration):
        replaced = previous.neighbors == "replace_one"
        share = Fraction(1, len(previous.overlap or [1]))
        return Budget(epsilon, rho).divided([share], replaced=replaced) * len(parts)
    all_finite = all(0 < epsilon_spent < math.inf for epsilon_spent in spent)
    weights = (
        [Fraction(_as_typed(epsilon_spent)) for epsilon_spent in spent] if all_finite else [Fraction(1)] * len(spent)
    )
    return Budget(epsilon, rho).divided([weight / sum(weights) for weight in weights])


def _as_typed(epsilon: float) -> float:
    """The privacy loss as it was requested: a mechanism rounds it down, so a short decimal lies just above.

    Examples
    --------
    >>> _as_typed(3.8639999999999994), _as_typed(1 / 3)
    (3.864, 0.3333333333333333)
    """
    short = float(f"{epsilon:.9g}")
    return short if abs(short - epsilon) <= _TWICE_ROUNDED * epsilon else epsilon


def _spread(part: Calibration, given: AnyCandidates) -> Candidates | Spread:
    """The candidates of a renewed threshold (see the head of this module)."""
    if given is not None:
        return kind_asked(part.score).choose_candidates(given)
    kind = part.recipe["kind"]
    if kind == "spread":
        return replace(spread_of(part.recipe), around=None)
    if kind == "scores":
        return score_kind(part.score).candidates()
    if kind in BUILDERS:
        return Candidates.from_recipe(part.recipe)
    raise InputError(
        "candidates",
        (f"must be given again: previous has {part.candidates} of its own, and contains only their number"),
    )
