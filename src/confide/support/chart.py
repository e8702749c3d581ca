"""Charts as values: marks on two axes, drawn as SVG without a script; the page sets colours by class.

A chart has no style of its own: `tone` names a class that the page's style sheet colours, in light, dark and print.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal, TypeAlias

from confide.support.shown import escape_text

Tone: TypeAlias = Literal["accent", "soft", "promise", "reference", "below"]
Point: TypeAlias = tuple[float, float]

WIDTH = 480
"""In units of the picture, which is scaled to its box."""

_CHARACTER, _LINE = 8.2, 18
"""Width of a letter and height of a line, in the size of the letters on a phone."""

_WIDE, _NARROW = frozenset("mwMW@%—∞"), frozenset("iIjlt.,:;'|!()[] \u00a0")


@dataclass(frozen=True)
class Axis:
    """A range of values, with labels at some of them."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...] = ()
    label: str = ""
    logarithmic: bool = False
    grid: bool = False

    def share(self, value: float) -> float:
        """The position of a value, from 0 to 1; values outside are at the edge."""
        low, high, at = ((math.log(x) for x in (self.low, self.high, value)) if self.logarithmic
                         else (self.low, self.high, value))  # fmt: skip
        if high == low:
            return 0.5
        half = high / 2 - low / 2  # finite for all ends
        return min(1.0, max(0.0, (at / 2 - low / 2) / half))


@dataclass(frozen=True)
class Line:
    """A line through points."""

    points: tuple[Point, ...]
    tone: Tone = "accent"


@dataclass(frozen=True)
class Area:
    """The region between two lines: points (x, lower, upper)."""

    points: tuple[tuple[float, float, float], ...]


@dataclass(frozen=True)
class Rule:
    """A dashed line across the whole chart, at a value of x or of y."""

    x: float | None = None
    y: float | None = None
    tone: Tone = "promise"


@dataclass(frozen=True)
class Bar:
    """A rectangle between two values of x and two of y; `shade` from 0 to 8 if several are stacked."""

    x: Point
    y: Point
    shade: int | None = None


@dataclass(frozen=True)
class Dot:
    """A point, with a bar along one axis if it has an interval, and a text that is shown on hover."""

    at: Point
    tone: Tone = "accent"
    x: Point | None = None
    y: Point | None = None
    words: str = ""
    radius: float = 4.0
    triangle: bool = False
    tick: bool = False
    """Whether it is a vertical stroke, for example for a guarantee."""


@dataclass(frozen=True)
class ChartText:
    """A short text at a point."""

    at: Point
    text: str
    tone: Tone | None = None
    anchor: Literal["start", "middle", "end"] = "middle"


Mark: TypeAlias = Line | Area | Rule | Bar | Dot | ChartText


@dataclass(frozen=True)
class Chart:
    """Marks on two axes.

    Parameters
    ----------
    label
        A description of the picture in one sentence, for screen readers.
    x, y
        Its axes; if names are given, y counts them from the top.
    marks
        The marks; later ones are drawn above earlier ones.
    names
        A name for each row, printed completely in lines of two fifths of the width.
    height
        Height of the box between the axes, in the same units as the width; with names it follows from them.
    """

    label: str
    x: Axis
    y: Axis
    marks: tuple[Mark, ...]
    names: tuple[str, ...] = ()
    height: float = 190.0

    def svg(self) -> str:
        """The chart as one element of HTML.

        Examples
        --------
        >>> axis = Axis(0, 1, ((0, "0 %"), (1, "100 %")))
        >>> Chart("one dot", axis, axis, (Dot((0.5, 0.5)),)).svg()
        '<svg class="chart" role="img" aria-label="one dot" viewBox="0 0 480 ..."><...<circle class="accent" ...</svg>'
        """
        return "".join(_Drawn(self).elements())


