"""A watch as a page: its alarm first, then all looks and what an alarm means."""

from collections.abc import Iterator
from functools import partial

from confide.plots import plot_watch
from confide.reports.words import date_of, number, percent, protection, protection_warnings, say
from confide.support import Section, Table, describe
from confide.watching import Point, Watch, evidence_text

# Newest looks in the table
MOST_LOOKS = 400


def watch_section(watch: Watch) -> Section:
    """A watch; of the records it contains only the noisy counts, which are public."""
    described = describe(watch)
    lines = [described.lead, *described.notes]
    warnings = [*_not_shown(watch), *protection_warnings(watch.privacy)]

    # The last note is the verdict; that of an alarm must be read first.
    if watch.alarm:
        warnings.insert(0, say("watch", "alarm", verdict=lines.pop()))
    parts = (
        _looks(watch),
        Section("What an alarm means", _meaning_of_alarm(watch)),
        protection(watch.privacy, Section("", say("watch", "together"))),
    )
    lead = "\n".join(lines)
    return Section("Watch of a release", lead, described.facts, warnings=tuple(warnings), parts=parts)


def _not_shown(watch: Watch) -> Iterator[str]:
    if watch.monitors_sizes:
        yield say("watch", "sizes")
    if watch.settings.correction is not None:
        yield say("watch", "corrected")


def _meaning_of_alarm(watch: Watch) -> str:
    settings = watch.settings
    least = ", ".join(sorted({percent(level) for level in settings.least}))
    kind = "sizes_alarm" if watch.monitors_sizes else "coverage_alarm"
    return say("watch", kind, least=least, error=percent(settings.error), compared=settings.compared)


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
        # The numbers of covered and missed records of each part take turns.
        cells = [f"{sum(counts[::2]):,}", f"{sum(counts[1::2]):,}", span]
    evidence = evidence_text(point.log_evidence, watch.alarm_at)
    if point.alarmed:
        evidence += " (alarm)"
    return (point.look.name, date_of(point.look.made), *cells, evidence)
