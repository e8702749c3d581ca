"""Counts per group and bin of records that are read in batches, by two threads of this process.

DuckDB only reads, because counting its batches here is several times faster than a search for every row's bin in SQL.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.candidates import Candidates
from confide.counting import BinCounter, ScoreHistogram, weight_per_bin
from confide.tables.named_columns import NamedColumn
from confide.tables.record_columns import RecordColumns, rows_per_batch
from confide.tables.row_errors import RowErrors
from confide.tables.table import Progress, Table

# With more groups, cells (see `BinCounter`) would need more memory than the few records of each are worth.
_FEW_GROUPS = 16

# Scores of a group are counted so many at a time.
_GATHERED = 2**14


@dataclass(frozen=True)
class Job:
    """A counting task: the scores of records over public edges, by group; of weighted records, also sums of weights."""

    columns: RecordColumns
    candidates: Candidates

    @property
    def edges(self) -> NDArray[np.float64]:
        """The finite candidates, increasing, shape (m-1,)."""
        return self.candidates.edges

    @property
    def group(self) -> NamedColumn | None:
        """The column of each record's group, or None."""
        assert self.columns.group is None or isinstance(self.columns.group, NamedColumn)
        return self.columns.group

    @property
    def groups(self) -> int:
        """The number of groups; 1 without a group column."""
        return 1 if self.group is None else len(self.group.names) + self.group.others  # others have no threshold

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the counts: (groups, m); for weighted records (2, m), sums of weights and numbers of records."""
        rows = self.groups if self.columns.weight is None else 2
        return rows, len(self.edges) + 1


@dataclass(frozen=True)
class CountRow:
    """A row of an engine's answer: the number of records in a bin, or of records that cannot be used. **Private**."""

    n: int
    bin: int = 0  # without a meaning, and also `group`, if there is a reason
    group: int = 0
    reason: int = 0
    weight: int = 0  # the sum of weights, for weighted records
    part: int = 0  # the position of the job, if one query counts for several


@dataclass
class Counts:
    """What was counted for a job, row by row. **Private**."""

    job: Job
    array: NDArray[np.int64]  # per group and bin, with the shape of the job
    errors: RowErrors  # rows that cannot be used

    @classmethod
    def none(cls, job: Job) -> "Counts":
        """The counts before a row is read."""
        return cls(job, np.zeros(job.shape, dtype=np.int64), RowErrors())

    @property
    def records(self) -> int:
        """The number of records that were counted."""
        return int(self.array[-self.job.groups :].sum())

    def add(self, row: CountRow) -> None:
        """Add a row of an engine's answer."""
        if row.reason:
            self.errors.add(row.reason, row.n)
        elif self.job.columns.weight is not None:
            self.array[:, row.bin] += int(row.weight), row.n
        else:
            self.array[row.group, row.bin] += row.n

    def __add__(self, other: "Counts") -> "Counts":
        errors = RowErrors()
        for counts in (self, other):
            errors.merge(counts.errors)
        return Counts(self.job, self.array + other.array, errors)

    def histograms(self) -> dict[Any, ScoreHistogram]:
        """The histograms by the name of a group; without groups the name is None."""
        job = self.job
        if job.columns.weight is not None:
            weights, numbers = self.array
            return {None: ScoreHistogram(job.candidates, weights, int(numbers.sum()))}
        names = (None,) if job.group is None else job.group.names
        return {name: ScoreHistogram(job.candidates, self.array[place]) for place, name in enumerate(names)}


