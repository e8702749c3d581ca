"""Data frames of Spark: the counts, reasons and sets of the same table in memory, for columns of any name and type."""

import re
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import confide
from confide import Candidates, ConfideError
from confide.errors import FormatError, InputError, InputTypeError, MissingExtraError
from confide.tables import (
    ClassColumns,
    ContributionBound,
    EngineError,
    ScoreColumn,
    TargetColumns,
    calibrate_table,
    evaluate_table,
    group_histograms,
    open_table,
    predict_frame,
    predict_table,
    score_histogram,
)
from confide.tables.arrow import ColumnRef
from confide.tables.evaluate import monitoring_coverage_counts
from tests.refused import PLANTED, assert_error_is_private, assert_no_private_value, refused
from tests.tables.class_records import NAMES, WARD, N, P, Y, calibrated
from tests.tables.engines import Spark

UNIT, PAIR = Candidates.unit(50), ClassColumns("p", "y", ("no", "yes"))
TYPES = {
    "byte": pa.array([0, 1, 2, None], pa.int8()),
    "long": pa.array([0, 1, 2**53 + 1, -1]),
    "float": pa.array([0.1, np.nan, 1.5, None], pa.float32()),
    "double": pa.array([0.1, 1.0, -0.0, np.inf]),
    "decimal": pa.array([Decimal("0.1"), Decimal("0.7"), Decimal("1.0000000000000000000001"), None]),
    "string": pa.array(["no", "yes", "", None]),
    "bool": pa.array([True, False, None, True]),
    "date": pa.array([1, 2, 3, None], pa.date32()),
    "timestamp": pa.array([1, 2, 3, None], pa.timestamp("us", "UTC")),
    "binary": pa.array([b"no", b"yes", b"", None]),
    "floats": pa.array([[0.5, 0.5], [0.25, 0.75], [0.5, None], [1.0]], pa.list_(pa.float32())),
    "doubles": pa.array([[0.5, 0.5], [0.1, 0.9], None, [0.5, 1.5]]),
    "longs": pa.array([[0, 1], [1, 0], [1, 0], [2, -1]]),
    "decimals": pa.array([[Decimal("0.1"), Decimal("0.9")], None, [None, Decimal("0.5")], [Decimal("0.5")]]),
    "texts": pa.array([["a"], [], None, ["b"]]),
    "struct": pa.array([{"a": 1}, None, {"a": 2}, {"a": 3}]),
}
ROLES = {
    "score": lambda source, x: score_histogram(source, ScoreColumn(x), UNIT).counts.tolist(),
    "score in its range": lambda source, x: score_histogram(source, ScoreColumn(x, "lac"), UNIT).counts.tolist(),
    "probability": lambda source, x: score_histogram(source, ClassColumns(x, "y", ("no", "yes")), UNIT).counts.tolist(),
    "probabilities": lambda source, x: score_histogram(source, ClassColumns(x, "n"), UNIT).counts.tolist(),
    "APS": lambda source, x: score_histogram(source, ClassColumns(x, "n", None, "aps"), UNIT).total,
    "target": lambda source, x: score_histogram(source, TargetColumns("p", x), UNIT).counts.tolist(),
    "label": lambda source, x: score_histogram(source, ClassColumns("p", x, ("no", "yes")), UNIT).counts.tolist(),
    "class": lambda source, x: score_histogram(source, ClassColumns("q", x), UNIT).counts.tolist(),
    "group": lambda source, x: str(group_histograms(source, ScoreColumn("p"), x, [0, 1], UNIT)),
    "named group": lambda source, x: str(group_histograms(source, ScoreColumn("p"), x, ["no", "yes"], UNIT)),
    "person": lambda source, x: score_histogram(source, ScoreColumn("p"), UNIT, people=once(x, "n")).total,
    "order": lambda source, x: score_histogram(source, ScoreColumn("p"), UNIT, people=once("y", x)).counts.tolist(),
    "weight": lambda source, x: calibrate_table(source, ScoreColumn("p"), 0.1, 1.0, weights=x, weight_bound=2.0).score,
    "complete": lambda source, x: score_histogram(source, ScoreColumn(x), UNIT, skip_incomplete=True).counts.tolist(),
    "complete lists": lambda source, x: score_histogram(
        source, ClassColumns(x, "n", None, "aps"), UNIT, skip_incomplete=True
    ).total,
}  # fmt: skip


def on_spark(test):
    """A long test on the cluster."""
    return pytest.mark.long(pytest.mark.xdist_group("spark")(test))


def once(person, order):
    return ContributionBound(person, 1, (order,))


def outcome(call, source, column):
    """The result, or the error in the words that do not depend on the source: no positions of rows, and no titles."""
    try:
        return call(source, column)
    except ConfideError as error:
        words = re.sub(
            r",( the first is)? row \d+| \(rows count from 0\)|the (data frame|table in memory)", "", str(error)
        )
        return type(error), words.partition("; its columns are")[0].partition(". Its columns are")[0]


