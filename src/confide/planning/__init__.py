"""Planning: from public parameters to a mechanism, its guarantee and its cost, without data.

combinations.py  valid combinations of parameters, as data
terms.py         `Terms`: every public choice of a threshold, validated once
mechanism.py     the mechanism that follows from terms, with the smallest target rank that is certified; published ones
choice.py        one optimisation: number of candidates, division of the privacy loss between the slopes, rise of the
                 prior weights; the reference laws of scores and their prices; the slowest admissible prior weights
population.py    the population of a guarantee under a known shift
expected.py      answers for typical scores, required number of records, evaluation of a plan on a public sample
plan.py          `Plan`: consequences for coverage, usefulness and privacy
"""

from confide.planning.choice import COUNTED_SIZES, FEW_SIZES, PARTS, answer_law, flat_for, law_of
from confide.planning.combinations import (
    ALONE,
    COMBINATIONS,
    TOGETHER,
    check_combinations,
    check_together,
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
from confide.planning.mechanism import mechanism_for
from confide.planning.plan import Plan, excess_text, make_plan, needed_by_scores, plan
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
    Choices,
    Terms,
    typical_of_groups,
)

__all__ = [
    "Choices", "ClassShift", "OnPilot", "Pilot", "Plan", "RecordWeights", "Terms", "plan",
]  # fmt: skip


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
