"""Predictions of a table, in batches or written by its engine, and their summary."""

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from confide.errors import InputError
from confide.sets import warn_of_widths
from confide.tables.arrow import ColumnRef, to_numpy
from confide.tables.failures import ColumnError
from confide.tables.predictors import LOWER, SIZE, Predictor
from confide.tables.readers import Reasons
from confide.tables.records import checked_batches
from confide.tables.table import Progress, Table


@dataclass(frozen=True)
class Predictions:
    """The kept columns of a table with predictions, written in batches or by its engine.

    Parameters
    ----------
    table
        The table that is read.
    keep
        The columns that are kept.
    predictors
        The predictors of the added columns.
    """

    table: Table
    keep: tuple[str, ...]
    predictors: tuple[Predictor, ...]

    def batches(self, *, as_text: bool, progress: Progress) -> Generator[Any]:
        """Record batches of all columns; with `as_text`, texts that fit into CSV cells.

        A table without rows gives one batch without rows.

        Raises
        ------
        InputError
            At the end, if rows have no prediction.
        """
        import pyarrow as pa

        kept = [ColumnRef(name, "text" if as_text else "value") for name in self.keep]
        names = [*self.keep, *(name for one in self.predictors for name in one.adds)]
        reader = _AllPredictors(self.predictors, as_text)
        checked = checked_batches(self.table, reader, progress, keep=kept, skips=True, shows_types=True)
        with closing(checked) as batches:
            for batch, added in batches:
                columns = [batch.column(read.alias) for read in kept]
                yield pa.RecordBatch.from_arrays([*columns, *added], names=names)

    @property
    def proof(self) -> str:
        """The column that is null if a row has no prediction."""
        return self.predictors[0].adds[-1]

    @property
    def counts_members(self) -> bool:
        """Whether the sizes of sets are summed; only for one level."""
        return self.proof == SIZE

    @property
    def ends(self) -> tuple[str, str] | None:
        """The columns of the interval ends of the first level; None for sets."""
        lower, upper = self.predictors[0].adds
        return (lower, upper) if lower.startswith(LOWER) else None


@dataclass(frozen=True, eq=False)
class _AllPredictors:
    """All predictors of a release; each finds the same errors in a record."""

    predictors: tuple[Predictor, ...]
    as_text: bool

    @property
    def reads(self) -> tuple[ColumnRef, ...]:
        return tuple(dict.fromkeys(read for one in self.predictors for read in one.reads))

    @property
    def width(self) -> int:
        return self.predictors[0].width

    @property
    def requirements(self) -> list[str]:
        return self.predictors[0].requirements

    def read(self, batch: Any) -> tuple[list[Any], Reasons]:
        made = [one.read(batch, as_text=self.as_text) for one in self.predictors]
        return [column for columns, _ in made for column in columns], made[0][1]

    def column_errors(self, batch: Any) -> list[ColumnError]:
        return self.predictors[0].column_errors(batch)


Summary: TypeAlias = dict[str, float]
"""Summary of written predictions: `rows`, and for sets, if there are any, `mean_set_size` and `empty_sets`."""


class PredictionCounts:
    """Count rows and the members of sets batch by batch; for intervals, keep their widths and positions."""

    def __init__(self, predictions: Predictions) -> None:
        self._proof = predictions.proof if predictions.counts_members else None
        self._ends = predictions.ends
        self.rows = self._members = self._empty = 0
        self._halves = np.array([np.inf, np.inf, -np.inf])

    def add(self, batch: Any) -> None:
        """Count a `pyarrow.RecordBatch`."""
        self.rows += batch.num_rows
        if self._proof is not None:
            sizes = to_numpy(batch.column(self._proof))
            self._members, self._empty = self._members + int(sizes.sum()), self._empty + int((sizes == 0).sum())
        if self._ends is not None and batch.num_rows:
            low, high = (to_numpy(batch.column(name)) / 2 for name in self._ends)
            with np.errstate(invalid="ignore"):
                width, centre = high - low, high + low
            width_so_far, least, most = self._halves
            self._halves = np.array([min(width_so_far, width.min()), min(least, centre.min()), max(most, centre.max())])

    def summary(self) -> Summary:
        """Rows, mean set size and empty sets."""
        sizes = None if self._proof is None else (self._members, self._empty)
        return _summary(self.rows, sizes, None if self._ends is None else tuple(self._halves.tolist()))


def checked_summary(row: dict[str, Any], predictions: Predictions) -> Summary:
    """The summary of predictions that an engine wrote, from a row of its counts.

    Rows without a prediction raise `InputError` with the number of such rows. For intervals the row has half of the
    smallest width, and the smallest and the largest centre.
    """
    rows, missing = int(row["rows"]), int(row["missing"] or 0)
    if missing:
        wanted = "; ".join(predictions.predictors[0].requirements)
        raise InputError("table", f"{wanted} in every row", got=f"{missing} of {rows} that do not")
    sizes = (int(row["members"] or 0), int(row["empty"] or 0)) if "members" in row else None
    return _summary(rows, sizes, None if predictions.ends is None else (row["half"], row["least"], row["most"]))


_EXACT = 1e14
"""Centres are computed from ends. If the ends are this many times farther apart, centres differ only by rounding."""


def _summary(rows: int, sizes: tuple[int, int] | None, halves: Any) -> Summary:
    """The members of sets as a mean, if there are rows; warns of uninformative intervals."""
    if rows and halves is not None and None not in halves:
        half, least, most = halves
        if 2 * half < _EXACT * (most - least):
            warn_of_widths(rows, 2 * half, least, most)
    if not rows or sizes is None:
        return {"rows": rows}
    members, empty = sizes
    return {"rows": rows, "mean_set_size": members / rows, "empty_sets": empty}
