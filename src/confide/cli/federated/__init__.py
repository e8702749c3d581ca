"""`confide federated`: calibration across silos by files."""

from confide.cli.federated.coordinator import aggregate, plan
from confide.cli.federated.silo import SiloRecords, answer, keygen, own, policy, public
from confide.cli.help import Group

federated = Group(
    "federated",
    commands=[keygen, public, policy, plan, answer, aggregate, own],
    help="Calibrate across silos that never pool their data, by small signed files.\n\n"
    "All parties: keygen, and public for another size. The coordinator: plan, then aggregate. Every silo: answer, and "
    "optionally policy and own. `confide show` prints every file before you use it. Only the private keys and the "
    "ledger are secret.",
)
