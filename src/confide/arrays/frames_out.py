"""Columns as a data frame of the kind that somebody works with; pandas as it is, all others by narwhals."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from confide.arrays.frame_rows import refuse_other_rows
from confide.errors import InputError, InputTypeError
from confide.support import needs_extra


def frame_of(columns: Sequence[tuple[object, NDArray[Any]]], like: Any, index: Any = None) -> Any:
    """A data frame with these columns, (name, values) each.

    Parameters
    ----------
    columns
        Names, all different, and values of shape (n,).
    like
        A data frame of the kind, or the kind's name. A pandas one lends its index, and must have n rows.
    index
        The index that the rows have already, or None: that of a pandas frame by name, and one that `like` must have.

    Raises
    ------
    InputError, InputTypeError
        If `like` has another number of rows, or is of no kind that holds data in memory; if two names are one text, and
        the kind has texts for names.
    MissingExtraError
        If pandas, or for other kinds narwhals, is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> frame_of([("cat", np.array([True]))], "polars").columns
    ['cat']
    """
    if like == "pandas" if isinstance(like, str) else type(like).__module__.partition(".")[0] == "pandas":
        return _pandas(columns, None if isinstance(like, str) else like, index)
    with needs_extra("a data frame of this kind", "frames"):
        import narwhals.stable.v2 as nw
    try:
        backend: Any = like if isinstance(like, str) else nw.from_native(like).implementation
        named = {str(name): values for name, values in columns}
        if len(named) != len(columns):
            raise InputError(
                f"classes must have different texts as names; found {len(columns) - len(named)} repeated, as 1 and '1' "
                "are; use to_pandas, which keeps them apart"
            )
        return nw.from_dict(named, backend=backend).to_native()
    except (TypeError, ValueError, ModuleNotFoundError) as error:
        if isinstance(error, InputError):
            raise
        raise InputTypeError(
            f"like must be a data frame in memory, or the name of a kind that is installed, as 'pandas', 'polars' or "
            f"'pyarrow'; found {like!r}"
            if isinstance(like, str)
            else f"like must be a data frame in memory, as of pandas, polars or pyarrow; found {type(like).__name__}"
        ) from None


def _pandas(columns: Sequence[tuple[object, NDArray[Any]]], like: Any, index: Any) -> Any:
    with needs_extra("a pandas data frame", "pandas"):
        import pandas as pd
    n = len(columns[0][1])
    if like is not None and len(like) != n:
        raise InputError(f"like must have one row per record; found {len(like)} for {n}")
    if like is not None and index is not None:
        refuse_other_rows(sets=pd.Series(0, index), like=like)
    names = pd.Index([name for name, _ in columns], tupleize_cols=False)
    made = pd.DataFrame(dict(enumerate(values for _, values in columns)), index=index if like is None else like.index)
    made.columns = names
    return made