class _Drawn:
    """A chart with the position of its box."""

    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        self.names = [name_lines(name, int((0.42 * WIDTH - 14) / _CHARACTER)) for name in chart.names]
        ticks = [text for _, text in chart.y.ticks] or [""]
        named = [line for lines in self.names for line in lines]
        texts = [mark for mark in chart.marks if isinstance(mark, ChartText)]
        widths = [_width(mark.text) + 8 for mark in texts if mark.anchor == "start" and chart.x.share(mark.at[0]) == 1]
        self.left = 10 + max(map(_width, named or ticks))
        self.right, self.top = WIDTH - max([26.0, *widths]), 24.0 if texts else 12.0
        self.row = max(26, 8 + _LINE * max(map(len, self.names), default=0))
        self.bottom = self.top + (self.row * len(self.names) if self.names else chart.height)

    def at_x(self, value: float) -> float:
        return round(self.left + self.chart.x.share(value) * (self.right - self.left), 1)

    def at_y(self, value: float) -> float:
        if self.names:
            return round(self.top + self.row * (value + 0.5), 1)
        return round(self.bottom - self.chart.y.share(value) * (self.bottom - self.top), 1)

    def elements(self) -> Iterator[str]:
        below = 44 if self.chart.x.label else 26
        yield (
            f'<svg class="chart" role="img" aria-label="{_safe(self.chart.label)}" '
            f'viewBox="0 0 {WIDTH} {self.bottom + below:g}">'
        )
        yield from self._x_axis()
        yield from self._y_axis()
        for mark in self.chart.marks:
            yield from _MARKS[type(mark)](self, mark)
        yield "</svg>"

    def _x_axis(self) -> Iterator[str]:
        axis = self.chart.x
        for value, text in axis.ticks:
            x = self.at_x(value)
            if axis.grid:
                yield f'<path class="grid" d="M{x},{self.top:g}V{self.bottom:g}"/>'
            half = _width(text) / 2
            yield _words(round(max(half, min(x, WIDTH - half)), 1), self.bottom + 18, text, "middle")
        if axis.label:
            yield _words(self.right, self.bottom + 36, axis.label, "end")

    def _y_axis(self) -> Iterator[str]:
        for place, lines in enumerate(self.names):
            first = self.at_y(place) + 5 - _LINE * (len(lines) - 1) / 2
            yield from (_words(self.left - 8, first + _LINE * i, line, "end") for i, line in enumerate(lines))
        for value, text in self.chart.y.ticks:
            y = self.at_y(value)
            if self.chart.y.grid:
                yield f'<path class="grid" d="M{self.left:g},{y}H{self.right:g}"/>'
            yield _words(self.left - 6, y + 5, text, "end")

    def line(self, mark: Line) -> Iterator[str]:
        if len(mark.points) > 1:
            points = " ".join(f"{self.at_x(x):g},{self.at_y(y):g}" for x, y in mark.points)
            yield f'<polyline class="{mark.tone}" points="{points}"/>'

    def area(self, mark: Area) -> Iterator[str]:
        upper = [(x, high) for x, _, high in mark.points]
        lower = [(x, low) for x, low, _ in reversed(mark.points)]
        if len({low for _, low in lower}) == 1:
            lower = [lower[0], lower[-1]]  # a straight line
        points = " ".join(f"{self.at_x(x):g},{self.at_y(y):g}" for x, y in (*upper, *lower))
        yield f'<polygon class="area" points="{points}"/>'

    def rule(self, mark: Rule) -> Iterator[str]:
        if mark.x is not None:
            yield f'<path class="rule {mark.tone}" d="M{self.at_x(mark.x):g},{self.top:g}V{self.bottom:g}"/>'
        if mark.y is not None:
            yield f'<path class="rule {mark.tone}" d="M{self.left:g},{self.at_y(mark.y):g}H{self.right:g}"/>'

    def bar(self, mark: Bar) -> Iterator[str]:
        (x, end), (y, top) = sorted(map(self.at_x, mark.x)), sorted(map(self.at_y, mark.y))
        shade = "accent" if mark.shade is None else f"shade{mark.shade}"
        yield f'<rect class="{shade}" x="{x:g}" y="{y:g}" width="{end - x:.3g}" height="{top - y:.4g}"/>'

    def dot(self, mark: Dot) -> Iterator[str]:
        x, y, r = self.at_x(mark.at[0]), self.at_y(mark.at[1]), mark.radius
        words = f"<title>{_safe(mark.words)}</title>" if mark.words else ""
        if mark.x is not None:
            yield f'<path class="{mark.tone}" d="M{self.at_x(mark.x[0]):g},{y:g}H{self.at_x(mark.x[1]):g}"/>'
        if mark.y is not None:
            yield f'<path class="{mark.tone}" d="M{x:g},{self.at_y(mark.y[0]):g}V{self.at_y(mark.y[1]):g}"/>'
        if mark.tick:
            yield f'<path class="{mark.tone}" d="M{x:g},{y - 8:g}v16">{words}</path>'
        elif mark.triangle:
            path = f"M{x - r:g},{y + r:g}h{2 * r:g}l{-r:g},{-1.9 * r:g}z"
            yield f'<path class="dot {mark.tone}" d="{path}">{words}</path>'
        else:
            yield f'<circle class="{mark.tone}" cx="{x:g}" cy="{y:g}" r="{r:g}">{words}</circle>'

    def words(self, mark: ChartText) -> Iterator[str]:
        offset = 6 if mark.anchor == "start" and self.chart.x.share(mark.at[0]) == 1 else 0
        yield _words(self.at_x(mark.at[0]) + offset, self.at_y(mark.at[1]) - 8, mark.text, mark.anchor, mark.tone)


