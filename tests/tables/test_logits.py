"""Columns of logits: their softmax in double precision for every source; the same as in numpy."""

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide.errors import InputError
from confide.tables import (
    ClassColumns,
    calibrate_table,
    predict_table,
    score_histogram,
)
from tests.files import in_order_of
from tests.refused import bad_rows, refused
from tests.tables.engines import everyday_on

NAMES = ("ant", "bee", "cat")
RNG = np.random.default_rng(0)
N = 400
Z = (3 * RNG.standard_normal((N, 3))).astype(np.float32)
Z[:4] = [[1000, 1000, -1000], [-1e30, 1e30, 0], [88, -88, 88], [5e-324, 0, 0]]
CANDIDATES = confide.Candidates.unit(64)


def softmax(z):
    """Computed row by row, in double precision."""
    z = z.astype(np.float64)
    e = np.exp(z - z.max(axis=1)[:, None])
    return e / e.sum(axis=1)[:, None]


LABELS = (softmax(Z).cumsum(axis=1) < RNG.random(N)[:, None]).sum(axis=1).clip(max=2)


def table(**more):
    columns = {f"z_{name}": Z[:, k] for k, name in enumerate(NAMES)}
    lists = pa.array(list(Z), pa.list_(pa.float32()))
    labels = np.array(NAMES)[LABELS]
    return pa.table({**columns, "z": lists, "label": labels, "k": LABELS, "i": np.arange(N), **more})


@pytest.mark.slow(unless="lac-duckdb_sql")
@everyday_on("memory", "duckdb_sql", "postgres")
@pytest.mark.parametrize("score", ["lac", "aps_deterministic"])
def test_scores_and_sets_are_those_of_the_softmax(engine, tmp_path, score):
    """From columns and from lists, for every source: the same counts, and sets that are equal in every bit."""
    p = softmax(Z)
    scores = np.asarray(confide.class_score(p, LABELS, score))
    cuts = confide.Candidates.of(np.unique(scores[scores <= 1])[::3])
    source = engine.table(table() if engine.lists else table().drop_columns(["z"]))
    lists = [ClassColumns("z", "label", NAMES, score, logits=True)] if engine.lists else []
    for what in (*lists, ClassColumns("z_*", "label", score=score, logits=True)):
        assert (
            score_histogram(source, what, cuts).counts == confide.ScoreHistogram.from_scores(scores, cuts).counts
        ).all()
    released = calibrate_table(source, what, 0.2, mechanism="none", neighbors="replace_one", candidates=cuts)
    assert released.about == {"outputs": "logits; softmax in double precision"}
    found = predict_table(source, what, released, tmp_path / "sets.parquet", keep=["i"])
    ours = confide.predict_set(p, released)
    assert found["mean_set_size"] == pytest.approx(ours.sizes.mean())
    import pyarrow.parquet as pq

    sets = in_order_of(pq.read_table(tmp_path / "sets.parquet"), "i").column("prediction_set").to_pylist()
    assert sets == ours.labels()


@pytest.mark.parametrize(("broken", "value"), [([7], np.nan), ([3, 9], np.inf)])
def test_invalid_logits_raise_an_error(broken, value):
    z = Z[:, 0].copy()
    z[broken] = value
    held = table().set_column(0, "z_ant", pa.array(z))
    with refused(InputError, "table") as caught:
        score_histogram(held, ClassColumns("z_*", "label", logits=True), CANDIDATES)
    assert bad_rows(caught) == [(len(broken), broken[0])]


@pytest.mark.parametrize("pair", [False, True])
def test_probabilities_are_noticed(pair):
    p = softmax(Z[4:])
    columns = {"z": p[:, 0]} if pair else {f"z_{name}": p[:, k] for k, name in enumerate(NAMES)}
    held = pa.table({**columns, "label": np.array(NAMES[:2] if pair else NAMES)[LABELS[4:] % (2 if pair else 3)]})
    what = ClassColumns("z", "label", NAMES[:2], logits=True) if pair else ClassColumns("z_*", "label", logits=True)
    with refused(InputError, "table"):
        score_histogram(held, what, CANDIDATES)
    few = held.slice(0, 2)  # too few rows to decide
    assert score_histogram(few, what, CANDIDATES).total == 2
