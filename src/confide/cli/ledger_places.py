"""Where a ledger lies, on the command line: made on a server, moved, checked against what is remembered of it."""

from pathlib import Path
from typing import Annotated

import typer

from confide.cli import options as o
from confide.cli.output import check_output, emit, say
from confide.ledger import Ledger, check_head, file_of, make_server_ledger, move, place_of
from confide.support import Kind

ChargeRoles = Annotated[
    list[str] | None,
    typer.Option(
        "--charge-role",
        metavar="NAME",
        help="A role of the server that may charge, and never erase; repeat it. Made, without login, if it is new.",
    ),
]
ReadRoles = Annotated[
    list[str] | None,
    typer.Option("--read-role", metavar="NAME", help="A role that may read all but the ledger's key; repeat it."),
]


def init(
    server: Annotated[
        str, typer.Argument(metavar="SERVER", help="postgresql://OWNER@HOST/DB, a database that is the ledger's own.")
    ],
    charge_role: ChargeRoles = None,
    read_role: ReadRoles = None,
) -> None:
    """Make a ledger on a PostgreSQL server, or let more roles use it.

    The role of the address owns it and sets limits; jobs use a role of
    --charge-role. Passwords: in the file that PGPASSFILE names.

    Example:

      confide ledger init postgresql://dpo@db/budget --charge-role jobs
    """
    made = make_server_ledger(server, charge_roles=charge_role or (), read_roles=read_role or ())
    say(f"ledger: {made}")
    for role in charge_role or ():
        say(f"may charge: {role}")
    for role in read_role or ():
        say(f"may read: {role}")


def move_(
    source: Annotated[str, typer.Argument(metavar="FROM", help="A ledger: a file, or its owner's address.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="A new file, or postgresql://OWNER@HOST/DB.")],
    charge_role: ChargeRoles = None,
    read_role: ReadRoles = None,
) -> None:
    r"""Move a ledger, whole, to another place; the old one is closed.

    If it is interrupted, ask for the same again: it goes on, and there are
    never two ledgers that can be charged.

    Example:

      confide ledger move budget.db postgresql://dpo@db/budget \
        --charge-role jobs
    """
    records = move(source, target, charge_roles=charge_role or (), read_roles=read_role or ())
    say(f"moved {records:,} records from {place_of(source)} to {place_of(target)}; the old ledger is closed")


def report_(
    ledger: Annotated[str, typer.Argument(metavar="LEDGER", help="A file, or postgresql://ROLE@HOST/DB.")],
    *,
    dataset: Annotated[str | None, o.content("NAME", "Only this data set.")] = None,
    dp_delta: Annotated[
        float, o.content("DELTA", "Add up at this delta besides pure epsilon; 0 for none.", "--dp-delta")
    ] = 1e-6,
    without_names: Annotated[bool, o.content(None, "Leave out who charged.", "--without-names")] = False,
    title: Annotated[str | None, o.content("TEXT", "Heading of the page.")] = None,
    output: o.Output,
) -> None:
    """Write a page for those who answer for privacy: what was spent by whom.

    What was spent on what and when, what is left, what is planned, and what
    everything costs together by each rule. One HTML file that loads nothing.

    Example:

      confide ledger report budget.db --out budget.html
    """
    from confide.reports import ledger_page

    output.check(Kind.PAGE, file_of(ledger))
    opened = Ledger(ledger, create=False)
    page = ledger_page(opened, dataset=dataset, dp_delta=dp_delta, who=not without_names, title=title)
    output.write(page.html)


def check(
    ledger: Annotated[str, typer.Argument(metavar="LEDGER", help="A file, or postgresql://ROLE@HOST/DB.")],
    head: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Remembers the last record, and refuses a ledger without it.")
    ] = None,
    as_json: o.AsJson = False,
) -> None:
    """Check every seal of a ledger, and whether it still has what it had.

    A backup that was put back has forgotten charges and shows nothing of it.
    With --head, a small file on another machine, that is found.

    Example:

      confide ledger check budget.db --head head.json
    """
    check_output(head, Kind.HEAD, file_of(ledger), force=True)
    opened = Ledger(ledger, create=False)
    found = opened.snapshot()
    number, seal = len(found.seals), found.seals[-1] if found.seals else ""
    if head is not None:
        number, seal = check_head(opened, head)
    if as_json:
        emit({"records": number, "seal": seal, "moved_to": found.moved_to})
        return
    say(f"{number:,} records, every seal is right{f'; the last is {seal}' if seal else ''}")
    if found.moved_to is not None:
        say(f"moved to {found.moved_to}")
