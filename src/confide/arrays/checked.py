"""The entry point for arrays: checked numpy arrays, or errors. Inputs are never modified, and messages have no values.

Everything with numpy's array protocol is accepted: numpy arrays of any layout, lists, pandas, polars and Arrow columns.
Other data frames are read by `in_memory`.
"""

import sys
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from importlib.util import find_spec
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays.blocks import blocks
from confide.errors import ConfideError, InputError, InputTypeError, replaced_errors
from confide.support import as_number, needs_extra, raise_for_rows, require

# Data frames of any kind, as numpy can read them. narwhals reads those that numpy cannot; it is imported then.

# Packages whose frames and arrays numpy reads.
_READ_BY_NUMPY = frozenset({"builtins", "numpy", "pandas", "polars", "pyarrow", "torch", "jax", "jaxlib"})


def in_memory(name: str, data: Any) -> Any:
    """The data unchanged, or the values of a data frame that numpy cannot read; a DuckDB relation is collected.

    Examples
    --------
    >>> import duckdb
    >>> in_memory("probabilities", duckdb.sql("select 0.25::double as cat, 0.75::double as dog"))
    array([[0.25, 0.75]])
    """
    packages = {kind.__module__.partition(".")[0] for kind in type(data).__mro__[:-1]}  # all but that of `object`
    if is_query(data) or (hasattr(data, "columns") and not packages & _READ_BY_NUMPY):
        return _collected(name, data)
    return data


def is_query(data: Any) -> bool:
    """Whether data are a lazy frame of polars."""
    return type(data).__name__ == "LazyFrame"


def _collected(name: str, data: Any) -> Any:
    if hasattr(data, "__array__") and not find_spec("narwhals"):
        return data
    with needs_extra(f"a data frame of {type(data).__module__.partition('.')[0]}", "frames"):
        import narwhals.stable.v2 as nw
    frame = nw.from_native(data, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        if not frame.implementation.is_duckdb():
            must = "must be in memory"
            got = f"a {type(data).__name__} of {frame.implementation}, a query that is still to be run"
            raise InputTypeError(name, must, got=got, remedy="Run it first, as by .collect(), .compute() or .execute()")
        frame = frame.collect()
    return frame.to_numpy() if isinstance(frame, nw.DataFrame) else data


# Numbers, vectors and probabilities as arrays.


def _is_masked_array(data: Any) -> bool:
    """Whether it is one of numpy.ma, which takes 30 ms to import and must not be for all other data."""
    return "numpy.ma" in sys.modules and isinstance(data, np.ma.MaskedArray)


def as_numeric(name: str, data: Any) -> NDArray[Any]:
    """A numeric numpy array (float16, float32, float64 or integer, native byte order), with NaN for missing values."""
    if _is_masked_array(data):
        values = as_numeric(name, np.asarray(data.data))
        mask = np.ma.getmaskarray(data)
        return np.where(mask, np.nan, values) if mask.any() else values

    # Real numbers.
    array = as_array(name, data)
    if array.dtype == object:
        array = _from_objects(name, array)
    if array.dtype.kind not in "fiu":
        must = "must hold real numbers"
        raise InputTypeError(name, must, got=f"dtype {array.dtype}", remedy="Convert them to floats")

    # Of at most 64 bits, in native byte order.
    if array.dtype.itemsize > 8:
        with np.errstate(over="ignore", under="ignore"):
            return array.astype(np.float64)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def as_array(name: str, data: Any) -> NDArray[Any]:
    """Anything that numpy can read, and tensors of torch; raises an error for masked entries."""
    unreadable = InputTypeError(name, "must be an array", got=f"{type(data).__name__} that numpy cannot read")
    with replaced_errors(lambda error: None if isinstance(error, ConfideError | MemoryError) else unreadable):
        data = in_memory(name, data)
        if _is_masked_array(data) and np.ma.is_masked(data):
            remedy = "Fill them in; results from the other records alone say nothing about these"
            raise_for_rows(name, np.ma.getmaskarray(data), "must not be masked", "masked entries", remedy)
        return np.asarray(as_host_array(data))


def as_host_array(data: Any) -> Any:
    """A torch tensor as a numpy array, from any device and of any float type; everything else unchanged."""
    if not (hasattr(data, "detach") and hasattr(data, "cpu")):
        return data
    tensor = data.detach().cpu()
    return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()  # numpy has no bfloat16


def _from_objects(name: str, array: NDArray[Any]) -> NDArray[np.float64]:
    """Numbers in an object array, one by one: None and pandas.NA are missing; other non-numbers raise an error."""
    values = array.ravel().tolist()
    wrong = [i for i, value in enumerate(values) if not (is_null(value) or _is_number(value))]
    if wrong or array.ndim == 0:
        kind = type(values[wrong[0]] if wrong else values[0]).__name__
        where = f" in {len(wrong)} place(s), the first at position {wrong[0]}" if array.ndim else ""
        raise InputTypeError(name, "must hold real numbers", got=f"{kind}{where}", remedy="Convert them to floats")
    return np.array([np.nan if is_null(value) else as_number(name, value) for value in values]).reshape(array.shape)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real | Decimal) and not isinstance(value, bool)


