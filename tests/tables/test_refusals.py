"""Unusable files and rows: counted over the whole file, with positions, and never quoted.

VALUES has a row for each defect of values, which is written in every format that can hold it; TEXTS has one for each
defect of CSV, which is read from a file, compressed, and from standard input.
"""

import gzip
import io
from functools import partial
from itertools import product
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide.errors import FormatError, InputError
from confide.tables import (
    ClassColumns,
    ContributionBound,
    ScoreColumn,
    TargetColumns,
    open_table,
    predict_table,
    score_histogram,
)
from tests.builders import slow
from tests.files import class_table, classified, read, write
from tests.refused import bad_rows, refused

UNIT = confide.Candidates.unit(50)
PLANTED = "planted-4711"
INF, NAN = np.inf, np.nan


def refusal(argument, act, *arguments, kind=(InputError, FormatError)):
    """The error about `argument`: without the text of an engine, and without a value of the file."""
    with refused(kind, argument) as caught:
        act(*arguments)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert PLANTED not in str(caught.value)
    return caught


def scores(source, column="s", score=None):
    return score_histogram(source, ScoreColumn(column, score), UNIT)


def classes(source, pattern="p_*", label="label", names=None, **options):
    return score_histogram(source, ClassColumns(pattern, label, names, **options), UNIT)


def targets(source):
    return score_histogram(source, TargetColumns("f", "y"), confide.Candidates.spread("residual", 200))


# --- values

lac, residuals = partial(scores, score="lac"), partial(scores, score="absolute_residual")
in_lists, by_position = partial(classes, pattern="p"), partial(classes, label_positions=True)
MANY: list[float | None] = [0.5] * 50_000
MANY[20_000], MANY[30_123], MANY[49_999] = None, NAN, 1.5
ENDS = [0.5, -INF, INF]
P, Y = classified(40_000)
P[30_000, 1], P[30_005, 2], P[39_999, 0] = NAN, 1.5, -0.1


def lists(*rows):
    return {"p": pa.array(rows, pa.list_(pa.float64())), "label": [0, 1, 0]}


def labelled(labels, kind=None):
    shares = {"p_cat": 0.5, "p_dog": 0.25, "p_emu": 0.25}
    return {name: [share] * len(labels) for name, share in shares.items()} | {"label": pa.array(labels, kind)}


VALUES = {
    # the columns, the call, and for each requirement the number of rows and the first of them
    "missing, NaN and beyond one": ({"s": pa.array(MANY, pa.float64())}, lac, [(3, 20_000)]),
    "missing and NaN": ({"s": pa.array(MANY, pa.float64())}, scores, [(2, 20_000)]),
    "-inf": ({"s": ENDS}, scores, [(1, 1)]),
    "-inf in single precision": ({"s": np.array(ENDS, np.float32)}, scores, [(1, 1)]),
    "infinite residuals": ({"s": ENDS}, residuals, [(2, 1)]),
    "NaN in single precision": ({"s": np.array([0.5, NAN, INF], np.float32)}, residuals, [(2, 1)]),
    "missing in several columns, of the same records too": (
        {"p_cat": [None, 0.5, 0.5], "p_dog": [0.5, NAN, 0.5], "label": ["cat", None, None]},
        classes,
        [(1, 0), (1, 1), (2, 1)],
    ),
    "predictions": ({"f": [1.0, INF, None], "y": [1.0, 2.0, 3.0]}, targets, [(2, 1)]),
    "probabilities": (
        {f"p_{k}": P[:, k] for k in range(3)} | {"label": Y},
        classes,
        [(1, 30_000), (1, 30_005), (1, 39_999)],  # each column separately
    ),
    "probabilities in lists": ({"p": pa.array(list(P)), "label": Y}, in_lists, [(3, 30_000)]),
    "lists of other lengths": (lists([0.5, 0.5], [0.5], [0.5, 0.25, 0.25]), in_lists, [(2, 1)]),
    "a missing list": (lists([0.5, 0.5], [0.5, 0.5], None), in_lists, [(1, 2)]),
    "a missing entry": (lists([0.5, 0.5], [0.5, None], [0.5, 0.5]), in_lists, [(1, 1)]),
    "an empty list": (lists([0.5, 0.5], [], [0.5, 0.5]), in_lists, [(1, 1)]),
    "positions": (labelled([0, 3, -1]), by_position, [(2, 1)]),
    "a missing position": (labelled([0, None, 2]), by_position, [(1, 1)]),
    "a position beyond 63 bits": (labelled([2**63, 0, 0], pa.uint64()), by_position, [(1, 0)]),
    "a missing label": (labelled(["cat", PLANTED, None]), classes, [(1, 2)]),
}
LACKING = {"csv": ("list", "entry", "63 bits")}
"""What CSV does not have."""


