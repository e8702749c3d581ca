"""Arrow data: types and schemas, and columns as numpy arrays and back by their buffers.

The conversions of pyarrow import pandas if it is installed, which takes longer than reading a million numbers. The
functions of this module give the same arrays without pandas.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.arrays import as_numeric
from confide.errors import InputError
from confide.support import as_integer, canonical_name, require
from confide.tables.deferred import pa, pc

Form: TypeAlias = Literal["number", "label", "numbers", "entry", "length", "value", "text"]
"""The form in which a column is read.

`number`: a float, null where there is none. `label`: an integer or a text. `numbers`: a list of floats. `entry`: the
entry of a list of numbers at the position in an integer column. `length`: the length of a list. `value`: unchanged.
`text`: as written into a CSV cell.
"""


@dataclass(frozen=True)
class ColumnRef:
    """A column and the form in which it is read.

    Parameters
    ----------
    column
        Its name.
    form
        The form in which it is read.
    at
        For an `entry`: the column that contains its position.
    numbers
        The approximate count of numbers that are read of each record.
    """

    column: str
    form: Form = "number"
    at: str | None = None
    numbers: int = field(default=1, compare=False)

    @property
    def alias(self) -> str:
        """The name of the column in the batches of a table."""
        return f"{self.form} {self.column}"


def is_number(kind: Any) -> bool:
    """Whether a type holds real numbers.

    Examples
    --------
    >>> import pyarrow as pa
    >>> is_number(pa.decimal128(18, 3)), is_number(pa.list_(pa.float32())), is_number(pa.string())
    (True, False, False)
    """
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_text(kind: Any) -> bool:
    """Whether a type holds texts, plain or categorical."""
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(plain) or pa.types.is_large_string(plain) or pa.types.is_string_view(plain))


def list_element(kind: Any) -> Any | None:
    """The type of a list's elements, for lists of any or of fixed length; None for anything else."""
    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return kind.value_type if lists or pa.types.is_list_view(kind) else None


def describe_type(kind: Any) -> str:
    """Describe values of a column of this type for messages, never by the type's own text, which can list values."""
    if list_element(kind) is not None:
        return "lists"
    if is_text(kind):
        return "text"
    if pa.types.is_integer(kind):
        return "integers"
    if is_number(kind):
        return "numbers"
    if pa.types.is_temporal(kind):
        return "dates and times"
    return "true and false" if pa.types.is_boolean(kind) else "values of another type"


def to_numpy(column: Any) -> NDArray[Any]:
    """A column as a numpy array; missing numbers are NaN, as in `numpy.asarray`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> to_numpy(pa.array([1, None, 3]))
    array([ 1., nan,  3.])
    """
    kind = column.type
    if pa.types.is_boolean(kind) and not column.null_count:
        return to_numpy(column.cast(pa.int8())).astype(np.bool_)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return np.asarray(column)
    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not values.null_count:
        return np.from_dlpack(values)
    known = np.from_dlpack(values.drop_null())
    array = np.full(len(values), np.nan, known.dtype if pa.types.is_floating(kind) else np.float64)
    array[to_numpy(values.is_valid())] = known
    return array


def integers_of(column: Any, missing: int) -> NDArray[np.int64]:
    """A column of integers as int64, shape (n,), with the value `missing` for missing ones.

    Examples
    --------
    >>> import pyarrow as pa
    >>> integers_of(pa.array([None, 2]), -1)
    array([-1,  2])
    """
    array = np.full(len(column), missing, np.int64)
    array[to_numpy(column.is_valid())] = to_numpy(column.drop_null())
    return array


def from_numpy(array: NDArray[Any]) -> Any:
    """A numpy array of numbers or booleans as an Arrow array.

    Examples
    --------
    >>> from_numpy(np.array([True, False])).to_pylist(), str(from_numpy(np.zeros(1, np.float32)).type)
    ([True, False], 'float')
    """
    bits = np.packbits(array, bitorder="little") if array.dtype == np.bool_ else np.ascontiguousarray(array)
    return pa.Array.from_buffers(pa.from_numpy_dtype(array.dtype), len(array), [None, pa.py_buffer(bits)])


def from_texts(texts: Sequence[str]) -> Any:
    """Texts as an Arrow array of strings.

    Examples
    --------
    >>> from_texts(["a", "", "é"]).to_pylist()
    ['a', '', 'é']
    """
    encoded = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded)))


