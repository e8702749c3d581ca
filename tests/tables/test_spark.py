"""Properties of Spark: its errors, which quote records, and missing sources."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from confide import FormatError, InputError
from confide.tables import EngineError, ScoreColumn, score_histogram
from tests.planted_values import PLANTED, assert_error_is_private, assert_no_private_value
from tests.refused import refused

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]


@pytest.fixture
def planted(tmp_path) -> Path:
    """A Parquet file of planted values, as texts and as numbers."""
    path = tmp_path / "planted.parquet"
    pq.write_table(pa.table({"text": [str(value) for value in PLANTED], "s": list(PLANTED)}), path)
    return path


def test_values_quoted_by_spark_are_not_passed_on(spark, planted, capfd):
    from confide.tables.spark.session import spark_table

    table = spark_table(spark, str(planted))
    with refused(EngineError, "source") as caught:
        score_histogram(table.mutate(n=table.text.replace(".", "x").cast("float64")), ScoreColumn("n"))
    assert_error_is_private(caught.value)
    assert_no_private_value("".join(capfd.readouterr()))


def test_a_model_that_fails_on_an_executor_shows_no_record(spark, planted, capfd):
    from confide.tables.spark.session import run_on_spark

    def fails(batches):
        raise ValueError(str(next(batches).column("s").to_pylist()))
        yield

    with refused(EngineError, "source") as caught:
        run_on_spark(spark.read.parquet(str(planted)).mapInArrow(fails, "a int").collect)
    assert_error_is_private(caught.value)
    assert_no_private_value("".join(capfd.readouterr()))


@pytest.mark.parametrize(
    "damage", [lambda whole: b"987654.321" * 20, lambda whole: whole[:-40], lambda whole: whole[:4] + b"7" * len(whole)]
)
def test_errors_of_damaged_files_contain_no_content(spark, planted, capfd, damage):
    from confide.tables.spark.session import spark_table

    planted.write_bytes(damage(planted.read_bytes()))
    with pytest.raises(FormatError) as caught:
        score_histogram(spark_table(spark, str(planted)), ScoreColumn("s"))
    assert_error_is_private(caught.value)
    assert_no_private_value("".join(capfd.readouterr()))


@pytest.mark.parametrize("source", ["no_such_table", "no/such"])
def test_missing_sources_raise_an_error(spark, source):
    from confide.tables.spark.session import spark_table

    with refused(InputError, "source"):
        spark_table(spark, source)
