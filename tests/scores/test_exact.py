"""One score per record: calibration, sets and tensors agree bit for bit, and with a loop over the formula."""

import math

import numpy as np
import pytest

import confide
from confide.scores.classification import set_mask
from confide.scores.kinds import tempered
from confide.scores.ranked import magic
from tests.any_row_sums import any_row_sums  # noqa: F401 - a fixture
from tests.builders import grid

pytestmark = pytest.mark.filterwarnings("ignore::confide.CoverageWarning")

SCORES = [
    "lac",
    "aps_deterministic",
    "raps_deterministic(penalty=0.01,k_reg=2)",
    "saps_deterministic(penalty=0.1)",
    "margin",
    "top_k",
    "aps",
    "raps(penalty=0.3,k_reg=1)",
    "saps(penalty=0.1)",
    "lac(temperature=2)",
    "raps(penalty=0.3,k_reg=1,temperature=0.5)",
]


def formula(row, y, name, u):
    """The definition of each score, in plain Python."""
    family = confide.scores.kinds.score_kind(name)
    if family.temperature is not None:
        row, name = tempered(np.array([row]), family.temperature)[0], name.partition("(")[0]
    p = [float(v) for v in row]
    penalty, k_reg = family.parameters.get("penalty", 0.0), family.parameters.get("k_reg", 0.0)
    rank = sum(v >= p[y] for v in p)
    if name == "lac":
        return 1.0 - p[y]
    if name == "top_k":
        return float(rank)
    if name == "margin":
        return max(v for k, v in enumerate(p) if k != y) - p[y]
    if name.startswith("saps"):
        return u * max(p) if rank == 1 else max(p) + ((rank - 2.0) + u) * penalty
    c = magic(len(p))
    above = math.fsum((v + c) - c for v in p if v > p[y])
    group = math.fsum((v + c) - c for v in p if v == p[y])
    return (above + u * group) + max(rank - k_reg, 0.0) * penalty


def tables():
    rng = np.random.default_rng(1)
    soft = rng.dirichlet(np.ones(150) / 10, 30)
    yield "many classes, float64", soft
    yield "many classes, float32", soft.astype(np.float32)
    yield "float16", rng.dirichlet(np.ones(7), 40).astype(np.float16)
    yield "ties", rng.integers(0, 4, (40, 6)) / 8
    yield "hard", np.eye(5)[rng.integers(0, 5, 20)]
    yield "flat", np.full((9, 80), 1 / 80)
    yield "saturated", np.where(np.eye(3, dtype=bool)[rng.integers(0, 3, 9)], np.float32(1), np.float32(1e-30))
    yield "rows that sum to seven", rng.random((12, 14))
    yield "one row", rng.dirichlet(np.ones(70), 1)
    yield "fewer rows than classes", rng.dirichlet(np.ones(70), 5)
    yield "two classes", rng.dirichlet(np.ones(2), 30)
    yield "integers", np.eye(4, dtype=np.int64)
    yield "negative zero", np.array([[-0.0, 1.0], [0.5, 0.5]])
    yield "columns first", np.asfortranarray(soft[:, :9])


@pytest.mark.parametrize(("score", "table"), grid(SCORES, list(dict(tables()))))
def test_scores_and_sets_agree_bit_for_bit(score, table):
    p = dict(tables())[table]
    rng = np.random.default_rng(2)
    u = rng.random(len(p)) if confide.scores.score_kind(score).randomised else None
    before = p.copy()
    whole = confide.all_scores(p, score, u=u)
    wanted = [
        [formula(row, y, score, 1.0 if u is None else u[i]) for y in range(p.shape[1])] for i, row in enumerate(p)
    ]
    np.testing.assert_array_equal(whole, np.array(wanted))
    for y in rng.integers(0, p.shape[1], (3, len(p))):
        np.testing.assert_array_equal(confide.class_score(p, y, score, u=u), whole[np.arange(len(p)), y])
    values = np.unique(whole)
    some = rng.choice(values, min(40, len(values)), replace=False)
    for threshold in [*some, *np.nextafter(some, np.inf), *np.nextafter(some, -np.inf), -2.0, 0.0, 1.0, np.inf]:
        np.testing.assert_array_equal(set_mask(p, score, threshold, u=u), whole <= threshold)
    each_row, each_class = rng.choice(values, len(p)), rng.choice(values, p.shape[1])
    np.testing.assert_array_equal(set_mask(p, score, each_row, u=u), whole <= each_row[:, None])
    np.testing.assert_array_equal(set_mask(p, score, each_class, u=u, per_class=True), whole <= each_class)
    np.testing.assert_array_equal(p, before)
