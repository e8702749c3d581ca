"""A PostgreSQL server and a Spark cluster: started once, for every test that asks for them."""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from tests.tables import postgres_server
from tests.tables.engines import Postgres
from tests.tables.spark_cluster import Cluster, needs_spark, standalone_cluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    """A master and two workers, started once and killed after the last test."""
    with standalone_cluster(tmp_path_factory.mktemp("spark")) as started:
        yield started


@pytest.fixture(scope="session")
def spark(cluster) -> Iterator[Any]:
    """A Spark session on the cluster, with an executor on each worker."""
    needs_spark()
    from confide.tables.spark import open_session

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
