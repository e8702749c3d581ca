"""`confide evaluate`: how often the sets contain the truth, on a table that says it."""

from pathlib import Path
from typing import Annotated

import click

from confide.cli import options as o
from confide.cli.columns import Columns, parsed_list
from confide.cli.evaluated import evaluated, worst_fields
from confide.cli.output import check_output, emit, said_by_the_command, say, say_left_out, warn
from confide.cli.parameters import command
from confide.evaluation import MOST_EXAMPLES
from confide.releases import remarks
from confide.support import Kind, write_text
from confide.tables import evaluate_table


@command
def evaluate(
    source: o.Source,
    *,
    release: o.Released,
    columns: Columns,
    candidates: o.CandidatesSpec = None,
    out: Annotated[
        Path | None,
        o.output("FILE", "Also write what was found as JSON, for `confide report --evaluation FILE`."),
    ] = None,
    examples: Annotated[
        int,
        o.output(
            "K",
            "Keep the sets and true labels of the first K records in it, as they are.",
            min=0,
            max=MOST_EXAMPLES,
        ),
    ] = 0,
    force: o.Force = False,
    as_json: o.AsJson = False,
) -> None:
    r"""Measure coverage and set size on records with known truth.

    TABLE holds records that were not used for calibration. The promise is an
    average: the class, the group (--by, any column) and the set size that are
    covered least are named, and all that are surely covered less than
    promised. The numbers are computed from the records without noise: they
    are not private. Share them only if you may speak of these records.

    Example:

      confide evaluate test.parquet --calibration cal.json \
        --probabilities 'p_*' --label label
    """
    if examples and (out is None or columns.task != "classification" or columns.truth is not None):
        raise click.UsageError("--examples needs --out and --probabilities")
    check_output(out, Kind.EVALUATION, *source.files, release.calibration, force=force)
    released = release.load()
    what = columns.to_evaluate(released, release.calibration, parsed_list(candidates))
    release.check_group(released, of_classes=columns.task == "score", any_groups=True)
    with (
        said_by_the_command(),
        source.open("evaluating", what, columns.ways) as (opened, what, progress),
    ):
        found = evaluate_table(
            opened,
            what,
            released,
            by=release.by,
            examples=examples,
            skip_incomplete=source.skip_incomplete,
            progress=progress,
        )
        left_out = source.left_out(opened)
    notes = remarks(released)
    for note in notes:
        warn(note)
    if out is not None:
        write_text(out, found.to_json(), overwrite=force)
    if as_json:
        emit({**found.fields(), "worst": worst_fields(found, released), "warnings": list(notes), **left_out})
        return
    say(evaluated(found, released))
    say_left_out(left_out)
    if out is not None:
        say(f"saved: {out}")
    say("These numbers come straight from the records: they are not private.")
