"""A column that names the class or the group of each record, and the position of that name."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.support import as_integer, canonical, only_count
from confide.tables.arrow_types import in_words, is_integer
from confide.tables.batch_columns import column_of, integer_column, positions_among, texts_of
from confide.tables.expressions import position
from confide.tables.findings import Fault
from confide.tables.table import Read, Table

Names = tuple[str | int, ...]


@dataclass(frozen=True)
class NamedColumn:
    """A column of labels, or of groups.

    Parameters
    ----------
    column
        Its name.
    names
        The names of all classes or groups: texts, or integers.
    what
        What they name.
    positions
        Whether the column holds positions among the names instead of names.
    """

    column: str
    names: Names
    what: Literal["classes", "groups"] = "classes"
    positions: bool = False

    @property
    def read(self) -> Read:
        """How the column is read."""
        return Read(self.column, "label")

    @property
    def requirement(self) -> str:
        """What every record has to fulfil, for messages."""
        k = len(self.names)
        if self.positions:
            return f"column {self.column!r} must hold the position of a class, 0 to {k - 1},"
        some = ", ".join(map(str, self.names[:10])) + (", ..." if k > 10 else "")
        if self.what == "classes" and only_count(list(map(str, self.names))):
            some += "; other names with classes=[...]"
        return f"column {self.column!r} must hold one of the {k} {self.what} ({some})"

    def places(self, batch: Any) -> NDArray[np.int64]:
        """The position of each record's name, int64, shape (n,), -1 where there is none."""
        if not self.positions:
            return positions_among(batch, self.column, self.names)
        place = integer_column(batch, self.column)
        return np.where((place >= 0) & (place < len(self.names)), place, -1)

    def keys(self, batch: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The name of each record, shape (n,), and which records have none."""
        place = self.places(batch)
        return np.array(self.names, dtype=object)[place], place < 0

    def fault(self, batch: Any, finding: int) -> Fault:
        """What is wrong with the column in a batch, and what would help: blanks, case, integers that became numbers."""
        import pyarrow as pa
        import pyarrow.compute as pc

        wrong = self.places(batch) < 0
        held = column_of(batch, self.read).filter(pa.array(wrong))
        if is_integer(held.type) or self.positions:
            return Fault(finding, self.requirement, wrong, held.null_count > 0)
        texts = pc.fill_null(held.cast(pa.string()), "")
        trimmed, names = pc.utf8_trim_whitespace(texts), [str(canonical(name)) for name in self.names]
        tries = {
            "be one without the blanks around it": (trimmed, names),
            "be one in other upper and lower case": (pc.utf8_lower(trimmed), [name.lower() for name in names]),
            "be one without '.0', as whole numbers are written": (_without_zeros(trimmed), names),
        }
        hints = {hint: pc.sum(pc.is_in(one, pa.array(among))).as_py() or 0 for hint, (one, among) in tries.items()}
        found = next(((hint, number) for hint, number in hints.items() if number), None)
        missing = bool(pc.any(pc.equal(texts, "")).as_py())
        return Fault(finding, self.requirement, wrong, missing, dict([found] if found else []))

    def expressions(self, table: Any) -> tuple[Any, Any]:
        """The same in terms of an Ibis table: the position, and the records that have none."""
        place = position(table[self.column], tuple(range(len(self.names))) if self.positions else self.names)
        return place, place.isnull() | (place < 0) | (place >= len(self.names))


@dataclass(frozen=True)
class AnyGroups:
    """A column of groups whose names nobody knows beforehand: texts or integers, none missing."""

    column: str

    @classmethod
    def of(cls, table: Table, column: str) -> "AnyGroups":
        """The column of a table.

        Raises
        ------
        InputError
            If there is no such column, or it holds neither texts nor integers.
        """
        _check_groups(table, column)
        return cls(column)

    @property
    def read(self) -> Read:
        """How the column is read."""
        return Read(self.column, "label")

    @property
    def requirement(self) -> str:
        """What every record has to fulfil, for messages."""
        return f"column {self.column!r} must name the group of the record (not missing)"

    def keys(self, batch: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The name of each record as a text, shape (n,), and which records have none."""
        return texts_of(batch, self.column)

    def fault(self, batch: Any, finding: int) -> Fault:
        """The records of a batch that name no group."""
        without = self.keys(batch)[1]
        return Fault(finding, self.requirement, without, missing=bool(without.any()))


def _without_zeros(texts: Any) -> Any:
    import pyarrow.compute as pc

    return pc.replace_substring_regex(texts, r"^(-?[0-9]+)\.0*$", r"\1")


def label_column(table: Table, column: str, names: Names, *, positions: bool = False) -> NamedColumn:
    """The label column of a table, matched with the class names; with `positions` it holds integers that count from 0.

    Raises
    ------
    InputError
        If there is no such column, it holds neither texts nor integers, or integers beside classes whose names are not
        integers, and nobody said that they are positions.
    """
    kind = table.type_of(column)
    if not table.holds_labels(column):
        held = in_words(kind)
        raise InputError(f"column {column!r} holds {held}; labels are class names or integers; {table.existing()}")
    integers = is_integer(kind)
    if positions and not integers:
        raise InputError(f"column {column!r} must hold positions, by label_positions; it holds {in_words(kind)}")
    if integers and not positions and not any(as_integer(name) is not None for name in names):
        some = ", ".join(map(str, names[:10])) + (", ..." if len(names) > 10 else "")
        raise InputError(
            f"column {column!r} holds integers, and the classes are named {some}; write names into it, or, if its "
            "integers count these from 0, say so by label_positions"
        )
    return NamedColumn(column, names, positions=positions or (integers and names == tuple(range(len(names)))))


def group_column(table: Table, column: str, names: Names) -> NamedColumn:
    """The column of each record's group, for the groups with these names.

    Raises
    ------
    InputError
        If there is no such column, it holds neither texts nor integers, or integers and the names are none.
    """
    kind = _check_groups(table, column)
    wrong = sum(as_integer(name) is None for name in names)
    if is_integer(kind) and wrong:
        raise InputError(f"groups must be integers, for column {column!r} holds integers; found {wrong} that are not")
    return NamedColumn(column, names, "groups")


def _check_groups(table: Table, column: str) -> Any:
    """The type of a column that can name groups."""
    kind = table.type_of(column)
    if not table.holds_labels(column):
        held = in_words(kind)
        raise InputError(f"column {column!r} holds {held}; groups are named by texts or integers; {table.existing()}")
    return kind
