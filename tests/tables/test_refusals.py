"""Bad files and bad rows: counted over the whole file, placed, and never quoted."""

from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from confide.tables.source import open_table

import confide
from confide.tables import choose, histogram
from confide.tables.predict import Output, write_sets
from tests.files import class_table, classified, write

UNIT = confide.Candidates.unit(50)
PLANTED = "planted-4711"


def refusal(act) -> str:
    with pytest.raises(confide.InputError) as caught:
        act()
    error = caught.value
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None
    assert PLANTED not in str(error)
    assert "\n" not in str(error)
    return str(error)


def count_scores(path: Path, column: str = "score", score: str | None = None) -> confide.ScoreHistogram:
    with open_table(path) as table:
        return histogram.count(histogram.of_column(choose.score(table, column, score), score), UNIT)


def count_classes(path: Path, pattern: str = "p_*", label: str = "label", classes=None) -> confide.ScoreHistogram:
    with open_table(path) as table:
        p = choose.probabilities(table, pattern, classes, label)
        return histogram.count(histogram.of_probabilities(p, choose.label(table, label, p.names)), UNIT)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "arrow"])
def test_bad_scores_are_counted_over_the_whole_file(tmp_path, suffix):
    scores: list[float | None] = [0.5] * 50_000
    for place, value in ((20_000, None), (30_123, float("nan")), (49_999, 1.5)):
        scores[place] = value
    path = write(tmp_path / f"a.{suffix}", {"score": pa.array(scores, pa.float64()), "n": np.arange(50_000)})
    assert "between 0 and 1" in (message := refusal(lambda: count_scores(path, score="lac")))
    assert "3 do not, the first is row 20000 (rows count from 0)" in message
    assert "2 do not" in refusal(lambda: count_scores(path))


@pytest.mark.parametrize(("value", "kind"), [(-np.inf, np.float64), (-np.inf, np.float32), (np.nan, np.float32)])
def test_infinite_scores(tmp_path, value, kind):
    path = write(tmp_path / "a.parquet", {"score": np.array([0.5, value, np.inf], kind)})
    assert "1 does not, row 1 " in refusal(lambda: count_scores(path))
    assert "2 do not, the first is row 1 " in refusal(lambda: count_scores(path, score="absolute_residual"))


@pytest.mark.parametrize("rows", [1, 40_000])
def test_text_in_a_numeric_csv_column(tmp_path, rows):
    path = tmp_path / "a.csv"
    path.write_text("score,name\n" + "0.5,a\n" * rows + f"{PLANTED},b\n,c\n0.25,d\n")
    message = refusal(lambda: count_scores(path))
    assert "column 'score' must hold a number" in message
    assert f"2 do not, the first is row {rows} " in message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"0.5,{PLANTED}\n0.25,{PLANTED}\n", "must start with a line of column names"),
        (
            "score,name\n" + "0.5,a\n" * 30_000 + f"0.5,b,{PLANTED}\n",
            "cannot be read on line 30002: a line has more or",
        ),
        ("score,name\n" + "0.5,a\n" * 30_000 + f'0.5,"{PLANTED}\n', "cannot be read on line 30002"),
        ("score,name\n", "is empty: it has column names but no rows"),
        ("", "is empty: it has no bytes"),
    ],
)
def test_csv_files_that_cannot_be_read(tmp_path, text, says):
    path = tmp_path / "a.csv"
    path.write_text(text)
    assert says in refusal(lambda: count_scores(path))


@pytest.mark.parametrize("rows", [0, 40_000])
def test_csv_that_is_not_utf8(tmp_path, rows):
    path = tmp_path / "a.csv"
    path.write_bytes(b"name,score\n" + b"a,0.5\n" * rows + b"caf\xe9,0.5\n")
    assert "it is not UTF-8 text" in refusal(lambda: count_scores(path, "name"))


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "feather"])
@pytest.mark.parametrize("damage", ["truncated", "foreign"])
def test_damaged_files(tmp_path, suffix, damage):
    path = write(
        tmp_path / f"a.{suffix}", {"score": np.random.default_rng(0).random(10_000), "name": [PLANTED] * 10_000}
    )
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2] if damage == "truncated" else f"{PLANTED}, hello\n".encode() * 100)
    assert "it is truncated, damaged or not a" in refusal(lambda: count_scores(path))


def test_files_that_are_not_there(tmp_path):
    assert "does not exist" in refusal(lambda: count_scores(tmp_path / "a.parquet"))
    assert "is a folder" in refusal(lambda: count_scores(_folder(tmp_path / "b.parquet")))
    assert ".parquet, .pq, .csv, .tsv, .arrow" in refusal(lambda: count_scores(tmp_path / "a.xlsx"))
    assert "no extension" in refusal(lambda: count_scores(tmp_path / "scores"))


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_tables_without_rows(tmp_path, suffix):
    path = write(
        tmp_path / f"a.{suffix}", {"score": pa.array([], pa.float64()), "p": pa.array([], pa.list_(pa.float32()))}
    )
    assert "is empty: it has column names but no rows" in refusal(lambda: count_scores(path))
    assert "it holds none" in refusal(lambda: count_classes(path, "p", "score"))


