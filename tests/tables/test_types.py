"""Every source with every type of column: the same value, or an error that names the column.

The parts of a source agree in type, and a cell of CSV is a text until a number is read.
"""

import datetime
import gzip
import io
import json
import sqlite3
import traceback
from decimal import Decimal
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import confide
from confide import Candidates, ScoreHistogram
from confide.errors import InputError
from confide.tables import (
    ClassColumns,
    ContributionBound,
    ScoreColumn,
    TargetColumns,
    calibrate_table,
    evaluate_table,
    group_histograms,
    open_table,
    predict_table,
    read_numbers,
    score_histogram,
)
from confide.tables.arrow import ColumnRef
from confide.tables.expressions import position
from tests.builders import grid, slow
from tests.files import read, write
from tests.refused import bad_rows, refused

UNIT = Candidates.unit(50)
PAIR = ClassColumns("p", classes=("no", "yes"))
PLANTED = "planted-4711"
RELEASE = confide.calibrate(np.linspace(0, 1, 300), 0.1, 1.0, score="lac", classes=["no", "yes"])
"""Its thresholds differ from draw to draw; the tests read the columns that are copied."""


# --- the parts of a source

DAY, TIME = datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 10, 30)
WIDER = {
    # two types, of which the second holds every value of the first, with values that show a conversion
    "int32, int64": (pa.array([1], pa.int32()), pa.array([2**40])),
    "uint32, int64": (pa.array([2**32 - 1], pa.uint32()), pa.array([-1])),
    "int32, double": (pa.array([2**31 - 1], pa.int32()), pa.array([0.5])),
    "int16, float": (pa.array([2**15 - 1], pa.int16()), pa.array([0.5], pa.float32())),
    "float, double": (pa.array([0.1], pa.float32()), pa.array([0.1])),
    "decimals": (pa.array([Decimal("2.75")]), pa.array([Decimal("123456.125")])),
    "string, large_string": (pa.array(["007"]), pa.array(["7"], pa.large_string())),
    "dictionary, string": (pa.array(["007"]).dictionary_encode(), pa.array(["7"])),
    "null, string": (pa.nulls(1), pa.array(["007"])),
    "lists": (pa.array([[0.1]], pa.list_(pa.float32())), pa.array([[0.1]])),
}
OTHER = {
    "int64, double": (pa.array([2**53 + 1]), pa.array([0.5])),
    "int32, float": (pa.array([2**31 - 1], pa.int32()), pa.array([0.5], pa.float32())),
    "int64, uint64": (pa.array([-1]), pa.array([2**64 - 1], pa.uint64())),
    "int64, string": (pa.array([7]), pa.array(["007"])),
    "int64, decimal": (pa.array([7]), pa.array([Decimal("2.75")])),
    "decimal, double": (pa.array([Decimal("0.1")]), pa.array([0.1])),
    "bool, int64": (pa.array([True]), pa.array([2])),
    "bool, string": (pa.array([True]), pa.array(["true"])),
    "date, timestamp": (pa.array([DAY]), pa.array([TIME])),
    "date, string": (pa.array([DAY]), pa.array(["2024-01-01"])),
    "timestamps with and without zone": (pa.array([TIME]), pa.array([TIME], pa.timestamp("us", "UTC"))),
    "timestamps of two units": (pa.array([TIME]), pa.array([TIME], pa.timestamp("ns"))),
    "list, double": (pa.array([[0.5]]), pa.array([0.5])),
}
CASES = [(name, turned, True) for name in WIDER for turned in (False, True)]
CASES += [(name, turned, False) for name in OTHER for turned in (False, True)]
TEXTS = ("string, large_string", "dictionary, string")
"""Each of two types that holds every value of the other."""


def files(kind, parts, folder):
    (folder / "parts").mkdir()
    for place, part in enumerate(parts):
        write(folder / "parts" / f"{place}.{kind}", part)
    return folder / "parts"


SOURCES = {
    "parquet": partial(files, "parquet"),
    "arrow": partial(files, "arrow"),
    "data set": lambda parts, folder: ds.dataset(files("parquet", parts, folder)),
    "batches": lambda parts, _: iter(parts),
}


