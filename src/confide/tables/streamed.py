"""Counting in this process, for an engine that lives in it: Arrow batches, two threads, nothing kept.

DuckDB reads, filters and computes the scores with its own threads; the batches it hands over without copying are
counted here, which is several times faster than a search for every row's bin in SQL.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.counting.bin_counter import BinCounter
from confide.scores.kinds import ScoreKind
from confide.tables.engine_findings import Finding

_ROWS = 2**15
_FEW_GROUPS = 16
_GATHERED = 2**14


class Counters:
    """The counters of one thread, one per group; told batches of `score`, `finding` and `group` columns."""

    def __init__(self, edges: NDArray[np.float64], kind: ScoreKind, groups: int) -> None:
        self.found = dict.fromkeys(Finding, 0)
        expected = None if groups <= _FEW_GROUPS else 0
        self._groups = [BinCounter(edges, kind.low, kind.high, expected) for _ in range(groups)]
        self._gathered: list[list[NDArray[np.float64]]] = [[] for _ in range(groups)]

    def add(self, batch: Any) -> None:
        """Count a `pyarrow.RecordBatch` with `score`, and perhaps `finding` (0: none) and `group` (a position)."""
        score = batch.column("score")
        valid = None
        if "finding" in batch.schema.names:
            finding = batch.column("finding").to_numpy(zero_copy_only=False)
            if finding.any():
                valid = finding == 0
                for value, count in zip(*np.unique(finding[~valid], return_counts=True), strict=True):
                    self.found[Finding(int(value))] += int(count)
        scores = score.to_numpy(zero_copy_only=False)  # missing ones become NaN
        group = batch.column("group").to_numpy(zero_copy_only=False) if "group" in batch.schema.names else None
        if valid is not None:
            scores, group = scores[valid], None if group is None else group[valid]
        if group is None:
            self._groups[0].add(scores)
        else:
            self._divide(scores, group)

    def counts(self) -> NDArray[np.int64]:
        """Counts per group and bin, shape (groups, m)."""
        for place in range(len(self._groups)):
            self._pour(place)
        for counter in self._groups:
            self.found[Finding.MISSING] += counter.missing
            self.found[Finding.OUTSIDE] += counter.outside
            counter.missing = counter.outside = 0
        return np.stack([counter.counts() for counter in self._groups])

    def _divide(self, scores: NDArray[np.float64], group: NDArray[Any]) -> None:
        places = group.astype(np.int16)
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


def count_table(
    rows: Any, edges: NDArray[np.float64], kind: ScoreKind, groups: int, progress: Callable[[int], None]
) -> tuple[NDArray[np.int64], dict[Finding, int]]:
    """Counts per group and bin, shape (groups, m), and the rows to refuse, of an Ibis table on DuckDB."""
    with closing(duckdb_batches(rows, _ROWS)) as batches:
        return count_stream(batches, edges, kind, groups, progress)


def duckdb_batches(table: Any, rows: int) -> Any:
    """A `pyarrow.RecordBatchReader` over an Ibis table on DuckDB.

    Ibis 12 asks DuckDB for batches by a method that DuckDB 2 no longer has; this asks by the one it has.
    """
    backend = table.get_backend()
    backend._run_pre_execute_hooks(table)
    return backend.con.sql(backend.compile(table)).to_arrow_reader(rows)


def count_stream(
    batches: Iterator[Any], edges: NDArray[np.float64], kind: ScoreKind, groups: int, progress: Callable[[int], None]
) -> tuple[NDArray[np.int64], dict[Finding, int]]:
    """Counts per group and bin of a stream of record batches, by two threads that take turns reading."""
    workers = [Counters(edges, kind, groups) for _ in range(2)]
    reading = threading.Lock()
    failures: list[BaseException] = []

    def work(counters: Counters) -> None:
        try:
            while not failures:
                with reading:
                    batch = next(batches, None)
                    if batch is None:
                        return
                    progress(batch.num_rows)
                counters.add(batch)
        except BaseException as error:
            failures.append(error)

    other = threading.Thread(target=work, args=(workers[1],), daemon=True)
    other.start()
    work(workers[0])
    other.join()
    if failures:
        raise failures[0]
    counts = sum((worker.counts() for worker in workers), np.zeros((groups, len(edges) + 1), dtype=np.int64))
    found = {finding: sum(worker.found[finding] for worker in workers) for finding in Finding}
    return counts, found
