"""Counts of scores that are computed batch by batch: on one machine, or on many that send back counts and no more.

    one process      score_batches(batches, scores) -> ScoreHistogram
    many processes   count_batches(batches, scores) -> small Arrow table   on every executor
                     merge_counts(tables)           -> ScoreHistogram      where they meet

A batch is whatever the engine hands over: an Arrow record batch (Spark's `mapInArrow`), an Arrow table or a mapping of
arrays (Ray Data's `map_batches`), what a torch DataLoader yields. Memory holds one batch and m counts.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.arrays.checked import as_numeric
from confide.candidates import Candidates
from confide.counting.bin_counter import BinCounter
from confide.counting.histogram import ScoreHistogram
from confide.errors import InputError, InputTypeError
from confide.scores.kinds import score_kind
from confide.tables.batch_columns import as_host_array, column_of, has_columns
from confide.tables.batch_scores import source_scores
from confide.tables.engine_findings import Finding, refuse
from confide.tables.what import Classified, Regressed, Scored

Scores: TypeAlias = "Scored | Classified | Regressed | str | Callable[[Any], Any] | None"
"""The scores of a batch: what they are computed from, the column that holds them, a function, or the batch itself."""

COUNT_COLUMNS = {"bin": "int32", "count": "int64"}
"""What travels: the position of a candidate (or minus a `Finding`), and how many records fall to it."""

COUNT_SCHEMA = "bin int, count long"
"""The same in the words of Spark's `mapInArrow`."""

_FINDINGS = max(Finding)


def score_batches(
    batches: Iterable[Any], scores: Scores = None, *, score: str | None = None, candidates: Candidates | None = None
) -> ScoreHistogram:
    """The histogram of the scores of all batches, in one pass, with memory for one batch and m counts.

    Histograms of several calls over the same candidates add (`+`), so workers may each make one.

    Parameters
    ----------
    batches
        Arrow record batches or tables, mappings of arrays, or arrays and tensors of shape (n,).
    scores
        `Classified` or `Regressed`, which name the columns that a score is computed from; the column that holds the
        scores; a function from a batch to its scores, shape (n,), where NaN marks a record without one; or None if
        the batches are the scores.
    score
        The score's name, for a column or a function: it sets the valid range and the default candidates.
    candidates
        The public candidates, by default those that suit the score.

    Raises
    ------
    InputError
        After the last batch, if records have no usable score: how many, why, and where the first is. Or if a column
        does not exist.
    InputTypeError
        If scores are no numbers.

    Examples
    --------
    >>> import pyarrow as pa
    >>> batches = [pa.record_batch({"s": [0.1, 0.5]}), pa.record_batch({"s": [0.7]})]
    >>> score_batches(batches, "s", candidates=Candidates.of([0.5])).counts
    array([2, 1])
    >>> score_batches([np.array([0.1, 0.5]), np.array([0.7])], candidates=Candidates.of([0.5])).counts
    array([2, 1])
    """
    counter = _counted(batches, scores, score, candidates)
    refuse(counter.found, score_kind(counter.score), first=counter.first)
    return ScoreHistogram(counter.candidates, counter.bins.counts())


def count_batches(
    batches: Iterable[Any], scores: Scores = None, *, score: str | None = None, candidates: Candidates | None = None
) -> Any:
    """The same counts as an Arrow record batch with columns `bin` and `count`, for an executor to return.

    **Private**, like a histogram. Only bins that are not empty have a row. If records have no usable score, only their
    numbers are returned, in bins below 0: `merge_counts` refuses them all at once, where an error would fail one task
    again and again.

    Parameters
    ----------
    batches, scores, score, candidates
        As in `score_batches`.

    Returns
    -------
    pyarrow.RecordBatch
        `bin` int32 below m, `count` int64.

    Examples
    --------
    >>> candidates = Candidates.of([0.5, 0.6])
    >>> count_batches([np.array([0.1, 0.5, 0.7])], candidates=candidates).to_pydict()
    {'bin': [0, 2], 'count': [2, 1]}
    >>> count_batches([np.array([0.1, 0.5, np.nan])], candidates=candidates).to_pydict()
    {'bin': [-1], 'count': [1]}
    """
    import pyarrow as pa

    counter = _counted(batches, scores, score, candidates)
    counts = counter.bins.counts()
    rows = {-int(finding): n for finding, n in counter.found.items()} or {
        int(j): int(counts[j]) for j in np.flatnonzero(counts)
    }
    columns = zip(COUNT_COLUMNS.items(), (list(rows), list(rows.values())), strict=True)
    return pa.record_batch({name: pa.array(values, kind) for (name, kind), values in columns})


