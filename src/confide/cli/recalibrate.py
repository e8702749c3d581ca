"""`confide recalibrate`: an earlier release and a table of new records in, the release that renews it out."""

from pathlib import Path
from typing import Annotated, Any

import click

from confide.calibration import Renewal
from confide.cli import options as o
from confide.cli.about import About, stated_words
from confide.cli.budget import LedgerOptions
from confide.cli.calibrate import guessed_for_groups, report_release
from confide.cli.columns import Columns, TrueColumns, check_fits, parsed
from confide.cli.course import renewed
from confide.cli.output import EXPECTED, heard, say
from confide.cli.parameters import command
from confide.cli.schedule import ScheduleFile, refuse_another_request, scheduled
from confide.errors import InputError
from confide.mechanisms import Slopes
from confide.planning import make_plan
from confide.releases import (
    Calibration,
    Release,
    load_release,
    remarks,
)
from confide.support import Kind, new_file
from confide.tables import SIDES, What, recalibrate_table


@command
def recalibrate(
    source: o.SourceOfRelease,
    *,
    columns: TrueColumns,
    by: o.ByColumn = None,
    weight_column: Annotated[
        str | None,
        o.columns("COLUMN", "For a release whose records have public weights: the column of each."),
    ] = None,
    epsilon: o.Epsilon = None,
    rho: Annotated[float | None, o.privacy("NUMBER", "zCDP loss, instead of --epsilon.")] = None,
    n_typical: o.NTypical = None,
    n: Annotated[
        int | None,
        o.privacy("N", "The public number of records under replace_one; databases need it with --ledger."),
    ] = None,
    cold: Annotated[
        bool,
        o.making(
            None,
            "Start without the earlier threshold; needed if records were in an earlier release of the chain, too.",
            "--cold",
        ),
    ] = False,
    candidates: o.CandidatesSpec = None,
    people: o.PeopleOptions,
    budget: LedgerOptions,
    schedule: ScheduleFile = None,
    partition: Annotated[
        str | None,
        o.grouping("NAME", "With --ledger, for groups: the public name of this division, as ward."),
    ] = None,
    about: About = None,
    output: o.Output,
    as_json: o.AsJson = False,
) -> None:
    r"""Renew a release on new records with known truth.

    What is asked - level, score, relation, groups, loss - is read off
    the release; name the columns of TABLE again. Candidates are spread around
    the earlier threshold, half of them as if there were none. The cost is that
    of a new release (--epsilon: by default that of the earlier one) and adds
    up for people who are in both. The file names all that it renewed.

    Example:

      confide recalibrate february.parquet --calibration january.json \
        --probabilities 'p_*' --label label --out february.json
    """
    previous, records = source.separate()
    release = load_release(previous)
    words = stated_words(about)
    bounded = people.people
    spent = scheduled(schedule, "calibration", {"epsilon": epsilon, "rho": rho})
    renewal = Renewal.of(release, **spent, n_typical=n_typical, cold=cold, candidates=parsed(candidates))
    refuse_another_request(schedule, release.privacy, next(iter(renewal.asked.values())).get("selector"))
    what = _what(columns, release, previous)
    groups = release.disjoint
    if groups and (budget.ledger is not None) != (partition is not None):
        raise click.UsageError("--partition, the name of the division into groups, belongs to --ledger; give both")
    if n is not None and not renewal.public_n:
        raise InputError("--n must be left out: the number of records, or of those in each group, stays secret")
    output.check(Kind.RELEASE, previous, *records.files, *budget.files, schedule)
    receipt = budget.receipt()
    account: dict[str, Any] = {**budget.account(records.file), "partition": partition}
    if n is not None or not renewal.public_n:  # what the ledger's limit does not allow is refused before all else
        renewal.price(n, **account).refuse_early()
    with (
        new_file(output.out, overwrite=output.force, kind=Kind.RELEASE) as part,
        heard() as caught,
        receipt,
    ):
        with records.open("counting", what, columns.ways) as (opened, what, progress):
            released = recalibrate_table(
                release,
                opened,
                what,
                by=by,
                weights=weight_column,
                n=n,
                people=bounded,
                skip_incomplete=records.skip_incomplete,
                about=words,
                progress=progress,
                **spent,
                n_typical=n_typical,
                cold=cold,
                candidates=parsed(candidates),
                **account,
            )
            left_out = records.left_out(opened) if renewal.public_n else {}  # else it is secret
        part.write_text(released.to_json(), encoding="utf-8")
    plan = None
    if isinstance(released, Calibration) and isinstance(released.mechanism, Slopes) and not remarks(released):
        request = renewal.price(released.n).parts[None][1].request
        plan = make_plan(request, request.n or request.n_typical)  # n only where it is public
    said = [one.message for one in caught if issubclass(one.category, EXPECTED)]
    guessed = guessed_for_groups(released, n_typical)
    report_release(released, plan, str(output.out), said, left_out, receipt, as_json=as_json, guessed=guessed)
    if not as_json:
        say(renewed(released))


def _what(columns: TrueColumns, release: Release, path: Path) -> What | None:
    """What is read of each record, for the score or the loss of the release; None if no columns were named."""
    named = Columns(**vars(columns))
    if release.bounded is not None:
        if named.task not in (None, "losses") and columns.truth is None:
            raise InputError(f"calibration {str(path)!r} bounds a loss; name --probabilities with --truth, or --losses")
        return Columns(**vars(columns), loss=release.bounded[0], bound=release.bounded[1]).what()
    if named.task is None:
        return None
    if named.task == "losses" or columns.truth is not None:
        raise InputError(f"calibration {str(path)!r} bounds no loss; name {columns.ways}")
    if named.task != "score":
        check_fits(named.way, release, path)
    score = SIDES if release.by == "side" else release.first.score
    if release.by == "side" and named.task == "score":
        raise click.UsageError("a release of two sides needs --prediction LOWER,UPPER with --target")
    return Columns(**vars(columns), score=score).what()
