"""What is told of written predictions: how many rows there are, and for sets their mean size."""

from typing import Any

from confide.errors import InputError


class Tally:
    """Counts rows, and those without a prediction, as batches go by.

    Parameters
    ----------
    proof
        The column that is null where a row has no prediction; `set_size`, whose members are counted, or `lower`.

    Examples
    --------
    >>> import pyarrow
    >>> tally = Tally("set_size")
    >>> tally.add(pyarrow.record_batch({"set_size": pyarrow.array([1, 2], pyarrow.int32())}))
    >>> tally.figures()
    {'rows': 2, 'mean_set_size': 1.5}
    """

    def __init__(self, proof: str) -> None:
        self._proof = proof
        self.rows = self.missing = self._members = 0

    def add(self, batch: Any) -> None:
        """Count a `pyarrow.RecordBatch`."""
        column = batch.column(self._proof)
        self.rows, self.missing = self.rows + batch.num_rows, self.missing + column.null_count
        if self._proof == "set_size" and not column.null_count:
            self._members += int(column.to_numpy(zero_copy_only=False).sum())

    def figures(self) -> dict[str, float]:
        """Rows and mean set size; rows without a prediction are refused with their number."""
        return figures(self.rows, self.missing, self._members if self._proof == "set_size" else None)


def figures(rows: int, missing: int, members: int | None) -> dict[str, float]:
    """The same from counts that the engine made."""
    if missing:
        raise InputError(
            f"every row must have probabilities between 0 and 1, or finite predictions, and a known group; {missing} "
            f"of {rows} rows do not"
        )
    if not rows:
        raise InputError("table must have rows; it is empty")
    return {"rows": rows} | ({} if members is None else {"mean_set_size": members / rows})
