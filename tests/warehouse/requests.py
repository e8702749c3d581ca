"""Requests of every kind, and a table whose scores lie on candidates, near them, and outside."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from confide.candidates import Candidates
from confide.counting import ScoreHistogram
from confide.tables import (
    ClassColumns,
    ContributionBound,
    ScoreColumn,
    TargetColumns,
    class_histograms,
    group_histograms,
    score_histogram,
)
from confide.warehouse import CountingPlan

NAMES = ("cat", "do\\g", "it's")
EDGES = Candidates.unit(60, "logit").edges
COLUMNS = ("p_0", "p_1", "p_2")
OF_CLASSES = ClassColumns(COLUMNS, "y", NAMES)
FEW = {"candidates": Candidates.spread("signed", 200, unit=1.0)}
SHORT = {"candidates": Candidates.unit(60)}
AT_MOST_TWO = ContributionBound("who", 2, ("visit",), "a sample")


def table(n: int = 1200) -> pa.Table:
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
        "place": pa.array([NAMES.index(one) for one in labels], pa.int32()),
        "p yes": p[:, 1].astype(np.float32),
        "ward": ["n", "s", "7"] * (n // 3),
        "who": [i // 4 for i in range(n)],
        "visit": [i % 4 for i in range(n)],
        "f": f,
        "g": rng.normal(size=n).astype(np.float32) + 1,
        "t": np.where(np.arange(n) < 6, 0.0, rng.normal(size=n)),
        "s": np.concatenate([near, -near, [0.0, -0.0, np.inf, 1e308], rng.normal(size=n - 2 * len(near) - 4)]),
        "holes": pa.array([None if i % 5 == 0 else np.nan if i % 7 == 0 else i / n for i in range(n)]),
    }
    return pa.table(columns)


def _one(**options: Any) -> Callable[[Any, CountingPlan, Any], dict[Any, ScoreHistogram]]:
    return lambda source, plan, what: {plan.scores[0]: score_histogram(source, what, plan.candidates, **options)}


def _sides(source: Any, plan: CountingPlan, _: Any) -> dict[Any, ScoreHistogram]:
    named = {name: TargetColumns(("f", "g"), "t", name) for name in plan.scores}
    return {name: score_histogram(source, what, plan.candidates) for name, what in named.items()}


Case = tuple[Any, dict[str, Any], Callable[[Any, CountingPlan, Any], dict[Any, ScoreHistogram]]]
CASES: dict[str, Case] = {
    "classes": (OF_CLASSES, {"candidates": Candidates.unit(60, "logit")}, _one()),
    "positions": (
        ClassColumns(COLUMNS, "place", NAMES, label_positions=True),
        {"neighbors": "replace_one", "n": 1200},
        _one(),
    ),
    "one column": (ClassColumns("p yes", "pair", ("no", "yes")), {}, _one()),
    "scores": (ScoreColumn("s"), {"candidates": Candidates.unit(60, "logit")}, _one()),
    "no candidates": (ScoreColumn("s"), {"candidates": Candidates.unit(1)}, _one()),
    "holes": (ScoreColumn("holes", "lac"), {"skip_incomplete": True, **SHORT}, _one(skip_incomplete=True)),
    "residuals": (TargetColumns("f", "t"), {"candidates": Candidates.spread("residual", 200, unit=1.0)}, _one()),
    "quantiles": (TargetColumns(("f", "g"), "t"), FEW, _one()),
    "default candidates": (TargetColumns(("f", "g"), "t"), {}, _one()),
    "sides": (TargetColumns(("f", "g"), "t", "cqr_sides"), FEW, _sides),
    "each class": (
        OF_CLASSES,
        {"by_class": True, **SHORT},
        lambda source, plan, what: class_histograms(source, what, plan.candidates),
    ),
    "each group": (
        OF_CLASSES,
        {"by": "ward", "groups": ["s", "7", "n", "empty"], "people": AT_MOST_TWO, **SHORT},
        lambda source, plan, what: group_histograms(
            source, what, "ward", ["s", "7", "n", "empty"], plan.candidates, people=AT_MOST_TWO
        ),
    ),
    "levels of people": (
        OF_CLASSES,
        {"alpha": [0.2, 0.1], "people": ContributionBound("who", 1, ("visit",)), **SHORT},
        _one(people=ContributionBound("who", 1, ("visit",))),
    ),
}
"""The columns, the other options, and the same counts by the tables of this library."""


def plan_of(case: str) -> CountingPlan:
    """The plan of a case."""
    what, options, _ = CASES[case]
    return CountingPlan.of(what, **{"alpha": 0.1, "epsilon": 1.0, **options})


def records(n: int = 1200) -> pa.Table:
    """The table, with labels of two classes as well."""
    made = table(n)
    return made.append_column("pair", [["yes" if i % 3 else "no" for i in range(n)]])
