"""Counts made batch by batch equal those of the whole array; buffers are converted as by pyarrow."""

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from confide import Candidates, ScoreHistogram
from confide.errors import InputError, InputTypeError
from confide.tables import ClassColumns, TargetColumns, count_batches, merge_counts, score_batches
from confide.tables.arrow import from_names, from_numpy, from_texts, integers_of, to_numpy
from tests.refused import bad_rows, refused

CANDIDATES = Candidates.of([-1.5, -5e-324, 0.0, 5e-324, 0.1, 0.5, 1.0, 1e300])
K, N = 7, 2000


def cut(array, rng, pieces=5):
    """Pieces of any length, some of them empty."""
    return np.split(array, np.sort(rng.integers(0, len(array) + 1, pieces - 1)))


@pytest.fixture(scope="module")
def records() -> dict:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(K, 0.3), N).astype(np.float32)
    labels, f = rng.integers(0, K, N), rng.normal(size=N)
    return {"p": p, "y": labels, "f": f, "t": f + rng.normal(size=N)}


def arrow(records, rows=slice(None)) -> pa.Table:
    columns = {name: values[rows] for name, values in records.items() if name != "p"}
    return pa.table(columns | {"p": pa.array(list(records["p"][rows]), pa.list_(pa.float32()))})


@pytest.mark.long
@settings(deadline=None)
@given(hnp.arrays(np.float64, st.integers(0, 60), elements=st.floats(allow_nan=False)), st.integers(0, 2**32))
def test_batches_give_the_counts_of_the_whole_array(scores, seed):
    scores = np.where(scores == -np.inf, 0.0, scores)
    expected = np.diff([0, *(int(np.sum(scores <= edge)) for edge in CANDIDATES.values)])
    pieces = cut(scores, np.random.default_rng(seed))
    np.testing.assert_array_equal(score_batches(pieces, candidates=CANDIDATES).counts, expected)
    tables = [count_batches([piece], candidates=CANDIDATES) for piece in pieces]
    np.testing.assert_array_equal(merge_counts(tables, candidates=CANDIDATES).counts, expected)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32])
def test_edges_are_exact_for_every_kind_of_batch(dtype):
    edges = Candidates.unit(50, "logit")
    around = np.concatenate([edges.edges, np.nextafter(edges.edges, 0), np.nextafter(edges.edges, 1), [0.0, -0.0]])
    scores = around.astype(dtype)
    expected = ScoreHistogram.from_scores(scores, edges).counts
    batches = {
        "numpy": [scores],
        "arrow array": [pa.array(scores)],
        "record batches": [pa.record_batch({"s": scores})],
        "table": [pa.table({"s": scores})],
        "chunked": [pa.table({"s": pa.chunked_array([scores[:7], scores[7:]])})],
        "mapping": [{"s": scores}],
        "lists": [scores.tolist()],
    }
    for kind, found in batches.items():
        column = None if kind in ("numpy", "arrow array", "lists") else "s"
        np.testing.assert_array_equal(score_batches(found, column, candidates=edges).counts, expected, err_msg=kind)


def broken(records, name, values) -> pa.Table:
    table = arrow(records)
    return table.set_column(table.column_names.index(name), name, values)


def ragged(records):
    lists = records["p"].tolist()
    lists[3], lists[5], lists[8] = None, lists[5][:-1], [None, *lists[8][1:]]
    return broken(records, "p", pa.array(lists, pa.list_(pa.float32())))


def with_values(array, positions, values):
    changed = list(array)
    for i, value in zip(positions, values, strict=True):
        changed[i] = value
    return pa.array(changed)


CLASSES, INTERVALS = ClassColumns("p", "y", tuple(range(K)), score="aps_deterministic"), TargetColumns("f", "t")
TWO_SIDES = TargetColumns(("l", "h"), "t", score="cqr_sides")
TOO_LARGE = [1.5] + [0.0] * (K - 1)


@pytest.mark.parametrize(
    ("make", "scores", "found", "unusable"),
    [
        (ragged, CLASSES, [(1, 8), (2, 3)], 3),  # entries, lengths
        (lambda r: broken(r, "y", with_values(r["y"], [4, 9, 11], [None, -1, -2])), CLASSES, [(3, 4)], 3),
        (lambda r: broken(r, "p", with_values(r["p"].tolist(), [600, 601], [TOO_LARGE] * 2)), CLASSES, [(2, 600)], 2),
        (lambda r: broken(r, "f", with_values(r["f"], [700, 701], [None, np.nan])), INTERVALS, [(2, 700)], 2),
        (lambda r: broken(r, "t", with_values(r["t"], [2, 1999], [np.inf, -np.inf])), INTERVALS, [(2, 2)], 2),
    ],
)
def test_records_without_a_usable_score_are_counted_for_every_input(records, make, scores, found, unusable):
    batches = make(records).to_batches(max_chunksize=300)
    with refused(InputError, "table") as caught:
        score_batches(batches, scores)
    assert bad_rows(caught) == found
    counted = [count_batches([batch], scores) for batch in batches]
    with refused(InputError, "tables") as caught:
        merge_counts(counted, score=scores.kind.name)
    assert bad_rows(caught)[0][0] == unusable


