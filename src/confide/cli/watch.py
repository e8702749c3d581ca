"""`confide watch`: monitor the coverage of a release privately, batch by batch."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from confide.cli.charging import Accounting
from confide.cli.command import renamed
from confide.cli.commands import Watch as WatchOptions
from confide.cli.exit_codes import ALARM, DONE
from confide.cli.options import LOOK_NAMES, WATCH
from confide.cli.output import check_output, fields_of, print_result, print_text, print_warning
from confide.cli.request import arguments_of, take, take_columns
from confide.cli.values import Source, place_of, read_release
from confide.core import Release, remarks
from confide.errors import ChargedAgainWarning, EarlierReleaseWarning, SimilarNameWarning
from confide.evaluation import Evaluation
from confide.support import FileKind, FileLocation, check_not_input, read_as, require
from confide.tables import ColumnSpec
from confide.watching import (
    CorrectedRelease,
    CoverageOfLooks,
    Look,
    Settings,
    Watch,
    load_or_start,
    local_state,
    records_for,
)
from confide.watching import watch as take_look

_ADDS_UP = (
    "this look adds up with all others in the ledger; if no person is in two looks, --group look=NAME counts only the "
    "largest"
)

# The exponential of more is beyond the range of a float
_LARGEST_EXPONENT = 700


def watch(options: WatchOptions) -> int:
    """Take a look at a batch, and print what it shows."""
    # The batch and its monitor, whose choices are checked before the table is opened.
    batch = Batch.of(options)
    monitor = load_or_start(batch.state, batch.monitored, batch.columns, **batch.choices)
    notes = _begin(monitor, batch.monitored, options)

    # Charge and look.
    columns = batch.source.require_columns(batch.columns)
    with batch.budget.charging(ChargedAgainWarning, EarlierReleaseWarning, SimilarNameWarning) as receipt:
        monitor = batch.take_look(columns)
    captured = receipt.captured
    captured.warn()

    # Write the thresholds in force and the page, and print the look.
    corrected = None if monitor.settings.correction is None else CorrectedRelease(batch.monitored, monitor)
    look = next(look for look in monitor.looks if look.name == batch.name)
    if options.in_force is not None and corrected is not None:
        corrected.save(options.in_force, overwrite=True)
    options.output.write_page(monitor)
    warned = {"earlier": bool(captured.earlier), "warnings": [*notes, *captured.notes]}
    document = {**_document(monitor, look, corrected), **warned, **receipt.fields()}
    texts = (*captured.earlier, *_look_texts(monitor, look, corrected, batch.budget), receipt.text())
    print_result(document, *texts, options.output.saved(), as_json=options.as_json)
    return DONE if monitor.alarm is None else ALARM


def _begin(monitor: Watch, monitored: Release, options: WatchOptions) -> list[str]:
    """Check a monitor before a look, and print what is remarkable about it, which is returned."""
    can_correct = options.in_force is None or monitor.settings.correction is not None
    must = "must be left out without a correction of thresholds"
    require("in_force", can_correct, must, remedy="Begin with --set correct=auto")
    notes = list(remarks(monitored))
    if not monitor.looks:
        notes += monitor.settings.remarks(monitored)
        if not options.as_json:
            _print_start(monitor)
    print_warning(*notes)
    return notes


@dataclass(frozen=True)
class Batch:
    """The batch of a look, how it is read and charged, and the choices of its monitor."""

    name: str
    source: Source
    columns: ColumnSpec | None
    reading: Mapping[str, Any]
    state: Path
    monitored: Release
    choices: dict[str, Any]
    budget: Accounting

    @classmethod
    def of(cls, options: WatchOptions) -> "Batch":
        """From the options; each part takes its own arguments out of those of the command."""
        # The ledger, the batch, and the release that is monitored.
        arguments = arguments_of("watch", WATCH, options)
        budget = Accounting.of(options.budget, arguments)
        name = _look_name(options.look, budget)
        source = Source(options.file, options.table, **take(arguments, ["decimal"]))
        state = local_state(options.state)
        monitored = read_release(options.release, arguments).at(None)

        # The columns, how the batch is read, and the choices of a monitor; a reference is an evaluation.
        columns = take_columns(arguments, monitored)
        reading = take(arguments, ["by", "skip_incomplete"])
        choices = take(arguments, LOOK_NAMES)
        reference = place_of("reference", choices["reference"]) if "reference" in choices else None
        if reference is not None:
            choices["reference"] = read_as(reference, Evaluation.from_json)
        _check_files(options, source, state, reference)
        return cls(name, source, columns, reading, state, monitored, choices, budget)

    def take_look(self, columns: ColumnSpec) -> Watch:
        """Charge and count; the monitor after this look."""
        looking = {**self.reading, **self.choices, **self.budget.account(self.source.file)}
        with self.source.open("looking") as (opened, progress):
            return take_look(
                opened, columns, self.monitored, state=self.state, look=self.name, progress=progress, **looking
            )


def _check_files(options: WatchOptions, source: Source, state: FileLocation, reference: FileLocation | None) -> None:
    """Check that the page, the state and the thresholds in force replace no input."""
    inputs = *source.files, options.release
    options.output.check(FileKind.PAGE, *inputs, state)
    check_not_input(state, [*inputs, reference])
    with renamed("output", "in_force"):
        check_output(options.in_force, FileKind.CORRECTED, *inputs, state, force=True)


def _look_name(look: str | None, budget: Accounting) -> str:
    """The name of the look, by default the cell of its group."""
    if look is not None:
        return look
    if budget.group is None or "=" not in budget.group:
        raise click.UsageError("--look is missing: a name of this batch, such as 2026-03-02")
    return budget.group.partition("=")[2]


def _print_start(monitor: Watch) -> None:
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


def _look_texts(monitor: Watch, look: Look, corrected: CorrectedRelease | None, budget: Accounting) -> Iterator[str]:
    """The counts of the look, what all looks show, how losses add up, and the thresholds in force."""
    yield f"look {look.name!r}, with noise: {_counts_text(monitor.settings, look)}"
    yield monitor.standing
    if budget.ledger is not None and budget.group is None:
        yield _ADDS_UP
    if corrected is not None:
        name, threshold = next(iter(corrected.by_name.items()))
        yield f"in force now: {name or 'threshold'}: {threshold.text}; {threshold.guarantee}"


def _counts_text(settings: Settings, look: Look) -> str:
    """The counts; and an interval for coverage, which needs independent records."""
    counts = look.counts
    if settings.bins:
        return ", ".join(f"{count:,} of size {size}" for count, size in zip(counts, settings.bin_names, strict=True))
    coverage = CoverageOfLooks.of(settings, [look])
    text = f"{coverage.covered[0]:,} covered, {coverage.missed[0]:,} missed"
    if settings.records_per_person > 1:
        return text
    return f"{text}; its coverage {coverage.low[0]:.3f} to {coverage.high[0]:.3f} (95 % interval, for this look alone)"


def _document(monitor: Watch, look: Look, corrected: CorrectedRelease | None) -> dict[str, Any]:
    """The look and the state of its monitor as JSON values."""
    last = monitor.points[-1]
    alarm = monitor.alarm
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
        "settings": _settings_fields(monitor.settings),
        "corrected": None if corrected is None else corrected.fields,
    }


def _settings_fields(settings: Settings) -> dict[str, Any]:
    least = zip(settings.promised, settings.least, strict=True)
    return {
        **fields_of(settings, "epsilon", "neighbors", "records_per_person", "batch"),
        "planned_looks": settings.looks,
        **fields_of(settings, "tolerance", "error"),
        "least_coverage": {name or "all": coverage for name, coverage in least},
        "bins": list(settings.bins),
    }


def _evidence(log: float) -> float:
    return math.exp(min(log, _LARGEST_EXPONENT))