@pytest.fixture
def engine(spark, tmp_path):
    return Spark(spark, tmp_path)


@on_spark
@pytest.mark.parametrize("role", ROLES)
def test_every_type_of_column_gives_the_counts_and_reasons_of_the_table_in_memory(engine, role):
    """Other columns may have types that Arrow does not have."""
    columns = {"p": [0.5, 0.25, 0.5, 0.75], "y": ["no", "yes", "yes", "no"], "n": [0, 1, 1, 0]}
    table = pa.table({**columns, "q": [[0.5, 0.5]] * 4, **TYPES})
    frame = engine.table(table).selectExpr("make_ym_interval(1) AS a", "*", "make_interval(1) AS b")
    found = {name: outcome(ROLES[role], frame, name) for name in TYPES}
    assert found == {name: outcome(ROLES[role], table, name) for name in TYPES}


ODD = {"p": "p.1 `a`", "y": "true label", "n": "ID", "other": "id", "s": "s`", "g": "g; --"}


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_columns_of_any_name(engine):
    """Dots, blanks, backticks, and names that differ in case only; the name of two columns is refused."""
    table = pa.table({"p": P[:, :2].tolist(), "y": Y % 2, "n": np.arange(N), "other": Y, "s": P[:, 0], "g": WARD})
    plain = engine.table(table)
    frame = plain.toDF(*(ODD[name] for name in table.column_names))
    for what, odd in (
        (ScoreColumn("s", "lac"), ScoreColumn(ODD["s"], "lac")),
        (ScoreColumn("n"), ScoreColumn(ODD["n"])),
        (ScoreColumn("other"), ScoreColumn(ODD["other"])),
    ):
        assert score_histogram(frame, odd).counts.tolist() == score_histogram(table, what).counts.tolist()
    bound = ContributionBound(ODD["other"], 2, (ODD["n"],), "it's")
    found = group_histograms(frame, ScoreColumn(ODD["s"]), ODD["g"], ["north", "south"], people=bound)
    bound = ContributionBound("other", 2, ("n",), "it's")
    same = group_histograms(table, ScoreColumn("s"), "g", ["north", "south"], people=bound)
    assert [one.counts.tolist() for one in found.values()] == [one.counts.tolist() for one in same.values()]
    assert calibrate_table(frame, ScoreColumn(ODD["s"], "lac"), 0.2, 1.0).guarantee.n is None
    sets = predict_frame(frame, ClassColumns(ODD["p"]), confide.calibrate([0.3] * 500, 0.2, 5.0, score="lac"))
    assert sets.columns == ["true label", "ID", "id", "s`", "g; --", "prediction_set", "set_size"]
    twice = plain.selectExpr("s", "s AS x", "n AS x")
    assert score_histogram(twice, ScoreColumn("s")).total == N
    for what in (ScoreColumn("x"), ScoreColumn("X")):
        with refused(InputError, "column"):
            score_histogram(twice, what)


@pytest.fixture
def records(engine):
    """The records of five classes."""
    lists = pa.array(P.tolist(), pa.list_(pa.float32()))
    label = [NAMES[k] for k in Y]
    return engine.table(pa.table({"id": np.arange(N), "ward": WARD, "label": label, "p": lists, "f": P[:, 0]}))


CASES = [("lac", None), ("aps_deterministic", "group"), ("saps_deterministic(penalty=0.1)", "class")]


@on_spark
@pytest.mark.parametrize(("score", "by"), CASES)
def test_sets_are_a_frame(records, tmp_path, score, by):
    """Those of `predict_set`, and the coverage of these; nothing runs before the frame is written."""
    calibration, what = calibrated(score, by), ClassColumns("p", "label", NAMES)
    ward = "ward" if by == "group" else None
    expected = confide.predict_set(P, calibration, NAMES, groups=WARD if by == "group" else None)
    frame = predict_frame(records, what, calibration, by=ward)
    assert frame.columns == ["id", "ward", "label", "f", "prediction_set", "set_size"]
    frame.write.parquet(str(tmp_path / "out"))
    predict_table(records, what, calibration, tmp_path / "out.parquet", by=ward)
    for written in ("out", "out.parquet"):
        found = pq.read_table(tmp_path / written).sort_by("id")
        assert found["label"].to_pylist() == [NAMES[k] for k in Y]
        assert found["prediction_set"].to_pylist() == expected.labels()
        assert found["set_size"].to_pylist() == expected.sizes.tolist()
    covered = expected.contains(np.array(NAMES)[Y])
    assert evaluate_table(records, what, calibration, by=ward).coverage.value == covered.mean()
    if by is None:
        assert monitoring_coverage_counts(records, what, calibration).tolist() == [[covered.sum(), N - covered.sum()]]