def written(name, suffix):
    return not any(word in name for word in LACKING.get(suffix, ()))


@pytest.mark.parametrize(
    ("name", "suffix"), [pair for pair in product(VALUES, ("parquet", "arrow", "csv")) if written(*pair)]
)
def test_bad_rows_are_counted_over_the_whole_file(tmp_path, name, suffix):
    """In a CSV file the first record is row 2, as in a spreadsheet."""
    columns, act, wanted = VALUES[name]
    caught = refusal("table", act, write(tmp_path / f"a.{suffix}", columns))
    shift = 2 if suffix == "csv" else 0
    found = bad_rows(caught)
    assert {(count, row + shift) for count, row in wanted} <= set(found)
    assert len(found) == len(wanted) or "other lengths" in name
    assert "skip_incomplete" in caught.value.remedy or not name.startswith("missing")


# --- CSV

HALF, TWO = "s,name\n" + "0.5,a\n" * 30_000, "p_a,p_b,label\n"
ROW_3 = "row 3, as in a spreadsheet"
TABLE = "".join(f"{i}\t{i / 300}\r\n" for i in range(300))
named = partial(scores, column="name")
TEXTS = {
    # the content of a CSV file, the call, the argument of the error, and words in it
    "text at the top": (f"s,name\n0.5,a\n{PLANTED},b\n,c\n0.25,d\n", scores, "table", "2 do not, the first is row 3"),
    "text far down": (f"{HALF}{PLANTED},b\n,c\n", scores, "table", "2 do not, the first is row 30002"),
    "no header": (f"0.5,{PLANTED}\n0.25,{PLANTED}\n", scores, "path", "line of column names"),
    "no header, text first": (f"{PLANTED},0.5\n{PLANTED},0.25\n", scores, "path", "line of column names"),
    "no header, commas": (f"0,5;{PLANTED}\n0,25;{PLANTED}\n", scores, "path", "line of column names"),
    "a cell too many": (f"{HALF}0.5,b,{PLANTED}\n", scores, "path", "row 30002, "),
    "an open quote": (f'{HALF}0.5,"{PLANTED}\n' + "0.25,b\n" * 3000, scores, "path", "row 30002"),
    "an open quote, closed later": (
        f'{HALF}0.5,"{PLANTED}\n' + "0.25,b\n" * 3000 + '0.5,"closed\n', scores, "path", "row 30002",
    ),
    "nothing": ("", scores, "path", ""),
    "Latin-1": ("name,s\ncaf\xe9,0.5\n", named, "path", ""),
    "Latin-1 far down": ("name,s\n" + "a,0.5\n" * 40_000 + "caf\xe9,0.5\n", named, "path", ""),
    "a short line": (f"{TWO}0.5,0.5,a\n0.5,0.5\n0.5,0.5,a\n", classes, "path", f"{ROW_3}, has 2 value"),
    "shorter lines": (TWO + "0.5,0.5,a\n0.5\n" * 3, classes, "path", f"{ROW_3}, has 1 value"),
    "long lines": (TWO + "0.5,0.5,a\n0.5,0.5,a,4\n" * 3, classes, "path", f"{ROW_3}, has 4 value"),
    "after a cell of two lines": (
        f'{TWO}0.5,0.5,"a\n b"\n0.5,0.5\n', classes, "path", f"{ROW_3}, has 2 value",
    ),
    "a name twice": ("p_a,p_a,label\n" + "0.5,0.5,a\n" * 9, classes, "path", ""),
    "a name in two cases": ("p_a,p_A,label\n" + "0.5,0.5,a\n" * 9, classes, "path", ""),
    "another column": (f"name,note\n{'a,b' * 9}\n{PLANTED},{PLANTED},c\n", scores, "column", "'s' is not in"),
    "a similar column": ("ss,note\n0.5,a\n", scores, "column", ", which has 'ss'"),
    "decimal commas": ("s\n0,5\n0,25\n", scores, "column", "decimal=','"),
    "decimal commas among others": ("p_a;p_b;label\n" + "0,81;0,19;a\n" * 30, classes, "column", "decimal"),
    "quoted decimal commas": (TWO + '"0,81","0,19",a\n' * 30, classes, "column", "decimal"),
    "text, not decimal commas": ("p_a;p_b;label\n" + "x;y;a\n0,25;0,75;b\n" * 30, classes, "table", ""),
}  # fmt: skip
PLACES = ("a.csv", "a.csv.gz", "-")