@pytest.mark.slow(unless=("arrow-case55", "batches-case149", "batches-case173"))
@pytest.mark.parametrize(("source", "case"), grid(list(SOURCES), CASES))
def test_the_parts_of_a_source_agree_in_type(tmp_path, source, case):
    """Each value arrives, or the error names the column and both types; columns that are not read may differ."""
    name, turned, widens = case
    values = (WIDER if widens else OTHER)[name][:: -1 if turned else 1]
    parts = [pa.table({"p": [0.2], "x": one}) for one in values]
    opened, out = SOURCES[source](parts, tmp_path), tmp_path / "sets.parquet"
    first_decides = source in ("data set", "batches") and name not in TEXTS
    if widens and (turned or not first_decides):
        predict_table(opened, PAIR, RELEASE, out)
        assert pq.read_table(out)["x"].to_pylist() == [one.to_pylist()[0] for one in values]
        return
    with refused(InputError, "batches" if source == "batches" else "source") as caught:
        predict_table(opened, PAIR, RELEASE, out)
    message = str(caught.value)
    assert "'x'" in message
    titles = ("the first batch", "a later one") if source == "batches" else ("0.", "1.")
    assert all(title in message for title in titles)
    assert not out.exists()
    if source != "batches":
        assert predict_table(opened, PAIR, RELEASE, out, keep=())["rows"] == 2


ROLES = {
    # a column of the parts below, and a call that reads it
    "score": lambda source, x: score_histogram(source, ScoreColumn(x), UNIT),
    "label": lambda source, x: score_histogram(source, ClassColumns("p", x, (0, 1)), UNIT),
    "group": lambda source, x: group_histograms(source, ScoreColumn("p"), x, [0, 1], UNIT),
    "subgroup": lambda source, x: evaluate_table(source, ClassColumns("p", "y", ("no", "yes")), RELEASE, by=x),
    "person": lambda source, x: score_histogram(source, ScoreColumn("p"), UNIT, people=bound(x, "n")),
    "copy": lambda source, x: predict_table(source, PAIR, RELEASE, source.parent / "out.csv", keep=(x,)),
    "weight": lambda source, x: calibrate_table(source, ScoreColumn("p"), 0.1, 1.0, weights=x, weight_bound=2.0),
}


def bound(person, order):
    return ContributionBound(person, 1, (order,))


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_every_column_that_is_read_agrees_in_type(tmp_path, role):
    """The first part holds 0 and 1 as int64, the second 0.5 as double."""
    others = {"p": [0.5, 0.25], "y": ["no", "yes"], "n": [1, 2]}
    parts = [pa.table({**others, "x": [0, 1]}), pa.table({**others, "n": [3, 4], "x": [0.5, 0.25]})]
    folder = files("parquet", parts, tmp_path)
    with refused(InputError, "source") as caught:
        ROLES[role](folder, "x")
    assert "'x'" in str(caught.value)
    assert not (tmp_path / "out.csv").exists()
    assert score_histogram(folder, ScoreColumn("p"), UNIT, people=bound("n", "p")).total == 4


# --- columns that Arrow or DuckDB does not have

FOREIGN = {
    "decimals of 256 bits": pa.array([Decimal(1)] * 3, pa.decimal256(50, 2)),
    "large lists of half precision": pa.array([[np.float16(1)]] * 3, pa.large_list(pa.float16())),
    "integers beyond 64 bits": [10**30] * 3,
    "another byte order": np.arange(3).astype(">i8"),
    "values of two types": [1.5, f"{PLANTED} 7", 1.5],
}


