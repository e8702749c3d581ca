"""Unusable files and rows: counted over the whole file, with positions, and never quoted."""

import gzip
import io
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide.tables import (
    ClassColumns,
    ContributionBound,
    ScoreColumn,
    TargetColumns,
    open_table,
    predict_table,
    score_histogram,
)
from tests.files import class_table, classified, read, write
from tests.refused import bad_rows, refused

UNIT = confide.Candidates.unit(50)
PLANTED = "planted-4711"


def refusal(act, argument: str = "table") -> pytest.ExceptionInfo[confide.ConfideError]:
    """The error of `act`: without the text of an engine, and without a value of the file."""
    with pytest.raises(confide.errors.InputError) as caught:
        act()
    error = caught.value
    assert error.argument == argument, str(error)
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None
    assert PLANTED not in str(error)
    assert "\n" not in str(error)
    return caught


def count_scores(path: Path, column: str = "score", score: str | None = None) -> confide.ScoreHistogram:
    return score_histogram(path, ScoreColumn(column, score), UNIT)


def count_classes(path: Path, pattern: str = "p_*", label: str = "label", classes=None, positions=False):
    what = ClassColumns(
        pattern, label, None if classes is None else tuple(classes), label_positions=positions and pattern != "p"
    )
    return score_histogram(path, what, UNIT)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "arrow"])
def test_bad_scores_are_counted_over_the_whole_file(tmp_path, suffix):
    scores: list[float | None] = [0.5] * 50_000
    for place, value in ((20_000, None), (30_123, float("nan")), (49_999, 1.5)):
        scores[place] = value
    path = write(tmp_path / f"a.{suffix}", {"score": pa.array(scores, pa.float64()), "n": np.arange(50_000)})
    caught = refusal(lambda: count_scores(path, score="lac"))
    row = 20_002 if suffix == "csv" else 20_000  # in a spreadsheet, where the column names are row 1
    assert bad_rows(caught) == [(3, row)]
    assert "skip_incomplete" in caught.value.remedy
    assert bad_rows(refusal(lambda: count_scores(path))) == [(2, row)]


@pytest.mark.parametrize(("value", "kind"), [(-np.inf, np.float64), (-np.inf, np.float32), (np.nan, np.float32)])
def test_infinite_scores(tmp_path, value, kind):
    path = write(tmp_path / "a.parquet", {"score": np.array([0.5, value, np.inf], kind)})
    assert bad_rows(refusal(lambda: count_scores(path))) == [(1, 1)]
    assert bad_rows(refusal(lambda: count_scores(path, score="absolute_residual"))) == [(2, 1)]


@pytest.mark.parametrize("rows", [1, 40_000])
def test_text_in_a_numeric_csv_column(tmp_path, rows):
    path = tmp_path / "a.csv"
    path.write_text("score,name\n" + "0.5,a\n" * rows + f"{PLANTED},b\n,c\n0.25,d\n")
    assert bad_rows(refusal(lambda: count_scores(path))) == [(2, rows + 2)]


MANY = "score,name\n" + "0.5,a\n" * 30_000


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"0.5,{PLANTED}\n0.25,{PLANTED}\n", None),
        (f"{MANY}0.5,b,{PLANTED}\n", 30002),
        (f'{MANY}0.5,"{PLANTED}\n', 30002),
        ("", None),
        ("name,score\ncaf\xe9,0.5\n", None),
        ("name,score\n" + "a,0.5\n" * 40_000 + "caf\xe9,0.5\n", None),
    ],
)
def test_csv_files_that_cannot_be_read(tmp_path, text, line):
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode("latin-1"))
    caught = refusal(lambda: count_scores(path, "name" if "\xe9" in text else "score"), "path")
    assert line is None or f"row {line}," in str(caught.value)


TABLE = "".join(f"{i}\t{i / 300}\r\n" for i in range(300))


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.tsv", f"id\tscore\r\n{TABLE}".encode("utf-16"), "UTF-8"),
        ("a.tsv.gz", gzip.compress(f"id\tscore\r\n{TABLE}".encode("utf-16"), mtime=0), "UTF-8"),
        ("a.tsv", gzip.compress(b"id\tscore\r\n", mtime=0), "name end in .csv.gz"),
        ("a.tsv.gz", b"id\tscore\r\n", "name end without .gz"),
        ("a.tsv", f"id\tscore\r\n{TABLE}1\t0.5\t{PLANTED}\r\n".encode(), "row 302, as in a spreadsheet, has 3 values"),
        ("a.csv", f"name,note\n{'a,b' * 9}\n{PLANTED},{PLANTED},c\n".encode(), "'score' is not in file"),
        ("a.csv", f"{PLANTED},0.5\n{PLANTED},0.25\n".encode(), "line of column names"),
        ("a.csv", f"0,5;{PLANTED}\n0,25;{PLANTED}\n".encode(), "line of column names"),
        ("a.csv", b"score\n0,5\n0,25\n", "decimal=','"),
    ],
)  # fmt: skip
def test_csv_is_refused_for_the_right_reason(tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(confide.errors.InputError) as caught:
        count_scores(tmp_path / name)
    assert says in str(caught.value)
    assert PLANTED not in str(caught.value)


def test_a_column_alone_can_have_decimal_commas(tmp_path):
    text = "score\n0,5\n0,25\n"
    assert count_text(tmp_path, text, ScoreColumn("score"), decimal=",").total == 2


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "feather"])
@pytest.mark.parametrize("damage", ["truncated", "foreign"])
def test_damaged_files(tmp_path, suffix, damage):
    path = write(
        tmp_path / f"a.{suffix}", {"score": np.random.default_rng(0).random(10_000), "name": [PLANTED] * 10_000}
    )
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2] if damage == "truncated" else f"{PLANTED}, hello\n".encode() * 100)
    assert type(refusal(lambda: count_scores(path), "path").value) is confide.errors.FormatError


