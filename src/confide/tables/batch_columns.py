"""Columns of a batch, whatever it is: an Arrow record batch or table, or a mapping of arrays."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.arrays.checked import as_numeric
from confide.errors import InputError, InputTypeError


def has_columns(batch: Any) -> bool:
    """Whether a batch has columns, or is one itself."""
    return isinstance(batch, Mapping) or hasattr(batch, "schema")


def column_of(batch: Any, name: str) -> Any:
    """A column by its name."""
    if not has_columns(batch):
        raise InputTypeError(f"batches must have columns; found {type(batch).__name__}")
    names = list(batch) if isinstance(batch, Mapping) else list(batch.schema.names)
    if name not in names:
        raise InputError(f"column {name!r} is not in the batches; their columns are {', '.join(map(str, names[:40]))}")
    return batch[name] if isinstance(batch, Mapping) else batch.column(name)


def number_column(batch: Any, name: str) -> NDArray[Any]:
    """A column of numbers, shape (n,), missing ones as NaN."""
    array = as_numeric(name, as_host_array(column_of(batch, name)))
    if array.ndim != 1:
        raise InputError(f"column {name!r} must hold one number per record; found shape {array.shape}")
    return array


def matrix_column(batch: Any, name: str, width: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """A column of lists as a matrix of shape (n, width), and which rows have `width` entries (the others are NaN)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = as_host_array(column_of(batch, name))
    if isinstance(column, np.ndarray) and column.ndim == 2:
        whole = np.full(len(column), column.shape[1] == width)
        return as_numeric(name, column) if whole.all() else np.full((len(column), width), np.nan), whole
    lists = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not isinstance(lists, pa.Array) or not hasattr(lists.type, "value_field"):
        raise InputError(f"column {name!r} must hold lists of numbers, or be a matrix")
    whole = pc.equal(pc.fill_null(pc.list_value_length(lists), -1), width).to_numpy(zero_copy_only=False)
    kept = lists if whole.all() else lists.filter(pa.array(whole))
    entries = as_numeric(name, kept.flatten()).reshape(len(kept), width)
    if len(kept) == len(lists):
        return entries, whole
    matrix = np.full((len(lists), width), np.nan)
    matrix[whole] = entries
    return matrix, whole


def positions_among(batch: Any, name: str, names: tuple[str | int, ...]) -> NDArray[np.int64]:
    """The position of each value of a column among names, shape (n,), -1 for those that are none of them.

    Names are texts for a column of texts and whole numbers for a column of whole numbers, as in the engines.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    values = _arrow(batch, name)
    kind = values.type
    if pa.types.is_integer(kind):
        known, wide = pa.array([_whole(name, value) for value in names], pa.int64()), pa.int64()
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        known, wide = pa.array([str(value) for value in names], pa.large_string()), pa.large_string()
    else:
        raise InputError(f"column {name!r} must hold texts or whole numbers, the names of classes or groups")
    places = pc.index_in(values.cast(wide, safe=False), value_set=known)
    return np.asarray(pc.fill_null(places, -1)).astype(np.int64)


def _whole(column: str, name: str | int) -> int:
    try:
        return int(name)
    except ValueError:
        raise InputError(f"column {column!r} holds whole numbers, and {name!r} is none") from None


def _arrow(batch: Any, name: str) -> Any:
    """A column as an Arrow array, without a dictionary."""
    import pyarrow as pa

    held = as_host_array(column_of(batch, name))
    values = held if isinstance(held, pa.Array | pa.ChunkedArray) else pa.array(held, from_pandas=True)
    return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values


def as_host_array(data: Any) -> Any:
    """A torch tensor as a numpy array, from any device and of any float type; everything else as it is."""
    if hasattr(data, "detach"):
        held = data.detach().cpu()
        return (held.float() if str(held.dtype) == "torch.bfloat16" else held).numpy()
    return data
