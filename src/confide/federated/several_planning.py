"""Planning several thresholds for one message: levels, or groups and classes, under one budget."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal

from confide.calibration import different_levels, divide_budget, exact_shares, part_of_failure, typical_of_groups
from confide.errors import InputError
from confide.federated.keys import Silo
from confide.federated.plan import FederatedPlan
from confide.federated.planning import plan
from confide.federated.several_plans import SeveralPlans
from confide.mechanisms import NEIGHBORS, Neighbors
from confide.support import Level, check_names, one_of


def plan_levels(
    silos: Sequence[Silo],
    alphas: Sequence[Level],
    epsilon: float | None = None,
    *,
    shares: Sequence[Level] | None = None,
    delta: Level | None = None,
    **options: Any,
) -> SeveralPlans:
    """Plan nested thresholds for several levels: one message from each silo, one charge.

    Every silo's reply to a level costs its share of epsilon. With `secure-sum` nothing is divided: one opened histogram
    serves all levels, so they cost what one of them costs.

    Parameters
    ----------
    silos, **options
        As in `plan`. Several levels of one sum open with all silos or not at all, so with dropouts, or with shares, the
        method is `"private-qq"` if none is named.
    alphas
        Different miscoverage levels in (0, 1).
    epsilon
        Privacy loss per record, all levels together.
    shares
        How it is divided, in the order of `alphas`; positive, summing to one; by default evenly. Not for `secure-sum`.
    delta
        Training-conditional promises that hold for all levels at once with probability 1 - delta: each gets an equal
        part.

    Raises
    ------
    InputError, InputTypeError
        As `plan` does.

    Examples
    --------
    >>> from confide import Candidates
    >>> from confide.federated import SiloKeys
    >>> silos = [SiloKeys.generate(f"hospital {i}").public(size=200) for i in range(5)]
    >>> few = Candidates.unit(100)
    >>> plan_levels(silos, [0.2, 0.1], 4.0, candidates=few).privacy().epsilon
    4.0
    >>> both = plan_levels(silos, [0.2, 0.1], 2.0, candidates=few, method="secure-sum")
    >>> both.privacy().epsilon, [part.protocol.scale for part in both.parts.values()]
    (2.0, [1.0, 1.0])
    """
    levels, part = different_levels(alphas), part_of_failure(delta, len(alphas))
    if options.get("method") is None:
        divided = shares is not None or bool(options.get("dropouts"))  # a sum of levels has neither shares nor dropouts
        options["method"] = "private-qq" if divided else plan(silos, levels[0], epsilon, delta=part, **options).method
    if options["method"] == "secure-sum":
        if shares is not None:
            raise InputError("shares must be left out for 'secure-sum': one opened histogram serves all levels")
        budgets = [epsilon] * len(levels)
    else:
        parts_of_it = divide_budget(epsilon, None, exact_shares(shares, len(levels)))
        budgets = [budget.get("epsilon") for budget in parts_of_it]
    made: dict[Fraction, FederatedPlan] = {}
    for level, budget in sorted(zip(levels, budgets, strict=True), key=lambda one: one[1] or 0.0):
        made[level] = plan(silos, level, budget, delta=part, **options)
        options |= {"candidates": made[level].candidates, "unit": None}  # those that suit the least share serve all
    session = made[levels[0]].session
    parts = {level: replace(made[level], session=session) for level in sorted(levels, reverse=True)}
    return SeveralPlans("level", parts[levels[0]].neighbors, parts)


def plan_groups(
    silos: Sequence[Silo],
    names: Sequence[str | int],
    alpha: Level,
    epsilon: float | None = None,
    *,
    by: Literal["group", "class"] = "group",
    neighbors: Neighbors = "add_remove",
    **options: Any,
) -> SeveralPlans:
    """Plan one threshold per group, or per class, so that each is covered on its own: one message, one charge.

    Groups are disjoint, so under `add_remove` every one may cost the whole epsilon. A replaced record can leave one
    group and enter another: under `replace_one` each costs half of it (docs/theory-groups.md). How many records a silo
    has of each group stays secret under both, so this is for `private-qq` and silos without a public size. Where a
    group has too few records its threshold is +inf.

    Parameters
    ----------
    silos
        Who is invited, all without a public size.
    names
        All groups, or classes, there are, **public**: taken from a code book, not from the records.
    alpha, epsilon, **options
        As in `plan`; the promise holds for each group. `n_min` and `n_typical` are about the records of one group in
        one silo: by default none, and an even part of a thousand, at least 150.
    by
        What the threshold depends on.
    neighbors
        The relation under which epsilon is meant.

    Raises
    ------
    InputError, InputTypeError
        As `plan` does; also for other methods and for silos with public sizes.

    Examples
    --------
    >>> from confide import Candidates
    >>> from confide.federated import SiloKeys
    >>> silos = [SiloKeys.generate(f"hospital {i}").public() for i in range(5)]
    >>> made = plan_groups(silos, ["women", "men"], 0.1, 2.0, candidates=Candidates.unit(50), n_typical=300)
    >>> made.privacy().epsilon, list(made.parts)
    (2.0, ['women', 'men'])
    """
    known = check_names("names", names)
    one_of("by", by, ("group", "class"))
    one_of("neighbors", neighbors, NEIGHBORS)
    if options.get("method", "private-qq") == "secure-sum":
        raise InputError(
            "method must be 'private-qq' for groups and classes: the certificate of 'secure-sum' needs the number of "
            "records of each group, which stays secret"
        )
    if by == "class" and options.get("classes") is not None:
        raise InputError("classes must be left out with by='class': names are the classes")
    if any(silo.size is not None for silo in silos):
        raise InputError(
            "silos must keep their sizes secret where groups or classes have thresholds of their own; issue public "
            "files without a size: SiloKeys.public(), or confide federated public"
        )
    options |= {"method": options.get("method") or "private-qq", "n_min": options.get("n_min", 0)}
    if options.get("n_typical") is None:
        options["n_typical"] = typical_of_groups(len(known), max(options["n_min"], 1))
    budget = divide_budget(epsilon, None, exact_shares(None, 1), replaced=neighbors == "replace_one")[0].get("epsilon")
    return SeveralPlans(by, neighbors, dict.fromkeys(known, plan(silos, alpha, budget, **options)))
