"""Bad files and bad rows: counted over the whole file, placed, and never quoted."""

import gzip
import io
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide.tables import (
    Classified,
    People,
    Regressed,
    Scored,
    evaluate_table,
    open_table,
    predict_table,
    score_histogram,
)
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
    return score_histogram(path, Scored(column, score), UNIT)


def count_classes(path: Path, pattern: str = "p_*", label: str = "label", classes=None, positions=False):
    what = Classified(
        pattern, label, None if classes is None else tuple(classes), label_positions=positions and pattern != "p"
    )
    return score_histogram(path, what, UNIT)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "arrow"])
def test_bad_scores_are_counted_over_the_whole_file(tmp_path, suffix):
    scores: list[float | None] = [0.5] * 50_000
    for place, value in ((20_000, None), (30_123, float("nan")), (49_999, 1.5)):
        scores[place] = value
    path = write(tmp_path / f"a.{suffix}", {"score": pa.array(scores, pa.float64()), "n": np.arange(50_000)})
    assert "between 0 and 1" in (message := refusal(lambda: count_scores(path, score="lac")))
    counted = "rows as in a spreadsheet, where the column names are row 1" if suffix == "csv" else "rows count from 0"
    row = 20_002 if suffix == "csv" else 20_000
    assert f"3 do not, the first is row {row} ({counted})" in message
    assert message.endswith("; records with missing values are left out by skip_incomplete")
    assert "2 do not" in refusal(lambda: count_scores(path))


@pytest.mark.parametrize(("value", "kind"), [(-np.inf, np.float64), (-np.inf, np.float32), (np.nan, np.float32)])
def test_infinite_scores(tmp_path, value, kind):
    path = write(tmp_path / "a.parquet", {"score": np.array([0.5, value, np.inf], kind)})
    assert "1 does not, row 1" in refusal(lambda: count_scores(path))
    assert "2 do not, the first is row 1" in refusal(lambda: count_scores(path, score="absolute_residual"))


@pytest.mark.parametrize("rows", [1, 40_000])
def test_text_in_a_numeric_csv_column(tmp_path, rows):
    path = tmp_path / "a.csv"
    path.write_text("score,name\n" + "0.5,a\n" * rows + f"{PLANTED},b\n,c\n0.25,d\n")
    message = refusal(lambda: count_scores(path))
    assert "column 'score' must hold a number" in message
    assert f"2 do not, the first is row {rows + 2} " in message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"0.5,{PLANTED}\n0.25,{PLANTED}\n", "must start with a line of column names"),
        (
            "score,name\n" + "0.5,a\n" * 30_000 + f"0.5,b,{PLANTED}\n",
            "cannot be read on line 30002: a line has more or",
        ),
        ("score,name\n" + "0.5,a\n" * 30_000 + f'0.5,"{PLANTED}\n', "cannot be read on line 30002"),
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
    for folder in (_folder(tmp_path / "b.parquet"), _folder(tmp_path / "c")):
        (folder / "note.txt").write_text(PLANTED)
        message = refusal(lambda folder=folder: count_scores(folder))
        assert f"folder {str(folder)!r} must name files that end in one of .parquet, " in message
    message = refusal(lambda: count_scores(tmp_path / "a*.parquet"))
    assert f"pattern {str(tmp_path / 'a*.parquet')!r} must name files that end in one of .parquet, " in message
    assert ".parquet, .pq, .csv, .tsv" in refusal(lambda: count_scores(tmp_path / "a.xlsx"))
    assert refusal(lambda: count_scores(tmp_path / "scores")).endswith("scores' does not exist")
    (tmp_path / "scores").write_text("s\n0.5\n")
    assert "no extension" in refusal(lambda: count_scores(tmp_path / "scores"))


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_tables_without_rows(tmp_path, suffix):
    empty = {"score": pa.float64(), "p": pa.list_(pa.float32()), "label": pa.string()}
    path = write(tmp_path / f"a.{suffix}", {name: pa.array([], kind) for name, kind in empty.items()})
    assert not count_scores(path).counts.any()
    assert "it holds none" in refusal(lambda: count_classes(path, "p"))
    assert not count_classes(path, "p", classes=("a", "b")).counts.any()