@pytest.mark.slow(unless=("decimals of 256 bits", "values of two types"))
@pytest.mark.parametrize("kind", FOREIGN)
def test_columns_that_are_not_read_may_hold_anything(tmp_path, kind):
    """In data of Arrow, a data frame or a mapping; where it is read, the error names the column and no value."""
    data = {"p": [0.2, 0.5, 0.7], "x": FOREIGN[kind]}
    sources = [lambda: data, lambda: pd.DataFrame(data)]
    if isinstance(data["x"], pa.Array):
        table = pa.table(data)
        sources = [lambda: table, lambda: iter(table.to_batches()), lambda: ds.dataset(table)]
    for source in sources:
        assert score_histogram(source(), ScoreColumn("p"), UNIT).total == 3
        for act in (
            lambda source: score_histogram(source, ScoreColumn("x"), UNIT),
            lambda source: predict_table(source, PAIR, RELEASE, tmp_path / "out.csv"),
        ):
            with refused(InputError, "table") as caught:
                act(source())
            assert "'x'" in str(caught.value)
            assert PLANTED not in "".join(traceback.format_exception(caught.value))


# --- CSV

MANY = 21_000
"""More rows than DuckDB looks at to guess types."""


def csv_file(text, folder, monkeypatch):
    (folder / "a.csv").write_text(text)
    return folder / "a.csv"


def packed(text, folder, monkeypatch):
    (folder / "a.csv.gz").write_bytes(gzip.compress(text.encode()))
    return folder / "a.csv.gz"


def csv_folder(text, folder, monkeypatch):
    header, *lines = text.splitlines(keepends=True)
    (folder / "csv").mkdir(exist_ok=True)
    for name, part in (("0.csv", lines[:-1]), ("1.csv", lines[-1:])):
        (folder / "csv" / name).write_text("".join([header, *part]))
    return folder / "csv"


def standard_input(text, folder, monkeypatch):
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(text.encode()))))
    return "-"


PLACES = [csv_file, packed, csv_folder, standard_input]
CSV = pytest.mark.parametrize("place", slow(PLACES, everyday=[csv_file, standard_input]))


def csv_with(name, values):
    """Every place with every value; everyday each value once."""
    return pytest.mark.parametrize(("place", name), grid(PLACES, values))


FIRST, LATER = ("7", "12", "2024-01-01", "true"), ("007", "12.7", "2024-01-01 10:30:00", "1")


@pytest.mark.slow(unless="packed-sets.arrow")
@csv_with("out", ["sets.parquet", "sets.arrow", "sets.csv"])
def test_cells_are_copied_as_texts(tmp_path, monkeypatch, place, out):
    text = "p,id,dose,day,flag\n" + f"0.3,{','.join(FIRST)}\n" * MANY + f"0.3,{','.join(LATER)}\n"
    predict_table(place(text, tmp_path, monkeypatch), PAIR, RELEASE, tmp_path / out)
    if out.endswith("csv"):
        rows = (tmp_path / out).read_text().splitlines()[1:]
        found = [tuple(json.loads(f"[{rows[k]}]"[: rows[k].index("[") - 1] + "]")) for k in (0, MANY)]
    else:
        table = read(tmp_path / out)
        found = [tuple(table[name][k].as_py() for name in ("id", "dose", "day", "flag")) for k in (0, MANY)]
    assert found == [FIRST, LATER]


