"""Counting 10**7 rows on a standalone Spark cluster on this machine, compared with Spark's own sums.

    python -m benchmarks.spark [--rows N]

The cluster is a master and two workers of one core each, each in its own Java process. One session counts a column of
scores (m = 1000), and LAC and APS of a list column of ten probabilities; and it sums the same columns. The calls
alternate, after one warm-up run of each. A time is the shortest of several.
"""

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.small import small
from benchmarks.timing import shortest
from confide.tables import ClassColumns, ScoreColumn, score_histogram
from tests.tables.spark_cluster import standalone_cluster

CLASSES, FILES, REPEATS = 10, small(40, 2), small(5, 1)


def write(folder: Path, rows: int) -> None:
    """Write scores, and lists of probabilities with labels."""
    rng = np.random.default_rng(0)
    for name in ("scores", "lists"):
        (folder / name).mkdir()
    for i in range(FILES):
        n = rows // FILES
        p = rng.dirichlet(np.full(CLASSES, 0.3), n).astype(np.float32)
        offsets = pa.array(np.arange(0, n * CLASSES + 1, CLASSES, dtype=np.int32))
        lists = pa.ListArray.from_arrays(offsets, pa.array(p.ravel()))
        pq.write_table(pa.table({"score": rng.random(n)}), folder / "scores" / f"{i}.parquet")
        pq.write_table(pa.table({"p": lists, "y": rng.integers(0, CLASSES, n)}), folder / "lists" / f"{i}.parquet")


def measure(folder: Path, session: SparkSession) -> dict[str, tuple[float, float]]:
    """The seconds of every count, and of Spark's sum over the same columns."""
    scores, lists = (session.read.parquet(str(folder / name)) for name in ("scores", "lists"))
    lac, aps = (ClassColumns("p", "y", tuple(range(CLASSES)), score) for score in ("lac", "aps_deterministic"))
    calls: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "a column of scores": (
            lambda: score_histogram(scores, ScoreColumn("score", "lac")),
            lambda: scores.selectExpr("count(*)", "sum(score)", "max(score)").collect(),
        ),
        "LAC, lists of 10": (
            lambda: score_histogram(lists, lac),
            lambda: lists.selectExpr("count(*)", "sum(y)", "sum(get(p, CAST(y AS INT)))").collect(),
        ),
        "APS, lists of 10": (
            lambda: score_histogram(lists, aps),
            lambda: lists.selectExpr("count(*)", "sum(y)", "sum(aggregate(p, 0D, (s, one) -> s + one))").collect(),
        ),
    }
    whose = ("ours", "theirs")
    both = {(name, who): call for name, pair in calls.items() for who, call in zip(whose, pair, strict=True)}
    shortest(both, 1)  # a warm-up run
    times = shortest(both, REPEATS)
    return {name: (times[name, "ours"], times[name, "theirs"]) for name in calls}


def main() -> None:
    """Print a table of seconds and ratios."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=small(10**7, 1000))
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, rows)
        (folder / "cluster").mkdir()
        with standalone_cluster(folder / "cluster") as cluster:
            builder = SparkSession.builder.master(cluster.url).config("spark.log.level", "OFF")
            session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
            measured = measure(folder, session)
            session.stop()
    print(f"{rows:,} rows in {FILES} files, two workers, {os.cpu_count()} cores, shortest of {REPEATS}\n")
    print("| | confide, s | Spark's own sum, s | times |\n|---|--:|--:|--:|")
    for name, (ours, theirs) in measured.items():
        print(f"| {name} | {ours:.2f} | {theirs:.2f} | {ours / theirs:.1f} |")


if __name__ == "__main__":
    main()
