"""What is said about written predictions: sizes of sets, and intervals that are too wide to be informative."""

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np

from confide.sets import warn_of_widths
from confide.tables.arrow import to_numpy
from confide.tables.predictors import LOWER, SIZE, Predictions

# Of written predictions: `rows`, and for sets, if there are any, `mean_set_size` and `empty_sets`.
Summary: TypeAlias = dict[str, float]

# Centres are computed from ends. If the ends are this many times farther apart, centres differ only by rounding.
_EXACT = 1e14


class PredictionCounts:
    """Count rows and the members of sets batch by batch; for intervals, keep their widths and positions."""

    def __init__(self, predictions: Predictions) -> None:
        first, last = predictions.predictors[0].adds
        self._sizes = last if last == SIZE else None  # those of several levels have no one mean
        self._ends = (first, last) if first.startswith(LOWER) else None
        self.rows = 0
        self._members = 0
        self._empty = 0
        # Halves, because a sum or a difference of ends may exceed double precision
        self._half_width = np.inf  # the least
        self._leftmost = np.inf  # the least centre
        self._rightmost = -np.inf  # the largest centre

    def counted(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Record batches, counted while they pass."""
        for batch in batches:
            self.rows += batch.num_rows
            if self._sizes is not None:
                sizes = to_numpy(batch.column(self._sizes))
                self._members += int(sizes.sum())
                self._empty += int((sizes == 0).sum())
            if self._ends is not None and batch.num_rows:
                low, high = (to_numpy(batch.column(name)) / 2 for name in self._ends)
                with np.errstate(invalid="ignore"):
                    self._half_width = float(np.fmin(self._half_width, (high - low).min()))
                    self._leftmost = float(np.fmin(self._leftmost, (high + low).min()))
                    self._rightmost = float(np.fmax(self._rightmost, (high + low).max()))
            yield batch

    def summary(self) -> Summary:
        """Rows, mean set size and empty sets; warns of uninformative intervals."""
        if self._ends is not None and self.rows and 2 * self._half_width < _EXACT * (self._rightmost - self._leftmost):
            warn_of_widths(self.rows, 2 * self._half_width, self._leftmost, self._rightmost)
        if self._sizes is None or not self.rows:
            return {"rows": self.rows}
        return {"rows": self.rows, "mean_set_size": self._members / self.rows, "empty_sets": self._empty}
