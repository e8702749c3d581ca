"""In comes what was asked, out goes the mechanism that answers it, and what it will promise and cost; no data.

combinations.py    what goes with what in a request, as data
terms.py           `Terms`: every public choice of a threshold, checked once
choice.py          one decision: how many candidates, how the loss is divided, how far weights rise
reference_laws.py  the public laws of scores that the decision is judged by, and its prices
rise.py            heights that rise as slowly as they can
mechanism.py       the mechanism for a request: the smallest target rank that is certified; mechanisms of others
population.py      the population that a promise is for, where it is a known shift away
typical.py         what a mechanism answers on typical scores
pilot.py           what a plan is worth in sets, on a public sample
needed.py          how many records it takes
unusual.py         levels and failure probabilities that are mostly typed by mistake
plan.py            `Plan`: what follows for coverage, usefulness and privacy
"""

from confide.planning.choice import PARTS, SIZES, answer_law
from confide.planning.combinations import (
    ALONE,
    COMBINATIONS,
    CONCENTRATED,
    DEFAULTS,
    TOGETHER,
    refuse_combinations,
    refuse_halves,
)
from confide.planning.mechanism import mechanism_for
from confide.planning.needed import needed_text
from confide.planning.pilot import OnPilot, Pilot, answered_on_pilot, share_of_pilot
from confide.planning.plan import Plan, make_plan, plan
from confide.planning.population import (
    POPULATION,
    ClassShift,
    Population,
    RecordWeights,
    rounding_text,
    shifted_population,
)
from confide.planning.reference_laws import law_of
from confide.planning.rise import flat_for
from confide.planning.terms import CHOICES, Choices, Terms
from confide.planning.typical import typical_answer, typical_law
from confide.planning.unusual import unusual

__all__ = [
    "ALONE", "CHOICES", "COMBINATIONS", "CONCENTRATED", "DEFAULTS", "PARTS", "POPULATION", "SIZES", "TOGETHER",
    "Choices", "ClassShift", "OnPilot", "Pilot", "Plan", "Population", "RecordWeights", "Terms", "answer_law",
    "answered_on_pilot", "flat_for", "law_of", "make_plan", "mechanism_for", "needed_text", "plan",
    "refuse_combinations", "refuse_halves", "rounding_text", "share_of_pilot",
    "shifted_population", "typical_answer", "typical_law", "unusual",
]  # fmt: skip


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)
