"""`confide ledger`: what has been spent on which data."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import click
import typer

from confide.cli import options as o
from confide.cli.help import Command, Group
from confide.cli.ledger_places import check, init, move_, report_
from confide.cli.output import check_output, emit, heard, say, warn
from confide.cli.parameters import command
from confide.errors import SimilarNameWarning
from confide.ledger import Ledger, Schedule, file_of, plain
from confide.mechanisms import NEIGHBORS, Neighbors
from confide.support import Kind, write_text

ledger = typer.Typer(
    help="What has been spent on which data (list, show, limit, follow, export, report), and where that is kept "
    "(init, move, check).",
    cls=Group,
    rich_markup_mode=None,
)

LedgerPlace = Annotated[str, typer.Argument(metavar="LEDGER", help="A ledger: its file, or postgresql://ROLE@HOST/DB.")]
DatasetName = Annotated[str, typer.Argument(metavar="DATASET", help="The name of a data set.")]
DpDelta = Annotated[
    float, typer.Option("--dp-delta", metavar="DELTA", help="State (epsilon, delta)-privacy; 0 states pure epsilon.")
]


@ledger.command("list", cls=Command)
def list_(file: LedgerPlace, as_json: o.AsJson = False) -> None:
    """List the data sets with what was spent and what remains.

    Example: confide ledger list budget.db
    """
    found = Ledger(file, create=False).snapshot()
    accounts = found.accounts
    if as_json:
        rows = [{k: v for k, v in plain(a).items() if k != "entries"} for a in accounts.values()]
        emit({"datasets": [row | {"releases": len(a.entries)} for row, a in zip(rows, accounts.values(), strict=True)]})
        return
    say(str(found))


@ledger.command(cls=Command)
def show(file: LedgerPlace, dataset: DatasetName, dp_delta: DpDelta = 0.0, as_json: o.AsJson = False) -> None:
    """Show every charge on a data set, what all of them cost together, and how that figure comes about.

    Example: confide ledger show budget.db patients --dp-delta 1e-6
    """
    account = Ledger(file, create=False).account(dataset)
    loss = account.spent(dp_delta)
    if as_json:
        bounds = [vars(bound) for bound in loss.bounds]
        emit(plain(account) | {"together": bounds})
        return
    say(account.told(dp_delta))


@ledger.command(cls=Command)
def limit(
    file: LedgerPlace,
    dataset: DatasetName,
    epsilon: Annotated[
        float | None, typer.Argument(metavar="EPSILON", help="The most that may be spent; leave out to lift the limit.")
    ] = None,
    dp_delta: DpDelta = 0.0,
    neighbors: Annotated[
        Neighbors,
        typer.Option(click_type=click.Choice(NEIGHBORS), help="The relation that the data set is accounted under."),
    ] = "add_remove",
    as_json: o.AsJson = False,
) -> None:
    """Set or lift the limit of a data set; the ledger is made if it does not exist.

    Example: confide ledger limit budget.db patients 2.0
    """
    wanted = None if epsilon is None else (epsilon, dp_delta)
    with _said_of_names():
        account = Ledger(file).set_limit(dataset, wanted, neighbors=neighbors)
    if as_json:
        emit(plain(account))
        return
    say(f"{account.dataset}: {account.summary}")


@ledger.command(cls=Command)
def follow(
    file: LedgerPlace,
    schedule: Annotated[
        Path, typer.Argument(metavar="SCHEDULE", help="The schedule, as `confide budget plan --out` wrote.")
    ],
    dataset: Annotated[str, o.accounting("NAME", "The data set whose charges follow it.")],
    as_json: o.AsJson = False,
) -> None:
    """Let charges to a data set follow a schedule: what is not in it is refused.

    A ledger file that is not there is made. The data set gets the schedule's
    total as its limit, unless it has one. A later schedule replaces an
    earlier one, if what was spent and all of the later one together keep the
    limit.

    Example: confide ledger follow budget.db schedule.json --dataset patients
    """
    read = Schedule.load(schedule)
    with _said_of_names():
        account = Ledger(file).follow(dataset, read)
    if as_json:
        emit(plain(account))
        return
    say(f"{account.dataset}: {account.summary}")
    say(read.statement)


@ledger.command(cls=Command)
def export(
    file: LedgerPlace,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Where to write (default: standard output).")] = None,
    force: o.Force = False,
) -> None:
    """Write everything in a ledger as one JSON document.

    Example: confide ledger export budget.db --out budget.json
    """
    check_output(out, Kind.EXPORT, file_of(file), force=force)
    document: dict[str, Any] = Ledger(file, create=False).export()
    if out is None:
        emit(document)
        return
    write_text(out, json.dumps(document, indent=2, allow_nan=False) + "\n", overwrite=force)
    say(f"saved: {out}")


for name, function in (("report", command(report_)), ("init", init), ("move", move_), ("check", check)):
    ledger.command(name, cls=Command)(function)


@contextmanager
def _said_of_names() -> Iterator[None]:
    """What the library warns of names is printed."""
    with heard(SimilarNameWarning) as caught:
        yield
    for one in caught:
        warn(str(one.message))
