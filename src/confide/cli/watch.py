"""`confide watch`: monitor the coverage of a release privately, batch by batch."""

import math
from collections.abc import Iterator
from typing import Any

import click

from confide.cli.charging import Accounting
from confide.cli.command import renamed
from confide.cli.commands import Watch
from confide.cli.exit_codes import ALARM, DONE
from confide.cli.options import LOOK_NAMES, WATCH
from confide.cli.output import check_output, print_result, print_text, print_warnings
from confide.cli.request import arguments_of, take, take_columns
from confide.cli.values import Source, place_of, read_release
from confide.core import remarks
from confide.errors import ChargedAgainWarning, EarlierReleaseWarning, SimilarNameWarning
from confide.evaluation import Evaluation
from confide.noisy_counts import coverage_interval
from confide.support import FileKind, FileLocation, check_not_input, read_as, require
from confide.watching import CorrectedRelease, Look, load_or_start, local_state, records_for
from confide.watching import Watch as Monitor
from confide.watching import watch as take_look


def watch(options: Watch) -> int:
    """Take a look at a batch, and print what it shows."""
    # The ledger, the batch, and the release that is monitored.
    arguments = arguments_of("watch", WATCH, options)
    budget = Accounting.of(options.budget, arguments)
    name = _look_name(options.look, budget)
    source = Source(options.file, options.table, arguments.pop("decimal", "."))
    state = local_state(options.state)
    monitored = read_release(options.release, arguments).at(None)

    # The columns, the choices of a monitor, and how the batch is read; a reference is an evaluation.
    columns = take_columns(arguments, monitored)
    choices = take(arguments, LOOK_NAMES)
    reading = take(arguments, ("by", "skip_incomplete"))
    reference = place_of("reference", choices["reference"]) if "reference" in choices else None
    if reference is not None:
        choices["reference"] = read_as(reference, Evaluation.from_json)
    _check_files(options, source, state, reference)

    # The monitor: its choices are checked before the table is opened.
    monitor = load_or_start(state, monitored, columns, **choices)
    can_correct = options.in_force is None or monitor.settings.correction is not None
    must = "must be left out without a correction of thresholds"
    require("in_force", can_correct, must, remedy="Begin with --set correct=auto")
    notes = list(remarks(monitored))
    if not monitor.looks:
        notes += monitor.settings.remarks(monitored)
        if not options.output.as_json:
            _print_start(monitor)
    print_warnings(notes)

    # Charge and look.
    columns = source.require_columns(columns)
    with budget.charging(ChargedAgainWarning, EarlierReleaseWarning, SimilarNameWarning) as receipt:
        looking = {**reading, **choices, **budget.account(options.file)}
        with source.open("looking") as (opened, progress):
            updated = take_look(opened, columns, monitored, state=state, look=name, progress=progress, **looking)
    receipt.captured.warn()

    # Write the thresholds in force and the page, and print the look.
    corrected = None if updated.settings.correction is None else CorrectedRelease(monitored, updated)
    _write(options, updated, corrected)
    captured = receipt.captured
    look = next(look for look in updated.looks if look.name == name)

    def document() -> dict[str, Any]:
        warned = {"earlier": bool(captured.earlier), "warnings": [*notes, *captured.notes]}
        return {**_document(updated, look, corrected), **warned, **receipt.fields()}

    texts = (*captured.earlier, *_look_texts(updated, look, corrected, budget), receipt.text(), options.output.saved())
    print_result(document, *texts, as_json=options.output.as_json)
    return DONE if updated.alarm is None else ALARM


def _check_files(options: Watch, source: Source, state: FileLocation, reference: FileLocation | None) -> None:
    """Check that the page, the state and the thresholds in force replace no input."""
    inputs = *source.files, options.release
    options.output.check(FileKind.PAGE, *inputs, state)
    check_not_input(state, [*inputs, reference])
    with renamed("output", "in_force"):
        check_output(options.in_force, FileKind.CORRECTED, *inputs, state, force=True)


