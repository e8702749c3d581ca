"""Compare the methods for given silos before any privacy budget is spent, for one threshold or for several.

Everything is computed from public numbers, and from a public pilot sample if there is one. Expected coverages are not
guarantees: they hold for scores of a known distribution (docs/federated.md, "Which method").
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

from confide.core import By, Pilot, answered_on_pilot, share_of_pilot
from confide.errors import InputError
from confide.federated.keys import Silo
from confide.federated.planning import (
    COMPARABLE,
    Alternative,
    PlanMaker,
    alternative_plan,
    alternatives,
    answer_law,
    one_threshold,
)
from confide.federated.several_plans import BY, plan_groups, plan_levels, plan_sides
from confide.federated.terms import PlanChoices
from confide.support import Level, one_of


def compare(
    silos: Sequence[Silo],
    alpha: Any,
    epsilon: float,
    *,
    by: By | None = None,
    names: Sequence[str | int] | None = None,
    pilot: Any = None,
    also: Sequence[str] = (),
    **options: Unpack[PlanChoices],
) -> tuple[Alternative, ...]:
    """Compare the private methods for these silos: `private-qq`, `secure-sum`, and `private-qq` without small silos.

    Parameters
    ----------
    silos, epsilon
        As in `plan`.
    alpha
        As in `plan`; with `by` as in `plan_levels`, `plan_groups` or `plan_sides`.
    by
        The kind of several thresholds: `"level"`, `"group"`, `"class"` or `"side"`; by default one threshold.
    names
        Names of all groups or classes.
    pilot
        A PUBLIC sample, as in `confide.plan`: a `confide.core.Pilot`, or scores, shape (N,). For several levels
        the result is that of the last one. Not for sides, which have two scores.
    also
        Published methods to compare as well, from `COMPARABLE`; they are not recommended.
    options
        The other options of `plan`, except `method`.

    Returns
    -------
    tuple of Alternative
        One of them is recommended, if any has a plan. One without some silos is recommended only if no plan with all of
        them serves.

    Raises
    ------
    InputError, InputTypeError
        If an argument cannot be used by any method.

    Examples
    --------
    >>> from confide.federated import SiloKeys
    >>> silos = [SiloKeys.generate(f"school {i}").public(size=20 + i) for i in range(12)]
    >>> [(one.method, one.silos) for one in compare(silos, 0.1, 1.0) if one.recommended]
    [('secure-sum', 12)]
    >>> [one.method for one in compare(silos, [0.2, 0.1], 2.0, by="level") if one.recommended]
    ['secure-sum']
    """
    if pilot is not None and by == "side":
        raise InputError("pilot", "must be left out for two sides, which have two scores")
    make = _make(alpha, epsilon, by, names)
    published = [alternative_plan(silos, make, one_of("also", name, COMPARABLE), options) for name in also]
    found = alternatives(silos, make, options) + published
    sample = None if pilot is None else Pilot.of(pilot, options.get("score") or "lac")
    return tuple(with_pilot(one, sample) for one in found)


def _make(alpha: Any, epsilon: float, by: By | None, names: Sequence[str | int] | None) -> PlanMaker:
    if by is not None:
        one_of("by", by, BY)
    if (names is None) == (by in ("group", "class")):
        raise InputError("names", f"must be {'given' if names is None else 'left out'} with by={by!r}")
    if by == "level":
        return lambda silos, method, options: plan_levels(silos, alpha, epsilon, method=method, **options)
    if by == "side":
        return lambda silos, method, options: plan_sides(silos, alpha, epsilon, method=method, **options)
    if by is not None and names is not None:
        known = tuple(names)
        return lambda silos, method, options: plan_groups(
            silos, known, alpha, epsilon, by="class" if by == "class" else "group", method=method, **options
        )
    level: Level = alpha
    return one_threshold(level, epsilon)


def with_pilot(one: Alternative, sample: Pilot | None) -> Alternative:
    """The alternative with its results on a public pilot sample; for several levels those of the last one."""
    if one.plan is None or sample is None:
        return one
    ask = one.plan.single_plans[-1]
    law = answer_law(ask, share_of_pilot(sample, ask.candidates))
    on_pilot = answered_on_pilot(sample, law, ask.candidates, ask.level, ask.size or one.silos * 1000)
    return replace(one, on_pilot=on_pilot)
