"""Cells of equal width, many thousand over the range of most scores, which replace a search for every score.

A monotone function, also when rounded, maps scores to cells. A score in another cell than an edge therefore lies on the
same side of the edge as its cell, and only edges in its own cell have to be compared. Counts do not depend on the
position of the cells, which is chosen from a sample, for speed only.
"""

from collections.abc import Iterator
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

# The number of scores that are counted at a time; it fits in the cache.
BLOCK = 2**16

_SAMPLE = 2**10
_CELLS = 2**16
_MOST_DOUBTFUL = 0.3  # more are counted faster by sorting every block
_TAIL = 0.005


def in_order(scores: NDArray[Any]) -> NDArray[np.float64]:
    """Some thousand scores from the whole input, sorted."""
    return np.sort(scores[:: max(1, len(scores) // _SAMPLE)].astype(np.float64))


def _spans(sample: NDArray[np.float64], cells: int) -> Iterator[tuple[float, float, float]]:
    """Possible positions of cells, (low, high, cells per unit): over all sorted numbers, or without the tails."""
    for cut in sorted({0, int(_TAIL * len(sample))}) if len(sample) else ():
        low, high = float(sample[cut]), float(sample[len(sample) - 1 - cut])
        margin = (high - low) / 64
        low, high = 0.0 if 0 <= low <= margin else low - margin, high + margin
        if high > low and np.isfinite(high - low) and np.isfinite(scale := (cells - 1) / (high - low)):
            yield low, high, scale


class Cells:
    """Count scores per cell with numpy only; scores in the cell of an edge are returned to be sorted.

    Scores outside [low, high] belong to the first or the last cell, whose scores are always returned.
    """

    def __init__(self, edges: NDArray[np.float64], low: float, high: float, scale: float) -> None:
        self._low, self._high, self._scale = low, high, scale
        self._clear()
        # Scores in the cell of an edge, and in the first and last cell, must be compared.
        pieces = [edges[i : i + BLOCK] for i in range(0, len(edges), BLOCK)]
        self._edge_cells = np.concatenate([np.empty(0, np.int64), *(self._find(piece).copy() for piece in pieces)])
        self._is_doubtful = np.zeros(_CELLS, dtype=np.bool_)
        self._is_doubtful[[0, _CELLS - 1]] = True
        self._is_doubtful[self._edge_cells] = True

    def _clear(self) -> None:
        self._room = np.empty(BLOCK)
        self._keys = np.empty(BLOCK, dtype=np.int64)
        self._held = np.zeros(_CELLS, dtype=np.int64)

    def empty_copy(self) -> "Cells":
        """The same cells, empty, for another thread."""
        other = copy(self)
        other._clear()
        return other

    @classmethod
    def for_sample(cls, sample: NDArray[np.float64], edges: NDArray[np.float64]) -> "Cells | None":
        """Cells for such scores, given sorted; None if too many scores would share a cell with an edge."""
        for span in _spans(sample, _CELLS):
            cells = cls(edges, *span)
            if np.mean(cells._is_doubtful[cells._find(sample)]) <= _MOST_DOUBTFUL:
                return cells
        return None

    def add(self, block: NDArray[np.float64], least: float, most: float) -> NDArray[np.float64]:
        """Count a block's scores per cell; returns those in the cell of an edge, which are not counted."""
        keys = self._find(block, clip=not (self._low <= least and most <= self._high))
        self._held += np.bincount(keys, minlength=_CELLS)
        return block[np.flatnonzero(self._is_doubtful[keys])]

    def at_or_below(self) -> NDArray[np.int64]:
        """The scores at or below each edge in cells without an edge, shape (m-1,)."""
        sure = np.where(self._is_doubtful, 0, self._held)
        reached: NDArray[np.int64] = np.cumsum(sure)[self._edge_cells]
        return reached

    def _find(self, block: NDArray[np.float64], *, clip: bool = True) -> NDArray[np.int64]:
        room, keys = self._room[: len(block)], self._keys[: len(block)]
        # Every step is monotone, also when rounded.
        if clip:
            block = np.clip(block, self._low, self._high, out=room)
        if self._low != 0:
            block = np.subtract(block, self._low, out=room)
        np.multiply(block, self._scale, out=keys, dtype=np.float64, casting="unsafe")
        return keys
