"""A real server of Spark Connect on loopback: a separate Java process, which no client shares."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.tables.spark_cluster import await_log, environment, kill, needs_spark, start

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """The address of a server that is killed at the end; it uses this Python."""
    needs_spark()
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    settings = [word for name, value in _SETTINGS.items() for word in ("--conf", f"{name}={value}")]
    options = ["--class", server, "--master", "local[2]", *settings, "spark-internal"]
    with environment(folder):
        process = start("org.apache.spark.deploy.SparkSubmit", options, folder / "connect.log")
    try:
        port = await_log(process, folder / "connect.log", r"Spark Connect server started at: \S+:(\d+)")[1]
        yield f"sc://127.0.0.1:{port}"
    finally:
        kill(process)