def test_columns_that_do_not_exist_or_do_not_fit(tmp_path):
    path = write(tmp_path / "a.parquet", class_table(10))
    existing = (
        "its columns are id (integers), text (text), p_cat (numbers), p_dog (numbers), p_emu (numbers), p (lists), "
        "label (integers), name (text)"
    )
    assert f"column 'score' is not in file {str(path)!r}; {existing}" == refusal(lambda: count_scores(path))
    assert "must hold numbers; it holds text; its columns" in refusal(lambda: count_scores(path, "name"))
    assert "it matches 0; its columns" in refusal(lambda: count_classes(path, "q_*"))
    assert "it matches 1; of two classes one column, by its own name, is enough" in refusal(
        lambda: count_classes(path, "p_c*")
    )
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
        assert "do not, the first is row 30000" in message or "column 'p_1'" in message


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
        ([0, 3, -1], "the position of a class, 0 to 2, in every row; 2 do not, the first is row 1"),
        ([0, None, 2], "1 does not, row 1"),
        (["cat", PLANTED, None], "one of the 3 classes (cat, dog, emu) in every row; 2 do not, the first is row 1"),
        ([2**63, 0, 0], "1 does not, row 0"),
    ],
)
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_labels_outside_the_classes(tmp_path, labels, says, suffix):
    kind = pa.uint64() if labels[0] == 2**63 else None
    shares = {"cat": 0.5, "dog": 0.25, "emu": 0.25}
    columns = {f"p_{name}": [share] * 3 for name, share in shares.items()} | {"label": pa.array(labels, kind)}
    positions = isinstance(labels[0], int)
    if kind is not None and suffix == "csv":  # a column of such numbers is not one of integers
        says, positions = "one of the 3 classes (cat, dog, emu) in every row; 3 do not, the first is row 0", False
    if suffix == "csv":  # where row 1 holds the column names
        says = f"{says[:-1]}{int(says[-1]) + 2}"
    path = write(tmp_path / f"a.{suffix}", columns)
    assert says in refusal(lambda: count_classes(path, positions=positions))


def test_class_names_that_do_not_fit(tmp_path):
    path = write(tmp_path / "a.parquet", class_table(10))
    for pattern in ("p", "p_*"):
        assert "found 2 names for 3 classes" in refusal(lambda p=pattern: count_classes(path, p, classes=["a", "b"]))
        assert "found 1 repeated" in refusal(lambda p=pattern: count_classes(path, p, classes=["a", "b", "a"]))


def test_predictions_that_are_not_finite(tmp_path):
    path = write(tmp_path / "a.parquet", {"f": [1.0, np.inf, None], "y": [1.0, 2.0, 3.0]})

    def act():
        score_histogram(path, Regressed("f", "y"), confide.Candidates.geometric())

    assert "column 'f' must hold a number that is finite" in (message := refusal(act))
    assert "2 do not, the first is row 1" in message


def test_a_csv_column_that_changes_its_type_late(tmp_path, calibration):
    path = tmp_path / "a.csv"
    path.write_text("id,p_a,p_b,p_c\n" + "1,0.5,0.5,0\n" * 40_000 + f"{PLANTED},0.5,0.5,0\n")
    out = tmp_path / "b.parquet"

    def act(out, **options):
        return predict_table(path, Classified("p_*"), calibration, out, **options)

    message = refusal(lambda: act(out))
    assert "on line 40002: a value does not fit the type that the first rows of its column have" in message
    assert list(tmp_path.iterdir()) == [path]
    assert act(out, keep=())["rows"] == 40_001
    assert act(tmp_path / "c.csv")["rows"] == 40_001
    assert PLANTED in (tmp_path / "c.csv").read_text()


def count_text(tmp_path, text, what=None, **options):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with open_table(path, **options) as table:
        return score_histogram(table, what or Classified("p_*", "label"), UNIT)


HEADER = "p_a;p_b;label\n"


