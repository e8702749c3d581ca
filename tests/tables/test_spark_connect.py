"""Spark Connect: frames of a real server, for a client without Java. (The tests were not run on Databricks.)"""

import pytest

from tests.tables.connect_server import connect_server

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
