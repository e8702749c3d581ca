"""What is told of written predictions: how many rows there are, and how large sets are on average."""

from typing import Any, TypeAlias

import numpy as np

from confide.errors import InputError
from confide.sets import warn_of_widths
from confide.tables.predictions import Predictions

Figures: TypeAlias = dict[str, float]
"""What is told of written predictions: `rows`, and for sets, if there are any, `mean_set_size`."""


class Tally:
    """Counts rows, and the members of sets, as batches go by; of intervals it keeps how wide they are, and where."""

    def __init__(self, predictions: Predictions) -> None:
        self._proof = predictions.proof if predictions.counts_members else None
        self._ends = predictions.ends
        self.rows = self._members = 0
        self._halves = np.array([np.inf, np.inf, -np.inf])

    def add(self, batch: Any) -> None:
        """Count a `pyarrow.RecordBatch`."""
        self.rows += batch.num_rows
        if self._proof is not None:
            self._members += int(batch.column(self._proof).to_numpy(zero_copy_only=False).sum())
        if self._ends is not None and batch.num_rows:
            low, high = (batch.column(name).to_numpy(zero_copy_only=False) / 2 for name in self._ends)
            with np.errstate(invalid="ignore"):
                width, centre = high - low, high + low
            width_so_far, least, most = self._halves
            self._halves = np.array([min(width_so_far, width.min()), min(least, centre.min()), max(most, centre.max())])

    def figures(self) -> Figures:
        """Rows and mean set size."""
        members = None if self._proof is None else self._members
        return _figures(self.rows, members, None if self._ends is None else tuple(self._halves.tolist()))


def figures_of(predictions: Predictions, rows: int, missing: int, members: int | None, halves: Any = None) -> Figures:
    """The same from counts that an engine made; rows without a prediction are refused with their number.

    `halves` are, of intervals, half the least width, and the least and the largest centre; None where there are none.
    """
    if missing:
        raise InputError(
            f"{'; '.join(predictions.predictors[0].requirements)} in every row; {missing} of {rows} do not"
        )
    return _figures(rows, members, halves)


_EXACT = 1e14
"""Centres are computed from ends: where those are so many times as far apart, rounding is all that they differ by."""


def _figures(rows: int, members: int | None, halves: Any) -> Figures:
    """The members of sets as a mean, which no rows do not have; intervals that tell nothing are warned of."""
    if rows and halves is not None and None not in halves:
        half, least, most = halves
        if 2 * half < _EXACT * (most - least):
            warn_of_widths(rows, 2 * half, least, most)
    return {"rows": rows} | ({"mean_set_size": members / rows} if rows and members is not None else {})