def merge_counts(
    tables: Iterable[Any], *, score: str | None = None, candidates: Candidates | None = None
) -> ScoreHistogram:
    """The histogram of counts that came back from executors.

    Parameters
    ----------
    tables
        Arrow tables or record batches with columns `bin` and `count`, as from `count_batches` or summed by an engine;
        a bin may stand in any number of rows.
    score, candidates
        As in `count_batches`: the same candidates, or bins mean something else.

    Raises
    ------
    InputError
        If records had no usable score (how many, and why), or the tables are not counts over these candidates.

    Examples
    --------
    >>> candidates = Candidates.of([0.5])
    >>> parts = [count_batches([np.array(part)], candidates=candidates) for part in ([0.1], [0.2, 0.9])]
    >>> merge_counts(parts, candidates=candidates).counts
    array([2, 1])
    """
    kind = score_kind(score)
    chosen = kind.candidates() if candidates is None else candidates
    total = np.zeros(_FINDINGS + chosen.size, dtype=np.int64)
    for table in tables:
        bins, counts = (_whole_numbers(column_of(table, name), name) for name in COUNT_COLUMNS)
        if len(bins) and not (bins.min() >= -_FINDINGS and bins.max() < chosen.size and counts.min() >= 0):
            raise InputError(
                f"tables must hold counts over {chosen.size} candidates, bins 0 to {chosen.size - 1}; found others: "
                "pass the candidates that the executors counted over"
            )
        np.add.at(total, bins + _FINDINGS, counts)
    refuse({finding: int(total[_FINDINGS - finding]) for finding in Finding}, kind)
    return ScoreHistogram(chosen, total[_FINDINGS:])


class _Counter:
    """m counts, and why records have no usable score."""

    def __init__(self, candidates: Candidates, score: str | None) -> None:
        self.candidates, self.score = candidates, score
        kind = score_kind(score)
        self.low, self.high = np.float64(kind.low), np.float64(kind.high)  # a float would be rounded to float32
        self.bins = BinCounter(candidates.edges, kind.low, kind.high)
        self.found: dict[Finding, int] = {}
        self.first: int | None = None
        self.seen = 0

    def add(self, scores: NDArray[Any], findings: NDArray[np.int8] | None) -> None:
        if findings is None:
            usable = (scores >= self.low) & (scores <= self.high)
            findings = np.where(usable, 0, np.where(np.isnan(scores), Finding.MISSING, Finding.OUTSIDE))
        wrong = np.flatnonzero(findings)
        if not wrong.size:
            self.bins.add(scores)
        for finding, held in zip(*np.unique(findings[wrong], return_counts=True), strict=True):
            self.found[Finding(finding)] = self.found.get(Finding(finding), 0) + int(held)
        if wrong.size and self.first is None:
            self.first = self.seen + int(wrong[0])
        self.seen += len(scores)


def _counted(batches: Iterable[Any], scores: Scores, score: str | None, candidates: Candidates | None) -> _Counter:
    source = scores if isinstance(scores, Scored | Classified | Regressed) else None
    own = score if source is None else source.kind.name
    if score not in (None, own):
        raise InputError(f"score must be left out or be {own!r}, which is computed; found {score!r}")
    counter = _Counter(score_kind(own).candidates() if candidates is None else candidates, own)
    for batch in batches:
        counter.add(*((_own_scores(batch, scores), None) if source is None else source_scores(batch, source)))
    return counter


def _own_scores(batch: Any, scores: Any) -> NDArray[Any]:
    """The scores of one batch, shape (n,), missing ones as NaN."""
    found = column_of(batch, scores) if isinstance(scores, str) else batch if scores is None else scores(batch)
    if has_columns(found):
        raise InputError("scores must name the column of scores, or be a function that computes them; found columns")
    array = as_numeric("scores", as_host_array(found))
    if array.ndim != 1:
        raise InputError(f"scores must be one-dimensional; found shape {array.shape}")
    return array


def _whole_numbers(column: Any, name: str) -> NDArray[np.int64]:
    array = as_numeric(name, column)
    if array.dtype.kind not in "iu":
        raise InputTypeError(f"{name} must hold whole numbers, none of them missing; found dtype {array.dtype}")
    return array.astype(np.int64)
