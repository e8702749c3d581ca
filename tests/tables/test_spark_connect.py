"""Spark Connect: everything that tables can do, on a real server, by a client without Java.

The session rejects what sessions of Databricks' serverless compute reject: settings, and Java objects. (The tests were
not run on Databricks.)
"""

import json
import socket

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import confide
from confide import InputError
from confide.cli.run import main
from confide.support import OutputExistsError
from confide.tables import (
    ClassColumns,
    EngineError,
    ScoreColumn,
    calibrate_table,
    evaluate_table,
    open_table,
    predict_table,
)
from confide.tables.spark.session import shown_server
from tests.planted_values import PLANTED, assert_error_is_private
from tests.refused import refused
from tests.tables.class_records import NAMES, WARD, N, P, Y, calibrated
from tests.tables.connect_server import connect_server
from tests.tables.engines import Spark

# the tests of all other engines, with this engine
from tests.tables.test_exactness import (  # noqa: F401
    test_decimals_are_read_once,
    test_each_adversary_in_a_separate_group,
    test_groups_are_counted_in_the_same_pass,
    test_missing_and_outside_scores_are_counted_in_the_error,
)
from tests.tables.test_people import (  # noqa: F401
    test_nameless_and_tied_records_raise_an_error,
    test_the_first_or_the_sampled_records_count,
)
from tests.tables.test_several import table, test_several_levels, test_thresholds_for_each_group_and_class  # noqa: F401

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]
WHAT = ClassColumns("p", "label", NAMES)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with connect_server(tmp_path_factory.mktemp("connect")) as url:
        yield url


@pytest.fixture(scope="module")
def session(server):
    from pyspark.errors import PySparkAttributeError
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException
    from pyspark.sql.connect.session import SparkSession

    class Conf:
        def set(self, *_):
            raise SparkConnectGrpcException("[CONFIG_NOT_AVAILABLE] Configuration is not available.")

    class Serverless(SparkSession):
        conf = property(lambda self: Conf())

    made = SparkSession.builder.remote(server).create()
    made.__class__ = Serverless
    for name in ("sparkContext", "_jvm", "_jsc"):
        with pytest.raises(PySparkAttributeError):
            getattr(made, name)
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def no_java(server, monkeypatch, tmp_path):
    """The client's machine has no Java."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)


@pytest.fixture
def engine(session, tmp_path):
    return Spark(session, tmp_path)


@pytest.fixture
def ranking(engine):
    return engine


@pytest.fixture
def frame(engine):
    """The records of five classes, as a data frame of the session."""
    lists = pa.array(P.tolist(), pa.list_(pa.float32()))
    label = [NAMES[k] for k in Y]
    return engine.table(pa.table({"id": np.arange(N), "ward": WARD, "label": label, "p": lists, "s": P[:, 0]}))


@pytest.mark.parametrize("score", ["lac", "aps_deterministic"])
def test_sets_are_those_of_predict_set(frame, tmp_path, score):
    calibration = calibrated(score)
    shares = []

    class Bar:
        def __call__(self, rows):
            pass

        def share(self, done, total):
            shares.append(done / total)

    predict_table(frame, WHAT, calibration, tmp_path / "out", progress=Bar())
    predict_table(frame, WHAT, calibration, tmp_path / "out.parquet")
    expected = confide.predict_set(P, calibration, NAMES)
    for written in ("out", "out.parquet"):
        found = pq.read_table(tmp_path / written).sort_by("id")
        assert found["prediction_set"].to_pylist() == expected.labels()
        assert found["set_size"].to_pylist() == expected.sizes.tolist()
    assert all(0 <= share <= 1 for share in shares)
    found = evaluate_table(frame, WHAT, calibration)
    assert found.coverage.value == expected.contains(np.array(NAMES)[Y]).mean()
    with refused(OutputExistsError, "output"):
        predict_table(frame, WHAT, calibration, tmp_path / "out")
    assert pq.read_table(tmp_path / "out").num_rows == N


def test_values_quoted_by_the_server_are_not_passed_on(engine):
    data = engine.table(pa.table({"text": [str(value) for value in PLANTED]}))
    with refused(EngineError, "source") as caught:
        calibrate_table(data.selectExpr("CAST(replace(text, '.', 'x') AS DOUBLE) AS s"), ScoreColumn("s"), 0.1, 1.0)
    assert_error_is_private(caught.value)


def test_the_command_line_needs_no_java(server, tmp_path, capsys):
    folder = tmp_path / "records"
    folder.mkdir()
    lists = pa.array(P.tolist(), pa.list_(pa.float32()))
    pq.write_table(pa.table({"id": np.arange(N), "label": Y, "p": lists}), folder / "0.parquet")
    from_server = [server, "--table", str(folder), "--probabilities", "p"]
    released, again, state = (str(tmp_path / name) for name in ("a.json", "b.json", "watch.json"))
    look = ["--look", "2026-03-02", "--epsilon", "1", "--batch", str(N)]
    for command in (
        ["calibrate", *from_server, "--label", "label", "--alpha", "0.2", "--epsilon", "2", "--out", released],
        ["predict", *from_server, "--calibration", released, "--out", str(tmp_path / "sets")],
        ["evaluate", *from_server, "--label", "label", "--calibration", released],
        ["watch", *from_server, "--calibration", released, "--label", "label", "--state", state, *look],
        ["recalibrate", *from_server, "--calibration", released, "--label", "label", "--epsilon", "1", "--out", again],
    ):
        assert main(command) == 0, capsys.readouterr().err
    assert pq.read_table(tmp_path / "sets").num_rows == N
    assert json.loads((tmp_path / "b.json").read_text())["threshold"]


def test_a_server_that_does_not_answer_raises_an_error_without_its_token():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for address in (f"sc://127.0.0.1:{port}/;token=hidden", "sc://127.0.0.1:99999/;token=hidden", "sc://:hidden@"):
        with pytest.raises(InputError) as caught, open_table(address, "t"):
            pass
        assert "hidden" not in str(caught.value)
    assert shown_server("sc://host/;token=hidden") == "sc://host"
