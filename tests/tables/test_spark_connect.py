"""Spark Connect: frames of a real server, for a client without Java. (The tests were not run on Databricks.)"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.tables.spark_cluster import await_log, environment, kill, needs_spark, start

# the tests of all other engines, and of sessions with Java, with this server
from tests.tables.test_exactness import test_counts_are_those_of_arrays  # noqa: F401
from tests.tables.test_people import (  # noqa: F401
    test_nameless_and_tied_records_raise_an_error,
    test_the_first_or_the_sampled_records_count,
)
from tests.tables.test_several import test_releases_are_those_of_arrays  # noqa: F401
from tests.tables.test_spark import (  # noqa: F401
    engine,
    planted,
    records,
    test_columns_of_any_name,
    test_errors_of_damaged_files_contain_no_content,
    test_intervals_and_rows_without_one,
    test_sets_are_a_frame,
    test_values_quoted_by_spark_are_not_passed_on,
)

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("spark")]


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


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with connect_server(tmp_path_factory.mktemp("connect")) as url:
        yield url


@pytest.fixture(scope="module")
def spark(server):
    from pyspark.sql.connect.session import SparkSession

    session = SparkSession.builder.remote(server).create()
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def no_java(server, monkeypatch, tmp_path):
    """The client's machine has no Java."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)


@pytest.fixture
def ranking(engine):  # noqa: F811
    return engine
