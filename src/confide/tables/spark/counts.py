"""Counts per bin in one Spark job: every partition counts its rows, the counts are summed, the sums come back.

The result of an action is exact however often a task is retried: a task that is lost or killed has no part in it.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.tables.findings import Findings
from confide.tables.group_by import batch_rows, scored_rows, with_findings
from confide.tables.progress import Progress
from confide.tables.spark.connect import is_connect
from confide.tables.spark.failures import in_words
from confide.tables.spark.frames import Frame, frame_of, functions_of
from confide.tables.spark.watching import watched
from confide.tables.stream_counts import Counters, Job

Counts = tuple[NDArray[np.int64], Findings]
"""Counts per group and bin, shape (groups, m), and the rows with each finding."""

_SCHEMA = "finding int, place int, bin int, n long"


def count_in_java(table: Any, job: Job, progress: Progress) -> Counts:
    """Count scores that SQL computes, in the Java machines of the executors: no Python runs there.

    Parameters
    ----------
    table
        An Ibis table on Spark.
    job
        What is counted.
    progress
        Told the number of rows, at the end; its method `share`, if it has one, is told the tasks that are done.

    Returns
    -------
    tuple
        Counts per group and bin, int64, shape (groups, m), and rows per finding.
    """

    def frame() -> Frame:
        rows = with_findings(scored_rows(table, job.reading, job.group, job.weight), job.reading)
        grouped_from = _with_bins(frame_of(rows), job.edges)
        grouped = grouped_from.groupBy("finding", "group", "bin")
        if job.weight is None:
            return grouped.count()
        f = functions_of(grouped_from)
        # Rows that are refused are counted, not weighed.
        weight = f.when(f.col("finding") == 0, f.col("weight")).otherwise(1)
        return grouped.agg(f.sum(weight))

    return _gathered(frame, job, progress)


def count_in_python(table: Any, job: Job, progress: Progress) -> Counts:
    """Count scores that SQL cannot compute (APS and its kin), in Python on the executors: Arrow batches in, counts out.

    The executors' Python needs confide, numpy and pyarrow. What a partition returns is one small batch of counts.
    """

    def frame() -> Frame:
        rows = batch_rows(table, job.reading, job.group, job.weight)
        counts = frame_of(rows).mapInArrow(_counter(job), _SCHEMA)
        return counts.groupBy("finding", "place", "bin").sum("n")

    return _gathered(frame, job, progress)


def _gathered(frame: Callable[[], Frame], job: Job, progress: Progress) -> Counts:
    """Counts from a frame of rows (finding, group, bin, count), of which several may be of one bin."""

    def work() -> list[Any]:
        asked = frame()
        with watched(asked.sparkSession, progress):
            collected: list[Any] = asked.collect()
        return collected

    found, counts = Findings(), np.zeros((job.groups, len(job.edges) + 1), dtype=np.int64)
    for finding, group, place, count in in_words(work):
        if finding:
            found.add(finding, count)
        else:
            counts[group, place] += count
    progress(int(counts.sum()) if job.weight is None else 0)
    return counts, found


def _with_bins(frame: Frame, edges: NDArray[np.float64]) -> Frame:
    """The frame with the number of edges below each usable score, as `bin`; other rows have neither bin nor group.

    Over Spark Connect, where servers need not have Spark's library of models, they are searched in SQL instead.
    """
    f = functions_of(frame)
    usable = f.col("finding") == 0
    frame = frame.withColumn("group", f.when(usable, f.col("group")))
    if not len(edges):
        return frame.withColumn("bin", f.when(usable, f.lit(0)))
    if is_connect(frame.sparkSession):
        return frame.withColumn("bin", f.when(usable, f.expr(searched("score", edges))))
    return _in_buckets(frame, edges)


def _in_buckets(frame: Frame, edges: NDArray[np.float64]) -> Frame:
    """By Spark's own Bucketizer, which searches the edges in the Java machine.

    Its buckets are closed on the left and ours on the right, so it is given the scores and edges with the other sign;
    adding 0 turns -0.0, which it would put below 0.0, into 0.0.
    """
    from pyspark.ml.feature import Bucketizer
    from pyspark.sql.functions import col, lit, when

    usable = col("finding") == 0
    splits = [-np.inf, *(-edges[::-1] + 0.0).tolist(), np.inf]
    mirrored = frame.withColumn("mirrored", when(usable, -col("score") + lit(0.0)))
    bucketizer = Bucketizer(splits=splits, inputCol="mirrored", outputCol="bucket", handleInvalid="keep")
    buckets = bucketizer.transform(mirrored)
    return buckets.withColumn("bin", when(usable, (lit(len(edges)) - col("bucket")).cast("int")))


def searched(score: str, edges: NDArray[np.float64]) -> str:
    """SQL that finds the number of edges below a score, by a binary search in an array that Spark folds into one value.

    Examples
    --------
    >>> searched("s", np.array([0.1, 0.5, 0.9]))
    "aggregate(array(2, 1), 0, (p, w) -> IF(get(CAST(split('0.1,0.5,0.9', ',') AS ARRAY<DOUBLE>), p + w - 1) < s, p + w, p))"
    """  # noqa: E501
    steps = ", ".join(str(2**power) for power in reversed(range(len(edges).bit_length())))
    held = f"CAST(split('{','.join(map(repr, edges.tolist()))}', ',') AS ARRAY<DOUBLE>)"
    return f"aggregate(array({steps}), 0, (p, w) -> IF(get({held}, p + w - 1) < {score}, p + w, p))"


def _counter(job: Job) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """What every task does with its partition."""

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        counters = Counters(job)
        for batch in batches:
            if batch.num_rows:
                counters.add(batch, None)
        counts = counters.counts()
        rows = [(0, int(i), int(j), int(counts[i, j])) for i, j in zip(*np.nonzero(counts), strict=True)]
        rows += [(finding, 0, 0, n) for finding, n in counters.found.counts().items()]
        names = [column.split()[0] for column in _SCHEMA.split(", ")]
        kinds = [pa.int32(), pa.int32(), pa.int32(), pa.int64()]
        columns = zip(*rows, strict=True) if rows else [()] * len(names)
        yield pa.record_batch([pa.array(c, k) for c, k in zip(columns, kinds, strict=True)], names=names)

    return work
