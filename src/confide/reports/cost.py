"""Cost of privacy around a chosen point, from public numbers only: plans for other alphas, epsilons and n.

A page looks numbers up and never computes a plan. It shows the numbers of `confide.plan`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias

from confide.planning import Pilot, Plan, Terms, excess_text, make_plan
from confide.reports.charts import Cost, cost
from confide.reports.page import hundredths, percent
from confide.support import (
    LEAST_LOSS,
    MOST_LOSS,
    MOST_RECORDS,
    Facts,
    Section,
    Table,
    decimal_text,
    describe,
    exact_level,
)

LEVELS = tuple(exact_level("alpha", text) for text in ("0.01", "0.05", "0.1", "0.2"))
LOSS_STEPS, LOSS_REACH = (1, 2, 5), (0.2, 5.0)
SIZE_STEPS, DESIGN_STEPS, SIZE_REACH = (1, 3), (1,), (0.1, 30.0)
"""Steps in every decade, and the range as multiples of the chosen value. Each number of records has its own design if n
is public, which takes hundredths of a second, or noisy (`DESIGN_STEPS`), which takes tenths; finer steps would be
slow."""

Place: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True)
class Grid:
    """Plans at combinations of a few alphas, epsilons and numbers of records, computed on demand.

    Parameters
    ----------
    request
        The chosen request.
    alphas, epsilons, records
        Values of the grid, each increasing.
    chosen
        Position of the chosen values in the grid.
    pilot
        Public sample, on which every plan is tried.
    """

    request: Terms
    alphas: tuple[Fraction, ...]
    epsilons: tuple[float, ...]
    records: tuple[int, ...]
    chosen: Place
    pilot: Pilot | None = None
    _made: dict[Place, Plan] = field(default_factory=dict, repr=False, compare=False)

    def __getitem__(self, place: Place) -> Plan:
        if place not in self._made:
            alpha, epsilon, n = self.alphas[place[0]], self.epsilons[place[1]], self.records[place[2]]
            public = n if self.request.neighbors == "replace_one" else None
            request = replace(self.request, alpha=alpha, n=public, slopes=None, rise=None, shift=None)
            self._made[place] = replace(make_plan(request.with_loss(epsilon), n), pilot=self.pilot)
        return self._made[place]

    def places(self) -> list[Place]:
        """All positions, with the number of records changing fastest."""
        return list(product(range(len(self.alphas)), range(len(self.epsilons)), range(len(self.records))))


def grid(request: Terms, n: int, pilot: Pilot | None = None) -> Grid:
    """Grid around a request and a number of records.

    Examples
    --------
    >>> from confide import plan
    >>> chosen = plan(alpha=0.1, epsilon=1.0, n=1000, neighbors="replace_one", candidates=10)
    >>> made = grid(chosen.request, 1000)
    >>> made[made.chosen].expected_excess == chosen.expected_excess
    True
    """
    alphas = tuple(sorted({*LEVELS, request.alpha}))
    epsilon = float(f"{request.epsilon:.6g}")  # the requested value; the spent one may differ in its last digits
    least = LEAST_LOSS * request.records_per_person
    epsilons = tuple(sorted({epsilon, *_ladder(epsilon, LOSS_STEPS, LOSS_REACH, least, MOST_LOSS)}))
    steps = SIZE_STEPS if request.size_scale is None else DESIGN_STEPS
    records = tuple(sorted({n, *map(round, _ladder(n, steps, SIZE_REACH, 1, MOST_RECORDS))}))
    chosen = (alphas.index(request.alpha), epsilons.index(epsilon), records.index(n))
    return Grid(request, alphas, epsilons, records, chosen, pilot)


def number_note(request: Terms) -> str:
    """The part of the number of records in the mechanism, for a secret number.

    Examples
    --------
    >>> from confide import plan
    >>> number_note(plan(alpha=0.1, epsilon=1.0, n_typical=1000).request)
    'n is a guess that the mechanism does not use.'
    """
    if request.public_n:
        return ""
    if request.size_scale is not None:
        return "At other n the candidates are those of the design for that number."
    return "n is a guess that the mechanism does not use."


def _ladder(
    chosen: float, steps: tuple[int, ...], reach: tuple[float, float], least: float, most: float
) -> list[float]:
    """Round numbers between multiples of the chosen value, within the allowed range."""
    low, high = max(chosen * reach[0], least) * 0.999, min(chosen * reach[1], most) * 1.001
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = (float(f"{step}e{decade}") for decade in decades for step in steps)
    return [value for value in found if low <= value <= high and least <= value <= most]


# One point


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
        f"With {plan.n:,} records and ε = {decimal_text(plan.request.epsilon)}, expect a coverage of "
        f"{hundredths(plan.expected_coverage)} instead of {_level(plan)}. {short}"
    )


def _level(plan: Plan) -> str:
    return percent(float(plan.request.level))


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


# Lines through a point


def by_epsilon(made: Grid, place: Place, *, dot: bool = True) -> Section:
    """Expected coverage against epsilon, at the alpha and the number of records of a position."""
    a, e, n = place
    plans = [made[a, i, n] for i in range(len(made.epsilons))]
    caption = "Expected coverage at this n and α. Grey: without privacy. Dashed: the requested coverage."
    table = Table(
        ("ε", *_HEADS),
        tuple((decimal_text(plan.request.epsilon), *_row(plan)) for plan in plans),
        "Cost of privacy by ε",
    )
    rows = [Cost(plan.request.epsilon, plan.expected_coverage, _plain(plan)) for plan in plans]
    return _figure("Against ε", rows, e if dot else None, plans[0], "ε", caption, table)


def by_records(made: Grid, place: Place, *, dot: bool = True) -> Section:
    """Expected coverage against the number of records, at the alpha and the epsilon of a position."""
    a, e, n = place
    plans = [made[a, e, i] for i in range(len(made.records))]
    caption = "Expected coverage at this ε and α. Grey: without privacy. Dashed: the requested coverage."
    table = Table(
        ("n", *_HEADS), tuple((f"{plan.n:,}", *_row(plan)) for plan in plans), "Cost of privacy by number of records"
    )
    rows = [Cost(plan.n, plan.expected_coverage, _plain(plan)) for plan in plans]
    return _figure("Against n", rows, n if dot else None, plans[0], "n", caption, table)


_HEADS = ("Expected coverage", "More records covered", "Without privacy")


def _row(plan: Plan) -> tuple[str, ...]:
    return hundredths(plan.expected_coverage), f"{plan.expected_excess:.1f}", hundredths(_plain(plan))


def _plain(plan: Plan) -> float:
    return min(1.0, plan.nonprivate_rank / (plan.effective_n + 1))


def _figure(
    title: str, rows: Sequence[Cost], now: int | None, plan: Plan, name: str, caption: str, table: Table
) -> Section:
    chart = cost(rows, now, float(plan.request.level), name)
    return Section(title, chart=chart, notes=(caption,), tables=(table,))


def price(made: Grid, noun: str, *, explorer: bool) -> dict[str, Any]:
    """Cost of privacy on a page: at the chosen point, and with the explorer at every other point."""
    chosen = made[made.chosen]
    found: dict[str, Any] = {
        "sentence": sentence(chosen),
        "facts": cost_facts(chosen, noun),
        "figures": [by_epsilon(made, made.chosen), by_records(made, made.chosen)],
        "noun": noun,
        "explorer": None,
    }
    if explorer:
        (levels, losses, numbers), (_, e, n) = (
            (range(len(values)) for values in (made.alphas, made.epsilons, made.records)),
            made.chosen,
        )
        found["explorer"] = {
            "shown": (f"epsilon-{made.chosen[0]}-{n}", f"records-{made.chosen[0]}-{e}"),
            "lines": [
                *((f"epsilon-{a}-{k}", by_epsilon(made, (a, e, k), dot=False)) for a, k in product(levels, numbers)),
                *((f"records-{a}-{k}", by_records(made, (a, k, n), dot=False)) for a, k in product(levels, losses)),
            ],
            "data": {
                "values": [
                    [f"{float(alpha):g}" for alpha in made.alphas],
                    [decimal_text(epsilon) for epsilon in made.epsilons],
                    [f"{number:,}" for number in made.records],
                ],
                "chosen": list(made.chosen),
                "said": [
                    [sentence(made[place]), *(text for _, text in cost_facts(made[place], noun))]
                    for place in made.places()
                ],
            },
        }
    return found


def explorer_data(context: Mapping[str, Any]) -> dict[str, Any] | None:
    """Data that the explorer of a page looks up; None without the explorer."""
    found = context["price"]["explorer"]
    return None if found is None else found["data"]
