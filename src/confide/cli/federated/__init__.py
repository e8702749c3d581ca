"""`confide federated keygen | plan | answer | aggregate | report`: silos that exchange small signed files."""

import typer

from confide.cli.federated.aggregate import aggregate
from confide.cli.federated.answer import answer
from confide.cli.federated.arguments import SiloBudget
from confide.cli.federated.keys import keygen
from confide.cli.federated.plan import plan
from confide.cli.federated.report import report
from confide.cli.help import Command, Group

__all__ = ["SiloBudget", "app"]

app = typer.Typer(
    name="federated",
    help="Calibrate across silos that never pool their data, by small signed files.\n\n"
    "Everybody: keygen. The coordinator: plan, then aggregate. Every silo: answer, and if it likes report. Only the "
    "private keys and the ledger stay secret.",
    cls=Group,
    rich_markup_mode=None,
)

for one in (keygen, plan, answer, aggregate, report):
    app.command(cls=Command)(one)
