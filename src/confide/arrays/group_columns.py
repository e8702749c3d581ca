"""Groups that overlap: columns such as sex, age and site, of which each gives a record one group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays.checked import as_array
from confide.arrays.frames import columns_by_name
from confide.arrays.labels import as_positions
from confide.errors import InputError, InputTypeError
from confide.support import Name, check_names, require, several

# The group of each record, or columns of groups that overlap
Groups: TypeAlias = ArrayLike | Mapping[str, ArrayLike]


@dataclass(frozen=True)
class GroupColumns:
    """Columns of groups with their public values. A record belongs to one group of each column.

    Parameters
    ----------
    columns
        Mapping from the name of a column, a text, to the list of all its values, texts or integers, **public**.

    Raises
    ------
    InputError, InputTypeError
        If `columns` is not such a mapping, or two groups have the same name `column=value`.
    """

    columns: Mapping[str, Sequence[Name]] = field(hash=False)

    def __post_init__(self) -> None:
        if not isinstance(self.columns, Mapping) or not all(isinstance(column, str) for column in self.columns):
            raise InputTypeError("names", "must be a mapping from names of columns, texts, to lists of their values")
        require("names", self.columns, "must have one column of groups or more", "none")
        checked = {column: check_names(f"names[{column!r}]", values) for column, values in self.columns.items()}
        object.__setattr__(self, "columns", MappingProxyType(checked))
        check_names("names", self.names)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self.columns),)

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """The groups of all columns, column by column: `column=value`."""
        return tuple(group_name(column, value) for column, values in self.columns.items() for value in values)

    @property
    def slices(self) -> tuple[slice, ...]:
        """The positions of each column's groups among all."""
        ends = list(accumulate(map(len, self.columns.values()), initial=0))
        return tuple(map(slice, ends, ends[1:]))

    @property
    def cells(self) -> dict[str, tuple[str, str]]:
        """The column and the value of each group, as texts, by the name of the group."""
        pairs = [(column, str(value)) for column, values in self.columns.items() for value in values]
        return dict(zip(self.names, pairs, strict=True))

    def __str__(self) -> str:
        return ", ".join(f"{column} ({len(values)})" for column, values in self.columns.items())

    def places(self, groups: Groups, n: int) -> NDArray[np.int64]:
        """The positions of each record's groups in `names`, int64, shape (n, columns).

        Parameters
        ----------
        groups
            A data frame or a mapping with exactly these columns, in any order; or an array of shape (n, columns), in
            their order.
        n
            The number of records.

        Raises
        ------
        InputError, InputTypeError
            If there are other columns, or a value is missing or unknown. A record in more groups than stated is never
            reduced to some of them.
        """
        by_column = self._by_column(groups, n)
        places = [
            as_positions(f"groups[{column!r}]", by_column[column], values, n) + positions.start
            for (column, values), positions in zip(self.columns.items(), self.slices, strict=True)
        ]
        return np.stack(places, axis=1)

    def _by_column(self, groups: Any, n: int) -> Mapping[str, Any]:
        named = groups if isinstance(groups, Mapping) else columns_by_name("groups", groups)
        if named is not None:
            must = f"must have exactly the columns {', '.join(self.columns)}"
            require("groups", set(named) == set(self.columns), must, f"{len(named)} columns, or other names")
            return named
        array = as_array("groups", groups)
        must = f"must have shape ({n}, {len(self)}), a column for each of {', '.join(self.columns)}"
        require("groups", array.shape == (n, len(self)), must, f"shape {array.shape}")
        return dict(zip(self.columns, array.T, strict=True))

    def read_from(self, by: str | Sequence[str]) -> tuple[str, ...]:
        """The table's column for each column of groups: by name if `by` has the same names, else in the order of `by`.

        Examples
        --------
        >>> GroupColumns({"sex": ["f", "m"], "age": ["young", "old"]}).read_from(["age", "sex"])
        ('sex', 'age')
        """
        names = (by,) if isinstance(by, str) else tuple(several("by", by))
        if len(names) != len(self) or len(set(names)) != len(names):
            must = f"must name {len(self)} different columns, of {', '.join(self.columns)}"
            raise InputError("by", must, got=f"{len(set(names))} different of {len(names)}")
        return tuple(self.columns) if set(names) == set(self.columns) else names


def group_name(column: str, value: Name) -> str:
    """The name of a group of a column.

    Examples
    --------
    >>> group_name("age", 7)
    'age=7'
    """
    return f"{column}={value}"
