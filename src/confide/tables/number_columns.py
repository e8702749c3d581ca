"""Columns of numbers: of all classes, labels or candidates, as a matrix of each batch; and weights."""

import re
from collections.abc import Sized
from contextlib import closing
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.arrays import SUM_REMEDY, SUM_TO_ONE, far_from_one, look_like_probabilities, softmax
from confide.core import RecordWeights
from confide.errors import InputError
from confide.support import require
from confide.tables.arrow import ColumnRef, describe_type, is_number, list_element, matrix_column, number_column
from confide.tables.deferred import pa
from confide.tables.expressions import exact, number
from confide.tables.named_columns import Names
from confide.tables.row_errors import ColumnError, RowErrors
from confide.tables.table import Table, TableColumns

# Rows of each batch whose sum is checked, so that the check costs next to nothing.
LOOKED_AT = 100

# The share of unusable rows from which a column among correct ones may be no class at all, and the advice for it.
_MOSTLY = 0.9
_NO_CLASS = "; if it is no class, leave it out by a narrower pattern"

_PAIR = "of two classes one column, by its own name, is enough with classes=NO,YES if it is the probability of YES"

# Why each record cannot be used: the position of the broken requirement, from 1 on, or 0; shape (n,).
Reasons: TypeAlias = NDArray[np.integer]


class Reason(IntEnum):
    """The reasons that all readers of numbers share; the other requirements of a reader follow these."""

    NUMBER = 1  # the score, or a number that it is computed from
    LENGTH = 2  # of a list


@dataclass(frozen=True)
class NumberColumns:
    """Numbers for K = `width` classes, labels or candidates, from K columns or from one list column.

    For two classes one column is enough, of the second class; the first class has one minus this number, in double
    precision. Logits are converted by softmax; the one column for two classes is the logit of the second class minus
    that of the first. Of `exclusive` classes exactly one is true; otherwise each of K labels can be true.
    """

    columns: tuple[str, ...]
    width: int
    from_list: bool
    logits: bool = False
    exclusive: bool = True

    @property
    def reads(self) -> tuple[ColumnRef, ...]:
        """The columns as they are read."""
        if self.from_list:
            return (ColumnRef(self.columns[0], "numbers", numbers=self.width),)
        return tuple(map(ColumnRef, self.columns))

    @property
    def of_pair(self) -> bool:
        """Whether one column stands for both of two classes."""
        return not self.from_list and len(self.columns) == 1 and self.width == 2

    def in_order(self, order: list[int]) -> "NumberColumns":
        """The same numbers with the columns in another order; lists and the one column of two classes are unchanged."""
        if len(self.columns) != self.width:
            return self
        return replace(self, columns=tuple(self.columns[place] for place in order))

    @property
    def title(self) -> str:
        """The name of the columns in messages."""
        first = repr(self.columns[0])
        return f"column {first}" if len(self.columns) == 1 else f"columns {first} and following"

    @property
    def probability_requirements(self) -> tuple[str, str]:
        """The requirements on probabilities, and on the length of lists, in the order of `Reason`."""
        numbers = "logits" if self.logits else "probabilities"
        return (
            self._number_requirement(self.title),
            f"{self.title} must hold a list of {self.width} {numbers}, one per class",
        )

    def _number_requirement(self, title: str, advice: str = "") -> str:
        if self.logits:
            return f"{title} must hold finite logits, none missing,"
        remedy = "give logits=True for logits" if self.exclusive else "write the sigmoid of logits"
        remedy = f"{remedy}, divide percentages by 100{advice}"
        return f"{title} must hold probabilities between 0 and 1, none missing ({remedy})"

    def column_errors(self, batch: Any) -> list[ColumnError]:
        """Numbers that are not probabilities, column by column, with the requirement about each."""
        columns = {} if self.from_list else {name: number_column(batch, name) for name in self.columns}
        unusable = {name: self._unusable(column) for name, column in columns.items()}
        some_are_right = not all(wrong.any() for wrong in unusable.values())

        # A column that is nearly all wrong among correct ones may be no class
        errors = []
        for name, wrong in unusable.items():
            if wrong.any():
                advice = _NO_CLASS if some_are_right and np.count_nonzero(wrong) >= _MOSTLY * len(wrong) else ""
                requirement = self._number_requirement(f"column {name!r}", advice)
                errors.append(number_error(Reason.NUMBER, requirement, columns[name], wrong))
        return errors

    @property
    def sum_requirement(self) -> str:
        """The requirement on the sum of rows, if the numbers are probabilities of classes that exclude each other."""
        if self.logits:
            return (
                f"{self.title} must hold logits and not probabilities, as far as the first rows show (leave out "
                "logits=True for those),"
            )
        return f"{self.title} must hold probabilities that {SUM_TO_ONE}, as far as the first rows show ({SUM_REMEDY}),"

    def matrix(self, batch: Any, most: float = 1.0) -> tuple[NDArray[Any], Reasons]:
        """The numbers, shape (n, K), and the reasons of those outside [0, most] and of lists of another length."""
        reasons = no_reasons(batch)
        if self.from_list:
            p, is_whole = matrix_column(batch, self.columns[0], self.width)
            reasons = mark(reasons, ~is_whole, Reason.LENGTH)
        else:
            columns = [number_column(batch, column) for column in self.columns]
            if self.of_pair and not self.logits:
                second = columns[0].astype(np.float64)
                columns = [1 - second, second]
            p = np.column_stack(columns)
        if self.logits:
            return self._softmax(p, reasons)
        # Check all of them at once; row by row only if that fails
        if not p.size or (p.min() >= 0 and p.max() <= most):  # NaN fails both
            return p, reasons
        outside = np.any(~((p >= 0) & (p <= most)), axis=1)
        return p, mark(reasons, outside, Reason.NUMBER)

    def _unusable(self, column: NDArray[Any]) -> NDArray[np.bool_]:
        return ~np.isfinite(column) if self.logits else ~((column >= 0) & (column <= 1))

    def _softmax(self, z: NDArray[Any], reasons: Reasons) -> tuple[NDArray[np.float64], Reasons]:
        not_finite = np.any(~np.isfinite(z), axis=1)
        # Rows that are probabilities already become 0: the check of sums reports them
        finite = np.where(not_finite[:, None], 0, z) if not_finite.any() else z
        p = softmax(np.column_stack([np.zeros(len(z)), finite]) if self.of_pair else finite)
        p[look_like_probabilities(z)] = 0
        return p, mark(reasons, not_finite, Reason.NUMBER)

    def expressions(self, table: Any) -> list[Any]:
        """The numbers as Ibis expressions, in double precision; not for lists."""
        columns = [exact(table[column]) for column in self.columns]
        return [number(1.0) - columns[0], *columns] if self.of_pair else columns


