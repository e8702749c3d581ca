"""Formats, names, folders, streams and standard input: the counts of arrays; existing outputs are not replaced."""

import csv
import gzip
import io
import sys
from itertools import product
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import confide
from confide import Candidates, ScoreHistogram
from confide.errors import InputError, InputTypeError
from confide.support import OutputExistsError
from confide.tables import (
    ClassColumns,
    ScoreColumn,
    calibrate_table,
    group_histograms,
    is_folder,
    open_table,
    predict_table,
    score_histogram,
)
from tests.files import NAMES, class_table, classified, read, write
from tests.refused import bad_rows, refused

UNIT, EVEN = Candidates.unit(50), Candidates.unit(200)
SCORES = np.linspace(0, 1, 100)
ODD = ["rec[1]", "[ab]", "*", "?", "it's", '"quoted"', "a b;c", "[!x]", "a{1,2}", "100%", "-", "x\\y", "~home", "$HOME",
       "ünï", "semi;--", "postgresql:"]  # fmt: skip


def counts(source) -> list[int]:
    return score_histogram(source, ScoreColumn("s"), UNIT).counts.tolist()


def expected(scores) -> list[int]:
    return ScoreHistogram.from_scores(scores, UNIT).counts.tolist()


@pytest.mark.slow
@pytest.mark.parametrize(("stem", "suffix"), list(product(ODD, ["parquet", "csv", "csv.gz", "arrow"])))
def test_file_names_are_taken_literally(tmp_path, suffix, stem):
    """The folder contains files that the name would match as a pattern."""
    for name in ("rec1", "a", "b", "x", "ab", "a1"):
        put(tmp_path / f"{name}.{suffix}", [0.25])
    path = tmp_path / f"{stem}.{suffix}"
    put(path, SCORES)
    assert counts(path) == counts(str(path)) == expected(SCORES)


@pytest.mark.slow
@pytest.mark.parametrize(("stem", "suffix"), list(product(ODD, ["parquet", "csv", "arrow"])))
def test_file_names_in_a_folder_are_taken_literally(tmp_path, suffix, stem):
    folder = tmp_path / stem
    folder.mkdir()
    put(folder / f"{stem}.{suffix}", SCORES)
    assert counts(folder) == expected(SCORES)
    put(folder / f"rec1.{suffix}", [0.25])
    assert counts(folder) == expected([*SCORES, 0.25])


def test_files_of_several_formats_raise_an_error(tmp_path):
    put(tmp_path / "a.parquet", SCORES)
    put(tmp_path / "b.csv", SCORES)
    with refused(InputError, "files"):
        counts(tmp_path)


def test_files_of_a_folder_must_have_the_same_columns(tmp_path):
    for suffix, argument in (("csv", "path"), ("arrow", "source"), ("parquet", "source")):
        folder = tmp_path / suffix
        folder.mkdir()
        write(folder / f"a.{suffix}", {"s": SCORES})
        write(folder / f"b.{suffix}", {"t": SCORES})
        with refused(InputError, argument):
            counts(folder)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "arrow"])
@pytest.mark.parametrize(
    ("folders", "groups"),
    [
        (["a%20b", "c%2Fd%3De"], ["a b", "c/d=e"]),
        (["2024-01-01", "2024-01-02"], ["2024-01-01", "2024-01-02"]),
        (["1", "-20"], [1, -20]),
        (["01", "1"], ["01", "1"]),
        (["250", "250.4"], ["250", "250.4"]),
        (["__HIVE_DEFAULT_PARTITION__", "c"], None),
    ],
)
def test_values_of_folders_are_the_same_in_every_format(tmp_path, suffix, folders, groups):
    for k, folder in enumerate(folders):
        (tmp_path / f"ward={folder}").mkdir()
        put(tmp_path / f"ward={folder}" / f"x.{suffix}", SCORES[: 40 + k])
    if groups is None:
        with refused(InputError, "table") as caught:
            group_histograms(tmp_path, ScoreColumn("s"), "ward", ["a", "c"], UNIT)
        assert bad_rows(caught) == [(40, 0)]
        assert "skip_incomplete" in caught.value.remedy
        return
    found = group_histograms(tmp_path, ScoreColumn("s"), "ward", groups, UNIT)
    assert [found[group].total for group in groups] == [40, 41]


