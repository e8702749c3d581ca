"""`confide calibrate` and `predict` on files, folders and databases, in this process."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import confide
from confide.cli.run import main
from confide.tables import EngineError, open_table
from tests.files import in_order_of
from tests.refused import refused
from tests.tables import postgres_server
from tests.tables.engines import SQLite

RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.ones(3), 3000)
Y = np.array([RNG.choice(3, p=row) for row in P])
WARD = np.where(RNG.random(3000) < 0.3 + 0.4 * (P[np.arange(3000), Y] < 0.5), "south", "north")  # south is harder
DATA = pa.table(
    {
        "id": pa.array(range(3000), pa.int64()),
        **{f"p_{k}": P[:, k] for k in range(3)},
        "y": Y,
        "f": P[:, 0],
        "t": P[:, 1],
        "ward": WARD,
        "site": np.where(WARD == "south", 7, -1),
    }
)
COUNTED = ["--probabilities", "p_*", "--label", "y", "--alpha", "0.1", "--epsilon", "1"]


SOURCES = ("glob", "folder", "csv", "duckdb", "sqlite", "postgres")


def sources(*everyday: str) -> list:
    """All sources, as cases; those that are not named are slow."""
    return [name if name in everyday else pytest.param(name, marks=pytest.mark.slow) for name in SOURCES]


def everyday_from(*names: str) -> pytest.MarkDecorator:
    """Every source has the test's cases; the everyday suite runs those of these sources."""
    return pytest.mark.parametrize("source", sources(*names), indirect=True)


@pytest.fixture(params=sources(*SOURCES))
def source(request, tmp_path):
    """The same rows in every source of the command line."""
    if request.param == "glob":
        for part in range(3):
            pq.write_table(DATA.slice(part * 1000, 1000), tmp_path / f"part-{part}.parquet")
        return [str(tmp_path / "part-*.parquet")]
    if request.param == "folder":
        for part in range(3):
            (tmp_path / "records" / f"part={part}").mkdir(parents=True)
            pq.write_table(DATA.slice(part * 1000, 1000), tmp_path / "records" / f"part={part}" / "0.parquet")
        return [str(tmp_path / "records")]
    if request.param == "csv":
        pa.csv.write_csv(DATA, tmp_path / "records.csv")
        return [str(tmp_path / "records.csv")]
    if request.param == "sqlite":
        engine = SQLite(tmp_path)
        return [f"sqlite://{engine.path}", "--table", engine.create(DATA)]
    if request.param == "duckdb":
        import duckdb

        with duckdb.connect(tmp_path / "db.duckdb") as connection:
            connection.register("arriving", DATA)
            connection.execute("CREATE TABLE records AS SELECT * FROM arriving")
        return [f"duckdb://{tmp_path}/db.duckdb", "--table", "records"]
    request.getfixturevalue("monkeypatch").setenv("PGPASSWORD", postgres_server.PASSWORD)
    server, reader = request.getfixturevalue("postgres"), request.getfixturevalue("reader")
    name = reader.table(DATA).get_name()
    return [server.address(postgres_server.READER), "--table", f"public.{name}"]


@pytest.mark.slow(unless="sqlite")
def test_calibrate_and_predict(source, tmp_path, capsys):
    released, out = tmp_path / "cal.json", tmp_path / "sets.parquet"
    assert main(["calibrate", *source, *COUNTED, "--out", str(released)]) == 0
    calibration = confide.Release.load(released)
    assert calibration.score == "lac"
    assert 0.5 < calibration.threshold < 1
    options = ["--probabilities", "p_*", "--calibration", str(released), "--keep", "id", "--out", str(out), "--json"]
    capsys.readouterr()
    assert main(["predict", *source, *options]) == 0
    said = json.loads(capsys.readouterr().out)
    sets = in_order_of(pq.read_table(out), "id")
    expected = confide.predict_set(P, calibration, ["0", "1", "2"])
    assert sets.column_names == ["id", "prediction_set", "set_size"]
    assert sets.column("prediction_set").to_pylist() == expected.labels()
    assert said["rows"] == 3000
    assert said["mean_set_size"] == pytest.approx(expected.sizes.mean())
    everything = capsys.readouterr()
    for text in (released.read_text(), json.dumps(said), everything.out, everything.err):
        assert postgres_server.PASSWORD not in text


SURE = [
    "--probabilities",
    "p_*",
    "--label",
    "y",
    "--alpha",
    "0.1",
    "--epsilon",
    "1000",
    "--set",
    "candidates=unit:1000",
]
"""So much epsilon that thresholds are quantiles, up to the candidates."""


def spent(budget):
    return confide.Ledger(budget).account("patients").spent().epsilon


def predicted(source, released, out, *options):
    command = ["predict", *source, "--probabilities", "p_*", "--calibration", str(released), "--out", str(out)]
    assert main([*command, "--keep", "id", *options]) == 0
    return in_order_of(pq.read_table(out), "id")


