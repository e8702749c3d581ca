"""Measurements on labelled records, private or not, as sections of a page."""

from collections.abc import Sequence
from typing import Any

from confide.evaluation import CoverageTable, Evaluation, Example, Finding, Part, format_interval_ends
from confide.reports.charts import BELOW, Share, intervals
from confide.reports.guarantee_text import coverage_percent
from confide.reports.page import number
from confide.support import Section, Table

MOST_SHOWN, MOST_ROWS, MOST_LEVELS = 30, 300, 6
"""Points in a chart, rows in a table, and levels with their own section."""

_SHORT = "Covered less than promised."
_TRIANGLES = "Triangles: below the promise beyond chance"
_EXACT = "Dots: share covered. Bars: exact 95 % intervals."
_NOISY = "Dots: share among the noisy counts. Bars: intervals that hold all together."
_BY = {
    "class": ("Coverage by class", "Class", "classes"),
    "group": ("Coverage by group", "Group", "groups"),
    "size": ("Coverage by set size", "Labels in the set", "set sizes"),
    "width": ("Coverage by width of the interval", "Width", "widths"),
    "end": ("Coverage by end of the interval", "End", "ends"),
}
_SHARES = {"size": ("Set sizes", "Labels in the set"), "width": ("Widths of intervals", "Width")}
_TITLES = {"": "", "lower end": "The lower ends", "upper end": "The upper ends"}


def first_shortfall(evaluation: Evaluation) -> str:
    """First sentence about covered parts: of classes, groups or ends before set sizes, of the first level with one."""
    if evaluation.shortfalls:
        return ""
    for finding in evaluation.findings.values():
        if sentences := evaluation.sentences(finding):
            return (f"{_title(finding)}: " if finding.name else "") + sentences[0]
    return ""


def evaluation_sections(evaluation: Evaluation) -> list[Section]:
    """Coverage by level, if there are several, and a section for each of the first statements."""
    blocks = [_block(evaluation, one) for one in list(evaluation.findings.values())[:MOST_LEVELS]]
    return [*([_levels(evaluation)] if evaluation.levels else []), *blocks]


def _title(finding: Finding) -> str:
    return _TITLES.get(finding.name, finding.label.replace("alpha ", "α = "))


def _levels(evaluation: Evaluation) -> Section:
    findings = list(evaluation.levels.values())
    shares = [_share(one.coverage, _title(one), own=True) for one in findings]
    size = "Width, on average" if findings[0].mean_size is None else "Labels per set"
    heads = ("Level", "Promised", "Coverage", "Interval from", "to", size)
    rows = tuple(
        (_title(one), coverage_percent(one.coverage.promised or 0.0), *_interval(one.coverage), _mean(one))
        for one in findings
    )
    caption = f"{_NOISY if evaluation.private else _EXACT} Upright: the promise of each level."
    if len(findings) > MOST_SHOWN:
        caption += f" The first {MOST_SHOWN} of {len(findings)} levels."
    chart = intervals(shares[:MOST_SHOWN], None, f"Coverage by level; {BELOW}")
    below = (Section("", tables=(Table(heads, rows, "By level"),)),)
    return Section("Coverage by level", chart=chart, parts=below, notes=(caption,))


def _block(evaluation: Evaluation, finding: Finding) -> Section:
    title, risk = _title(finding), evaluation.query.loss is not None
    of = f"{title}: " if title else ""
    parts, tables = [], []
    if finding.shares is not None:
        parts.append(_shares_chart(finding.shares, private=evaluation.private))
        tables.append(_shares_table(finding.shares, of))
    for table in finding.tables:
        if not risk:
            parts.append(_chart(table, private=evaluation.private))
        tables.append(_table(evaluation, table, of))
    facts = evaluation.total_facts(finding)
    facts += () if evaluation.private else evaluation.worst_facts(finding)
    short = tuple(f"{_SHORT} {sentence}" for sentence in evaluation.sentences(finding))
    return Section(title, facts=facts, warnings=short, parts=tuple(parts), tables=tuple(tables))


def _share(part: Part, name: str, *, own: bool) -> Share:
    return Share(name, part.value, part.low, part.high, part.promised if own else None, part.below)