def number_columns(
    table: TableColumns,
    spec: str | tuple[str, ...],
    title: str,
    *,
    leave_out: str | None = None,
    booleans: bool = False,
    length: int | None = None,
) -> tuple[NumberColumns, Names]:
    """Several columns of numbers, or one column of lists of numbers, and the name of each number.

    `length` is the length of lists if it is known without reading a row.
    """
    if isinstance(spec, tuple):
        for name in spec:
            if not (booleans and pa.types.is_boolean(table.type_of(name))):
                table.check_number(name)
        return NumberColumns(spec, len(spec), from_list=False), tuple(range(len(spec)))
    if is_pattern(table, spec):
        matched = matching(table, spec, leave_out)
        for name in matched:
            if not (booleans and pa.types.is_boolean(table.type_of(name))):
                _check_matched(table, name, spec)
        return NumberColumns(tuple(matched), len(matched), from_list=False), tuple(matched.values())
    _check_lists(table, spec, title, booleans=booleans)
    k = table.list_length(spec, length)
    return NumberColumns((spec,), k, from_list=True), tuple(map(str, range(k)))


def _check_matched(table: TableColumns, name: str, pattern: str) -> None:
    if not table.holds_numbers(name):
        must = f"{name!r} must hold numbers, because the pattern {pattern!r} matches it"
        remedy = f"Rename it, or choose a narrower pattern; {table.existing()}"
        raise InputError("column", must, got=describe_type(table.type_of(name)), remedy=remedy)
    table.check_number(name)


def _check_lists(table: TableColumns, column: str, title: str, *, booleans: bool) -> None:
    kind = table.type_of(column)
    element = list_element(kind)
    if element is not None and (is_number(element) or (booleans and pa.types.is_boolean(element))):
        return
    pair = f" ({_PAIR})" if table.holds_numbers(column) else ""
    raise InputError(
        "column",
        f"{column!r} holds {describe_type(kind)}{'' if element is None else ' of something else than numbers'}",
        remedy=f"{title} come from a column of lists of numbers, or from one column per class by a pattern such as "
        f"'p_*'{pair}; {table.existing()}",
    )