_MARKS: dict[type, Callable[..., Iterator[str]]] = {
    Line: _Drawn.line,
    Area: _Drawn.area,
    Rule: _Drawn.rule,
    Bar: _Drawn.bar,
    Dot: _Drawn.dot,
    ChartText: _Drawn.words,
}


def _safe(text: str) -> str:
    return escape(escape_text(text))


def _words(x: float, y: float, text: str, anchor: str, tone: str | None = None) -> str:
    of = f' class="{tone}"' if tone else ""
    return f'<text{of} x="{x:g}" y="{y:g}" text-anchor="{anchor}">{_safe(text)}</text>'


def _width(text: str) -> float:
    """The approximate width of a text, in the font size of a phone."""
    return sum(15.5 if c in _WIDE else 6.5 if c in _NARROW else 11.5 if c.isupper() else 9.8 for c in text)


def name_lines(name: str, most: int) -> list[str]:
    """Divide a name into lines of at most this many letters, without shortening it.

    Examples
    --------
    >>> name_lines("moderately differentiated, of the colon", 16)
    ['moderately', 'differentiated,', 'of the colon']
    """
    room, lines = max(8, most), [""]
    for word in (name[i : i + room] for name in name.split(" ") for i in range(0, len(name), room)):
        longer = f"{lines[-1]} {word}".strip()
        if len(longer) <= room:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def round_ticks(low: float, high: float, most: int) -> list[float]:
    """At most this many round numbers from low to high, equally spaced.

    Examples
    --------
    >>> round_ticks(0.82, 1.0, 5), round_ticks(0, 7, 4)
    ([0.85, 0.9, 0.95, 1.0], [0.0, 2.0, 4.0, 6.0])
    """
    if not 0 < high - low < math.inf:
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    for step in (factor * power for factor in (1, 2, 2.5, 5, 10, 20)):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < most:
            return [float(f"{k * step:.10g}") for k in range(first, last + 1)]
    return [low]


def percent_axis(low: float, high: float, label: str = "", *, most: int = 5, grid: bool = True) -> Axis:
    """An axis of shares, labelled in percent."""
    ticks = tuple((value, f"{100 * value:.6g}\u00a0%") for value in round_ticks(low, high, most))
    return Axis(low, high, ticks, label, grid=grid)


def number_axis(low: float, high: float, label: str = "", *, logarithmic: bool = False) -> Axis:
    """An axis of numbers; a logarithmic one has powers of ten, or round numbers if there are too few powers."""
    if not logarithmic:
        return Axis(low, high, tuple((v, brief_number(v)) for v in round_ticks(low, high, 5)), label, grid=True)
    decades = range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)
    steps = (1, 2, 5) if len(decades) < 3 else (1,)
    ticks = [float(f"{step}e{k}") for k in range(decades.start - 1, decades.stop + 1) for step in steps]
    values = [value for value in ticks if low * 0.999 <= value <= high * 1.001]
    thinned: Sequence[float] = values[:: -(-len(values) // 5)] if values else [low]
    return Axis(low, high, tuple((v, brief_number(v)) for v in thinned), label, logarithmic=True, grid=True)


def brief_number(value: float) -> str:
    """A number for an axis.

    Examples
    --------
    >>> brief_number(0.5), brief_number(3000.0), brief_number(20_000.0), brief_number(3e6), brief_number(1e-7)
    ('0.5', '3,000', '20 k', '3 M', '1e-07')
    """
    if value >= 1e6:
        return f"{value / 1e6:g} M"
    return f"{value / 1e3:g} k" if value >= 1e4 else f"{value:,g}"
