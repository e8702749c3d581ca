"""Names that pandas gives to rows: they say which record a row belongs to."""

from itertools import combinations
from typing import Any

from confide.errors import InputError


def row_index(data: Any) -> Any:
    """The index of a pandas object, or of whatever carries one of its kind; None for anything without."""
    index = getattr(data, "index", None)
    if index is None or not hasattr(index, "equals"):
        return None
    return index.to_pandas() if hasattr(index, "to_pandas") else index  # the former of frames on a GPU


def refuse_other_rows(**given: Any) -> None:
    """Refuse pandas objects that name the same rows in another order, or name other rows.

    An index that only counts from 0, as pandas makes one by default, fits every other index but a permutation of it.
    No label of an index is quoted.

    Parameters
    ----------
    **given
        What has one row, or entry, for each record, by the name of the argument; without an index, or None, as well.

    Raises
    ------
    InputError
        If two of them differ in the names of their rows.

    Examples
    --------
    >>> import pandas
    >>> y = pandas.Series([1.0, 2.0], index=["a", "b"])
    >>> refuse_other_rows(predictions=y, targets=y, groups=[1, 2])
    >>> refuse_other_rows(predictions=y, targets=y[::-1])
    Traceback (most recent call last):
        ...
    confide.errors.InputError: the rows of targets must be in the order of those of predictions; found the same ...
    """
    indexes = [(name, index) for name, data in given.items() if (index := row_index(data)) is not None]
    for (name, index), (other_name, other) in combinations(indexes, 2):
        if len(index) != len(other) or index.equals(other):  # of another length they are refused as such
            continue
        same = set(index) == set(other)
        if same or not (_only_counts(index) or _only_counts(other)):
            found = "the same index labels in another order" if same else "other index labels"
            raise InputError(
                f"the rows of {other_name} must be in the order of those of {name}; found {found}; align them, or "
                "pass .to_numpy() of both"
            )


def _only_counts(index: Any) -> bool:
    """Whether an index is that of a frame made of an array: 0 to n-1."""
    return bool(index.dtype.kind in "iu") and list(index) == list(range(len(index)))
