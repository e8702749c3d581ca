from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

import confide
from tests.files import classified
from tests.tables import postgres_server
from tests.tables.engines import DuckDB, Postgres, Spark
from tests.tables.spark_cluster import Cluster, needs_spark, standalone_cluster


@pytest.fixture(scope="session")
def calibration() -> confide.Calibration:
    """A calibration of LAC scores with a finite threshold."""
    scores = confide.lac_score(*classified(5000))
    return confide.calibrate(scores, 0.1, 10.0, score="lac")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    """A master and two workers, started once and killed after the last test."""
    with standalone_cluster(tmp_path_factory.mktemp("spark")) as started:
        yield started


@pytest.fixture(scope="session")
def spark(cluster) -> Iterator[Any]:
    """A Spark session on the cluster, with an executor on each worker."""
    needs_spark()
    from confide.tables.spark.session import open_session

    with open_session(cluster.url) as session:
        yield session


@pytest.fixture(scope="session")
def postgres() -> Iterator[postgres_server.Server]:
    """A PostgreSQL server, for the session."""
    if find_spec("psycopg") is None or find_spec("pandas") is None:
        pytest.skip("needs the extra 'postgres'")
    if postgres_server.binaries() is None:
        pytest.skip("needs a PostgreSQL server's programs (Debian: apt-get install postgresql)")
    with postgres_server.running() as server:
        yield server


@pytest.fixture(scope="session")
def reader(postgres: postgres_server.Server) -> Iterator[Postgres]:
    """Tables in PostgreSQL, read by a role that may do nothing else."""
    engine = Postgres(postgres)
    yield engine
    engine.connection.disconnect()


ENGINES = ["duckdb", "duckdb_sql", "postgres", pytest.param("spark", marks=pytest.mark.xdist_group("spark"))]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Every engine: DuckDB as it counts by default, DuckDB by the portable GROUP BY, PostgreSQL, a Spark cluster."""
    if request.param == "spark":
        yield Spark(request.getfixturevalue("spark"), request.getfixturevalue("tmp_path"))
        return
    if request.param == "postgres":
        yield request.getfixturevalue("reader")
        return
    if request.param == "duckdb_sql":
        from confide.tables import counts

        monkeypatch.setattr(counts, "_executor", lambda name: counts.grouped_counts)
    engine = DuckDB()
    yield engine
    engine.connection.disconnect()
