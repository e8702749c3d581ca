"""Counting 10**7 rows on a real standalone Spark cluster on this machine, with one worker and with two.

    python -m benchmarks.spark [--rows N]

The cluster is a master and workers of one core each, each in its own Java process. For each number of workers a new
session counts a column of scores (m = 1000), LAC of a list column of ten probabilities in the Java machines, and APS of
the same column in Python on the executors; for comparison it runs Spark's own `count(*), sum, max` over the same files.
Times are the best of several in the same session, after one warm-up run. Bytes are from Spark's event log.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.small import small
from confide.tables import ClassColumns, ScoreColumn, score_histogram
from confide.tables.spark import open_session
from tests.tables.spark_cluster import standalone_cluster

CLASSES, FILES, REPEATS = 10, small(40, 2), small(3, 1)
_EVENTS = """
spark.eventLog.enabled true
spark.eventLog.dir file:{folder}
spark.eventLog.compress false
spark.eventLog.rolling.enabled false
"""


def write(folder: Path, rows: int) -> tuple[int, int]:
    """Write scores, and lists of probabilities with labels; return the bytes of each."""
    rng = np.random.default_rng(0)
    sizes = {"scores": 0, "lists": 0}
    for name in sizes:
        (folder / name).mkdir()
    for i in range(FILES):
        n = rows // FILES
        p = rng.dirichlet(np.full(CLASSES, 0.3), n).astype(np.float32)
        offsets = pa.array(np.arange(0, n * CLASSES + 1, CLASSES, dtype=np.int32))
        lists = pa.ListArray.from_arrays(offsets, pa.array(p.ravel()))
        tables = {
            "scores": pa.table({"score": rng.random(n)}),
            "lists": pa.table({"p": lists, "y": rng.integers(0, CLASSES, n)}),
        }
        for name, table in tables.items():
            path = folder / name / f"{i}.parquet"
            pq.write_table(table, path)
            sizes[name] += path.stat().st_size
    return sizes["scores"], sizes["lists"]


def best(call: Callable[[], Any]) -> float:
    """The least of several times, in seconds, after one run that warms up."""
    call()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def measure(folder: Path, master: str) -> dict[str, float]:
    """Measure the seconds of every count on the running cluster."""
    classes = tuple(range(CLASSES))
    with open_session(master) as session:
        scores, lists = (session.read.parquet(str(folder / name)) for name in ("scores", "lists"))
        figures = ("count(*)", "sum(score)", "max(score)")
        calls: dict[str, Callable[[], Any]] = {
            "Spark's own count, sum and max": lambda: (
                session.read.parquet(str(folder / "scores")).selectExpr(*figures).collect()
            ),
            "scores, in Java": lambda: score_histogram(scores, ScoreColumn("score", "lac")),
            "LAC of lists, in Java": lambda: score_histogram(lists, ClassColumns("p", "y", classes)),
            "APS of lists, in Python": lambda: score_histogram(
                lists, ClassColumns("p", "y", classes, "aps_deterministic")
            ),
        }
        found = {}
        for name, call in calls.items():
            session.sparkContext.setJobDescription(name)
            found[name] = best(call)
        return found


def moved(log: Path) -> dict[str, dict[str, float]]:
    """Cost of one run of every count, from Spark's event log: megabytes, and processor seconds of the Java machines."""
    stages: dict[int, str] = {}
    totals: dict[str, dict[str, float]] = {}
    for line in log.read_text().splitlines():
        event = json.loads(line)
        if event["Event"] == "SparkListenerJobStart":
            name = event["Properties"].get("spark.job.description")
            stages |= {stage: name for stage in event["Stage IDs"] if name}
        if event["Event"] == "SparkListenerTaskEnd" and event["Stage ID"] in stages:
            task = event["Task Metrics"]
            took = {
                "MB read": task["Input Metrics"]["Bytes Read"] / 1e6,
                "MB shuffled": task["Shuffle Write Metrics"]["Shuffle Bytes Written"] / 1e6,
                "MB to the driver": task["Result Size"] / 1e6,
                "Java seconds": task["Executor CPU Time"] / 1e9,
            }
            sums = totals.setdefault(stages[event["Stage ID"]], dict.fromkeys(took, 0.0))
            for kind, amount in took.items():
                sums[kind] += amount / (REPEATS + 1)
    return totals


def main() -> None:
    """Print a table of moved data and seconds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=small(10**7, 1000))
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scores, lists = (size / 1e6 for size in write(folder, rows))
        print(
            f"{rows:,} rows in {FILES} files: scores {scores:.0f} MB, lists of {CLASSES} probabilities {lists:.0f} MB"
        )
        found = []
        for workers in (1, 2):
            cluster_folder = folder / f"cluster{workers}"
            (cluster_folder / "events").mkdir(parents=True)
            with standalone_cluster(cluster_folder, workers) as cluster:
                with (cluster_folder / "spark-defaults.conf").open("a") as settings:
                    settings.write(_EVENTS.format(folder=cluster_folder / "events"))
                found.append(measure(folder, cluster.url))
        logs = [path for path in (cluster_folder / "events").rglob("*") if path.is_file() and "app" in path.name]
        bytes_moved = moved(max(logs, key=lambda path: path.stat().st_size))
    print(f"{os.cpu_count()} cores, best of {REPEATS}\n")
    kinds = [*next(iter(bytes_moved.values())), "elapsed s, 1 and 2 workers"]
    print(f"| each run | {' | '.join(kinds)} |\n| --- |{' ---: |' * len(kinds)}")
    for key, sums in bytes_moved.items():
        amounts = " | ".join(f"{amount:.3f}" for amount in sums.values())
        print(f"| {key} | {amounts} | {found[0][key]:.2f}, {found[1][key]:.2f} |")


if __name__ == "__main__":
    main()
