"""`confide federated report`: what the common threshold does in one silo."""

from pathlib import Path
from typing import Annotated

import typer

from confide.candidates import Candidates
from confide.cli import options as o
from confide.cli.columns import Columns
from confide.cli.federated.arguments import Budget, SiloRecords, check_score, counted, what_of
from confide.cli.output import heard, say
from confide.cli.parameters import command
from confide.errors import EarlierReleaseWarning, InputError
from confide.federated import FederatedCalibration, coverage_in_silo
from confide.releases import load_release
from confide.support import Kind, privacy_loss


@command
def report(
    source: o.Source,
    *,
    calibration: Annotated[Path, typer.Option(metavar="FILE", help="What aggregate wrote.")],
    silo: Annotated[str, typer.Option(metavar="NAME", help="This silo's name in the plan.")],
    epsilon: Annotated[float, typer.Option(metavar="NUMBER", help="Privacy loss that the report may cost.")],
    budget: Budget,
    records: SiloRecords,
    again: Annotated[
        bool, typer.Option("--again", help="New records of the same people: count and charge anew.")
    ] = False,
    output: o.Output,
    columns: Columns,
    people: o.PeopleOptions,
) -> None:
    r"""Say how well the common threshold covers in this silo, privately.

    Counts this silo's covered records with noise, after charging its ledger.
    The file may be sent around: `confide report --silo-report FILE` shows it.
    The number of records becomes public. On records that did not take part in
    the calibration the interval holds exactly; name them with --dataset.
    For a threshold of the silo's own: `confide calibrate`.

    Example:

      confide federated report records.csv --score-column s \
        --calibration released.json --silo north --epsilon 0.5 \
        --ledger north.db --budget 4 --out north-report.json
    """
    what = what_of(columns, people)
    privacy_loss("epsilon", epsilon)
    output.check(Kind.REPORT, *source.files, calibration, records.file)
    released = load_release(calibration)
    if not isinstance(released, FederatedCalibration):
        raise InputError(f"calibration {str(calibration)!r} must be federated; `confide evaluate` measures others")
    known = [one.name for one in released.plan.silos]
    if silo not in known:
        raise InputError(f"--silo must be one of the plan's silos, {', '.join(known[:10])}; found {silo!r}")
    check_score("the threshold", released.score, what)
    if released.threshold == float("inf"):
        raise InputError("the threshold is +inf and covers everything; there is nothing to estimate")
    counts = counted(source, what, columns, people, Candidates.of([released.threshold]), released.classes)
    with heard(EarlierReleaseWarning) as caught:
        made = coverage_in_silo(
            silo, counts, released.threshold, epsilon, ledger=records.open(), budget=budget, again=again
        )
    for one in caught:
        say(str(one.message))
    output.write(made.to_json(), f"{made}\nreport")
    say(records.spent(budget))
