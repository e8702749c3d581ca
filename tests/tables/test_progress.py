"""Progress: rows that were read, of an expected number; completed tasks of Spark, of the known ones."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from confide.tables import ScoreColumn, open_table, score_histogram
from confide.tables.table import no_progress
from tests.tables import postgres_server


class Watching:
    """A progress callback with records of its calls."""

    def __init__(self) -> None:
        self.rows, self.shares = 0, []

    def __call__(self, rows: int) -> None:
        self.rows += rows

    def share(self, done: int, total: int) -> None:
        self.shares.append((done, total))


@pytest.mark.slow(unless="sqlite")
def test_rows_are_reported_batch_by_batch(engine):
    watching = Watching()
    source = engine.table(pa.table({"s": np.linspace(0, 1, 5000)}))
    score_histogram(source, ScoreColumn("s", "lac"), progress=watching)
    assert watching.rows == 5000


def test_expected_rows_of_a_database(tmp_path):
    import duckdb

    with duckdb.connect(tmp_path / "db.duckdb") as connection:
        connection.execute("CREATE TABLE t AS SELECT 0.5 AS s FROM range(5000)")
    with open_table(f"duckdb://{tmp_path}/db.duckdb", "t") as table:
        assert table.row_count() == 5000


def test_postgresql_estimates_the_number_of_rows(postgres, reader):
    import psycopg

    table = reader.table(pa.table({"s": np.arange(5000.0)}))
    with psycopg.connect(postgres.url(postgres_server.OWNER), autocommit=True) as owner:
        owner.execute(f"ANALYZE {table.get_name()}")
    with open_table(table) as whole, open_table(table.filter(table.s < 2500)) as half:
        assert whole.row_count() == 5000
        assert half.row_count() == pytest.approx(2500, rel=0.1)


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_spark_reports_its_tasks(spark, tmp_path):
    """Progress of a job of eight slow tasks on two cores is reported, and its group is removed afterwards."""
    from confide.tables.spark import report_progress

    for part in range(8):
        pq.write_table(pa.table({"s": [0.5]}), tmp_path / f"{part}.parquet")

    def slowly(batches):
        import time

        for batch in batches:
            time.sleep(0.7)
            yield batch

    context, watching = spark.sparkContext, Watching()
    spark.conf.set("spark.sql.files.openCostInBytes", "128m")  # a task per file
    try:
        context.setJobGroup("mine", "of the user")
        frame = spark.read.parquet(str(tmp_path)).mapInArrow(slowly, "s double")
        with report_progress(spark, watching):
            assert frame.count() == 8
        assert context.getLocalProperty("spark.jobGroup.id") == "mine"
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
        spark.conf.unset("spark.sql.files.openCostInBytes")
    shares = [done / total for done, total in watching.shares]
    assert shares == sorted(shares)
    assert any(0 < share < 1 for share in shares)
    assert max(total for _, total in watching.shares) >= 8
    with report_progress(spark, no_progress):
        assert context.getLocalProperty("spark.jobGroup.id") is None
    counted = Watching()
    assert score_histogram(spark.read.parquet(str(tmp_path)), ScoreColumn("s", "lac"), progress=counted).total == 8
    assert counted.rows == 8
