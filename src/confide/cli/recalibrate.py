"""`confide recalibrate`: an earlier release and a table of new records in, the release that renews it out."""

from pathlib import Path
from typing import Annotated, Any

import click

from confide.calibration import Payer, Request, prepare
from confide.cli import options as o
from confide.cli.about import About, stated_words
from confide.cli.budget import LedgerOptions
from confide.cli.calibrate import expected_of, guessed_for_groups, report_release
from confide.cli.columns import Columns, TrueColumns, check_fits, parsed
from confide.cli.course import renewed
from confide.cli.output import EXPECTED, heard, say
from confide.cli.parameters import command
from confide.cli.schedule import ScheduleFile, refuse_another_request, scheduled
from confide.errors import InputError
from confide.mechanisms import Slopes
from confide.releases import (
    Calibration,
    GroupCalibration,
    Release,
    RiskCalibration,
    SidesCalibration,
    load_release,
    parts_of,
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
    request = Request(renews=release, **spent, n_typical=n_typical, cold=cold, candidates=parsed(candidates))
    terms = next(iter(request.parts.values())).terms
    refuse_another_request(schedule, release.privacy, terms.selector if terms.mechanism == "slopes" else None)
    what = _what(columns, release, previous)
    groups = isinstance(release, GroupCalibration)
    if groups and (budget.ledger is not None) != (partition is not None):
        raise click.UsageError("--partition, the name of the division into groups, belongs to --ledger; give both")
    if n is not None and not request.public_n:
        raise InputError("--n must be left out: the number of records, or of those in each group, stays secret")
    output.check(Kind.RELEASE, previous, *records.files, *budget.files, schedule)
    receipt = budget.receipt()
    account: dict[str, Any] = {**budget.account(records.file), "partition": partition}
    if n is not None or not request.public_n:  # what the ledger's limit does not allow is refused before all else
        prepare(request, n, Payer(**account)).refuse_early()
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
            left_out = records.left_out(opened) if request.public_n else {}  # else it is secret
        part.write_text(released.to_json(), encoding="utf-8")
    plan = None
    if isinstance(released, Calibration) and isinstance(released.mechanism, Slopes) and not remarks(released):
        plan = expected_of(request, released)
    said = [one.message for one in caught if issubclass(one.category, EXPECTED)]
    guessed = guessed_for_groups(released, n_typical)
    report_release(released, plan, str(output.out), said, left_out, receipt, as_json=as_json, guessed=guessed)
    if not as_json:
        say(renewed(released))


def _what(columns: TrueColumns, release: Release, path: Path) -> What | None:
    """What is read of each record, for the score or the loss of the release; None if no columns were named."""
    first = next(iter(parts_of(release).values()))
    named = Columns(**vars(columns))
    if isinstance(release, RiskCalibration):
        if named.task not in (None, "losses") and columns.truth is None:
            raise InputError(f"calibration {str(path)!r} bounds a loss; name --probabilities with --truth, or --losses")
        return Columns(**vars(columns), loss=release.loss, bound=release.bound).what()
    if named.task is None:
        return None
    if named.task == "losses" or columns.truth is not None:
        raise InputError(f"calibration {str(path)!r} bounds no loss; name {columns.ways}")
    if named.task != "score":
        check_fits(named.way, release, path)
    score = SIDES if isinstance(release, SidesCalibration) else first.score
    if isinstance(release, SidesCalibration) and named.task == "score":
        raise click.UsageError("a release of two sides needs --prediction LOWER,UPPER with --target")
    return Columns(**vars(columns), score=score).what()
