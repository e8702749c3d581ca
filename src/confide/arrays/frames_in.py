"""Data frames of any kind, as numpy can read them; narwhals, imported only then, knows those that numpy does not.

pandas, polars and Arrow offer numpy's array protocol and go without it.
"""

from importlib.util import find_spec
from typing import Any

from confide.errors import InputTypeError
from confide.support import needs_extra

_READ_BY_NUMPY = frozenset({"builtins", "numpy", "pandas", "polars", "pyarrow", "torch", "jax", "jaxlib"})


def in_memory(name: str, data: Any) -> Any:
    """The data as they are, or, of a data frame that numpy cannot read, its values; a DuckDB relation is collected.

    Raises
    ------
    InputTypeError
        If it is a query that is still to be run.
    MissingExtraError
        If it is a data frame that needs narwhals, which is not installed.

    Examples
    --------
    >>> import duckdb
    >>> in_memory("probabilities", duckdb.sql("select 0.25::double as cat, 0.75::double as dog"))
    array([[0.25, 0.75]])
    """
    homes = {kind.__module__.partition(".")[0] for kind in type(data).__mro__[:-1]}
    if is_query(data) or (hasattr(data, "columns") and not homes & _READ_BY_NUMPY):
        return _collected(name, data)
    return data


def is_query(data: Any) -> bool:
    """Whether it is a frame of polars that was not collected yet."""
    return type(data).__name__ == "LazyFrame"


def _collected(name: str, data: Any) -> Any:
    if hasattr(data, "__array__") and not find_spec("narwhals"):
        return data
    with needs_extra(f"a data frame of {type(data).__module__.partition('.')[0]}", "frames"):
        import narwhals.stable.v2 as nw
    frame = nw.from_native(data, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        if not frame.implementation.is_duckdb():
            raise InputTypeError(
                f"{name} must be in memory; found a {type(data).__name__} of {frame.implementation}, a query that is "
                "still to be run; run it first, as by .collect(), .compute() or .execute()"
            )
        frame = frame.collect()
    return frame.to_numpy() if isinstance(frame, nw.DataFrame) else data