def _write(options: Watch, monitor: Monitor, corrected: CorrectedRelease | None) -> None:
    """Write the thresholds in force and the page, as far as they were requested."""
    if options.in_force is not None and corrected is not None:
        corrected.save(options.in_force, overwrite=True)
    if options.output.out is not None:
        from confide.reports import report

        options.output.write(report(monitor).html)


def _look_name(look: str | None, budget: Accounting) -> str:
    """The name of the look, by default the cell of its group."""
    if look is not None:
        return look
    if budget.group is None or "=" not in budget.group:
        raise click.UsageError("--look is missing: a name of this batch, such as 2026-03-02")
    return budget.group.partition("=")[2]


def _print_start(monitor: Monitor) -> None:
    settings = monitor.settings
    print_text(f"a new monitor; its first look fixes these settings\n{monitor}")
    if monitor.monitors_sizes:
        print_text("a larger reference detects smaller drifts")
        return
    level = min(settings.promised.values())
    if settings.tolerance:
        least = records_for(settings.tolerance, level)
        print_text(
            f"the tolerance suits a release from {least:,} records or more: with fewer, chance can raise the alarm"
        )


def _look_texts(monitor: Monitor, look: Look, corrected: CorrectedRelease | None, budget: Accounting) -> Iterator[str]:
    """The counts of a look, what all looks show, how losses add up, and the thresholds in force."""
    # The counts; an interval of one look needs independent records.
    settings, counts = monitor.settings, look.counts
    if monitor.monitors_sizes:
        sizes = ", ".join(f"{count:,} of size {size}" for count, size in zip(counts, settings.bin_names, strict=True))
        yield f"look {look.name!r}, with noise: {sizes}"
    else:
        covered, missed = sum(counts[::2]), sum(counts[1::2])  # a pair of counts for each part
        text = f"look {look.name!r}, with noise: {covered:,} covered, {missed:,} missed"
        if settings.records_per_person == 1:
            low, high = coverage_interval(
                [covered], [missed], settings.noise_epsilon, guess=max(settings.least), noises=len(settings.promised)
            )
            text += f"; its coverage {low[0]:.3f} to {high[0]:.3f} (95 % interval, for this look alone)"
        yield text

    # All looks; in a ledger without groups they add up.
    yield monitor.standing
    if budget.ledger is not None and budget.group is None:
        yield (
            "this look adds up with all others in the ledger; if no person is in two looks, --group look=NAME counts "
            "only the largest"
        )
    if corrected is not None:
        name, threshold = next(iter(corrected.by_name.items()))
        yield f"in force now: {name or 'threshold'}: {threshold.text}; {threshold.guarantee}"


def _document(monitor: Monitor, look: Look, corrected: CorrectedRelease | None) -> dict[str, Any]:
    settings, last, alarm = monitor.settings, monitor.points[-1], monitor.alarm
    return {
        "look": look.name,
        "made": look.made,
        "counts": list(look.counts),
        "watched": "set sizes" if monitor.monitors_sizes else "coverage",
        "alarm": alarm is not None,
        "alarm_since": None if alarm is None else alarm.look.name,
        "parts_below": monitor.parts_below(last),
        "evidence": _evidence(last.log_evidence),
        "evidence_of_parts": {name or "all": _evidence(log) for name, log in last.parts.items()},
        "alarm_at": monitor.alarm_at,
        "coverage": None if last.low is None else {"low": last.low, "high": last.high},
        "looks": len(monitor.looks),
        "settings": {
            "epsilon": settings.epsilon,
            "neighbors": settings.neighbors,
            "records_per_person": settings.records_per_person,
            "batch": settings.batch,
            "planned_looks": settings.looks,
            "tolerance": settings.tolerance,
            "error": settings.error,
            "least_coverage": {
                name or "all": least for name, least in zip(settings.promised, settings.least, strict=True)
            },
            "bins": list(settings.bins),
        },
        "corrected": None if corrected is None else corrected.fields,
    }


def _evidence(log: float) -> float:
    return math.exp(min(log, 700))  # of more, it is beyond the range of a float
