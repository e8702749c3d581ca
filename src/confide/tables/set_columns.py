"""Prediction sets and intervals as Arrow columns, built from whole arrays, never row by row."""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

SET_COLUMNS = ("prediction_set", "set_size")
INTERVAL_COLUMNS = ("lower", "upper")


def set_columns(mask: NDArray[np.bool_], names: tuple[str, ...], *, as_text: bool) -> list[Any]:
    """`prediction_set` (lists of class names; as_text: JSON arrays) and `set_size`.

    Examples
    --------
    >>> columns = set_columns(np.array([[True, True], [False, False]]), ("cat", "dog"), as_text=True)
    >>> columns[0].to_pylist(), columns[1].to_pylist()
    (['["cat", "dog"]', '[]'], [2, 0])
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    sizes = np.count_nonzero(mask, axis=1)
    offsets = np.zeros(len(mask) + 1, dtype=np.int32)
    np.cumsum(sizes, out=offsets[1:])
    members = np.flatnonzero(mask) % mask.shape[1]
    shown = [json.dumps(name, ensure_ascii=False) for name in names] if as_text else list(names)
    texts = pa.array(shown, pa.string()).take(pa.array(members))
    lists = pa.ListArray.from_arrays(pa.array(offsets), texts)
    if as_text:
        lists = pc.binary_join_element_wise("[", pc.binary_join(lists, ", "), "]", "")
    return [lists, pa.array(sizes.astype(np.int32))]


def interval_columns(lower: NDArray[np.float64], upper: NDArray[np.float64]) -> list[Any]:
    """`lower` and `upper`."""
    import pyarrow as pa

    return [pa.array(lower), pa.array(upper)]
