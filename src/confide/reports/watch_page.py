"""A watch as a page: coverage over all looks, and the evidence with the alarm line."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from confide.noisy_counts import coverage_interval, coverage_share
from confide.reports.charts import BELOW, Look, Share, course, coverage_of_looks, evidence_of_looks, sizes_of_looks
from confide.reports.page import Page, number, page_of, percent
from confide.reports.protection import protection
from confide.support import Chart, decimal_text, describe
from confide.watching import Point, Watch, evidence_text

MOST_SHOWN = 400
"""Maximum number of looks in the charts and the table; the last ones are shown."""

_LEAST_LOG = -3.0
"""Lower end of the evidence in the chart, as a decimal logarithm."""


def watch_page(watch: Watch, *, title: str | None = None) -> Page:
    """Page of a watch; of the records it contains only the noisy counts, which are public.

    Examples
    --------
    >>> import confide
    >>> released = confide.calibrate(np.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="lac")
    >>> watch_page(confide.Watch.start(released, epsilon=1.0, batch=500).look("Monday", [450, 50]))
    Page('Watch of a release', ... kB of HTML)
    """
    settings, alarm, points = watch.settings, watch.alarm, watch.points
    last, described = points[-1] if points else None, describe(watch)
    context: dict[str, Any] = {
        "headline": _headline(watch),
        "alarm": None if alarm is None else alarm.look.name,
        "parts": [] if last is None else watch.parts_below(last),
        "monitors_sizes": watch.monitors_sizes,
        "compared": settings.compared,
        "several": settings.records_per_person > 1,
        "error": percent(settings.error),
        "evidence": "1" if last is None else evidence_text(last.log_evidence, watch.alarm_at),
        "alarm_at": number(watch.alarm_at),
        "least": ", ".join(sorted({percent(level) for level in settings.least})),
        "span": None if last is None or last.low is None else _span(last),
        "looks": len(watch.looks),
        "shown": min(len(watch.looks), MOST_SHOWN),
        "privacy": protection(watch.privacy),
        "epsilon": decimal_text(settings.epsilon),
        "rows_made": (("watched", described.lead), *described.facts),
        "heads": _heads(watch),
        "table_rows": _table(watch),
        "part_rows": [] if last is None else _parts(last, watch.alarm_at),
        "charts": _charts(watch),
        "correction": _correction(watch),
    }
    return page_of("watch.html", title or "Watch of a release", context)


def _headline(watch: Watch) -> str:
    what = "the sizes of sets" if watch.monitors_sizes else "coverage"
    if not watch.looks:
        return f"No look was taken yet; {what} will be monitored."
    if (alarm := watch.alarm) is None:
        like = (
            f"sets of the sizes of {watch.settings.compared}"
            if watch.monitors_sizes
            else "the promised coverage, less the tolerance"
        )
        looks = "1 look" if len(watch.looks) == 1 else f"{len(watch.looks):,} looks"
        return f"No alarm after {looks}: the counts are compatible with {like}."
    if watch.monitors_sizes:
        return f"Alarm since look “{alarm.look.name}”: set sizes differ from those of {watch.settings.compared}."
    return f"Alarm since look “{alarm.look.name}”: new records were covered less than promised, beyond the tolerance."


def _span(point: Point) -> str:
    assert point.low is not None
    assert point.high is not None
    if point.low <= point.high:
        return f"{percent(point.low)} to {percent(point.high)}"
    return f"changed: at most {percent(point.high)} for some, at least {percent(point.low)} for others"


def _one(levels: tuple[float, ...]) -> float | None:
    """The tested level; None if there are several."""
    return levels[0] if len(set(levels)) == 1 else None


def _charts(watch: Watch) -> tuple[Chart, ...]:
    """Shares or sizes look by look, and the evidence; empty before the first look."""
    points = watch.points[-MOST_SHOWN:]
    if not points:
        return ()
    shares = [None] * len(points) if watch.monitors_sizes else _shares(watch, points)
    first = len(watch.looks) - len(points) + 1
    looks = [
        Look(
            first + place, point.look.name, max(point.log_evidence / math.log(10), _LEAST_LOG), point.alarmed, share,
            _sizes(point) if watch.monitors_sizes else (),
        )
        for place, (point, share) in enumerate(zip(points, shares, strict=True))
    ]  # fmt: skip
    evidence = evidence_of_looks(looks, math.log10(watch.alarm_at))
    if watch.monitors_sizes:
        return sizes_of_looks(looks, watch.settings.bin_names), evidence
    band = [(point.low or 0.0, 1.0 if point.high is None else point.high) for point in points]
    return coverage_of_looks(looks, band, _one(watch.settings.least)), evidence


def _shares(watch: Watch, points: Sequence[Point]) -> list[Share | None]:
    """Share of each look, with its own interval."""
    settings, parts = watch.settings, len(watch.settings.promised)
    counts = np.array([point.look.counts for point in points], np.int64).reshape(len(points), -1, 2).sum(axis=1)
    share = coverage_share(counts[:, 0], counts[:, 1])
    guess = min(max(round(min(settings.promised.values()), 2), 0.01), 0.99)
    low, high = coverage_interval(counts[:, 0], counts[:, 1], settings.noise_epsilon, guess=guess, noises=parts)
    return [
        Share(point.look.name, None if math.isnan(share[k]) else float(share[k]), float(low[k]), float(high[k]))
        for k, point in enumerate(points)
    ]


_WINDOWS = (1, 4, 13)
"""Numbers of the last looks whose coverage the page of a correction states."""


def _correction(watch: Watch) -> dict[str, Any] | None:
    """The thresholds in force, the coverage that records had, and the long-run statement; None without a correction."""
    settings, correction = watch.settings, watch.settings.correction
    if correction is None:
        return None
    places, shown = watch.positions[-MOST_SHOWN - 1 :], list(settings.promised)[:MOST_SHOWN]
    values = [[scale.at(row[k]) for row in places] for k, scale in enumerate(correction.scales)]
    names = ["the release", *(look.name for look in watch.looks)][-len(places) :]
    words = [f"after {name}: {number(value)}" for name, value in zip(names, values[0], strict=True)]
    chart = course(values[0], words, f"Threshold in force, look by look; {BELOW}")
    windows = [watch.realised(last) for last in (*_WINDOWS, None)] if watch.looks else []
    rows = []
    for k, part in enumerate(shown):
        shares = [f"{percent(window[k].low)} to {percent(window[k].high)}" for window in windows]
        rows.append([part or "all records", number(values[k][-1]), *shares])
    return {
        "chart": chart if len(values) == 1 and watch.looks else None,
        "heads": ["Part", "Threshold now", "Last look", *(f"Last {n}" for n in _WINDOWS[1:]), "All looks"],
        "rows": rows,
        "said": [(part, windows[-1][k].words) for k, part in enumerate(shown)] if windows else [],
    }


def _sizes(point: Point) -> tuple[float, ...]:
    counts = np.maximum(point.look.counts, 0)
    return tuple((counts / max(int(counts.sum()), 1)).tolist())


def _heads(watch: Watch) -> list[str]:
    if watch.monitors_sizes:
        return ["Look", "Drawn", *(f"Size {name}" for name in watch.settings.bin_names), "Evidence"]
    return ["Look", "Drawn", "Covered", "Missed", "Coverage so far, from", "to", "Evidence"]


def _table(watch: Watch) -> list[list[str]]:
    rows = []
    for point in watch.points[-MOST_SHOWN:]:
        look = point.look
        if watch.monitors_sizes:
            cells = [f"{count:,}" for count in look.counts]
        else:
            assert point.low is not None
            assert point.high is not None
            cells = [
                f"{sum(look.counts[::2]):,}",
                f"{sum(look.counts[1::2]):,}",
                percent(point.low),
                percent(point.high),
            ]
        alarm = " (alarm)" if point.alarmed else ""
        rows.append([look.name, look.made[:10], *cells, evidence_text(point.log_evidence, watch.alarm_at) + alarm])
    return rows


def _parts(point: Point, alarm_at: float) -> list[list[str]]:
    """Evidence of each part, if there are several."""
    ranked = sorted(point.parts.items(), key=lambda part: -part[1])
    return [[name, evidence_text(log, alarm_at)] for name, log in ranked[:MOST_SHOWN]] if len(ranked) > 1 else []