def is_pattern(table: TableColumns, name: str) -> bool:
    """Whether a name stands for several columns. A column of that very name has precedence."""
    return "*" in name and name not in table.columns


def matching(table: TableColumns, pattern: str, leave_out: str | None = None) -> dict[str, Any]:
    """The columns that a pattern with one `*` matches, each with the text in its place; two of them or more."""
    before, _, after = pattern.partition("*")
    if "*" in after:
        raise InputError("probabilities", f"the pattern {pattern!r} must have one '*'", got=str(pattern.count("*")))
    regex = re.compile(f"{re.escape(before)}(.*){re.escape(after)}", re.DOTALL)
    matched = {name: match[1] for name in table.columns if name != leave_out and (match := regex.fullmatch(name))}
    both = f"; {_PAIR}" if matched else ""
    must = f"the pattern {pattern!r} must match one column per class"
    require("probabilities", len(matched) > 1, must, remedy=f"It matches {len(matched)}{both}; {table.existing()}")
    return matched


def refuse_first_rows(table: Table, p: NumberColumns) -> None:
    """Reject a table whose first rows do not sum to one; other checks report rows that are no probabilities."""
    errors = RowErrors()
    with closing(table.head(LOOKED_AT).batches(p.reads, LOOKED_AT)) as batches:
        first = next(batches, None)
        if first is not None and first.num_rows:
            matrix, reasons = p.matrix(first)
            errors.note((other_sums(matrix) & (reasons == 0)).astype(np.int8), 0 if table.ordered else None)
    errors.refuse([p.sum_requirement], table.rows)


def other_sums(p: NDArray[Any]) -> NDArray[np.bool_]:
    """The rows of a batch that do not sum to one, shape (n,), among the first rows."""
    wrong = np.zeros(len(p), dtype=np.bool_)
    far = far_from_one(p, LOOKED_AT)
    wrong[: len(far)] = far
    return wrong


def mark(reasons: Reasons, wrong: NDArray[np.bool_], reason: int) -> Reasons:
    """Reasons with one more reason, for records that are wrong and had none."""
    if not wrong.any():  # as usual
        return reasons
    return np.where(wrong & (reasons == 0), np.int8(reason), reasons)


def no_reasons(records: Sized) -> Reasons:
    """The reasons of records that can all be used."""
    return np.zeros(len(records), np.int8)


def number_error(reason: int, requirement: str, column: NDArray[Any], wrong: NDArray[np.bool_]) -> ColumnError:
    """The error of a column of numbers, in which missing numbers are NaN."""
    return ColumnError(reason, requirement, wrong, bool(np.isnan(column).any()))


@dataclass(frozen=True)
class WeightColumn:
    """A column of weights from 0 to a public bound."""

    read: ColumnRef
    weights: RecordWeights  # the bound, and the resolution in which weights are counted

    @classmethod
    def of(cls, table: TableColumns, column: str | None, weights: RecordWeights) -> "WeightColumn":
        """The column of a table, after checks."""
        assert column is not None  # given together with the bound of the weights
        table.check_number(column)
        return cls(ColumnRef(column), weights)

    @property
    def requirement(self) -> str:
        """The requirement on every record, for messages."""
        return f"column {self.read.column!r} must hold a weight from 0 to {self.weights.bound:g} (not missing, not NaN)"

    def whole(self, batch: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The whole weight of each record, int64, shape (n,), and the records without one (their weight is 0 here)."""
        column = number_column(batch, self.read.column).astype(np.float64)
        wrong = ~((column >= 0) & (column <= self.weights.bound))
        return self.weights.whole(np.where(wrong, 0.0, column)), wrong

    def unusable(self, batch: Any) -> NDArray[np.bool_]:
        """The records without a usable weight, boolean, shape (n,)."""
        return self.whole(batch)[1]

    def column_error(self, batch: Any, reason: int) -> ColumnError:
        """The records of a batch without a usable weight."""
        missing = bool(np.isnan(number_column(batch, self.read.column)).any())
        return ColumnError(reason, self.requirement, self.unusable(batch), missing)

    def expressions(self, table: Any) -> tuple[Any, Any]:
        """The whole weight as an Ibis expression, and the records without one."""
        column = exact(table[self.read.column])
        usable = ((column >= number(0.0)) & (column <= number(self.weights.bound))).fill_null(False)
        weight = usable.ifelse(column, number(0.0))
        return (weight * number(float(self.weights.scale)) + number(0.5)).floor().cast("int64"), ~usable
