"""`confide ledger`: commands about privacy budgets and their storage."""

import json
from typing import Any

from confide.cli.command import command
from confide.cli.help import Group
from confide.cli.output import capture_warnings, print_result, print_text
from confide.cli.values import OptionalOutput, Output
from confide.ledger import Ledger, account_as_json, file_of, make_server_ledger
from confide.mechanisms import Neighbors
from confide.support import FileKind


@command("ledger list")
def list_(*, file: str, as_json: bool = False) -> None:
    """List the data sets with the budget spent and left.

    Example: confide ledger list budget.db
    """
    found = Ledger(file, create=False).snapshot()
    accounts = found.accounts
    rows = [{k: v for k, v in account_as_json(a).items() if k != "entries"} for a in accounts.values()]
    datasets = [row | {"releases": len(a.entries)} for row, a in zip(rows, accounts.values(), strict=True)]
    print_result(lambda: {"datasets": datasets}, found, as_json=as_json)


@command("ledger show")
def show(*, file: str, dataset: str, dp_delta: float = 0.0, as_json: bool = False) -> None:
    """Show every charge of a data set, their total, and its derivation.

    Example: confide ledger show budget.db patients --dp-delta 1e-6
    """
    account = Ledger(file, create=False).account(dataset)
    loss = account.spent(dp_delta)
    together = [vars(bound) for bound in loss.bounds]
    print_result(lambda: account_as_json(account) | {"together": together}, account.describe(dp_delta), as_json=as_json)


@command("ledger limit")
def limit(
    *,
    file: str,
    dataset: str,
    epsilon: float | None = None,
    dp_delta: float = 0.0,
    neighbors: Neighbors = "add_remove",
    as_json: bool = False,
) -> None:
    """Set or remove the limit of a data set; create the ledger if it does not exist.

    Example: confide ledger limit budget.db patients 2.0
    """
    new_limit = None if epsilon is None else (epsilon, dp_delta)
    with capture_warnings() as said:
        account = Ledger(file).set_limit(dataset, new_limit, neighbors=neighbors)
    said.warn()
    print_result(lambda: account_as_json(account), f"{account.dataset}: {account.summary}", as_json=as_json)


@command("ledger export")
def export(*, file: str, output: OptionalOutput) -> None:
    """Write the contents of a ledger as one JSON document.

    Example: confide ledger export budget.db --out budget.json
    """
    output.check(FileKind.EXPORT, file_of(file))
    document: dict[str, Any] = Ledger(file, create=False).export()
    output.write(json.dumps(document, indent=2, allow_nan=False) + "\n")
    print_result(lambda: document, output.saved(), as_json=output.out is None)


@command("ledger report")
def report(
    *,
    file: str,
    dataset: str | None = None,
    dp_delta: float = 1e-6,
    without_names: bool = False,
    title: str | None = None,
    output: Output,
) -> None:
    """Write a page for privacy officers about the budget spent.

    It lists the charges with their times and accounts, the budget left, and
    the total by each rule. One HTML file that loads nothing.

    Example:

      confide ledger report budget.db --out budget.html
    """
    from confide.reports import ledger_page

    output.check(FileKind.PAGE, file_of(file))
    opened = Ledger(file, create=False)
    page = ledger_page(opened, dataset=dataset, dp_delta=dp_delta, who=not without_names, title=title)
    output.save(page.html)


@command("ledger init")
def init(*, server: str, charge_role: tuple[str, ...] = (), read_role: tuple[str, ...] = ()) -> None:
    """Create a ledger on a PostgreSQL server, or let more roles use it.

    The role of the address owns it and sets limits; jobs use a role of
    --charge-role. Put passwords into the file that PGPASSFILE names.

    Example:

      confide ledger init postgresql://dpo@db/budget --charge-role jobs
    """
    made = make_server_ledger(server, charge_roles=charge_role, read_roles=read_role)
    print_text(f"ledger: {made}")
    for role in charge_role:
        print_text(f"may charge: {role}")
    for role in read_role:
        print_text(f"may read: {role}")


@command("ledger check")
def check(*, file: str, as_json: bool = False) -> None:
    """Check every hash of a ledger, and print the number and the last hash.

    A restored backup lacks charges, and does not show it: it has fewer records
    than an earlier check printed, or another hash.

    Example: confide ledger check budget.db
    """
    hashes = Ledger(file, create=False).hashes()
    number, seal = len(hashes), hashes[-1] if hashes else ""
    right = f"{number:,} records, every hash is correct{f'; the last is {seal}' if seal else ''}"
    print_result(lambda: {"records": number, "seal": seal}, right, as_json=as_json)


ledger = Group(
    "ledger",
    commands=[list_, show, limit, export, report, init, check],
    help="Account for privacy budgets (list, show, limit, export, report), and manage ledgers (init, check).",
)
