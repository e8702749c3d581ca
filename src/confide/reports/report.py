"""Page of a release, a plan, an evaluation, a watch, a ledger, or a plan of a federation."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from confide.core import Document, Plan, Release
from confide.errors import InputTypeError
from confide.evaluation import Evaluation
from confide.federated import FederatedPlan
from confide.ledger import Ledger
from confide.plots import plot_watch
from confide.reports.ledger_page import ledger_page
from confide.reports.page import Page, page_of
from confide.reports.release_page import evaluation_of, evaluation_section, plan_section, release_section
from confide.reports.words import number, percent, protection, protection_warnings, say
from confide.support import Section, Table, describe, needs_extra, require
from confide.watching import CorrectedRelease, Point, Watch, evidence_text


def report(
    release: Document | Plan | Ledger | FederatedPlan,
    *,
    title: str | None = None,
    evaluation: Evaluation | str | Path | None = None,
    answers: Sequence[str] = (),
    ledger: Ledger | str | Path | None = None,
    file_name: str = "calibration.json",
) -> Page:
    """Write a release, a plan, an evaluation, a watch or a ledger as one self-contained HTML page.

    The page depends on data only through these arguments. It has pictures if `confide[plots]` is installed.

    Parameters
    ----------
    release
        A release of the library, a `Plan`, a plan of a federation, an `Evaluation`, a `Watch`, or a `Ledger`.
    title
        Heading of the page, 1 to 200 printable characters.
    evaluation
        An evaluation of this release, or a file from `confide evaluate --out`. The numbers of an evaluation without
        noise are not private, and the page says so. With a private evaluation the whole page may be published.
    answers
        For a federated calibration: messages of the silos, to show their answers.
    ledger
        The ledger that was charged for this release, or its path. The page then states how much budget was spent on the
        data set before the release and with it, and the limit.
    file_name
        File name of the release, for the command that checks it.

    Raises
    ------
    InputError, InputTypeError
        If the evaluation, the answers or the ledger belong to something else, or the title cannot be displayed.
    MissingExtraError
        If `confide[standard]` is not installed.

    Examples
    --------
    >>> import confide, numpy as np
    >>> released = confide.calibrate(np.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="lac")
    >>> page = confide.report(released, title="Triage")
    >>> page
    Page('Triage')
    >>> page.save("triage.html")  # doctest: +SKIP
    PosixPath('triage.html')
    """
    with needs_extra("a page", "standard", "jinja2"):
        pass
    if isinstance(release, Release) and not isinstance(release, CorrectedRelease):
        budget = Ledger(ledger, create=False) if isinstance(ledger, str | Path) else ledger
        section = release_section(release, evaluation_of(release, evaluation), answers, budget, file_name)
        return page_of(section, title, file=(file_name, release.to_json()))
    for name, argument in {"evaluation": evaluation, "answers": answers, "ledger": ledger}.items():
        require(name, not argument, "must be left out: it belongs to one release")
    return ledger_page(release, title=title) if isinstance(release, Ledger) else page_of(_section(release), title)


def _section(value: object) -> Section:
    """The section of a value other than a release."""
    match value:
        case Plan():
            return plan_section(value)
        case Watch():
            return watch_section(value)
        case CorrectedRelease():
            section = watch_section(value.watch)
            return replace(section, parts=(replace(describe(value), title="The thresholds in force"), *section.parts))
        case Evaluation():
            private = (protection(value.privacy),) if value.private else ()
            return Section("Evaluation", parts=(evaluation_section(value), *private))
        case FederatedPlan():
            return describe(value)
    raise InputTypeError("release", "must be a calibration, of any kind, or a plan", type(value).__name__)


# Watches

# Looks in the table; the last ones are shown
MOST_LOOKS = 400


def watch_section(watch: Watch) -> Section:
    """A watch; of the records it contains only the noisy counts, which are public."""
    # What must be read first: an alarm, and what the watch does not show.
    described = describe(watch)
    settings = watch.settings
    *standing, verdict = described.notes
    warnings = [
        *([say("watch", "alarm", verdict=verdict)] if watch.alarm else []),
        *([say("watch", "sizes")] if watch.monitors_sizes else []),
        *([say("watch", "corrected")] if settings.correction is not None else []),
        *protection_warnings(watch.privacy),
    ]

    # What is tested, and how it stands.
    least = ", ".join(sorted({percent(level) for level in settings.least}))
    kind = "sizes_alarm" if watch.monitors_sizes else "coverage_alarm"
    error = percent(settings.error)
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
        # The numbers of covered and missed records of each part take turns.
        cells = [f"{sum(counts[::2]):,}", f"{sum(counts[1::2]):,}", span]
    alarm = " (alarm)" if point.alarmed else ""
    return (point.look.name, point.look.made[:10], *cells, evidence_text(point.log_evidence, watch.alarm_at) + alarm)
