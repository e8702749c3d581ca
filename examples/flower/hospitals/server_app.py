"""Server of the coordinator: sends a signed plan, then writes the calibration or names the missing hospitals."""

from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from confide.federated import SiloKeys
from confide.federated.flower import NotReleasedError, calibrate, wait_for_nodes

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Wait for the hospitals, send each one request, and aggregate the answers.

    The coordinator's `keys` sign the release.
    """
    config = context.run_config
    plan = Path(str(config["plan"])).read_text(encoding="utf-8")
    timeout = float(config["timeout"])
    nodes = wait_for_nodes(grid, int(config["nodes"]), timeout)
    keys = SiloKeys.load(str(config["keys"])) if config["keys"] else None
    try:
        released, summary = calibrate(grid, plan, nodes, timeout, keys=keys)
    except NotReleasedError as missing:
        print(missing)
        return
    print(f"{released}\n{summary}")
    Path(str(config["out"])).write_text(released.to_json(), encoding="utf-8")
    print(f"released: {config['out']}")
