"""Client of a hospital. All paths come from the hospital's own --node-config, none from a request."""

from flwr.app import Context
from flwr.clientapp import ClientApp

from confide.federated.flower import SiloSetup, register, silo_folder

app = ClientApp()


def setup(context: Context) -> SiloSetup:
    """Scores, keys, policy and ledger of this hospital, from the folder that its node configuration names."""
    return SiloSetup.load(silo_folder(context))


register(app, setup)
