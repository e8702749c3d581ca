"""What many tests share: draws of their own, a PostgreSQL server, and a Spark cluster."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.draws import SECURE, drawing_with, exact_number
from tests.tables import postgres_server
from tests.tables.engines import Postgres
from tests.tables.spark_cluster import Cluster, standalone_cluster


@pytest.fixture(scope="session", autouse=True)
def designs_for_the_exact_number() -> Iterator[None]:
    """Designs are for the number of records itself, so that none differs from one run to the next.

    Tests of the noisy number use `noisy_number`; commands that tests start as processes draw it, as other threads do.
    """
    with drawing_with(noisy_number=exact_number):
        yield


@pytest.fixture
def draw_with() -> Iterator[Callable[..., None]]:
    """Replace some of the draws, such as `draw_with(select=always(3))`, until the end of the test."""
    with ExitStack() as stack:
        yield lambda **functions: stack.enter_context(drawing_with(**functions))


@pytest.fixture
def noisy_number(draw_with) -> None:
    """Draw the noisy number of records in this test, as releases do."""
    draw_with(noisy_number=SECURE.noisy_number)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    """A master and two workers, started once and killed after the last test."""
    with standalone_cluster(tmp_path_factory.mktemp("spark")) as started:
        yield started


@pytest.fixture(scope="session")
def spark(cluster) -> Iterator[Any]:
    """A Spark session on the cluster; its log lines, which may quote records, are off."""
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master(cluster.url).config("spark.log.level", "OFF").getOrCreate()
    yield session
    session.stop()


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
