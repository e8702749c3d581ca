"""A plan as a page: the cost of privacy before any data are used."""

import json
import math
import shlex
from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType

from confide.candidates import SpreadKind
from confide.core import ClassShift, Plan, RecordWeights, law_of
from confide.mechanisms import mechanism_facts
from confide.reports.cost import number_note, price
from confide.reports.guarantee_text import explanation, law_sections, plan_laws, promise, short_guarantee
from confide.reports.page import Page, dots, page_of
from confide.reports.protection import protection
from confide.support import Facts, exact_level


def plan_page(plan: Plan, *, title: str | None = None) -> Page:
    """Page of a plan; it depends on public numbers only.

    Examples
    --------
    >>> from confide import plan
    >>> plan_page(plan(alpha=0.1, epsilon=1.0, neighbors="replace_one", candidates=10))
    Page('Plan of a private calibration', ... kB of HTML)
    """
    r, guarantee = plan.terms, plan.guarantee
    secret = r.neighbors == "add_remove"
    laws = law_sections({"": (float(r.level), plan_laws(plan))}, plan.n, exact=False, secret=secret)
    law = law_of(plan.candidates)
    noun = "interval" if law and law.shape.has_unit else "set"
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
        "price": price(plan, noun),
        "number_note": number_note(r),
        "candidates": plan.candidates.description,
        "typical": plan.typical_scores,
        "command": calibrate_command(plan),
        "rows_made": _rows(plan),
        "pilot": plan.on_pilot,
    }
    return page_of("plan.html", title or "Plan of a private calibration", context)


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
"""Columns from which scores are computed, by the spread of their candidates."""


def calibrate_command(plan: Plan) -> str:
    """Command that makes the planned calibration.

    Examples
    --------
    >>> from confide import plan
    >>> calibrate_command(plan(alpha=0.1, epsilon=1.0, neighbors="replace_one"))
    "confide calibrate records.parquet --probabilities 'p_*' --label diagnosis --alpha 0.1 --epsilon 1 --neighbors ..."
    """
    r = plan.terms
    law = law_of(plan.candidates)
    words = ["confide", "calibrate", "records.parquet", *_COLUMNS.get(law.kind if law else None, _CLASSES)]
    words += ["--set", f"unit={law.unit:.12g}"] if law and law.unit else []
    words += ["--alpha", _level(r.alpha), "--epsilon", f"{r.epsilon:.12g}"]
    if r.neighbors != "add_remove":
        words += ["--neighbors", r.neighbors]
    for name, value, default in (
        ("records_per_person", r.records_per_person, 1),
        ("n_min", r.n_min, 1),
        ("delta", r.delta, None),
    ):
        if value != default:
            words += ["--set", f"{name}={value}"]
    if isinstance(r.population, ClassShift):
        given = zip(r.population.classes, r.population.ratios, strict=True)
        weights = ", ".join(f"{json.dumps(str(name))} = {float(ratio)!r}" for name, ratio in given)
        words += ["--set", f"class_weights={{{weights}}}"]
    if isinstance(r.population, RecordWeights):
        words += ["--set", "weights=weight", "--set", f"weight_bound={r.population.bound:g}"]
    return shlex.join([*words, "--out", "calibration.json"])


def _level(alpha: Fraction) -> str:
    decimal = f"{float(alpha):.12g}"
    return decimal if exact_level("alpha", decimal) == alpha else str(alpha)


def _rows(plan: Plan) -> Facts:
    m = plan.mechanism
    if m is None:
        return (("mechanism", "none, because the records are too few: the result is +inf, without using the data"),)
    over = "" if plan.target_rank <= plan.effective_n else ", above n: +inf is the likely result"
    rank = "none" if math.isinf(plan.target_rank) else f"{plan.target_rank:,.2f}{over}"
    return (
        *mechanism_facts(m, plan.candidates.size),
        ("candidate thresholds", plan.candidates.description),
        ("with n records", f"{plan.n:,}: target rank {rank}, without privacy {plan.nonprivate_rank:,}"),
    )