@on_spark
def test_intervals_and_rows_without_one(engine):
    """A job that meets a row without a prediction fails, in words without values; incomplete rows can be left out."""
    released = confide.calibrate(np.random.default_rng(0).random(4000), 0.1, 10.0, score="gamma")
    price = np.exp(np.random.default_rng(5).normal(size=500))
    frame = engine.table(pa.table({"id": np.arange(502), "price": [*price.tolist(), None, None]}))
    whole = predict_frame(frame, TargetColumns("price"), released, skip_incomplete=True)
    found = whole.toArrow().sort_by("id")
    for name, end in zip(("lower", "upper"), confide.predict_interval(price, released), strict=True):
        np.testing.assert_array_equal(found[name].to_numpy(), end)
    with pytest.raises(Exception, match=r"column 'price' must hold a positive number .* 2 do not") as caught:
        predict_frame(frame, TargetColumns("price"), released, keep=[]).toArrow()
    assert "one partition" in str(caught.value)
    with refused(InputError, "column"):
        predict_frame(frame.selectExpr("*", "make_interval(1) AS x"), TargetColumns("price"), released)


def test_sets_of_other_tables_are_no_frame(tmp_path):
    with refused(InputTypeError, "frame"):
        predict_frame(
            pa.table({"p": [[0.5, 0.5]]}), ClassColumns("p"), confide.calibrate([0.3] * 99, 0.5, 9.0, score="lac")
        )


@pytest.mark.parametrize("address", ["spark://host:7077", "sc://host/;token=hidden"])
def test_sessions_are_opened_by_the_user(address):
    with refused(InputError, "source") as caught, open_table(address, "t"):
        pass
    assert "hidden" not in str(caught.value)


def test_a_missing_package_is_named(monkeypatch):
    """The package of the extra that Spark needs, and not Spark's own advice."""
    monkeypatch.setattr("confide.support.installed.find_spec", lambda name: None if name == "pandas" else name)
    with pytest.raises(MissingExtraError, match=r"'pandas'.*confide\[spark\]"):
        score_histogram(SimpleNamespace(mapInArrow=None), ScoreColumn("s"))


@pytest.fixture
def planted(tmp_path):
    """A Parquet file of planted values, as texts and as numbers."""
    path = tmp_path / "planted.parquet"
    pq.write_table(pa.table({"text": [str(value) for value in PLANTED], "s": list(PLANTED)}), path)
    return path


def fails(batches):
    raise ValueError(str(next(batches).column("s").to_pylist()))
    yield


FAILURES = {
    "a cast": lambda frame: frame.selectExpr("CAST(replace(text, '.', 'x') AS DOUBLE) AS s"),
    "a function of the user": lambda frame: frame.mapInArrow(fails, "s double"),
}


@on_spark
@pytest.mark.parametrize("failure", FAILURES)
def test_values_quoted_by_spark_are_not_passed_on(spark, planted, capfd, failure):
    frame = FAILURES[failure](spark.read.parquet(str(planted)))
    for call in (score_histogram, lambda frame, what: calibrate_table(frame, what, 0.1, 1.0)):
        with refused(EngineError, "source") as caught:
            call(frame, ScoreColumn("s"))
        assert "'s'" in str(caught.value)
        assert_error_is_private(caught.value)
    assert_no_private_value("".join(capfd.readouterr()))


DAMAGES = [lambda whole: b"987654.321" * 20, lambda whole: whole[:-40], lambda whole: whole[:4] + b"7" * len(whole)]


@on_spark
@pytest.mark.parametrize("damage", DAMAGES)
def test_errors_of_damaged_files_contain_no_content(spark, planted, capfd, damage):
    frame = spark.read.schema("s double").parquet(str(planted))
    planted.write_bytes(damage(planted.read_bytes()))
    with pytest.raises(FormatError) as caught:
        score_histogram(frame, ScoreColumn("s"))
    assert_error_is_private(caught.value)
    assert_no_private_value("".join(capfd.readouterr()))


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_rows_are_read_partition_by_partition(spark):
    """One job each, and none in advance."""
    context, parts = spark.sparkContext, 6
    frame = spark.range(0, 300 * parts, 1, parts).selectExpr("CAST(id AS DOUBLE) AS s")
    context.setJobGroup("one-by-one", "")
    try:
        with open_table(frame) as table:
            batches = table.batches((ColumnRef("s"),), 1000)
            first = next(batches)
            assert len(context.statusTracker().getJobIdsForGroup("one-by-one")) <= 2
            assert first.num_rows + sum(batch.num_rows for batch in batches) == 300 * parts
            assert len(context.statusTracker().getJobIdsForGroup("one-by-one")) >= parts
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
