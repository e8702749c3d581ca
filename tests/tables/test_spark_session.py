"""Missing requirements are reported before Spark is started."""

import socket

from confide import InputError
from confide.tables.spark import open_spark
from tests.refused import refused
from tests.tables.spark_cluster import needs_spark


def test_an_unreachable_master_raises_an_error_at_once():
    needs_spark()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        master = f"spark://127.0.0.1:{free.getsockname()[1]}"
    for name in (master, "spark://nowhere", "spark://127.0.0.1:99999999"):
        with refused(InputError, "master"), open_spark(name, "t"):
            pass


def test_spark_without_java_raises_an_error(monkeypatch, tmp_path):
    needs_spark()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with refused(InputError, "java"), open_spark("local[1]", "t"):
        pass


def test_without_pyspark_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("confide.tables.spark.session.find_spec", lambda name: None)
    with refused(InputError, "pyspark"), open_spark("local[1]", "t"):
        pass
