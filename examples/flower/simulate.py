"""A federation of hospitals on this machine, from keys to a result: `python simulate.py FOLDER`.

Creates the folder with keys, policies and made-up scores of four hospitals, `silo-0` to `silo-3`, and a signed plan,
and runs this app with Flower's simulation engine. If it is run again, the hospitals return their earlier answers at no
cost.
"""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from confide import federated
from confide.federated.flower import SILOS

APP = Path(__file__).parent
HOSPITALS = 4
QUIET = ("FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION", "FLWR_DISABLE_UPDATE_CHECK")


def make(folder: Path, hospitals: int = HOSPITALS, records: int = 300) -> None:
    """Create the files of hospitals and coordinator: keys, scores, policies, and one signed plan."""
    coordinator = federated.SiloKeys.generate("coordinator")
    keys = [federated.SiloKeys.generate(f"hospital {i}") for i in range(hospitals)]
    for i, own in enumerate(keys):
        silo = folder / f"silo-{i}"
        silo.mkdir(parents=True)
        own.save(silo / "keys.json")
        np.save(silo / "scores.npy", np.random.default_rng(i).random(records))  # nonconformity scores of its records
        federated.Policy(coordinator.public().signing, budget=4.0, per_plan=2.0).save(silo / "policy.json")
    silos = [own.public(records) for own in keys]
    plan = federated.plan(silos, alpha=0.1, epsilon=2.0, method="private-qq", score="lac", dropouts=1)
    (folder / "plan.json").write_text(plan.sign(coordinator), encoding="utf-8")


def run(folder: Path, timeout: float = 60.0) -> Path:
    """Start a SuperLink with the simulation engine, run the app over the folder's silos, and stop it again.

    Returns
    -------
    Path
        Of the released calibration.

    Raises
    ------
    SystemExit
        If there is no release.
    """
    out, home = folder / "released.json", folder / "flower"
    out.unlink(missing_ok=True)
    home.mkdir(exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (home / "config.toml").write_text(
        f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "127.0.0.1:{port}"\ninsecure = true\n'
    )
    own = {SILOS: str(folder), "FLWR_HOME": str(home), "FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    environment = os.environ | own | dict.fromkeys(QUIET, "1")
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    silos = sum((silo / "keys.json").exists() for silo in folder.glob("silo-*"))
    config = f'plan="{folder / "plan.json"}" out="{out}" nodes={silos} timeout={timeout}'
    link = ["flower-superlink", "--simulation", "--insecure", "--isolation", "subprocess", "--host", "127.0.0.1"]
    app = ["flwr", "run", str(APP), "here", "--stream", "--run-config", config]
    size = f"num-supernodes={silos} client-resources-num-cpus=1"
    with subprocess.Popen(
        [*link, "--port", str(port), "--log-file", str(home / "superlink.log")],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as superlink:
        try:
            wait_until_open(port)
            subprocess.run([*app, "--federation-config", size], env=environment, check=True)
        finally:
            superlink.terminate()
    if not out.exists():
        sys.exit(f"nothing was released: see above, and {home / 'superlink.log'}")
    return out


def wait_until_open(port: int, seconds: float = 60.0) -> None:
    """Wait until a process listens at a port of this machine."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    sys.exit("the SuperLink did not start")


if __name__ == "__main__":
    chosen = Path(sys.argv[1] if len(sys.argv) > 1 else "simulation").absolute()
    if not (chosen / "plan.json").exists():
        make(chosen)
    print(f"released: {run(chosen)}")
