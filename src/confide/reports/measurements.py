"""Measurements on labelled records, private or not, as sections of a page."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from confide.evaluation import CoverageTable, Evaluation, Example, Finding, Part, seeming
from confide.reports.charts import BELOW, Share, intervals
from confide.reports.guarantee_text import coverage_percent
from confide.support import Section, Table

MOST_SHOWN, MOST_ROWS, MOST_LEVELS = 30, 300, 6
"""Points in a chart, rows in a table, and levels with their own section."""

_SHORT = "Covered less than promised."
_TRIANGLES = "Triangles: below the promise beyond chance"
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
    """Chart and table of the coverage at each level."""
    findings = list(evaluation.levels.values())
    parts = [replace(one.coverage, name=_title(one)) for one in findings[:MOST_SHOWN]]
    heads = ("Level", "Promised", "Coverage", "Interval", "Size or width, on average")
    rows = tuple(
        (_title(one), coverage_percent(one.coverage.promised or 0.0), one.coverage.value_text,
         one.coverage.interval_text, _mean(one))
        for one in findings
    )  # fmt: skip
    caption = f"{_caption(evaluation)} Upright: the promise of each level."
    if len(findings) > MOST_SHOWN:
        caption += f" The first {MOST_SHOWN} of {len(findings)} levels."
    chart = intervals([_share(part, own=True) for part in parts], None, f"Coverage by level; {BELOW}")
    below = (Section("", tables=(Table(heads, rows, "By level"),)),)
    return Section("Coverage by level", chart=chart, parts=below, notes=(caption,))


def _mean(one: Finding) -> str:
    return "" if (mean := one.mean_size or one.mean_width) is None else f"{mean:.4g}"


def _block(evaluation: Evaluation, finding: Finding) -> Section:
    """A finding with a chart for each of its tables, and with all rows."""
    title, charts, tables = _title(finding), [], []
    for table in [finding.ends, *evaluation.shown(finding)] if finding.ends else evaluation.shown(finding):
        if table.of != "loss":
            charts.append(_chart(evaluation, table))
        rows = table.as_table(MOST_ROWS)
        tables.append(replace(rows, caption=f"{title}: {rows.caption}" if title else rows.caption))
    short = tuple(f"{_SHORT} {sentence}" for sentence in evaluation.sentences(finding))
    described = replace(evaluation.describe(finding), title=title, notes=())
    return replace(described, warnings=short, parts=tuple(charts), tables=tuple(tables))


def _share(part: Part, *, own: bool) -> Share:
    return Share(part.name, part.value, part.low, part.high, part.promised if own else None, part.below)


def _chart(evaluation: Evaluation, table: CoverageTable) -> Section:
    """Chart of parts, or of shares of records: the least covered, or the most frequent, of very many."""
    title, shown = table.as_table().caption, list(table)
    if len(table) > MOST_SHOWN:
        chosen = sorted(table, key=(lambda part: -part.high) if table.of == "share" else seeming)[:MOST_SHOWN]
        shown = [part for part in table if part in chosen]
    caption = _caption(evaluation)
    if table.of != "share":
        caption += " Upright: the promise of each of them." if table.own else " Dashed: the promise, an average."
    if table.below:
        caption += f" {_TRIANGLES} (all of them at once)."
    if len(shown) < len(table):
        most = "most frequent" if table.of == "share" else "least covered"
        caption += f" The {len(shown)} {most} of {len(table)}."
    promised = None if table.of == "share" else table[0].promised
    chart = intervals([_share(part, own=table.own) for part in shown], promised, f"{title}; {BELOW}")
    return Section(title, chart=chart, notes=(caption,))


def _caption(evaluation: Evaluation) -> str:
    if evaluation.private:
        return "Dots: share among the noisy counts. Bars: intervals that hold all together."
    return "Dots: share of records. Bars: exact 95 % intervals."


def examples(evaluation: Evaluation) -> list[list[dict[str, Any]]]:
    """Sets of each record that may be shown, level by level."""
    chosen: Sequence[Finding] = list(evaluation.findings.values())[: min(MOST_LEVELS, len(evaluation.examples))]
    several = zip(*(finding.examples for finding in chosen), strict=True)
    return [[_shown(_title(one), shown) for one, shown in zip(chosen, record, strict=True)] for record in several]


def _shown(name: str, one: Example) -> dict[str, Any]:
    at = name if one.group is None else f"group {one.group}"
    return {"at": at, "members": one.members, "truth": one.truth, "covered": one.truth in one.members}
