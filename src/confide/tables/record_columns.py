"""All columns of a record together, and the batches of a table that are read by them."""

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from confide.evaluation import LabelledRecords
from confide.tables.arrow import ColumnRef, number_column
from confide.tables.named_columns import AnyGroups, GroupedColumns, NamedColumn
from confide.tables.number_columns import Reasons, WeightColumn, mark
from confide.tables.people import PERSON_ERROR_COLUMN, PERSON_ERRORS, ContributionBound
from confide.tables.readers import RecordReader
from confide.tables.row_errors import ColumnError, RowErrors
from confide.tables.table import Progress, Table

# Numbers in a batch, for which its calls take little time and the batch little memory
_NUMBERS = 2**18

# Wide records still come by so many, and narrow ones by no more
_LEAST_ROWS = 2**11
_MOST_ROWS = 2**17


def rows_per_batch(reads: Sequence[ColumnRef]) -> int:
    """Rows of a batch of these columns, so that it has a quarter of a million numbers, or 2048 rows."""
    numbers = sum(read.numbers for read in reads)
    return min(_MOST_ROWS, max(_LEAST_ROWS, _NUMBERS // max(numbers, 1)))


class BatchReader(Protocol):
    """A function of every batch: arrays for scores, or predictions."""

    @property
    def reads(self) -> tuple[ColumnRef, ...]:
        """The columns."""

    @property
    def requirements(self) -> Sequence[str]:
        """The requirements on every record, in words."""

    def read(self, batch: Any) -> tuple[Any, Reasons]:
        """The result for a batch, and the reasons of its unusable records."""

    def column_errors(self, batch: Any) -> list[ColumnError]:
        """The errors column by column, for a batch with errors."""


def checked_batches(
    table: Table, reader: BatchReader, progress: Progress, *, keep: Sequence[ColumnRef] = (), shows_types: bool = False
) -> Generator[tuple[Any, Any]]:
    """Read a table batch by batch, and yield each batch with the result of its reader, and with the columns of `keep`.

    At the end `InputError` reports the records that cannot be used. After the first of them no batch is yielded. With
    `shows_types` a table without rows gives one batch without rows.
    """
    errors = RowErrors()
    start = 0
    empty = None
    reads = tuple(dict.fromkeys([*keep, *reader.reads]))
    with closing(table.batches(reads, rows_per_batch(reads))) as batches:
        for batch in batches:
            if not batch.num_rows:
                empty = batch
                continue
            # Read on after an error, so that all unusable records are counted
            values, reasons = reader.read(batch)
            if reasons.any():
                errors.note(reasons, start if table.ordered else None, reader.column_errors(batch))
            start += batch.num_rows
            progress(batch.num_rows)
            if not errors:
                yield batch, values
    if errors:
        errors.refuse(reader.requirements, table.rows, skips=table.lacks_values(reader.reads))
    if shows_types and not start:
        yield empty, reader.read(empty)[0]


@dataclass(frozen=True)
class RecordColumns:
    """The columns of a record: those of its score, its group, its weight and its person.

    A reason is the number of a requirement: first come those of the reader, then the group's, the weight's and the
    person's two.
    """

    reader: RecordReader
    group: NamedColumn | GroupedColumns | AnyGroups | None = None
    weight: WeightColumn | None = None
    people: ContributionBound | None = None
    other_groups: bool = False  # whether records of groups outside the public list are accepted; then without a weight

    def counting(self, table: Table, *, skip_incomplete: bool) -> Table:
        """The rows that count: complete ones if others are left out, and a bounded number of each person."""
        if skip_incomplete:
            persons = () if self.people is None else (self.people.person, *self.people.order)
            table = table.drop_missing([*self._columns, *(ColumnRef(column, "value") for column in persons)])
        return table if self.people is None else table.bound_contributions(self.people)

    @property
    def reads(self) -> tuple[ColumnRef, ...]:
        """The columns, each once; with people also the column of errors about persons."""
        people = [] if self.people is None else [ColumnRef(PERSON_ERROR_COLUMN)]
        return tuple(dict.fromkeys([*self._columns, *people]))

    @property
    def requirements(self) -> list[str]:
        """The requirements on every record, in words."""
        persons = () if self.people is None else self.people.requirements
        return [*self.reader.requirements, *(column.requirement for column in self.required.values()), *persons]

    @property
    def required(self) -> dict[int, NamedColumn | AnyGroups | WeightColumn]:
        """The columns beside the score that every record must have a value in, by the reason of those without one."""
        columns = () if self.other_groups else self._groups_and_weight
        return dict(enumerate(columns, start=len(self.reader.requirements) + 1))

    def read(self, batch: Any) -> tuple[LabelledRecords, Reasons]:
        """The input of a score, and the reasons of unusable records."""
        records, reasons = self.reader.read(batch)
        unusable = [column.unusable(batch) for column in self.required.values()]
        return records, self.with_column_reasons(batch, reasons, unusable)

    def with_column_reasons(self, batch: Any, reasons: Reasons, unusable: Iterable[NDArray[np.bool_]]) -> Reasons:
        """The reasons, with those of the required columns, whose `unusable` records are given, and of people."""
        in_order = list(unusable)
        if self.people is not None:
            in_order += [number_column(batch, PERSON_ERROR_COLUMN) == flag for flag in PERSON_ERRORS]
        for reason, wrong in enumerate(in_order, start=len(self.reader.requirements) + 1):
            reasons = mark(reasons, wrong, reason)
        return reasons

    def column_errors(self, batch: Any) -> list[ColumnError]:
        """The errors column by column, for a batch with errors."""
        others = [column.column_error(batch, reason) for reason, column in self.required.items()]
        return [*self.reader.column_errors(batch), *others]

    @property
    def _columns(self) -> list[ColumnRef]:
        return [*self.reader.reads, *(column.read for column in self._groups_and_weight)]

    @property
    def _groups_and_weight(self) -> tuple[NamedColumn | AnyGroups | WeightColumn, ...]:
        groups = () if self.group is None else self.group.each
        return groups if self.weight is None else (*groups, self.weight)
