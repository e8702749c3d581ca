"""`confide evaluate`: how often the sets contain the truth, on a file that says it."""

from pathlib import Path
from typing import Annotated

import click
import typer

from confide.calibration import Calibration
from confide.cli import options as o
from confide.cli.columns import Classified, Columns, Regressed, Scored
from confide.cli.output import check_output, emit, number, say, table
from confide.cli.progress import progress_bar
from confide.evaluation import MOST_EXAMPLES, Evaluation
from confide.files import write_text
from confide.tables.evaluate import of_intervals, of_scores, of_sets
from confide.tables.parts import Label, Number
from confide.tables.scan import Progress
from confide.tables.source import Table, open_table

Output = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        rich_help_panel="Output",
        help="Also write what was found as JSON, for `confide report --evaluation FILE`.",
    ),
]
Examples = Annotated[
    int,
    typer.Option(
        metavar="K",
        min=0,
        max=MOST_EXAMPLES,
        rich_help_panel="Output",
        help="Keep the sets and true labels of the first K records in that file. "
        "[bold]They are shown as they are.[/bold]",
    ),
]


def evaluate(
    file: o.File,
    *,
    calibration: o.CalibrationFile,
    probabilities: o.Probabilities = None,
    label: o.Label = None,
    classes: o.Classes = None,
    prediction: o.Prediction = None,
    target: o.Target = None,
    score_column: o.ScoreColumn = None,
    out: Output = None,
    examples: Examples = 0,
    force: o.Force = False,
    as_json: o.AsJson = False,
) -> None:
    r"""Measure coverage and set size on records with known truth.

    TABLE is a Parquet, CSV, Arrow or Feather file of records that were not
    used for calibration. The numbers are computed from it without noise: they
    are not private. Share them only if you may speak of these records.

    Example:

      confide evaluate test.parquet --calibration cal.json \
        --probabilities 'p_*' --label label
    """
    columns = Columns(score_column, None, probabilities, label, classes, prediction, target)
    columns.check_truth()
    if examples and (out is None or columns.task != "classification"):
        raise click.UsageError("--examples needs --out and --probabilities")
    if out is not None:
        check_output(out, force=force)
    released = Calibration.load(calibration)
    columns.check_fits(released, calibration)
    with open_table(file) as source, progress_bar("evaluating", source.row_count) as progress:
        found = _evaluate(source, columns, released, progress, examples)
    if out is not None:
        write_text(out, found.to_json(), overwrite=force)
    if as_json:
        emit(found.fields())
        return
    shown = {
        "mean_size": "classes per set, on average",
        "singletons": "sets with one class",
        "empty": "sets without any",
        "mean_width": "width of intervals, on average",
    }
    rows = [("coverage", str(found.coverage)), ("promise", str(released.guarantee))]
    shares = ("singletons", "empty")
    sizes = ((name, getattr(found, name)) for name in shown)
    rows += [(shown[name], f"{100 * v:.1f} %" if name in shares else number(v)) for name, v in sizes if v is not None]
    say(table(rows))
    if out is not None:
        say(f"saved: {out}")
    say("These numbers come straight from the file: they are not private.")


def _evaluate(source: Table, columns: Columns, released: Calibration, progress: Progress, examples: int) -> Evaluation:
    match columns.open(source):
        case Scored(column):
            return of_scores(column, released, progress)
        case Classified(probabilities, Label() as label):
            return of_sets(probabilities, label, released, progress, examples=examples)
        case Regressed(prediction, Number() as target):
            return of_intervals(prediction, target, released, progress)
    raise AssertionError  # check_truth has refused the rest
