"""A real standalone Spark cluster on loopback: a master and workers, each a separate Java process."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import pytest

_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_SECONDS = 120.0
_DEFAULTS = """
spark.ui.enabled false
spark.ui.showConsoleProgress false
spark.driver.host 127.0.0.1
spark.driver.bindAddress 127.0.0.1
spark.driver.memory 512m
spark.executor.memory 512m
spark.sql.shuffle.partitions 2
spark.driver.extraJavaOptions {java}
spark.executor.extraJavaOptions {java}
"""
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # short-lived processes


def needs_spark() -> None:
    """Skip if Spark cannot run."""
    if find_spec("pyspark") is None:
        pytest.skip("needs pyspark: install the extra spark")
    if shutil.which("java") is None:
        pytest.skip("needs Java 17 or newer on the PATH (Debian: openjdk-17-jre-headless)")


@dataclass
class Cluster:
    """A master and its workers."""

    url: str
    folder: Path
    workers: list[subprocess.Popen] = field(default_factory=list)

    def add_workers(self, number: int) -> None:
        """Start workers of one core each, and wait until they are registered with the master."""
        started = [self._add_worker() for _ in range(number)]
        for process, log in started:
            await_log(process, log, r"Successfully registered with master")

    def _add_worker(self) -> tuple[subprocess.Popen, Path]:
        log = self.folder / f"worker{len(self.workers)}.log"
        work = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0", "--cores", "1", "--memory", "600m"]
        process = start(_WORKER, [self.url, *work, "--work-dir", str(self.folder / "work")], log)
        self.workers.append(process)
        return process, log

    def kill_worker(self) -> None:
        """SIGKILL the oldest living worker together with its executor, as if a machine were lost."""
        next_one = next(process for process in self.workers if process.poll() is None)
        kill(next_one)

    @property
    def alive(self) -> int:
        """The number of living workers."""
        return sum(process.poll() is None for process in self.workers)


@contextmanager
def standalone_cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """Start a cluster and point this process's Spark to its settings; kill everything at the end."""
    needs_spark()
    (folder / "spark-defaults.conf").write_text(_DEFAULTS.format(java=_JAVA))
    with environment(folder):
        log = folder / "master.log"
        master = start(_MASTER, ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"], log)
        cluster = None
        try:
            cluster = Cluster(await_log(master, log, r"Starting Spark master at (spark://\S+)")[1], folder)
            cluster.add_workers(workers)
            yield cluster
        finally:
            for process in [*(cluster.workers if cluster else []), master]:
                kill(process)


@contextmanager
def environment(folder: Path) -> Iterator[None]:
    """The settings of this folder, and this Python, for processes of Spark that are started in the block."""
    ours = {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_CONF_DIR": str(folder),
        "SPARK_DAEMON_MEMORY": "600m",
        "SPARK_DAEMON_JAVA_OPTS": _JAVA,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_HOME": str(Path(find_spec("pyspark").origin).parent),
    }
    before = {name: os.environ.get(name) for name in ours}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def start(program: str, arguments: list[str], log: Path) -> subprocess.Popen:
    """A Java process of Spark that writes a log."""
    launcher = Path(os.environ["SPARK_HOME"]) / "bin" / "spark-class"
    with log.open("w") as stream:  # a separate process group, so that a worker's executor is killed with it
        return subprocess.Popen(
            [str(launcher), program, *arguments], stdout=stream, stderr=stream, start_new_session=True
        )


def await_log(process: subprocess.Popen, log: Path, pattern: str) -> re.Match[str]:
    """The first match of a pattern in the log of a process."""
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end:
        found = re.search(pattern, log.read_text())
        if found:
            return found
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise RuntimeError(f"{log.name} shows no {pattern!r}:\n{log.read_text()[-2000:]}")


def kill(process: subprocess.Popen) -> None:
    """SIGKILL a process and those that it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
