"""Runs at the coordinator: sends a signed plan, writes the calibration, or says who is missing."""

from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from confide.federated.flower import NotReleasedError, calibrate, wait_for_nodes

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """One round: wait for the hospitals, ask once, aggregate what came back."""
    config = context.run_config
    plan = Path(str(config["plan"])).read_text(encoding="utf-8")
    timeout = float(config["timeout"])
    nodes = wait_for_nodes(grid, int(config["nodes"]), timeout)
    try:
        released, asked = calibrate(grid, plan, nodes, timeout)
    except NotReleasedError as missing:
        print(missing)
        return
    print(f"{released}\n{asked}")
    Path(str(config["out"])).write_text(released.to_json(), encoding="utf-8")
    print(f"released: {config['out']}")
