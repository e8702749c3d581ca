"""The part of a page that shows an evaluation: what was found on labelled records, which is not private."""

from collections.abc import Sequence
from typing import Any

from confide.errors import InputError
from confide.evaluation import (
    Evaluation,
    Example,
    LevelEvaluation,
    Subgroup,
    WorstPart,
    division_of,
    fingerprint,
    surely_below,
    worst_parts,
)
from confide.releases import Release, RiskCalibration
from confide.reports.page import number, percent
from confide.reports.promise import coverage_percent
from confide.sets import CoverageEstimate

MOST_SHOWN = 30
MOST_ROWS = 500
MOST_LEVELS = 6
"""Points in a chart, rows in a table, and levels that are shown one by one."""


def check_evaluation(evaluation: Evaluation | LevelEvaluation, release: Release) -> None:
    """Refuse an evaluation of something else."""
    if evaluation.calibration != fingerprint(release):
        raise InputError("evaluation must be one of this calibration; it names another; evaluate again")
    parts = release.parts if release.by == "level" else {}
    found = evaluation.levels if isinstance(evaluation, LevelEvaluation) else {}
    if {a: fingerprint(part) for a, part in parts.items()} != {a: one.calibration for a, one in found.items()}:
        raise InputError("evaluation must be of the levels of this calibration; evaluate again")
    if isinstance(evaluation, Evaluation) and evaluation.by != division_of(release):
        raise InputError("evaluation must have the groups of this calibration; evaluate again")


def evaluation_section(evaluation: Evaluation | LevelEvaluation, release: Release) -> dict[str, Any]:
    """What the page says of an evaluation: one block of figures, or one for each level, and the examples."""
    named = _named(evaluation)
    return {
        "blocks": [_block(name, found, release) for name, found in list(named.items())[:MOST_LEVELS]],
        "levels": [_level_row(name, found) for name, found in named.items()] if "" not in named else [],
        "levels_shown": min(len(named), MOST_LEVELS),
        "examples": _examples(named),
        "short": "" if release.bounded or evaluation.shortfalls else _first_shortfall(named),
    }


def _first_shortfall(named: dict[str, Evaluation]) -> str:
    """The sentence that leads: of classes, groups or ends, before set sizes; of the first level that has one."""
    for name, found in named.items():
        if sentences := shortfalls(found):
            return (f"{name}: " if name else "") + sentences[0]
    return ""


def evaluation_charts(evaluation: Evaluation | LevelEvaluation) -> dict[str, Any]:
    """What the charts draw, block by block; and coverage level by level."""
    named = _named(evaluation)
    levels = [
        {**_coverage_point(name, found.coverage), "promised": found.promised} for name, found in named.items() if name
    ]
    return {"levels": levels[:MOST_SHOWN], "blocks": [_drawn(found) for found in list(named.values())[:MOST_LEVELS]]}


def _named(evaluation: Evaluation | LevelEvaluation) -> dict[str, Evaluation]:
    if isinstance(evaluation, Evaluation):
        return {"": evaluation}
    return {f"α = {float(alpha):g}": found for alpha, found in evaluation.levels.items()}


def _block(name: str, found: Evaluation, release: Release) -> dict[str, Any]:
    risk = release.by == "loss"
    return {
        "name": name,
        "rows": _rows(found, release),
        "by": found.by,
        "short": [] if risk else shortfalls(found),
        "groups": _table("End" if found.by == "side" else "Group", found.groups, found.promised),
        "subgroups": _table("Group", () if risk else found.subgroups, found.promised),
        "losses": _losses(found.subgroups, release) if isinstance(release, RiskCalibration) else [],
        "classes": _table("Class", found.classes, found.promised),
        "sizes": _table("Labels in the set", found.sizes, found.promised),
    }


def shortfalls(found: Evaluation) -> list[str]:
    """A sentence for each kind of part of which some are surely covered less than promised."""
    return [one.sentence for one in worst_parts(found) if one.below]


def _rows(found: Evaluation, release: Release) -> list[tuple[str, str]]:
    c = found.coverage
    rows = [("Records", f"{c.n:,}")]
    if isinstance(release, RiskCalibration):
        loss, low, high = _loss(c, release)
        rows.append((f"Loss “{release.loss}”, estimated", f"{loss} (95\u00a0% interval {low} to {high})"))
        rows.append(("Promised", f"{release.risk:.6g} at most"))
    else:
        value, low, high = (percent(round(share, 4)) for share in (c.value, c.low, c.high))
        rows.append(("Covered", f"{value} (95\u00a0% interval {low} to {high})"))
        each = {"group": ", of each group", "class": ", of each class"}.get(found.by or "", "")
        rows.append(("Promised", coverage_percent(found.promised) + each))
        rows += [_worst_row(one) for one in worst_parts(found)]
    if found.mean_size is not None:
        rows.append(("Labels per set, on average", f"{found.mean_size:.2f}"))
        rows.append(("Sets of one label", percent(round(found.singletons or 0.0, 4))))
        rows.append(("Empty sets", percent(round(found.empty or 0.0, 4))))
    if found.mean_width is not None:
        rows.append(("Width of intervals, on average", number(found.mean_width)))
    return rows


