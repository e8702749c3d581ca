"""The number of records that a release requires, computed from its request, the same for all entry points.

It is that of `confide.plan`, from public choices alone. If the number of records is secret, it reveals nothing about
it.
"""

from dataclasses import replace

from confide.candidates import BUILDERS, Candidates, OwnCandidates
from confide.core.design import Design
from confide.core.expected import needed_text
from confide.core.keys import Key
from confide.core.plan import Plan, records_for
from confide.core.request import Request
from confide.core.statement import Thresholds
from confide.core.terms import NUMBERED, Terms, typical_of_groups
from confide.core.threshold import Threshold
from confide.guarantee import LongRun
from confide.support import MOST_CANDIDATES, Facts


def candidates_of(part: Threshold) -> Candidates:
    """The candidates of a threshold, for statements about typical scores; of your own values only the number is known.

    Examples
    --------
    >>> import confide, numpy as np
    >>> scores = np.random.default_rng(0).random(500)
    >>> candidates_of(confide.calibrate(scores, 0.1, 1.0, candidates=Candidates.unit(50)).only)
    Candidates.unit(size=50, spacing='uniform')
    """
    if part.recipe.get("kind") in BUILDERS:
        return Candidates.from_recipe(part.recipe)
    return Candidates.unit(min(part.candidates, MOST_CANDIDATES))


def terms_of(release: Thresholds) -> dict[Key, Terms]:
    """The terms of the thresholds whose number of required records is known.

    It is not for published methods, one candidate, and after a correction.
    """
    request = release.request
    if not isinstance(request, Request):
        return {}
    return {
        key: _with_candidates(request.terms[key], part)
        for key, part in release.parts.items()
        if request.terms[key].mechanism in NUMBERED and part.candidates > 1 and not isinstance(part.guarantee, LongRun)
    }


def _with_candidates(terms: Terms, part: Threshold) -> Terms:
    return replace(terms, spread=candidates_of(part)) if isinstance(terms.spread, OwnCandidates) else terms


def plan_of(release: Thresholds) -> Plan:
    """The plan of a release with one threshold, by slopes."""
    (terms,), (part,) = terms_of(release).values(), release.parts.values()
    n = records_of_design(part)
    return Plan(Design(terms, n, candidates_of(part), part.mechanism, part.guarantee, part.privacy), n)


def records_of_design(part: Threshold) -> int:
    """The public number of records, or the secret one of the design: for the noisy number, or a guess."""
    if part.n is not None:
        return part.n
    n_min = part.guarantee.n_min or 1
    return typical_of_groups(1, n_min) if part.size is None else max(n_min, part.size.design_for)


def records_needed(release: Thresholds, key: Key = None) -> int | None:
    """About the required number of records, as in `confide.plan`; None for published methods, and without one.

    Parameters
    ----------
    release
        A release.
    key
        One of its keys; by default the threshold that needs most.

    Examples
    --------
    >>> import confide
    >>> released = confide.calibrate([0.5] * 500, 0.1, 1.0, score="absolute_residual")
    >>> records_needed(released), confide.plan(0.1, 1.0, score="absolute_residual").records_needed
    (208, 208)
    """
    known = terms_of(release)
    some = known if key is None else {key: known[key]} if key in known else {}
    return max(map(records_for, some.values()), default=None)


def needed_facts(release: Thresholds, each: str = "") -> Facts:
    """A printable fact: the number for the most demanding threshold; `each` is a phrase for what it belongs to.

    Empty for published methods, and if a public number of records suffices.

    Examples
    --------
    >>> import confide
    >>> needed_facts(confide.calibrate([0.5] * 500, 0.1, 1.0, score="lac"))
    (('records needed', 'about 162; with fewer, more than 1 calibration in 100 gives a useless threshold (+inf, ...'),)
    """
    needed = records_needed(release)
    if needed is None or any(part.n is not None and part.n >= needed for part in release.parts.values()):
        return ()
    return (("records needed", needed_text(needed, each)),)
