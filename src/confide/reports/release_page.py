"""A release as a page for three readers: users of the sets, people responsible for privacy, and people who check it."""

import math
from collections.abc import Sequence
from typing import Any

from confide.core import (
    ClassShift,
    Plan,
    RecordWeights,
    Release,
    Threshold,
    candidates_of,
    making_section,
    meaning_of_infinity,
    plan,
    records_of_design,
)
from confide.evaluation import Evaluation, LevelEvaluation, PrivateEvaluation, fingerprint, worst_parts
from confide.federated import FederatedRelease
from confide.ledger import Ledger
from confide.mechanisms import Slopes
from confide.reports.cost import number_note, price
from confide.reports.guarantee_text import (
    Law,
    about_groups,
    explanation,
    headline,
    law_sections,
    laws,
    noun,
    promise_of_part,
    threshold_text,
)
from confide.reports.guarantee_text import short as promised_figure
from confide.reports.ledger_entries import spending
from confide.reports.measurements import (
    MOST_LEVELS,
    checked_evaluation,
    evaluation_sections,
    examples,
    first_shortfall,
    named_parts,
    private_sections,
    private_shortfall,
)
from confide.reports.page import Page, dots, number, page_of
from confide.reports.plan_page import calibrate_command
from confide.reports.protection import (
    check_command,
    limits,
    metadata,
    protection,
    silos,
    warnings_of,
)
from confide.reports.thresholds import LABELS, rule, worked_example
from confide.sets import sentence_of

MOST_LAWS = 6


def release_page(
    release: Release,
    title: str | None,
    file_name: str,
    evaluation: Evaluation | LevelEvaluation | PrivateEvaluation | None,
    answers: Sequence[str],
    ledger: Ledger | None = None,
) -> Page:
    """Page of a release; arguments and errors as in `confide.report`."""
    parts = release.by_name
    first = next(iter(parts.values()))
    evaluated = None if evaluation is None else checked_evaluation(evaluation, release)
    private = evaluated if isinstance(evaluated, PrivateEvaluation) else None
    bare = None if isinstance(evaluated, PrivateEvaluation) else evaluated
    short = {} if evaluated is None else evaluated.shortfalls
    broken = any(one.is_broken for one in short.values())
    federation = silos(release, answers)
    chosen = _plan(release)
    secret = chosen.terms.neighbors == "add_remove"
    kind = "Federated calibration" if isinstance(release, FederatedRelease) else "Calibration"
    # True if the bound on the law of coverage is the law itself, for continuous scores.
    exact = first.mechanism is not None and first.mechanism.name == "none"
    average = release.by is None and release.loss is None and first.guarantee.kind == "marginal"
    context = {
        "score": "” and “".join(dict.fromkeys(part.score for part in parts.values() if part.score)),
        "headline": headline(release),
        "coverage": (promised_figure(release)[0], "promised, but not reached") if broken else promised_figure(release),
        "broken": broken,
        "shortfalls": [sentence_of(name, one) for name, one in short.items()],
        "explanation": f"{explanation(first.guarantee)}{about_groups(release)}",
        "parts": [
            {
                "name": name,
                "threshold": threshold_text(part),
                "promise": promise_of_part(release, name, part),
                "epsilon": number(part.epsilon),
            }
            for name, part in parts.items()
        ],
        "several": len(parts) > 1,
        "privacy": protection(release.privacy),
        "infinite": all(part.excludes_nothing for part in parts.values()),
        "everything": meaning_of_infinity(first.score).capitalize(),
        "remarks": warnings_of(release),
        "rule": rule(release),
        "noun": noun(release),
        "one_width": all(part.score == "absolute_residual" for part in parts.values()),
        "divided": release.by if release.disjoint else "level",
        "overlapping": release.overlap is not None,
        "dots": dots(first.coverage) if average and not broken else None,
        "example": worked_example(release),
        "example_labels": LABELS,
        "limits": limits(release),
        "laws": law_sections(_drawn(parts), chosen.n, exact=exact, secret=secret),
        "price": price(chosen, noun(release)),
        "grid_note": _grid_note(release, first),
        "number_note": number_note(chosen.terms),
        "candidates": chosen.candidates.description,
        "typical": chosen.typical_scores,
        "making": making_section(release),
        "certificate": release.to_json(),
        "sha256": fingerprint(release),
        "command": check_command(file_name),
        "file_name": file_name,
        "evaluation": None if bare is None else _evaluation(bare, release),
        "private": None if private is None else _private(private),
        "federation": federation,
        "stated": metadata(release),
        "spending": [] if ledger is None else spending(release, ledger),
        "by_class": _by_class(bare, release, chosen),
    }
    return page_of("release.html", title or f"{kind} report", context)


