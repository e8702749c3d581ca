"""`confide ledger`: what has been spent on which data."""

import json
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import click
import typer

from confide.cli import options as o
from confide.cli.help import Command, Group
from confide.cli.ledger_places import check, init, move_, report_
from confide.cli.output import check_output, emit, heard, number, say, warn
from confide.cli.parameters import command
from confide.errors import SimilarNameWarning
from confide.ledger import Account, Ledger, Loss, Schedule, decimal_form, file_of, plain
from confide.mechanisms import NEIGHBORS, Neighbors, practically_none
from confide.support import Kind, aligned, write_text

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
    for account in accounts.values():
        say(f"{account.dataset}: {_summary(account)}")
    if not accounts:
        say("no data sets")
    if found.moved_to is not None:
        say(f"moved to {found.moved_to}: charged there only")


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
    say(f"{account.dataset}: {_summary(account)}")
    for entry in account.entries:
        group = "" if entry.cost.group is None else f"  group {'='.join(entry.cost.group)}"
        zcdp = "" if entry.cost.rho is None else f" ({number(entry.cost.rho)}-zCDP)"
        who = "" if entry.by is None else f"  by {entry.by}"
        kept = "" if entry.release is not None else "  (no release: the run ended before it)"
        say(f"  {entry.made}  {entry.what}  epsilon {_loss(entry.cost.epsilon)}{zcdp}{group}{who}{kept}")
    say(f"together: {loss}")
    if account.schedule is not None and (bound := account.under_schedule) is not None:
        say(f"schedule: {account.schedule.statement}")
        say(f"one person: {Loss((bound,))}")
    if not all(cost.private for cost in account.costs):
        return
    rows = [
        (bound.rule, f"epsilon {bound.epsilon:.6g}{'' if bound.adaptive else ', parameters fixed in advance'}")
        for bound in loss.bounds
    ]
    if len(rows) > 1:
        say(aligned(rows))


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
    say(f"{account.dataset}: {_summary(account)}")


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
    say(f"{account.dataset}: {_summary(account)}")
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


def _loss(epsilon: float) -> str:
    return "+inf (not private)" if math.isinf(epsilon) else decimal_form(epsilon)


def _counted(account: Account) -> str:
    """How many releases there are, and of which kinds if some are no calibrations."""
    kinds = Counter(entry.kind for entry in account.entries)
    of_kinds = ", ".join(f"{number} {kind}{'' if number == 1 else 's'}" for kind, number in sorted(kinds.items()))
    total = len(account.entries)
    made = "1 release" if total == 1 else f"{total} releases"
    return f"{made} ({of_kinds})" if set(kinds) - {"calibration"} else made


def _summary(account: Account) -> str:
    total = account.per_person.epsilon
    weak = f", {practically_none(total)}" if practically_none(total) else ""
    each = "" if account.schedule is None else " per person"
    spent = f"spent {_loss(total)}{each} in {_counted(account)} ({account.neighbors}){weak}"
    if account.limit is None:
        return f"{spent}; no limit"
    at = f" at delta {account.limit.dp_delta:g}" if account.limit.dp_delta else ""
    bound = f"limit {decimal_form(account.limit.epsilon)}{at}"
    if account.schedule is not None:
        return f"{spent}; {bound}; of its schedule {account.stages[-1].in_words}"
    left = account.remaining()
    assert left is not None
    return f"{spent}; {bound}, {decimal_form(left)} left"