def test_a_decimal_comma_is_called_one_and_can_be_read(tmp_path):
    text = HEADER + "0,81;0,19;a\n0,25;0,75;b\n" * 30
    message = refusal(lambda: count_text(tmp_path, text))
    assert "column 'p_a' holds numbers with a decimal comma; read them with decimal=',' or write a point" in message
    found = count_text(tmp_path, text, decimal=",")
    assert found.counts.tolist() == count_text(tmp_path, text.replace(",", ".")).counts.tolist()
    assert "1 does not, row 62" in refusal(lambda: count_text(tmp_path, text + "0.25;0,75;a\n", decimal=","))
    quoted = "p_a,p_b,label\n" + '"0,81","0,19",a\n' * 30
    assert "with a decimal comma" in refusal(lambda: count_text(tmp_path, quoted))
    assert count_text(tmp_path, quoted, decimal=",").total == 30
    assert "decimal comma" not in refusal(lambda: count_text(tmp_path, text.replace("0,81", "x").replace("0,19", "y")))
    people = People("label", 2, ("p_b",))
    path = tmp_path / "b.csv"
    path.write_text(HEADER + "0,81;0,19;a\n0,25;0,75;b\n")
    with open_table(path, decimal=",") as table:
        assert score_histogram(table, Classified("p_*", "label"), UNIT, people=people).total == 2
    with pytest.raises(confide.InputError, match=r"decimal must be one of '\.', ','"), open_table(path, decimal=";"):
        pass


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["0.5,0.5,a", "0.5,0.5", "0.5,0.5,a"], "line 3 has 2 values, and there are 3 column names"),
        (["0.5,0.5,a", "0.5"] * 3, "line 3 has 1 value, and there are 3 column names"),
        (["0.5,0.5,a", "0.5,0.5,a,4"] * 3, "line 3 has 4 values, and there are 3 column names"),
        (['0.5,0.5,"a', ' b"', "0.5,0.5"], "line 4 has 2 values"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_the_line_that_is_too_short_or_too_long(tmp_path, lines, says, packed):
    path, text = tmp_path / f"a.csv{'.gz' if packed else ''}", "\n".join(["p_a,p_b,label", *lines, ""])
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    assert says in refusal(lambda: count_classes(path))


def test_column_names_that_occur_twice(tmp_path):
    for header, says in (
        ("p_a,p_a,label", "'p_a' occurs twice; rename one"),
        ("p_a,p_A,label", "'p_A' occurs twice (and 'p_a'; upper and lower case do not tell them apart)"),
    ):
        path = tmp_path / "a.csv"
        path.write_text(f"{header}\n" + "0.5,0.5,a\n" * 9)
        assert says in refusal(lambda path=path: count_classes(path))
        raw = io.BufferedReader(io.BytesIO(path.read_bytes()))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.stdin", io.TextIOWrapper(raw))
            assert says in refusal(lambda: count_classes("-"))


def test_the_column_that_the_pattern_should_not_match_is_named(tmp_path):
    p, y = classified(50)
    columns = {f"p_{k}": p[:, k] for k in range(3)} | {"p_id": np.arange(100, 150), "label": y.astype(str)}
    for suffix in ("parquet", "csv", "arrow"):
        message = refusal(lambda suffix=suffix: count_classes(write(tmp_path / f"a.{suffix}", columns)))
        assert message.startswith("column 'p_id' must hold probabilities between 0 and 1")
        assert "'p_0'" not in message
        assert "divide percentages by 100; if it is no class, leave it out by a narrower pattern)" in message
    named = {f"p_{k}": p[:, k] for k in range(3)} | {"p_id": ["x"] * 50, "label": y.astype(str)}
    message = refusal(lambda: count_classes(write(tmp_path / "c.parquet", named)))
    assert "column 'p_id' must hold numbers, for the pattern 'p_*' matches it; it holds text; rename it, or" in message
    few = {f"p_{k}": np.where(np.arange(50) == k, np.nan, p[:, k]) for k in range(3)} | {"label": y.astype(str)}
    assert "narrower" not in refusal(lambda: count_classes(write(tmp_path / "d.parquet", few)))
    columns = {f"p_{k}": 100 * p[:, k % 3] for k in range(9)} | {"label": y.astype(str)}
    message = refusal(lambda: count_classes(write(tmp_path / "b.parquet", columns)))
    assert "columns 'p_0' and following must hold probabilities" in message
    assert "'p_1'" not in message


@pytest.mark.parametrize(
    ("names", "labels", "says"),
    [
        ("01", ["1.0", "0.0", "1"], "2 would be one without '.0', as whole numbers are written"),
        ("ab", [" a", "b ", "b"], "2 would be one without the blanks around it"),
        ("ab", ["A", "a", "B"], "2 would be one in other upper and lower case"),
        ("ab", ["c", "", "a"], None),
    ],
)
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_labels_that_are_nearly_classes(tmp_path, names, labels, says, suffix, calibration):
    columns = {f"p_{name}": [0.5] * 60 for name in names} | {"label": labels * 20}
    path = write(tmp_path / f"a.{suffix}", columns)
    release = replace(calibration, classes=None)
    for act in (lambda: count_classes(path), lambda: evaluate_table(path, Classified("p_*", "label"), release)):
        message = refusal(act)
        assert "40 do not" in message
        assert says is None or says.replace("2", "40", 1) in message
        assert (" would be " in message) == (says is not None)


def test_two_classes_and_one_column(tmp_path):
    path = write(tmp_path / "a.parquet", {"p_yes": [0.5], "label": ["yes"]})
    both = "of two classes one column, by its own name, is enough with classes=NO,YES if it is the probability of YES"
    assert both in refusal(lambda: count_classes(path))
    assert both in refusal(lambda: count_classes(path, "p_yes"))


def test_thousands_of_columns_are_not_all_listed(tmp_path):
    path = write(tmp_path / "a.csv", {f"column_{k}": [0.5] for k in range(3000)})
    message = refusal(lambda: count_classes(path, "p_*"))
    assert "and 2960 more" in message
    assert len(message) < 2000


@pytest.mark.parametrize("scheme", ["s3n", "https", "hdfs", "dbfs"])
def test_addresses_of_elsewhere_have_a_remedy(scheme):
    message = refusal(lambda: count_scores(f"{scheme}://bucket/records.parquet"))
    for way in ("copy the files here", "s3://, gs:// or az://", "Spark", "pyarrow.dataset"):
        assert way in message


def test_addresses_of_no_engine_are_not_asked_for_a_table():
    assert "or another engine of Ibis; found nowhere://" in refusal(lambda: count_scores("nowhere://x/y"))