def _worst_row(one: WorstPart) -> tuple[str, str]:
    c, name = one.part.coverage, f"size {one.part.name}" if one.kind == "set size" else one.part.name
    value, low, high = (percent(round(share, 4)) for share in (c.value, c.low, c.high))
    surely = ", less than promised beyond chance" if one.part in one.below else ""
    covered = f"{value} of {c.n:,} records (95\u00a0% interval {low} to {high})"
    return f"Least covered {one.kind}", f"{name}: {covered}{surely}"


def _loss(c: CoverageEstimate, release: RiskCalibration) -> tuple[str, str, str]:
    """The loss and its interval."""
    loss, low, high = (f"{release.bound * (1 - share):.4g}" for share in (c.value, c.high, c.low))
    return loss, low, high


def _losses(parts: Sequence[Subgroup], release: RiskCalibration) -> list[tuple[str, ...]]:
    return [(part.name, f"{part.n:,}", *_loss(part.coverage, release)) for part in parts[:MOST_ROWS]]


def _level_row(name: str, found: Evaluation) -> tuple[str, ...]:
    width = "" if found.mean_width is None else number(found.mean_width)
    size = width if found.mean_size is None else f"{found.mean_size:.2f}"
    return (name, coverage_percent(found.promised), *_interval(found.coverage).values(), size)


def _table(what: str, parts: tuple[Subgroup, ...], promised: float) -> dict[str, Any]:
    """Heads and rows; a column that no part has is left out."""
    below = set(surely_below(parts, promised))
    rows = [_cells(what, part, below) for part in parts[:MOST_ROWS]]
    return {
        "heads": list(rows[0]) if rows else [],
        "rows": [tuple(row.values()) for row in rows],
        "left_out": max(0, len(parts) - MOST_ROWS),
        "shown": min(MOST_SHOWN, len(parts)),
        "total": len(parts),
    }


def _cells(what: str, part: Subgroup, below: set[Subgroup]) -> dict[str, str]:
    cells = {what: part.name, "Records": f"{part.n:,}", **_interval(part.coverage)}
    if part.mean_size is not None:
        cells["Labels per set"] = f"{part.mean_size:.2f}"
    if part.mean_width is not None:
        cells["Width, on average"] = number(part.mean_width)
    if part.promised is not None:
        cells["Promised"] = coverage_percent(part.promised)
    if below:
        cells["Below, beyond chance"] = "yes" if part in below else "no"
    return cells


def _interval(c: CoverageEstimate) -> dict[str, str]:
    return {"Coverage": f"{c.value:.3f}", "Interval from": f"{c.low:.3f}", "to": f"{c.high:.3f}"}


def _examples(named: dict[str, Evaluation]) -> list[list[dict[str, Any]]]:
    """For each record its sets, level by level."""
    chosen = list(named.items())[:MOST_LEVELS]
    several = zip(*(found.examples for _, found in chosen), strict=True)
    return [[_shown(name, one) for (name, _), one in zip(chosen, record, strict=True)] for record in several]


def _shown(name: str, one: Example) -> dict[str, Any]:
    at = name if one.group is None else f"group {one.group}"
    return {"at": at, "members": one.members, "truth": one.truth, "covered": one.truth in one.members}


def _drawn(found: Evaluation) -> dict[str, Any]:
    """Points with their intervals; of many classes and groups the least covered, of many sizes the most frequent."""
    frequent = sorted(found.sizes, key=lambda part: -part.n)[:MOST_SHOWN]
    groups, subgroups = (
        parts if len(parts) <= MOST_SHOWN else _least_covered(parts) for parts in (found.groups, found.subgroups)
    )

    def points(shown: Sequence[Subgroup], parts: Sequence[Subgroup]) -> list[dict[str, Any]]:
        below = surely_below(parts, found.promised)
        return [_point(part) | ({"below": True} if part in below else {}) for part in shown]

    return {
        "promised": found.promised,
        "groups": points(groups, found.groups),
        "subgroups": points(subgroups, found.subgroups),
        "classes": points(_least_covered(found.classes), found.classes),
        "sizes": [{"name": part.name, "share": part.n / found.coverage.n} for part in found.sizes],
        "frequent": points(sorted(frequent, key=lambda part: int(part.name)), found.sizes),
    }


def _least_covered(parts: tuple[Subgroup, ...]) -> list[Subgroup]:
    return sorted(parts, key=lambda part: part.coverage.value)[:MOST_SHOWN]


def _point(part: Subgroup) -> dict[str, Any]:
    own = {} if part.promised is None else {"promised": part.promised}
    return {**_coverage_point(part.name, part.coverage), **own}


def _coverage_point(name: str, c: CoverageEstimate) -> dict[str, Any]:
    return {"name": name, "value": round(c.value, 6), "low": round(c.low, 6), "high": round(c.high, 6)}
