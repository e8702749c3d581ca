"""The grid that a page carries to say what privacy costs: plans around a chosen point, from public numbers only.

The page looks numbers up and never computes a plan: what it shows is what `confide.plan` says.

A plan as a page: the price of privacy before any data is touched.
"""

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from types import MappingProxyType
from typing import Any

from confide.candidates import SpreadKind
from confide.planning import ClassShift, Pilot, Plan, RecordWeights, Terms, law_of, make_plan
from confide.reports.page import Page, dots, page_of
from confide.reports.promise import SURE, explanation, plan_laws, promise, short_guarantee
from confide.reports.protection import Rows, protection, slopes_rows
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


def plan_page(plan: Plan, *, title: str | None = None) -> Page:
    """The page of a plan; it depends on public numbers only.

    Examples
    --------
    >>> from confide import plan
    >>> plan_page(plan(alpha=0.1, epsilon=1.0, neighbors="replace_one", candidates=10))
    Page('Plan of a private calibration', 0.5 MB of HTML)
    """
    r, guarantee = plan.request, plan.guarantee
    drawn = [law.fields() for law in plan_laws(plan)]
    laws = [{"name": "", "level": float(r.level), "laws": drawn}] if drawn else []
    law = law_of(r.candidates)
    noun = "interval" if law and law.kind in ("residual", "signed") else "set"
    own = r.slopes is None and r.rise is None and r.shift is None
    context = {
        "headline": promise(guarantee, f"in the {noun}"),
        "noun": noun,
        "coverage": short_guarantee(guarantee),
        "explanation": explanation(guarantee),
        "infinite": plan.mechanism is None,
        "dots": dots(guarantee.coverage) if guarantee.kind == "marginal" else None,
        "privacy": protection(plan.privacy),
        "n": plan.n,
        "laws": laws,
        "sure": SURE,
        "exact": False,
        "grid_note": "" if own else "Slopes, rise and shift are the library’s own choice here.",
        "neighbors": r.neighbors,
        "candidates": r.candidates.description,
        "typical": plan.typical_scores,
        "command": calibrate_command(plan),
        "rows_made": _rows(plan),
        "pilot": plan.on_pilot,
    }
    data = {"laws": laws, "grid": grid(r, plan.n, plan.pilot).fields(), "evaluation": None, "silos": None}
    return page_of("plan.html", title or "Plan of a private calibration", context, data)


_CLASSES = ("--probabilities", "p_*", "--label", "diagnosis")
_COLUMNS: Mapping[SpreadKind | None, tuple[str, ...]] = MappingProxyType(
    {
        "margin": (*_CLASSES, "--score", "margin"),
        "mass": (*_CLASSES, "--score", "aps"),
        "rank": (*_CLASSES, "--score", "top_k"),
        "residual": ("--prediction", "predicted", "--target", "true"),
        "signed": ("--prediction", "lower,upper", "--target", "true"),
        "any": ("--score-column", "score"),
    }
)
"""The columns that scores are made of, by how their candidates are spread."""


def calibrate_command(plan: Plan) -> str:
    """The command that makes the planned calibration.

    Examples
    --------
    >>> from confide import plan
    >>> calibrate_command(plan(alpha=0.1, epsilon=1.0, neighbors="replace_one"))
    "confide calibrate records.parquet --probabilities 'p_*' --label diagnosis --alpha 0.1 --epsilon 1 --neighbors ..."
    """
    r = plan.request
    law = law_of(r.candidates)
    words = ["confide", "calibrate", "records.parquet", *_COLUMNS.get(law.kind if law else None, _CLASSES)]
    words += ["--unit", f"{law.unit:.12g}"] if law and law.unit else []
    words += ["--alpha", _level(r.alpha), "--epsilon", f"{r.epsilon:.12g}"]
    if r.neighbors != "add_remove":
        words += ["--neighbors", r.neighbors]
    for option, value, default in (
        ("--records-per-person", r.records_per_person, 1),
        ("--n-min", r.n_min, 1),
        ("--n-typical", r.n_typical, max(r.n_min, 1000)),
        ("--delta", r.delta, None),
        ("--selector", r.selector, "permute_and_flip"),
    ):
        if value != default:
            words += [option, str(value)]
    if isinstance(r.population, ClassShift):
        given = zip(r.population.classes, r.population.ratios, strict=True)
        words += ["--class-weights", ",".join(f"{name}={ratio}" for name, ratio in given)]
    if isinstance(r.population, RecordWeights):
        words += ["--weight-column", "weight", "--weight-bound", f"{r.population.bound:g}"]
    return shlex.join([*words, "--out", "calibration.json"])


def _level(alpha: Fraction) -> str:
    decimal = f"{float(alpha):.12g}"
    return decimal if exact_level("alpha", decimal) == alpha else str(alpha)


def _rows(plan: Plan) -> Rows:
    m, r = plan.mechanism, plan.request
    if m is None:
        return (("Mechanism", "none serves with so few records: +∞ is answered, without touching the data"),)
    over = "" if plan.target_rank <= plan.counted else ", above n: +∞ is the likely answer"
    rank = "none" if math.isinf(plan.target_rank) else f"{plan.target_rank:,.2f}{over}"
    return (
        *slopes_rows(m, r.m),
        ("Candidate thresholds", r.candidates.description),
        ("With n records", f"{plan.n:,}: target rank {rank}, without privacy {plan.nonprivate_rank:,}"),
    )
