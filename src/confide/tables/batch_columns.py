"""Columns of an Arrow batch as numpy arrays: numbers, lists of numbers, and positions among names."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.arrays import as_numeric
from confide.errors import InputError
from confide.support import as_integer, canonical
from confide.tables.table import Read


def column_of(batch: Any, read: Read) -> Any:
    """A column: as a table hands it over, or by its own name."""
    names = batch.schema.names
    name = read.alias if read.alias in names else read.column
    if name not in names:
        raise InputError(f"column {name!r} is not in the batches; their columns are {', '.join(names[:40])}")
    return batch.column(name)


def number_column(batch: Any, name: str) -> NDArray[Any]:
    """A column of numbers, shape (n,), missing ones as NaN."""
    import pyarrow as pa

    column = column_of(batch, Read(name))
    array = as_numeric(name, column.cast(pa.int8()) if pa.types.is_boolean(column.type) else column)
    if array.ndim != 1:
        raise InputError(f"column {name!r} must hold one number per record; found shape {array.shape}")
    return array


def matrix_column(batch: Any, name: str, width: int) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """A column of lists as a matrix, shape (n, width), and which rows have that many entries; None if all have.

    The entries of the others are NaN.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column = column_of(batch, Read(name, "numbers"))
    lists = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not hasattr(lists.type, "value_field"):
        raise InputError(f"column {name!r} must hold lists of numbers, or be a matrix")
    whole = np.asarray(pc.fill_null(pc.list_value_length(lists), -1)) == width
    if whole.all():
        return _entries(name, lists).reshape(len(lists), width), None
    matrix = np.full((len(lists), width), np.nan)
    matrix[whole] = _entries(name, lists.filter(pa.array(whole))).reshape(-1, width)
    return matrix, whole


def _entries(name: str, lists: Any) -> NDArray[Any]:
    import pyarrow as pa

    entries = lists.flatten()
    return as_numeric(name, entries.cast(pa.int8()) if pa.types.is_boolean(entries.type) else entries)


def positions_among(batch: Any, name: str, names: tuple[str | int, ...]) -> NDArray[np.int64]:
    """The position of each value of a column among names, shape (n,), -1 for those that are none of them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    held = column_of(batch, Read(name, "label"))
    values = held.cast(held.type.value_type) if pa.types.is_dictionary(held.type) else held
    kind, texts = values.type, list(map(canonical, names))
    if pa.types.is_integer(kind):
        integers = [as_integer(one) for one in names]
        known = pa.array([one if one is not None and abs(one) < 2**63 else None for one in integers], pa.int64())
        values = values.cast(pa.int64(), safe=False) if kind != pa.uint64() else _below_2_63(values)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        known, values = pa.array(texts, pa.large_string()), values.cast(pa.large_string())
    else:
        raise InputError(f"column {name!r} must hold texts or whole numbers, the names of classes or groups")
    found = pc.index_in(values, value_set=known, skip_nulls=True)
    return np.asarray(pc.fill_null(found, -1)).astype(np.int64)


def texts_of(batch: Any, name: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The texts that stand for the values of a column of names, shape (n,), and where there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    held = column_of(batch, Read(name, "label"))
    values = held.cast(held.type.value_type) if pa.types.is_dictionary(held.type) else held
    texts = values.cast(pa.large_string())
    encoded = pc.fill_null(texts, "").dictionary_encode()
    names = np.array(encoded.dictionary.to_pylist(), dtype=np.str_)
    return names[np.asarray(encoded.indices)], np.asarray(texts.is_null())


def integer_column(batch: Any, name: str) -> NDArray[np.int64]:
    """A column of integers, shape (n,), missing ones, and those beyond 2**63, as -1."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = column_of(batch, Read(name, "label"))
    values = _below_2_63(values) if values.type == pa.uint64() else values.cast(pa.int64())
    return np.asarray(pc.fill_null(values, -1)).astype(np.int64)


def _below_2_63(values: Any) -> Any:
    """Unsigned integers as signed ones, those that do not fit as missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    fits = pc.less(values, pa.scalar(2**63, pa.uint64()))
    return pc.if_else(fits, values, pa.scalar(None, pa.uint64())).cast(pa.int64())


def first_length(lists: Any) -> int | None:
    """The length of the first list that is not null; None if there is none."""
    import pyarrow.compute as pc

    lengths = pc.list_value_length(lists).drop_null()
    return int(lengths[0].as_py()) if len(lengths) else None


def one_at_least(batches: Iterable[Any], schema: Any) -> Iterator[Any]:
    """The batches; where there are none, one without rows, whose columns have the names and types of a schema.

    Examples
    --------
    >>> import pyarrow as pa
    >>> [batch.num_rows for batch in one_at_least([], pa.schema([("a", pa.int8())]))]
    [0]
    """
    import pyarrow as pa

    none = True
    for batch in batches:
        none = False
        yield batch
    if none:
        yield pa.RecordBatch.from_pylist([], schema=schema)
