"""Counts per bin in one Spark job: every partition counts its rows, the counts are summed, the sums come back.

The result of an action is exact however often a task is retried: a task that is lost or killed has no part in it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.scores.kinds import ScoreKind
from confide.tables.counts import judged
from confide.tables.engine_findings import Finding
from confide.tables.progress import Progress
from confide.tables.spark.failures import in_words
from confide.tables.spark.frames import Frame, frame_of
from confide.tables.spark.watching import watched

Counts = tuple[NDArray[np.int64], dict[Finding, int]]
"""Counts per group and bin, shape (groups, m), and the number of rows with each finding."""


def count_table(rows: Any, edges: NDArray[np.float64], kind: ScoreKind, groups: int, progress: Progress) -> Counts:
    """Count the scores of an Ibis table on Spark, in the Java machines of its executors: no Python runs there.

    Parameters
    ----------
    rows
        An Ibis table with the column `score` (float64), and perhaps `finding` (0 where nothing is wrong) and `group`
        (a position).
    edges
        The finite candidates, increasing, float64, shape (m-1,).
    kind
        The score's range.
    groups
        How many groups there are.
    progress
        Told the number of rows, at the end; its method `share`, if it has one, is told the tasks that are done.

    Returns
    -------
    tuple
        Counts per group and bin, int64, shape (groups, m), and rows per finding.
    """
    return gathered(
        lambda: _with_bins(frame_of(judged(rows, kind)), edges).groupBy("finding", "group", "bin").count(),
        len(edges) + 1,
        groups,
        progress,
    )


def gathered(frame: Callable[[], Frame], size: int, groups: int, progress: Progress) -> Counts:
    """Counts from a frame of rows (finding, group, bin, count), of which several may be of one bin."""

    def work() -> list[Any]:
        asked = frame()
        with watched(asked.sparkSession, progress):
            collected: list[Any] = asked.collect()
        return collected

    answer = in_words(work)
    counts = np.zeros((groups, size), dtype=np.int64)
    found = dict.fromkeys(Finding, 0)
    for finding, group, place, count in answer:
        if finding:
            found[Finding(finding)] += count
        else:
            counts[group, place] += count
    progress(int(counts.sum()))
    return counts, found


def _with_bins(frame: Frame, edges: NDArray[np.float64]) -> Frame:
    """The frame with the number of edges below each usable score, as `bin`; other rows have neither bin nor group.

    Spark's own Bucketizer searches the edges in the Java machine. Its buckets are closed on the left and ours on the
    right, so it is given the scores and edges with the other sign; adding 0 turns -0.0, which it would put below 0.0,
    into 0.0.
    """
    from pyspark.ml.feature import Bucketizer
    from pyspark.sql.functions import col, lit, when

    usable = col("finding") == 0
    frame = frame.withColumn("group", when(usable, col("group")))
    if not len(edges):
        return frame.withColumn("bin", when(usable, lit(0)))
    splits = [-np.inf, *(-edges[::-1] + 0.0).tolist(), np.inf]
    mirrored = frame.withColumn("mirrored", when(usable, -col("score") + lit(0.0)))
    bucketizer = Bucketizer(splits=splits, inputCol="mirrored", outputCol="bucket", handleInvalid="keep")
    buckets = bucketizer.transform(mirrored)
    return buckets.withColumn("bin", when(usable, (lit(len(edges)) - col("bucket")).cast("int")))
