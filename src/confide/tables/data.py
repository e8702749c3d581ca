"""Data that a program hands over: tables and frames in memory, and any batch as record batches of Arrow.

Arrow, or the embedded DuckDB, may not have the type of a column; this is an error only if the column is read.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from confide.arrays import as_host_array
from confide.errors import ConfideError, InputTypeError, replaced_errors
from confide.tables.arrow import or_empty_batch
from confide.tables.deferred import duckdb, pa
from confide.tables.duckdb_table import ROWS, DuckTable, embedded
from confide.tables.failures import library_errors_in_fixed_words, unreadable
from confide.tables.schemas import readable_schema


@contextmanager
def open_memory(data: Any) -> Iterator[DuckTable]:
    """Open an Arrow table, or data that can be converted to one: a data frame or a mapping of arrays."""
    name = "the table in memory"
    in_words = partial(library_errors_in_fixed_words, name)
    rows, not_of_arrow = _as_arrow(data, name)
    with embedded() as connection:
        with in_words():
            schema = readable_schema(rows.schema)
            rows = rows if rows.schema.types == schema.types else rows.cast(schema)
            not_of_duckdb = not_registered(connection, rows)
            rows = rows.drop_columns(not_of_duckdb)
            connection.register(ROWS, rows)
        unread = [*not_of_arrow, *not_of_duckdb]
        count = rows.num_rows
        yield DuckTable(name, rows.schema, connection, ROWS, in_words, stated_rows=lambda: count, unreadable=unread)


def not_registered(connection: Any, rows: Any) -> list[str]:
    """The columns of types that DuckDB does not have."""

    def fails(columns: Any) -> bool:
        try:
            connection.register(ROWS, columns)
        except duckdb.Error:
            return True
        return False

    return [name for name in rows.column_names if fails(rows.select([name]))] if fails(rows) else []


def _as_arrow(data: Any, name: str) -> tuple[Any, list[str]]:
    """A table of Arrow with the columns of any data, and the names of the columns that cannot be converted."""
    try:
        return _converted(data), []
    except (ConfideError, MemoryError):
        raise
    except Exception:  # it may quote values: nothing is raised while it is handled
        single_columns = _single_columns(data)
    # Convert column by column
    converted = []
    failing = []
    for column_name, column in single_columns:
        try:
            converted.append(_converted(column))
        except Exception:
            failing.append(column_name)
    if not converted or not failing:
        raise unreadable(name, failing)
    with replaced_errors(lambda error: unreadable(name)):
        arrays = chain.from_iterable(table.columns for table in converted)
        fields = chain.from_iterable(table.schema for table in converted)
        return pa.Table.from_arrays(list(arrays), schema=pa.schema(fields)), failing


def _single_columns(data: Any) -> list[tuple[str, Any]]:
    """The name of each column, and the data without the other columns; none if columns cannot be taken one by one."""
    if isinstance(data, Mapping):
        return [(str(name), {name: column}) for name, column in data.items()]
    if hasattr(data, "iloc"):
        return [(str(name), data.iloc[:, [place]]) for place, name in enumerate(data.columns)]
    return []


def _converted(data: Any) -> Any:
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, Mapping):
        return pa.Table.from_batches([as_record_batch(data)])
    if hasattr(data, "iloc"):
        return pa.Table.from_pandas(data, preserve_index=False)
    return pa.table(data)


def has_columns(data: Any) -> bool:
    """Whether data have columns by name, as a data frame or a mapping of arrays does."""
    return isinstance(data, Mapping) or hasattr(data, "__arrow_c_stream__") or hasattr(data, "iloc")


def as_record_batch(columns: Mapping[str, Any]) -> Any:
    """An Arrow record batch of arrays by name: shape (n,), or (n, K) for a list in each row; others are left out."""
    arrays = {str(name): _as_column(as_host_array(column)) for name, column in columns.items()}
    return pa.record_batch({name: array for name, array in arrays.items() if array is not None})


def _as_column(column: Any) -> Any | None:
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    array = np.asarray(column)
    if array.ndim == 2:
        return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(array).ravel()), array.shape[1])
    if array.ndim != 1:
        return None
    # numpy would make texts of a list of numbers and texts
    mixed = isinstance(column, list | tuple) or array.dtype == object
    return pa.array(column if mixed else array, from_pandas=True)


def as_record_batches(batch: Any, name: str) -> Iterator[Any]:
    """The record batches of a batch of any kind; `name` is that of its table in messages."""
    if not has_columns(batch):
        must = "must be Arrow tables, record batches, data frames or mappings of arrays"
        raise InputTypeError("batches", must, got=type(batch).__name__)
    table, not_of_arrow = _as_arrow(batch, name)
    if not_of_arrow:
        raise unreadable(name, not_of_arrow)
    yield from or_empty_batch(table.to_batches(), table.schema)
