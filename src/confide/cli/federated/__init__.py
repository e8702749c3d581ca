"""`confide federated keygen | public | policy | plan | answer | aggregate | report`: silos that exchange files."""

import typer

from confide.cli.federated.aggregate import aggregate
from confide.cli.federated.answer import answer
from confide.cli.federated.arguments import SiloRecords
from confide.cli.federated.keys import keygen, public
from confide.cli.federated.plan import plan
from confide.cli.federated.policy import policy
from confide.cli.federated.report import report
from confide.cli.federated.show import shown
from confide.cli.help import Command, Group

__all__ = ["SiloRecords", "app", "shown"]

app = typer.Typer(
    name="federated",
    help="Calibrate across silos that never pool their data, by small signed files.\n\n"
    "Everybody: keygen, and public for another size. The coordinator: plan, then aggregate. Every silo: policy if it "
    "likes, answer, and if it likes report. `confide show` reads every file before it is used. Only the "
    "private keys and the ledger stay secret.",
    cls=Group,
    rich_markup_mode=None,
)

for one in (keygen, public, policy, plan, answer, aggregate, report):
    app.command(cls=Command)(one)
