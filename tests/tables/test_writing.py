"""Prediction sets as columns and files."""

import json

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide.tables import ClassColumns, predict_table
from tests.any_row_sums import any_row_sums  # noqa: F401 - a fixture
from tests.files import FORMATS, NAMES, class_table, classified, figures_of, read, write
from tests.refused import bad_rows, refused


def predict(source, out, calibration, pattern="p_*", classes=None, **options):
    what = ClassColumns(pattern, classes=None if classes is None else tuple(classes))
    return predict_table(source, what, calibration, out, **options)


@pytest.mark.slow(unless="csv-parquet")
@pytest.mark.parametrize("source", FORMATS)
@pytest.mark.parametrize("target", ["parquet", "csv", "arrow", "feather", "tsv"])
def test_sets_in_every_format(tmp_path, calibration, source, target):
    table = class_table(3000, seed=1, lists=False)
    records, out = write(tmp_path / f"in.{source}", table), tmp_path / f"out.{target}"
    found = predict(records, out, calibration)
    p, _ = classified(3000, seed=1)
    sets = confide.predict_set(p, calibration, NAMES)
    assert found == figures_of(sets)
    back = read(out)
    assert back.column_names == ["id", "text", "label", "name", "prediction_set", "set_size"]
    members = back["prediction_set"].to_pylist()
    assert (members if target not in ("csv", "tsv") else [json.loads(text) for text in members]) == sets.labels()
    assert back["set_size"].to_pylist() == sets.sizes.tolist()
    for name in ("id", "text", "label", "name"):
        written = table[name].cast(back[name].type)  # texts, if they come from CSV
        assert back[name].to_pylist() == written.to_pylist()
    assert target in ("csv", "tsv") or back.schema.field("prediction_set").type == pa.list_(pa.string())
    assert target in ("csv", "tsv") or back.schema.field("set_size").type == pa.int32()


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_class_names_are_written_unchanged(tmp_path, share):
    rng = np.random.default_rng(int(10 * share))
    p = (rng.random((50, 4)) < share).astype(float)
    names = ("a", 'quo"te', "new\nline", "ünïcode")
    half = confide.calibrate([0.5] * 2000, 0.1, 8.0, score="lac", candidates=confide.Candidates.of([0.5]))
    for out in ("a.parquet", "a.csv"):
        predict(pa.table({f"p_{k}": p[:, k] for k in range(4)}), tmp_path / out, half, classes=names)
    expected = [[names[k] for k in np.flatnonzero(row)] for row in p]
    assert read(tmp_path / "a.parquet")["prediction_set"].to_pylist() == expected
    texts = read(tmp_path / "a.csv")["prediction_set"].to_pylist()
    assert [json.loads(text) for text in texts] == expected
    assert read(tmp_path / "a.parquet")["set_size"].to_pylist() == list(map(len, expected))


def test_kept_columns(tmp_path, calibration):
    records = write(tmp_path / "in.parquet", class_table())
    predict(records, tmp_path / "a.parquet", calibration, keep=("name", "p_cat"))
    assert read(tmp_path / "a.parquet").column_names == ["name", "p_cat", "prediction_set", "set_size"]
    predict(records, tmp_path / "b.parquet", calibration, keep=())
    assert read(tmp_path / "b.parquet").column_names == ["prediction_set", "set_size"]
    with refused(confide.errors.InputError, "column"):
        predict(records, tmp_path / "c.parquet", calibration, keep=("missing",))
    with refused(confide.errors.InputError, "keep"):
        predict(records, tmp_path / "c.parquet", calibration, keep=("id", "id"))


def test_name_clashes_and_cells_that_csv_cannot_hold(tmp_path, calibration):
    table = class_table(100).append_column("set_size", pa.array([1] * 100))
    records = write(tmp_path / "in.parquet", table)
    with refused(confide.errors.InputError, "column"):
        predict(records, tmp_path / "a.parquet", calibration)
    with refused(confide.errors.InputError, "column"):
        predict(records, tmp_path / "a.csv", calibration, keep=("p",))
    assert list(tmp_path.iterdir()) == [records]


@pytest.mark.slow(unless="kind1-folder")
@pytest.mark.parametrize("out", ["a.parquet", "folder"])
@pytest.mark.parametrize("kind", [pa.duration("s"), pa.month_day_nano_interval(), pa.struct([])])
def test_columns_that_parquet_lacks_are_named(tmp_path, calibration, out, kind):
    table = class_table(100).append_column("odd", pa.nulls(100, kind)).select(["p_cat", "p_dog", "p_emu", "id", "odd"])
    with refused(confide.errors.InputError, "column") as caught:
        predict(table, tmp_path / out, calibration)
    assert "'odd'" in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    predict(table, tmp_path / out, calibration, keep=("id",))


@pytest.mark.slow(unless="False")
@pytest.mark.parametrize("lists", [False, True])
def test_order_is_kept_over_many_batches_and_row_groups(tmp_path, calibration, lists):
    n = 150_000
    p, _ = classified(n)
    columns = {"p": pa.array(list(p))} if lists else {f"p_{k}": p[:, k] for k in range(3)}
    for i in range(3):  # files in the order of their names, rows in the order of their files
        rows = slice(i * n // 3, (i + 1) * n // 3)
        table = pa.table({"id": np.arange(n)} | columns).slice(rows.start, n // 3)
        pa.parquet.write_table(table, tmp_path / f"in-{i}.parquet", row_group_size=7_001)
    predict(tmp_path / "in-*.parquet", tmp_path / "out.parquet", calibration, "p" if lists else "p_*")
    back = read(tmp_path / "out.parquet")
    assert back["id"].to_pylist() == list(range(n))
    assert back["set_size"].to_pylist() == confide.predict_set(p, calibration).sizes.tolist()


@pytest.mark.slow
def test_an_unusable_row_leaves_no_output(tmp_path, calibration):
    p, _ = classified(60_000)
    p[50_000] = np.nan
    records = write(tmp_path / "in.parquet", {f"p_{k}": p[:, k] for k in range(3)})
    write(tmp_path / "out.parquet", {"prediction_set": [["a"]], "set_size": [1]})
    precious = (tmp_path / "out.parquet").read_bytes()
    with refused(confide.errors.InputError, "table") as caught:
        predict(records, tmp_path / "out.parquet", calibration, overwrite=True)
    assert bad_rows(caught) == [(1, 50_000)] * 3  # each column separately
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "out.parquet"]
    assert (tmp_path / "out.parquet").read_bytes() == precious
