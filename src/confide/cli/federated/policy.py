"""`confide federated policy`: what a silo agrees to, as a file."""

from pathlib import Path
from typing import Annotated

import typer

from confide.cli import options as o
from confide.cli.federated.arguments import Budget, public_files
from confide.cli.federated.rules import Allow, LeastColluding, Peers, made_policy
from confide.cli.federated.words import policy_rows
from confide.cli.output import say
from confide.cli.parameters import command
from confide.support import Kind, aligned


@command
def policy(
    *,
    coordinator: Annotated[Path, typer.Option(metavar="FILE", help="The coordinator's public file, compared by you.")],
    budget: Budget,
    per_plan: Annotated[
        float | None, typer.Option(help="Privacy loss that one answer may cost (default: the whole budget).", min=0)
    ] = None,
    peer: Peers = None,
    allow: Allow = None,
    least_colluding: LeastColluding = None,
    output: o.Output,
) -> None:
    r"""Write down what this silo agrees to: whom it answers, with what, for how much.

    The coordinator and the other silos are pinned by their identities, which
    the printed fingerprints show: compare them by another channel first. The
    file is used by `answer --policy`, and in Python by Policy.load.

    Example:

      confide federated policy --coordinator coordinator.json --peers public/ \
        --budget 4 --per-plan 2 --least-colluding 2 --out policy.json
    """
    output.check(Kind.POLICY, coordinator, *public_files(peer or ()))
    made = made_policy(coordinator, budget, per_plan, peer, allow, least_colluding)
    output.write(made.to_json(), "policy")
    say(aligned(policy_rows(made)))
