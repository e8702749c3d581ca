"""Counting in this process: Arrow batches, two threads that take turns reading, nothing kept.

DuckDB reads; the batches it hands over without copying are scored and counted here, which is several times faster than
a search for every row's bin in SQL.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.counting import BinCounter, weight_per_bin
from confide.tables.batch_columns import number_column
from confide.tables.findings import Findings
from confide.tables.named_column import NamedColumn
from confide.tables.people import FLAG
from confide.tables.progress import Progress
from confide.tables.readings import Reading, noted
from confide.tables.table import Read, Table
from confide.tables.weight_column import WeightColumn

_CELLS = 2**18
_LEAST, _MOST = 2**11, 2**16
_FEW_GROUPS = 16
_GATHERED = 2**14


def rows_per_batch(width: int) -> int:
    """Rows of a batch, so that it has a quarter of a million numbers, or 2048 rows."""
    return min(_MOST, max(_LEAST, _CELLS // max(width, 1)))


@dataclass(frozen=True)
class Job:
    """What is counted: the scores of a reading over public edges, perhaps by group.

    Parameters
    ----------
    reading
        What is read of each record.
    group
        The column of each record's group, or None.
    edges
        The finite candidates, increasing, float64, shape (m-1,).
    limited
        Whether persons are flagged.
    weight
        The column of each record's weight, of which sums are made instead of counts, or None.
    """

    reading: Reading
    group: NamedColumn | None
    edges: NDArray[np.float64]
    limited: bool = False
    weight: WeightColumn | None = None

    @property
    def reads(self) -> tuple[Read, ...]:
        """The columns, each once."""
        own = [*self.reading.reads, *(one.read for one in (self.group, self.weight) if one is not None)]
        return tuple(dict.fromkeys([*own, *([Read(FLAG)] if self.limited else [])]))

    @property
    def groups(self) -> int:
        """How many groups there are; 1 without."""
        return 1 if self.group is None else len(self.group.names)


class Counters:
    """The counters of one thread, one per group."""

    def __init__(self, job: Job) -> None:
        self._job, self.found = job, Findings()
        kind, expected = job.reading.kind, None if job.groups <= _FEW_GROUPS else 0
        self._groups = [BinCounter(job.edges, kind.low, kind.high, expected) for _ in range(job.groups)]
        self._gathered: list[list[NDArray[Any]]] = [[] for _ in range(job.groups)]
        self._weights = np.zeros(len(job.edges) + 1, dtype=np.int64)

    def add(self, batch: Any, start: int | None) -> None:
        """Count a `pyarrow.RecordBatch` that begins at row `start`, if rows have an order."""
        job = self._job
        scores, findings = job.reading.scores(batch)
        group = None if job.group is None else job.group.places(batch)
        after = len(job.reading.requirements)
        if group is not None or job.weight is not None or findings is not None:  # else the counter looks at the range
            findings = noted(findings, ~job.reading.in_range(scores), 1)
        if group is not None:
            findings, after = noted(findings, group < 0, after + 1), after + 1
        if job.weight is not None:
            weights, wrong = job.weight.whole(batch)
            findings, after = noted(findings, wrong, after + 1), after + 1
        if job.limited:
            flag = number_column(batch, FLAG)
            for one in (1, 2):
                findings = noted(findings, flag == one, after + one)
        if findings is not None:
            faults = job.reading.faults(batch)
            if job.group is not None:
                faults.append(job.group.fault(batch, len(job.reading.requirements) + 1))
            if job.weight is not None:
                faults.append(job.weight.fault(batch, len(job.reading.requirements) + (job.group is not None) + 1))
            self.found.note(findings, start, faults)
            return
        if job.weight is not None:
            self._weights += weight_per_bin(scores, weights, job.edges)
        elif group is None:
            self._count_all(scores, start)
        else:
            self._divide(scores, group)

    def counts(self) -> NDArray[np.int64]:
        """Counts per group and bin, shape (groups, m); or the sums of weights per bin, shape (1, m)."""
        if self._job.weight is not None:
            return self._weights[None]
        for place in range(len(self._groups)):
            self._pour(place)
        return np.stack([counter.counts() for counter in self._groups])

    def _count_all(self, scores: NDArray[Any], start: int | None) -> None:
        counter = self._groups[0]
        counter.first = None
        counter.add(scores, start)
        if counter.first is not None:
            self.found.add(1, counter.missing + counter.outside, None if start is None else counter.first)
            self.found.missing |= counter.missing > 0
            counter.missing = counter.outside = 0

    def _divide(self, scores: NDArray[Any], group: NDArray[Any]) -> None:
        places = group.astype(np.int16) if len(self._groups) < 2**15 else group
        order = np.argsort(places, kind="stable")
        ends = np.cumsum(np.bincount(places, minlength=len(self._groups)))
        for place, piece in enumerate(np.split(scores[order], ends[:-1])):
            if len(piece):
                waiting = self._gathered[place]
                waiting.append(piece)
                if sum(map(len, waiting)) >= _GATHERED:
                    self._pour(place)

    def _pour(self, place: int) -> None:
        if self._gathered[place]:
            self._groups[place].add(np.concatenate(self._gathered[place]))
            self._gathered[place] = []


def count_rows(table: Table, jobs: Sequence[Job], progress: Progress) -> list[tuple[NDArray[np.int64], Findings]]:
    """Counts per group and bin for each job, shape (groups, m), and the rows to refuse, in one pass over a table."""
    reads = tuple(dict.fromkeys(read for job in jobs for read in job.reads))
    width = sum(job.reading.width for job in jobs)
    with closing(table.batches(reads, rows_per_batch(width))) as batches:
        return count_stream(batches, jobs, progress, ordered=table.ordered, threads=2 if table.any_thread else 1)


def count_stream(
    batches: Iterator[Any], jobs: Sequence[Job], progress: Progress, *, ordered: bool = True, threads: int = 2
) -> list[tuple[NDArray[np.int64], Findings]]:
    """The same of a stream of record batches, by threads that take turns reading; the first of them is the caller's."""
    workers = [[Counters(job) for job in jobs] for _ in range(threads)]
    reading, failures, seen = threading.Lock(), list[BaseException](), 0

    def work(counters: list[Counters]) -> None:
        nonlocal seen
        try:
            while not failures:
                with reading:
                    batch, start = next(batches, None), seen
                    if batch is None:
                        return
                    seen += batch.num_rows
                    progress(batch.num_rows)
                if batch.num_rows:
                    for counter in counters:
                        counter.add(batch, start if ordered else None)
        except BaseException as error:
            failures.append(error)

    others = [threading.Thread(target=work, args=(worker,), daemon=True) for worker in workers[1:]]
    for other in others:
        other.start()
    work(workers[0])
    for other in others:
        other.join()
    if failures:
        raise failures[0]
    return [_merged(counters) for counters in zip(*workers, strict=True)]


def _merged(counters: Sequence[Counters]) -> tuple[NDArray[np.int64], Findings]:
    found = Findings()
    for one in counters:
        found.merge(one.found)
    return np.sum([one.counts() for one in counters], axis=0), found
