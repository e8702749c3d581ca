"""Sets and intervals of every table equal those of `predict_set` and `predict_interval`."""

from itertools import count

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import confide
from confide import Candidates
from confide.errors import InputError
from confide.tables import ClassColumns, LossColumns, TargetColumns, predict_table
from tests.builders import slow
from tests.calibrations import calibrations_at
from tests.files import in_order_of
from tests.refused import bad_rows, refused
from tests.tables.engines import everyday_on

NAMES = ("ant", "bee", "o'cat", "dog")


@pytest.fixture(scope="module")
def probabilities():
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.ones(4) / 2, 300)


def released(threshold, score="lac"):
    """A calibration with this threshold: all scores equal it, and it is the only finite candidate."""
    return confide.calibrate(np.full(2000, threshold), 0.1, 8.0, score=score, candidates=Candidates.of([threshold]))


@pytest.fixture
def rows(tmp_path):
    """Columns of predictions in the order of the column i."""
    numbers = count()

    def predicted(source, what, release, *names, by=None):
        out = tmp_path / f"{next(numbers)}.parquet"
        predict_table(source, what, release, out, by=by, keep=("i",))
        answer = in_order_of(pq.read_table(out), "i")
        return [answer[name].to_pylist() for name in names]

    return predicted


@pytest.mark.slow(unless="False-float32-duckdb_sql")
@pytest.mark.filterwarnings("ignore:the threshold is 1:confide.CoverageWarning")  # one of the thresholds
@everyday_on("memory", "duckdb_sql", "postgres")
@pytest.mark.parametrize(("listed", "dtype"), [(False, np.float32), *slow([(True, np.float64)])])
def test_sets_are_those_of_predict_set(request, engine, rows, probabilities, listed, dtype):
    if listed:
        request.getfixturevalue("listing")
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
        found, sizes = rows(table, ClassColumns(columns, classes=NAMES), calibration, "prediction_set", "set_size")
        expected = confide.predict_set(p, calibration, NAMES)
        assert found == expected.labels()
        assert sizes == expected.sizes.tolist()


@pytest.mark.slow(unless="duckdb")
@everyday_on("pandas", "csv.gz", "duckdb", "sqlite", "postgres")
def test_thresholds_per_group_and_per_class(engine, rows, tmp_path, probabilities):
    rng = np.random.default_rng(1)
    g = rng.choice(["a", "b"], len(probabilities))
    y = rng.integers(0, 4, len(probabilities))
    scores = confide.lac_score(probabilities, y)
    data = {"i": pa.array(range(len(g)), pa.int64()), "g": g, **{f"p{k}": probabilities[:, k] for k in range(4)}}
    table, columns = engine.table(pa.table(data)), ClassColumns(("p0", "p1", "p2", "p3"), classes=NAMES)
    each = confide.calibrate(scores, 0.3, 5.0, groups=g, names=["a", "b"], score="lac")
    (found,) = rows(table, columns, each, "prediction_set", by="g")
    assert found == confide.predict_set(probabilities, each, NAMES, groups=g).labels()
    names = [NAMES[k] for k in y]
    by_class = confide.calibrate(scores, 0.3, 5.0, groups=names, names=NAMES, score="lac", by="class")
    (found,) = rows(table, columns, by_class, "prediction_set")
    assert found == confide.predict_set(probabilities, by_class, NAMES).labels()
    with refused(InputError, "by"):
        predict_table(table, columns, each, tmp_path / "out.parquet")


@pytest.mark.parametrize("listed", [False, *slow([True])])
def test_rows_without_probabilities_have_no_set(request, engine, tmp_path, listed):
    bad = [[0.5, 0.5], [0.5, None], [float("nan"), 0.5], [1.5, 0.5], [-0.1, 0.5]]
    data = {"i": pa.array(range(5), pa.int64())}
    if listed:
        request.getfixturevalue("listing")
        data["p"] = pa.array(bad, pa.list_(pa.float64()))
    else:
        data |= {f"p{k}": pa.array([row[k] for row in bad], pa.float64()) for k in range(2)}
    table, what = engine.table(pa.table(data)), ClassColumns("p" if listed else ("p0", "p1"), classes=("a", "b"))
    with refused(InputError, "table") as caught:
        predict_table(table, what, released(0.5), tmp_path / "out.parquet")
    assert sum(count for count, _ in bad_rows(caught)) == 4
    assert not list(tmp_path.glob("*.par*"))


