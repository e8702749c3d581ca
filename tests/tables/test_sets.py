"""Sets and intervals of every engine equal those of `predict_set` and `predict_interval`."""

import numpy as np
import pyarrow as pa
import pytest
from confide.tables.sets import with_intervals, with_sets

import confide
from confide import Candidates, InputError

NAMES = ("ant", "bee", "o'cat", "dog")


@pytest.fixture(scope="module")
def probabilities():
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.ones(4) / 2, 300)


def released(threshold, score="lac"):
    """A calibration with this threshold: all scores are at it, and it is the only finite candidate."""
    return confide.calibrate(np.full(2000, threshold), 0.1, 8.0, score=score, candidates=Candidates.of([threshold]))


def rows(expression, *names):
    answer = expression.select("i", *names).order_by("i").to_pyarrow()
    return [answer.column(name).to_pylist() for name in names]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("listed", [False, True])
def test_sets_are_those_of_predict_set(engine, probabilities, dtype, listed):
    p = probabilities.astype(dtype)
    index = pa.array(range(len(p)), pa.int64())
    if listed:
        table = engine.table(pa.table({"i": index, "p": pa.array(p.tolist(), pa.list_(pa.from_numpy_dtype(dtype)))}))
        columns = "p"
    else:
        table = engine.table(pa.table({"i": index, **{f"p{k}": p[:, k] for k in range(4)}}))
        columns = ("p0", "p1", "p2", "p3")
    for threshold in (1.0 - float(p[3, 1]), 1.0 - float(p[5, 2]), 0.0, 1.0, 0.7):
        calibration = released(threshold)
        found, sizes = rows(with_sets(table, columns, calibration, NAMES), "prediction_set", "set_size")
        expected = confide.predict_set(p, calibration, NAMES)
        assert found == expected.labels()
        assert sizes == expected.sizes.tolist()


def test_thresholds_per_group_and_per_class(engine, probabilities):
    rng = np.random.default_rng(1)
    g = rng.choice(["a", "b"], len(probabilities))
    y = rng.integers(0, 4, len(probabilities))
    scores = confide.lac_score(probabilities, y)
    data = {"i": pa.array(range(len(g)), pa.int64()), "g": g, **{f"p{k}": probabilities[:, k] for k in range(4)}}
    table, columns = engine.table(pa.table(data)), ("p0", "p1", "p2", "p3")
    each = confide.calibrate_groups(scores, g, ["a", "b"], 0.3, 5.0, score="lac")
    (found,) = rows(with_sets(table, columns, each, NAMES, group="g"), "prediction_set")
    assert found == confide.predict_set(probabilities, each, NAMES, groups=g).labels()
    names = [NAMES[k] for k in y]
    by_class = confide.calibrate_groups(scores, names, NAMES, 0.3, 5.0, score="lac", by="class")
    (found,) = rows(with_sets(table, columns, by_class, NAMES), "prediction_set")
    assert found == confide.predict_set(probabilities, by_class, NAMES).labels()
    with pytest.raises(InputError, match="group must name the column"):
        with_sets(table, columns, each, NAMES)


@pytest.mark.parametrize("listed", [False, True])
def test_rows_without_probabilities_get_null(engine, listed):
    bad = [[0.5, 0.5], [0.5, None], [float("nan"), 0.5], [1.5, 0.5], [-0.1, 0.5]]
    data = {"i": pa.array(range(5), pa.int64())}
    if listed:
        data["p"] = pa.array(bad, pa.list_(pa.float64()))
    else:
        data |= {f"p{k}": pa.array([row[k] for row in bad], pa.float64()) for k in range(2)}
    table = engine.table(pa.table(data))
    expression = with_sets(table, "p" if listed else ("p0", "p1"), released(0.5), ("a", "b"))
    found, sizes = rows(expression, "prediction_set", "set_size")
    assert found == [["a", "b"], None, None, None, None]
    assert sizes == [2, None, None, None, None]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_intervals_are_those_of_predict_interval(engine, dtype):
    rng = np.random.default_rng(2)
    f = np.sort(rng.normal(size=(300, 2)) * [1, 1e6], axis=1).astype(dtype)
    index = pa.array(range(len(f)), pa.int64())
    table = engine.table(pa.table({"i": index, "lo": f[:, 0], "hi": f[:, 1]}))
    for threshold in (1 / 3, 1e-9, 12345.678):
        calibration = released(threshold, "absolute_residual")
        lower, upper = rows(with_intervals(table, "lo", calibration), "lower", "upper")
        expected = confide.predict_interval(f[:, 0], calibration)
        assert (lower, upper) == tuple(end.tolist() for end in expected)
    for score in ("cqr", "cqr_low", "cqr_high"):
        calibration = released(-0.1, score)
        lower, upper = rows(with_intervals(table, ("lo", "hi"), calibration), "lower", "upper")
        expected = confide.predict_interval(f, calibration)
        assert (lower, upper) == tuple(end.tolist() for end in expected)
    sides = confide.calibrate_sides(np.tile(f, (10, 1)), np.tile(f[:, 0] + 0.5, 10), 0.1, 5.0)
    lower, upper = rows(with_intervals(table, ("lo", "hi"), sides), "lower", "upper")
    assert (lower, upper) == tuple(end.tolist() for end in confide.predict_interval(f, sides))


def test_an_infinite_threshold_covers_everything(engine):
    table = engine.table(pa.table({"i": pa.array([0]), "f": [1.0], "p0": [0.0], "p1": [1.0]}))
    with pytest.warns(confide.CoverageWarning):
        residual = confide.calibrate([1.0], 0.1, 1.0, score="absolute_residual", neighbors="replace_one")
    with pytest.warns(confide.CoverageWarning):
        lac = confide.calibrate([1.0], 0.1, 1.0, score="lac", neighbors="replace_one")
    assert rows(with_intervals(table, "f", residual), "lower", "upper") == [[-np.inf], [np.inf]]
    assert rows(with_sets(table, ("p0", "p1"), lac), "prediction_set") == [[[0, 1]]]


def test_other_scores_are_refused(engine):
    table = engine.table(pa.table({"i": pa.array([0]), "p0": [0.0], "p1": [1.0], "set_size": [1]}))
    with pytest.raises(InputError, match="made for the score 'absolute_residual'"):
        with_sets(table.drop("set_size"), ("p0", "p1"), released(0.5, "absolute_residual"))
    with pytest.raises(InputError, match="'set_size' is in the table"):
        with_sets(table, ("p0", "p1"), released(0.5))
