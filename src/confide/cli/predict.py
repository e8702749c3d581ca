"""`confide predict`: sets or intervals for a table."""

from collections.abc import Mapping
from typing import Any

from confide.cli.columns import Columns
from confide.cli.command import command
from confide.cli.output import capture_warnings, check_output, left_out_text, print_result, print_warning
from confide.cli.values import Released, Source, option_names
from confide.core import Release
from confide.errors import CoverageWarning
from confide.sets import count_shortfall
from confide.support import FileKind, as_place, short_number
from confide.tables import (
    file_format,
    is_folder,
    names_spark,
    predict_table,
    refuse_existing_folder,
)
from confide.watching import CorrectedRelease


@command("predict", without="score_column label label_positions target truth losses score loss bound")
def predict(
    source: Source,
    *,
    release: Released,
    columns: Columns,
    out: str,
    keep: tuple[str, ...] = (),
    force: bool = False,
    as_json: bool = False,
) -> None:
    r"""Predict sets of classes, or intervals, for new records.

    The output is a file or a folder. It has the columns of TABLE (without the
    probabilities) and, for classes, prediction_set (a list of class names; in
    CSV a JSON array) and set_size; for numbers, lower and upper; for several
    levels such columns for each. Predicting costs no privacy.

    Example:

      confide predict new.parquet --calibration cal.json \
        --probabilities 'p_*' --out sets.parquet
    """
    released = release.load()
    what = columns.to_predict(released, release.calibration)
    release.check_group(released, of_classes=False)
    place = None if "://" in out and names_spark(source.file) else as_place(out)
    if place is not None and not is_folder(out):
        _ = file_format(place)  # checks the ending
        check_output(place, FileKind.PREDICTIONS, *source.files, release.calibration, force=force)
    elif place is not None:
        refuse_existing_folder(place)
    alternatives = "--probabilities or --prediction"
    with (
        capture_warnings(CoverageWarning) as caught,
        source.open("predicting", what, alternatives) as (opened, what, progress),
    ):
        found = predict_table(
            opened,
            what,
            released,
            out,
            by=release.columns_of(released),
            keep=option_names(keep),
            overwrite=force,
            skip_incomplete=source.skip_incomplete,
            progress=progress,
        )
        found |= source.left_out(opened)
    notes = [*caught.notes, *_too_many_empty(released, found)]
    for note in notes:
        print_warning(note)
    size = f", {found['mean_set_size']:.2f} classes each on average" if "mean_set_size" in found else ""
    empty = int(found.get("empty_sets", 0))
    print_result(
        lambda: {"out": out, **_promised(released), **found, "warnings": notes},
        f"{short_number(found['rows'])} {'sets' if columns.probabilities is not None else 'intervals'}{size}",
        f"empty sets: {_empty(empty, int(found['rows']))}" if empty else None,
        left_out_text(found),
        *(f"promise{f' for {name}' if name else ''}: {text}" for name, text in released.promises.items()),
        f"saved: {out}",
        as_json=as_json,
    )


def _empty(empty: int, rows: int) -> str:
    return f"{empty:,} of {rows:,} ({100 * empty / rows:.2g} %)"


def _too_many_empty(released: Release, found: Mapping[str, float]) -> list[str]:
    """A warning if there are too many empty sets for the promise: a sign of a shift that needs no true labels."""
    empty, rows = int(found.get("empty_sets", 0)), int(found["rows"])
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
        "thresholds": {str(name): part.threshold for name, part in parts.items()},
        "coverage": min(part.coverage for part in parts.values()),
    }
