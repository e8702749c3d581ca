"""What is read of each row: a number, the probabilities of the classes, or the position of its label.

A part names the SQL expressions that it needs and turns their Arrow columns into one numpy array per batch. A batch
with bad rows is noted in the findings and gives no array.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from confide.tables.findings import Findings
from confide.tables.source import Table
from confide.tables.sql import identifier, is_integer, list_element

_LARGEST = float(np.finfo(np.float64).max)


class Part(Protocol):
    """One array per batch, from one or more columns."""

    @property
    def width(self) -> int:
        """Numbers per row."""

    @property
    def expressions(self) -> list[str]:
        """What to ask the file for."""

    def read(self, columns: Sequence[Any], start: int, findings: Findings) -> NDArray[Any] | None:
        """The array of a batch, or None if some of its rows are bad."""


def number_expression(table: Table, name: str) -> str:
    """A column as FLOAT if it is one, else as DOUBLE; what is no number becomes null."""
    if table.format != "csv" and table.columns[name] in ("FLOAT", "DOUBLE"):
        return identifier(name)
    return f"TRY_CAST({nothing_as_null(table, name)} AS DOUBLE)"


def nothing_as_null(table: Table, name: str) -> str:
    """A column, in CSV with empty texts as null.

    Without the NULLIF, DuckDB hands a cast to its CSV reader, which fails where TRY_CAST says null
    (duckdb/duckdb#23818).
    """
    return f"NULLIF({identifier(name)}, '')" if table.format == "csv" else identifier(name)


@dataclass(frozen=True)
class Number:
    """A numeric column with values in [low, high]."""

    table: Table
    name: str
    low: float = -_LARGEST
    high: float = _LARGEST
    range_text: str = "that is finite"
    width: int = 1

    @property
    def expressions(self) -> list[str]:
        """The column."""
        return [number_expression(self.table, self.name)]

    def read(self, columns: Sequence[Any], start: int, findings: Findings) -> NDArray[Any] | None:
        """The column as float32 or float64, shape (n,)."""
        values: NDArray[Any] = columns[0].to_numpy(zero_copy_only=False)
        low, high = np.float64(self.low), np.float64(self.high)  # not floats: these would be rounded to float32
        if values.min() >= low and values.max() <= high:
            return values
        wrong = np.asarray(~((values >= low) & (values <= high)))
        findings.note(f"column {self.name!r} must hold a number {self.range_text} (not missing, not NaN)", wrong, start)
        return None


def one_or_pairs(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Predictions of shape (n,), or pairs of quantiles of shape (n, 2)."""
    return columns[0] if len(columns) == 1 else np.column_stack(columns)


@dataclass(frozen=True)
class Probabilities:
    """The probabilities of K classes, from K columns or from one list column.

    Parameters
    ----------
    table
        The file.
    columns
        The K columns, or the one list column.
    names
        The K class names.
    from_list
        Whether they come from a list column.
    """

    table: Table
    columns: tuple[str, ...]
    names: tuple[str, ...]
    from_list: bool

    @property
    def width(self) -> int:
        """K."""
        return len(self.names)

    @property
    def expressions(self) -> list[str]:
        """The columns, all of the same float type so that no precision is lost or invented."""
        kinds = [self.table.columns[name] for name in self.columns]
        if self.from_list:
            element = "FLOAT" if list_element(kinds[0]) == "FLOAT" else "DOUBLE"
            return [f"CAST({identifier(self.columns[0])} AS {element}[])"]
        expressions = [number_expression(self.table, name) for name in self.columns]
        alike = self.table.format == "csv" or set(kinds) == {"FLOAT"} or "FLOAT" not in kinds
        return expressions if alike else [f"CAST({expression} AS DOUBLE)" for expression in expressions]

    def read(self, columns: Sequence[Any], start: int, findings: Findings) -> NDArray[Any] | None:
        """The probabilities as float32 or float64, shape (n, K)."""
        values = self._from_list(columns[0], start, findings) if self.from_list else _side_by_side(columns)
        if values is None or (values.min() >= 0 and values.max() <= 1):  # NaN fails both
            return values
        wrong = np.asarray(~((values >= 0) & (values <= 1)).all(axis=1))
        wanted = "probabilities between 0 and 1, none missing (apply softmax to logits, divide percentages by 100)"
        findings.note(f"{self._title} must hold {wanted}", wrong, start)
        return None

    def _from_list(self, column: Any, start: int, findings: Findings) -> NDArray[Any] | None:
        import pyarrow.compute as pc

        k = self.width
        lengths: NDArray[Any] = pc.fill_null(pc.list_value_length(column), -1).to_numpy(zero_copy_only=False)
        if findings.note(f"{self._title} must hold a list of {k} probabilities, one per class", lengths != k, start):
            return None
        values: NDArray[Any] = column.flatten().to_numpy(zero_copy_only=False)
        return values.reshape(len(column), k)

    @property
    def _title(self) -> str:
        return f"column {self.columns[0]!r}" if len(self.columns) == 1 else f"columns {self.columns[0]!r} and following"


def _side_by_side(columns: Sequence[Any]) -> NDArray[Any]:
    first = columns[0].to_numpy(zero_copy_only=False)
    matrix = np.empty((len(first), len(columns)), dtype=first.dtype)
    for k, column in enumerate(columns):
        matrix[:, k] = column.to_numpy(zero_copy_only=False)
    return matrix


@dataclass(frozen=True)
class Label:
    """A column of labels, as positions among the class names; or of groups, among theirs.

    Texts are matched by name. Integers are matched by name if a class name reads as an integer, else they are
    positions; groups have no positions.
    """

    table: Table
    name: str
    names: tuple[str, ...]
    what: Literal["classes", "groups"] = "classes"
    width: int = 1

    @property
    def expressions(self) -> list[str]:
        """The column, as integers or as text."""
        column = identifier(self.name)
        if not self.integers:
            return [f"CAST({column} AS VARCHAR)"]
        return [f"TRY_CAST({nothing_as_null(self.table, self.name)} AS BIGINT)"]

    def read(self, columns: Sequence[Any], start: int, findings: Findings) -> NDArray[Any] | None:
        """Positions of the classes, int64, shape (n,)."""
        import pyarrow.compute as pc

        labels = columns[0]
        known = self._known
        positions = labels if known is None else pc.index_in(labels, value_set=known)
        index: NDArray[np.int64] = pc.fill_null(positions, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        wrong = (index < 0) | (index >= len(self.names))
        return None if findings.note(self._requirement, wrong, start) else index

    @property
    def integers(self) -> bool:
        """Whether the column holds integers."""
        return is_integer(self.table.columns[self.name])

    @property
    def _known(self) -> Any | None:
        """What labels are looked up in; None if they are positions themselves."""
        import pyarrow as pa

        if not self.integers:
            return pa.array(self.names, pa.string())
        if self.what == "groups" or any(_reads_as_integer(name) for name in self.names):
            return pa.array([int(name) if _reads_as_integer(name) else None for name in self.names], pa.int64())
        return None

    @property
    def _requirement(self) -> str:
        k = len(self.names)
        if self.integers and self._known is None:
            return f"column {self.name!r} must hold the position of a class, 0 to {k - 1},"
        some = ", ".join(self.names[:10]) + (", ..." if k > 10 else "")
        return f"column {self.name!r} must hold one of the {k} {self.what} ({some})"


def _reads_as_integer(name: str) -> bool:
    return name.isascii() and name.removeprefix("-").isdigit() and len(name) <= 18
