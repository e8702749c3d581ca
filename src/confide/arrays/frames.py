"""The names of columns and rows in data frames, and columns as a data frame."""

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.arrays.checked import as_array, as_numeric, as_probabilities, in_memory, is_query
from confide.arrays.labels import class_names
from confide.errors import InputTypeError
from confide.support import (
    Name,
    canonical_name,
    column_order,
    is_numbering,
    needs_extra,
    plain_names,
    raise_for_rows,
    require,
)

# The row names of pandas: they state which record a row belongs to.


def row_index(data: Any) -> Any:
    """The index of a pandas object, or of an object with such an index; None for anything else."""
    index = getattr(data, "index", None)
    if index is None or not hasattr(index, "equals"):
        return None
    return index.to_pandas() if hasattr(index, "to_pandas") else index  # the first case: frames on a GPU


def refuse_other_rows(**given: Any) -> None:
    """Reject pandas objects of equal length whose indexes have different labels, or the same ones in another order.

    The default index of pandas, 0 to n-1, is compatible with every index except a permutation of itself. Messages
    contain no label of an index.
    """
    by_name = {name: row_index(data) for name, data in given.items()}
    indexes = [(name, index) for name, index in by_name.items() if index is not None]
    for (name, index), (other_name, other) in combinations(indexes, 2):
        if len(index) != len(other) or index.equals(other):  # another check reports different lengths
            continue
        same_labels = set(index) == set(other)
        must = f"the rows of {other_name} must be in the order of those of {name}"
        got = "the same index labels in another order" if same_labels else "other index labels"
        compatible = not same_labels and (_is_default_index(index) or _is_default_index(other))
        require(other_name, compatible, must, got, "Align them, or pass .to_numpy() of both")


def _is_default_index(index: Any) -> bool:
    """Whether an index is that of a frame made from an array: 0 to n-1."""
    return bool(index.dtype.kind in "iu") and list(index) == list(range(len(index)))


# The column names of a data frame: they state which class a column of probabilities belongs to.


def column_names(data: Any, called: str = "probabilities") -> tuple[Name, ...] | None:
    """The column names of a data frame of any kind, or an Arrow table; None for data without names.

    Columns that are only numbered, as in a frame made from an array (0 to K-1, or column_0 to column_K-1), count as
    columns without names.

    Examples
    --------
    >>> import pandas
    >>> column_names(pandas.DataFrame({"cat": [0.75], "dog": [0.25]})), column_names([[0.75, 0.25]])
    (('cat', 'dog'), None)
    """
    if is_query(data):
        in_memory(called, data)
    columns = getattr(data, "column_names", getattr(data, "columns", None))  # Arrow's `columns` are not names
    if not isinstance(columns, Iterable):
        return None
    names = tuple(plain_names(called, columns))
    texts = list(map(canonical_name, names))
    repeated = len(texts) - len(set(texts))
    require(called, not repeated, "must have columns of different names", f"{repeated} repeated")
    counted = is_numbering(texts) or texts == [f"column_{i}" for i in range(len(texts))]
    return None if counted else names


def columns_by_name(called: str, data: Any) -> dict[str, NDArray[Any]] | None:
    """The columns of a data frame of any kind by their names, shape (n,) each; None for data without names.

    Examples
    --------
    >>> import pandas
    >>> columns_by_name("groups", pandas.DataFrame({"sex": ["f"], "age": [7]}))
    {'sex': array(['f'], dtype=object), 'age': array([7], dtype=object)}
    """
    names = column_names(data, called)
    return None if names is None else dict(zip(map(str, names), as_array(called, data).T, strict=True))


def class_columns(
    probabilities: Any, classes: Sequence[object] | None, *, check: bool = False
) -> tuple[NDArray[Any], tuple[object, ...] | None]:
    """Probabilities as an array of shape (n, K), and the names of its columns, or None without names.

    If `classes` names the columns of a data frame, they are put in the order of `classes`.

    Examples
    --------
    >>> import pandas
    >>> class_columns(pandas.DataFrame({"cat": [0.75], "dog": [0.25]}), ["dog", "cat"])
    (array([[0.25, 0.75]]), ('dog', 'cat'))
    """
    p = as_probabilities("probabilities", probabilities, check=check)
    columns = column_names(probabilities)
    if classes is None:
        return p, columns
    names = class_names(classes, p.shape[1])
    return in_order(p, column_order("classes", names, columns)), names


