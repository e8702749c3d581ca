"""Measurements on labelled records, private or not, as sections of a page."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from confide.core import Release
from confide.errors import InputError
from confide.evaluation import (
    Evaluation,
    Example,
    LevelEvaluation,
    Part,
    PrivateEvaluation,
    PrivateFinding,
    division_of,
    fingerprint,
    format_interval_ends,
    private_facts,
    private_statements,
    promise_text,
    surely_below,
    total_facts,
    worst_facts,
    worst_parts,
)
from confide.guarantee import coverage_text
from confide.reports.charts import BELOW, Share, intervals, sizes
from confide.reports.guarantee_text import coverage_percent
from confide.reports.page import number
from confide.sets import CoverageEstimate
from confide.support import Section, Table

MOST_SHOWN, MOST_ROWS, MOST_LEVELS, MOST_NAMED = 30, 300, 6, 5
"""Points in a chart, rows in a table, levels with their own section, and names in a sentence."""

_SHORT = "Covered less than promised."
_TRIANGLES = "Triangles: below the promise beyond chance"


AnyEvaluation: TypeAlias = Evaluation | LevelEvaluation | PrivateEvaluation


def checked_evaluation(evaluation: AnyEvaluation, release: Release) -> AnyEvaluation:
    """Return an evaluation of this release with its shortfall; raise `InputError` for another one."""
    if isinstance(evaluation, PrivateEvaluation):
        check_private(evaluation, release)
    else:
        check_evaluation(evaluation, release)
    return evaluation.with_shortfall(release)


def check_evaluation(evaluation: Evaluation | LevelEvaluation, release: Release) -> None:
    """Raise `InputError` for an evaluation of another release."""
    if evaluation.calibration != fingerprint(release):
        raise InputError("evaluation", "must be one of this calibration", "one of another", "evaluate again")
    parts = {level: release.at(level) for level in release.parts} if release.by == "level" else {}
    found = evaluation.levels if isinstance(evaluation, LevelEvaluation) else {}
    if {a: fingerprint(part) for a, part in parts.items()} != {a: one.calibration for a, one in found.items()}:
        raise InputError("evaluation", "must be of the levels of this calibration", remedy="evaluate again")
    if isinstance(evaluation, Evaluation) and evaluation.by != division_of(release):
        raise InputError("evaluation", "must have the groups of this calibration", remedy="evaluate again")


def check_private(evaluation: PrivateEvaluation, release: Release) -> None:
    """Raise `InputError` for a private evaluation of another release, or one with other promises."""
    if evaluation.calibration != fingerprint(release):
        raise InputError("evaluation", "must be one of this calibration", "one of another", "evaluate again")
    outcome, statements = private_statements(release)
    query = evaluation.query
    if (query.outcome, dict(query.statements)) != (outcome, statements):
        raise InputError("evaluation", "must contain the promises of this calibration", "other promises")


def _loss(share: float, bound: float) -> str:
    return f"{bound * (1 - share):.4g}"


# Without privacy


def named_parts(evaluation: Evaluation | LevelEvaluation) -> dict[str, Evaluation]:
    """Evaluation of each level, by its name; that of one threshold has the name ""."""
    if isinstance(evaluation, Evaluation):
        return {"": evaluation}
    return {f"α = {float(alpha):g}": found for alpha, found in evaluation.levels.items()}


def first_shortfall(evaluation: Evaluation | LevelEvaluation, release: Release) -> str:
    """First sentence about covered parts: of classes, groups or ends before set sizes, of the first level with one."""
    if release.loss or evaluation.shortfalls:
        return ""
    for name, found in named_parts(evaluation).items():
        if sentences := shortfalls(found):
            return (f"{name}: " if name else "") + sentences[0]
    return ""


def shortfalls(found: Evaluation) -> list[str]:
    """Sentences about parts that are covered less than promised beyond chance, one for each kind."""
    return [one.sentence for one in worst_parts(found) if one.below]


def evaluation_sections(evaluation: Evaluation | LevelEvaluation, release: Release) -> list[Section]:
    """Coverage by level, if there are several, and a section for each of the first levels."""
    named = named_parts(evaluation)
    own = [release] if "" in named else [release.at(alpha) for alpha in release.parts]
    blocks = [_block(*one, part) for one, part in list(zip(named.items(), own, strict=True))[:MOST_LEVELS]]
    return blocks if "" in named else [_levels(named), *blocks]


def _levels(named: dict[str, Evaluation]) -> Section:
    shares = [
        Share(name, found.coverage.value, found.coverage.low, found.coverage.high, found.promised)
        for name, found in named.items()
    ]
    size = "Labels per set" if next(iter(named.values())).sizes else "Width, on average"
    heads = ("Level", "Promised", "Coverage", "Interval from", "to", size)
    rows = tuple(_level_row(name, found) for name, found in named.items())
    caption = "Dots: share covered. Bars: exact 95 % intervals. Upright: the promise of each level."
    if len(named) > MOST_SHOWN:
        caption += f" The first {MOST_SHOWN} of {len(named)} levels."
    chart = intervals(shares[:MOST_SHOWN], None, f"Coverage by level; {BELOW}")
    below = (Section("", tables=(Table(heads, rows, "By level"),)),)
    return Section("Coverage by level", chart=chart, parts=below, notes=(caption,))


def _level_row(name: str, found: Evaluation) -> tuple[str, ...]:
    width = "" if found.mean_width is None else number(found.mean_width)
    size = width if found.mean_size is None else f"{found.mean_size:.2f}"
    return (name, coverage_percent(found.promised), *_interval(found.coverage), size)


def _block(name: str, found: Evaluation, release: Release) -> Section:
    risk = release.loss is not None
    end = found.by == "side"
    kinds = [
        ("Coverage by end of the interval" if end else "Coverage by group", "End" if end else "Group", "groups",
         found.groups, found.by is not None),
        ("Coverage by group", "Group", "groups", () if risk else found.subgroups, False),
        ("Coverage by set size", "Labels in the set", "sizes", found.sizes, False),
        ("Coverage by class", "Class", "classes", found.classes, found.by == "class"),
    ]  # fmt: skip
    charts, tables = [], []
    for title, head, several, parts, own in kinds:
        if not parts:
            continue
        if several == "sizes":
            shares = [(int(part.name), part.n / found.coverage.n) for part in parts]
            caption = "Share of records whose set has each number of labels."
            charts.append(Section("Set sizes", chart=sizes(shares, f"Share of records by set size; {BELOW}"),
                                  notes=(caption,)))  # fmt: skip
        charts.append(_chart(title, several, parts, found.promised, own=own))
        tables.append(_table(f"{name}: " if name else "", title, head, parts, found.promised))
    if not (found.groups or found.subgroups or found.classes):
        tables = []  # the chart shows the sizes
    if release.loss is not None and found.subgroups:
        charts.append(Section("", tables=(_losses(name, found.subgroups, release),)))
    short = () if risk else tuple(f"{_SHORT} {sentence}" for sentence in shortfalls(found))
    facts = total_facts(found, promise_text(found, release), release.bounded)
    facts += () if risk else worst_facts(found)
    return Section(name, facts=facts, warnings=short, parts=tuple(charts), tables=tuple(tables))


def _interval(c: CoverageEstimate) -> tuple[str, str, str]:
    return f"{c.value:.3f}", f"{c.low:.3f}", f"{c.high:.3f}"


def _chart(title: str, several: str, parts: Sequence[Part], promised: float, *, own: bool) -> Section:
    """Chart of parts: the least covered of many classes and groups, or the most frequent of many sizes."""
    below = surely_below(parts, promised)
    shown, most = list(parts), "least covered"
    if several == "sizes":
        most = "most frequent"
        shown = sorted(sorted(parts, key=lambda part: -part.n)[:MOST_SHOWN], key=lambda part: int(part.name))
    elif len(parts) > MOST_SHOWN or several == "classes":
        shown = sorted(parts, key=lambda part: part.coverage.value)[:MOST_SHOWN]
    shares = [
        Share(one.name, one.coverage.value, one.coverage.low, one.coverage.high, one.promised, one in below)
        for one in shown
    ]
    about = "Upright: the promise of each of them." if own else "Dashed: the promise, which is an average."
    caption = f"Dots: share covered. Bars: exact 95 % intervals. {about}"
    if below:
        caption += f" {_TRIANGLES} (95 %, all of them at once)."
    if len(shown) < len(parts):
        caption += f" The {len(shown)} {most} of {len(parts)} {several}."
    chart = intervals(shares, promised, f"{title}; {BELOW}")
    return Section(title, chart=chart, notes=(caption,))


def _table(level: str, title: str, head: str, parts: Sequence[Part], promised: float) -> Table:
    """Table with a row for each part; columns without entries are left out."""
    below = set(surely_below(parts, promised))
    rows = [_cells(head, part, below) for part in parts[:MOST_ROWS]]
    caption = level + title.replace("Coverage by", "By").removesuffix(" of the interval")
    return Table(tuple(rows[0]), tuple(tuple(row.values()) for row in rows), caption, len(parts))


def _cells(what: str, part: Part, below: set[Part]) -> dict[str, str]:
    heads = ("Coverage", "Interval from", "to")
    cells = {what: part.name, "Records": f"{part.n:,}", **dict(zip(heads, _interval(part.coverage), strict=True))}
    if part.mean_size is not None:
        cells["Labels per set"] = f"{part.mean_size:.2f}"
    if part.mean_width is not None:
        cells["Width, on average"] = number(part.mean_width)
    if part.promised is not None:
        cells["Promised"] = coverage_percent(part.promised)
    if below:
        cells["Below, beyond chance"] = "yes" if part in below else "no"
    return cells


def _losses(name: str, parts: Sequence[Part], release: Release) -> Table:
    rows = tuple(
        (part.name, f"{part.n:,}", *(_loss(share, release.bound) for share in (c.value, c.high, c.low)))
        for part in parts[:MOST_ROWS]
        for c in [part.coverage]
    )
    heads = ("Group", "Records", "Loss", "Interval from", "to")
    return Table(heads, rows, (f"{name}: " if name else "") + "Loss by group", len(parts))


def examples(evaluation: Evaluation | LevelEvaluation) -> list[list[dict[str, Any]]]:
    """Sets of each record that may be shown, level by level."""
    chosen = list(named_parts(evaluation).items())[:MOST_LEVELS]
    several = zip(*(found.examples for _, found in chosen), strict=True)
    return [[_shown(name, one) for (name, _), one in zip(chosen, record, strict=True)] for record in several]


def _shown(name: str, one: Example) -> dict[str, Any]:
    at = name if one.group is None else f"group {one.group}"
    return {"at": at, "members": one.members, "truth": one.truth, "covered": one.truth in one.members}


# With privacy

_BY = {
    "class": ("Coverage by class", "Class", "classes"),
    "group": ("Coverage by group", "Group", "groups"),
    "size": ("Coverage by set size", "Labels in the set", "set sizes"),
    "width": ("Coverage by width of the interval", "Width", "widths"),
}
_SHARES = {"size": ("Set sizes", "Labels in the set"), "width": ("Widths of intervals", "Width")}
_TITLES = {"": "", "lower end": "The lower ends", "upper end": "The upper ends"}


def private_sections(evaluation: PrivateEvaluation) -> list[Section]:
    """One section for each promise."""
    loss = evaluation.query.loss
    return [_private(name, finding, loss) for name, finding in evaluation.findings.items()]


def private_shortfall(evaluation: PrivateEvaluation) -> str:
    """First sentence about a part that is covered less than promised beyond chance; empty without such parts."""
    if evaluation.shortfalls or evaluation.query.loss is not None:
        return ""
    sentences = (_short(kind, parts) for one in evaluation.findings.values() for kind, parts in one.parts.items())
    return next((sentence for sentence in sentences if sentence), "")


def _private(name: str, finding: PrivateFinding, loss: tuple[str, float] | None) -> Section:
    title = _TITLES.get(name, name.replace("alpha ", "α = "))
    charts, tables, short = [], [], []
    for kind, parts in finding.parts.items():
        if loss is not None:
            charts.append(Section("", tables=(_private_losses(kind, parts, loss[1]),)))
            continue
        charts.append(_private_chart(kind, parts))
        tables.append(_private_table(title, kind, parts))
        short += [f"{_SHORT} {sentence}" for sentence in [_short(kind, parts)] if sentence]
    for kind, shares in ({} if name else finding.shares).items():
        what, head = _SHARES[kind]
        drawn = [Share(one.name, one.value, one.low, one.high) for one in shares][:MOST_SHOWN]
        caption = "Dots: share among the noisy counts. Bars: intervals that hold together with all others."
        charts.append(Section(what, chart=intervals(drawn, None, f"{what}; {BELOW}"), notes=(caption,)))
        rows = tuple((one.name, _known(one.value), *format_interval_ends(one.low, one.high)) for one in shares)
        tables.append(Table((head, "Share", "Interval from", "to"), rows, what))
    facts = private_facts(name, finding, loss)
    return Section(title, facts=facts, warnings=tuple(short), parts=tuple(charts), tables=tuple(tables))


def _known(value: float | None) -> str:
    return "not known" if value is None else f"{value:.3f}"


def _private_chart(kind: str, parts: Sequence[Part]) -> Section:
    """Chart of the parts; of many, those with the lowest upper interval ends."""
    shown = parts if len(parts) <= MOST_SHOWN else sorted(parts, key=lambda part: part.high)[:MOST_SHOWN]
    title, _, several = _BY[kind]
    own = len({part.promise for part in parts}) > 1
    caption = "Dots: share among the noisy counts. Bars: intervals that hold all together. "
    caption += "Upright: the promise of each." if own else "Dashed: the promise."
    if any(part.below for part in shown):
        caption += f" {_TRIANGLES}."
    if len(shown) < len(parts):
        caption += f" The {len(shown)} of {len(parts)} {several} with the lowest upper interval ends."
    drawn = [
        Share(part.name, part.value, part.low, part.high, part.promise if own else None, part.below) for part in shown
    ]
    chart = intervals(drawn, parts[0].promised, f"{title}; {BELOW}")
    return Section(title, chart=chart, notes=(caption,))


def _private_table(level: str, kind: str, parts: Sequence[Part]) -> Table:
    title, head, _ = _BY[kind]
    heads = (head, "Covered, with noise", "Missed, with noise", "Coverage", "Interval from", "to", "Promised",
             "Below, beyond chance")  # fmt: skip
    rows = tuple(
        (part.name, f"{part.covered:,}", f"{part.missed:,}", _known(part.value), *format_interval_ends(part.low,
        part.high),
         coverage_percent(part.promise), "yes" if part.below else "no")
        for part in parts[:MOST_ROWS]
    )  # fmt: skip
    return Table(heads, rows, f"{level}: {title}" if level else title, len(parts))


def _private_losses(kind: str, parts: Sequence[Part], bound: float) -> Table:
    """Loss of each part."""
    rows = []
    for part in parts[:MOST_ROWS]:
        value = "not known" if part.value is None else _loss(part.value, bound)
        ends = format_interval_ends(bound * (1 - part.high), bound * (1 - part.low))
        promised = f"{bound * (1 - part.promise):.6g}"
        rows.append((part.name, value, *ends, promised, "yes" if part.below else "no"))
    heads = (_BY[kind][1], "Loss", "Interval from", "to", "Promised, at most", "Above, beyond chance")
    return Table(heads, tuple(rows), _BY[kind][0].replace("Coverage", "Loss"), len(parts))


def _short(kind: str, parts: Sequence[Part]) -> str:
    """Sentence about the parts that are covered less than promised beyond chance; empty without such parts."""
    below = sorted((part for part in parts if part.below), key=lambda part: part.high)
    if not below:
        return ""
    called = ", ".join(f"size {part.name}" if kind == "size" else part.name for part in below[:MOST_NAMED])
    more = ", …" if len(below) > MOST_NAMED else ""
    are = "is" if len(below) == 1 else "are"
    least = coverage_text(min(part.promise for part in below))
    return f"{len(below)} of {len(parts)} {_BY[kind][2]} {are} covered less than {least} beyond chance: {called}{more}."
