"""Sample files that stand for a reader's own, made before the blocks that name them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

NAMES = ("benign", "malignant", "unclear")


def patients(folder: Path) -> None:
    """A classifier's probabilities with diagnoses, as Parquet and as CSV."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet([6, 2, 1], size=2000)
    truth = [NAMES[rng.choice(3, p=row)] for row in p]
    table = pa.table({f"p_{name}": p[:, k] for k, name in enumerate(NAMES)} | {"diagnosis": truth})
    for name in ("calibration", "new_patients", "labelled"):
        parquet.write_table(table, folder / f"{name}.parquet")
        csv.write_csv(table, folder / f"{name}.csv")


def engines(folder: Path) -> None:
    """Parquet files of scores and of probabilities, and a DuckDB database of the same records."""
    import duckdb

    patients(folder)
    rng = np.random.default_rng(0)
    for name in ("scores", "new"):
        (folder / name).mkdir()
    for part in range(2):
        parquet.write_table(pa.table({"score": rng.random(500)}), folder / "scores" / f"{part}.parquet")
        (folder / "new" / f"{part}.parquet").write_bytes((folder / "new_patients.parquet").read_bytes())
    with duckdb.connect(str(folder / "clinic.duckdb")) as database:
        database.execute("CREATE TABLE records AS SELECT * RENAME (diagnosis AS y) FROM 'calibration.parquet'")
        database.execute("CREATE TABLE new AS SELECT * EXCLUDE (diagnosis) FROM 'new_patients.parquet'")
        for table in ("records", "new"):
            database.execute(f"ALTER TABLE {table} ADD COLUMN ward VARCHAR DEFAULT 'north'")
            database.execute(f"UPDATE {table} SET ward = 'south' WHERE p_benign > 0.7")  # noqa: S608


def silos(folder: Path) -> None:
    """One CSV file of scores per hospital, and one of its new patients."""
    rng = np.random.default_rng(0)
    for name in ("north", "south", "east", "north-new"):
        csv.write_csv(pa.table({"score": rng.random(300)}), folder / f"{name}.csv")


def mechanism(folder: Path) -> None:
    """An honest mechanism of somebody else: exponential mechanism on ranks among public candidates."""
    (folder / "mine.py").write_text(
        "import numpy as np\n"
        "def threshold(scores):\n"
        "    edges, n = np.append(np.arange(1, 100) / 100, np.inf), len(scores)\n"
        "    counts = np.searchsorted(np.sort(scores), edges, side='right')\n"
        "    utility = -np.abs(counts - 0.9 * (n + 1) - 20)\n"
        "    return float(edges[(utility / 2 + np.random.default_rng().gumbel(size=100)).argmax()])\n"
    )


SAMPLES: dict[str, Callable[[Path], None]] = {
    "patients": patients,
    "engines": engines,
    "silos": silos,
    "mechanism": mechanism,
}
