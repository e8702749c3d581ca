"""A real server of Spark Connect on loopback: a separate Java process, which no client shares."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import confide
from tests.tables.spark_cluster import needs_spark

_SECONDS = 120.0
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """The address of a server that is killed at the end; it uses this Python."""
    needs_spark()
    home = Path(find_spec("pyspark").origin).parent
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {**_SETTINGS, "spark.connect.grpc.binding.port": str(port)}
    command = [
        *(str(home / "bin" / "spark-submit"), "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        *("--master", "local[2]", "--driver-memory", "600m"),
        *(word for name, value in settings.items() for word in ("--conf", f"{name}={value}")),
        "spark-internal",
    ]
    others = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}  # a cluster's
    environment = others | {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_CONF_DIR": str(folder),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(Path(confide.__file__).parent.parent),
    }
    log = folder / "connect.log"
    with log.open("w") as stream:
        server = subprocess.Popen(
            command, stdout=stream, stderr=stream, cwd=folder, env=environment, start_new_session=True
        )
    try:
        _await(server, port, log)
        yield f"sc://127.0.0.1:{port}"
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _await(server: subprocess.Popen, port: int, log: Path) -> None:
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end and server.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError(f"no server of Spark Connect answers:\n{log.read_text()[-2000:]}")
