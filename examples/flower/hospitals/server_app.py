"""Runs at the coordinator: sends a signed plan, writes the calibration, or says who is missing."""

from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from confide.federated import SiloKeys
from confide.federated.flower import NotReleasedError, calibrate, wait_for_nodes

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Wait for the hospitals, ask each once, and aggregate what came back.

    `keys`, the coordinator's, sign the release; plans with dropouts of a sum need them, and ask each hospital twice.
    """
    config = context.run_config
    plan = Path(str(config["plan"])).read_text(encoding="utf-8")
    timeout = float(config["timeout"])
    nodes = wait_for_nodes(grid, int(config["nodes"]), timeout)
    keys = SiloKeys.load(str(config["keys"])) if config["keys"] else None
    try:
        released, asked = calibrate(grid, plan, nodes, timeout, keys=keys, keep=f"{config['out']}.list")
    except NotReleasedError as missing:
        print(missing)
        return
    print(f"{released}\n{asked}")
    Path(str(config["out"])).write_text(released.to_json(), encoding="utf-8")
    print(f"released: {config['out']}")
