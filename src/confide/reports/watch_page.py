"""A watch as a page: coverage or set sizes over all looks, and the evidence with the level of the alarm."""

from functools import partial

from confide.plots import plot_watch
from confide.reports.words import number, percent, protection, protection_warnings, say
from confide.support import Section, Table, describe
from confide.watching import Point, Watch, evidence_text

MOST_LOOKS = 400
"""Looks in the table; the last ones are shown."""


def watch_section(watch: Watch) -> Section:
    """A watch; of the records it contains only the noisy counts, which are public."""
    # What must be read first.
    described, settings = describe(watch), watch.settings
    *standing, verdict = described.notes
    warnings = [
        *([say("watch", "alarm", verdict=verdict)] if watch.alarm else []),
        *([say("watch", "sizes")] if watch.monitors_sizes else []),
        *([say("watch", "corrected")] if settings.correction is not None else []),
        *protection_warnings(watch.privacy),
    ]

    # What is tested, and how it stands.
    least = ", ".join(sorted({percent(level) for level in settings.least}))
    kind, error = "sizes_alarm" if watch.monitors_sizes else "coverage_alarm", percent(settings.error)
    alarm = say("watch", kind, least=least, error=error, compared=settings.compared)
    lead = "\n".join([described.lead, *standing, *([] if watch.alarm else [verdict])])
    parts = (
        _looks(watch),
        Section("What an alarm means", alarm),
        protection(watch.privacy, Section("", say("watch", "together"))),
    )
    return Section("Watch of a release", lead, described.facts, warnings=tuple(warnings), parts=parts)


def _looks(watch: Watch) -> Section:
    if not watch.looks:
        return Section("All looks", "No look was taken yet.")
    heads = ["Covered", "Missed", "Coverage so far"]
    if watch.monitors_sizes:
        heads = [f"Size {name}" for name in watch.settings.bin_names]
    rows = tuple(_row(watch, point) for point in reversed(watch.points[-MOST_LOOKS:]))
    caption = "Looks, with noise, the newest first"
    table = Table(("Look", "Drawn", *heads, "Evidence"), rows, caption, len(watch.looks))
    note = say("watch", "evidence", at=number(watch.alarm_at))
    picture = None if watch.monitors_sizes else partial(plot_watch, watch)
    return Section("All looks", tables=(table,), picture=picture, notes=(note,))


def _row(watch: Watch, point: Point) -> tuple[str, ...]:
    counts = point.look.counts
    cells = [f"{count:,}" for count in counts]
    if point.low is not None and point.high is not None:
        span = f"{percent(point.low)} to {percent(point.high)}" if point.low <= point.high else "changed"
        cells = [f"{sum(counts[::2]):,}", f"{sum(counts[1::2]):,}", span]
    alarm = " (alarm)" if point.alarmed else ""
    return (point.look.name, point.look.made[:10], *cells, evidence_text(point.log_evidence, watch.alarm_at) + alarm)