@pytest.mark.slow(unless="packed-1.0")
@csv_with("odd", ["1.4", "01", "+1", "1e0", "0x1", "1.0"])
def test_labels_and_groups_are_texts(tmp_path, monkeypatch, place, odd):
    """The last row has a class and a group of its own, which is no class and no group, or one if it is named."""
    text = "p,y,s\n" + "".join(f"0.3,{1 + i % 2},0.5\n" for i in range(MANY)) + f"0.3,{odd},0.5\n"
    what = ScoreColumn("s")
    labels = score_histogram(place(text, tmp_path, monkeypatch), ClassColumns("p", "y", (1, 2)), UNIT)
    assert (labels.counts[-1], labels.total) == (1, MANY + 1)  # it is no class: no set covers this record
    for act in (
        lambda source: group_histograms(source, what, "y", [1, 2], UNIT),
        lambda source: calibrate_table(source, what, 0.1, 1.0, by="y", groups=[1, 2]),
    ):
        with refused(InputError, "table") as caught:
            act(place(text, tmp_path, monkeypatch))
        assert bad_rows(caught) == [(1, MANY if place is csv_folder else MANY + 2)]
    found = group_histograms(place(text, tmp_path, monkeypatch), what, "y", [1, 2, odd], UNIT)
    assert [one.total for one in found.values()] == [MANY // 2, MANY // 2, 1]


# --- numbers in CSV

THOUSANDS = ["36,618", "1'234", "1 234", "1\u00a0234", "1\u202f234", "1,234,567", "1.234.567", "1.234,5", "1,234.5",
             "12,34,567", "-36,618"]  # fmt: skip


@pytest.mark.parametrize(("place", "cell", "decimal"), grid(PLACES, THOUSANDS, [".", ","]))
def test_separators_of_thousands_are_named(tmp_path, monkeypatch, place, cell, decimal):
    """A comma before three digits alone is read as a decimal comma only if this is stated."""
    text = "f,y\n" + f'950,"{cell}"\n' * 20
    with open_table(place(text, tmp_path, monkeypatch), decimal=decimal) as table:
        what = TargetColumns("f", "y")
        if decimal == "," and cell in ("36,618", "-36,618"):
            assert score_histogram(table, what).total == 20
            return
        with refused(InputError, "column") as caught:
            score_histogram(table, what)
    assert "thousands" in caught.value.remedy
    assert "decimal" not in str(caught.value)


@pytest.mark.slow
def test_written_numbers_have_the_decimal_mark_of_the_input(tmp_path):
    (tmp_path / "new.csv").write_text("id;f\n1;11,75\n2;9,5\n")
    released = confide.calibrate(np.linspace(0, 1, 300), 0.1, 1.0, score="absolute_residual")
    with open_table(tmp_path / "new.csv", decimal=",") as table:
        predict_table(table, TargetColumns("f"), released, tmp_path / "out.csv")
    assert "." not in (tmp_path / "out.csv").read_text()
    with open_table(tmp_path / "out.csv", decimal=",") as table:
        numbers = read_numbers(table)
    ends = confide.predict_interval(numbers[:, 1], released)
    assert np.array_equal(numbers[:, 2:], np.column_stack([ends.lower, ends.upper]))


@pytest.mark.slow
def test_cells_of_several_lines_are_read_from_standard_input(tmp_path, monkeypatch):
    text = "s,name\n" + '0.5,"two\nlines, and ""quotes"""\n' * 5000
    predict = ClassColumns("s", classes=("no", "yes"))
    predict_table(standard_input(text, tmp_path, monkeypatch), predict, RELEASE, tmp_path / "sets.parquet")
    assert set(read(tmp_path / "sets.parquet")["name"].to_pylist()) == {'two\nlines, and "quotes"'}


@pytest.mark.slow
def test_a_header_longer_than_a_buffer_and_a_slow_stream(tmp_path, monkeypatch):
    """The stream is read as it arrives, in pieces that end within lines."""

    class Slow(io.RawIOBase):
        def __init__(self):
            self.pieces = [b"s," + b"x" * 20_000, b"\n0.", b"5,a\n0.25,b", b"\n"]

        def readable(self):
            return True

        def readinto(self, buffer):
            piece = self.pieces.pop(0) if self.pieces else b""
            buffer[: len(piece[: len(buffer)])] = piece[: len(buffer)]
            if len(piece) > len(buffer):
                self.pieces.insert(0, piece[len(buffer) :])
            return min(len(piece), len(buffer))

    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BufferedReader(Slow())))
    assert (
        score_histogram("-", ScoreColumn("s"), UNIT).counts.nonzero()[0].tolist()
        == UNIT.edges.searchsorted([0.25, 0.5]).tolist()
    )


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


@pytest.mark.parametrize(("names", "places"), [((1, 2, 3), [2, 0, 1]), ((0, 1, 2, 3), [3, 1, 2])])
def test_positions_are_those_of_the_names_unless_names_number_the_classes(names, places):
    ibis = pytest.importorskip("ibis")
    assert position(ibis.memtable(pa.table({"g": [3, 1, 2]})).g, names).to_pyarrow().to_pylist() == places
