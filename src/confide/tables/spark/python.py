"""Scores that SQL cannot compute (APS and its kin), on the executors: Arrow batches in, a few counts out.

The executors' Python needs confide, numpy and pyarrow. What a partition returns is one small batch of counts.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.scores.kinds import ScoreKind
from confide.tables.batch_scores import scored_batch
from confide.tables.progress import Progress
from confide.tables.spark.counts import Counts, gathered
from confide.tables.spark.frames import Frame, frame_of
from confide.tables.streamed import Counters
from confide.tables.what import Classified, Regressed, Scored

_SCHEMA = "finding int, place int, bin int, n long"


def count_in_batches(
    rows: Any,
    source: Scored | Classified | Regressed,
    edges: NDArray[np.float64],
    kind: ScoreKind,
    groups: int,
    progress: Progress,
) -> Counts:
    """Count scores that are computed in Python on the executors, in one pass of `mapInArrow`.

    Parameters
    ----------
    rows
        An Ibis table on Spark with the columns of the source, and perhaps `FINDING` and `GROUP` (see `batch_scores`).
    source
        What the scores are computed from.
    edges, kind, groups, progress
        As in `count_table`.
    """

    def frame() -> Frame:
        counts = frame_of(rows).mapInArrow(_counter(source, np.asarray(edges), kind, groups), _SCHEMA)
        return counts.groupBy("finding", "place", "bin").sum("n")

    return gathered(frame, len(edges) + 1, groups, progress)


def _counter(
    source: Scored | Classified | Regressed, edges: NDArray[np.float64], kind: ScoreKind, groups: int
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """What every task does with its partition."""
    name = kind.name  # a kind holds functions, which do not travel

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        from confide.scores.kinds import score_kind

        counters = Counters(edges, score_kind(name), groups)
        for batch in batches:
            if batch.num_rows:
                counters.add(scored_batch(batch, source))
        counts = counters.counts()
        rows = [(0, int(i), int(j), int(counts[i, j])) for i, j in zip(*np.nonzero(counts), strict=True)]
        rows += [(int(finding), 0, 0, n) for finding, n in counters.found.items() if n]
        names = [column.split()[0] for column in _SCHEMA.split(", ")]
        kinds = [pa.int32(), pa.int32(), pa.int32(), pa.int64()]
        columns = zip(*rows, strict=True) if rows else [()] * len(names)
        yield pa.record_batch([pa.array(c, k) for c, k in zip(columns, kinds, strict=True)], names=names)

    return work
