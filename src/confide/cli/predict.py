"""`confide predict`: prediction sets or intervals for the rows of a table."""

from collections.abc import Mapping
from typing import Annotated, Any

import click

from confide.cli import options as o
from confide.cli.columns import ModelColumns
from confide.cli.output import check_output, emit, heard, number, say, say_left_out, warn
from confide.cli.parameters import command
from confide.errors import CoverageWarning
from confide.releases import Calibration, Release
from confide.sets import count_shortfall
from confide.support import Kind, as_place
from confide.tables import file_format, is_folder, names_spark, predict_table, refuse_existing_folder


@command
def predict(
    source: o.Source,
    *,
    release: o.Released,
    columns: ModelColumns,
    out: Annotated[
        str | None,
        o.output(
            "FILE|FOLDER",
            "Where to write. A name without an ending, or one that ends in /, is a new folder of Parquet files; from "
            "Spark the executors write it, also to an address such as s3a://BUCKET/NAME.",
        ),
    ] = None,
    out_table: Annotated[str | None, o.output("NAME", "A new table in the same database or Spark.")] = None,
    partition_by: Annotated[
        str | None, o.output("COLUMN,...", "For a folder: columns whose values become folders in it.")
    ] = None,
    keep: Annotated[
        list[str] | None,
        o.output("COLUMN,...", "Input columns to keep; may be repeated (default: all but the probabilities)."),
    ] = None,
    force: o.Force = False,
    as_json: o.AsJson = False,
) -> None:
    r"""Predict sets of classes, or intervals, for new records.

    The output is a file or a folder, or with --out-table a new table in the
    same database. It gets the columns of TABLE (without the probabilities)
    and, for classes, prediction_set (a list of class names; in CSV a JSON
    array) and set_size; for numbers, lower and upper; for several levels such
    columns for each. Predicting costs no privacy.

    Example:

      confide predict new.parquet --calibration cal.json \
        --probabilities 'p_*' --out sets.parquet
    """
    if (out is None) == (out_table is None):
        raise click.UsageError("give --out, a file, or with --table also --out-table, a new table in the same database")
    released = release.load()
    what = columns.to_predict(released, release.calibration)
    release.check_group(released, of_classes=False)
    place = None if out is None or ("://" in out and names_spark(source.file)) else as_place(out)
    if place is not None and not is_folder(str(out)):
        _ = file_format(place)  # refuses unknown endings
        check_output(place, Kind.PREDICTIONS, *source.files, release.calibration, force=force)
    elif place is not None:
        refuse_existing_folder(place)
    ways = "--probabilities or --prediction"
    with (
        heard(CoverageWarning) as caught,
        source.open("predicting", what, ways, write=out_table is not None) as (opened, what, progress),
    ):
        found = predict_table(
            opened,
            what,
            released,
            out,
            out_table=out_table,
            by=release.by,
            keep=None if keep is None else [name for text in keep for name in o.split(text)],
            partition_by=() if partition_by is None else o.split(partition_by),
            overwrite=force,
            skip_incomplete=source.skip_incomplete,
            progress=progress,
        )
        found |= source.left_out(opened)
    where = str(out or out_table)
    notes = [*(str(one.message) for one in caught), *_too_many_empty(released, found)]
    for note in notes:
        warn(note)
    if as_json:
        emit({"out": where, **_promised(released), **found, "warnings": notes})
        return
    size = f", {found['mean_set_size']:.2f} classes each on average" if "mean_set_size" in found else ""
    say(f"{number(found['rows'])} {'sets' if columns.probabilities is not None else 'intervals'}{size}")
    if empty := int(found.get("empty_sets", 0)):
        say(f"empty sets: {_empty(empty, int(found['rows']))}")
    say_left_out(found)
    for name, text in released.promises.items():
        say(f"promise{f' for {name}' if name else ''}: {text}")
    say(f"saved: {where}")


def _empty(empty: int, rows: int) -> str:
    return f"{empty:,} of {rows:,} ({100 * empty / rows:.2g} %)"


def _too_many_empty(released: Release, found: Mapping[str, float]) -> list[str]:
    """More empty sets than the promise leaves out: the first visible sign of a shift, without any truth."""
    empty, rows = int(found.get("empty_sets", 0)), int(found["rows"])
    if not empty or released.bounded or count_shortfall(released, rows - empty, rows) is None:
        return []
    return [
        f"{empty:,} of {rows:,} sets are empty, and an empty set never holds the true label: so many that the "
        "promise cannot hold for these records; other records than those that calibrated, or another model?"
    ]


def _promised(released: Release) -> dict[str, Any]:
    if isinstance(released, Calibration):
        return {"threshold": released.threshold, "coverage": released.coverage}
    parts = released.parts if released.disjoint else released.named
    return {
        "thresholds": {str(name): part.threshold for name, part in parts.items()},
        "coverage": min(part.coverage for part in parts.values()),
    }
