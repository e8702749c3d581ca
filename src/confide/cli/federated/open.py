"""`confide federated open`: what a silo says of the shares that it holds."""

from pathlib import Path
from typing import Annotated

import click
import typer

from confide.cli import options as o
from confide.cli.federated.arguments import Keys, PlanFile, SiloLedgerPlace, read_silo
from confide.cli.federated.rules import read_policy
from confide.cli.output import say
from confide.cli.parameters import command
from confide.federated import Policy, SiloKeys, SiloLedger, open_part
from confide.ledger import file_of
from confide.support import Kind, read_text


@command
def open_sum(
    opening: Annotated[Path, typer.Argument(metavar="OPENING", help="What the coordinator sent to this silo.")],
    *,
    plan: PlanFile,
    keys: Keys,
    coordinator: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The coordinator's public file, compared by you.")
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A policy file, instead of --coordinator.")
    ] = None,
    ledger: SiloLedgerPlace,
    output: o.Output,
) -> None:
    r"""Help to open the sum of the answers on a list: one small signed file.

    It needs no records and costs nothing: the sum is what the silos on the list
    have paid for. The ledger remembers the list; no other one of this session
    is opened. Asked again, the same part is written again.

    Example:

      confide federated open openings/north.json --plan plan.json \
        --keys north.key --coordinator coordinator.json \
        --ledger north.db --out north-part.json
    """
    output.check(Kind.PART, opening, plan, keys, coordinator, policy, file_of(ledger))
    part = open_part(
        read_text(plan), read_text(opening), SiloKeys.load(keys), _whose(coordinator, policy), SiloLedger(ledger)
    )
    output.write(part, "part")
    say("nothing was charged")


def _whose(coordinator: Path | None, policy: Path | None) -> Policy:
    """Whom to help; nothing else of a policy is asked, for nothing is paid."""
    if (coordinator is None) == (policy is None):
        raise click.UsageError("--coordinator is needed, or --policy that states it, and not both")
    if policy is not None:
        return read_policy(policy)
    assert coordinator is not None
    return Policy(read_silo(coordinator).identity, budget=1.0, per_plan=1.0)