@pytest.mark.slow
@everyday_from("csv", "duckdb", "postgres")
def test_a_threshold_per_group(source, tmp_path, capsys):
    """In the same pass, for a column of texts and one of integers; an empty group gets +inf."""
    scores = confide.lac_score(P, Y)
    for number, (column, names) in enumerate([("ward", ("north", "nowhere", "south")), ("site", (-1, 0, 7))]):
        released, out = tmp_path / f"{number}.json", tmp_path / f"{number}.parquet"
        listed = ",".join(map(str, names))
        assert main(["calibrate", *source, *SURE, "--by", column, "--groups", listed, "--out", str(released)]) == 0
        assert "the threshold is +inf for 1 of 3 groups" in capsys.readouterr().err
        calibration = confide.Release.load(released)
        assert (calibration.by, tuple(calibration.parts)) == ("group", names)
        assert calibration.infinite == (names[1],)
        for ward, name in (("north", names[0]), ("south", names[2])):
            quantile = np.quantile(scores[ward == WARD], 0.9, method="higher")
            assert calibration[name].threshold == pytest.approx(quantile, abs=0.02)
        sets = predicted(source, released, out, "--by", column)
        with pytest.warns(confide.CoverageWarning):
            expected = confide.predict_set(P, calibration, ["0", "1", "2"], groups=DATA[column].to_pylist())
        assert sets["prediction_set"].to_pylist() == expected.labels()
    assert calibration[7].threshold > calibration[-1].threshold + 0.1


def is_queried(source) -> bool:
    """Whether an engine is queried, so that this process does not read the rows."""
    return source[0].startswith(("postgresql", "sqlite"))


@pytest.mark.slow
@everyday_from("csv", "duckdb", "postgres")
def test_a_public_number_is_charged_before_the_engine_is_queried(source, tmp_path, capsys):
    budget = tmp_path / "budget.db"
    paying = ["--neighbors", "replace_one", "--ledger", str(budget), "--dataset", "patients"]
    confide.Ledger(budget).set_limit("patients", 1.5, neighbors="replace_one")

    def calibrate(name, *options):
        return main(["calibrate", *source, *COUNTED, *paying, *options, "--out", str(tmp_path / name)])

    if is_queried(source):
        assert calibrate("none.json") == 3
        assert "--n: must be given under neighbors='replace_one' with a ledger" in capsys.readouterr().err
        assert spent(budget) == 0
    assert calibrate("one.json", "--n", "3000") == 0
    assert confide.Release.load(tmp_path / "one.json").n == 3000
    assert spent(budget) == 1
    assert calibrate("two.json", "--n", "3000") == 0
    if not is_queried(source):
        assert calibrate("two.json", "--force") == 0
    assert (tmp_path / "one.json").read_text() == (tmp_path / "two.json").read_text()
    assert calibrate("none.json", "--n", "3000", "--set", "n_min=2") == 3
    assert "0.5 left" in capsys.readouterr().err
    confide.Ledger(budget).set_limit("patients", 2, neighbors="replace_one")
    assert calibrate("none.json", "--n", "2999") == 3
    assert "--n: must be the number of records that count; got 3000, and n=2999" in capsys.readouterr().err
    assert spent(budget) == (2 if is_queried(source) else 1)
    assert not (tmp_path / "none.json").exists()


def test_a_reader_needs_no_right_to_write(postgres, reader):
    """The role can neither create tables nor temporary ones; the session is read-only as well."""
    import psycopg

    name = reader.table(DATA).get_name()
    with psycopg.connect(postgres.url(postgres_server.READER), autocommit=True) as connection:
        for command in ("CREATE TEMPORARY TABLE t (a int)", "CREATE TABLE t (a int)", f"TRUNCATE {name}"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(command)
    with (
        open_table(postgres.url(postgres_server.OWNER), name) as table,
        pytest.raises(psycopg.errors.ReadOnlySqlTransaction),
    ):
        table.backend.raw_sql("CREATE TABLE t (a int)")


@pytest.mark.parametrize(
    ("source", "finding"),
    [
        (["postgresql://reader@127.0.0.1:{closed}/postgres", "--table", "t"], "no connection"),
        (["postgresql://nobody@127.0.0.1:{port}/postgres", "--table", "t"], "no connection|rejected"),
        (["postgresql://reader@127.0.0.1:{port}/postgres", "--table", "nothing"], "'nothing' is not in"),
        (["postgresql://reader@127.0.0.1:{port}/postgres"], "--table: must be given"),
        (["nosuch://reader@127.0.0.1/db", "--table", "t"], "got nosuch://"),
        (["postgresql://reader:{password}@127.0.0.1:{port}/postgres", "--table", "t"], "TABLE: an address carries no"),
        (["records.csv", "--ledger", "postgresql://host/db?password={password}"], "--ledger: an address carries no"),
        (["duckdb:///nowhere/at.all", "--table", "t"], "opening 'duckdb:///nowhere/at.all'"),
        (["/nowhere/*.parquet"], "must name files that end in one of .parquet, .* It names none of them"),
    ],
)
def test_failures_are_one_line_without_password(postgres, source, finding, tmp_path, capfd, monkeypatch):
    import re

    monkeypatch.setenv("PGPASSWORD", postgres_server.PASSWORD)
    values = {"password": postgres_server.PASSWORD, "port": postgres.port, "closed": 1}
    arguments = [text.format(**values) if "{" in text else text for text in source]
    assert main(["calibrate", *arguments, *COUNTED, "--out", str(tmp_path / "cal.json")]) == 3
    said = capfd.readouterr()
    assert re.search(finding, said.err), said.err
    assert len(said.err.splitlines()) == 1
    assert postgres_server.PASSWORD not in said.err + said.out
    assert not list(tmp_path.iterdir())


def test_a_number_that_overflows_in_the_server_is_not_quoted(reader):
    from confide.tables import TargetColumns, score_histogram

    table = reader.table(pa.table({"f": [1e308], "y": [-1.7e308]}))
    with refused(EngineError, "engine") as caught:
        score_histogram(table, TargetColumns("f", "y"))
    assert "e308" not in str(caught.value)
