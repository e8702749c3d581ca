"""Flower as separate processes on loopback: a SuperLink and SuperNodes, with or without TLS and node authentication."""

import contextlib
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

from confide.core import Release
from confide.federated import SiloLedger

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
    """Certificates, keys and processes; `stop` ends every process that was started.

    With `secure`, TLS and node authentication are on, as in a real deployment. Without it the start takes less time.
    """

    def __init__(self, folder, *, secure):
        self.folder, self.secure, self.port, self.processes = folder, secure, free_port(), {}
        home = folder / "home"
        home.mkdir()
        self.env = os.environ | {
            "FLWR_HOME": str(home),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        }
        trust = f'root-certificates = "{folder}/ca.crt"' if secure else "insecure = true"
        (home / "config.toml").write_text(
            f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "127.0.0.1:{self.port}"\n{trust}\n'
        )
        if secure:
            (folder / "san.cnf").write_text("[ext]\nsubjectAltName=DNS:localhost,IP:127.0.0.1\n")
            for command in CERTIFICATES:
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
        tls = "--ssl-ca-certfile ca.crt --ssl-certfile server.pem --ssl-keyfile server.key --enable-supernode-auth"
        command = f"--host 127.0.0.1 --port {self.port} --disable-runtime-dependency-installation --database state.db"
        trust = tls if self.secure else "--insecure"
        self.start("superlink", [str(BIN / "flower-superlink"), *trust.split(), *command.split()])
        end = time.monotonic() + 90
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.3)
        raise AssertionError((self.folder / "superlink.log").read_text()[-2000:])

    def supernode(self, i, silo):
        key, trust = f"node{i}", "--insecure"
        if self.secure:
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

    def calibrate(self, plan, out, nodes, timeout=60, keys=None):
        released, output = self.run_app(plan, out, nodes, timeout, keys)
        assert released is not None, output[-5000:] + (self.folder / "superlink.log").read_text()[-2000:]
        return released, output

    def run_app(self, plan, out, nodes, timeout=60, keys=None):
        (self.folder / "plan.json").write_text(plan)
        config = f'plan="{self.folder}/plan.json" out="{out}" nodes={nodes} timeout={timeout:.1f}'
        if keys is not None:
            keys.save(self.folder / "coordinator.json")
            config += f' keys="{self.folder}/coordinator.json"'
        done = self.run([str(BIN / "flwr"), "run", str(self.app()), "--stream", "--run-config", config], check=False)
        return Release.from_json(out.read_text()) if out.exists() else None, done.stdout + done.stderr

    def app(self):
        copy = self.folder / "app"
        if not copy.exists():
            shutil.copytree(APP, copy)
        return copy