def test_missing_files(tmp_path):
    for name in ("b.parquet", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "note.txt").write_text(PLANTED)
    (tmp_path / "d").write_text("s\n0.5\n")  # no extension
    for name in ("a.parquet", "b.parquet", "c", "a*.parquet", "a.xlsx", "scores", "d"):
        refusal(lambda name=name: count_scores(tmp_path / name), "path")


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_tables_without_rows(tmp_path, suffix):
    empty = {"score": pa.float64(), "p": pa.list_(pa.float32()), "label": pa.string()}
    path = write(tmp_path / f"a.{suffix}", {name: pa.array([], kind) for name, kind in empty.items()})
    assert not count_scores(path).counts.any()
    refusal(lambda: count_classes(path, "p"), "column")
    assert not count_classes(path, "p", classes=("a", "b")).counts.any()


@pytest.mark.parametrize(
    ("act", "argument"),
    [
        (count_scores, "column"),
        (partial(count_scores, column="name"), "column"),
        (partial(count_classes, pattern="q_*"), "probabilities"),
        (partial(count_classes, pattern="p_c*"), "probabilities"),
        (partial(count_classes, pattern="*_*"), "probabilities"),
        (partial(count_classes, pattern="*"), "column"),
        (partial(count_classes, pattern="name"), "column"),
        (partial(count_classes, label="p_cat"), "column"),
        *(
            (partial(count_classes, pattern=pattern, classes=classes), "classes")
            for pattern in ("p", "p_*")
            for classes in (["a", "b"], ["a", "b", "a"])
        ),
    ],
)
def test_missing_and_unsuitable_columns(tmp_path, act, argument):
    path = write(tmp_path / "a.parquet", class_table(10))
    refusal(lambda: act(path), argument)


def test_bad_probabilities(tmp_path):
    p, y = classified(40_000)
    p[30_000, 1], p[30_005, 2], p[39_999, 0] = np.nan, 1.5, -0.1
    path = write(tmp_path / "a.parquet", {"p": pa.array(list(p)), "label": y} | {f"p_{k}": p[:, k] for k in range(3)})
    assert bad_rows(refusal(lambda: count_classes(path, "p"))) == [(3, 30_000)]
    each = bad_rows(refusal(lambda: count_classes(path, "p_*")))  # each column separately
    assert sorted(each) == [(1, 30_000), (1, 30_005), (1, 39_999)]


@pytest.mark.parametrize(
    ("lists", "bad"),
    [
        ([[0.5, 0.5], [0.5], [0.5, 0.25, 0.25]], (2, 1)),
        ([[0.5, 0.5], [0.5, 0.5], None], (1, 2)),
        ([[0.5, 0.5], [0.5, None], [0.5, 0.5]], (1, 1)),
        ([[0.5, 0.5], [], [0.5, 0.5]], (1, 1)),
    ],
)
@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_bad_lists(tmp_path, lists, bad, suffix):
    path = write(tmp_path / f"a.{suffix}", {"p": pa.array(lists, pa.list_(pa.float64())), "label": [0, 1, 0]})
    assert bad in bad_rows(refusal(lambda: count_classes(path, "p")))


@pytest.mark.parametrize(
    ("labels", "bad"),
    [([0, 3, -1], (2, 1)), ([0, None, 2], (1, 1)), (["cat", PLANTED, None], (1, 2)), ([2**63, 0, 0], (1, 0))],
)
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_labels_that_are_missing_or_no_positions(tmp_path, labels, bad, suffix):
    kind = pa.uint64() if labels[0] == 2**63 else None
    if kind is not None and suffix == "csv":
        pytest.skip("a column of such numbers in CSV is not one of integers")
    shares = {"cat": 0.5, "dog": 0.25, "emu": 0.25}
    columns = {f"p_{name}": [share] * 3 for name, share in shares.items()} | {"label": pa.array(labels, kind)}
    positions = isinstance(labels[0], int)
    count, row = bad
    path = write(tmp_path / f"a.{suffix}", columns)
    found = bad_rows(refusal(lambda: count_classes(path, positions=positions)))
    assert found == [(count, row + 2 if suffix == "csv" else row)]


def test_predictions_that_are_not_finite(tmp_path):
    path = write(tmp_path / "a.parquet", {"f": [1.0, np.inf, None], "y": [1.0, 2.0, 3.0]})
    caught = refusal(lambda: score_histogram(path, TargetColumns("f", "y"), confide.Candidates.spread("residual", 200)))
    assert bad_rows(caught) == [(2, 1)]