def is_null(value: Any) -> bool:
    """Whether a value is None or pandas.NA."""
    return value is None or type(value).__name__ == "NAType"  # that of pandas


def one_per_record(name: str, array: Any) -> Any:
    """An array of shape (n,), also from one column, shape (n, 1), as models and data frames return it.

    Examples
    --------
    >>> one_per_record("targets", np.array([[1.5], [2.0]]))
    array([1.5, 2. ])
    """
    if array.ndim == 2 and array.shape[1] == 1:
        return array[:, 0]
    if array.ndim != 1:
        remedy = "Pass a list, [value], for one record" if array.ndim == 0 else "Pass one entry per record"
        raise InputError(name, "must be one-dimensional", got=f"shape {tuple(array.shape)}", remedy=remedy)
    return array


def as_vector(name: str, data: ArrayLike, *, empty: bool = False) -> NDArray[Any]:
    """A one-dimensional numeric array, also from one column; it may be empty only with `empty`."""
    array: NDArray[Any] = one_per_record(name, as_numeric(name, data))
    require(name, array.size or empty, "must not be empty", "no values")
    return array


def as_probabilities(name: str, data: ArrayLike, *, check: bool = True) -> NDArray[Any]:
    """An array of shape (n, K), K > 0, with values in [0, 1]; n may be 0.

    The sums of rows are checked by `refuse_other_sums`. With `check=False` the caller checks the range during its own
    pass over the entries (see `unit_check`).
    """
    array = as_numeric(name, data)
    remedy = "Pass a list, [probabilities], for one record" if array.ndim == 1 else ""
    must = "must have shape (n, classes) with one class or more"
    require(name, array.ndim == 2 and array.shape[1], must, f"shape {array.shape}", remedy)
    if check and not all(map(unit_check(array), blocks(0, *array.shape))):
        refuse_outside_unit(name, array)
    return array


def finite(block: NDArray[np.float64]) -> bool:
    """Whether every entry is finite, in one pass without a temporary array; False also if the sum overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(block.sum()))


def unit_check(array: NDArray[Any]) -> Callable[[slice], bool]:
    """Return a function that checks whether a slice of rows lies in [0, 1] without NaN, in one pass for floats.

    The bits of a float, read as an unsigned integer, are at most those of 1.0 exactly for the numbers from 0 to 1. NaN,
    negative and larger numbers have larger bits. -0.0 has larger bits as well; a second check accepts it.

    Examples
    --------
    >>> look = unit_check(np.array([[0.0, 1.0], [0.5, np.nan]]))
    >>> look(slice(0, 1)), look(slice(0, 2))
    (True, False)
    """

    def compared(rows: slice) -> bool:
        return bool(array[rows].min() >= 0 and array[rows].max() <= 1)

    if array.dtype.kind != "f" or array.dtype.itemsize not in (2, 4, 8) or not array.dtype.isnative:
        return compared
    bits, code_of_one = _bits_of_one(array.dtype)
    codes = array.view(bits)
    return lambda rows: bool(np.maximum.reduce(codes[rows], axis=None) <= code_of_one) or compared(rows)


@lru_cache(maxsize=8)
def _bits_of_one(dtype: np.dtype[Any]) -> tuple[np.dtype[Any], np.unsignedinteger]:
    """The unsigned integer type of a float's size, and the integer with the bits of 1.0."""
    bits = np.dtype(f"u{dtype.itemsize}")
    code: np.unsignedinteger = np.ones(1, dtype).view(bits)[0]
    return bits, code


def refuse_outside_unit(name: str, array: NDArray[Any]) -> None:
    """Reject entries outside [0, 1], with the number of rows and the first of them."""
    wrong = np.zeros(len(array), np.bool_)
    for rows in blocks(0, *array.shape):
        wrong[rows] = ~((array[rows] >= 0) & (array[rows] <= 1)).all(axis=1)
    remedy = "Apply softmax to logits, or sigmoid where several labels can be true, and complete rows with NaN"
    raise_for_rows(name, wrong, "must lie in [0, 1]", "row(s) with NaN or values outside", remedy, place="row")


def as_float_rows(block: NDArray[Any]) -> NDArray[Any]:
    """A block as contiguous float32 (from float16 and float32, without loss) or float64 (from all other types)."""
    small = block.dtype.kind == "f" and block.dtype.itemsize <= 4
    return np.ascontiguousarray(block, dtype=np.float32 if small else np.float64)