@everyday_on("memory", "duckdb_sql", "postgres")
def test_a_table_without_rows_gives_one_without_rows(engine, tmp_path, probabilities):
    """With the columns and types of a table with rows, for every kind of prediction."""
    full = pa.table({"i": np.arange(300), "g": ["a"] * 300, **{f"p_{k}": probabilities[:, k] for k in range(4)}})
    source, lac = engine.table(full.slice(0, 0)), released(0.5)
    whole = engine.table(full)
    wards = calibrations_at("group", {"a": 0.5, "b": 0.5})
    levels = confide.calibrate(probabilities[:, 0], [0.2, 0.1], epsilon=8.0, score="lac")
    sets, p = ClassColumns("p_*"), ("p_0", "p_1")
    for k, (what, release, by, added) in enumerate(
        [
            (sets, lac, None, ["prediction_set", "set_size"]),
            (sets, released(0.5, "aps"), None, ["prediction_set", "set_size"]),
            (sets, wards, "g", ["prediction_set", "set_size"]),
            (sets, levels, None, ["prediction_set_0.2", "set_size_0.2", "prediction_set_0.1", "set_size_0.1"]),
            (TargetColumns(p), released(0.5, "cqr"), None, ["lower", "upper"]),
        ]
    ):
        out, other = tmp_path / f"{k}.parquet", tmp_path / f"full{k}.parquet"
        assert predict_table(source, what, release, out, by=by, keep=("i",)) == {"rows": 0}
        predict_table(whole, what, release, other, by=by, keep=("i",))
        answer, expected = pq.read_table(out), pq.read_table(other)
        assert (answer.num_rows, answer.column_names) == (0, ["i", *added])
        assert answer.select(added).schema.types == expected.select(added).schema.types


@pytest.mark.slow
@everyday_on("duckdb")
@pytest.mark.filterwarnings("ignore::confide.errors.CoverageWarning")  # one side has small scores, the other huge ones
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_intervals_are_those_of_predict_interval(engine, rows, dtype):
    rng = np.random.default_rng(2)
    f = np.sort(rng.normal(size=(300, 2)) * [1, 1e6], axis=1).astype(dtype)
    index = pa.array(range(len(f)), pa.int64())
    table = engine.table(pa.table({"i": index, "lo": f[:, 0], "hi": f[:, 1]}))
    for threshold in (1 / 3, 1e-9, 12345.678):
        calibration = released(threshold, "absolute_residual")
        lower, upper = rows(table, TargetColumns("lo"), calibration, "lower", "upper")
        expected = confide.predict_interval(f[:, 0], calibration)
        assert (lower, upper) == tuple(end.tolist() for end in expected)
    for score in ("cqr", "cqr_low", "cqr_high"):
        calibration = released(-0.1, score)
        lower, upper = rows(table, TargetColumns(("lo", "hi"), score=score), calibration, "lower", "upper")
        expected = confide.predict_interval(f, calibration)
        assert (lower, upper) == tuple(end.tolist() for end in expected)
    sides = confide.calibrate_sides(np.tile(f, (10, 1)), np.tile(f[:, 0] + 0.5, 10), 0.1, 5.0)
    lower, upper = rows(table, TargetColumns(("lo", "hi")), sides, "lower", "upper")
    assert (lower, upper) == tuple(end.tolist() for end in confide.predict_interval(f, sides))


@everyday_on("pandas", "csv.gz", "duckdb", "sqlite", "postgres")
def test_an_infinite_threshold_covers_everything(engine, rows):
    table = engine.table(pa.table({"i": pa.array([0]), "f": [1.0], "p0": [0.0], "p1": [1.0]}))
    with pytest.warns(confide.CoverageWarning):
        residual = confide.calibrate([1.0], 0.1, 1.0, score="absolute_residual", neighbors="replace_one")
    with pytest.warns(confide.CoverageWarning):
        lac = confide.calibrate([1.0], 0.1, 1.0, score="lac", neighbors="replace_one")
    with pytest.warns(confide.CoverageWarning):
        assert rows(table, TargetColumns("f"), residual, "lower", "upper") == [[-np.inf], [np.inf]]
    with pytest.warns(confide.CoverageWarning):
        assert rows(table, ClassColumns(("p0", "p1")), lac, "prediction_set") == [[[0, 1]]]


@everyday_on("pandas", "csv.gz", "duckdb", "sqlite", "postgres")
def test_several_levels_add_columns_for_each(engine, rows, probabilities):
    scores = confide.lac_score(probabilities, np.random.default_rng(1).integers(0, 4, len(probabilities)))
    levels = confide.calibrate(scores, [0.1, 0.25], 20.0, score="lac")
    data = {"i": pa.array(range(len(scores)), pa.int64()), **{f"p{k}": probabilities[:, k] for k in range(4)}}
    names = ("prediction_set_0.25", "set_size_0.25", "prediction_set_0.1", "set_size_0.1")
    what = ClassColumns(("p0", "p1", "p2", "p3"), classes=NAMES)
    found = rows(engine.table(pa.table(data)), what, levels, *names)
    assert len(found) == 2 * len(levels.parts) == 4
    for place, alpha in enumerate(levels.parts):
        expected = confide.predict_set(probabilities, levels.at(alpha), NAMES)
        assert found[2 * place] == expected.labels()
        assert found[2 * place + 1] == expected.sizes.tolist()


def test_sets_of_labels_that_bound_the_false_negatives(engine, rows, probabilities):
    released = confide.calibrate_false_negatives(
        probabilities, probabilities > 0.3, 0.2, 20.0, u=confide.ExperimentalUniforms(5)
    )
    data = {"i": pa.array(range(300), pa.int64()), **{f"p{k}": probabilities[:, k] for k in range(4)}}
    what = LossColumns(probabilities=("p0", "p1", "p2", "p3"), classes=NAMES)
    (found,) = rows(engine.table(pa.table(data)), what, released, "prediction_set")
    assert found == [[NAMES[k] for k in np.flatnonzero(1.0 - p <= released.threshold)] for p in probabilities]
