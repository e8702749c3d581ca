"""A SuperLink and SuperNodes as separate processes on loopback; their release matches the messages of the silos."""

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

from confide import federated
from confide.core import Release
from confide.federated import SiloLedger
from tests.federated.helpers import Federation

pytest.importorskip("flwr", reason="needs the extra 'flower': pip install 'confide[flower]'")

from tests.docs.blocks import ROOT, blocks

APP = Path(__file__).parents[2] / "examples" / "flower"
BIN = Path(sys.executable).parent


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def stop_all_that_name(folder):
    """Kill processes that outlived their parents and name this test's folder."""
    for process in psutil.process_iter(["cmdline"]):
        with contextlib.suppress(psutil.Error):
            if str(folder) in " ".join(process.info["cmdline"] or []):
                process.kill()


CERTIFICATES = (
    "openssl ecparam -genkey -name prime256v1 -noout -out ca.key",
    "openssl req -x509 -new -key ca.key -sha256 -days 2 -subj /CN=test-ca -addext "
    "keyUsage=critical,keyCertSign,cRLSign -out ca.crt",
    "openssl ecparam -genkey -name prime256v1 -noout -out server.key",
    "openssl req -new -key server.key -subj /CN=localhost -out server.csr",
    "openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -sha256 "
    "-extfile san.cnf -extensions ext -out server.pem",
)


