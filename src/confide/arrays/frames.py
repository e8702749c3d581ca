"""Names that a data frame gives its columns: they say which class a column of probabilities belongs to."""

from collections.abc import Iterable, Sequence
from typing import Any

from confide.arrays.checked import class_names
from confide.arrays.frames_in import in_memory, is_query
from confide.errors import InputError
from confide.support import Name, canonical, only_count


def column_names(data: Any) -> tuple[Name, ...] | None:
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
        in_memory("probabilities", data)
    held = getattr(data, "column_names", getattr(data, "columns", None))  # Arrow's `columns` are the columns themselves
    if not isinstance(held, Iterable):
        return None
    names = tuple(name.item() if hasattr(name, "item") else name for name in held)
    if not all(isinstance(name, str | int) for name in names):
        return None
    texts = list(map(canonical, names))
    if repeated := len(texts) - len(set(texts)):
        raise InputError(f"probabilities must have columns of different names; found {repeated} repeated")
    counted = only_count(texts) or texts == [f"column_{i}" for i in range(len(texts))]
    return None if counted else names


def names_of_classes(probabilities: Any, classes: Sequence[object] | None, k: int) -> tuple[object, ...] | None:
    """The names of the k classes: those that are given, else those of a data frame's columns; None without names.

    Examples
    --------
    >>> names_of_classes([[0.75, 0.25]], ["cat", "dog"], 2)
    ('cat', 'dog')
    """
    return column_names(probabilities) if classes is None else class_names(classes, k)
