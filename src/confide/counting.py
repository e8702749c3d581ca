"""The only entry point for private data: counts of scores over public candidates. Mechanisms get nothing else.

Histograms over the same candidates can be added, so that shards, machines and silos are merged by sums.
"""

import threading
from copy import copy
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_vector, in_blocks
from confide.candidates import Candidates
from confide.errors import InputError, InputTypeError
from confide.scores import ScoreKind, score_kind
from confide.support import MOST_RECORDS

__all__ = ["BinCounter", "ScoreHistogram", "check_scores", "weight_per_bin"]

# Scores are counted so many at a time; they fit in the cache.
BLOCK = 2**16

# Cells of equal width replace a search for every score. A monotone function, also when rounded, maps scores to cells. A
# score in another cell than an edge therefore lies on the same side of the edge as its cell, and only edges in its own
# cell have to be compared. Counts do not depend on the position of the cells, which is chosen from a sample, for speed.
_CELLS = 2**16
_SAMPLE = 2**10

# The share of a sample in cells of edges from which sorting every block is faster.
_MOST_DOUBTFUL = 0.3

# The share of a sample below the cells, and above them, if they leave out its tails.
_TAIL = 0.005


class Cells:
    """Count scores per cell with numpy only; scores in the cell of an edge are returned to be sorted.

    Scores outside [low, high] are in the first or the last cell. The scores in these two cells are always returned.
    """

    def __init__(self, edges: NDArray[np.float64], low: float, high: float) -> None:
        self._low, self._high = low, high
        self._per_unit = (_CELLS - 1) / (high - low)
        self._clear()
        pieces = [edges[start : start + BLOCK] for start in range(0, len(edges), BLOCK)]
        self._edge_cells = np.concatenate([np.empty(0, np.int64), *(self._find(piece).copy() for piece in pieces)])
        self._is_doubtful = np.zeros(_CELLS, dtype=np.bool_)
        self._is_doubtful[[0, _CELLS - 1]] = True
        self._is_doubtful[self._edge_cells] = True

    @classmethod
    def for_sample(cls, sample: NDArray[np.float64], edges: NDArray[np.float64]) -> "Cells | None":
        """Cells for such scores, given sorted; None if too many scores would share a cell with an edge."""
        for left_out in sorted({0, int(_TAIL * len(sample))}) if len(sample) else ():
            low, high = float(sample[left_out]), float(sample[-1 - left_out])
            margin = (high - low) / 64
            # From 0 itself if it is near, because scores above 0 need no shift
            low, high = 0.0 if 0 <= low <= margin else low - margin, high + margin
            if not (high > low and np.isfinite(high - low) and np.isfinite((_CELLS - 1) / (high - low))):
                continue
            cells = cls(edges, low, high)
            if np.mean(cells._is_doubtful[cells._find(sample)]) <= _MOST_DOUBTFUL:
                return cells
        return None

    def empty_copy(self) -> "Cells":
        """The same cells, empty, for another thread."""
        other = copy(self)
        other._clear()
        return other

    def add(self, block: NDArray[np.float64], least: float, most: float) -> NDArray[np.float64]:
        """Count a block's scores, from least to most; returns those in the cell of an edge, which are not counted."""
        cells = self._find(block, clip=not (self._low <= least and most <= self._high))
        self._counts += np.bincount(cells, minlength=_CELLS)
        return block[np.flatnonzero(self._is_doubtful[cells])]

    def at_or_below(self) -> NDArray[np.int64]:
        """The scores at or below each edge in cells without an edge, shape (m-1,)."""
        counts = np.where(self._is_doubtful, 0, self._counts)
        reached: NDArray[np.int64] = np.cumsum(counts)[self._edge_cells]
        return reached

    def _clear(self) -> None:
        self._shifted = np.empty(BLOCK)
        self._cells = np.empty(BLOCK, dtype=np.int64)
        self._counts = np.zeros(_CELLS, dtype=np.int64)

    def _find(self, block: NDArray[np.float64], *, clip: bool = True) -> NDArray[np.int64]:
        """The cell of each score, in memory that the next call reuses; every step is monotone, also when rounded."""
        shifted, cells = self._shifted[: len(block)], self._cells[: len(block)]
        if clip:
            block = np.clip(block, self._low, self._high, out=shifted)
        if self._low != 0:
            block = np.subtract(block, self._low, out=shifted)
        np.multiply(block, self._per_unit, out=cells, dtype=np.float64, casting="unsafe")
        return cells


