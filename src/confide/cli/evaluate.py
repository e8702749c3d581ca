"""`confide evaluate`: how often the sets contain the truth, on a file that says it."""

from pathlib import Path
from typing import Annotated

import click
import typer

from confide.cli import options as o
from confide.cli.columns import Classified, Columns, Regressed, Scored
from confide.cli.evaluated import evaluated
from confide.cli.output import check_output, emit, say
from confide.cli.progress import progress_bar
from confide.evaluation import MOST_EXAMPLES, Evaluation, LevelEvaluation
from confide.releases.parts import parts_of
from confide.releases.release import Release, load_release
from confide.releases.several import GroupCalibration, SidesCalibration
from confide.support.files import write_text
from confide.tables.evaluate import GroupColumn, of_intervals, of_scores, of_sets
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
Groups = Annotated[
    str | None,
    typer.Option(
        "--by",
        metavar="COLUMN",
        rich_help_panel="Columns",
        help="For thresholds per group: the group of each record. With --score-column and thresholds per class: the "
        "true class.",
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
    group_column: Groups = None,
    out: Output = None,
    examples: Examples = 0,
    force: o.Force = False,
    as_json: o.AsJson = False,
) -> None:
    r"""Measure coverage and set size on records with known truth.

    TABLE is a Parquet, CSV, Arrow or Feather file of records that were not
    used for calibration. The calibration may also be a release of several
    thresholds: of each level, group or side coverage is measured. The numbers
    are computed from the file without noise: they are not private. Share them
    only if you may speak of these records.

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
    released = load_release(calibration)
    _check(columns, released, calibration, group_column)
    with open_table(file) as source, progress_bar("evaluating", source.row_count) as progress:
        found = _evaluate(source, columns, released, group_column, progress, examples)
    if out is not None:
        write_text(out, found.to_json(), overwrite=force)
    if as_json:
        emit(found.fields())
        return
    say(evaluated(found, released))
    if out is not None:
        say(f"saved: {out}")
    say("These numbers come straight from the file: they are not private.")


def _check(columns: Columns, released: Release, path: Path, group_column: str | None) -> None:
    """Refuse options that do not fit the release."""
    if columns.task == "score" and isinstance(released, SidesCalibration):
        raise click.UsageError("a calibration of two sides needs --prediction LOWER,UPPER with --target")
    for part in parts_of(released).values():
        columns.check_fits(part, path)
    own = isinstance(released, GroupCalibration) and (released.by == "group" or columns.task == "score")
    if own and group_column is None and columns.task is not None:
        what = "true class" if isinstance(released, GroupCalibration) and released.by == "class" else "group"
        raise click.UsageError(f"--by is missing, the column of each record's {what}")
    if group_column is not None and not own:
        raise click.UsageError("--by belongs to calibrations with one threshold per group")


def _evaluate(
    source: Table,
    columns: Columns,
    released: Release,
    group_column: str | None,
    progress: Progress,
    examples: int,
) -> Evaluation | LevelEvaluation:
    groups = None
    if group_column is not None:
        assert isinstance(released, GroupCalibration)
        groups = GroupColumn.of(source, group_column, released)
    match columns.open(source):
        case Scored(column):
            return of_scores(column, released, progress, groups=groups)
        case Classified(probabilities, Label() as label):
            return of_sets(probabilities, label, released, progress, groups=groups, examples=examples)
        case Regressed(predictions, Number() as target):
            return of_intervals(predictions, target, released, progress, groups=groups)
    raise AssertionError  # check_truth has refused the rest
