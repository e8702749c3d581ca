"""The course of thresholds along a chain of releases: a table, and a chart that is there without scripts.

Only released numbers are in it: what a release says of its predecessors, and its own threshold.
"""

import math
from dataclasses import dataclass
from typing import Any

from confide.releases import Calibration, Release, is_warm, miss_if_reused, parts_of, predecessors_of
from confide.reports.numbers import number, percent
from confide.support import decimal_text

MOST_CHARTS = 6
WIDTH, HEIGHT = 480, 150
_MOST_OF_A_DATE = 20
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 14, 26, 28


@dataclass(frozen=True)
class Point:
    """One release of the chain in a chart: where it lies, what it says, and whether its threshold is +inf."""

    x: float
    y: float
    words: str
    infinite: bool


@dataclass(frozen=True)
class Chart:
    """The course of one threshold.

    Parameters
    ----------
    name
        Which, where there are several.
    points
        Of all releases, the newest last; thresholds of +inf lie at the upper edge.
    lines
        Pieces of a polyline through neighbours that are finite.
    ends
        Labelled heights: (y, text).
    first, last
        What the first and the last release are called.
    words
        The chart in a sentence, for those who do not see it.
    """

    name: str
    points: tuple[Point, ...]
    lines: tuple[str, ...]
    ends: tuple[tuple[float, str], ...]
    first: str
    last: str
    words: str


def course(release: Release) -> dict[str, Any] | None:
    """What the page says of a chain; None for a release that renews none.

    Examples
    --------
    >>> import confide, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> first = confide.calibrate(rng.random(2000), 0.1, 0.5, score="lac")
    >>> told = course(confide.recalibrate(first, rng.random(2000)))
    >>> [row[0] for row in told["rows"]], told["total"]
    (['1', '2, this release'], '1')
    """
    line = predecessors_of(release)
    if not line:
        return None
    parts = parts_of(release)
    first = next(iter(parts.values()))
    made = [*((one.date, one.epsilon) for one in line), (first.about.get("date"), release.privacy.epsilon)]
    names = [name for name, _ in zip(parts, range(MOST_CHARTS), strict=False)]
    rows = []
    for place, (date, epsilon) in enumerate(made):
        called = f"{place + 1}, this release" if place == len(line) else str(place + 1)
        values = (number(_thresholds(parts[name])[place]) for name in names)
        rows.append([called, date or "–", *values, number(epsilon), *([] if len(parts) > 1 else [str(first.alpha)])])
    heads = ["Number", "Date", *(name or "Threshold" for name in names), "ε", *([] if len(parts) > 1 else ["α"])]
    return {
        "heads": heads,
        "rows": rows,
        "more": len(parts) - len(names),
        "charts": [_chart(name, parts[name], [date for date, _ in made]) for name in names],
        "width": WIDTH,
        "height": HEIGHT,
        "total": decimal_text(sum(epsilon for _, epsilon in made), 6),
        "releases": len(made),
        "warm": any(is_warm(part) for part in parts.values()),
        "left": _left([part for part in parts.values() if is_warm(part)]),
        "links": [(str(place + 1), one.checksum) for place, one in enumerate(line)],
    }


def _left(warm: list[Calibration]) -> str | None:
    """What is promised of records that were in all releases of the chain; None if nothing is."""
    missed = [miss_if_reused(part) for part in warm]
    if not missed or None in missed:
        return None
    return percent(math.floor(1000 * (1 - max(one for one in missed if one is not None))) / 1000)


def _thresholds(part: Calibration) -> list[float]:
    return [*(one.threshold for one in part.predecessors), part.threshold]


def _chart(name: str, part: Calibration, dates: list[str | None]) -> Chart:
    values = _thresholds(part)
    finite = [value for value in values if math.isfinite(value)] or [0.0]
    low, high = min(finite), max(finite)
    span = high - low
    step = (WIDTH - _LEFT - _RIGHT) / (len(values) - 1)

    def height(value: float) -> float:
        if math.isinf(value):
            return _TOP / 2
        share = (value - low) / span if 0 < span < math.inf else 0.5
        return round(HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM), 1)

    points: list[Point] = []
    lines: list[list[str]] = []
    piece: list[str] = []
    for place, (value, date) in enumerate(zip(values, dates, strict=True)):
        x, y, infinite = round(_LEFT + place * step, 1), height(value), math.isinf(value)
        points.append(Point(x, y, f"{_called(place, date)}: {number(value)}", infinite))
        if infinite:
            lines.append(piece)
            piece = []
        else:
            piece.append(f"{x},{y}")
    ends = {height(value): number(value) for value in (low, high)} if math.isfinite(max(finite)) else {}
    if any(point.infinite for point in points):
        ends[_TOP / 2] = number(math.inf)
    return Chart(
        name,
        tuple(points),
        tuple(" ".join(one) for one in (*lines, piece) if len(one) > 1),
        tuple(ends.items()),
        _called(0, dates[0]),
        _called(len(values) - 1, dates[-1]),
        f"Thresholds of {len(values)} releases{f' for {name}' if name else ''}, from {number(values[0])} to "
        f"{number(values[-1])}",
    )


def _called(place: int, date: str | None) -> str:
    if date is None:
        return f"number {place + 1}"
    return f"number {place + 1}, {date[:_MOST_OF_A_DATE]}{'…' if len(date) > _MOST_OF_A_DATE else ''}"
