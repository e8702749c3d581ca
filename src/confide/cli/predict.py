"""`confide predict`: sets or intervals for a table."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confide.cli.commands import Predict
from confide.cli.names import PREDICT
from confide.cli.output import capture_warnings, check_output, left_out_text, print_result, print_warning
from confide.cli.request import arguments_of, split, take_columns
from confide.cli.values import Source, read_release
from confide.core import Release
from confide.errors import CoverageWarning
from confide.sets import count_shortfall
from confide.support import FileKind, as_place, short_number
from confide.tables import file_format, is_folder, predict_table, refuse_existing_folder
from confide.watching import CorrectedRelease


def predict(options: Predict) -> None:
    """Predict for a table, and print a summary."""
    # The arguments, and the files.
    release, out = options.release, options.out
    arguments = arguments_of("predict_table", PREDICT, options)
    if "keep" in arguments:
        texts = [arguments["keep"]] if isinstance(arguments["keep"], str) else arguments["keep"]
        arguments["keep"] = tuple(name for text in texts for name in split(text))
    released = read_release(release, arguments)
    columns = take_columns(arguments, released)
    source = Source(options.file, options.table, arguments.pop("decimal", "."))
    _check_output(source, out, release, force=options.force)

    # Predict.
    columns = source.require_columns(columns, "--probabilities or --prediction")
    with capture_warnings(CoverageWarning) as caught, source.open("predicting") as (opened, progress):
        summary = predict_table(opened, columns, released, out, overwrite=options.force, progress=progress, **arguments)
        if arguments.get("skip_incomplete"):
            summary["left_out"] = opened.left_out()

    # Print the warnings and the summary.
    notes = [*caught.notes, *_too_many_empty(released, summary)]
    for note in notes:
        print_warning(note)
    size = f", {summary['mean_set_size']:.2f} classes each on average" if "mean_set_size" in summary else ""
    empty, rows = int(summary.get("empty_sets", 0)), int(summary["rows"])
    print_result(
        lambda: {"out": out, **_promised(released), **summary, "warnings": notes},
        f"{short_number(summary['rows'])} {'intervals' if options.probabilities is None else 'sets'}{size}",
        f"empty sets: {empty:,} of {rows:,} ({100 * empty / rows:.2g} %)" if empty else None,
        left_out_text(summary),
        *(f"promise{f' for {name}' if name else ''}: {text}" for name, text in released.promises.items()),
        f"saved: {out}",
        as_json=options.as_json,
    )


def _check_output(source: Source, out: str, release: Path, *, force: bool) -> None:
    if is_folder(out):
        refuse_existing_folder(as_place(out))
    else:
        _ = file_format(as_place(out))  # an unknown ending raises
        check_output(out, FileKind.PREDICTIONS, *source.files, release, force=force)


def _too_many_empty(released: Release, summary: Mapping[str, float]) -> list[str]:
    """A warning if there are too many empty sets for the promise: a sign of a shift that needs no true labels."""
    empty, rows = int(summary.get("empty_sets", 0)), int(summary["rows"])
    if not empty or released.loss or count_shortfall(released, rows - empty, rows) is None:
        return []
    return [
        f"{empty:,} of {rows:,} sets are empty, and an empty set never contains the true label: so many that the "
        "promise cannot hold for these records. Check that records and model are those of the calibration"
    ]


def _promised(released: Release) -> dict[str, Any]:
    if isinstance(released, CorrectedRelease):
        return released.fields
    if released.by is None and released.loss is None:
        return {"threshold": released.threshold, "coverage": released.coverage}
    parts = released.parts if released.disjoint else released.by_name
    return {
        "thresholds": {str(name): threshold.threshold for name, threshold in parts.items()},
        "coverage": min(threshold.coverage for threshold in parts.values()),
    }