def test_a_csv_column_that_changes_its_type_late(tmp_path, calibration):
    path = tmp_path / "a.csv"
    path.write_text("id,p_a,p_b,p_c\n" + "1,0.5,0.5,0\n" * 40_000 + f"{PLANTED},0.5,0.5,0\n")
    for name in ("b.parquet", "c.csv"):
        assert predict_table(path, ClassColumns("p_*"), calibration, tmp_path / name)["rows"] == 40_001
        assert read(tmp_path / name)["id"][40_000].as_py() == PLANTED


def count_text(tmp_path, text, what=None, **options):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with open_table(path, **options) as table:
        return score_histogram(table, what or ClassColumns("p_*", "label"), UNIT)


HEADER = "p_a;p_b;label\n"


@pytest.mark.slow
def test_a_decimal_comma_is_named_and_can_be_read(tmp_path):
    text = HEADER + "0,81;0,19;a\n0,25;0,75;b\n" * 30
    refusal(lambda: count_text(tmp_path, text), "column")
    found = count_text(tmp_path, text, decimal=",")
    assert found.counts.tolist() == count_text(tmp_path, text.replace(",", ".")).counts.tolist()
    caught = refusal(lambda: count_text(tmp_path, text + "0.25;0,75;a\n", decimal=","))
    assert bad_rows(caught) == [(1, 62)]
    quoted = "p_a,p_b,label\n" + '"0,81","0,19",a\n' * 30
    refusal(lambda: count_text(tmp_path, quoted), "column")
    assert count_text(tmp_path, quoted, decimal=",").total == 30
    texts = refusal(lambda: count_text(tmp_path, text.replace("0,81", "x").replace("0,19", "y")))
    assert "decimal" not in str(texts.value)
    people = ContributionBound("label", 2, ("p_b",))
    path = tmp_path / "b.csv"
    path.write_text(HEADER + "0,81;0,19;a\n0,25;0,75;b\n")
    with open_table(path, decimal=",") as table:
        assert score_histogram(table, ClassColumns("p_*", "label"), UNIT, people=people).total == 2
    with refused(confide.errors.InputError, "decimal"), open_table(path, decimal=";"):
        pass


@pytest.mark.parametrize(
    ("lines", "row", "values"),
    [
        (["0.5,0.5,a", "0.5,0.5", "0.5,0.5,a"], 3, 2),
        (["0.5,0.5,a", "0.5"] * 3, 3, 1),
        (["0.5,0.5,a", "0.5,0.5,a,4"] * 3, 3, 4),
        (['0.5,0.5,"a', ' b"', "0.5,0.5"], 3, 2),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_the_row_that_is_too_short_or_too_long(tmp_path, lines, row, values, packed):
    path, text = tmp_path / f"a.csv{'.gz' if packed else ''}", "\n".join(["p_a,p_b,label", *lines, ""])
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    message = str(refusal(lambda: count_classes(path), "path").value)
    assert f"row {row}, as in a spreadsheet, has {values} value" in message


@pytest.mark.parametrize("kind", ["memory", "frame", "batches", "parquet", "arrow"])
def test_names_that_differ_in_case_alone_are_refused_where_they_are_read(tmp_path, kind):
    """DuckDB would read the first of them for both."""
    held = pa.table({"s": [0.1] * 9, "S": [0.9] * 9, "t": [0.5] * 9})
    data = {"memory": lambda: held, "frame": held.to_pandas, "batches": lambda: iter(held.to_batches())}.get(
        kind, lambda: str(write(tmp_path / f"a.{kind}", held))
    )
    for name in ("s", "S"):
        refusal(lambda name=name: score_histogram(data(), ScoreColumn(name, "lac"), UNIT), "column")
    assert score_histogram(data(), ScoreColumn("t", "lac"), UNIT).counts.sum() == 9


def test_names_that_differ_in_case_alone_in_one_file_of_a_folder(tmp_path):
    held = pa.table({"S": [0.9] * 9, "s": [0.1] * 9, "t": [0.5] * 9})
    write(tmp_path / "a.parquet", held)
    write(tmp_path / "b.parquet", held.select(["s", "t"]))
    refusal(lambda: score_histogram(str(tmp_path), ScoreColumn("s", "lac"), UNIT), "column")
    assert score_histogram(str(tmp_path), ScoreColumn("t", "lac"), UNIT).counts.sum() == 18


@pytest.mark.parametrize("header", ["p_a,p_a,label", "p_a,p_A,label"])
def test_column_names_that_occur_twice(tmp_path, header, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text(f"{header}\n" + "0.5,0.5,a\n" * 9)
    refusal(lambda: count_classes(path), "path")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(path.read_bytes()))))
    refusal(lambda: count_classes("-"), "path")


@pytest.mark.parametrize("address", [*(f"{one}://bucket/a.parquet" for one in ("s3n", "https", "hdfs")), "no://x/y"])
def test_addresses_that_are_not_read_from_here(address):
    refusal(lambda: count_scores(address), "source")
