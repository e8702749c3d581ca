"""Requests of every kind that SQL counts, and a table whose scores lie on candidates, near them, and outside."""

import tempfile
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from confide.candidates import Candidates
from confide.tables import ClassColumns, ContributionBound, ScoreColumn, TargetColumns

NAMES = ("cat", "do\\g", "it's")
EDGES = Candidates.unit(60, "logit").edges
COLUMNS = ("p_0", "p_1", "p_2")
OF_CLASSES = ClassColumns(COLUMNS, "y", NAMES)
SIGNED = {"candidates": Candidates.spread("signed", 200, unit=1.0)}
SHORT = {"candidates": Candidates.unit(60)}
WARDS = {"by": "ward", "groups": ["s", "7", "n", "empty"]}

CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "classes": (OF_CLASSES, {"candidates": Candidates.unit(60, "logit")}),
    "positions": (ClassColumns(COLUMNS, "place", NAMES, label_positions=True), {"neighbors": "replace_one", "n": 1200}),
    "one column": (ClassColumns("p yes", "pair", ("no", "yes")), SHORT),
    "scores": (ScoreColumn("s"), {"candidates": Candidates.unit(60, "logit")}),
    "no candidates": (ScoreColumn("s"), {"candidates": Candidates.unit(1)}),
    "holes": (ScoreColumn("holes", "lac"), {"skip_incomplete": True, **SHORT}),
    "residuals": (TargetColumns("f", "t"), {"candidates": Candidates.spread("residual", 200, unit=1.0)}),
    "quantiles": (TargetColumns(("f", "g"), "t"), SIGNED),
    "default candidates": (TargetColumns(("f", "g"), "t"), {}),
    "sides": (TargetColumns(("f", "g"), "t", "cqr_sides"), SIGNED),
    "each class": (OF_CLASSES, {"by_class": True, **SHORT}),
    "each group": (OF_CLASSES, {**WARDS, "people": ContributionBound("who", 2, ("visit",), "a sample"), **SHORT}),
    "overlapping groups": (
        OF_CLASSES,
        {"by": ("ward", "pair"), "groups": {"ward": ["s", "n", "7"], "pair": ["yes", "no"]}, **SHORT},
    ),
    "weights": (OF_CLASSES, {"weights": "weight", "weight_bound": 4.0, **SHORT}),
    "levels of people": (OF_CLASSES, {"alpha": [0.2, 0.1], "people": ContributionBound("who", 1, ("visit",)), **SHORT}),
}
"""The columns, and the other arguments of `calibrate_table`."""


def request_of(case: str, **changes: Any) -> dict[str, Any]:
    """The arguments of a case."""
    what, options = CASES[case]
    return {"what": what, "alpha": 0.1, "epsilon": 1.0, **options, **changes}


def records(n: int = 1200) -> pa.Table:
    """Records that all count; rows sum to one."""
    rng = np.random.default_rng(5)
    near = np.concatenate([EDGES, np.nextafter(EDGES, 2), np.nextafter(EDGES, -2)])
    p = rng.dirichlet([1, 1, 1], n)
    p[: len(near), 0] = 1 - near.clip(0, 1)
    p[: len(near), 1:] = np.column_stack([near.clip(0, 1), np.zeros(len(near))])
    labels = [NAMES[0] if i < len(near) else NAMES[i % 3] for i in range(n)]
    f = rng.normal(size=n)
    f[:6] = [0.0, -0.0, 5e-324, 1e300, -1e300, 1e-17]
    columns = {name: p[:, k] for k, name in enumerate(COLUMNS)} | {
        "y": labels,
        "place": pa.array([NAMES.index(label) for label in labels], pa.int32()),
        "p yes": p[:, 1].astype(np.float32),
        "pair": ["yes" if i % 3 else "no" for i in range(n)],
        "ward": ["n", "s", "7"] * (n // 3),
        "who": [i // 4 for i in range(n)],
        "visit": [i % 4 for i in range(n)],
        "weight": rng.integers(0, 5, n).astype(np.float64),
        "f": f,
        "g": rng.normal(size=n).astype(np.float32) + 1,
        "t": np.where(np.arange(n) < 6, 0.0, rng.normal(size=n)),
        "s": np.concatenate([near, -near, [0.0, -0.0, np.inf, 1e308], rng.normal(size=n - 2 * len(near) - 4)]),
        "holes": pa.array([None if i % 5 == 0 else np.nan if i % 7 == 0 else i / n for i in range(n)]),
    }
    return pa.table(columns)


def answer_of(query: str, table: pa.Table, name: str = "counts.csv") -> Path:
    """A new file with DuckDB's answer to a query about a table that it calls records."""
    path = Path(tempfile.mkdtemp(), name)
    with duckdb.connect() as database:
        database.register("records", table)
        database.sql(query).write_csv(str(path))
    return path
