"""Cells of equal width, a few ten thousand of them over where most scores lie, so that no score has to be searched for.

A monotone function sends scores to cells. Rounding keeps it monotone, so a score whose cell differs from an edge's lies
on the same side of it as its cell does; only edges in its own cell have to be compared. No count depends on rounding,
nor on where the cells lie: that is chosen from a sample, for speed alone.
"""

from collections.abc import Iterator
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.arrays import loops, machine_code

BLOCK = 2**16
"""Scores that are counted at a time; few enough for the cache."""

_SAMPLE = 2**10
_CELLS = 2**14
_MOST_DOUBTFUL = 0.1
_TAIL = 0.005

_COMPILED_CELLS = 2**15
_TOGETHER = 2**11
_MOST_STEPS = 2.0


def in_order(scores: NDArray[Any]) -> NDArray[np.float64]:
    """A thousand or two of the scores, from everywhere among them."""
    return np.sort(scores[:: max(1, len(scores) // _SAMPLE)].astype(np.float64))


def _spans(sample: NDArray[np.float64], cells: int) -> Iterator[tuple[float, float, float]]:
    """Where cells may lie, (low, high, cells per unit): over all of some numbers in order, or without the tails."""
    for cut in sorted({0, int(_TAIL * len(sample))}) if len(sample) else ():
        low, high = float(sample[cut]), float(sample[len(sample) - 1 - cut])
        margin = (high - low) / 64
        low, high = 0.0 if 0 <= low <= margin else low - margin, high + margin
        if high > low and np.isfinite(high - low) and np.isfinite(scale := (cells - 1) / (high - low)):
            yield low, high, scale


class Cells:
    """With numpy alone: scores per cell; those that share theirs with an edge are handed back to be sorted.

    What lies outside [low, high] belongs to the first or the last cell, whose scores are always handed back.
    """

    def __init__(self, edges: NDArray[np.float64], low: float, high: float, scale: float) -> None:
        self._low, self._high, self._scale = low, high, scale
        self._clear()
        pieces = [edges[i : i + BLOCK] for i in range(0, len(edges), BLOCK)]
        self._edge_cells = np.concatenate([np.empty(0, np.int64), *(self._find(piece).copy() for piece in pieces)])
        self._is_doubtful = np.zeros(_CELLS, dtype=np.bool_)
        self._is_doubtful[[0, _CELLS - 1]] = True
        self._is_doubtful[self._edge_cells] = True

    def _clear(self) -> None:
        self._room = np.empty(BLOCK)
        self._keys = np.empty(BLOCK, dtype=np.int64)
        self._held = np.zeros(_CELLS, dtype=np.int64)

    def sibling(self) -> "Cells":
        """The same cells, empty, for another thread."""
        other = copy(self)
        other._clear()
        return other

    @classmethod
    def suiting(cls, sample: NDArray[np.float64], edges: NDArray[np.float64]) -> "Cells | None":
        """Cells for scores like these, given in order; None if too many would share a cell with an edge."""
        for span in _spans(sample, _CELLS):
            cells = cls(edges, *span)
            if np.mean(cells._is_doubtful[cells._find(sample)]) <= _MOST_DOUBTFUL:
                return cells
        return None

    def add(self, block: NDArray[np.float64], least: float, most: float) -> NDArray[np.float64]:
        """Count a block's scores per cell; returns those that share theirs with an edge, which do not count."""
        keys = self._find(block, clip=not (self._low <= least and most <= self._high))
        self._held += np.bincount(keys, minlength=_CELLS)
        return block[np.flatnonzero(self._is_doubtful[keys])]

    def at_or_below(self) -> NDArray[np.int64]:
        """Scores of undoubtful cells at or below each edge, shape (m-1,)."""
        sure = np.where(self._is_doubtful, 0, self._held)
        found: NDArray[np.int64] = np.cumsum(sure)[self._edge_cells]
        return found

    def _find(self, block: NDArray[np.float64], *, clip: bool = True) -> NDArray[np.int64]:
        """The cell of each number: clipped, moved, scaled, cut off; every step is monotone, also when rounded."""
        room, keys = self._room[: len(block)], self._keys[: len(block)]
        if clip:
            block = np.clip(block, self._low, self._high, out=room)
        if self._low != 0:
            block = np.subtract(block, self._low, out=room)
        np.multiply(block, self._scale, out=keys, dtype=np.float64, casting="unsafe")
        return keys


class CompiledCells:
    """With machine code: from a score's cell to the first edge in it, and from there on to its own.

    Where many scores turn out to share their cell with many edges, cells are laid anew, over these scores.
    """

    def __init__(self, edges: NDArray[np.float64], low: float, scale: float) -> None:
        self._low, self._scale = low, scale
        self._count = machine_code(loops.count)
        self._edges = np.append(edges, np.inf)
        steps = np.diff(self._cells_of(edges), prepend=-1, append=_COMPILED_CELLS)
        self._starts = np.repeat(np.arange(len(self._edges), dtype=np.int32), steps)
        self._clear()

    def _clear(self) -> None:
        self._laid_at = 0
        self._room = np.empty(_TOGETHER, dtype=np.int32)
        self.counts = np.zeros(len(self._edges), dtype=np.int64)

    def sibling(self) -> "CompiledCells":
        """The same cells, empty, for another thread."""
        other = copy(self)
        other._clear()
        return other

    @classmethod
    def suiting(cls, sample: NDArray[np.float64], edges: NDArray[np.float64]) -> "CompiledCells | None":
        """Cells for scores like these, given in order; None if too many edges would share a cell with a score."""
        bins = np.searchsorted(edges, sample)
        for low, _, scale in _spans(sample, _COMPILED_CELLS):
            cells = cls(edges, low, scale)
            if np.mean(bins - cells._starts[cells._cells_of(sample)]) <= _MOST_STEPS:
                return cells
        return None

    def add(self, scores: NDArray[Any], low: float, high: float) -> int:
        """Count float32 or float64 scores up to one that is not in [low, high]; returns how many were counted."""
        cells = self._low, self._scale, self._starts, self._edges
        counted, far = self._count(scores, low, high, *cells, self._room, self.counts)
        if far > _MOST_DOUBTFUL * counted and (total := int(self.counts.sum())) >= 2 * self._laid_at:
            self._laid_at = total
            better = self.suiting(in_order(scores[:counted]), self._edges[:-1])
            if better is not None:
                self._low, self._scale, self._starts = better._low, better._scale, better._starts
        return int(counted)

    def _cells_of(self, numbers: NDArray[np.float64]) -> NDArray[np.int32]:
        """The cell of each number, step by step as in `loops.count`."""
        with np.errstate(all="ignore"):
            place = np.fmax((numbers - self._low) * self._scale, 0.0)
        return np.fmin(place, _COMPILED_CELLS - 1).astype(np.int32)
