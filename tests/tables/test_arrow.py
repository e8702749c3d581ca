"""Conversions by buffers give the arrays that pyarrow's own give."""

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.tables.arrow import from_names, from_numpy, from_texts, integers_of, to_numpy

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
    made = from_numpy(array, gone if missing else None)
    made.validate(full=True)
    assert made.equals(own) or np.isnan(array.astype(float)).any()
    assert made.type == own.type
    assert made.null_count == own.null_count
    taken = SHAPES[shape](made)
    expected, found = np.asarray(SHAPES[shape](own)), to_numpy(taken)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "values", [["a", None], [decimal.Decimal("1.5"), None], [datetime.date(2026, 1, 1)], [[1.0], [2.0, 3.0]]]
)
def test_other_values_are_left_to_pyarrow(values):
    column = pa.array(values)
    assert to_numpy(column).dtype == np.asarray(column).dtype
    assert str(to_numpy(column)) == str(np.asarray(column))


@pytest.mark.slow
@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)), st.integers(0, 3))
def test_integers_with_a_value_for_missing_ones(values, begin):
    column = pa.array(values, pa.int64())[begin:]
    assert integers_of(column, -7).tolist() == [-7 if one is None else one for one in values[begin:]]


@pytest.mark.slow
@given(st.lists(st.text()))
def test_texts(texts):
    texts = [text.encode("utf-8", "replace").decode() for text in texts]  # no lone surrogates, which Arrow lacks
    made = from_texts(texts)
    made.validate(full=True)
    assert made.equals(pa.array(texts, pa.string()))


@pytest.mark.parametrize("names", [("a", "é", ""), (0, 1), (-5, 2**63 - 1)])
def test_names(names):
    assert from_names(names).equals(pa.array(list(names)))
