"""What many tests share: the number of records without its noise, a PostgreSQL server, and a Spark cluster."""

from collections.abc import Iterator
from typing import Any

import pytest

from confide.mechanisms import draw_size
from tests.calibrations import RELEASE, number_itself
from tests.tables import postgres_server
from tests.tables.engines import Postgres
from tests.tables.spark_cluster import Cluster, needs_spark, standalone_cluster


@pytest.fixture(scope="session", autouse=True)
def exact_number() -> Iterator[None]:
    """Designs are for the number of records itself, so that none differs from one run to the next.

    Tests of the noisy number use `noisy_number`; commands that tests start as processes draw it, too.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RELEASE, "draw_size", number_itself)
        yield


@pytest.fixture
def noisy_number(monkeypatch) -> None:
    """Draw the noisy number of records in this test, as releases do."""
    monkeypatch.setattr(RELEASE, "draw_size", draw_size)


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
    postgres_server.needs_postgres()
    with postgres_server.running() as server:
        yield server


@pytest.fixture(scope="session")
def reader(postgres: postgres_server.Server) -> Iterator[Postgres]:
    """Tables in PostgreSQL, read by a role that may do nothing else."""
    engine = Postgres(postgres)
    yield engine
    engine.connection.disconnect()
