"""Columns of Arrow as numpy arrays and back, by their buffers.

The conversions of pyarrow import pandas if it is installed, which takes longer than reading a million numbers. These
give the same arrays without it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def to_numpy(column: Any) -> NDArray[Any]:
    """A column as a numpy array; missing numbers are NaN, as in `numpy.asarray`.

    Examples
    --------
    >>> to_numpy(from_numpy(np.array([1, 2, 3]), missing=np.array([False, True, False])))
    array([ 1., nan,  3.])
    """
    import pyarrow as pa

    kind = column.type
    if pa.types.is_boolean(kind) and not column.null_count:
        return to_numpy(column.cast(pa.int8())).astype(np.bool_)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return np.asarray(column)
    held = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not held.null_count:
        return np.from_dlpack(held)
    known = np.from_dlpack(held.drop_null())
    array = np.full(len(held), np.nan, known.dtype if pa.types.is_floating(kind) else np.float64)
    array[to_numpy(held.is_valid())] = known
    return array


def integers_of(column: Any, missing: int) -> NDArray[np.int64]:
    """A column of integers that int64 holds, shape (n,), with `missing` for missing ones.

    Examples
    --------
    >>> integers_of(from_numpy(np.array([1, 2]), missing=np.array([True, False])), -1)
    array([-1,  2])
    """
    array = np.full(len(column), missing, np.int64)
    array[to_numpy(column.is_valid())] = to_numpy(column.drop_null())
    return array


def from_numpy(array: NDArray[Any], missing: NDArray[np.bool_] | None = None) -> Any:
    """A numpy array of numbers or booleans as an Arrow array; those marked as missing are null.

    Examples
    --------
    >>> from_numpy(np.array([True, False])).to_pylist(), str(from_numpy(np.zeros(1, np.float32)).type)
    ([True, False], 'float')
    """
    import pyarrow as pa

    values = _bits(array) if array.dtype == np.bool_ else pa.py_buffer(np.ascontiguousarray(array))
    known = None if missing is None else _bits(~missing)
    return pa.Array.from_buffers(pa.from_numpy_dtype(array.dtype), len(array), [known, values])


def from_texts(texts: Sequence[str]) -> Any:
    """Texts as an Arrow array of strings.

    Examples
    --------
    >>> from_texts(["a", "", "é"]).to_pylist()
    ['a', '', 'é']
    """
    import pyarrow as pa

    encoded = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded)))


def from_names(names: Sequence[str | int]) -> Any:
    """Names that are all texts or all integers as an Arrow array.

    Examples
    --------
    >>> from_names([7, 11]).to_pylist(), from_names(["cat", "dog"]).to_pylist()
    ([7, 11], ['cat', 'dog'])
    """
    texts = [name for name in names if isinstance(name, str)]
    return from_texts(texts) if len(texts) == len(names) else from_numpy(np.array(names))


def _bits(marks: NDArray[np.bool_]) -> Any:
    import pyarrow as pa

    return pa.py_buffer(np.packbits(marks, bitorder="little"))
