"""The grid that a page carries to say what privacy costs: plans around a chosen point, from public numbers only.

The page looks numbers up and never computes a plan: what it shows is what `confide.plan` says.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

from confide.planning import Pilot, Plan, Terms, make_plan
from confide.support import LEAST_LOSS, MOST_LOSS, MOST_RECORDS, exact_level

LEVELS = tuple(exact_level("alpha", text) for text in ("0.01", "0.05", "0.1", "0.2"))
LOSS_STEPS, LOSS_REACH = (1, 2, 5), (0.2, 5.0)
SIZE_STEPS, SIZE_REACH = (1, 3), (0.1, 30.0)
"""Round numbers, in every decade, between these multiples of the chosen value. Where n is public every number of
records has a decision of its own, which takes hundredths of a second: finer steps would be waited for."""


@dataclass(frozen=True)
class Grid:
    """Plans at every combination of a few levels, losses and numbers of records, each increasing, in that order.

    `chosen` says where the chosen values are.
    """

    alphas: tuple[Fraction, ...]
    epsilons: tuple[float, ...]
    records: tuple[int, ...]
    chosen: tuple[int, int, int]
    plans: tuple[Plan, ...]

    def __getitem__(self, place: tuple[int, int, int]) -> Plan:
        a, e, n = place
        return self.plans[(a * len(self.epsilons) + e) * len(self.records) + n]

    def fields(self) -> dict[str, Any]:
        """As JSON values, rounded to the digits that the page shows; coverage in per cent; null stands for +inf."""
        per_loss = range(0, len(self.plans), len(self.records))
        plain = [self[a, 0, n] for a in range(len(self.alphas)) for n in range(len(self.records))]
        return {
            "alphas": [float(alpha) for alpha in self.alphas],
            "epsilons": list(self.epsilons),
            "records": list(self.records),
            "chosen": list(self.chosen),
            "needed": [self.plans[i].records_needed for i in per_loss],
            "plain": [p.nonprivate_rank if p.nonprivate_rank <= p.counted else None for p in plain],
            "alone": [round(100 * min(1.0, p.nonprivate_rank / (p.counted + 1)), 2) for p in plain],
            "target": [None if math.isinf(p.target_rank) else round(p.target_rank, 2) for p in self.plans],
            "coverage": [round(100 * p.expected_coverage, 2) for p in self.plans],
            "excess": [round(p.expected_excess, 1) for p in self.plans],
            "most": [round(100 * p.coverage_at_most, 2) for p in self.plans],
            "all": [_share(p.chance_of_all) for p in self.plans],
            "beyond": [_share(p.chance_beyond) for p in self.plans],
            "pilot": None if self.plans[0].pilot is None else [_on_pilot(p) for p in self.plans],
            "desert": [None if math.isinf(p.desert) else round(p.desert) for p in self.plans],
        }


def grid(request: Terms, n: int, pilot: Pilot | None = None) -> Grid:
    """The grid around a request and a number of records; with a public pilot sample, what each plan is worth on it.

    Examples
    --------
    >>> from confide import plan
    >>> chosen = plan(alpha=0.1, epsilon=1.0, n=1000, neighbors="replace_one", candidates=10)
    >>> made = grid(chosen.request, 1000)
    >>> made[made.chosen].expected_excess == chosen.expected_excess
    True
    """
    alphas = tuple(sorted({*LEVELS, request.alpha}))
    epsilon = float(f"{request.epsilon:.6g}")  # as it was asked for: what was spent can be smaller in the last digits
    least = LEAST_LOSS * request.records_per_person
    epsilons = tuple(sorted({epsilon, *_ladder(epsilon, LOSS_STEPS, LOSS_REACH, least, MOST_LOSS)}))
    records = tuple(sorted({n, *map(round, _ladder(n, SIZE_STEPS, SIZE_REACH, 1, MOST_RECORDS))}))
    public = request.neighbors == "replace_one"
    plans = []
    for alpha, loss, size in product(alphas, epsilons, records):
        asked = replace(request, alpha=alpha, epsilon=loss, n=size if public else None)
        made = make_plan(replace(asked, slopes=None, rise=None, shift=None), size)
        plans.append(replace(made, pilot=pilot))
    chosen = (alphas.index(request.alpha), epsilons.index(epsilon), records.index(n))
    return Grid(alphas, epsilons, records, chosen, tuple(plans))


def _on_pilot(plan: Plan) -> str:
    found = plan.on_pilot
    assert found is not None
    if found.size is not None:
        return f"{found.size:.3g} classes in a set; {found.plain_size:.3g} without privacy"
    if found.ratio is not None:
        return f"{found.ratio:.3f} times as long as without privacy"
    return f"threshold {found.threshold:.4g}; {found.plain_threshold:.4g} without privacy"


def _share(chance: float) -> float:
    """In per cent; the page shows one digit after the point."""
    return round(100 * chance, 1)


def _ladder(
    chosen: float, steps: tuple[int, ...], reach: tuple[float, float], least: float, most: float
) -> list[float]:
    """Round numbers between multiples of the chosen value, and between the least and the most that there are."""
    low, high = max(chosen * reach[0], least) * 0.999, min(chosen * reach[1], most) * 1.001
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = (float(f"{step}e{decade}") for decade in decades for step in steps)
    return [value for value in found if low <= value <= high and least <= value <= most]
