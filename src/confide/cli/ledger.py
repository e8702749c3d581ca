"""`confide ledger`: commands about privacy budgets and their storage."""

import json
import os
from typing import Any

import click

from confide.cli.command import command
from confide.cli.help import DEFAULT_LEDGER, Group
from confide.cli.output import capture_warnings, print_result, print_text
from confide.cli.values import Findings, OptionalOutput
from confide.errors import InputError
from confide.ledger import Cost, Ledger, Server, file_of, make_server_ledger, parse_location, request_digest
from confide.mechanisms import Neighbors
from confide.support import FileKind


def named_ledger(file: str | None) -> str:
    """The ledger that was typed, or the default one."""
    if not (named := file or os.environ.get(DEFAULT_LEDGER)):
        raise click.UsageError(f"name a ledger, here or in the environment variable {DEFAULT_LEDGER}")
    return named


@command("ledger list")
def list_(*, file: str | None = None, as_json: bool = False) -> None:
    """List the data sets with the budget spent and left.

    Example: confide ledger list budget.db
    """
    accounts = Ledger(named_ledger(file), create=False).accounts().values()
    rows = [one.as_json(entries=False) | {"releases": len(one.entries)} for one in accounts]
    lines = [f"{account.dataset}: {account.summary}" for account in accounts]
    print_result(lambda: {"datasets": rows}, "\n".join(lines) or "no data sets", as_json=as_json)


@command("ledger show")
def show(
    *,
    file: str | None = None,
    dataset: str | None = None,
    dp_delta: float = 0.0,
    without_names: bool = False,
    title: str | None = None,
    output: Findings,
) -> None:
    """Show every charge of a data set, their total, and its derivation.

    With --out one HTML page for privacy officers, about one data set or all.
    Every seal of the ledger is checked first.

    Example: confide ledger show budget.db patients --dp-delta 1e-6
    """
    if dataset is None and os.environ.get(DEFAULT_LEDGER) and output.out is None:
        file, dataset = None, file
    place = named_ledger(file)
    output.check(FileKind.PAGE, file_of(place))
    ledger = Ledger(place, create=False)
    if output.out is not None:
        from confide.reports import ledger_page

        page = ledger_page(ledger, dataset=dataset, dp_delta=dp_delta, who=not without_names, title=title)
        output.write(page.html)
        print_result(dict, output.saved(), as_json=False)
        return
    if dataset is None:
        raise click.UsageError("name a data set, or an output file for a page about all")
    account = ledger.account(dataset)
    together = [vars(bound) for bound in account.spent(dp_delta).bounds]
    print_result(lambda: account.as_json() | {"together": together}, account.describe(dp_delta), as_json=output.as_json)


@command("ledger limit")
def limit(
    *,
    file: str,
    dataset: str | None = None,
    epsilon: float | None = None,
    dp_delta: float = 0.0,
    neighbors: Neighbors = "add_remove",
    as_json: bool = False,
) -> None:
    """Set or remove the limit of a data set; create the ledger if it does not exist.

    If CONFIDE_LEDGER names a ledger, DATASET [EPSILON] are enough.

    Example: confide ledger limit budget.db patients 2.0
    """
    if dataset is None:
        file, dataset = named_ledger(None), file
    elif os.environ.get(DEFAULT_LEDGER) and epsilon is None and _is_number(dataset):
        file, dataset, epsilon = named_ledger(None), file, float(dataset)
    new_limit = None if epsilon is None else (epsilon, dp_delta)
    with capture_warnings() as said:
        account = Ledger(file).set_limit(dataset, new_limit, neighbors=neighbors)
    said.warn()
    print_result(lambda: account.as_json(), f"{account.dataset}: {account.summary}", as_json=as_json)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@command("ledger export")
def export(*, file: str | None = None, output: OptionalOutput) -> None:
    """Write the contents of a ledger as one JSON document.

    Every seal of the ledger is checked first.

    Example: confide ledger export budget.db --out budget.json
    """
    place = named_ledger(file)
    output.check(FileKind.EXPORT, file_of(place))
    document: dict[str, Any] = Ledger(place, create=False).export()
    output.write(json.dumps(document, indent=2, allow_nan=False) + "\n")
    print_result(lambda: document, output.saved(), as_json=output.out is None)


@command("ledger init")
def init(
    *,
    file: str,
    charge_role: tuple[str, ...] = (),
    read_role: tuple[str, ...] = (),
    dataset: str | None = None,
    spent: float | None = None,
    neighbors: Neighbors = "add_remove",
) -> None:
    """Create a ledger, or let more roles use one on a PostgreSQL server.

    On a server the role of the address owns it and sets limits; jobs use a
    role of --charge-role. Put passwords into the file that PGPASSFILE names.
    --spent enters what the people of --dataset have lost before, for example
    according to a ledger of an earlier version.

    Example:

      confide ledger init postgresql://dpo@db/budget --charge-role jobs
    """
    if (dataset is None) != (spent is None):
        raise InputError("spent", "dataset and spent must be given together")
    if isinstance(parse_location(file), Server):
        file = make_server_ledger(file, charge_roles=charge_role, read_roles=read_role).url
    elif charge_role or read_role:
        raise InputError("charge_role", "must be left out: a file has no roles")
    ledger = Ledger(file)
    print_text(f"ledger: {ledger.path}")
    for role in charge_role:
        print_text(f"may charge: {role}")
    for role in read_role:
        print_text(f"may read: {role}")
    if dataset is not None and spent is not None:
        ledger.charge(dataset, Cost(spent, neighbors, "transfer by hand"), request_digest({"spent": spent}))
        print_text(f"{dataset}: {ledger.account(dataset).summary}")


ledger = Group(
    "ledger",
    commands=[list_, show, limit, export, init],
    help="Account for privacy budgets (list, show, limit, export), and begin ledgers (init).",
)
