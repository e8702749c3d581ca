"""The part of a page that shows a private evaluation: noisy counts and what follows from them. It may be published."""

from collections.abc import Sequence
from math import ceil, floor
from typing import Any

from confide.errors import InputError
from confide.evaluation import (
    PrivateCoverage,
    PrivateEvaluation,
    PrivateFinding,
    fingerprint,
    interval_text,
    outwards,
    private_statements,
)
from confide.guarantee import coverage_text
from confide.releases import Release
from confide.reports.page import percent
from confide.reports.promise import coverage_percent
from confide.reports.protection import protection

MOST_SHOWN, MOST_ROWS, MOST_NAMED = 30, 500, 5
"""Points in a chart, rows in a table, names in a sentence."""

_BY = {
    "class": ("Coverage by class", "Class", "classes"),
    "group": ("Coverage by group", "Group", "groups"),
    "size": ("Coverage by set size", "Labels in the set", "set sizes"),
    "width": ("Coverage by width of the interval", "Width", "widths"),
}
_SHARES = {"size": ("Set sizes", "Labels in the set"), "width": ("Widths of intervals", "Width")}


def check_private(evaluation: PrivateEvaluation, release: Release) -> None:
    """Refuse a private evaluation of something else, or one that states other promises."""
    if evaluation.calibration != fingerprint(release):
        raise InputError("evaluation must be one of this calibration; it names another; evaluate again")
    outcome, statements = private_statements(release)
    question = evaluation.question
    if (question.outcome, dict(question.statements)) != (outcome, statements):
        raise InputError("evaluation must state what this calibration promises; it states something else")


def private_section(evaluation: PrivateEvaluation) -> dict[str, Any]:
    """What the page says of a private evaluation: its protection, and a block for each promise."""
    blocks = [_block(i, name, one, evaluation) for i, (name, one) in enumerate(evaluation.findings.items())]
    return {
        "privacy": protection(evaluation.privacy),
        "confidence": f"{100 * evaluation.confidence:g}",
        "n": evaluation.question.n,
        "blocks": blocks,
        "short": "" if evaluation.shortfalls else next((told for block in blocks for told in block["short"]), ""),
        "sha256": evaluation.checksum,
    }


def private_charts(evaluation: PrivateEvaluation) -> list[dict[str, Any]]:
    """What the charts draw, by the figures that they are drawn into."""
    return [
        {"id": figure["id"], "label": figure["title"], "points": figure["points"], "promised": figure["promised"]}
        for i, (name, one) in enumerate(evaluation.findings.items())
        for figure in _block(i, name, one, evaluation)["figures"]
        if figure["id"]
    ]


def _block(place: int, name: str, finding: PrivateFinding, evaluation: PrivateEvaluation) -> dict[str, Any]:
    loss = evaluation.question.loss
    coverage = finding.coverage
    if loss is None:
        rows = [("Covered", _percents(coverage)), ("Promised", coverage_percent(coverage.promised))]
    else:
        bound = loss[1]
        value = None if coverage.value is None else bound * (1 - coverage.value)
        found = interval_text(value, bound * (1 - coverage.high), bound * (1 - coverage.low))
        rows = [
            (f"Loss “{loss[0]}”, estimated", found),
            ("Promised", f"{bound * (1 - coverage.promised):.6g} at most"),
        ]
    if finding.mean_size is not None and not name:
        mean = finding.mean_size
        rows.append(("Labels per set, on average", interval_text(mean.value, mean.low, mean.high)))
    figures = [
        _figure(place, kind, parts) if loss is None else _losses(kind, parts, loss[1])
        for kind, parts in finding.parts.items()
    ]
    if not name:
        figures += [_shares(kind, shares) for kind, shares in finding.shares.items()]
    titled = {"": "", "lower end": "The lower ends", "upper end": "The upper ends"}
    told = [] if loss is not None else [_short(kind, parts) for kind, parts in finding.parts.items()]
    short = [sentence for sentence in told if sentence]
    return {"name": titled.get(name, name.replace("alpha ", "α = ")), "rows": rows, "short": short, "figures": figures}