def in_order(table: NDArray[Any], order: list[int]) -> NDArray[Any]:
    """The columns of a table in an order; the table itself if they are already in this order."""
    return table if order == list(range(len(order))) else table[:, order]


def as_true_labels(truth: Any, shape: tuple[int, ...], names: Sequence[object] | None = None) -> NDArray[np.bool_]:
    """Whether each label of each record is true, shape (n, K), from booleans or from 1 and 0.

    If the columns of a data frame have the labels in `names` as their names, they are put in the order of `names`.

    Examples
    --------
    >>> import pandas
    >>> as_true_labels(pandas.DataFrame({"cat": [1], "dog": [0]}), (1, 2), ["dog", "cat"])
    array([[False,  True]])
    """
    true = as_array("truth", truth)
    require("truth", true.shape == shape, f"must have shape {shape}, one column per label", f"shape {true.shape}")
    if true.dtype != np.bool_:
        numbers = as_numeric("truth", truth)
        wrong = ~((numbers == 0) | (numbers == 1)).all(axis=1)
        must = "must hold 1 for each label that is true and 0 for others"
        raise_for_rows("truth", wrong, must, "rows that hold something else", place="row")
        true = numbers == 1
    columns = column_names(truth, "truth")
    return true if names is None else in_order(true, column_order("truth", names, columns, "labels"))


# Columns as a data frame of the user's kind; pandas directly, all others by narwhals.


def frame_of(columns: Sequence[tuple[object, NDArray[Any]]], like: Any, index: Any = None) -> Any:
    """A data frame with these columns, (name, values) each.

    Parameters
    ----------
    columns
        Names, all different, and values of shape (n,).
    like
        A data frame whose type the result has, or the name of its library. The result has the index of a pandas frame,
        which must have n rows.
    index
        The existing index of the rows, or None. It is the index of the result if `like` is "pandas"; a pandas frame as
        `like` must have the same index.

    Examples
    --------
    >>> import numpy as np
    >>> frame_of([("cat", np.array([True]))], "polars").columns
    ['cat']
    """
    kind = like if isinstance(like, str) else type(like).__module__.partition(".")[0]
    if kind == "pandas":
        return _pandas_frame(columns, None if isinstance(like, str) else like, index)

    # All others, whose columns need texts as names.
    with needs_extra("a data frame of this kind", "frames"):
        import narwhals.stable.v2 as nw
    by_text = {str(name): values for name, values in columns}
    got = f"{len(columns) - len(by_text)} repeated, as 1 and '1' are"
    remedy = "Use to_pandas, which keeps them apart"
    require("classes", len(by_text) == len(columns), "must have different texts as names", got, remedy)
    try:
        backend: Any = like if isinstance(like, str) else nw.from_native(like).implementation
        return nw.from_dict(by_text, backend=backend).to_native()
    except (TypeError, ValueError, ModuleNotFoundError):
        raise InputTypeError(
            "like",
            "must be a data frame in memory, or the name of a kind that is installed: 'pandas', 'polars' or 'pyarrow'",
            got=repr(like) if isinstance(like, str) else type(like).__name__,
        ) from None


def _pandas_frame(columns: Sequence[tuple[object, NDArray[Any]]], like: Any, index: Any) -> Any:
    with needs_extra("a pandas data frame", "pandas"):
        import pandas as pd
    n = len(columns[0][1])
    if like is not None:
        require("like", len(like) == n, "must have one row per record", f"{len(like)} for {n}")
        refuse_other_rows(sets=None if index is None else pd.Series(0, index), like=like)
    names = pd.Index([name for name, _ in columns], tupleize_cols=False)
    frame = pd.DataFrame(dict(enumerate(values for _, values in columns)), index=index if like is None else like.index)
    frame.columns = names
    return frame