def test_columns_that_do_not_exist_or_do_not_fit(tmp_path):
    path = write(tmp_path / "a.parquet", class_table(10))
    existing = (
        "its columns are id (integers), text (text), p_cat (numbers), p_dog (numbers), p_emu (numbers), p (lists), "
        "label (integers), name (text)"
    )
    assert f"column 'score' is not in {str(path)!r}; {existing}" == refusal(lambda: count_scores(path))
    assert "must hold numbers; it holds text; its columns" in refusal(lambda: count_scores(path, "name"))
    assert "it matches 0; its columns" in refusal(lambda: count_classes(path, "q_*"))
    assert "it matches 1; its columns" in refusal(lambda: count_classes(path, "p_c*"))
    assert "must have one '*'; found 2" in refusal(lambda: count_classes(path, "*_*"))
    assert "column 'text' must hold numbers" in refusal(lambda: count_classes(path, "*"))
    assert "holds text; probabilities come from a column of lists" in refusal(lambda: count_classes(path, "name"))
    assert "holds numbers; labels are class names or integers" in refusal(lambda: count_classes(path, label="p_cat"))


def test_categories_are_values_and_are_not_listed(tmp_path):
    table = pa.table({"who": pa.array([PLANTED, "x"]).dictionary_encode()})
    for suffix in ("parquet", "arrow"):
        path = write(tmp_path / f"a.{suffix}", table)
        assert "who (text)" in refusal(partial(count_scores, path))


def test_columns_that_differ_in_case_only(tmp_path):
    path = write(tmp_path / "a.parquet", {"p_a": [0.5], "p_A": [0.5], "s": pa.array([{"x": [1], "y": {"z": 2}}])})
    assert "differ in more than upper and lower case" in refusal(lambda: count_scores(path))


def test_bad_probabilities(tmp_path):
    p, y = classified(40_000)
    p[30_000, 1], p[30_005, 2], p[39_999, 0] = np.nan, 1.5, -0.1
    path = write(tmp_path / "a.parquet", {"p": pa.array(list(p)), "label": y} | {f"p_{k}": p[:, k] for k in range(3)})
    for pattern in ("p", "p_*"):
        message = refusal(lambda pattern=pattern: count_classes(path, pattern))
        assert "probabilities between 0 and 1" in message
        assert "3 do not, the first is row 30000 " in message


@pytest.mark.parametrize(
    ("lists", "bad", "first"),
    [
        ([[0.5, 0.5], [0.5], [0.5, 0.25, 0.25]], "2 do not, the first is", 1),
        ([[0.5, 0.5], [0.5, 0.5], None], "1 does not,", 2),
        ([[0.5, 0.5], [0.5, None], [0.5, 0.5]], "1 does not,", 1),
        ([[0.5, 0.5], [], [0.5, 0.5]], "1 does not,", 1),
    ],
)
@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_bad_lists(tmp_path, lists, bad, first, suffix):
    path = write(tmp_path / f"a.{suffix}", {"p": pa.array(lists, pa.list_(pa.float64())), "label": [0, 1, 0]})
    message = refusal(lambda: count_classes(path, "p"))
    assert f"{bad} row {first} " in message
    assert "column 'p' must hold" in message


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        ([0, 3, -1], "the position of a class, 0 to 2, in every row; 2 do not, the first is row 1 "),
        ([0, None, 2], "1 does not, row 1 "),
        (["cat", PLANTED, None], "one of the 3 classes (cat, dog, emu) in every row; 2 do not, the first is row 1 "),
        ([2**63, 0, 0], "1 does not, row 0 "),
    ],
)
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_labels_outside_the_classes(tmp_path, labels, says, suffix):
    kind = pa.uint64() if labels[0] == 2**63 else None
    columns = {f"p_{name}": [0.5, 0.25, 0.25] for name in ("cat", "dog", "emu")} | {"label": pa.array(labels, kind)}
    assert says in refusal(lambda: count_classes(write(tmp_path / f"a.{suffix}", columns)))


def test_class_names_that_do_not_fit(tmp_path):
    path = write(tmp_path / "a.parquet", class_table(10))
    for pattern in ("p", "p_*"):
        assert "found 2 names for 3 classes" in refusal(lambda p=pattern: count_classes(path, p, classes=["a", "b"]))
        assert "found 1 repeated" in refusal(lambda p=pattern: count_classes(path, p, classes=["a", "b", "a"]))


def test_predictions_that_are_not_finite(tmp_path):
    path = write(tmp_path / "a.parquet", {"f": [1.0, np.inf, None], "y": [1.0, 2.0, 3.0]})

    def act():
        with open_table(path) as table:
            f, y = choose.number(table, "f"), choose.number(table, "y")
            histogram.count(histogram.of_predictions([f], y), confide.Candidates.geometric())

    assert "column 'f' must hold a number that is finite" in (message := refusal(act))
    assert "2 do not, the first is row 1 " in message


def test_a_csv_column_that_changes_its_type_late(tmp_path, calibration):
    path = tmp_path / "a.csv"
    path.write_text("id,p_a,p_b\n" + "1,0.5,0.5\n" * 40_000 + f"{PLANTED},0.5,0.5\n")
    out = tmp_path / "b.parquet"

    def act(output):
        with open_table(path) as table:
            return write_sets(choose.probabilities(table, "p_*"), calibration, output)

    message = refusal(lambda: act(Output(out)))
    assert "on line 40002: a value does not fit the type that the first rows of its column have" in message
    assert list(tmp_path.iterdir()) == [path]
    assert act(Output(out, keep=()))["rows"] == 40_001
    assert act(Output(tmp_path / "c.csv"))["rows"] == 40_001
    assert PLANTED in (tmp_path / "c.csv").read_text()
