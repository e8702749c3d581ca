"""Prediction sets as columns and files."""

import csv
import json
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from confide.tables.set_columns import set_columns
from confide.tables.source import open_table

import confide
from confide.tables import choose
from confide.tables.predict import Output, write_intervals, write_sets
from tests.files import FORMATS, NAMES, class_table, classified, read, write


def predict(source, output, calibration, pattern="p_*", classes=None):
    with open_table(source) as table:
        return write_sets(choose.probabilities(table, pattern, classes), calibration, output)


@pytest.mark.parametrize("source", FORMATS)
@pytest.mark.parametrize("target", ["parquet", "csv", "arrow", "feather", "tsv"])
def test_sets_in_every_format(tmp_path, calibration, source, target):
    table = class_table(3000, seed=1, lists=False)
    records, out = write(tmp_path / f"in.{source}", table), tmp_path / f"out.{target}"
    found = predict(records, Output(out), calibration)
    p, _ = classified(3000, seed=1)
    sets = confide.predict_set(p, calibration, NAMES)
    assert found == {"rows": 3000, "mean_set_size": pytest.approx(sets.sizes.mean())}
    back = read(out)
    assert back.column_names == ["id", "text", "label", "name", "prediction_set", "set_size"]
    members = back["prediction_set"].to_pylist()
    assert (members if target not in ("csv", "tsv") else [json.loads(text) for text in members]) == sets.labels()
    assert back["set_size"].to_pylist() == sets.sizes.tolist()
    for name in ("id", "text", "label", "name"):
        assert back[name].to_pylist() == table[name].to_pylist()
    assert target in ("csv", "tsv") or back.schema.field("prediction_set").type == pa.list_(pa.string())
    assert target in ("csv", "tsv") or back.schema.field("set_size").type == pa.int32()


def test_lists_give_the_same_sets_as_a_pattern(tmp_path, calibration):
    records = write(tmp_path / "in.parquet", class_table())
    predict(records, Output(tmp_path / "a.parquet"), calibration)
    predict(records, Output(tmp_path / "b.parquet"), calibration, "p", list(NAMES))
    predict(records, Output(tmp_path / "c.parquet"), calibration, "p")
    a, b, c = (read(tmp_path / f"{name}.parquet") for name in "abc")
    assert a["prediction_set"] == b["prediction_set"]
    assert "p_cat" in b.column_names
    assert "p" not in b.column_names
    assert c["prediction_set"].to_pylist() == [
        [str(NAMES.index(m)) for m in s] for s in a["prediction_set"].to_pylist()
    ]


@pytest.mark.parametrize("size", [0, 1, 5])
def test_columns_from_masks(size):
    rng = np.random.default_rng(size)
    mask = rng.random((50, 4)) < size / 5
    names = ("a", 'quo"te', "new\nline", "ünïcode")
    lists, sizes = set_columns(mask, names, as_text=False)
    texts, _ = set_columns(mask, names, as_text=True)
    expected = [[names[k] for k in np.flatnonzero(row)] for row in mask]
    assert lists.to_pylist() == expected
    assert [json.loads(text) for text in texts.to_pylist()] == expected
    assert sizes.to_pylist() == mask.sum(axis=1).tolist()


def test_csv_cells_are_kept_as_they_are(tmp_path, calibration):
    records, out = tmp_path / "in.csv", tmp_path / "out.csv"
    records.write_text('id,note,p_a,p_b\n007,"a, ""b""\nc",0.9,0.1\n,1e5,0.5,0.5\n')
    predict(records, Output(out), calibration)
    with out.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["id"], row["note"]) for row in rows] == [("007", 'a, "b"\nc'), ("", "1e5")]


def test_kept_columns(tmp_path, calibration):
    records = write(tmp_path / "in.parquet", class_table())
    predict(records, Output(tmp_path / "a.parquet", keep=("name", "p_cat")), calibration)
    assert read(tmp_path / "a.parquet").column_names == ["name", "p_cat", "prediction_set", "set_size"]
    predict(records, Output(tmp_path / "b.parquet", keep=()), calibration)
    assert read(tmp_path / "b.parquet").column_names == ["prediction_set", "set_size"]
    with pytest.raises(confide.InputError, match="column 'nobody' is not in"):
        predict(records, Output(tmp_path / "c.parquet", keep=("nobody",)), calibration)
    with pytest.raises(confide.InputError, match="found 1 repeated"):
        predict(records, Output(tmp_path / "c.parquet", keep=("id", "id")), calibration)