def _chart(table: CoverageTable, *, private: bool) -> Section:
    """Chart of parts: the least covered of many classes and groups."""
    title, _, several = _BY[table.kind]
    shown = list(table)
    if len(table) > MOST_SHOWN or (table.kind == "class" and not private):
        shown = sorted(table, key=lambda part: part.high if private or part.value is None else part.value)[:MOST_SHOWN]
    about = "Upright: the promise of each of them." if table.own else "Dashed: the promise, which is an average."
    caption = f"{_NOISY if private else _EXACT} {about}"
    if table.below:
        caption += f" {_TRIANGLES} ({'noise included' if private else '95 %'}, all of them at once)."
    if len(shown) < len(table):
        least = "with the lowest upper interval ends" if private else "least covered"
        caption += f" Of {len(table)} {several} the {len(shown)} {least}."
    shares = [_share(part, part.name, own=table.own) for part in shown]
    chart = intervals(shares, table[0].promised, f"{title}; {BELOW}")
    return Section(title, chart=chart, notes=(caption,))


def _shares_chart(shares: CoverageTable, *, private: bool) -> Section:
    """Chart of the shares of sizes or widths: of many those of the most frequent ones."""
    title, _ = _SHARES[shares.kind]
    frequent = sorted(range(len(shares)), key=lambda place: -(shares[place].value or 0.0))[:MOST_SHOWN]
    drawn = [_share(shares[place], shares[place].name, own=False) for place in sorted(frequent)]
    caption = f"{_NOISY if private else _EXACT} Share of records, not of covered ones."
    if len(drawn) < len(shares):
        caption += f" The {len(drawn)} most frequent of {len(shares)}."
    return Section(title, chart=intervals(drawn, None, f"{title}; {BELOW}"), notes=(caption,))


def _shares_table(shares: CoverageTable, of: str) -> Table:
    title, head = _SHARES[shares.kind]
    rows = tuple((part.name, *_interval(part)) for part in shares.parts[:MOST_ROWS])
    return Table((head, "Share", "Interval from", "to"), rows, f"{of}{title}", len(shares))


def _table(evaluation: Evaluation, table: CoverageTable, of: str) -> Table:
    """Table with a row for each part; columns without entries are left out."""
    bound = None if evaluation.query.loss is None else evaluation.query.loss[1]
    rows = [_cells(table, part, bound, private=evaluation.private) for part in table.parts[:MOST_ROWS]]
    caption = _BY[table.kind][0] if bound is None else _BY[table.kind][0].replace("Coverage", "Loss")
    return Table(tuple(rows[0]), tuple(tuple(row.values()) for row in rows), f"{of}{caption}", len(table))


def _cells(table: CoverageTable, part: Part, bound: float | None, *, private: bool) -> dict[str, str]:
    cells = {_BY[table.kind][1]: part.name}
    if private:
        cells |= {"Covered, with noise": f"{part.covered:,}", "Missed, with noise": f"{part.missed:,}"}
    else:
        cells["Records"] = f"{part.n:,}"
    value, low, high = _interval(part if bound is None else part.as_loss(bound))
    cells |= {"Coverage" if bound is None else "Loss": value, "Interval from": low, "to": high}
    if part.mean_size is not None or part.mean_width is not None:
        cells["Labels per set" if part.mean_width is None else "Width, on average"] = _mean(part)
    if (table.own or private) and part.promised is not None:
        promised = coverage_percent(part.promised) if bound is None else f"{bound * (1 - part.promised):.6g}"
        cells["Promised" if bound is None else "Promised, at most"] = promised
    if table.below or private:
        cells[f"{'Below' if bound is None else 'Above'}, beyond chance"] = "yes" if part.below else "no"
    return cells


def _interval(part: Part) -> tuple[str, str, str]:
    """Share and interval; intervals that include noise are rounded outwards."""
    if part.value is None or part.confidence is None:
        return "not known" if part.value is None else f"{part.value:.3f}", *format_interval_ends(part.low, part.high)
    return f"{part.value:.3f}", f"{part.low:.3f}", f"{part.high:.3f}"


def _mean(one: Part | Finding) -> str:
    if one.mean_size is not None:
        return f"{one.mean_size:.2f}"
    return "" if one.mean_width is None else number(one.mean_width)


def examples(evaluation: Evaluation) -> list[list[dict[str, Any]]]:
    """Sets of each record that may be shown, level by level."""
    chosen: Sequence[Finding] = list(evaluation.findings.values())[: min(MOST_LEVELS, len(evaluation.examples))]
    several = zip(*(finding.examples for finding in chosen), strict=True)
    return [[_shown(_title(one), shown) for one, shown in zip(chosen, record, strict=True)] for record in several]


def _shown(name: str, one: Example) -> dict[str, Any]:
    at = name if one.group is None else f"group {one.group}"
    return {"at": at, "members": one.members, "truth": one.truth, "covered": one.truth in one.members}
