"""Sets and intervals that a Spark cluster computes and writes are those of `predict_set` and `predict_interval`."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import confide
from confide import CoverageWarning, InputError
from confide.support import OutputExistsError
from confide.tables import ClassColumns, TargetColumns, open_table, predict_table
from confide.tables.arrow import ColumnRef
from tests.files import figures_of
from tests.refused import bad_rows, refused
from tests.tables.class_records import NAMES, RNG, WARD, K, N, P, calibrated
from tests.tables.engines import Spark

WHAT = ClassColumns("p", classes=NAMES)
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]


@pytest.fixture(scope="module")
def table(spark, tmp_path_factory):
    columns = {
        "id": np.arange(N),
        "ward": WARD,
        "f": P[:, 0].astype(float),
        "p": pa.array(P.tolist(), pa.list_(pa.float32())),
    }
    return Spark(spark, tmp_path_factory.mktemp("sets")).table(pa.table(columns))


@pytest.mark.parametrize("by", [None, "group", "class"])
@pytest.mark.parametrize("score", ["lac", "aps_deterministic", "saps_deterministic(penalty=0.1)"])
def test_sets_are_written_by_the_executors(table, tmp_path, score, by):
    calibration = calibrated(score, by)
    figures = predict_table(table, WHAT, calibration, tmp_path / "out", by="ward" if by == "group" else None)
    expected = confide.predict_set(P, calibration, NAMES, groups=WARD if by == "group" else None)
    found = pq.read_table(tmp_path / "out").sort_by("id")
    assert found.column_names == ["id", "ward", "f", "prediction_set", "set_size"]
    assert found["prediction_set"].to_pylist() == expected.labels()
    assert found["set_size"].to_pylist() == expected.sizes.tolist()
    assert figures == figures_of(expected)


def test_intervals_are_written_by_the_executors(table, tmp_path):
    calibration = confide.calibrate(np.abs(RNG.normal(size=N)), 0.1, 10.0, score="absolute_residual")
    predict_table(table, TargetColumns("f"), calibration, tmp_path / "out", keep=("id",))
    found = pq.read_table(tmp_path / "out").sort_by("id")
    lower, upper = confide.predict_interval(P[:, 0].astype(float), calibration)
    np.testing.assert_array_equal(found["lower"].to_numpy(), lower)
    np.testing.assert_array_equal(found["upper"].to_numpy(), upper)


def test_intervals(table, spark, tmp_path):
    released = confide.calibrate(np.random.default_rng(0).random(4000), 0.1, 10.0, score="gamma")
    price = np.exp(np.random.default_rng(5).normal(size=500))
    priced = Spark(spark, tmp_path).table(pa.table({"id": np.arange(500), "price": price}))
    assert predict_table(priced, TargetColumns("price"), released, tmp_path / "out") == {"rows": 500}
    found = pq.read_table(tmp_path / "out").sort_by("id")
    lower, upper = confide.predict_interval(price, released)
    np.testing.assert_array_equal(found["lower"].to_numpy(), lower)
    np.testing.assert_array_equal(found["upper"].to_numpy(), upper)
    bad = Spark(spark, tmp_path).table(pa.table({"id": [1, 2], "price": [1.0, -1.0]}))
    with pytest.raises(InputError):
        predict_table(bad, TargetColumns("price"), released, tmp_path / "none")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("score", ["lac", "aps_deterministic"])
def test_the_executors_write_tables_without_rows(spark, tmp_path, score):
    schema = pa.schema([("id", pa.int64()), ("ward", pa.string()), ("p", pa.list_(pa.float32()))])
    table = Spark(spark, tmp_path).table(schema.empty_table())
    assert predict_table(table, WHAT, calibrated(score), tmp_path / "out") == {"rows": 0}
    found = pq.read_table(tmp_path / "out")
    assert (found.num_rows, found.column_names) == (0, ["id", "ward", "prediction_set", "set_size"])


@pytest.mark.parametrize("score", ["lac", "aps_deterministic"])
def test_rows_without_a_set_leave_nothing_behind(spark, tmp_path, score):
    lists = P[:50].tolist()
    lists[3], lists[4], lists[5], lists[6] = None, lists[4][:-1], [None] * K, [1.5] + [0.0] * (K - 1)
    table = Spark(spark, tmp_path).table(pa.table({"p": pa.array(lists, pa.list_(pa.float32()))}))
    with refused(InputError, "table") as caught:
        predict_table(table, WHAT, calibrated(score), tmp_path / "out")
    assert bad_rows(caught)[0][0] == 4
    assert not (tmp_path / "out").exists()


def test_an_existing_folder_is_not_changed(table, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "kept").write_text("kept")
    with refused(OutputExistsError, "output"):
        predict_table(table, WHAT, calibrated("lac"), tmp_path / "out")
    assert (tmp_path / "out" / "kept").read_text() == "kept"


def test_an_infinite_threshold_gives_full_sets(table, tmp_path):
    with pytest.warns(CoverageWarning):
        # With a public n too small for the rank the answer is +inf without a draw.
        calibration = confide.calibrate([0.5] * 3, 0.1, 0.1, score="aps_deterministic", neighbors="replace_one")
    with pytest.warns(CoverageWarning):
        predict_table(table, WHAT, calibration, tmp_path / "out", keep=())
    assert set(pq.read_table(tmp_path / "out")["set_size"].to_pylist()) == {K}


@pytest.mark.filterwarnings("ignore:the threshold is:confide.CoverageWarning")  # labels that are ranked last
def test_several_levels_are_written_by_the_executors(table, tmp_path):
    scores = confide.class_score(P, RNG.integers(0, K, N), "aps_deterministic")
    levels = confide.calibrate_levels(scores, [0.1, 0.3], 20.0, score="aps_deterministic")
    predict_table(table, WHAT, levels, tmp_path / "out", keep=("id",))
    found = pq.read_table(tmp_path / "out").sort_by("id")
    assert len(levels.parts) == 2
    for alpha, part in levels.parts.items():
        expected = confide.predict_set(P, part, NAMES)
        assert found[f"prediction_set_{float(alpha):g}"].to_pylist() == expected.labels()


def test_a_file_is_written_partition_by_partition(spark, tmp_path):
    """The driver reads one partition after the other: one job each, and none in advance."""
    for part in range(6):
        rows = slice(part * 300, part * 300 + 300)
        columns = {"id": np.arange(N)[rows], "p": pa.array(P[rows].tolist(), pa.list_(pa.float32()))}
        (tmp_path / "in").mkdir(exist_ok=True)
        pq.write_table(pa.table(columns), tmp_path / "in" / f"{part}.parquet")
    context = spark.sparkContext
    spark.conf.set("spark.sql.files.openCostInBytes", "128m")  # a partition per file
    try:
        with open_table(spark.read.parquet(str(tmp_path / "in"))) as table:
            context.setJobGroup("one-by-one", "")
            batches = table.batches((ColumnRef("p", "numbers"),), 1000)
            first = next(batches)
            assert len(context.statusTracker().getJobIdsForGroup("one-by-one")) <= 2
            assert first.num_rows + sum(batch.num_rows for batch in batches) == 1800
            assert len(context.statusTracker().getJobIdsForGroup("one-by-one")) >= 6
            calibration = calibrated("aps_deterministic")
            assert predict_table(table, WHAT, calibration, tmp_path / "out.parquet")["rows"] == 1800
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
        spark.conf.unset("spark.sql.files.openCostInBytes")
    expected = confide.predict_set(P[:1800], calibration, NAMES)
    found = pq.read_table(tmp_path / "out.parquet").sort_by("id")
    assert found["prediction_set"].to_pylist() == expected.labels()
