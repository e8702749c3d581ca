"""`confide predict`: prediction sets or intervals for the rows of a file."""

from pathlib import Path
from typing import Annotated

import click
import typer

from confide.cli import groups as g
from confide.cli import options as o
from confide.cli.columns import Classified, Columns, Regressed, split
from confide.cli.engine import pair_or_one, probabilities_of
from confide.cli.output import check_output, emit, number, say
from confide.cli.progress import progress_bar
from confide.errors import InputError
from confide.releases.calibration import Calibration
from confide.releases.release import load_release
from confide.releases.several import GroupCalibration
from confide.tables import choose
from confide.tables.connect import names_an_engine, names_spark, open_source
from confide.tables.expressions import existing, existing_column
from confide.tables.formats import file_format
from confide.tables.predict import Output, write_intervals, write_sets
from confide.tables.progress import expected_rows
from confide.tables.set_columns import INTERVAL_COLUMNS, SET_COLUMNS
from confide.tables.sets import with_intervals, with_sets
from confide.tables.source import open_table
from confide.tables.streamed_sets import StreamedSets
from confide.tables.writing import write_file, write_table

Keep = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN,...",
        rich_help_panel="Output",
        help="Input columns to keep; may be repeated (default: all but the probabilities).",
    ),
]

OutOrTable = Annotated[
    str | None,
    typer.Option(
        "--out",
        metavar="FILE",
        rich_help_panel="Output",
        help="Where to write. From Spark, a name without an ending, one that ends in /, or an address such as "
        "s3a://BUCKET/NAME is a new folder, into which the executors write Parquet.",
    ),
]
OutTable = Annotated[
    str | None,
    typer.Option(
        "--out-table", metavar="NAME", rich_help_panel="Output", help="A new table in the same database or Spark."
    ),
]


def predict(
    file: o.Source,
    *,
    table: o.TableName = None,
    calibration: o.CalibrationFile,
    probabilities: o.Probabilities = None,
    classes: o.Classes = None,
    prediction: o.Prediction = None,
    by: g.GroupColumn = None,
    out: OutOrTable = None,
    out_table: OutTable = None,
    keep: Keep = None,
    force: o.Force = False,
    as_json: o.AsJson = False,
) -> None:
    r"""Predict sets of classes, or intervals, for new records.

    TABLE is a file, a glob of Parquet files, a database or a Spark master
    with --table. The output is a file, or with --out-table a new table in
    the same database, or from Spark a folder. It gets the columns of TABLE
    (without the probabilities) and, for classes, prediction_set (a list of
    class names; in CSV a JSON array) and set_size; for numbers, lower and
    upper. Predicting costs no privacy.

    Example:

      confide predict new.parquet --calibration cal.json \
        --probabilities 'p_*' --out sets.parquet
    """
    columns = Columns(
        probabilities=probabilities, classes=classes, prediction=prediction, ways="--probabilities or --prediction"
    )
    kept = None if keep is None else tuple(name for text in keep for name in split(text))
    if (out is None) == (out_table is None):
        raise click.UsageError("give --out, a file, or with --table also --out-table, a new table in the same database")
    released = _load(calibration)
    columns.check_fits(released, calibration)
    g.check_group(released, by)
    if out is not None and not _is_folder(file, out):
        check_output(Path(out), force=force)
        _ = file_format(Path(out))  # refuses unknown extensions
    if table is not None or names_an_engine(file):
        found = _by_engine(file, table, columns, released, by, kept, out, out_table, force=force)
    elif out is None:
        raise click.UsageError("--out-table belongs to a database or Spark; give --out")
    else:
        found = _by_file(Path(file), columns, released, by, Output(Path(out), kept, overwrite=force))
    where = str(out or out_table)
    if as_json:
        emit({"out": where, **_promised(released), **found})
        return
    size = f", {found['mean_set_size']:.2f} classes each on average" if "mean_set_size" in found else ""
    say(f"{number(found['rows'])} {'sets' if size else 'intervals'}{size}")
    one = released if isinstance(released, Calibration) else next(iter(released.parts.values()))
    each = "" if isinstance(released, Calibration) else f" for each {released.by}"
    say(f"promise{each}: {one.guarantee}")
    say(f"saved: {where}")


def _is_folder(source: str, out: str) -> bool:
    """Whether the output is a folder that the executors of Spark write into."""
    return names_spark(source) and (out.endswith("/") or "://" in out or not Path(out).suffix)


def _load(path: Path) -> Calibration | GroupCalibration:
    released = load_release(path)
    if isinstance(released, GroupCalibration):
        return g.by_text(released)
    if not isinstance(released, Calibration):
        raise InputError(
            f"calibration {str(path)!r} must have one threshold, or one per group or class; it has several of another "
            "kind: choose one of them, or predict with the library"
        )
    return released


def _promised(released: Calibration | GroupCalibration) -> dict[str, object]:
    if isinstance(released, Calibration):
        return {"threshold": released.threshold, "coverage": released.coverage}
    parts = released.parts.items()
    return {
        "thresholds": {name: part.threshold for name, part in parts},
        "coverage": min(part.coverage for _, part in parts),
    }


def _by_file(
    file: Path, columns: Columns, released: Calibration | GroupCalibration, by: str | None, output: Output
) -> dict[str, float]:
    if output.path.exists() and file.exists() and output.path.samefile(file):
        raise InputError("the output would replace the input; choose another name")
    with open_table(file) as table, progress_bar("predicting", table.row_count) as progress:
        opened = columns.open(table)
        group = None
        if by is not None and isinstance(released, GroupCalibration):
            group = choose.group(table, by, tuple(map(str, released.parts)))
        if isinstance(opened, Classified):
            return write_sets(opened.probabilities, released, output, progress, group)
        assert isinstance(opened, Regressed)
        return write_intervals(opened.predictions, released, output, progress, group)


def _by_engine(
    source: str,
    table: str | None,
    columns: Columns,
    released: Calibration | GroupCalibration,
    by: str | None,
    kept: tuple[str, ...] | None,
    out: str | None,
    out_table: str | None,
    *,
    force: bool,
) -> dict[str, float]:
    with open_source(source, table, write=out_table is not None) as opened:
        if columns.probabilities is not None:
            read, names = probabilities_of(opened, columns)
            predicted, added = with_sets(opened, read, released, names, group=by), SET_COLUMNS
            left_out: tuple[str, ...] = (read,) if isinstance(read, str) else read
        elif columns.prediction is not None:
            predicted, added = with_intervals(opened, pair_or_one(columns), released, group=by), INTERVAL_COLUMNS
            left_out = ()
        else:
            raise InputError(f"say which columns to read, by {columns.ways}; {existing(opened)}")
        for name in kept or ():
            existing_column(opened, name)
        keep = [name for name in opened.columns if name not in left_out] if kept is None else list(kept)
        chosen = predicted.select(*keep, *added)
        streamed = out_table is None or isinstance(chosen, StreamedSets)
        with progress_bar("predicting", lambda: expected_rows(opened, streamed=True) if streamed else None) as progress:
            if out_table is not None:
                return write_table(chosen, out_table, progress=progress)
            assert out is not None
            if _is_folder(source, out):
                from confide.tables.spark import write_parquet

                return write_parquet(chosen, out, progress)
            return write_file(chosen, Path(out), overwrite=force, progress=progress)
