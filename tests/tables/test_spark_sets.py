"""Sets and intervals that a Spark cluster computes and writes are those of `predict_set` and `predict_interval`."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import confide
from confide import InputError
from confide.support import OutputExistsError
from confide.tables import ClassColumns, TargetColumns, open_table, predict_table
from confide.tables.arrow import ColumnRef
from tests.files import figures_of
from tests.refused import refused
from tests.tables.class_records import NAMES, WARD, N, P, calibrated
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


def test_an_existing_folder_is_not_changed(table, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "kept").write_text("kept")
    with refused(OutputExistsError, "output"):
        predict_table(table, WHAT, calibrated("lac"), tmp_path / "out")
    assert (tmp_path / "out" / "kept").read_text() == "kept"


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
