"""The number of records that a release of its kind requires, computed from its content, the same for all entry points.

It is that of `confide.plan`, from public choices alone. If the number of records is secret, it reveals nothing about
it.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Protocol

from confide.candidates import BUILDERS, Candidates
from confide.core.choice import law_of
from confide.core.design import Design
from confide.core.expected import needed_text
from confide.core.plan import Plan, records_for
from confide.core.population import Population
from confide.core.terms import Budget, Terms, typical_of_groups
from confide.errors import ConfideError
from confide.guarantee import Guarantee
from confide.mechanisms import Mechanism, NoisySize, PrivacyStatement, Slopes, privacy_statement
from confide.support import MOST_CANDIDATES, MOST_LOSS


class Stated(Protocol):
    """The content of a release of one threshold, except the threshold; `Calibration` is defined in a higher layer."""

    @property
    def alpha(self) -> Fraction: ...  # noqa: D102
    @property
    def guarantee(self) -> Guarantee: ...  # noqa: D102
    @property
    def privacy(self) -> PrivacyStatement: ...  # noqa: D102
    @property
    def mechanism(self) -> Mechanism | None: ...  # noqa: D102
    @property
    def candidates(self) -> int: ...  # noqa: D102
    @property
    def recipe(self) -> Mapping[str, Any]: ...  # noqa: D102
    @property
    def population(self) -> Population | None: ...  # noqa: D102
    @property
    def size(self) -> NoisySize | None: ...  # noqa: D102


def candidates_of(calibration: Stated) -> Candidates:
    """The candidates of a release, for statements about typical scores; of your own values only the number is known.

    Examples
    --------
    >>> import confide, numpy as np
    >>> scores = np.random.default_rng(0).random(500)
    >>> candidates_of(confide.calibrate(scores, 0.1, 1.0, candidates=Candidates.unit(50)))
    Candidates.unit(size=50, spacing='uniform')
    """
    if calibration.recipe.get("kind") in BUILDERS:
        return Candidates.from_recipe(calibration.recipe)
    return Candidates.unit(min(calibration.candidates, MOST_CANDIDATES))


def own_loss(calibration: Stated) -> float:
    """The privacy loss per person of the threshold alone, without that of a private choice of its score.

    Examples
    --------
    >>> import confide
    >>> own_loss(confide.calibrate([0.5] * 500, 0.1, 1.0, score="lac"))
    1.0
    """
    c, scale = calibration, None if calibration.size is None else calibration.size.scale
    if not isinstance(c.mechanism, Slopes):
        return c.privacy.epsilon
    return privacy_statement(c.mechanism, c.privacy.neighbors, c.privacy.records_per_person, size=scale).epsilon


def terms_of(calibration: Stated) -> Terms:
    """The terms as far as a release states them, with the privacy loss that was spent.

    Examples
    --------
    >>> import confide
    >>> released = confide.calibrate([0.5] * 500, 0.1, 1.0, neighbors="replace_one")
    >>> terms_of(released).level
    Fraction(9, 10)
    """
    c, epsilon, candidates = calibration, own_loss(calibration), candidates_of(calibration)
    spread = law_of(candidates) if candidates.recipe["kind"] == "spread" else None
    terms = Terms.of(
        c.alpha,
        spread or candidates,
        Budget(epsilon if 0 < epsilon <= MOST_LOSS else 1.0),
        neighbors=c.privacy.neighbors,
        n_min=c.guarantee.n_min or 1,
        delta=c.guarantee.delta,
        records_per_person=c.privacy.records_per_person,
        population=c.population,
        n_typical=None if c.guarantee.n is not None else records_of_design(c),
    )
    return terms if c.size is None else replace(terms, size_scale=c.size.scale)


def records_needed(calibration: Stated) -> int | None:
    """About the required number of records, as in `confide.plan`; None for other mechanisms, and without one.

    Examples
    --------
    >>> import confide
    >>> released = confide.calibrate([0.5] * 500, 0.1, 1.0, score="absolute_residual")
    >>> records_needed(released), confide.plan(0.1, 1.0, score="absolute_residual").records_needed
    (213, 213)
    """
    plan = _plan(calibration)
    return None if plan is None else plan.records_needed


def records_needed_if_public(calibration: Stated) -> int | None:
    """The smaller number if the number of records were public (`replace_one`); None if it is, or cannot be."""
    plan = _plan(calibration)
    if plan is None or calibration.guarantee.n is not None or calibration.population is not None:
        return None
    return records_for(replace(plan.terms, neighbors="replace_one", size_scale=None), plan.design)


def most_needed(parts: Iterable[Stated]) -> int | None:
    """The largest required number of several thresholds; None if none has one."""
    return max((number for part in _unlike(parts) if (number := records_needed(part)) is not None), default=None)


def needed_facts(parts: Iterable[Stated], each: str = "") -> tuple[tuple[str, str], ...]:
    """A printable fact: the number for the most demanding threshold; `each` is a phrase for what it belongs to.

    Empty for other mechanisms, and if a public number of records suffices.

    Examples
    --------
    >>> import confide
    >>> needed_facts([confide.calibrate([0.5] * 500, 0.1, 1.0, score="lac")])
    (('records needed', 'about 118; with fewer, more than 1 calibration in 100 gives a useless threshold (+inf, ...'),)
    """
    plans = [plan for part in _unlike(parts) if (plan := _plan(part)) is not None]
    needed = [plan.records_needed for plan in plans if not plan.terms.public_n or not plan.enough_records]
    return (("records needed", needed_text(max(needed), each)),) if needed else ()


def _unlike(parts: Iterable[Stated]) -> list[Stated]:
    return list(
        {repr((part.mechanism, part.guarantee, part.privacy, dict(part.recipe))): part for part in parts}.values()
    )


def _plan(calibration: Stated) -> Plan | None:
    """The plan of a release; None for other mechanisms, and for documents that follow from no request."""
    mechanism = calibration.mechanism
    if not isinstance(mechanism, Slopes) or not math.isfinite(calibration.privacy.epsilon):
        return None
    if calibration.candidates == 1:  # +inf alone: no number suffices
        return None
    try:
        terms = terms_of(calibration)
    except ConfideError:
        return None
    n, c = records_of_design(calibration), calibration
    return Plan(Design(terms, n, candidates_of(c), c.mechanism, c.guarantee, c.privacy), n)


def records_of_design(calibration: Stated) -> int:
    """The public number of records, or the secret one of the design: for the noisy number, or a guess."""
    if calibration.guarantee.n is not None:
        return calibration.guarantee.n
    n_min = calibration.guarantee.n_min or 1
    return typical_of_groups(1, n_min) if calibration.size is None else max(n_min, calibration.size.design_for)