def put(content, place, folder, monkeypatch):
    """A file with the content, or standard input."""
    if place == "-":
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(content))))
        return place
    (folder / place).write_bytes(gzip.compress(content) if place.endswith(".gz") else content)
    return folder / place


@pytest.mark.parametrize(
    ("name", "place"),
    slow(
        (pair for pair in product(TEXTS, PLACES) if pair != ("another column", "-")),
        [*product(TEXTS, PLACES[:1]), ("nothing", "-"), ("a name twice", "-")],
    ),
)
def test_csv_that_cannot_be_read(tmp_path, monkeypatch, name, place):
    text, act, argument, words = TEXTS[name]
    message = str(refusal(argument, act, put(text.encode("latin-1"), place, tmp_path, monkeypatch)).value)
    assert words in message
    assert ("decimal" in message) == ("decimal" in words)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.tsv", f"id\ts\r\n{TABLE}".encode("utf-16"), "UTF-8"),
        ("a.tsv.gz", gzip.compress(f"id\ts\r\n{TABLE}".encode("utf-16"), mtime=0), "UTF-8"),
        ("a.tsv", gzip.compress(b"id\ts\r\n", mtime=0), "name end in .csv.gz"),
        ("a.tsv.gz", b"id\ts\r\n", "name end without .gz"),
        ("a.tsv", f"id\ts\r\n{TABLE}1\t0.5\t{PLANTED}\r\n".encode(), "row 302, as in a spreadsheet, has 3 values"),
    ],
)
def test_the_name_and_the_encoding_of_csv(tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    assert says in str(refusal("path", scores, tmp_path / name).value)


STREAM = io.BytesIO()
with pa.ipc.new_stream(STREAM, pa.schema({"s": pa.string()})) as writer:
    writer.write_table(pa.table({"s": [PLANTED] * 5000}), max_chunksize=1000)


@pytest.mark.parametrize("content", [STREAM.getvalue()[:3000], b"\xff\xff\xff\xff planted-4711", b"PAR1 planted-4711"])
def test_standard_input_that_is_no_stream(tmp_path, monkeypatch, content):
    refusal("path", scores, put(content, "-", tmp_path, monkeypatch), kind=FormatError)


def count_text(tmp_path, text, what=None, **options):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with open_table(path, **options) as table:
        return score_histogram(table, what or ClassColumns("p_*", "label"), UNIT)


@pytest.mark.slow
def test_a_decimal_comma_can_be_read(tmp_path):
    assert count_text(tmp_path, "s\n0,5\n0,25\n", ScoreColumn("s"), decimal=",").total == 2
    text = "p_a;p_b;label\n" + "0,81;0,19;a\n0,25;0,75;b\n" * 30
    found = count_text(tmp_path, text, decimal=",")
    assert found.counts.tolist() == count_text(tmp_path, text.replace(",", ".")).counts.tolist()
    mixed = refusal("table", partial(count_text, decimal=","), tmp_path, text + "0.25;0,75;a\n")
    assert bad_rows(mixed) == [(1, 62)]
    assert count_text(tmp_path, TWO + '"0,81","0,19",a\n' * 30, decimal=",").total == 30
    people = ContributionBound("label", 2, ("p_b",))
    (tmp_path / "b.csv").write_text("p_a;p_b;label\n0,81;0,19;a\n0,25;0,75;b\n")
    with open_table(tmp_path / "b.csv", decimal=",") as table:
        assert score_histogram(table, ClassColumns("p_*", "label"), UNIT, people=people).total == 2
    with refused(InputError, "decimal"), open_table(tmp_path / "b.csv", decimal=";"):
        pass


@pytest.mark.slow
def test_a_csv_column_that_changes_its_type_late(tmp_path, calibration):
    path = tmp_path / "a.csv"
    path.write_text("id,p_a,p_b,p_c\n" + "1,0.5,0.5,0\n" * 40_000 + f"{PLANTED},0.5,0.5,0\n")
    for name in ("b.parquet", "c.csv"):
        assert predict_table(path, ClassColumns("p_*"), calibration, tmp_path / name)["rows"] == 40_001
        assert read(tmp_path / name)["id"][40_000].as_py() == PLANTED


# --- files and columns


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "feather"])
@pytest.mark.parametrize("damage", ["truncated", "foreign"])
def test_damaged_files(tmp_path, suffix, damage):
    rows = {"s": np.random.default_rng(0).random(10_000), "name": [PLANTED] * 10_000}
    path = write(tmp_path / f"a.{suffix}", rows)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2] if damage == "truncated" else f"{PLANTED}, hello\n".encode() * 100)
    refusal("path", scores, path, kind=FormatError)


