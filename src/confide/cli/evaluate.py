"""`confide evaluate`: how often the sets contain the truth, on a table that says it."""

from pathlib import Path
from typing import Annotated

import click

from confide.cli import options as o
from confide.cli.budget import LedgerOptions
from confide.cli.columns import Columns, parsed_list
from confide.cli.evaluated import (
    evaluated,
    exit_code,
    refuse_unjudged,
    shortfall_fields,
    shortfall_notes,
    worst_fields,
)
from confide.cli.output import check_output, emit, heard, said_by_the_command, say, say_left_out, warn
from confide.cli.parameters import command
from confide.cli.private import PrivateOptions, account_of, tell
from confide.cli.schedule import ScheduleFile
from confide.evaluation import MOST_EXAMPLES, NOT_PRIVATE
from confide.releases import remarks
from confide.support import Kind, write_text
from confide.tables import evaluate_table, evaluate_table_privately


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
    fail_below_promise: Annotated[
        bool,
        o.output(
            None,
            "Exit with code 5 if coverage is surely less than promised, and luck in calibrating does not explain it. A "
            "correct release fails once in 1,000 times at most; where the number of calibration records is secret, "
            "that is of 1,000 records or more.",
            "--fail-below-promise",
        ),
    ] = False,
    force: o.Force = False,
    private: PrivateOptions,
    people: o.PeopleOptions,
    budget: LedgerOptions,
    schedule: ScheduleFile = None,
    as_json: o.AsJson = False,
) -> int:
    r"""Measure coverage and set size on records with known truth.

    TABLE holds records that were not used for calibration. First it is said
    whether all of them together are covered less than promised, by more than
    luck in calibrating explains: then the records, the model or a column are
    others. The promise is an average: the class, the group (--by, any column)
    and the set size that are covered least are named, too, and all that are
    covered less than promised beyond chance. The numbers are computed from the records without noise: they
    are not private. Share them only if you may speak of these records.

    With --epsilon they are counted with noise, and may be published: coverage
    over all, by class, by set size, and by group (--by with --groups), with
    intervals that hold all at once, noise included.

    Example:

      confide evaluate test.parquet --calibration cal.json \
        --probabilities 'p_*' --label label --epsilon 1 --out private.json
    """
    bounded = people.people
    private = private.scheduled(schedule, bounded)
    if examples and private.epsilon is not None:
        raise click.UsageError("--examples must be left out with --epsilon: records as they are cannot be private")
    if examples and (out is None or columns.task != "classification" or columns.truth is not None):
        raise click.UsageError("--examples needs --out and --probabilities")
    kind = Kind.EVALUATION if private.epsilon is None else Kind.PRIVATE_EVALUATION
    check_output(out, kind, *source.files, release.calibration, *budget.files, schedule, force=force)
    receipt = budget.receipt()
    asking = private.asking(bounded, account_of(budget, source.file, private.epsilon))
    released = release.load()
    what = columns.to_evaluate(released, release.calibration, parsed_list(candidates))
    release.check_group(released, of_classes=columns.task == "score", any_groups=True)
    if fail_below_promise:
        refuse_unjudged(released)
    if asking is not None:
        with heard() as caught, receipt, source.open("evaluating", what, columns.ways) as (opened, what, progress):
            private_one = evaluate_table_privately(
                opened,
                what,
                released,
                asking,
                by=release.by,
                people=bounded,
                skip_incomplete=source.skip_incomplete,
                progress=progress,
            )
            known = source.left_out(opened) if asking.neighbors == "replace_one" else {}  # else it is secret
        if out is not None:
            write_text(out, private_one.to_json(), overwrite=force)
        tell(private_one, caught, out, known, receipt, as_json=as_json)
        return exit_code(private_one, fail=fail_below_promise)
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
    notes = [*remarks(released), *(shortfall_notes(found) if as_json else [])]  # else they are in the text
    for note in notes:
        warn(note)
    if out is not None:
        write_text(out, found.to_json(), overwrite=force)
    if as_json:
        worst, short = worst_fields(found, released), shortfall_fields(found)
        emit({**found.fields(), "shortfalls": short, "worst": worst, "warnings": list(notes), **left_out})
        return exit_code(found, fail=fail_below_promise)
    say(evaluated(found, released))
    say_left_out(left_out)
    if out is not None:
        say(f"saved: {out}")
    say(NOT_PRIVATE)
    return exit_code(found, fail=fail_below_promise)
