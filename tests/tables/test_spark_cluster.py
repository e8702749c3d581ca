"""A worker that is lost during a job changes nothing: a row is counted once for any number of reads."""

import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from confide import Candidates, ScoreHistogram
from confide.tables import ScoreColumn, group_histograms, score_histogram

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("spark")]
ROWS, FILES, CANDIDATES = 1_000_000, 80, Candidates.unit(1000, "logit")


def killed_while(cluster, spark, work):
    """The result of a job during which one worker is killed, when some tasks are done and others are not."""
    tracker, done = spark.sparkContext.statusTracker(), []
    thread = threading.Thread(target=lambda: done.append(work()))
    thread.start()
    try:
        while thread.is_alive():
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            if any(stage and stage.numTasks > 20 and stage.numCompletedTasks >= 8 for stage in stages):
                break
            time.sleep(0.002)
        assert thread.is_alive(), "the job was over before a worker could be killed: write more files"
        cluster.kill_worker()
        assert not done
    finally:
        thread.join()
    return done[0]


@pytest.mark.parametrize("groups", [1, 40], ids=["sums of the driver", "sums of the executors"])
def test_counts_survive_the_death_of_a_worker(cluster, spark, tmp_path, groups):
    """Also for so many groups that the executors sum the counts of partitions, after a shuffle."""
    rng = np.random.default_rng(0)
    scores, group = rng.beta(2, 5, ROWS), rng.integers(0, groups, ROWS)
    for i, rows in enumerate(np.split(np.arange(ROWS), FILES)):
        pq.write_table(pa.table({"score": scores[rows], "group": group[rows]}), tmp_path / f"{i:04}.parquet")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "100k")  # a task per file
    frame, score = spark.read.parquet(str(tmp_path)), ScoreColumn("score")

    def count():
        if groups == 1:
            return [score_histogram(frame, score, CANDIDATES)]
        return list(group_histograms(frame, score, "group", range(groups), CANDIDATES).values())

    try:
        assert cluster.alive == 2
        found = killed_while(cluster, spark, count)
        assert cluster.alive == 1
        for place, one in enumerate(found):
            expected = ScoreHistogram.from_scores(scores[group == place], CANDIDATES).counts
            np.testing.assert_array_equal(one.counts, expected)
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
        cluster.add_workers(2 - cluster.alive)