class Counters:
    """The counters of one thread, one per group."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._errors = RowErrors()
        kind = job.columns.reader.kind
        expected = None if job.groups <= _FEW_GROUPS else 0  # None: unknown, perhaps many
        self._groups = [
            BinCounter(job.edges, kind.low, kind.high, expected, infinity=kind.takes_infinity)
            for _ in range(job.groups)
        ]
        self._gathered: list[list[NDArray[Any]]] = [[] for _ in range(job.groups)]
        self._weights = np.zeros(job.shape[1], dtype=np.int64)

    def add(self, batch: Any, start: int | None) -> None:
        """Count a `pyarrow.RecordBatch`, which begins at row `start` if rows have an order."""
        columns = self._job.columns
        group = self._job.group
        # Score, and find each record's group and weight
        scores, reasons = columns.reader.scores(batch)
        unusable = []
        if group is not None:
            places = group.places(batch)
            unusable.append((places < 0) & group.unusable(batch))
        if columns.weight is not None:
            weights, unweighed = columns.weight.whole(batch)
            unusable.append(unweighed)
        reasons = columns.with_column_reasons(batch, reasons, unusable)
        # Count, unless a record is wrong: then there is no release
        if reasons.any():
            self._errors.note(reasons, start, columns.column_errors(batch))
        elif group is not None:
            self._count_by_group(scores, np.where(places < 0, len(group.names), places))
        else:
            self._groups[0].add(scores)
            if columns.weight is not None:
                self._weights += weight_per_bin(scores, weights, self._job.edges)

    def counts(self) -> Counts:
        """What this thread has counted."""
        for place in range(len(self._groups)):
            self._count_gathered(place)
        weights = [] if self._job.columns.weight is None else [self._weights]
        array = np.stack([*weights, *(counter.counts() for counter in self._groups)])
        return Counts(self._job, array, self._errors)

    def _count_by_group(self, scores: NDArray[Any], places: NDArray[Any]) -> None:
        if len(self._groups) < 2**15:
            places = places.astype(np.int16)  # numpy sorts these by their digits, several times faster
        order = np.argsort(places, kind="stable")
        ends = np.cumsum(np.bincount(places, minlength=len(self._groups)))
        for place, scores_of_group in enumerate(np.split(scores[order], ends[:-1])):
            if len(scores_of_group):
                self._gathered[place].append(scores_of_group)
                if sum(map(len, self._gathered[place])) >= _GATHERED:
                    self._count_gathered(place)

    def _count_gathered(self, place: int) -> None:
        if self._gathered[place]:
            self._groups[place].add(np.concatenate(self._gathered[place]))
            self._gathered[place] = []


def count_rows(table: Table, jobs: Sequence[Job], progress: Progress) -> list[Counts]:
    """Count for each job, in one pass over a table."""
    reads = tuple(dict.fromkeys(read for job in jobs for read in job.columns.reads))
    with closing(table.batches(reads, rows_per_batch(reads))) as batches:
        return count_stream(batches, jobs, progress, ordered=table.ordered, threads=2 if table.any_thread else 1)


def count_stream(
    batches: Iterator[Any], jobs: Sequence[Job], progress: Progress, *, ordered: bool = True, threads: int = 2
) -> list[Counts]:
    """Count a stream of record batches, by threads that take turns to read; the first is the thread of the caller."""
    # What each thread counts; all read the stream in turns, and a failure of one ends the others
    workers = [[Counters(job) for job in jobs] for _ in range(threads)]
    reading = threading.Lock()
    failures: list[BaseException] = []
    rows_read = 0

    def work(counters: list[Counters]) -> None:
        nonlocal rows_read
        try:
            while not failures:
                with reading:
                    batch = next(batches, None)
                    if batch is None:
                        return
                    start = rows_read
                    rows_read += batch.num_rows
                    progress(batch.num_rows)
                if batch.num_rows:
                    for counter in counters:
                        counter.add(batch, start if ordered else None)
        except BaseException as error:
            failures.append(error)

    # Count, and add the counts of all threads, job by job
    others = [threading.Thread(target=work, args=(counters,), daemon=True) for counters in workers[1:]]
    for thread in others:
        thread.start()
    work(workers[0])
    for thread in others:
        thread.join()
    if failures:
        raise failures[0]
    of_threads = [[counter.counts() for counter in counters] for counters in workers]
    return [reduce(add, of_job) for of_job in zip(*of_threads, strict=True)]
