"""Names that a data frame gives its columns: they say which class a column of probabilities belongs to."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.arrays.checked import as_array, as_numeric, as_probabilities, class_names
from confide.arrays.frames_in import in_memory, is_query
from confide.errors import InputError
from confide.support import Name, canonical, column_order, only_count, refuse_marked


def column_names(data: Any, called: str = "probabilities") -> tuple[Name, ...] | None:
    """The column names of a data frame of any kind, or an Arrow table; None for anything without names.

    Columns that only count, as those of a frame made of an array do (0 to K-1, or column_0 to column_K-1), have none.

    Raises
    ------
    InputError
        If two columns have one name.

    Examples
    --------
    >>> import pandas
    >>> column_names(pandas.DataFrame({"cat": [0.75], "dog": [0.25]})), column_names([[0.75, 0.25]])
    (('cat', 'dog'), None)
    """
    if is_query(data):
        in_memory(called, data)
    held = getattr(data, "column_names", getattr(data, "columns", None))  # Arrow's `columns` are the columns themselves
    if not isinstance(held, Iterable):
        return None
    names = tuple(name.item() if hasattr(name, "item") else name for name in held)
    if not all(isinstance(name, str | int) for name in names):
        return None
    texts = list(map(canonical, names))
    if repeated := len(texts) - len(set(texts)):
        raise InputError(f"{called} must have columns of different names; found {repeated} repeated")
    counted = only_count(texts) or texts == [f"column_{i}" for i in range(len(texts))]
    return None if counted else names


def class_columns(
    probabilities: Any, classes: Sequence[object] | None, *, check: bool = False
) -> tuple[NDArray[Any], tuple[object, ...] | None]:
    """Probabilities as an array of shape (n, K), and the names of its columns; None without names.

    Columns of a data frame that are named by `classes` are put in the order of these.

    Raises
    ------
    InputError, InputTypeError
        If they are no probabilities, or a data frame's columns have other names than `classes`.

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
    """The columns of a table in an order; the table itself, if they are."""
    return table if order == list(range(len(order))) else table[:, order]


def as_truth(truth: Any, shape: tuple[int, ...], names: Sequence[object] | None = None) -> NDArray[np.bool_]:
    """Which labels of each record are true, shape (n, K), from booleans or from 1 and 0.

    Columns of a data frame that are named by `names`, the labels, are put in the order of these.

    Raises
    ------
    InputError, InputTypeError
        If it has another shape, other numbers, or columns of other names.

    Examples
    --------
    >>> import pandas
    >>> as_truth(pandas.DataFrame({"cat": [1], "dog": [0]}), (1, 2), ["dog", "cat"])
    array([[False,  True]])
    """
    true = as_array("truth", truth)
    if true.shape != shape:
        raise InputError(f"truth must have shape {shape}, one column per label; found shape {true.shape}")
    if true.dtype != np.bool_:
        numbers = as_numeric("truth", truth)
        wrong = ~((numbers == 0) | (numbers == 1)).all(axis=1)
        must = "truth must hold 1 for each label that is true and 0 for others"
        refuse_marked(wrong, must, "rows that hold something else", place="row")
        true = numbers == 1
    columns = column_names(truth, "truth")
    return true if names is None else in_order(true, column_order("truth", names, columns, "labels"))
