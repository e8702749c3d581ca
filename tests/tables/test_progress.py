"""Progress: rows that were read, of an expected number; completed tasks of Spark, of the known ones."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import confide
from confide.tables import ScoreColumn, databases, open_table, score_histogram
from confide.tables.bin_counts import binned, grouped_counts, scored_rows
from confide.tables.open_table import as_open_table
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


def test_rows_are_reported_batch_by_batch(engine):
    watching = Watching()
    source = engine.table(pa.table({"s": np.linspace(0, 1, 5000)}))
    score_histogram(source, ScoreColumn("s", "lac"), progress=watching)
    assert watching.rows == 5000


COUNTED = {"memory", "pandas", "polars", "folder", "hive", "arrow"}
"""Where the number of rows is stated somewhere."""


def test_expected_rows(request, engine):
    with as_open_table(engine.table(pa.table({"s": np.arange(5000.0)}))) as table:
        expected = table.row_count()
    name = request.node.callspec.params["engine"]
    if name == "postgres":  # an estimate: the server has not analysed the table
        assert expected is None or 2500 < expected < 10_000
    else:
        assert expected == (5000 if name in COUNTED else None)


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


def test_postgresql_counts_in_several_processes(postgres, reader, monkeypatch):
    import psycopg

    asked = []

    def grouped(table, job, progress):
        asked.append(table.get_backend().compile(binned(scored_rows(table, job.columns), job.edges)))
        return grouped_counts(table, job, progress)

    monkeypatch.setattr(databases, "grouped_counts", grouped)
    scores = np.random.default_rng(0).random(400_000)
    table = reader.table(pa.table({"s": scores}))
    with psycopg.connect(postgres.url(postgres_server.OWNER), autocommit=True) as owner:
        owner.execute(f"VACUUM ANALYZE {table.get_name()}")
        counted = score_histogram(table, ScoreColumn("s", "lac"))
        plan = "\n".join(line for (line,) in owner.execute(f"EXPLAIN {asked[0]}"))
    assert "Partial HashAggregate" in plan
    assert "Workers Planned" in plan
    expected = confide.ScoreHistogram.from_scores(scores, counted.candidates, "lac")
    np.testing.assert_array_equal(counted.counts, expected.counts)


def test_tasks_are_those_of_the_jobs_known_so_far():
    from confide.tables.spark.table import tasks

    stages = {1: (4, 4), 2: (8, 3), 3: None}
    tracker = SimpleNamespace(
        getJobIdsForGroup={"ours": [10, 11, 12]}.get,
        getJobInfo={10: SimpleNamespace(stageIds=[1]), 11: SimpleNamespace(stageIds=[1, 2, 3])}.get,
        getStageInfo=lambda stage: (
            stages[stage] and SimpleNamespace(numTasks=stages[stage][0], numCompletedTasks=stages[stage][1])
        ),
    )
    assert tasks(tracker, "ours") == (7, 12)


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_spark_reports_its_tasks(spark, tmp_path):
    """Progress of a job of eight slow tasks on two cores is reported, and its group is removed afterwards."""
    from confide.tables.spark.table import report_progress

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
