"""`confide federated`: silos with files."""

import typer

from confide.cli.federated.aggregate import aggregate
from confide.cli.federated.answer import answer
from confide.cli.federated.arguments import SiloRecords, read_silo
from confide.cli.federated.keys import keygen, public
from confide.cli.federated.list import list_answers
from confide.cli.federated.open import open_sum
from confide.cli.federated.own import own
from confide.cli.federated.plan import plan
from confide.cli.federated.policy import policy
from confide.cli.federated.report import report
from confide.cli.federated.show import Shown, shown
from confide.cli.help import Command, Group

__all__ = ["Shown", "SiloRecords", "app", "read_silo", "shown"]

app = typer.Typer(
    name="federated",
    help="Calibrate across silos that never pool their data, by small signed files.\n\n"
    "Everybody: keygen, and public for another size. The coordinator: plan, then aggregate. Every silo: policy if it "
    "likes, answer, and if it likes own and report. Where silos may be missing from a sum, the coordinator "
    "lists the answers before it aggregates, and every silo opens. `confide show` reads every file before it is used. "
    "Only the private keys and the ledger stay secret.",
    cls=Group,
    rich_markup_mode=None,
)

for one in (keygen, public, policy, plan, answer):
    app.command(cls=Command)(one)
app.command("list", cls=Command)(list_answers)
app.command("open", cls=Command)(open_sum)
for one in (aggregate, own, report):
    app.command(cls=Command)(one)
