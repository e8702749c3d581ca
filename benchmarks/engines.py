"""Calibration over files larger than memory, compared with DuckDB's read of the file: `python -m benchmarks.engines`.

Every number is the best of several rounds in which the reference and our work alternate; peaks are of whole processes.
This program writes the files into a temporary folder and removes them.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.small import small
from benchmarks.timing import shortest

if TYPE_CHECKING:
    from confide import Release

THREADS = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scores", type=int, default=small(10**8, 5000))
    parser.add_argument("--lists", type=int, default=small(10**6, 500))
    rows = small(5 * 10**6, 5000)
    parser.add_argument("--postgres", type=int, default=rows, help="rows of a PostgreSQL table; 0 leaves it out")
    parser.add_argument("--rounds", type=int, default=small(5, 1))
    parser.add_argument("--case", nargs=2, metavar=("NAME", "FILE"), help="used by the program itself")
    options = parser.parse_args()
    if options.case:
        name, path = options.case[0], Path(options.case[1])
        if name in PEAKS:
            PEAKS[name](path)
            print(f"  {name}: peak {peak():,.0f} MB")
        else:
            CASES[name](path, options.rounds)
        return
    with tempfile.TemporaryDirectory(prefix="confide-bench-") as folder:
        scores = Path(folder) / "scores.parquet"
        write_scores(scores, options.scores)
        run("scores", scores, options.rounds)
        run("calibrate scores", scores, 1)
        scores.unlink()
        lists = Path(folder) / "lists.parquet"
        write_lists(lists, options.lists)
        run("lists", lists, small(2, 1))
        for name in ("calibrate", "write sets", "write sets of APS"):
            run(name, lists, 1)
    postgres(options.postgres, small(3, 1))


def run(name: str, path: Path, rounds: int) -> None:
    """Run one case in its own process."""
    command = [sys.executable, "-m", "benchmarks.engines", "--case", name, str(path), "--rounds", str(rounds)]
    subprocess.run(command, check=True)


def write_scores(path: Path, rows: int) -> None:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {THREADS}")
        connection.execute(f"COPY (SELECT random() AS score FROM range({rows})) TO '{path}' (FORMAT parquet)")  # noqa: S608
    print(f"{rows:,} scores, {path.stat().st_size / 1e6:,.0f} MB of Parquet, {THREADS} threads")


def write_lists(path: Path, rows: int, classes: int = 1000) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    schema = pa.schema([("p", pa.list_(pa.float32())), ("y", pa.int32())])
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for start in range(0, rows, 10_000):
            n = min(10_000, rows - start)
            p = rng.random((n, classes), dtype=np.float32) ** 30
            p /= p.sum(axis=1, keepdims=True)
            offsets = pa.array(np.arange(n + 1, dtype=np.int32) * classes)
            lists = pa.ListArray.from_arrays(offsets, pa.array(p.ravel()))
            writer.write_batch(pa.record_batch([lists, pa.array(p.argmax(1).astype(np.int32))], schema=schema))
    print(f"{rows:,} lists of {classes} probabilities, {path.stat().st_size / 1e6:,.0f} MB of Parquet")


def scores(path: Path, rounds: int) -> None:
    """The histogram of a column, against count, sum and maximum of the same column."""
    import duckdb

    from confide.tables import ScoreColumn, open_table, score_histogram

    with duckdb.connect() as reference, open_table(path) as table:  # one thread reads, two of ours count
        reference.execute(f"SET threads = {THREADS}")
        query = f"SELECT count(*), sum(score), max(score) FROM '{path}'"  # noqa: S608
        measured = {
            "DuckDB count, sum, max": lambda: reference.execute(query).fetchall(),
            "histogram, 1000 candidates": lambda: score_histogram(table, ScoreColumn("score", "lac")),
            "histogram, 4800 candidates": lambda: score_histogram(table, ScoreColumn("score")),
        }
        report(measured, rounds)


def calibrate_scores(path: Path) -> None:
    from confide.tables import ScoreColumn, calibrate_table

    calibrate_table(path, ScoreColumn("score", "lac"), alpha=0.1, epsilon=1.0)


def lists(path: Path, rounds: int) -> None:
    """Calibration and sets from lists of probabilities, against reading the lists once."""
    import duckdb

    with duckdb.connect() as reference:
        reference.execute(f"SET threads = {THREADS}")
        query = f"SELECT count(*), sum(list_sum(p)) FROM '{path}'"  # noqa: S608
        measured = {
            "DuckDB reads every list once": lambda: reference.execute(query).fetchall(),
            **{name: partial(PEAKS[name], path) for name in ("calibrate", "write sets", "write sets of APS")},
        }
        report(measured, rounds)


def calibrate_lists(path: Path) -> None:
    from confide.tables import ClassColumns, calibrate_table

    released = calibrate_table(path, ClassColumns("p", "y", tuple(range(1000))), alpha=0.1, epsilon=1.0)
    released.save(path.with_suffix(".json"), overwrite=True)


def write_sets(path: Path) -> None:
    from confide import Release

    write_sets_of(path, Release.load(path.with_suffix(".json")))


def write_aps_sets(path: Path) -> None:
    """Write sets of about 70 classes each, computed in this process."""
    import confide

    candidates = confide.Candidates.of([0.9])
    write_sets_of(path, confide.calibrate([0.9] * 5000, 0.1, 10.0, score="aps_deterministic", candidates=candidates))


def write_sets_of(path: Path, calibration: "Release") -> None:
    from confide.tables import ClassColumns, predict_table

    sets = path.with_suffix(".sets.parquet")
    predict_table(path, ClassColumns("p", classes=tuple(range(1000))), calibration, sets, overwrite=True)


def postgres(rows: int, rounds: int) -> None:
    """The histogram of a column in a separate server, against count, sum and maximum of the same column."""
    import psycopg

    from confide.tables import ScoreColumn, open_table, score_histogram
    from tests.tables.postgres_server import OWNER, READER, binaries, running

    if not rows or binaries() is None:
        print("PostgreSQL was left out")
        return
    with running() as server:
        with psycopg.connect(server.url(OWNER), autocommit=True) as connection:
            connection.execute(f"CREATE TABLE t AS SELECT random() AS score FROM generate_series(1, {rows})")  # noqa: S608
            connection.execute("VACUUM ANALYZE t")
        print(f"{rows:,} scores in PostgreSQL")
        with open_table(server.url(READER), "t") as table:
            connection = table.backend.con
            measured = {
                "count, sum, max": lambda: connection.execute(
                    "SELECT count(*), sum(score), max(score) FROM t"
                ).fetchall(),
                "histogram, 1000 candidates": lambda: score_histogram(table, ScoreColumn("score", "lac")),
                "histogram, 4800 candidates": lambda: score_histogram(table, ScoreColumn("score")),
            }
            report(measured, rounds)


def report(measured: dict[str, Callable[[], object]], rounds: int) -> None:
    """Print the best times; the first is the reference."""
    best = shortest(measured, rounds)
    reference = next(iter(best.values()))
    for name, seconds in best.items():
        print(f"| {name} | {seconds:.2f} s | {seconds / reference:.2f} times the first |")


def peak() -> float:
    """Peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


CASES = {"scores": scores, "lists": lists}
PEAKS = {
    "calibrate scores": calibrate_scores,
    "calibrate": calibrate_lists,
    "write sets": write_sets,
    "write sets of APS": write_aps_sets,
}
"""What runs alone in a process whose peak of memory is printed."""

if __name__ == "__main__":
    main()
