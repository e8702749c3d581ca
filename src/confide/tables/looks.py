"""What a look at a batch counts: covered and missed records, or the sizes of sets, which need no truth. Not private."""

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.releases import Release
from confide.tables.evaluate import tally_table
from confide.tables.findings import Findings
from confide.tables.open_table import opened
from confide.tables.predictors import SetPredictor, predictors_of
from confide.tables.progress import Progress, silent
from confide.tables.stream_counts import rows_per_batch
from confide.tables.what import What


def covered_counts(
    source: Any,
    what: What,
    release: Release,
    *,
    by: str | None = None,
    skip_incomplete: bool = False,
    progress: Progress = silent,
) -> NDArray[np.int64]:
    """Covered and missed records of a batch with known truth, which may be empty; not private.

    Parameters
    ----------
    source, what, by, skip_incomplete, progress
        As in `evaluate_table`; `by` only for thresholds per group or class.
    release
        Of one level.

    Returns
    -------
    int64, shape (parts, 2): of each group or class of the release in its order, or of all records.

    Examples
    --------
    >>> import confide, pyarrow
    >>> from confide.tables import Scored
    >>> released = confide.calibrate(np.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="lac")
    >>> covered_counts(pyarrow.table({"s": [0.1, 0.5, 0.99]}), Scored("s", "lac"), released)
    array([[2, 1]])
    """
    if release.by == "level":
        raise InputError("the release must be of one level; choose one with alpha")
    tally = tally_table(source, what, release, by=by, skip_incomplete=skip_incomplete, progress=progress)
    counts: NDArray[np.int64] = tally.levels[0].covered_and_missed()
    return counts


def size_counts(
    source: Any,
    what: What,
    release: Release,
    bins: Sequence[int],
    *,
    by: str | None = None,
    skip_incomplete: bool = False,
    progress: Progress = silent,
) -> NDArray[np.int64]:
    """Records of a batch, which may be empty, by the size of their sets; no truth is needed. Not private.

    Parameters
    ----------
    source, what, by, skip_incomplete, progress
        As in `predict_table`.
    release
        Of one level, that makes sets.
    bins
        The smallest size of each bin, increasing from 0.

    Returns
    -------
    int64, shape (bins,).

    Examples
    --------
    >>> import confide, pyarrow
    >>> from confide.tables import Classified
    >>> released = confide.calibrate([0.3] * 500, 0.1, 1.0, score="lac", candidates=confide.Candidates.unit(3))
    >>> size_counts(pyarrow.table({"p_a": [0.9, 0.5], "p_b": [0.1, 0.5]}), Classified("p_*"), released, [0, 1, 2])
    array([0, 1, 1])
    """
    with opened(source) as table:
        predictors = predictors_of(table, what, release, by)
        if len(predictors) != 1 or not isinstance(predictors[0], SetPredictor):
            raise InputError("the release must make one set per record, of one level: the sizes of sets are counted")
        (predictor,) = predictors
        table = table.complete(predictor.reads) if skip_incomplete else table
        findings, start, counts = Findings(), 0, np.zeros(len(bins), np.int64)
        with closing(table.batches(predictor.reads, rows_per_batch(predictor.width))) as batches:
            for batch in batches:
                if not batch.num_rows:
                    continue
                (_, sizes), wrong = predictor.columns(batch)
                if wrong is not None:
                    findings.note(wrong, start if table.ordered else None, predictor.faults(batch))
                start += batch.num_rows
                progress(batch.num_rows)
                if not findings:
                    place = np.searchsorted(bins, sizes.to_numpy(zero_copy_only=False), side="right") - 1
                    counts += np.bincount(place, minlength=len(bins))
        findings.refuse(predictor.requirements, table.rows, skips=not skip_incomplete)
        return counts
