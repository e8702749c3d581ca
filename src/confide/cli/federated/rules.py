"""What a silo agrees to: stated by options, or by a policy file that was made of the same options."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click
import typer

from confide.cli.federated.arguments import public_files, read_named, read_silo
from confide.errors import InputError
from confide.federated import DEFAULT_METHODS, METHODS, Policy, Refusal
from confide.support import read_text

_PEERS = "Of sums: public file of another silo, compared by you, or a folder of such files; repeat it."
_ALLOW = "Allow this method, too, beside private-qq and secure-sum; repeat it."
_COLLUDING = "Of sums: refuse plans that withstand fewer colluding silos (default: 1)."

Peers = Annotated[list[Path] | None, typer.Option("--peer", "--peers", metavar="PATH", help=_PEERS)]
Allow = Annotated[list[str] | None, typer.Option("--allow", click_type=click.Choice(METHODS), help=_ALLOW)]
LeastColluding = Annotated[int | None, typer.Option(metavar="SILOS", help=_COLLUDING, min=0)]


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The options of a silo that answers: a policy file, or what it would state."""

    policy: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A policy file, instead of --coordinator, --budget, --peer, --allow."),
    ] = None
    coordinator: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The coordinator's public file, compared by you.")
    ] = None
    budget: Annotated[
        float | None,
        typer.Option(help="Privacy loss that all releases about these records together may cost.", min=0),
    ] = None
    peer: Peers = None
    allow: Allow = None
    least_colluding: LeastColluding = None

    @property
    def files(self) -> list[Path]:
        """All that is read."""
        named = [one for one in (self.policy, self.coordinator) if one is not None]
        return [*named, *public_files(self.peer or ())]

    def agreed(self) -> Policy:
        """The policy."""
        stated = (self.coordinator, self.budget, self.peer or None, self.allow or None, self.least_colluding)
        if self.policy is not None:
            if any(one is not None for one in stated):
                raise click.UsageError(
                    "--policy states --coordinator, --budget, --peer, --allow and --least-colluding; leave these out"
                )
            return read_policy(self.policy)
        if self.coordinator is None or self.budget is None:
            raise click.UsageError("--coordinator and --budget are needed, or --policy that states both")
        return made_policy(self.coordinator, self.budget, None, self.peer, self.allow, self.least_colluding)


def made_policy(
    coordinator: Path,
    budget: float,
    per_plan: float | None,
    peers: Sequence[Path] | None,
    allow: Sequence[str] | None,
    least_colluding: int | None,
) -> Policy:
    """A policy of what options say; allowed methods are added to those of every policy."""
    return Policy(
        coordinator=read_silo(coordinator).identity,
        budget=budget,
        per_plan=budget if per_plan is None else per_plan,
        methods=tuple(dict.fromkeys((*DEFAULT_METHODS, *(allow or ())))),
        peers={silo.name: silo.identity for silo in read_named(peers or ())},
        least_colluding=1 if least_colluding is None else least_colluding,
    )


def read_policy(path: Path) -> Policy:
    """A policy file."""
    try:
        return Policy.from_json(read_text(path))
    except Refusal as refusal:
        raise InputError(f"file {str(path)!r} cannot be used: {refusal}") from None
