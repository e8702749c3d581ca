"""Columns of names: the class of each record, and its group, among public names or of any name.

A column is looked up once, and then gives positions for a batch, its unusable records, and expressions of Ibis.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from confide.arrays import GroupColumns
from confide.core import Release
from confide.errors import InputError
from confide.support import as_integer, canonical_name, is_numbering, require
from confide.tables.arrow import ColumnRef, column_of, describe_type, missing_names, positions_among, texts_of
from confide.tables.deferred import pa, pc
from confide.tables.expressions import position
from confide.tables.row_errors import ColumnError
from confide.tables.table import TableColumns

Names = tuple[str | int, ...]


@dataclass(frozen=True)
class NamedColumn:
    """A column of labels, or of groups.

    With `positions` it contains positions among the names instead of names. With `others`, values that are not among
    the names are accepted, as labels that the model never learned: their position is -1. Missing values are never
    accepted.
    """

    read: ColumnRef
    names: Names
    what: Literal["classes", "groups"] = "classes"
    positions: bool = False
    others: bool = False

    @property
    def each(self) -> tuple["NamedColumn", ...]:
        """The column itself, because groups do not overlap."""
        return (self,)

    @property
    def requirement(self) -> str:
        """The requirement on every record, for messages."""
        k = len(self.names)
        column = f"column {self.read.column!r}"
        if self.others:
            return f"{column} must hold the true class, none missing,"
        if self.positions:
            return f"{column} must hold the position of a class, 0 to {k - 1},"
        other = self.what == "classes" and is_numbering(list(map(str, self.names)))
        advice = "; other names with classes=[...]" if other else ""
        return f"{column} must hold one of the {k} {self.what} ({_first_names(self.names)}{advice})"

    @property
    def values(self) -> Names:
        """The values of the column: the names, or the positions."""
        return tuple(range(len(self.names))) if self.positions else self.names

    def places(self, batch: Any) -> NDArray[np.int64]:
        """The position of each record's name, int64, shape (n,); -1 if it has none."""
        return positions_among(batch, self.read, self.values)

    def keys(self, batch: Any) -> NDArray[Any]:
        """The name of each record, shape (n,), for records that have one."""
        return np.array(self.names, dtype=object)[self.places(batch)]

    def unusable(self, batch: Any) -> NDArray[np.bool_]:
        """The records without such a name, or with `others` without a value, boolean, shape (n,)."""
        if not self.others:
            return self.places(batch) < 0
        if not self.positions:
            return missing_names(batch, self.read)
        # Any position of a class counts, also of one that the model never learned
        texts = pc.fill_null(column_of(batch, self.read).cast(pa.string()), "")
        whole: NDArray[np.bool_] = pc.match_substring_regex(texts, "^(0|[1-9][0-9]*)$").to_numpy(zero_copy_only=False)
        return ~whole

    def column_error(self, batch: Any, reason: int) -> ColumnError:
        """The errors of the column in a batch, with hints: blanks, case, and integers that became floats."""
        wrong = self.unusable(batch)
        values = column_of(batch, self.read).filter(pa.array(wrong))
        if pa.types.is_integer(values.type) or self.positions:
            return ColumnError(reason, self.requirement, wrong, values.null_count > 0)
        texts = pc.fill_null(values.cast(pa.string()), "")
        missing = bool(pc.any(pc.equal(texts, "")).as_py())
        # Count the texts that a correction would turn into a name; only the first one that helps is reported
        trimmed = pc.utf8_trim_whitespace(texts)
        names = [str(canonical_name(name)) for name in self.names]
        without_zeros = pc.replace_substring_regex(trimmed, r"^(-?[0-9]+)\.0*$", r"\1")
        corrections = {
            "be one without the surrounding blanks": (trimmed, names),
            "be one in other upper and lower case": (pc.utf8_lower(trimmed), [name.lower() for name in names]),
            "be one without '.0', as whole numbers are written": (without_zeros, names),
        }
        for hint, (corrected, known) in corrections.items():
            if usable := pc.sum(pc.is_in(corrected, pa.array(known))).as_py():
                return ColumnError(reason, self.requirement, wrong, missing, {hint: usable})
        return ColumnError(reason, self.requirement, wrong, missing)

    def expressions(self, table: Any) -> tuple[Any, Any]:
        """The position as an Ibis expression, of `others` the next one; and the records that cannot be used."""
        column = table[self.read.column]
        place = position(column, self.values)
        unknown = place.isnull()
        if column.type().is_integer():  # whose positions are not checked
            unknown |= (place < 0) | (place >= len(self.names))
        if not self.others:
            return place, unknown
        # Labels that the model never learned have no threshold, so only missing ones cannot be used
        missing = column.isnull()
        if column.type().is_string():
            missing |= column == ""
        elif self.positions:
            missing |= column < 0
        return unknown.ifelse(len(self.names), place), missing