def put(path, scores):
    table = pa.table({"s": np.asarray(scores, float)})
    if path.name.endswith(".gz"):
        with gzip.open(path, "wb") as stream:
            pa.csv.write_csv(table, stream)
    else:
        write(path, table)


# --- outputs


@pytest.mark.slow
@pytest.mark.parametrize("out", ["sets.parquet", "sets.csv", "sets.csv.gz", "sets", "sets/"])
def test_existing_outputs_are_not_replaced(tmp_path, calibration, out):
    path = f"{tmp_path}/{out}"
    if is_folder(path):
        (tmp_path / "sets").mkdir()
        put(tmp_path / "sets" / "kept.parquet", SCORES)
    else:
        predict_table(class_table(5), ClassColumns("p_*"), calibration, path, keep=("id",))
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    with refused(OutputExistsError, "output"):
        predict_table(class_table(50), ClassColumns("p_*"), calibration, path, keep=("id",))
    if is_folder(path):  # folders are never replaced
        with refused(OutputExistsError, "output"):
            predict_table(class_table(50), ClassColumns("p_*"), calibration, path, keep=("id",), overwrite=True)
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before
    if not is_folder(path):
        done = predict_table(class_table(50), ClassColumns("p_*"), calibration, path, keep=("id",), overwrite=True)
        assert done["rows"] == 50


@pytest.mark.slow
def test_csv_contains_no_formulas_and_parquet_is_unchanged(tmp_path, calibration):
    """Cells and column names that a spreadsheet would execute get an apostrophe; numbers and similar texts do not."""
    runs = ["=1+1", "@SUM(A1)", "+A1", "-2+3+cmd|' /C calc'!A0", "\t=1", "\r=1", "-\n=1"]
    rests = ["-", "-1.5e-3", "+49 170 (0)", "-inf", "+NaN", "2020-01-01", "a=1", "'=1", ""]
    table = class_table(len(runs) + len(rests)).append_column("=note", pa.array([*runs, *rests]))
    for name in ("a.csv", "a.csv.gz", "a.parquet"):
        predict_table(table, ClassColumns("p_*"), calibration, tmp_path / name, keep=("id", "=note"))
    kept = pq.read_table(tmp_path / "a.parquet")["=note"].to_pylist()
    assert kept == [*runs, *rests]
    for name, opened in (("a.csv", open), ("a.csv.gz", gzip.open)):
        with opened(tmp_path / name, "rt", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["'=note"] for row in rows] == [*(f"'{text}" for text in runs), *rests]


def test_a_folder_is_written_and_read_back(tmp_path, calibration, monkeypatch):
    monkeypatch.setattr("confide.tables.predict._ROWS_PER_FILE", 2000)
    monkeypatch.setattr("confide.tables.record_columns.rows_per_batch", lambda reads: 2048)
    what, output = ClassColumns("p_*"), []
    figures = predict_table(
        class_table(5000), what, calibration, tmp_path / "sets", keep=("id",), progress=output.append
    )
    one = predict_table(class_table(5000), what, calibration, tmp_path / "sets.parquet", keep=("id",))
    assert figures == one
    assert sum(output) == 5000
    files = sorted(path.name for path in (tmp_path / "sets").iterdir())
    assert len(files) > 1
    whole = pa.concat_tables([pq.read_table(tmp_path / "sets" / name) for name in files]).sort_by("id")
    assert whole.equals(read(tmp_path / "sets.parquet"))
    with open_table(tmp_path / "sets") as table:
        assert table.row_count() == 5000
        assert table.columns == ["id", "prediction_set", "set_size"]


@pytest.mark.slow(unless="hdfs://host/sets-output")
@pytest.mark.parametrize(("out", "argument"), [("hdfs://host/sets", "output"), ("sets.xlsx", "path")])
def test_outputs_that_cannot_be_written(tmp_path, monkeypatch, calibration, out, argument):
    monkeypatch.chdir(tmp_path)
    with refused(InputError, argument):
        predict_table(class_table(10), ClassColumns("p_*"), calibration, out)
    assert list(tmp_path.iterdir()) == []


# --- sources that can be read once


