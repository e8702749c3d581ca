"""Sets and intervals that a Spark cluster computes and writes are those of `predict_set` and `predict_interval`."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confide.tables.sets import with_intervals, with_sets
from confide.tables.writing import write_file, write_table

import confide
from confide import CoverageWarning, InputError
from tests.tables.class_records import NAMES, RNG, WARD, K, N, P, calibrated
from tests.tables.engines import Spark

pytestmark = pytest.mark.xdist_group("spark")


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
@pytest.mark.parametrize("score", ["lac", "aps", "saps(penalty=0.1)"])
def test_sets_are_written_by_the_executors(table, tmp_path, score, by):
    calibration = calibrated(score, by)
    predicted = with_sets(table, "p", calibration, NAMES, group="ward" if by == "group" else None)
    figures = write_table(predicted.drop("p"), str(tmp_path / "out"))
    expected = confide.predict_set(P, calibration, NAMES, groups=WARD if by == "group" else None)
    found = pq.read_table(tmp_path / "out").sort_by("id")
    assert found.column_names == ["id", "ward", "f", "prediction_set", "set_size"]
    assert found["prediction_set"].to_pylist() == expected.labels()
    assert found["set_size"].to_pylist() == expected.sizes.tolist()
    assert figures == {"rows": N, "mean_set_size": pytest.approx(expected.sizes.mean())}


def test_intervals_are_written_by_the_executors(table, tmp_path):
    calibration = confide.calibrate(np.abs(RNG.normal(size=N)), 0.1, 10.0, score="absolute_residual")
    write_table(with_intervals(table, "f", calibration).select("id", "lower", "upper"), str(tmp_path / "out"))
    found = pq.read_table(tmp_path / "out").sort_by("id")
    lower, upper = confide.predict_interval(P[:, 0].astype(float), calibration)
    np.testing.assert_array_equal(found["lower"].to_numpy(), lower)
    np.testing.assert_array_equal(found["upper"].to_numpy(), upper)


@pytest.mark.parametrize("score", ["lac", "aps"])
def test_rows_without_a_set_leave_nothing_behind(spark, tmp_path, score):
    lists = P[:50].tolist()
    lists[3], lists[4], lists[5], lists[6] = None, lists[4][:-1], [None] * K, [1.5] + [0.0] * (K - 1)
    table = Spark(spark, tmp_path).table(pa.table({"p": pa.array(lists, pa.list_(pa.float32()))}))
    with pytest.raises(InputError, match=r"; 4 of 50 rows do not"):
        write_table(with_sets(table, "p", calibrated(score), NAMES), str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_an_existing_folder_is_left_alone(table, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "kept").write_text("kept")
    with pytest.raises(InputError, match="exists; choose another"):
        write_table(with_sets(table, "p", calibrated("lac"), NAMES), str(tmp_path / "out"))
    assert (tmp_path / "out" / "kept").read_text() == "kept"


def test_everything_is_in_the_set_of_an_infinite_threshold(table, tmp_path):
    with pytest.warns(CoverageWarning):
        # With a public n too small for the rank the answer is +inf without a draw.
        calibration = confide.calibrate([0.5] * 3, 0.1, 0.1, score="aps", neighbors="replace_one")
    predicted = with_sets(table, "p", calibration, NAMES).aggregate(least=lambda t: t.set_size.min())
    assert predicted.to_pyarrow().to_pylist() == [{"least": K}]


def test_a_file_is_written_partition_by_partition(spark, tmp_path):
    """The driver asks for a partition after the other: one job each, and none ahead of its time."""
    from confide.tables.reading import arrow_batches

    from confide.tables.spark import spark_table

    for part in range(6):
        rows = slice(part * 300, part * 300 + 300)
        columns = {"id": np.arange(N)[rows], "p": pa.array(P[rows].tolist(), pa.list_(pa.float32()))}
        (tmp_path / "in").mkdir(exist_ok=True)
        pq.write_table(pa.table(columns), tmp_path / "in" / f"{part}.parquet")
    context = spark.sparkContext
    spark.conf.set("spark.sql.files.openCostInBytes", "128m")  # a partition per file
    try:
        table = spark_table(spark, str(tmp_path / "in"))
        calibration = calibrated("aps")
        predicted = with_sets(table, "p", calibration, NAMES).drop("p")
        context.setJobGroup("one-by-one", "")
        batches = arrow_batches(predicted, 1000)
        first = next(batches)
        assert len(context.statusTracker().getJobIdsForGroup("one-by-one")) <= 2
        assert first.num_rows + sum(batch.num_rows for batch in batches) == 1800
        assert len(context.statusTracker().getJobIdsForGroup("one-by-one")) >= 6
        assert write_file(predicted, tmp_path / "out.parquet")["rows"] == 1800
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
        spark.conf.unset("spark.sql.files.openCostInBytes")
    expected = confide.predict_set(P[:1800], calibration, NAMES)
    found = pq.read_table(tmp_path / "out.parquet").sort_by("id")
    assert found["prediction_set"].to_pylist() == expected.labels()
