"""Records of a table with known truth, handed on batch by batch to whoever counts them."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.tables.batch_columns import number_column
from confide.tables.findings import Findings
from confide.tables.named_column import AnyGroups, NamedColumn
from confide.tables.people import FLAG, People
from confide.tables.progress import Progress
from confide.tables.readings import Reading, ScoreReading, noted
from confide.tables.stream_counts import rows_per_batch
from confide.tables.table import Read, Table
from confide.tables.what import Classified, Regressed, What


@dataclass(frozen=True)
class Labelled:
    """What is read of the records of a table.

    Parameters
    ----------
    table, what, reading
        The table, the columns, and how they are read.
    group
        The column of each record's group, or None.
    outsiders
        Whether records of groups that are not in the column's public list pass.
    people
        Bounds the records that count of each person, or None.
    skip_incomplete
        Whether records with missing values are left out, before a person's are bounded.
    """

    table: Table
    what: What
    reading: Reading
    group: NamedColumn | AnyGroups | None = None
    outsiders: bool = False
    people: People | None = None
    skip_incomplete: bool = False

    def run(self, add: Callable[[list[Any], Any], None], progress: Progress) -> int:
        """Hand all records on, as arrays and the batch they came in; returns how many rows there were.

        Raises
        ------
        InputError
            If rows cannot be used: how many, and why.
        """
        reads, wanted = self._reads(), self._requirements()
        findings, start, after = Findings(), 0, len(self.reading.requirements)
        table = self.table.complete(self._complete(reads)) if self.skip_incomplete else self.table
        if self.people is not None:
            table, reads = table.limited(self.people), (*reads, Read(FLAG))
        checked = None if self.outsiders else self.group
        with closing(table.batches(reads, rows_per_batch(self.reading.width))) as batches:
            for batch in batches:
                if not batch.num_rows:
                    continue
                arrays, wrong = self.reading.arrays(batch)
                if checked is not None:
                    wrong = noted(wrong, _without(checked, batch), after + 1)
                if isinstance(self.reading, ScoreReading):
                    wrong = noted(wrong, ~self.reading.in_range(arrays[0]), 1)
                if self.people is not None:
                    for one in (1, 2):
                        broken = number_column(batch, FLAG) == one
                        wrong = noted(wrong, broken, len(wanted) - len(self.people.requirements) + one)
                if wrong is not None:
                    faults = self.reading.faults(batch)
                    if checked is not None:
                        faults.append(checked.fault(batch, after + 1))
                    findings.note(wrong, start if table.ordered else None, faults)
                start += batch.num_rows
                progress(batch.num_rows)
                if not findings:
                    whole = isinstance(self.what, Classified | Regressed)
                    add(arrays if whole else [self.reading.score_of(arrays)], batch)
        findings.refuse(wanted, table.rows, skips=not self.skip_incomplete)
        return start

    def _reads(self) -> tuple[Read, ...]:
        return tuple(dict.fromkeys([*self.reading.reads, *([] if self.group is None else [self.group.read])]))

    def _complete(self, reads: tuple[Read, ...]) -> tuple[Read, ...]:
        """Every column that a record must have a value in, to be complete."""
        if self.people is None:
            return reads
        return (*reads, *(Read(column, "value") for column in (self.people.person, *self.people.order)))

    def _requirements(self) -> list[str]:
        group = [] if self.group is None or self.outsiders else [self.group.requirement]
        return [*self.reading.requirements, *group, *(() if self.people is None else self.people.requirements)]


def _without(group: NamedColumn | AnyGroups, batch: Any) -> NDArray[np.bool_]:
    """Which records name no group."""
    return group.keys(batch)[1]
