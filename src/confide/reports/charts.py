"""Charts of the pages. The text and the tables of a page contain the same numbers."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from confide.reports.page import number, percent
from confide.support import (
    Area,
    Axis,
    Bar,
    Chart,
    ChartText,
    Dot,
    Line,
    Mark,
    Rule,
    Tone,
    number_axis,
    percent_axis,
    round_ticks,
)

BELOW = "the numbers are in the table below."


class Share(NamedTuple):
    """A share with its interval, its own promise if it has one, and whether it is below the promise beyond chance."""

    name: str
    value: float | None
    low: float
    high: float
    promised: float | None = None
    below: bool = False


def intervals(shares: Sequence[Share], promised: float | None, label: str) -> Chart | None:
    """Shares with their intervals, one row each; shares below the promise beyond chance are triangles."""
    if not shares:
        return None
    own = all(share.promised is not None for share in shares)
    levels = [share.promised for share in shares if share.promised is not None] if own else [promised]
    least = min([*(share.low for share in shares), *(level for level in levels if level is not None)])
    marks: list[Mark] = [] if own or promised is None else [Rule(x=promised)]
    for row, share in enumerate(shares):
        if own and share.promised is not None:
            marks.append(Dot((share.promised, row), "promise", tick=True))
        tone: Tone = "below" if share.below else "accent"
        text = (
            f"{share.name}: {percent(round(share.value, 4))}" if share.value is not None else f"{share.name}: not known"
        )
        middle = (share.low + share.high) / 2 if share.value is None else share.value
        radius = 0.0 if share.value is None else 5.5 if share.below else 4.0
        marks.append(
            Dot((middle, row), tone, x=(share.low, share.high), words=text, radius=radius, triangle=share.below)
        )
    low = max(0.0, least - 0.02 * (1 - least)) if least < 1 else 0.9
    return Chart(label, percent_axis(low, 1.0, most=4), _ROWS, tuple(marks), tuple(share.name for share in shares))


_ROWS = Axis(0, 1)


def replies(answers: Sequence[tuple[str, float]], threshold: float | None, label: str) -> Chart | None:
    """Answers of the silos, one row each, and the released threshold."""
    if not answers:
        return None
    values = [value for _, value in answers] + ([] if threshold is None else [threshold])
    low, high = min(values), max(values)
    wide = low > 0 and high / low > 100
    if not wide:
        room = 0.05 * (high - low) or 0.05 * abs(high) or 0.05
        low, high = low - room, high + room
    axis = number_axis(low, high, "threshold, logarithmic" if wide else "threshold", logarithmic=wide)
    dots = [Dot((value, row), words=f"{name}: {number(value)}", radius=5) for row, (name, value) in enumerate(answers)]
    rule = () if threshold is None else (Rule(x=threshold),)
    return Chart(label, axis, _ROWS, (*rule, *dots), tuple(name for name, _ in answers))


def density(levels: Sequence[float], below: Sequence[float], step: int) -> list[tuple[float, float]]:
    """Probability between neighbouring levels, from a distribution function."""
    places = range(0, len(levels) - step, step)
    return [((levels[i] + levels[i + step]) / 2, max(0.0, below[i + step] - below[i])) for i in places]


def law(
    levels: Sequence[float],
    bound: Sequence[float],
    expected: Sequence[float] | None,
    level: float,
    sure: float,
    n: int | None,
) -> Chart:
    """Density of coverage over calibrations: the expected one filled, the worst case as a line."""
    line = density(levels, bound, 2)
    filled = line if expected is None else density(levels, expected, 2)
    top = max(y for _, y in (*line, *filled)) or 1.0
    low, high = min(levels[0], level), max(levels[-1], level)
    leftish = level < (low + high) / 2
    marks: list[Mark] = [
        Area(tuple((x, 0.0, y) for x, y in filled)),
        Line(tuple(line)),
        Rule(x=level),
        ChartText(
            (level, 1.02 * top),
            f"requested {percent(level)}",
            "promise",
            "start" if leftish else "end",
        ),
    ]
    if n is not None:
        at = (high if leftish else low, 0.9 * top)
        marks.append(ChartText(at, f"n = {n:,}", None, "end" if leftish else "start"))
    label = f"Distribution of coverage. With a probability of 95\u00a0% it is at least {100 * sure:.2f}\u00a0%."
    return Chart(label, percent_axis(low, high, "coverage", most=5, grid=False), Axis(0, 1.05 * top), tuple(marks))


def course(values: Sequence[float], words: Sequence[str], label: str) -> Chart:
    """Thresholds in force, look by look, the newest last; +inf lies at the upper edge."""
    finite = [value for value in values if math.isfinite(value)] or [0.0]
    low, high = min(finite), max(finite)
    infinite = any(map(math.isinf, values))
    edge = high + 0.25 * ((high - low) or 1.0) if infinite else high
    edge = edge if math.isfinite(edge) else high
    marks: list[Mark] = []
    piece: list[tuple[float, float]] = []
    for place, value in enumerate(values):
        if math.isinf(value):
            marks.append(Line(tuple(piece)))
            piece = []
        else:
            piece.append((place, value))
    marks.append(Line(tuple(piece)))
    for place, (value, text) in enumerate(zip(values, words, strict=True)):
        last = place == len(values) - 1
        at = edge if math.isinf(value) else value
        marks.append(
            Dot((place, at), words=text, radius=5 if last or math.isinf(value) else 3.5, triangle=math.isinf(value))
        )
    ticks = dict.fromkeys([low, high]) if any(map(math.isfinite, values)) else {}
    named = [(value, number(value)) for value in ticks] + ([(edge, number(math.inf))] if infinite else [])
    room = 0.0 if high > low or infinite else abs(low) * 0.1 or 0.1
    x = Axis(0, max(len(values) - 1, 1), ((0, "first"), (len(values) - 1, "now")))
    return Chart(label, x, Axis(low - room, edge + room, tuple(named), grid=True), tuple(marks), height=110)


# Looks


class Look(NamedTuple):
    """Data of one look of a watch, as it is drawn."""

    number: int
    name: str
    evidence: float
    alarmed: bool
    share: Share | None = None
    shares: tuple[float, ...] = ()


def _looks(points: Sequence[Look]) -> Axis:
    """Axis of the looks; the first, the last and some in between are named, as far as their names fit."""
    longest = max(min(len(one.name), 14) for one in points)
    ticks = max(2, min(len(points), int(400 / (9 * longest + 16))))
    step = math.ceil(len(points) / ticks)
    names = tuple((one.number, _brief(one.name)) for one in points[::step])
    return Axis(points[0].number - 0.5, points[-1].number + 0.5, names)


def _brief(name: str) -> str:
    return name if len(name) <= 14 else f"{name[:13]}…"


def coverage_of_looks(points: Sequence[Look], band: Sequence[tuple[float, float]], least: float | None) -> Chart:
    """Shares of looks with their intervals, the band of all looks so far, and the tested level."""
    known = [(one, share, share.value) for one in points if (share := one.share) and share.value is not None]
    lows = [value for _, _, value in known] + ([] if least is None else [least])
    lows += [low for low, high in band if 0 < high - low < 0.5]
    bottom = max(0.0, min(lows, default=0.5) - 0.04)
    spans = [(one, span) for one, span in zip(points, band, strict=True) if span[1] >= span[0]]
    steps = [
        (one.number + side, max(bottom, low), max(bottom, high)) for one, (low, high) in spans for side in (-0.5, 0.5)
    ]
    marks: list[Mark] = [Area(tuple(steps))] if steps else []
    marks += [] if least is None else [Rule(y=least)]
    for one, share, value in known:
        tone: Tone = "below" if one.alarmed else "accent"
        words = f"{one.name}: {percent(round(value, 4))}"
        ends = (max(bottom, share.low), max(bottom, share.high))
        marks.append(
            Dot(
                (one.number, max(bottom, value)),
                tone,
                y=ends,
                words=words,
                radius=5 if one.alarmed else 3,
                triangle=one.alarmed,
            )
        )
    label = f"Coverage look by look; {BELOW}"
    return Chart(label, _looks(points), percent_axis(bottom, 1.0), tuple(marks), height=230)


def evidence_of_looks(points: Sequence[Look], alarm: float) -> Chart:
    """Logarithm of the evidence, and the line at which the alarm is raised."""
    values = [one.evidence for one in points]
    low, high = math.floor(min(-1.0, *values)), math.ceil(max(alarm + 0.3, *values))
    step = max(1, math.ceil((high - low) / 6))
    ticks = tuple((k, f"{10.0**k:g}" if k < 4 else f"1e{k}") for k in range(low, high + 1, step))
    dots = [
        Dot(
            (one.number, one.evidence),
            "below" if one.alarmed else "accent",
            radius=5 if one.alarmed else 3,
            triangle=one.alarmed,
        )
        for one in points
    ]
    line = Line(tuple((one.number, one.evidence) for one in points))
    y = Axis(low, high, ticks, grid=True)
    return Chart(f"Evidence look by look; {BELOW}", _looks(points), y, (Rule(y=alarm), line, *dots), height=170)


def sizes_of_looks(points: Sequence[Look], bins: Sequence[str]) -> Chart:
    """Shares of the set sizes, stacked from the smallest."""
    marks: list[Mark] = []
    for one in points:
        below = 0.0
        for place, share in enumerate(one.shares):
            shade = round(8 * place / max(1, len(bins) - 1))
            marks.append(Bar((one.number - 0.45, one.number + 0.45), (below, below + share), shade))
            if one is points[-1] and share > 0.07:
                marks.append(
                    ChartText((one.number + 0.5, below + share / 2 - 0.06), f"size {bins[place]}", anchor="start")
                )
            below += share
    label = f"Sizes of sets look by look; {BELOW}"
    return Chart(label, _looks(points), percent_axis(0.0, 1.0, grid=False), tuple(marks), height=220)


def spending(points: Sequence[tuple[float, float]], limit: float | None, dates: tuple[str, str], spent: str) -> Chart:
    """Cumulated privacy loss over time, which is scaled to [0, 1], with the limit."""
    top = max(points[-1][1], limit or 0.0) or 1.0
    steps: list[tuple[float, float]] = [(0.0, 0.0)]
    for x, y in points:
        steps += [(x, steps[-1][1]), (x, y)]
    steps.append((1.0, steps[-1][1]))
    marks: list[Mark] = [Area(tuple((x, 0.0, y) for x, y in steps)), Line(tuple(steps))]
    marks += [] if limit is None else [Rule(y=limit)]
    losses = Axis(0, top, tuple((value, f"{value:g}") for value in round_ticks(0, top, 4)), grid=True)
    label = f"Cumulated loss from {dates[0]} to {dates[1]}: {spent} in the end"
    return Chart(label, Axis(0, 1, ((0.0, dates[0]), (1.0, dates[1]))), losses, tuple(marks), height=150)
