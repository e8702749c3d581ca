"""`confide federated`: calibration across silos by files."""

from confide.cli.federated.coordinator import aggregate, list_answers, plan
from confide.cli.federated.silo import SiloRecords, answer, keygen, open_sum, own, policy, public
from confide.cli.help import Group

federated = Group(
    "federated",
    commands=[keygen, public, policy, plan, answer, list_answers, open_sum, aggregate, own],
    help="Calibrate across silos that never pool their data, by small signed files.\n\n"
    "All parties: keygen, and public for another size. The coordinator: plan, then aggregate. Every silo: answer, and "
    "optionally policy and own. If silos may be missing from a sum, the coordinator lists the answers before "
    "it aggregates, and every silo runs open. `confide show` prints every file before you use it. Only the private "
    "keys and the ledger are secret.",
)
