"""Counting doubles per bin, exactly and in a nanosecond or a few each: the only loop that sees every score."""

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.arrays import FLOATS, worth_compiling
from confide.counting.cells import BLOCK, Cells, CompiledCells, in_order

_ENOUGH = 2**14
_WORTH_CELLS = 2**19
_INFINITE = np.float64(np.inf).view(np.uint64)


class BinCounter:
    """Counts per bin (e_(j-1), e_j] of scores that come in pieces. One counter per thread; counts add.

    The edges are the finite candidates: float64, shape (m-1,), increasing. Scores outside [low, high], and NaN, are
    counted apart. Where half a million scores or more are expected, or nobody knows how many, they are counted by
    cells, which take 2 MB; otherwise every block is sorted.

    Examples
    --------
    >>> counter = BinCounter(np.array([0.5, 1.0]), 0.0, 10.0)
    >>> counter.add(np.array([0.1, 0.5, 0.6, 7.0, 11.0]))
    >>> counter.counts(), counter.outside, counter.first
    (array([2, 1, 1]), 1, 4)
    """

    def __init__(self, edges: NDArray[np.float64], low: float, high: float, expected: int | None = None) -> None:
        self._edges, self._low, self._high = edges, low, high
        self._cells: Cells | None = None
        self._compiled: CompiledCells | None = None
        self._choose_cells = self._choose_compiled = expected is None or expected >= _WORTH_CELLS
        self._expected = expected or 0
        self._clear()

    def _clear(self) -> None:
        self.missing = self.outside = self.seen = 0
        self.first: int | None = None
        self._total = 0
        self._at_or_below = np.zeros(len(self._edges), dtype=np.int64)
        self._doubtful: list[NDArray[np.float64]] = []
        self._waiting = 0

    def sibling(self) -> "BinCounter":
        """A counter for another thread, which has seen nothing and counts in the way that suited this one."""
        other = copy(self)
        other._cells = None if self._cells is None else self._cells.sibling()
        other._compiled = None if self._compiled is None else self._compiled.sibling()
        other._clear()
        return other

    def add(self, scores: NDArray[Any], position: int | None = None) -> None:
        """Count real numbers of any type. Those that cannot be used raise `missing` or `outside`; see `first`.

        `position` is where they stand among all scores, by default after those that were added before.
        """
        if position is not None:
            self.seen = position
        if len(scores) >= _ENOUGH:
            self.choose(scores)
        while len(scores):
            counted = self._add_quickly(scores)
            if not counted:
                block = scores[:BLOCK]
                counted = len(block)
                self._add(block.astype(np.float64, copy=False))
            scores = scores[counted:]

    def choose(self, scores: NDArray[Any]) -> None:
        """Choose how to count scores like these, once; `add` calls it with the first that are enough."""
        compiled = self._choose_compiled and scores.dtype in FLOATS and worth_compiling(max(self.seen, self._expected))
        plain = self._choose_cells and self._compiled is None
        if not (compiled or plain):
            return
        sample = in_order(scores)
        sample = sample[(sample >= self._low) & (sample <= self._high)]
        if compiled:
            self._choose_compiled, self._compiled = False, CompiledCells.suiting(sample, self._edges)
        if plain and self._compiled is None:
            self._choose_cells, self._cells = False, Cells.suiting(sample, self._edges)

    def counts(self) -> NDArray[np.int64]:
        """Counts per bin so far, int64, shape (m,)."""
        self._settle()
        at_or_below = self._at_or_below + (0 if self._cells is None else self._cells.at_or_below())
        counts: NDArray[np.int64] = np.diff(np.concatenate([[0], at_or_below, [self._total]]))
        return counts if self._compiled is None else counts + self._compiled.counts

    def _add_quickly(self, scores: NDArray[Any]) -> int:
        """Count valid scores by machine code, where there is some; returns how many were counted."""
        if self._compiled is None or scores.dtype not in FLOATS:
            return 0
        counted = self._compiled.add(scores, self._low, self._high)
        self.seen += counted
        return counted

    def _add(self, block: NDArray[np.float64]) -> None:
        least, most = self._extent(block)  # NaN fails both comparisons
        if not (self._low <= least and most <= self._high):
            block = self._valid(block)
            least, most = -np.inf, np.inf
        self.seen += len(block)
        self._total += len(block)
        if self._cells is None:
            self._compare(block)
            return
        doubtful = self._cells.add(block, least, most)
        self._doubtful.append(doubtful)
        self._waiting += len(doubtful)
        if self._waiting >= BLOCK:
            self._settle()

    def _extent(self, block: NDArray[np.float64]) -> tuple[float, float]:
        """The least and the largest number; in one pass, by their bits, for scores that start at 0."""
        if self._low == 0 and block.flags.c_contiguous:
            most: np.uint64 = block.view(np.uint64).max()  # NaN and whatever has a sign lie above +inf
            if most <= _INFINITE:
                return 0.0, float(most.view(np.float64))
        return float(block.min()), float(block.max())

    def _valid(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        missing = np.isnan(block)
        valid = (block >= self._low) & (block <= self._high)
        lost = len(block) - int(valid.sum())
        first = self.seen + int(np.argmin(valid))
        self.first = first if self.first is None else min(first, self.first)
        self.missing += int(missing.sum())
        self.outside += lost - int(missing.sum())
        self.seen += lost
        return block[valid]

    def _settle(self) -> None:
        if self._waiting:
            self._compare(np.concatenate(self._doubtful))
        self._doubtful, self._waiting = [], 0

    def _compare(self, block: NDArray[np.float64]) -> None:
        """Sorting a block in cache is faster than a binary search per score."""
        self._at_or_below += np.searchsorted(np.sort(block), self._edges, side="right")
