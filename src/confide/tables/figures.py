"""What is told of written predictions: how many rows there are, how large sets are on average, how many are empty."""

from typing import Any, TypeAlias

from confide.errors import InputError
from confide.tables.predictions import Predictions

Figures: TypeAlias = dict[str, float]
"""What is told of written predictions: `rows`, and for sets, if there are any, `mean_set_size` and `empty_sets`."""


class Tally:
    """Counts rows, and the members of sets, as batches go by."""

    def __init__(self, predictions: Predictions) -> None:
        self._proof = predictions.proof if predictions.counts_members else None
        self.rows = self._members = self._empty = 0

    def add(self, batch: Any) -> None:
        """Count a `pyarrow.RecordBatch`."""
        self.rows += batch.num_rows
        if self._proof is not None:
            sizes = batch.column(self._proof).to_numpy(zero_copy_only=False)
            self._members, self._empty = self._members + int(sizes.sum()), self._empty + int((sizes == 0).sum())

    def figures(self) -> Figures:
        """Rows, mean set size and empty sets."""
        return _figures(self.rows, None if self._proof is None else (self._members, self._empty))


def figures_of(predictions: Predictions, rows: int, missing: int, sizes: tuple[int, int] | None) -> Figures:
    """The same from counts that an engine made, of members of sets and of empty sets.

    Rows without a prediction are refused with their number.
    """
    if missing:
        raise InputError(
            f"{'; '.join(predictions.predictors[0].requirements)} in every row; {missing} of {rows} do not"
        )
    return _figures(rows, sizes)


def _figures(rows: int, sizes: tuple[int, int] | None) -> Figures:
    """The members of sets as a mean, which no rows do not have."""
    if not rows or sizes is None:
        return {"rows": rows}
    members, empty = sizes
    return {"rows": rows, "mean_set_size": members / rows, "empty_sets": empty}