def test_missing_files(tmp_path):
    for name in ("b.parquet", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "note.txt").write_text(PLANTED)
    (tmp_path / "d").write_text("s\n0.5\n")  # no extension
    for name in ("a.parquet", "b.parquet", "c", "a*.parquet", "a.xlsx", "scores", "d"):
        refusal("path", scores, tmp_path / name)


@pytest.mark.slow(unless="arrow")
@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_tables_without_rows(tmp_path, suffix):
    empty = {"s": pa.float64(), "p": pa.list_(pa.float32()), "label": pa.string()}
    path = write(tmp_path / f"a.{suffix}", {name: pa.array([], kind) for name, kind in empty.items()})
    assert not scores(path).counts.any()
    refusal("column", in_lists, path)
    assert not in_lists(path, names=("a", "b")).counts.any()


@pytest.mark.parametrize(
    ("act", "argument"),
    [
        (scores, "column"),
        (named, "column"),
        (partial(classes, label="p_cat"), "column"),
        *((partial(classes, pattern=pattern), "probabilities") for pattern in ("q_*", "p_c*", "*_*")),
        *((partial(classes, pattern=pattern), "column") for pattern in ("*", "name")),
        *(
            (partial(classes, pattern=one, names=names), "classes")
            for one in ("p", "p_*")
            for names in (["a", "b"], ["a", "b", "a"])
        ),
    ],
)
def test_missing_and_unsuitable_columns(tmp_path, act, argument):
    refusal(argument, act, write(tmp_path / "a.parquet", class_table(10)))


@pytest.mark.slow(unless="frame")
@pytest.mark.parametrize("kind", ["memory", "frame", "batches", "parquet", "arrow"])
def test_names_that_differ_in_case_alone_are_refused_where_they_are_read(tmp_path, kind):
    """DuckDB would read the first of them for both."""
    held = pa.table({"s": [0.1] * 9, "S": [0.9] * 9, "t": [0.5] * 9})
    data = {"memory": lambda: held, "frame": held.to_pandas, "batches": lambda: iter(held.to_batches())}.get(
        kind, lambda: str(write(tmp_path / f"a.{kind}", held))
    )
    for name in ("s", "S"):
        refusal("column", scores, data(), name, "lac")
    assert scores(data(), "t", "lac").counts.sum() == 9


def test_names_that_differ_in_case_alone_in_one_file_of_a_folder(tmp_path):
    held = pa.table({"S": [0.9] * 9, "s": [0.1] * 9, "t": [0.5] * 9})
    write(tmp_path / "a.parquet", held)
    write(tmp_path / "b.parquet", held.select(["s", "t"]))
    refusal("column", lambda: score_histogram(str(tmp_path), ScoreColumn("s", "lac"), UNIT))
    assert score_histogram(str(tmp_path), ScoreColumn("t", "lac"), UNIT).counts.sum() == 18


@pytest.mark.parametrize("address", ["s3n://b/a.parquet", "https://b/a.parquet", "hdfs://b/a.parquet", "no://x/y"])
def test_addresses_that_are_not_read_from_here(address):
    refusal("source", scores, address)