def with_decimal_commas(batch: Any) -> Any:
    """A batch whose floats are texts with a decimal comma.

    Examples
    --------
    >>> import pyarrow as pa
    >>> with_decimal_commas(pa.record_batch({"upper": [0.5, -np.inf], "name": ["a.b", ""]})).to_pydict()
    {'upper': ['0,5', '-inf'], 'name': ['a.b', '']}
    """
    columns = [
        pc.replace_substring(column.cast(pa.string()), ".", ",") if pa.types.is_floating(column.type) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def from_names(names: Sequence[str | int]) -> Any:
    """Names that are all texts or all integers as an Arrow array.

    Examples
    --------
    >>> from_names([7, 11]).to_pylist(), from_names(["cat", "dog"]).to_pylist()
    ([7, 11], ['cat', 'dog'])
    """
    texts = [name for name in names if isinstance(name, str)]
    return from_texts(texts) if len(texts) == len(names) else from_numpy(np.array(names))


def column_of(batch: Any, read: ColumnRef) -> Any:
    """A column by its alias or by its own name."""
    names = batch.schema.names
    name = read.alias if read.alias in names else read.column
    if name not in names:
        must = f"{name!r} is not in the batches"
        raise InputError("column", must, remedy=f"Their columns are {', '.join(names[:40])}")
    return batch.column(name)


def number_column(batch: Any, name: str) -> NDArray[Any]:
    """A column of numbers, shape (n,), with NaN for missing numbers."""
    array = _numbers(name, column_of(batch, ColumnRef(name)))
    require("column", array.ndim == 1, f"{name!r} must hold one number per record", got=f"shape {array.shape}")
    return array


def matrix_column(batch: Any, name: str, width: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """A column of lists as a matrix, shape (n, width), and the rows with exactly `width` entries.

    The entries of the other rows are NaN.
    """
    column = column_of(batch, ColumnRef(name, "numbers"))
    lists = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    require("column", hasattr(lists.type, "value_field"), f"{name!r} must hold lists of numbers, or be a matrix")
    whole = integers_of(pc.list_value_length(lists), -1) == width
    if whole.all():
        return _numbers(name, lists.flatten()).reshape(len(lists), width), whole
    matrix = np.full((len(lists), width), np.nan)
    matrix[whole] = _numbers(name, lists.filter(from_numpy(whole)).flatten()).reshape(-1, width)
    return matrix, whole


def _numbers(name: str, values: Any) -> NDArray[Any]:
    """The values of a column as numbers, of booleans 0 and 1."""
    return as_numeric(name, to_numpy(values.cast(pa.int8()) if pa.types.is_boolean(values.type) else values))


def positions_among(batch: Any, read: ColumnRef, names: tuple[str | int, ...]) -> NDArray[np.int64]:
    """The position of each value of a column among names, shape (n,); -1 for a value that is not among them."""
    values = _names(batch, read)
    kind = values.type
    places = list(range(len(names)))
    if pa.types.is_integer(kind):
        # Names that int64 does not hold match no value
        integers = {place: integer for place in places if (integer := as_integer(names[place])) is not None}
        places = [place for place, integer in integers.items() if abs(integer) < 2**63]
        known = from_numpy(np.array([integers[place] for place in places], np.int64))
        values = values.cast(pa.int64(), safe=False) if kind != pa.uint64() else _below_2_63(values)
    elif is_text(kind):
        known = from_texts([str(canonical_name(name)) for name in names]).cast(pa.large_string())
        values = values.cast(pa.large_string())
    else:
        raise InputError("column", f"{read.column!r} must hold texts or whole numbers, the names of classes or groups")
    # The last place, -1, is that of values that are not found
    index = pc.index_in(values, value_set=known, skip_nulls=True)
    return np.append(np.array(places, np.int64), -1)[integers_of(index, -1)]


def missing_names(batch: Any, read: ColumnRef) -> NDArray[np.bool_]:
    """The records without a value in a column of names: nothing, or an empty text; boolean, shape (n,)."""
    values = _names(batch, read)
    missing = values.is_null()
    if not pa.types.is_integer(values.type):
        missing = pc.or_(missing, pc.fill_null(pc.equal(values.cast(pa.large_string()), ""), False))
    return to_numpy(missing)


def texts_of(batch: Any, read: ColumnRef) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The texts of the values of a column of names, shape (n,), and the records without a value."""
    texts = _names(batch, read).cast(pa.large_string())
    encoded = pc.fill_null(texts, from_texts([""]).cast(pa.large_string())[0]).dictionary_encode()
    names = np.array(encoded.dictionary.to_pylist(), dtype=np.str_)
    return names[to_numpy(encoded.indices)], to_numpy(texts.is_null())


def _names(batch: Any, read: ColumnRef) -> Any:
    values = column_of(batch, read)
    return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values


def _below_2_63(values: Any) -> Any:
    """Unsigned integers as signed integers; those that do not fit are missing."""
    fits = pc.less(values, pa.scalar(2**63, pa.uint64()))
    return pc.if_else(fits, values, pa.scalar(None, pa.uint64())).cast(pa.int64())


def first_length(lists: Any) -> int | None:
    """The length of the first list that is not null; None if there is none."""
    lengths = pc.list_value_length(lists).drop_null()
    return int(lengths[0].as_py()) if len(lengths) else None


def or_empty_batch(batches: Iterable[Any], schema: Any) -> Iterator[Any]:
    """The batches, or, if there are none, one batch without rows that has the columns and types of a schema.

    Examples
    --------
    >>> import pyarrow as pa
    >>> [batch.num_rows for batch in or_empty_batch([], pa.schema([("a", pa.int8())]))]
    [0]
    """
    is_empty = True
    for batch in batches:
        is_empty = False
        yield batch
    if is_empty:
        yield pa.RecordBatch.from_pylist([], schema=schema)
