"""Runs in every hospital. All paths come from the hospital's own --node-config, none from a request."""

from pathlib import Path

import numpy as np
from flwr.app import Context
from flwr.clientapp import ClientApp

from confide.federated import Policy, SiloKeys, SiloLedger
from confide.federated.flower import SiloSetup, register

app = ClientApp()


def setup(context: Context) -> SiloSetup:
    """Scores, keys, policy and memory of this hospital, from the folder that its node configuration names."""
    folder = Path(str(context.node_config["confide"]))
    return SiloSetup(
        scores=np.load(folder / "scores.npy", allow_pickle=False),
        keys=SiloKeys.load(folder / "keys.json"),
        policy=Policy.load(folder / "policy.json"),
        ledger=SiloLedger(folder / "budget.db"),
    )


register(app, setup)