def test_name_clashes_and_cells_that_csv_cannot_hold(tmp_path, calibration):
    table = class_table(100).append_column("set_size", pa.array([1] * 100))
    records = write(tmp_path / "in.parquet", table)
    with pytest.raises(confide.InputError, match="'set_size' is in the input and would be written as well"):
        predict(records, Output(tmp_path / "a.parquet"), calibration)
    with pytest.raises(confide.InputError, match="column 'p' holds lists, which a CSV cell cannot"):
        predict(records, Output(tmp_path / "a.csv", keep=("p",)), calibration)
    assert list(tmp_path.iterdir()) == [records]


def test_dates_and_decimals_go_to_csv(tmp_path, calibration):
    table = class_table(2, lists=False).select(["p_cat", "p_dog", "p_emu"])
    table = table.append_column("when", pa.array([0, 86_400_000_000], pa.timestamp("us")))
    table = table.append_column("yes", pa.array([True, None]))
    predict(write(tmp_path / "in.parquet", table), Output(tmp_path / "out.csv"), calibration)
    with (tmp_path / "out.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["when"], row["yes"]) for row in rows] == [("1970-01-01 00:00:00", "true"), ("1970-01-02 00:00:00", "")]


@pytest.mark.parametrize("target", ["parquet", "csv", "arrow"])
def test_intervals(tmp_path, target):
    rng = np.random.default_rng(0)
    f = rng.normal(size=5000)
    calibration = confide.calibrate(np.abs(rng.normal(size=5000)), 0.1, 5.0, score="absolute_residual")
    records = write(tmp_path / "in.parquet", {"id": np.arange(5000), "f": f})
    with open_table(records) as table:
        write_intervals([choose.number(table, "f")], calibration, Output(tmp_path / f"out.{target}"))
    back = read(tmp_path / f"out.{target}")
    assert back.column_names == ["id", "f", "lower", "upper"]
    lower, upper = confide.predict_interval(f, calibration)
    assert back["lower"].to_pylist() == lower.tolist()
    assert back["upper"].to_pylist() == upper.tolist()


def test_an_infinite_threshold_gives_every_class_and_the_whole_line(tmp_path, calibration):
    records = write(tmp_path / "in.parquet", class_table(50))
    predict(records, Output(tmp_path / "out.csv", keep=()), replace(calibration, threshold=math.inf))
    assert set(read(tmp_path / "out.csv")["set_size"].to_pylist()) == {3}
    unnamed = replace(calibration, threshold=math.inf, score=None)
    with open_table(write(tmp_path / "f.parquet", {"f": [1.0, 2.0]})) as table:
        write_intervals([choose.number(table, "f")], unnamed, Output(tmp_path / "i.csv"))
    assert (tmp_path / "i.csv").read_text().splitlines()[1:] == ["1,-inf,inf", "2,-inf,inf"]


def test_order_is_kept_over_many_batches_and_row_groups(tmp_path, calibration):
    n = 150_000
    p = np.random.default_rng(0).random((n, 2)).astype(np.float32)
    records = tmp_path / "in.parquet"
    table = pa.table({"id": np.arange(n), "p_a": p[:, 0], "p_b": p[:, 1]})
    pa.parquet.write_table(table, records, row_group_size=7_001)
    predict(records, Output(tmp_path / "out.parquet"), calibration)
    back = read(tmp_path / "out.parquet")
    assert back["id"].to_pylist() == list(range(n))
    assert back["set_size"].to_pylist() == confide.predict_set(p, calibration).sizes.tolist()


def test_nothing_is_left_when_a_row_is_bad(tmp_path, calibration):
    p, _ = classified(60_000)
    p[50_000] = np.nan
    records = write(tmp_path / "in.parquet", {f"p_{k}": p[:, k] for k in range(3)})
    (tmp_path / "out.parquet").write_text("precious")
    with pytest.raises(confide.InputError, match="1 does not, row 50000 "):
        predict(records, Output(tmp_path / "out.parquet", overwrite=True), calibration)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "out.parquet"]
    assert (tmp_path / "out.parquet").read_text() == "precious"
