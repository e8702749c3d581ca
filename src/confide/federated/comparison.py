"""What the methods would give for the silos at hand, said before anybody pays, for one threshold or for several.

Everything is computed from public numbers, and from a public pilot sample if there is one. What is expected is no
promise: it is what would happen if scores were spread in a known way (docs/federated.md, "Which method").
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

from confide.errors import InputError
from confide.federated.keys import Silo
from confide.federated.plan import By
from confide.federated.planning import (
    COMPARABLE,
    Alternative,
    Make,
    alternative,
    alternatives,
    answer_law,
    one_threshold,
)
from confide.federated.several_plans import BY, plan_groups, plan_levels, plan_sides
from confide.federated.terms import PlanChoices
from confide.planning import Pilot, answered_on_pilot, share_of_pilot
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
    """What the private methods would give for these silos: `private-qq`, `secure-sum`, and leaving out small silos.

    Parameters
    ----------
    silos, epsilon
        As of `plan`.
    alpha
        As of `plan`; with `by` as of `plan_levels`, `plan_groups` or `plan_sides`.
    by
        What there is to be a threshold for each of: `"level"`, `"group"`, `"class"` or `"side"`; one by default.
    names
        Of all groups, or classes.
    pilot
        A PUBLIC sample, as for `confide.plan`: a `confide.planning.Pilot`, or scores, shape (N,). Of several levels it
        says what the last one gives; not for sides, which have two scores.
    also
        Published methods to show beside them, of `COMPARABLE`; they are not recommended.
    options
        What else `plan` takes, but for `method`.

    Returns
    -------
    tuple of Alternative
        One of them is recommended, if any has a plan. Silos are left out only if nothing with all of them serves.

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
        raise InputError("pilot", "must be left out for two sides: they are of two scores")
    make = _make(alpha, epsilon, by, names)
    published = [alternative(silos, make, one_of("also", name, COMPARABLE), options) for name in also]
    options.pop("dp_delta", None)
    found = alternatives(silos, make, options) + published
    sample = None if pilot is None else Pilot.of(pilot, options.get("score") or "lac")
    return tuple(with_pilot(one, sample) for one in found)


def _make(alpha: Any, epsilon: float, by: By | None, names: Sequence[str | int] | None) -> Make:
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
    """The same, with what would come out on a public pilot sample; of several levels for the last one."""
    if one.plan is None or sample is None:
        return one
    ask = one.plan.asks[-1]
    law = answer_law(ask, share_of_pilot(sample, ask.candidates))
    on_pilot = answered_on_pilot(sample, law, ask.candidates, ask.level, ask.size or one.silos * 1000)
    return replace(one, on_pilot=on_pilot)