# The most names of classes or groups that a message lists.
_MOST_LISTED = 10


def _first_names(names: Names) -> str:
    return ", ".join(map(str, names[:_MOST_LISTED])) + (", ..." if len(names) > _MOST_LISTED else "")


@dataclass(frozen=True)
class GroupedColumns:
    """Columns of groups that overlap: each record has a group in every column."""

    each: tuple[NamedColumn, ...]  # in the order of `columns`
    columns: GroupColumns  # the names under which their groups are released

    @classmethod
    def of(cls, table: TableColumns, by: str | Sequence[str], columns: GroupColumns) -> "GroupedColumns":
        """The columns of a table, after checks."""
        values_of = dict(zip(columns.read_from(by), columns.columns.values(), strict=True))
        return cls(tuple(group_column(table, column, tuple(values)) for column, values in values_of.items()), columns)

    def places(self, batch: Any) -> NDArray[np.int64]:
        """The positions of each record's groups among all, int64, shape (n, columns); -1 for none."""
        pairs = zip((column.places(batch) for column in self.each), self.columns.slices, strict=True)
        return np.stack([np.where(place < 0, -1, place + span.start) for place, span in pairs], axis=1)

    def keys(self, batch: Any) -> dict[str, NDArray[Any]]:
        """The value of each record in every column, for records that have one."""
        return {name: column.keys(batch) for name, column in zip(self.columns.columns, self.each, strict=True)}


@dataclass(frozen=True)
class AnyGroups:
    """A column of groups without a list of their names: texts or integers, none missing."""

    read: ColumnRef

    @property
    def each(self) -> tuple["AnyGroups", ...]:
        """The column itself, because groups do not overlap."""
        return (self,)

    @classmethod
    def of(cls, table: TableColumns, column: str) -> "AnyGroups":
        """The column of a table, after checks."""
        table.check_names(column, "groups")
        return cls(ColumnRef(column, "label"))

    @property
    def requirement(self) -> str:
        """The requirement on every record, for messages."""
        return f"column {self.read.column!r} must name the group of the record (not missing)"

    def keys(self, batch: Any) -> NDArray[Any]:
        """The name of each record as a text, shape (n,)."""
        return texts_of(batch, self.read)[0]

    def unusable(self, batch: Any) -> NDArray[np.bool_]:
        """The records without a group, boolean, shape (n,)."""
        return texts_of(batch, self.read)[1]

    def column_error(self, batch: Any, reason: int) -> ColumnError:
        """The records of a batch without a group."""
        unusable = self.unusable(batch)
        return ColumnError(reason, self.requirement, unusable, missing=bool(unusable.any()))


def label_column(table: TableColumns, column: str, names: Names, *, positions: bool = False) -> NamedColumn:
    """The label column of a table, matched with the class names.

    With `positions` it contains integers from 0; otherwise labels that are no class are accepted.
    """
    table.check_names(column, "classes")
    # Integers are names only if some class is named by an integer
    integers = table.holds_integers(column)
    held = describe_type(table.type_of(column))
    require("column", integers or not positions, f"{column!r} must hold positions, by label_positions", got=held)
    if integers and not positions and not any(as_integer(name) is not None for name in names):
        raise InputError(
            "column",
            f"{column!r} holds integers, and the classes are named {_first_names(names)}",
            remedy="Replace the integers by names of classes. If they are positions of these classes, counted from 0, "
            "set label_positions",
        )
    counted = positions or (integers and names == tuple(range(len(names))))
    return NamedColumn(ColumnRef(column, "label"), names, positions=counted, others=not positions)


def group_column(table: TableColumns, column: str, names: Names) -> NamedColumn:
    """The column of each record's group, for groups with these names, which are integers if the column holds those."""
    table.check_names(column, "groups")
    others = sum(as_integer(name) is None for name in names)
    if pa.types.is_integer(table.type_of(column)) and others:
        must = f"must be integers, because column {column!r} holds integers"
        raise InputError("groups", must, got=f"{others} that are not")
    return NamedColumn(ColumnRef(column, "label"), names, "groups")


def group_of_release(table: TableColumns, by: str | Sequence[str], release: Release) -> NamedColumn | GroupedColumns:
    """The column of each record's group or class in a release, or the columns of groups that overlap."""
    if release.overlap is not None:
        return GroupedColumns.of(table, by, release.overlap)
    return group_column(table, one_column(by), tuple(release.parts))


def one_column(by: str | Sequence[str]) -> str:
    """The name of a column; several names raise an error."""
    if not isinstance(by, str):
        raise InputError("by", "must name one column, unless groups overlap", got=f"a list of {len(by)}")
    return by
