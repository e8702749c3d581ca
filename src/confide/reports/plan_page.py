"""A plan as a page: the cost of privacy before any data are used."""

from dataclasses import replace
from functools import partial

from confide.core import Plan, law_of
from confide.guarantee import law_failure
from confide.mechanisms import mechanism_facts
from confide.plots import plot_price
from confide.reports.words import Failure, explanation, promise, protection, protection_warnings, say, variation
from confide.support import Section, describe

SECRET_SIZES = (100, 300, 1000, 3000, 10_000, 30_000, 100_000)
"""Numbers of records for which the variation of coverage is stated if their number is secret."""


def sizes(known: int | None, least: int | None) -> list[int]:
    """Numbers of records for which the variation of coverage is stated: the known one, or several from `least` on."""
    least = least or 1
    return [max(1, known)] if known is not None else [n for n in SECRET_SIZES if n >= least] or [least]


def price_section(plan: Plan, noun: str) -> Section:
    """What privacy costs at a plan's point, from public numbers."""
    longer = "longer intervals" if noun == "interval" else "larger sets"
    note = say("price", "note", typical=plan.typical_scores)
    return Section("What privacy costs", say("price", "lead", longer=longer), parts=describe(plan).parts, notes=(note,))


def plan_section(plan: Plan) -> Section:
    """The whole description of a plan for a page."""
    # What is promised, and how coverage varies, by number of records.
    terms, guarantee, mechanism, described = plan.terms, plan.guarantee, plan.mechanism, describe(plan)
    law = law_of(plan.candidates)
    noun = "interval" if law and law.shape.has_unit else "set"
    promised, failures = promise(guarantee, f"in the {noun}"), dict[str, Failure]()
    for n in sizes(plan.n if terms.sized else guarantee.n, terms.n_min):
        ranks = None if mechanism is None else mechanism.rank_law(n, plan.candidates.size)
        failures |= {} if ranks is None else {f"{n:,}": partial(law_failure, ranks, n)}

    # What privacy costs around the plan.
    around = [max(1, round(plan.n * step)) for step in (0.1, 0.3, 1, 3, 10)]
    picture = partial(plot_price, plan, epsilons=[terms.epsilon], records=around)
    parts = (
        replace(price_section(plan, noun), picture=picture),
        Section("What will be promised", f"{promised} {explanation(guarantee)}"),
        protection(plan.privacy),
        *([variation(failures, float(terms.level))] if failures else []),
        Section("What will be run", facts=mechanism_facts(mechanism, plan.candidates.size)),
    )
    warnings = (*described.warnings, *protection_warnings(plan.privacy))
    return Section("Plan of a private calibration", promised, described.facts, warnings=warnings, parts=parts)
