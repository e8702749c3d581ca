"""Sets of scores that SQL cannot compute, on every engine: those of `predict_set`, in a file and in a table."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confide.tables.sets import with_sets
from confide.tables.streamed_sets import StreamedSets
from confide.tables.writing import write_file, write_table

import confide
from confide import InputError
from tests.tables import postgres_server
from tests.tables.class_records import NAMES, RNG, WARD, N, P, Y, calibrated

NOTE = [None if i % 7 == 0 else f"it's \\N, \t{i} 100%" for i in range(N)]
DATA = pa.table(
    {
        "id": np.arange(N),
        "ward": WARD,
        "note": NOTE,
        "f": np.append([np.inf, -0.0, 5e-324], RNG.normal(size=N - 3)),
        "p": pa.array(P.tolist(), pa.list_(pa.float32())),
        **{f"p_{name}": P[:, k] for k, name in enumerate(NAMES)},
    }
)
COLUMNS = tuple(f"p_{name}" for name in NAMES)
SCORES = ["aps", "raps(penalty=0.01,k_reg=2)", "saps(penalty=0.1)", "margin", "top_k"]


@pytest.fixture
def table(engine):
    return engine.table(DATA)


@pytest.mark.parametrize("by", [None, "group", "class"])
def test_sets_in_a_file(table, tmp_path, by):
    for number, (score, read) in enumerate(zip(SCORES, ["p", COLUMNS, "p", COLUMNS, "p"], strict=True)):
        calibration = calibrated(score, by)
        predicted = with_sets(table, read, calibration, NAMES, group="ward" if by == "group" else None)
        out = tmp_path / f"{number}.parquet"
        figures = write_file(predicted.select("id", "prediction_set", "set_size"), out)
        expected = confide.predict_set(P, calibration, NAMES, groups=WARD if by == "group" else None)
        found = pq.read_table(out).sort_by("id")
        assert found.column_names == ["id", "prediction_set", "set_size"]
        assert found["prediction_set"].to_pylist() == expected.labels()
        assert found["set_size"].to_pylist() == expected.sizes.tolist()
        assert figures == {"rows": N, "mean_set_size": pytest.approx(expected.sizes.mean())}


@pytest.fixture(params=["duckdb", "postgres"])
def owned(request, tmp_path):
    """The same rows, in a database that this test may write to."""
    import ibis

    if request.param == "duckdb":
        connection = ibis.duckdb.connect(tmp_path / "db.duckdb")
        connection.con.register("arriving", DATA)
        connection.con.execute("CREATE TABLE records AS SELECT * FROM arriving")
        yield connection.table("records")
    else:
        server, reader = request.getfixturevalue("postgres"), request.getfixturevalue("reader")
        name = reader.table(DATA).get_name()
        connection = ibis.connect(server.url(postgres_server.OWNER))
        yield connection.table(name)
    connection.disconnect()


@pytest.mark.parametrize("by", [None, "group"])
def test_sets_in_a_table_beside_the_rows(owned, by):
    """In batches of few rows, so that there are many; the other columns arrive as they were."""
    calibration = calibrated("aps", by)
    predicted = with_sets(owned, "p", calibration, NAMES, group="ward" if by == "group" else None).drop("p")
    name, told = f"{owned.get_name()}_sets_{by}", []
    StreamedSets.rows, before = 256, StreamedSets.rows
    try:
        figures = write_table(predicted, name, progress=told.append)
    finally:
        StreamedSets.rows = before
    assert len(told) > 1
    assert sum(told) == N
    expected = confide.predict_set(P, calibration, NAMES, groups=WARD if by == "group" else None)
    assert figures == {"rows": N, "mean_set_size": pytest.approx(expected.sizes.mean())}
    connection = owned.get_backend()
    written = connection.table(name)
    assert written.columns == predicted.columns
    kept = predicted.kept
    assert {column: written.schema()[column] for column in kept} == {column: owned.schema()[column] for column in kept}
    found = rows_of(written)
    assert found.drop_columns(["prediction_set", "set_size"]).equals(rows_of(owned).drop_columns(["p"]))
    assert found["prediction_set"].to_pylist() == expected.labels()
    assert found["set_size"].to_pylist() == expected.sizes.tolist()


def rows_of(table):
    from confide.tables.reading import arrow_batches

    return pa.Table.from_batches(arrow_batches(table, 1000)).sort_by("id")


def test_rows_without_a_set_leave_no_table(owned, tmp_path):
    calibration = calibrated("aps", "group")
    known = confide.GroupCalibration("group", "add_remove", {"north": calibration["north"]})
    predicted = with_sets(owned, "p", known, NAMES, group="ward")
    from ibis.common.exceptions import TableNotFound

    words = f"{np.count_nonzero(WARD == 'south')} of {N} rows do not"
    with pytest.raises(InputError, match=words):
        write_table(predicted, "nothing_new")
    with pytest.raises(TableNotFound):
        owned.get_backend().table("nothing_new")
    with pytest.raises(InputError, match=words):
        write_file(predicted.select("id", "prediction_set", "set_size"), tmp_path / "out.parquet")
    assert not list(tmp_path.glob("*.par*"))


def test_columns_are_checked_before_anything_is_read(owned):
    calibration = calibrated("aps")
    with pytest.raises(InputError, match="column 'q' is not in the table"):
        with_sets(owned, "q", calibration, NAMES)
    with pytest.raises(InputError, match="column 'q' is not in the table"):
        with_sets(owned, "p", calibration, NAMES).select("q")
    with pytest.raises(InputError, match="found 4 names for 5 columns"):
        with_sets(owned, COLUMNS, calibration, NAMES[:4])
    with pytest.raises(InputError, match="group must name the column"):
        with_sets(owned, "p", calibrated("aps", "group"), NAMES)


def test_randomised_scores_draw_fresh_numbers(owned, tmp_path):
    calibration = confide.calibrate(
        confide.class_score(P, Y, "aps_randomised", u=RNG), 0.2, 10.0, score="aps_randomised"
    )
    sizes = []
    for name in ("one", "two"):
        out = tmp_path / f"{name}.parquet"
        write_file(with_sets(owned, "p", calibration, NAMES).select("id", "set_size"), out)
        sizes.append(pq.read_table(out).sort_by("id")["set_size"].to_numpy())
    assert (sizes[0] != sizes[1]).any()
    drawn = confide.predict_set(P, calibration, NAMES, u=RNG).sizes
    spread = np.sqrt((sizes[0].var() + drawn.var()) / N)
    assert abs(sizes[0].mean() - drawn.mean()) < 5 * spread
