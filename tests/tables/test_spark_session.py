"""What is missing is said before Spark is started, in words of ours."""

import socket

import pytest

from confide import InputError
from confide.tables.spark import open_spark
from tests.tables.spark_cluster import needs_spark


def test_a_master_that_cannot_be_reached_is_refused_at_once():
    needs_spark()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        master = f"spark://127.0.0.1:{free.getsockname()[1]}"
    for name in (master, "spark://nowhere", "spark://127.0.0.1:99999999"):
        with pytest.raises(InputError, match="cannot be reached; check the host and the port"), open_spark(name, "t"):
            pass


def test_without_java_spark_is_refused(monkeypatch, tmp_path):
    needs_spark()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(InputError, match="Java 17 or newer, and none was found"), open_spark("local[1]", "t"):
        pass


def test_without_pyspark_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("confide.tables.spark.session.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'confide\[spark\]'"), open_spark("local[1]", "t"):
        pass
