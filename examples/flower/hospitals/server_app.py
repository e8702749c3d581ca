"""Runs at the coordinator: sends a signed plan, writes the calibration."""

from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from confide.federated.flower import calibrate, wait_for_nodes

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """One round: wait for the hospitals, ask once, aggregate what came back."""
    config = context.run_config
    plan = Path(str(config["plan"])).read_text(encoding="utf-8")
    timeout = float(config["timeout"])
    nodes = wait_for_nodes(grid, int(config["nodes"]), timeout)
    released, asked = calibrate(grid, plan, nodes, timeout)
    print(f"{released}\nrefused: {asked.refused}, errors: {asked.errors}, silent: {asked.silent}")
    Path(str(config["out"])).write_text(released.to_json(), encoding="utf-8")
