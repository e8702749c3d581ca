"""SQLite stores values of any type in a column: each is read as it is, or refused by the name of its column."""

import sqlite3

import numpy as np
import pyarrow.parquet as pq
import pytest

import confide
from confide import Candidates, ScoreHistogram
from confide.errors import InputError
from confide.tables import ScoreColumn, TargetColumns, calibrate_table, open_table, predict_table, score_histogram
from confide.tables.arrow import ColumnRef
from tests.refused import refused

NUMBERS = np.random.default_rng(0).normal(0, 0.4, 2000)


def table_of(folder, declared, values):
    """A table whose column `x` is declared of one type and holds these values, with a whole column `n`."""
    path = folder / f"{declared.partition('(')[0]}.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE t (x {declared}, n INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(value, i) for i, value in enumerate(values)])
    connection.close()
    return open_table(f"sqlite://{path}", "t")


@pytest.mark.parametrize("declared", ["INTEGER", "REAL", "NUMERIC", "DECIMAL(10, 2)", "BIGINT"])
def test_numbers_are_read_as_they_are_whatever_their_declared_type(tmp_path, declared):
    """Fractions stay, and integers beyond 2^53 are rounded once; the counts are those of the numbers themselves."""
    values = [*NUMBERS.tolist(), 2**60 + 1]
    expected = ScoreHistogram.from_scores(np.array(values, np.float64), Candidates.of(np.linspace(-1, 1, 50)))
    with table_of(tmp_path, declared, values) as table:
        counted = score_histogram(table, ScoreColumn("x"), Candidates.of(np.linspace(-1, 1, 50)))
    assert (counted.counts == expected.counts).all()


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("INTEGER", 0.5),
        ("INTEGER", "0.5x"),
        ("BOOLEAN", 7),
        ("TEXT", b"a"),
        ("DATE", "tomorrow"),
        ("DECIMAL(9, 2)", 0.125),
    ],
)
@pytest.mark.parametrize("form", ["label", "value"])
def test_no_value_of_another_type_is_converted(tmp_path, declared, value, form):
    """Labels, groups and copies: a value that only a conversion would fit raises an error that names its column."""
    with table_of(tmp_path, declared, [None, value]) as table, refused(InputError, "table") as caught:
        list(table.batches([ColumnRef("x", form)], 9000))
    assert "'x'" in str(caught.value)
    assert str(value) not in str(caught.value)


@pytest.mark.slow
def test_integers_beside_missing_ones_are_copied_exactly(tmp_path):
    """pandas, which Ibis uses, would make floats of them."""
    released = confide.calibrate(np.abs(NUMBERS), 0.1, 1.0, score="absolute_residual", unit=1)
    with table_of(tmp_path, "INTEGER", [2**53 + 1, None]) as table:
        predict_table(table, TargetColumns("n"), released, tmp_path / "out.parquet", keep=["x"])
    assert pq.read_table(tmp_path / "out.parquet")["x"].to_pylist() == [2**53 + 1, None]


def test_texts_among_numbers_are_refused_by_name(tmp_path):
    cells = [*NUMBERS[:50].tolist(), "secret 123456789"]
    with table_of(tmp_path, "REAL", cells) as table, refused(InputError, "table") as caught:
        calibrate_table(table, ScoreColumn("x"), 0.1, 1.0)
    assert "'x'" in str(caught.value)