def test_nan_among_texts_is_a_missing_class():
    with refused(InputError, "table") as caught:
        score_batches([{"p": np.eye(2), "y": np.array(["a", np.nan], object)}], ClassColumns("p", "y", ("a", "b")))
    assert bad_rows(caught) == [(1, 1)]


def classes(**columns):
    return score_batches([columns], CLASSES)


def counts_of(place, count):
    return pa.table({"bin": [place], "count": [count]})


@pytest.mark.parametrize(
    ("call", "error", "argument"),
    [
        (lambda: score_batches([{"s": [0.1]}], "t"), InputError, "column"),
        (lambda: score_batches([{"s": [0.1]}]), InputError, "scores"),
        (lambda: score_batches([pa.record_batch({"s": [0.1]})]), InputError, "scores"),
        (lambda: score_batches([[0.1]], "s"), InputTypeError, "batches"),
        (lambda: score_batches([["high"]]), InputTypeError, "scores"),
        (lambda: score_batches([[[0.1]]]), InputError, "scores"),
        (lambda: score_batches([], CLASSES, score="lac"), InputError, "score"),
        (lambda: score_batches([{name: [0.1] for name in "lht"}], TWO_SIDES), InputError, "score"),
        (lambda: ClassColumns("p", "y", label_positions=1), InputTypeError, "label_positions"),
        (lambda: classes(p=np.ones((2, 3)), y=[0, 1]), InputError, "classes"),
        (lambda: classes(p=pa.array([0.1]), y=[0]), InputError, "column"),
        (lambda: classes(p=np.ones((1, K)), y=[0.5]), InputError, "column"),
        (lambda: score_batches([{"f": np.ones((2, 2)), "t": [0, 1]}], INTERVALS), InputError, "column"),
        (lambda: score_batches([{"p": [], "y": []}], ClassColumns("p", "y")), InputError, "column"),
        (lambda: merge_counts([counts_of(10, 1)], candidates=Candidates.unit(10)), InputError, "tables"),
        (lambda: merge_counts([counts_of(0, 0.5)], score="lac"), InputTypeError, "count"),
        (lambda: merge_counts([counts_of(-99, 1)], score="lac"), InputError, "tables"),
        (lambda: merge_counts([counts_of(0, -1)], score="lac"), InputError, "tables"),
    ],
)
def test_uncountable_input_raises_an_error(call, error, argument):
    with refused(error, argument):
        call()


NUMBERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")
SHAPES = {
    "whole": lambda column: column,
    "slice": lambda column: column.slice(3, 9),
    "no rows": lambda column: column.slice(0, 0),
    "chunks": lambda column: pa.chunked_array([column.slice(1, 4), column.slice(7)]),
    "no chunks": lambda column: pa.chunked_array([], column.type),
}


def column_of(dtype, missing):
    """Extremes, and small numbers, with nulls where they are missing."""
    rng = np.random.default_rng(0)
    if dtype == "bool":
        array = rng.random(20) < 0.5
    elif dtype.startswith("float"):
        array = np.append(rng.normal(size=18), [np.nan, np.inf]).astype(dtype)
    else:
        ends = np.iinfo(dtype)
        array = np.append(rng.integers(0, 100, 18).astype(dtype), np.array([ends.min, ends.max], dtype))
    return array, rng.random(20) < missing


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("missing", [0, 0.4, 1])
@pytest.mark.parametrize("dtype", [*NUMBERS, "bool"])
def test_to_and_from_numpy(dtype, missing, shape):
    array, gone = column_of(dtype, missing)
    own = pa.array(array, mask=gone)
    if not missing:
        made = from_numpy(array)
        made.validate(full=True)
        assert made.equals(own) or np.isnan(array.astype(float)).any()
        assert made.type == own.type
    taken = SHAPES[shape](own)
    expected, found = np.asarray(taken), to_numpy(taken)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "values", [["a", None], [decimal.Decimal("1.5"), None], [datetime.date(2026, 1, 1)], [[1.0], [2.0, 3.0]]]
)
def test_other_values_are_left_to_pyarrow(values):
    column = pa.array(values)
    assert to_numpy(column).dtype == np.asarray(column).dtype
    assert str(to_numpy(column)) == str(np.asarray(column))


@pytest.mark.long
@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)), st.integers(0, 3))
def test_integers_with_a_value_for_missing_ones(values, begin):
    column = pa.array(values, pa.int64())[begin:]
    assert integers_of(column, -7).tolist() == [-7 if one is None else one for one in values[begin:]]


@pytest.mark.long
@given(st.lists(st.text()))
def test_texts(texts):
    texts = [text.encode("utf-8", "replace").decode() for text in texts]  # no lone surrogates, which Arrow lacks
    made = from_texts(texts)
    made.validate(full=True)
    assert made.equals(pa.array(texts, pa.string()))


@pytest.mark.parametrize("names", [("a", "é", ""), (0, 1), (-5, 2**63 - 1)])
def test_names(names):
    assert from_names(names).equals(pa.array(list(names)))