# Batches from this size on are sorted at once; smaller ones wait until they fill a block.
_WORTH_SORTING = 2**14

# From so many expected scores on, cells are worth their memory.
_WORTH_CELLS = 2**19


class BinCounter:
    """Count scores per bin (e_(j-1), e_j] piece by piece. Every thread has one counter; counts are added.

    The edges are the finite candidates: float64, shape (m-1,), increasing. Scores outside [low, high], and NaN, are
    counted separately; with `infinity`, +inf is a score as well. If half a million scores or more are expected, or an
    unknown number, they are counted by cells, which need 2 MB. Otherwise every block is sorted.
    """

    def __init__(
        self,
        edges: NDArray[np.float64],
        low: float,
        high: float,
        expected: int | None = None,
        *,
        infinity: bool = False,
    ) -> None:
        self._edges = edges
        self._low, self._high = low, high
        self._infinity = infinity
        self._cells: Cells | None = None
        self._choose_cells = expected is None or expected >= _WORTH_CELLS
        self._clear()

    def _clear(self) -> None:
        self.missing = self.outside = self.seen = 0
        self.first: int | None = None
        self._total = 0
        self._at_or_below = np.zeros(len(self._edges), dtype=np.int64)
        self._doubtful: list[NDArray[np.float64]] = []
        self._waiting = 0

    def empty_copy(self) -> "BinCounter":
        """An empty counter for another thread, with the counting method of this one."""
        other = copy(self)
        other._cells = None if self._cells is None else self._cells.empty_copy()
        other._clear()
        return other

    def add(self, scores: NDArray[Any], position: int | None = None) -> None:
        """Count real numbers of any type. Unusable numbers increase `missing` or `outside`; see `first`.

        `position` is the position of the first of them among all scores; by default they follow the scores added
        before.
        """
        if position is not None:
            self.seen = position
        if len(scores) >= _WORTH_SORTING:
            self.choose(scores)
        while len(scores):
            self._add(scores[:BLOCK].astype(np.float64, copy=False))
            scores = scores[BLOCK:]

    def choose(self, scores: NDArray[Any]) -> None:
        """Choose the counting method for such scores, once; `add` calls it with the first large batch."""
        if self._choose_cells:
            sample = np.sort(scores[:: max(1, len(scores) // _SAMPLE)].astype(np.float64))
            sample = sample[(sample >= self._low) & (sample <= self._high)]
            self._choose_cells, self._cells = False, Cells.for_sample(sample, self._edges)

    def counts(self) -> NDArray[np.int64]:
        """Counts per bin so far, int64, shape (m,)."""
        self._settle()
        at_or_below = self._at_or_below + (0 if self._cells is None else self._cells.at_or_below())
        counts: NDArray[np.int64] = np.diff(np.concatenate([[0], at_or_below, [self._total]]))
        return counts

    def _add(self, block: NDArray[np.float64]) -> None:
        # Leave out what is no score; NaN fails both comparisons.
        least = float(block.min())
        most = float(block.max())
        if not (self._low <= least and most <= self._high):
            block = self._valid(block)
            least, most = -np.inf, np.inf

        # Count a large block at once, without cells
        self.seen += len(block)
        self._total += len(block)
        if self._cells is None and len(block) >= _WORTH_SORTING:
            self._compare(block)
            return
        # Otherwise scores wait until they fill a block, because every edge is searched; the caller may reuse its array
        doubtful = block.copy() if self._cells is None else self._cells.add(block, least, most)
        self._doubtful.append(doubtful)
        self._waiting += len(doubtful)
        if self._waiting >= BLOCK:
            self._settle()

    def _valid(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        """The scores of a block; the other numbers are recorded."""
        missing = np.isnan(block)
        valid = (block >= self._low) & (block <= self._high)
        if self._infinity:
            valid |= block == np.inf
        invalid = len(block) - int(valid.sum())
        if not invalid:
            return block
        first = self.seen + int(np.argmin(valid))
        self.first = first if self.first is None else min(first, self.first)
        self.missing += int(missing.sum())
        self.outside += invalid - int(missing.sum())
        self.seen += invalid
        return block[valid]

    def _settle(self) -> None:
        if self._waiting:
            self._compare(np.concatenate(self._doubtful))
        self._doubtful, self._waiting = [], 0

    def _compare(self, block: NDArray[np.float64]) -> None:
        self._at_or_below += np.searchsorted(np.sort(block), self._edges, side="right")


# Scores that a thread takes at a time.
_SLICE = 2**17


def weight_per_bin(scores: NDArray[Any], weights: NDArray[np.int64], edges: NDArray[np.float64]) -> NDArray[np.int64]:
    """The sum of whole weights per bin, exactly; int64, shape (m,)."""
    sums = np.zeros(len(edges) + 1, dtype=np.int64)
    np.add.at(sums, np.searchsorted(edges, np.asarray(scores, dtype=np.float64), side="left"), weights)
    return sums


@dataclass(frozen=True, eq=False, repr=False)
class ScoreHistogram:
    """Counts of nonconformity scores per bin (e_(j-1), e_j]. **Private**: never publish a histogram.

    Parameters
    ----------
    candidates
        The public candidates.
    counts
        int64, shape (m,): `counts[j]` scores are above candidate j-1 and at most candidate j; or the sum of their whole
        weights.
    records
        The number of records, if the counts are sums of weights, which do not determine it; else None.

    Examples
    --------
    >>> histogram = ScoreHistogram.from_scores([0.1, 0.5, 0.6], Candidates.of([0.5, 1.0]))
    >>> (histogram + histogram).counts
    array([4, 2, 0])
    """

    candidates: Candidates
    counts: NDArray[np.int64]
    records: int | None = None

    def __post_init__(self) -> None:
        counts = np.asarray(self.counts)
        if counts.dtype.kind not in "iu":
            raise InputTypeError("counts", "must be integers", got=f"dtype {counts.dtype}")
        if counts.shape != (self.candidates.size,):
            raise InputError("counts", f"must have shape ({self.candidates.size},)", got=f"shape {counts.shape}")
        if (counts < 0).any():
            raise InputError("counts", "must not be negative", got=f"one at position {int(np.argmax(counts < 0))}")
        if counts.sum(dtype=np.float64) > MOST_RECORDS:
            raise InputError("counts", f"must add up to at most {MOST_RECORDS} records")
        # The number of records, for sums of weights.
        if self.records is not None and (isinstance(self.records, bool) or not isinstance(self.records, Integral)):
            raise InputTypeError("records", "must be an integer", got=type(self.records).__name__)
        if self.records is not None and not 0 <= self.records <= MOST_RECORDS:
            raise InputError("records", f"must be an integer from 0 to {MOST_RECORDS}")
        counts = counts.astype(np.int64)
        counts.flags.writeable = False
        object.__setattr__(self, "counts", counts)

    def __reduce__(self) -> tuple[Any, ...]:
        return ScoreHistogram, (self.candidates, self.counts, self.records)

    @classmethod
    def from_scores(cls, scores: ArrayLike, candidates: Candidates, score: str | None = None) -> "ScoreHistogram":
        """Count scores in one pass over blocks, without sorting or copying the whole input.

        Parameters
        ----------
        scores
            Shape (n,), possibly empty, float16/32/64 or integers. They are compared with the candidates in float64,
            which is exact.
        candidates
            The thresholds between which scores are counted.
        score
            The score's name. If it is a known name, the range is checked.

        Raises
        ------
        InputError
            If a score is NaN or outside the score's range (the message has count and first position, never a value).
        """
        array = as_vector("scores", scores, empty=True)
        return cls(candidates, _count(array, candidates.edges, score_kind(score)))

    @classmethod
    def from_weights(cls, scores: NDArray[Any], weights: NDArray[np.int64], candidates: Candidates) -> "ScoreHistogram":
        """Sum whole weights per bin, for scores that can be counted; both of shape (n,)."""
        return cls(candidates, weight_per_bin(scores, weights, candidates.edges), len(scores))

    @classmethod
    def empty(cls, candidates: Candidates) -> "ScoreHistogram":
        """A histogram without scores: the neutral element of addition."""
        return cls(candidates, np.zeros(candidates.size, dtype=np.int64))

    @property
    def total(self) -> int:
        """The number of scores counted, whatever their weights. Private under `add_remove`."""
        return int(self.counts.sum()) if self.records is None else self.records

    def over(self, candidates: Candidates) -> "ScoreHistogram":
        """The same scores over some or all of the candidates, exactly as if they had been counted over these.

        Raises
        ------
        InputError
            If one of the candidates is not among those of this histogram.

        Examples
        --------
        >>> histogram = ScoreHistogram.from_scores([0.1, 0.5, 0.6], Candidates.of([0.2, 0.5, 1.0]))
        >>> histogram.over(Candidates.of([0.5])).counts
        array([2, 1])
        """
        known = self.candidates.edges
        place = np.searchsorted(known, candidates.edges)
        if not np.array_equal(known[place[place < len(known)]], candidates.edges):
            raise InputError("candidates", "must be among those that were counted over", got="others")
        reached = np.cumsum(self.counts)[np.append(place, len(known))]
        return ScoreHistogram(candidates, np.diff(reached, prepend=0), self.records)

    def __add__(self, other: "ScoreHistogram") -> "ScoreHistogram":
        if not isinstance(other, ScoreHistogram):
            return NotImplemented
        if self.candidates != other.candidates:
            raise InputError("other", "must be counted over the same candidates", got="different ones")
        if self.records is None and other.records is None:
            return ScoreHistogram(self.candidates, self.counts + other.counts)
        if any(histogram.records is None and histogram.counts.any() for histogram in (self, other)):
            raise InputError(
                "other", "must state a number of records, as for sums of weights, if and only if this histogram does"
            )
        return ScoreHistogram(self.candidates, self.counts + other.counts, self.total + other.total)

    def __repr__(self) -> str:
        return f"ScoreHistogram({self.candidates!r}, counts are private)"


def check_scores(scores: ArrayLike, score: str | None) -> None:
    """Raise the error of `ScoreHistogram.from_scores` if scores cannot be counted."""
    _count(as_vector("scores", scores, empty=True), np.empty(0), score_kind(score))


def _count(scores: NDArray[Any], edges: NDArray[np.float64], kind: ScoreKind) -> NDArray[np.int64]:
    # One counter for each thread; all count with the same method.
    model = BinCounter(edges, kind.low, kind.high, len(scores), infinity=kind.takes_infinity)
    if len(scores):
        model.choose(scores)
    counters = [model]
    thread = threading.local()

    def work(rows: slice) -> None:
        if not hasattr(thread, "counter"):
            thread.counter = model.empty_copy()
            counters.append(thread.counter)
        thread.counter.add(scores[rows], rows.start)

    in_blocks(work, len(scores), elements=_SLICE)

    # Errors state how many scores cannot be counted, and the first position.
    unusable = [counter.first for counter in counters if counter.first is not None]
    if unusable:
        missing = sum(c.missing for c in counters)
        outside = sum(c.outside for c in counters)
        raise InputError(
            "scores",
            f"must be numbers {kind.range_text}",
            got=f"{missing} NaN and {outside} outside, the first at position {min(unusable)}",
            remedy="Correct the scores where they are computed: every record needs one",
        )
    counts: NDArray[np.int64] = np.sum([counter.counts() for counter in counters], axis=0)
    return counts
