"""A worker that is lost during a job changes nothing: a row is counted once for any number of reads."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from confide import Candidates, ScoreHistogram
from confide.tables import ScoreColumn, score_histogram

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore:.*is deprecated, use to_arrow:DeprecationWarning"),  # Ibis on DuckDB 2
]

CANDIDATES = Candidates.unit(1000, "logit")


def written(folder: Path, rows: int, files: int) -> np.ndarray:
    """Scores in Parquet files of equal length."""
    scores = np.random.default_rng(0).beta(2, 5, rows)
    for i, part in enumerate(np.split(scores, files)):
        pq.write_table(pa.table({"score": part}), folder / f"{i:04}.parquet")
    return scores


def killed_while(cluster, spark, after: int, work: Callable[[], Any]) -> Any:
    """The result of a job during which one worker is killed, when some tasks are done and others are not."""
    tracker, done = spark.sparkContext.statusTracker(), []
    thread = threading.Thread(target=lambda: done.append(work()))
    thread.start()
    try:
        while thread.is_alive():
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            if any(stage and stage.numTasks > 2 * after and stage.numCompletedTasks >= after for stage in stages):
                break
            time.sleep(0.002)
        assert thread.is_alive(), "the job was over before a worker could be killed: write more files"
        cluster.kill_worker()
        assert not done
    finally:
        thread.join()
    return done[0]


@pytest.mark.parametrize(
    ("rows", "files"), [(1_000_000, 80), pytest.param(10_000_000, 250, marks=pytest.mark.slow)], ids=["1e6", "1e7"]
)
def test_counts_survive_the_death_of_a_worker(cluster, spark, tmp_path, rows, files):
    from confide.tables.spark.session import spark_table

    scores = written(tmp_path, rows, files)
    expected = ScoreHistogram.from_scores(scores, CANDIDATES).counts
    here = score_histogram(f"{tmp_path}/*.parquet", ScoreColumn("score"), CANDIDATES)
    np.testing.assert_array_equal(here.counts, expected)

    spark.conf.set("spark.sql.files.maxPartitionBytes", "100k" if rows < 10**7 else "1m")  # a task per file
    table = spark_table(spark, str(tmp_path))

    def count() -> np.ndarray:
        return score_histogram(table, ScoreColumn("score"), CANDIDATES).counts

    try:
        assert cluster.alive == 2
        np.testing.assert_array_equal(killed_while(cluster, spark, files // 10, count), expected)
        assert cluster.alive == 1
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
        cluster.add_workers(2 - cluster.alive)
