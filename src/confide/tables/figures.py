"""What is told of written predictions: how many rows there are, and how large sets are on average."""

from typing import Any, TypeAlias

from confide.errors import InputError
from confide.tables.predictions import Predictions

Figures: TypeAlias = dict[str, float]
"""What is told of written predictions: `rows`, and for sets, if there are any, `mean_set_size`."""


class Tally:
    """Counts rows, and the members of sets, as batches go by."""

    def __init__(self, predictions: Predictions) -> None:
        self._proof = predictions.proof if predictions.counts_members else None
        self.rows = self._members = 0

    def add(self, batch: Any) -> None:
        """Count a `pyarrow.RecordBatch`."""
        self.rows += batch.num_rows
        if self._proof is not None:
            self._members += int(batch.column(self._proof).to_numpy(zero_copy_only=False).sum())

    def figures(self) -> Figures:
        """Rows and mean set size."""
        return _figures(self.rows, None if self._proof is None else self._members)


def figures_of(predictions: Predictions, rows: int, missing: int, members: int | None) -> Figures:
    """The same from counts that an engine made; rows without a prediction are refused with their number."""
    if missing:
        raise InputError(
            f"{'; '.join(predictions.predictors[0].requirements)} in every row; {missing} of {rows} do not"
        )
    return _figures(rows, members)


def _figures(rows: int, members: int | None) -> Figures:
    """The members of sets as a mean, which no rows do not have."""
    return {"rows": rows} | ({"mean_set_size": members / rows} if rows and members is not None else {})
