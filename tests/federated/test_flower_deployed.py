"""A SuperLink and four SuperNodes as separate processes, TLS and node authentication on loopback."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from confide.calibration import Calibration
from tests.federated.helpers import Federation

pytest.importorskip("flwr", reason="needs the extra 'flower': pip install 'confide[flower]'")
APP = Path(__file__).parents[2] / "examples" / "flower"
BIN = Path(sys.executable).parent

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not all(shutil.which(tool) for tool in ("openssl", "ssh-keygen")), reason="needs openssl and ssh-keygen"
    ),
]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Deployment:
    """Certificates, keys and processes; everything that it started is gone after `stop`."""

    def __init__(self, folder):
        self.folder, self.port, self.processes = folder, free_port(), {}
        home = folder / "home"
        home.mkdir()
        self.env = os.environ | {
            "FLWR_HOME": str(home),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        }
        (home / "config.toml").write_text(
            f'[superlink]\ndefault = "tls"\n[superlink.tls]\naddress = "127.0.0.1:{self.port}"\n'
            f'root-certificates = "{folder}/ca.crt"\n'
        )
        (folder / "san.cnf").write_text("[ext]\nsubjectAltName=DNS:localhost,IP:127.0.0.1\n")
        for command in (
            "openssl ecparam -genkey -name prime256v1 -noout -out ca.key",
            "openssl req -x509 -new -key ca.key -sha256 -days 2 -subj /CN=test-ca -addext "
            "keyUsage=critical,keyCertSign,cRLSign -out ca.crt",
            "openssl ecparam -genkey -name prime256v1 -noout -out server.key",
            "openssl req -new -key server.key -subj /CN=localhost -out server.csr",
            "openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -sha256 "
            "-extfile san.cnf -extensions ext -out server.pem",
        ):
            self.run(command.split())

    def run(self, command, check=True, timeout=180):
        done = subprocess.run(
            command, cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=timeout, check=False
        )
        assert done.returncode == 0 or not check, f"{command[:3]}: {done.stdout[-2000:]} {done.stderr[-2000:]}"
        return done

    def start(self, name, command):
        with (self.folder / f"{name}.log").open("w") as log:
            self.processes[name] = subprocess.Popen(
                command, cwd=self.folder, env=self.env, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def superlink(self):
        command = f"flower-superlink --ssl-ca-certfile ca.crt --ssl-certfile server.pem --ssl-keyfile server.key \
            --enable-supernode-auth --host 127.0.0.1 --port {self.port} --disable-runtime-dependency-installation \
            --database state.db"
        self.start("superlink", [str(BIN / "flower-superlink"), *command.split()[1:]])
        end = time.monotonic() + 90
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.3)
        raise AssertionError((self.folder / "superlink.log").read_text()[-2000:])

    def supernode(self, i, silo):
        key = f"node{i}"
        self.run(["ssh-keygen", "-q", "-t", "ecdsa", "-b", "384", "-N", "", "-C", "", "-f", key])
        self.run([str(BIN / "flwr"), "supernode", "register", f"{key}.pub", "--name", f"hospital{i}"])
        command = f"--root-certificates ca.crt --superlink 127.0.0.1:{self.port} --auth-supernode-private-key {key} \
            --host 127.0.0.1 --port {free_port()}"
        config = ["--node-config", f'confide="{silo}"']
        self.start(key, [str(BIN / "flower-supernode"), *command.split(), *config])

    def kill(self, name, how=signal.SIGKILL):
        """The process that was started under this name, and all its descendants."""
        try:
            family = psutil.Process(self.processes[name].pid)
            family = [*family.children(recursive=True), family]
        except psutil.NoSuchProcess:
            return
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(how)
        if how == signal.SIGKILL:
            psutil.wait_procs(family, timeout=10)

    def stop(self):
        for name, process in list(self.processes.items()):
            with contextlib.suppress(ProcessLookupError):  # a new session: its number is the group's
                group = process.pid
                self.kill(name)
                os.killpg(group, signal.SIGKILL)
            process.wait(10)

    def calibrate(self, plan, out, nodes=4, timeout=60):
        (self.folder / "plan.json").write_text(plan)
        config = f'plan="{self.folder}/plan.json" out="{out}" nodes={nodes} timeout={timeout:.1f}'
        done = self.run([str(BIN / "flwr"), "run", str(self.app()), "--stream", "--run-config", config], check=False)
        assert out.exists(), (
            done.stdout[-3000:] + done.stderr[-2000:] + (self.folder / "superlink.log").read_text()[-2000:]
        )
        return Calibration.from_json(out.read_text()), done.stdout

    def app(self):
        copy = self.folder / "app"
        if not copy.exists():
            shutil.copytree(APP, copy)
        return copy


@pytest.fixture
def deployment(tmp_path):
    made = Deployment(tmp_path)
    try:
        yield made
    finally:
        made.stop()
        for process in psutil.process_iter(["cmdline"]):
            with contextlib.suppress(psutil.Error):
                if str(tmp_path) in " ".join(process.info["cmdline"] or []):
                    process.kill()  # a helper that left its parent; it names this test's own folder


def test_four_hospitals_over_tls_with_one_killed_and_one_hanging(deployment, tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "states").mkdir()
    four = Federation(tmp_path / "states", [rng.random(n) for n in (200, 150, 120, 180)])
    for i in range(4):
        folder = tmp_path / f"silo{i}"
        folder.mkdir()
        np.save(folder / "scores.npy", four.scores[i])
        four.keys[i].save(folder / "keys.json")
        four.policy.save(folder / "policy.json")
    deployment.superlink()
    for i in range(4):
        deployment.supernode(i, tmp_path / f"silo{i}")

    released, _ = deployment.calibrate(four.plan(), tmp_path / "first.json")
    assert released.answered == ("silo 0", "silo 1", "silo 2", "silo 3")
    assert released.coverage >= 0.9
    summed, _ = deployment.calibrate(four.plan(method="secure-sum", population="common"), tmp_path / "second.json")
    assert len(summed.answered) == 4
    assert np.isfinite(summed.threshold)

    deployment.kill("node3")
    deployment.kill("node2", signal.SIGSTOP)  # hangs: accepts nothing, says nothing
    fewer, output = deployment.calibrate(four.plan(dropouts=2), tmp_path / "third.json", timeout=25)
    assert fewer.answered == ("silo 0", "silo 1")
    assert fewer.coverage >= 0.9
    assert json.loads((tmp_path / "third.json").read_text())["answered"] == ["silo 0", "silo 1"]
    assert "Traceback" not in output
