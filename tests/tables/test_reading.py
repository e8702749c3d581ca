"""Every format and every way to name columns gives the same counts as arrays."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import confide
from confide.tables import ClassColumns, ScoreColumn, open_table, score_histogram
from tests.builders import slow
from tests.files import FORMATS, NAMES, class_table, classified, write

UNIT = confide.Candidates.unit(200)


def expected(p: np.ndarray, y: np.ndarray) -> list[int]:
    return confide.ScoreHistogram.from_scores(confide.lac_score(p, y), UNIT, "lac").counts.tolist()


def counts(path: Path, pattern: str, label: str, classes: list[str] | None = None, positions=False) -> list[int]:
    named = None if classes is None else tuple(classes)
    what = ClassColumns(pattern, label, named, label_positions=positions)
    return score_histogram(path, what, UNIT).counts.tolist()


@pytest.mark.slow(unless="label-float32-arrow")
@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize(
    ("label", "dtype"),
    [("label", np.float32), ("name", np.float64), *slow([("label", np.float64), ("name", np.float32)])],
)
def test_patterns_and_lists_in_every_format(tmp_path, suffix, label, dtype):
    lists = suffix not in ("csv", "tsv")
    path = write(tmp_path / f"records.{suffix}", class_table(dtype=dtype, lists=lists))
    p, y = classified(dtype=dtype)
    positions = label == "label"
    assert counts(path, "p_*", label, positions=positions) == expected(p, y)
    if lists:
        assert counts(path, "p", label, list(NAMES), positions) == expected(p, y)


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
        assert counts(path, column, "small") == expected(p, y)
        assert counts(path, column, "category", list(NAMES)) == expected(p, y)


@pytest.mark.slow(unless=('"score"\\n"0.5"\\n0.25\\n', "\\ufeffscore,note\\n0.5,a\\n0.25,b"))
@pytest.mark.parametrize(
    "text",
    [
        "score;note\r\n0.5;a\r\n0.25;b\r\n",
        "\ufeffscore,note\n0.5,a\n0.25,b",
        '"score"\n"0.5"\n0.25\n',
    ],
)
def test_dialects_of_csv(tmp_path, text):
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode())
    assert score_histogram(path, ScoreColumn("score"), UNIT).total == 2


@pytest.mark.slow
def test_quotes_that_appear_late_in_a_csv(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("score,note\n" + "0.5,a\n" * 30_000 + '0.5,"x, ""y"""\n')
    assert score_histogram(path, ScoreColumn("score"), UNIT).total == 30_001


@pytest.mark.slow
def test_names_that_need_quoting(tmp_path):
    p, y = classified()
    columns = {f"p \"{k}' -- ": p[:, k] for k in range(3)} | {"select *": y}
    path = write(tmp_path / "it's [1] * 'a'.parquet", columns)
    assert counts(path, "p \"*' -- ", "select *") == expected(p, y)


def test_an_arrow_file_of_one_large_batch_is_read_in_small_ones(tmp_path):
    n = 100_000
    path = write(tmp_path / "a.arrow", pa.table({"score": np.linspace(0, 1, n)}).combine_chunks())
    sizes: list[int] = []
    with open_table(path) as table:
        assert table.row_count() == n
        found = score_histogram(table, ScoreColumn("score"), UNIT, progress=sizes.append)
    assert found.total == sum(sizes) == n
    assert max(sizes) <= 2**16
