"""`confide evaluate`: how often the sets contain the truth, on a table that says it."""

from pathlib import Path
from typing import Annotated

import click
import typer

from confide.cli import options as o
from confide.cli.columns import Columns, parsed
from confide.cli.evaluated import evaluated
from confide.cli.output import check_output, emit, say
from confide.cli.parameters import command
from confide.cli.progress import progress_bar
from confide.errors import InputError
from confide.evaluation import MOST_EXAMPLES
from confide.releases import GroupCalibration, Release, load_release
from confide.support import write_text
from confide.tables import evaluate_table, open_table

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


@command
def evaluate(
    file: o.Source,
    *,
    table: o.TableName = None,
    calibration: o.CalibrationFile,
    columns: Columns,
    alpha: o.OneLevel = None,
    by: o.ByColumn = None,
    candidates: o.CandidatesSpec = None,
    out: Output = None,
    examples: Examples = 0,
    force: o.Force = False,
    as_json: o.AsJson = False,
) -> None:
    r"""Measure coverage and set size on records with known truth.

    TABLE holds records that were not used for calibration. The calibration
    may also be a release of several thresholds: of each level, group or side
    coverage is measured. The numbers are computed from the records without
    noise: they are not private. Share them only if you may speak of these
    records.

    Example:

      confide evaluate test.parquet --calibration cal.json \
        --probabilities 'p_*' --label label
    """
    if examples and (out is None or columns.task != "classification" or columns.truth is not None):
        raise click.UsageError("--examples needs --out and --probabilities")
    if out is not None:
        check_output(out, force=force)
    released = o.at_level(load_release(calibration), alpha)
    what = columns.to_evaluate(released, calibration, parsed(candidates))
    _check_group(columns, released, by)
    with open_table(file, table) as opened, progress_bar("evaluating", opened.row_count) as progress:
        if what is None:
            raise InputError(f"say which columns to read, by {columns.ways}; {opened.existing()}")
        found = evaluate_table(opened, what, released, by=by, examples=examples, progress=progress)
    if out is not None:
        write_text(out, found.to_json(), overwrite=force)
    if as_json:
        emit(found.fields())
        return
    say(evaluated(found, released))
    if out is not None:
        say(f"saved: {out}")
    say("These numbers come straight from the records: they are not private.")


def _check_group(columns: Columns, released: Release, by: str | None) -> None:
    """Refuse a calibration per group without its column, and a column without such a calibration."""
    own = isinstance(released, GroupCalibration) and (released.by == "group" or columns.task == "score")
    if own and by is None and columns.task is not None:
        what = "true class" if isinstance(released, GroupCalibration) and released.by == "class" else "group"
        raise click.UsageError(f"--by is missing, the column of each record's {what}")
    if by is not None and not own:
        raise click.UsageError("--by belongs to calibrations with one threshold per group")
