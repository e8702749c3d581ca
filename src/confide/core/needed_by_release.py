"""The number of records that a release requires, from its request alone: it reveals nothing about a secret number."""

from dataclasses import replace

from confide.candidates import BUILDERS, Candidates, OwnCandidates
from confide.core.design import Design
from confide.core.keys import Key
from confide.core.needed import needed_text, records_for
from confide.core.plan import Plan
from confide.core.request import Request
from confide.core.terms import NUMBERED, Terms, typical_of_groups
from confide.core.threshold import Threshold
from confide.core.thresholds import Thresholds
from confide.guarantee import LongRun
from confide.support import MOST_CANDIDATES, Facts


def candidates_of(threshold: Threshold) -> Candidates:
    """The candidates of a threshold, for statements about typical scores; of your own ones only the number is known."""
    if threshold.recipe.get("kind") in BUILDERS:
        return Candidates.from_recipe(threshold.recipe)
    return Candidates.unit(min(threshold.candidates, MOST_CANDIDATES))


def terms_of(release: Thresholds) -> dict[Key, Terms]:
    """The terms of the thresholds whose number of required records is known."""
    request = release.request
    if not isinstance(request, Request):
        return {}
    known = {}
    for key, threshold in release.parts.items():
        terms = request.terms[key]
        # It is not known for published methods, one candidate, and after a correction.
        corrected = isinstance(threshold.guarantee, LongRun)
        if terms.mechanism not in NUMBERED or threshold.candidates == 1 or corrected:
            continue
        unlisted = isinstance(terms.spread, OwnCandidates)
        known[key] = replace(terms, spread=candidates_of(threshold)) if unlisted else terms
    return known


def plan_of(release: Thresholds) -> Plan:
    """The plan of a release with one threshold, by slopes."""
    (terms,), (threshold,) = terms_of(release).values(), release.parts.values()
    n = records_of_design(threshold)
    return Plan(
        Design(terms, n, candidates_of(threshold), threshold.mechanism, threshold.guarantee, threshold.privacy), n
    )


def records_of_design(threshold: Threshold) -> int:
    """The public number of records, or the secret one of the design: for the noisy number, or a guess."""
    if threshold.n is not None:
        return threshold.n
    n_min = threshold.guarantee.n_min or 1
    return typical_of_groups(1, n_min) if threshold.size is None else max(n_min, threshold.size.design_for)


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
    """
    needed = records_needed(release)
    if needed is None or any((threshold.n or 0) >= needed for threshold in release.parts.values()):
        return ()
    return (("records needed", needed_text(needed, each)),)
