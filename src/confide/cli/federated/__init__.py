"""`confide federated`: silos with files."""

from confide.cli.command import Group
from confide.cli.federated.coordinator import aggregate, list_answers, plan
from confide.cli.federated.silo import SiloRecords, answer, keygen, open_sum, own, policy, public, report

federated = Group(
    "federated",
    commands=[keygen, public, policy, plan, answer, list_answers, open_sum, aggregate, own, report],
    help="Calibrate across silos that never pool their data, by small signed files.\n\n"
    "Everybody: keygen, and public for another size. The coordinator: plan, then aggregate. Every silo: policy if it "
    "likes, answer, and if it likes own and report. Where silos may be missing from a sum, the coordinator "
    "lists the answers before it aggregates, and every silo opens. `confide show` reads every file before it is used. "
    "Only the private keys and the ledger stay secret.",
)