def _evaluation(found: Evaluation | LevelEvaluation, release: Release) -> dict[str, Any]:
    more = len(named_parts(found)) - MOST_LEVELS
    return {
        "sections": evaluation_sections(found, release),
        "more": max(0, more),
        "examples": examples(found),
        "short": first_shortfall(found, release),
    }


def _private(found: PrivateEvaluation) -> dict[str, Any]:
    return {
        "privacy": protection(found.privacy),
        "confidence": f"{100 * found.confidence:g}",
        "n": found.query.n,
        "sections": private_sections(found),
        "short": private_shortfall(found),
        "sha256": found.checksum,
    }


def _drawn(parts: dict[str, Threshold]) -> dict[str, tuple[float, tuple[Law, ...]]]:
    """Laws of coverage, one for each distinct kind of part; at most MOST_LAWS."""
    names_by_kind: dict[Any, list[str]] = {}
    for name, part in parts.items():
        names_by_kind.setdefault((part.mechanism, part.guarantee, part.candidates), []).append(name)
    drawn = {}
    for names in list(names_by_kind.values())[:MOST_LAWS]:
        part = parts[names[0]]
        if found := laws(part):
            some = ", ".join(names[:MOST_LAWS]) + ("" if len(names) <= MOST_LAWS else ", …")
            drawn[some] = float(1 - part.alpha), found
    return drawn


def _plan(release: Release) -> Plan:
    """Plan at the point around which the grid is drawn: that of the first threshold."""
    c = release.first
    n, epsilon = records_of_design(c), c.epsilon if 0 < c.epsilon < math.inf else 1.0
    shift = release.population
    return plan(
        c.alpha,
        float(f"{epsilon:.6g}"),
        n,
        neighbors=c.privacy.neighbors,
        candidates=candidates_of(c),
        n_min=c.guarantee.n_min or 1,
        delta=c.guarantee.delta,
        records_per_person=c.privacy.records_per_person,
        class_weights=shift if isinstance(shift, ClassShift) else None,
        weight_bound=shift.bound if isinstance(shift, RecordWeights) else None,
    )


def _by_class(found: Evaluation | LevelEvaluation | None, release: Release, chosen: Plan) -> str | None:
    """Command that gives each class its own promise, if some are covered less beyond chance; else None."""
    alone = type(release) is Release and release.by is None and release.loss is None
    if not alone or not isinstance(found, Evaluation):
        return None
    if found.shortfall is not None or not any(one.below for one in worst_parts(found) if one.kind == "class"):
        return None
    return calibrate_command(chosen).replace(" --out ", " --set by_class=true --out ", 1)


def _grid_note(release: Release, first: Threshold) -> str:
    if isinstance(release, FederatedRelease):
        return (
            "These are plans for one site with all records. A federation costs more, because every silo adds its own "
            "noise; confide federated plan reports how much."
        )
    if release.by is not None or release.loss is not None:
        return "These are plans for one threshold, at the level and the epsilon of the first one in this release."
    if first.mechanism is None or not isinstance(first.mechanism, Slopes):
        return "These are plans for the library’s own mechanism; this release was made by another."
    return ""
