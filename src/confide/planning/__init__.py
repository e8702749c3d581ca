"""In comes what was asked, out goes the mechanism that answers it, and what it will promise and cost; no data.

combinations.py  what goes with what in a request, as data
terms.py         `Terms`: every public choice of a threshold, checked once; the mechanism that answers them, with the
                 smallest target rank that is certified; mechanisms of others
choice.py        one decision: how many candidates, how the loss is divided, how far weights rise; the public laws of
                 scores that it is judged by, its prices, and heights that rise as slowly as they can
population.py    the population that a promise is for, where it is a known shift away
expected.py      answers on typical scores, how many records it takes, and what a plan is worth on a public sample
plan.py          `Plan`: what follows for coverage, usefulness and privacy
"""

from confide.planning.choice import COUNTED_SIZES, PARTS, SIZES, answer_law, flat_for, law_of
from confide.planning.combinations import (
    ALONE,
    COMBINATIONS,
    CONCENTRATED,
    TOGETHER,
    refuse_combinations,
    refuse_halves,
    unusual,
)
from confide.planning.expected import (
    OnPilot,
    Pilot,
    answered_on_pilot,
    needed_text,
    share_of_pilot,
    typical_answer,
    typical_law,
)
from confide.planning.plan import Plan, make_plan, plan
from confide.planning.population import (
    POPULATION,
    ClassShift,
    Population,
    RecordWeights,
    rounding_text,
    shifted_population,
)
from confide.planning.terms import (
    CHOICES,
    NOISY,
    Choices,
    Terms,
    mechanism_for,
)

__all__ = [
    "Choices", "ClassShift", "OnPilot", "Pilot", "Plan", "RecordWeights", "Terms", "plan",
]  # fmt: skip


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)
