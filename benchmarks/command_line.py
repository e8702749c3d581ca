"""`confide calibrate` and `confide predict` on 1,000,000 rows x 10 classes, next to one reading of the same file.

Run as `python -m benchmarks.command_line`. Every measured step runs in its own process; its peak memory is the largest
resident set that the system reports. The reference is DuckDB alone, which streams the same columns as Arrow batches and
discards them.
"""

import os
import tempfile
from pathlib import Path

from benchmarks.small import small
from benchmarks.timing import Cost, cost_of

ROWS, CLASSES, REPEATS = small(1_000_000, 2000), 10, small(3, 1)

_WRITE = """
import sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
path, layout, rows, k = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
rng, writer = np.random.default_rng(0), None
for start in range(0, rows, 125_000):
    n = min(125_000, rows - start)
    p = rng.dirichlet(np.full(k, 0.3), n).astype(np.float32)
    label = np.minimum((rng.random(n)[:, None] > p.cumsum(axis=1)).sum(axis=1), k - 1)
    columns = {"id": np.arange(start, start + n), "label": label}
    if layout == "list":
        offsets = np.arange(0, n * k + 1, k, dtype=np.int32)
        columns["p"] = pa.ListArray.from_arrays(pa.array(offsets), pa.array(p.ravel()))
    else:
        columns |= {f"p_{i}": p[:, i] for i in range(k)}
    table = pa.table(columns)
    writer = writer or pq.ParquetWriter(path, table.schema)
    writer.write_table(table)
writer.close()
"""

_READ = """
import sys
import duckdb, pyarrow
connection = duckdb.connect()
connection.execute("SET threads = 1")
rows = sum(b.num_rows for b in connection.sql(f"SELECT * FROM read_parquet('{sys.argv[1]}')").to_arrow_reader(16384))
assert rows == int(sys.argv[2])
"""


def main() -> None:
    """Print a table of times, memory and ratios."""
    print(f"{ROWS:,} rows x {CLASSES} classes (float32), best of {REPEATS}, {os.cpu_count()} cores, whole processes")
    print(f"{'':<34}{'seconds':>9}{'peak MB':>9}{'ratio to reading':>18}")
    with tempfile.TemporaryDirectory() as name:
        for layout, columns in (("columns", "p_*"), ("list", "p")):
            measure(Path(name), layout, columns)


def measure(folder: Path, layout: str, columns: str) -> None:
    """Measure one layout of the probabilities."""
    records, calibration = folder / f"{layout}.parquet", folder / f"{layout}.json"
    cost_of(["-c", _WRITE, str(records), layout, str(ROWS), str(CLASSES)], folder, 1)
    confide = ["-m", "confide"]
    shared = ["--probabilities", columns, "--force", "--json", "--out"]
    made = [*confide, "calibrate", str(records), "--label", "label", "--alpha", "0.1", "--epsilon", "1", *shared]
    sets = [*confide, "predict", str(records), "--calibration", str(calibration), *shared]

    def best(arguments: list[str]) -> Cost:
        return cost_of(arguments, folder, REPEATS)

    yardstick = best(["-c", _READ, str(records), str(ROWS)])
    report(f"{layout}: DuckDB reads the file", yardstick, yardstick)
    report(f"{layout}: confide calibrate", best([*made, str(calibration)]), yardstick)
    for suffix in ("parquet", "csv"):
        report(f"{layout}: confide predict, {suffix}", best([*sets, str(folder / f"sets.{suffix}")]), yardstick)


def report(name: str, cost: Cost, yardstick: Cost) -> None:
    """Print one line."""
    print(f"{name:<34}{cost.seconds:>9.2f}{cost.peak_bytes / 2**20:>9.0f}{cost.seconds / yardstick.seconds:>18.1f}")


if __name__ == "__main__":
    main()
