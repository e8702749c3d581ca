"""Cost of privacy at a chosen point, from public numbers only: the numbers of `confide.plan`."""

from typing import Any

from confide.core import Plan, Terms, excess_text
from confide.reports.page import hundredths, percent
from confide.support import Facts, decimal_text, describe


def number_note(request: Terms) -> str:
    """The part of the number of records in the mechanism, for a secret number.

    Examples
    --------
    >>> from confide import plan
    >>> number_note(plan(alpha=0.1, epsilon=1.0).terms)
    'At other n the candidates are those of the design for that number.'
    """
    return "" if request.public_n else "At other n the candidates are those of the design for that number."


def cost_facts(plan: Plan, noun: str = "set") -> Facts:
    """What a plan says of itself with its number of records, and the number of records that it needs."""
    with_n, always = describe(plan).parts[:2]
    pilot = () if plan.pilot is None else ((f"price in {noun}s", _on_pilot(plan)),)
    return (*with_n.facts, *pilot, always.facts[0])


def sentence(plan: Plan) -> str:
    """Summary of a plan in two sentences."""
    beyond, needed = plan.chance_beyond, f"about {plan.records_needed:,} records are needed"
    if round(100 * beyond, 1) >= 50:
        short = f"The result is likely to be +∞, which excludes nothing, or a threshold beyond all scores: {needed}."
    elif round(100 * beyond, 1) > 1:
        rare = f"the threshold is +∞ or lies beyond all scores: {needed} to make that rare"
        short = f"In {_chance(beyond)} of all draws {rare}."
    else:
        short = f"The cost is about {excess_text(plan)}."
    return (
        f"With {plan.n:,} records and ε = {decimal_text(plan.terms.epsilon)}, expect a coverage of "
        f"{hundredths(plan.expected_coverage)} instead of {_level(plan)}. {short}"
    )


def _level(plan: Plan) -> str:
    return percent(float(plan.terms.level))


def _chance(chance: float) -> str:
    return "below 0.1\u00a0%" if round(100 * chance, 1) < 0.1 else f"{100 * chance:.1f}\u00a0%"


def _on_pilot(plan: Plan) -> str:
    found = plan.on_pilot
    assert found is not None
    if found.size is not None:
        return f"{found.size:.3g} classes in a set; {found.plain_size:.3g} without privacy"
    if found.ratio is not None:
        return f"{found.ratio:.3f} times as long as without privacy"
    return f"threshold {found.threshold:.4g}; {found.plain_threshold:.4g} without privacy"


def price(plan: Plan, noun: str) -> dict[str, Any]:
    """Cost of privacy on a page, at the chosen point."""
    return {"sentence": sentence(plan), "facts": cost_facts(plan, noun)}
