"""Commands about privacy budgets and their storage: `confide ledger`."""

import json
import os
from typing import Any

import click

from confide.cli.commands import LedgerExport, LedgerInit, LedgerLimit, LedgerList, LedgerShow
from confide.cli.options import DEFAULT_LEDGER
from confide.cli.output import capture_warnings, print_result, print_text
from confide.errors import InputError
from confide.ledger import Cost, Ledger, Server, file_of, make_server_ledger, parse_location, request_digest
from confide.support import FileKind, require


def _named_ledger(file: str | None) -> str:
    if not (named := file or os.environ.get(DEFAULT_LEDGER)):
        raise click.UsageError(f"name a ledger, here or in the environment variable {DEFAULT_LEDGER}")
    return named


def list_(options: LedgerList) -> None:
    """List the data sets."""
    accounts = Ledger(_named_ledger(options.file), create=False).accounts().values()
    rows = [account.as_json(entries=False) | {"releases": len(account.entries)} for account in accounts]
    lines = [f"{account.dataset}: {account.summary}" for account in accounts]
    print_result({"datasets": rows}, "\n".join(lines) or "no data sets", as_json=options.as_json)


def show(options: LedgerShow) -> None:
    """Show a data set, or write a page."""
    # Without a ledger the first argument is the data set.
    output = options.output
    names_ledger = options.dataset is not None or not os.environ.get(DEFAULT_LEDGER)
    place = _named_ledger(options.file if names_ledger else None)
    dataset = options.dataset if names_ledger else options.file
    output.check(FileKind.PAGE, file_of(place))
    ledger = Ledger(place, create=False)

    # A page, about one data set or all.
    if output.out is not None:
        from confide.reports import ledger_page

        page = ledger_page(
            ledger, dataset=dataset, dp_delta=options.dp_delta, who=not options.without_names, title=options.title
        )
        output.write(page.html)
        print_text(output.saved())
        return

    # A text, about one data set.
    if dataset is None:
        raise click.UsageError("name a data set, or an output file for a page about all")
    account = ledger.account(dataset)
    together = [vars(bound) for bound in account.spent(options.dp_delta).bounds]
    document = account.as_json() | {"together": together}
    print_result(document, account.describe(options.dp_delta), as_json=options.as_json)


def limit(options: LedgerLimit) -> None:
    """Set or remove a limit."""
    # With a default ledger, one or two arguments are the data set and the limit.
    place = options.file
    dataset = options.dataset
    epsilon = options.epsilon
    if dataset is None or (os.environ.get(DEFAULT_LEDGER) and epsilon is None):
        place = _named_ledger(None)
        dataset = options.file
        epsilon = _number(options.dataset)

    # An epsilon sets the limit; without one it is removed from a ledger that exists.
    new_limit = None if epsilon is None else (epsilon, options.dp_delta)
    with capture_warnings() as captured:
        ledger = Ledger(place, create=new_limit is not None)
        account = ledger.set_limit(dataset, new_limit, neighbors=options.neighbors)
    captured.warn()
    print_result(account.as_json(), f"{account.dataset}: {account.summary}", as_json=options.as_json)


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        must = f"{text!r} is no number: with {DEFAULT_LEDGER} set, two arguments are a data set and its limit"
        raise click.UsageError(must) from None


def export(options: LedgerExport) -> None:
    """Write or print the contents."""
    place = _named_ledger(options.file)
    output = options.output
    output.check(FileKind.EXPORT, file_of(place))
    document: dict[str, Any] = Ledger(place, create=False).export()
    output.write(json.dumps(document, indent=2, allow_nan=False) + "\n")
    print_result(document, output.saved(), as_json=output.out is None)


def init(options: LedgerInit) -> None:
    """Create a ledger, and enter what was spent before."""
    # A file, or the tables and roles of a server.
    file = options.file
    is_whole = (options.dataset is None) == (options.spent is None)
    require("spent", is_whole, "dataset and spent must be given together")
    if isinstance(parse_location(file), Server):
        file = make_server_ledger(file, charge_roles=options.charge_role, read_roles=options.read_role).url
    elif options.charge_role or options.read_role:
        raise InputError("charge_role", "must be left out: a file has no roles")
    ledger = Ledger(file)
    print_text(f"ledger: {ledger.path}")
    for right, roles in (("may charge", options.charge_role), ("may read", options.read_role)):
        print_text(*(f"{right}: {role}" for role in roles))

    # What was spent before enters as one charge.
    if options.dataset is not None and options.spent is not None:
        cost = Cost(options.spent, options.neighbors, "transfer by hand")
        ledger.charge(options.dataset, cost, request_digest({"spent": options.spent}))
        print_text(f"{options.dataset}: {ledger.account(options.dataset).summary}")