def _percents(coverage: PrivateCoverage) -> str:
    low, high = (percent(edge(10_000 * end) / 10_000) for edge, end in ((floor, coverage.low), (ceil, coverage.high)))
    value = "not known" if coverage.value is None else percent(round(coverage.value, 4))
    return f"{value} (interval {low} to {high})"


def _figure(place: int, kind: str, parts: Sequence[PrivateCoverage]) -> dict[str, Any]:
    """A chart of the parts whose intervals end lowest, and a table of all."""
    shown = parts if len(parts) <= MOST_SHOWN else sorted(parts, key=lambda part: part.high)[:MOST_SHOWN]
    title, head, several = _BY[kind]
    own = len({part.promised for part in parts}) > 1
    return {
        "id": f"private-{kind}-{place}",
        "title": title,
        "caption": "Dots: share among the noisy counts. Bars: intervals that hold all together. "
        + ("Upright: what is promised for each." if own else "Dashed: the promise."),
        "below": any(part.below for part in shown),
        "some": f"The {len(shown)} of {len(parts)} {several} whose intervals end lowest."
        if len(shown) < len(parts)
        else "",
        "points": [_point(part, own=own) for part in shown],
        "promised": parts[0].promised,
        "heads": [
            head,
            "Covered, with noise",
            "Missed, with noise",
            "Coverage",
            "Interval from",
            "to",
            "Promised",
            "Below, beyond chance",
        ],
        "rows": [_row(part) for part in parts[:MOST_ROWS]],
        "left_out": max(0, len(parts) - MOST_ROWS),
    }


def _losses(kind: str, parts: Sequence[PrivateCoverage], bound: float) -> dict[str, Any]:
    """A table of what each part loses, without a chart."""
    rows = []
    for part in parts[:MOST_ROWS]:
        value = "not known" if part.value is None else f"{bound * (1 - part.value):.4g}"
        ends = outwards(bound * (1 - part.high), bound * (1 - part.low))
        rows.append((part.name, value, *ends, f"{bound * (1 - part.promised):.6g}", "yes" if part.below else "no"))
    return {
        "id": "",
        "title": _BY[kind][0].replace("Coverage", "Loss"),
        "heads": [_BY[kind][1], "Loss", "Interval from", "to", "Promised, at most", "Above, beyond chance"],
        "rows": rows,
        "left_out": max(0, len(parts) - MOST_ROWS),
    }


def _point(part: PrivateCoverage, *, own: bool) -> dict[str, Any]:
    point: dict[str, Any] = {"name": part.name, "value": part.value, "low": part.low, "high": part.high}
    return point | ({"promised": part.promised} if own else {}) | ({"below": True} if part.below else {})


def _row(part: PrivateCoverage) -> tuple[str, ...]:
    value = "not known" if part.value is None else f"{part.value:.3f}"
    below = "yes" if part.below else "no"
    return (
        part.name,
        f"{part.covered:,}",
        f"{part.missed:,}",
        value,
        *outwards(part.low, part.high),
        coverage_percent(part.promised),
        below,
    )


def _shares(kind: str, shares: Sequence[Any]) -> dict[str, Any]:
    title, head = _SHARES[kind]
    rows = [
        (one.name, "not known" if one.value is None else f"{one.value:.3f}", *outwards(one.low, one.high))
        for one in shares
    ]
    return {
        "id": f"private-shares-{kind}",
        "title": title,
        "caption": "Dots: share among the noisy counts. Bars: intervals that hold together with all others.",
        "below": False,
        "some": "",
        "points": [dict(vars(one)) for one in shares][:MOST_SHOWN],
        "promised": None,
        "heads": [head, "Share", "Interval from", "to"],
        "rows": rows,
        "left_out": 0,
    }


def _short(kind: str, parts: Sequence[PrivateCoverage]) -> str:
    """Who is surely covered less than promised; empty if nobody is."""
    below = sorted((part for part in parts if part.below), key=lambda part: part.high)
    if not below:
        return ""
    called = ", ".join(f"size {part.name}" if kind == "size" else part.name for part in below[:MOST_NAMED])
    more = ", …" if len(below) > MOST_NAMED else ""
    are = "is" if len(below) == 1 else "are"
    least = coverage_text(min(part.promised for part in below))
    return f"{len(below)} of {len(parts)} {_BY[kind][2]} {are} covered less than {least} beyond chance: {called}{more}."
