"""`confide predict`: prediction sets or intervals for the rows of a file."""

from typing import Annotated

import typer

from confide.calibration import Calibration
from confide.cli import options as o
from confide.cli.columns import Classified, Columns, Regressed, split
from confide.cli.output import check_output, emit, number, say
from confide.cli.progress import progress_bar
from confide.errors import InputError
from confide.tables.predict import Output, write_intervals, write_sets
from confide.tables.source import open_table

Keep = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN,...",
        rich_help_panel="Output",
        help="Input columns to keep; may be repeated (default: all but the probabilities).",
    ),
]


def predict(
    file: o.File,
    *,
    calibration: o.CalibrationFile,
    probabilities: o.Probabilities = None,
    classes: o.Classes = None,
    prediction: o.Prediction = None,
    out: o.Out,
    keep: Keep = None,
    force: o.Force = False,
    as_json: o.AsJson = False,
) -> None:
    r"""Predict sets of classes, or intervals, for new records.

    TABLE is a Parquet, CSV, Arrow or Feather file; so is the output. It gets
    the columns of TABLE (without the probabilities) and, for classes,
    prediction_set (a list of class names; in CSV a JSON array) and set_size;
    for numbers, lower and upper. Predicting costs no privacy.

    Example:

      confide predict new.parquet --calibration cal.json \
        --probabilities 'p_*' --out sets.parquet
    """
    columns = Columns(
        probabilities=probabilities, classes=classes, prediction=prediction, ways="--probabilities or --prediction"
    )
    kept = None if keep is None else tuple(name for text in keep for name in split(text))
    output = Output(out, kept, overwrite=force)
    _ = output.format  # refuses unknown extensions
    check_output(out, force=force)
    if out.exists() and file.exists() and out.samefile(file):
        raise InputError("the output would replace the input; choose another name")
    released = Calibration.load(calibration)
    columns.check_fits(released, calibration)
    with open_table(file) as table, progress_bar("predicting", table) as progress:
        opened = columns.open(table)
        if isinstance(opened, Classified):
            found = write_sets(opened.probabilities, released, output, progress)
        else:
            assert isinstance(opened, Regressed)
            found = write_intervals(opened.prediction, released, output, progress)
    if as_json:
        emit({"out": str(out), "threshold": released.threshold, "coverage": released.coverage, **found})
        return
    size = f", {found['mean_set_size']:.2f} classes each on average" if "mean_set_size" in found else ""
    say(f"{number(found['rows'])} {'sets' if size else 'intervals'}{size}")
    say(f"promise: {released.guarantee}")
    say(f"saved: {out}")
