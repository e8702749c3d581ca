"""Sets of scores that SQL cannot compute, from every table, equal those of `predict_set`, in files and tables."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import confide
from confide import InputError
from confide.support import OutputExistsError
from confide.tables import ClassColumns, TargetColumns, open_table, predict_table
from tests.builders import slow
from tests.files import figures_of, in_order_of
from tests.refused import Refused, bad_rows, refused
from tests.tables import postgres_server
from tests.tables.class_records import NAMES, RNG, WARD, N, P, Y, calibrated

NOTE = [None if i % 7 == 0 else f"it's \\N, \t{i} 100%" for i in range(N)]
PRICE = np.exp(np.random.default_rng(5).normal(size=N))
DATA = pa.table(
    {
        "id": np.arange(N),
        "ward": WARD,
        "note": NOTE,
        "f": np.append([np.inf, -0.0, 5e-324], RNG.normal(size=N - 3)),
        "price": PRICE,
        "p": pa.array(P.tolist(), pa.list_(pa.float32())),
        **{f"p_{name}": P[:, k] for k, name in enumerate(NAMES)},
    }
)
COLUMNS = tuple(f"p_{name}" for name in NAMES)
SCORES = [
    "aps_deterministic",
    "raps_deterministic(penalty=0.01,k_reg=2)",
    "saps_deterministic(penalty=0.1)",
    "margin",
    "top_k",
    "lac(temperature=2)",
]


@pytest.mark.slow
@pytest.mark.parametrize("by", [None, "group", "class"])
def test_sets_in_a_file(engine, tmp_path, by):
    table = engine.table(DATA if engine.lists else DATA.drop_columns("p"))
    p = P if engine.single else P.astype(np.float64)
    for number, (score, read) in enumerate(zip(SCORES, ["p", COLUMNS, "p", "p_*", "p", COLUMNS], strict=True)):
        calibration, out = calibrated(score, by), tmp_path / f"{number}.parquet"
        what = ClassColumns(read if engine.lists else COLUMNS, classes=NAMES)
        group = "ward" if by == "group" else None
        figures = predict_table(table, what, calibration, out, by=group, keep=("id",))
        expected = confide.predict_set(p, calibration, NAMES, groups=WARD if by == "group" else None)
        found = in_order_of(pq.read_table(out), "id")
        assert found.column_names == ["id", "prediction_set", "set_size"]
        assert found["prediction_set"].to_pylist() == expected.labels()
        assert found["set_size"].to_pylist() == expected.sizes.tolist()
        assert figures == figures_of(expected)


class Owned:
    """A database that a test may write to, by its address and by a connection of Ibis."""

    def __init__(self, url, name, connect) -> None:
        self.url, self.name, self._connect = url, name, connect

    def open(self, *, write=True):
        return open_table(self.url, self.name, write=write)

    def read(self, name=None) -> pa.Table:
        connection = self._connect()
        try:
            return connection.table(name or self.name).to_pyarrow().sort_by("id")
        finally:
            connection.disconnect()

    def tables(self) -> list[str]:
        names = "SELECT table_name FROM information_schema.tables"
        connection = self._connect()
        try:
            return [name for (name,) in connection.con.execute(names).fetchall()]
        finally:
            connection.disconnect()


@pytest.fixture(params=["duckdb", "postgres"])
def owned(request, tmp_path):
    """The same rows in a database that this test may write to."""
    import ibis

    if request.param == "duckdb":
        import duckdb

        with duckdb.connect(tmp_path / "db.duckdb") as connection:
            connection.register("arriving", DATA)
            connection.execute("CREATE TABLE records AS SELECT * FROM arriving")
        return Owned(f"duckdb://{tmp_path}/db.duckdb", "records", lambda: ibis.duckdb.connect(tmp_path / "db.duckdb"))
    server, reader = request.getfixturevalue("postgres"), request.getfixturevalue("reader")
    url = server.url(postgres_server.OWNER)
    return Owned(url, reader.create(DATA), lambda: ibis.connect(url))


@pytest.mark.parametrize(
    ("score", "by"),
    [
        ("lac", None),
        ("aps_deterministic", "group"),
        *slow(
            [
                ("lac", "group"),
                ("aps_deterministic", None),
                ("lac(temperature=2)", None),
                ("lac(temperature=2)", "group"),
            ]
        ),
    ],
)
def test_sets_in_a_table_of_the_same_database(owned, monkeypatch, by, score):
    """In batches of few rows, so that there are many; the other columns are unchanged."""
    monkeypatch.setattr("confide.tables.writers._ROWS", 256)
    monkeypatch.setattr("confide.tables.records.rows_per_batch", lambda width: 2048)
    calibration = calibrated(score, by)
    name, output = f"{owned.name}_sets_{by}", []
    group = "ward" if by == "group" else None
    with owned.open() as table:
        figures = predict_table(
            table, ClassColumns("p", classes=NAMES), calibration, out_table=name, by=group, progress=output.append
        )
    in_batches = score != "lac" or owned.url.startswith("duckdb")
    assert (len(output) > 1 and sum(output) == N) or not in_batches
    expected = confide.predict_set(P, calibration, NAMES, groups=WARD if by == "group" else None)
    assert figures == figures_of(expected)
    found, before = owned.read(name), owned.read().drop_columns("p")
    assert found.column_names == [*before.column_names, "prediction_set", "set_size"]
    assert found.drop_columns(["prediction_set", "set_size"]).equals(before)
    assert found["prediction_set"].to_pylist() == expected.labels()
    assert found["set_size"].to_pylist() == expected.sizes.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("by", [None, "group"])
def test_intervals_that_sql_does_not_compute_in_a_table(owned, by):
    """Relative to the prediction: for every group, and also for a price that is an integer or a decimal."""
    residuals = np.random.default_rng(0).random(4000)
    released = confide.calibrate(residuals, 0.1, 10.0, score="gamma")
    if by == "group":
        wards = np.where(np.arange(4000) % 2, "north", "south")
        released = confide.calibrate_groups(residuals, wards, sorted(set(WARD)), 0.1, 10.0, score="gamma")
    name, none = f"{owned.name}_ends_{by}", f"{owned.name}_none_{by}"
    with owned.open() as table:
        figures = predict_table(table, TargetColumns("price"), released, out_table=name, by="ward" if by else None)
    assert figures == {"rows": N}
    found, before = owned.read(name), owned.read()
    assert found.column_names == [*before.column_names, "lower", "upper"]
    lower, upper = confide.predict_interval(PRICE, released, groups=WARD if by else None)
    np.testing.assert_array_equal(found["lower"].to_numpy(), lower)
    np.testing.assert_array_equal(found["upper"].to_numpy(), upper)
    with owned.open() as table, refused(InputError, "table"):
        predict_table(table, TargetColumns("f"), released, out_table=none, by="ward" if by else None)
    assert none not in owned.tables()


@pytest.mark.slow
def test_several_levels_that_sql_does_not_compute_in_a_table(owned):
    scores = confide.aps_score(P, Y, randomised=False)
    released = confide.calibrate_levels(scores, [0.2, 0.1], 10.0, score="aps_deterministic", classes=NAMES)
    with owned.open() as table:
        predict_table(table, ClassColumns("p", classes=NAMES), released, out_table=f"{owned.name}_levels", keep=["id"])
    found = owned.read(f"{owned.name}_levels")
    assert found.column_names == [
        "id", "prediction_set_0.2", "set_size_0.2", "prediction_set_0.1", "set_size_0.1"
    ]  # fmt: skip
    expected = confide.predict_set(P, released[0.1], NAMES)
    assert found["prediction_set_0.1"].to_pylist() == expected.labels()


@pytest.mark.parametrize("score", ["lac", "aps_deterministic"])
def test_an_existing_table_is_not_changed(owned, score):
    before = owned.read()
    with owned.open() as table:
        what, calibration = ClassColumns("p", classes=NAMES), calibrated(score)
        with refused(OutputExistsError, "out_table"):
            predict_table(table, what, calibration, out_table=owned.name)
    assert owned.read().equals(before)


def test_table_names_are_taken_literally(owned):
    """With any characters."""
    name = 'it\'s "mine"; DROP TABLE records; -- *?[1]'
    with owned.open() as table:
        figures = predict_table(
            table, ClassColumns("p", classes=NAMES), calibrated("aps_deterministic"), out_table=name
        )
    assert figures["rows"] == N
    assert owned.read(name).num_rows == owned.read().num_rows == N


@pytest.mark.parametrize("score", ["lac", "aps_deterministic"])
def test_rows_without_a_set_leave_no_table(owned, tmp_path, score):
    calibration = calibrated(score, "group")
    known = confide.GroupCalibration("group", "add_remove", {"north": calibration["north"]})
    before, south = sorted(owned.tables()), np.count_nonzero(WARD == "south")
    what = ClassColumns("p", classes=NAMES)
    with owned.open() as table:
        for target in ({"out_table": "nothing_new"}, {"out": tmp_path / "out.parquet", "keep": ("id",)}):
            with refused(InputError, "table") as caught:
                predict_table(table, what, known, by="ward", **target)
            assert bad_rows(caught)[0][0] == south
    assert sorted(owned.tables()) == before
    assert not list(tmp_path.glob("*.par*"))


def test_columns_are_checked_before_anything_is_read(owned, tmp_path):
    calibration, out = calibrated("aps_deterministic"), tmp_path / "out.parquet"
    with owned.open(write=False) as table:
        good = {"source": table, "what": ClassColumns("p", classes=NAMES), "release": calibration, "out": out}
        for change, argument in (
            ({"what": ClassColumns("q")}, "column"),
            ({"keep": ("q",)}, "column"),
            ({"what": ClassColumns(COLUMNS, classes=NAMES[:4])}, "classes"),
            ({"release": calibrated("aps_deterministic", "group")}, "by"),
            ({"out_table": "both"}, "out"),
        ):
            Refused(predict_table, good, change, argument, kind=InputError).check()
    assert not out.exists()


@pytest.mark.slow
@pytest.mark.parametrize("score", ["lac", "aps_deterministic"])
def test_postgres_gets_a_table_without_rows(postgres, reader, score):
    """By SQL, and by batches that are copied."""
    import ibis

    url, name = postgres.url(postgres_server.OWNER), reader.create(DATA.slice(0, 0))
    with open_table(url, name, write=True) as table:
        what = ClassColumns("p", classes=NAMES)
        assert predict_table(table, what, calibrated(score), out_table=f"{name}_sets") == {"rows": 0}
    found = Owned(url, name, lambda: ibis.connect(url)).read(f"{name}_sets")
    assert (found.num_rows, found.column_names[-2:]) == (0, ["prediction_set", "set_size"])


def test_randomised_scores_draw_fresh_numbers(owned, tmp_path):
    calibration = confide.calibrate(confide.class_score(P, Y, "aps"), 0.2, 10.0, score="aps")
    sizes = []
    with owned.open(write=False) as table:
        for name in ("one", "two"):
            out = tmp_path / f"{name}.parquet"
            predict_table(table, ClassColumns("p", classes=NAMES), calibration, out, keep=("id",))
            sizes.append(in_order_of(pq.read_table(out), "id")["set_size"].to_numpy())
    assert (sizes[0] != sizes[1]).any()
    drawn = confide.predict_set(P, calibration, NAMES).sizes
    spread = np.sqrt((sizes[0].var() + drawn.var()) / N)
    assert abs(sizes[0].mean() - drawn.mean()) < 5 * spread