class Deployment:
    """Certificates, keys and processes, with TLS and node authentication; `stop` ends every process."""

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
        trust = f'root-certificates = "{folder}/ca.crt"'
        (home / "config.toml").write_text(
            f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "127.0.0.1:{self.port}"\n{trust}\n'
        )
        (folder / "san.cnf").write_text("[ext]\nsubjectAltName=DNS:localhost,IP:127.0.0.1\n")
        for command in CERTIFICATES:
            self.run(command.split())

    def run(self, command, check=True):
        done = subprocess.run(
            command, cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=180, check=False
        )
        assert done.returncode == 0 or not check, f"{command[:3]}: {done.stdout[-2000:]} {done.stderr[-2000:]}"
        return done

    def start(self, name, command):
        with (self.folder / f"{name}.log").open("w") as log:
            self.processes[name] = subprocess.Popen(
                command, cwd=self.folder, env=self.env, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def superlink(self):
        tls = "--ssl-ca-certfile ca.crt --ssl-certfile server.pem --ssl-keyfile server.key --enable-supernode-auth"
        command = f"--host 127.0.0.1 --port {self.port} --disable-runtime-dependency-installation --database state.db"
        self.start("superlink", [str(BIN / "flower-superlink"), *tls.split(), *command.split()])
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
        trust = f"--root-certificates ca.crt --auth-supernode-private-key {key}"
        command = f"{trust} --superlink 127.0.0.1:{self.port} --host 127.0.0.1 --port {free_port()}"
        config = ["--node-config", f'confide="{silo}"']
        self.start(key, [str(BIN / "flower-supernode"), *command.split(), *config])

    def serve(self, federation):
        """Start a SuperLink, and a SuperNode for every silo, with its own folder of scores, keys, policy and ledger."""
        self.superlink()
        for i, scores in enumerate(federation.scores):
            folder = self.folder / f"silo{i}"
            folder.mkdir()
            np.save(folder / "scores.npy", scores)
            federation.keys[i].save(folder / "keys.json")
            federation.policy.save(folder / "policy.json")
            federation.ledgers[i] = SiloLedger(folder / "budget.db")
            self.supernode(i, folder)

    def kill(self, name, how=signal.SIGKILL):
        """Kill the process that was started under this name, and all its descendants."""
        try:
            family = psutil.Process(self.processes[name].pid)
            family = [*family.children(recursive=True), family]
        except psutil.NoSuchProcess:
            return
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(how)
        if how == signal.SIGKILL:
            psutil.wait_procs(family[-1:], timeout=10)  # this process cannot reap the descendants

    def stop(self):
        for name, process in list(self.processes.items()):
            with contextlib.suppress(ProcessLookupError):  # started in a new session: its pid is the group's number
                group = process.pid
                self.kill(name)
                os.killpg(group, signal.SIGKILL)
            process.wait(10)
        stop_all_that_name(self.folder)

    def calibrate(self, plan, out, timeout=60):
        released, output = self.run_app(plan, out, timeout)
        assert released is not None, output[-5000:] + (self.folder / "superlink.log").read_text()[-2000:]
        return released, output

    def run_app(self, plan, out, timeout=60):
        (self.folder / "plan.json").write_text(plan)
        config = f'plan="{self.folder}/plan.json" out="{out}" nodes=5 timeout={timeout:.1f}'
        app = shutil.copytree(APP, self.folder / "app", dirs_exist_ok=True)
        done = self.run([str(BIN / "flwr"), "run", str(app), "--stream", "--run-config", config], check=False)
        return Release.from_json(out.read_text()) if out.exists() else None, done.stdout + done.stderr


NEEDS_TOOLS = pytest.mark.skipif(
    not all(shutil.which(tool) for tool in ("openssl", "ssh-keygen")), reason="needs openssl and ssh-keygen"
)


@pytest.fixture
def deployment(tmp_path):
    made = Deployment(tmp_path)
    try:
        yield made
    finally:
        made.stop()


def again_in_process(silos, plan):
    """Aggregate again in process; the silos' ledgers return the messages that they sent over Flower."""
    spent = [state.spent for state in silos.ledgers]
    released = federated.aggregate(plan, silos.answers(plan))
    assert [state.spent for state in silos.ledgers] == spent
    return released


@pytest.mark.long
@NEEDS_TOOLS
def test_five_silos_over_tls_with_one_killed_and_one_hanging(deployment, tmp_path):
    (tmp_path / "states").mkdir()
    five = Federation.uniform(tmp_path / "states", 200, 150, 120, 180, 160)
    deployment.serve(five)
    plan = five.plan()
    released, _ = deployment.calibrate(plan, tmp_path / "first.json")
    assert released.answered == tuple(f"silo {i}" for i in range(5))
    assert released.coverage >= 0.9
    assert again_in_process(five, plan) == released
    plan = five.plan(method="secure-sum", population="common")
    summed, _ = deployment.calibrate(plan, tmp_path / "second.json")
    assert len(summed.answered) == 5
    assert np.isfinite(summed.threshold)
    assert again_in_process(five, plan) == summed

    deployment.kill("node3")
    deployment.kill("node2", signal.SIGSTOP)  # it hangs: accepts nothing, sends nothing
    fewer, output = deployment.calibrate(five.plan(dropouts=2), tmp_path / "fourth.json", timeout=25)
    assert fewer.answered == ("silo 0", "silo 1", "silo 4")
    assert fewer.coverage >= 0.9
    assert json.loads((tmp_path / "fourth.json").read_text())["answered"] == ["silo 0", "silo 1", "silo 4"]
    assert "Traceback" not in output

    plan = five.plan(method="secure-sum", population="common")
    released, output = deployment.run_app(plan, tmp_path / "fifth.json", timeout=20)
    assert released is None
    assert "missing: nothing is released; no usable answer came from 'silo 2', 'silo 3'" in output
    assert "Traceback" not in output


@pytest.mark.long
@NEEDS_TOOLS
def test_the_page_on_deployment_as_it_stands(tmp_path):
    """Run all commands of the page in one shell and one folder, on free ports."""
    shutil.copytree(APP, tmp_path / "app")
    page = blocks(ROOT / "docs" / "howto" / "flower.md")
    typed = "".join(
        block.text for block in page if block.language == "bash" and "installs" not in block.markers["not run"]
    )
    for port in ("9443", "9101", "9102"):
        assert port in typed
        typed = typed.replace(port, str(free_port()))
    environment = os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    environment.pop("FLWR_HOME", None)
    stop = "trap 'kill $(jobs -p) 2> /dev/null' EXIT\nset -e\n"
    try:
        done = subprocess.run(
            ["bash", "-c", stop + typed], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        assert "2 of 2 silos answered" in done.stdout
        assert "Traceback" not in done.stdout + done.stderr
        released = Release.from_json((tmp_path / "released.json").read_text())
        assert released.answered == ("north", "south")
    finally:
        stop_all_that_name(tmp_path)