def test_a_stream_is_read_once(tmp_path):
    def batches():
        yield from pa.table({"s": SCORES}).to_batches(max_chunksize=30)

    one_shot = [batches(), pa.table({"s": SCORES}).to_reader(), iter([{"s": SCORES}]), iter([pa.table({"s": SCORES})])]
    for source in one_shot:
        with open_table(source) as table:
            assert counts(table) == expected(SCORES)
            with refused(InputError, "source"):
                counts(table)
    for source in one_shot:  # it is exhausted
        with refused(InputError, "source"):
            calibrate_table(source, ScoreColumn("s"), 0.1, 1.0, neighbors="replace_one")


@pytest.mark.parametrize("source", [3, None, object(), [3], [[0.5]], iter([SCORES])])
def test_values_that_are_not_tables_raise_an_error(source):
    with refused(InputTypeError, "batches" if isinstance(source, list) or hasattr(source, "__next__") else "source"):
        counts(source)


@pytest.mark.slow(unless="/dev/stdin")
@pytest.mark.parametrize("named", ["-", "/dev/stdin"])
def test_standard_input_has_two_names(monkeypatch, named):
    text = "\n".join(["s", *map(str, SCORES)]).encode()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(text))))
    assert counts(named) == expected(SCORES)


# --- formats, and ways to name columns


def lac_counts(p: np.ndarray, y: np.ndarray) -> list[int]:
    return confide.ScoreHistogram.from_scores(confide.lac_score(p, y), EVEN, "lac").counts.tolist()


def class_counts(path, pattern: str, label: str, classes=None, positions=False) -> list[int]:
    named = None if classes is None else tuple(classes)
    what = ClassColumns(pattern, label, named, label_positions=positions)
    return score_histogram(path, what, EVEN).counts.tolist()


@pytest.mark.slow(unless="arrow")
@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_other_kinds_of_columns(tmp_path, suffix):
    p, y = classified(dtype=np.float16 if suffix == "arrow" else np.float32)
    flat = pa.array(p.ravel())
    table = pa.table(
        {
            "fixed": pa.FixedSizeListArray.from_arrays(flat, 3),
            "lists": pa.ListArray.from_arrays(pa.array(np.arange(0, 3 * len(p) + 1, 3, dtype=np.int32)), flat),
            "small": pa.array(y, pa.uint8()),
            "category": pa.array(np.array(NAMES)[y]).dictionary_encode(),
        }
    )
    path = write(tmp_path / f"records.{suffix}", table)
    for column in ("fixed", "lists"):
        assert class_counts(path, column, "small") == lac_counts(p, y)
        assert class_counts(path, column, "category", list(NAMES)) == lac_counts(p, y)


@pytest.mark.slow(unless=('"score"\\n"0.5"\\n0.25\\n', "\\ufeffscore,note\\n0.5,a\\n0.25,b"))
@pytest.mark.parametrize(
    "text", ["score;note\r\n0.5;a\r\n0.25;b\r\n", "\ufeffscore,note\n0.5,a\n0.25,b", '"score"\n"0.5"\n0.25\n']
)
def test_dialects_of_csv(tmp_path, text):
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode())
    assert score_histogram(path, ScoreColumn("score"), EVEN).total == 2


@pytest.mark.slow
def test_quotes_that_appear_late_in_a_csv(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("score,note\n" + "0.5,a\n" * 30_000 + '0.5,"x, ""y"""\n')
    assert score_histogram(path, ScoreColumn("score"), EVEN).total == 30_001


@pytest.mark.slow
def test_names_that_need_quoting(tmp_path):
    p, y = classified()
    columns = {f"p \"{k}' -- ": p[:, k] for k in range(3)} | {"select *": y}
    path = write(tmp_path / "it's [1] * 'a'.parquet", columns)
    assert class_counts(path, "p \"*' -- ", "select *") == lac_counts(p, y)


def test_an_arrow_file_of_one_large_batch_is_read_in_small_ones(tmp_path):
    n = 100_000
    path = write(tmp_path / "a.arrow", pa.table({"score": np.linspace(0, 1, n)}).combine_chunks())
    sizes: list[int] = []
    with open_table(path) as table:
        assert table.row_count() == n
        found = score_histogram(table, ScoreColumn("score"), EVEN, progress=sizes.append)
    assert found.total == sum(sizes) == n
    assert max(sizes) <= 2**16
