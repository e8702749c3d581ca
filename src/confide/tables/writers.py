"""Predictions of a table, in batches, and their summary."""

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from confide.sets import warn_of_widths
from confide.tables.arrow import ColumnRef, to_numpy
from confide.tables.failures import ColumnError
from confide.tables.number_columns import Reasons
from confide.tables.predictors import LOWER, SIZE, Predictor
from confide.tables.records import BatchReader, checked_batches
from confide.tables.table import Progress, Table


@dataclass(frozen=True)
class Predictions:
    """The kept columns of a table with predictions.

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
        reader = self.reader(as_text=as_text)
        checked = checked_batches(self.table, reader, progress, keep=kept, skips=True, shows_types=True)
        with closing(checked) as batches:
            for batch, added in batches:
                columns = [batch.column(read.alias) for read in kept]
                yield pa.RecordBatch.from_arrays([*columns, *added], names=self.names)

    def reader(self, *, as_text: bool) -> BatchReader:
        """The function from a batch to the added columns."""
        return _AllPredictors(self.predictors, as_text)

    @property
    def names(self) -> list[str]:
        """The names of the columns that are kept and of those that are added."""
        return [*self.keep, *(name for one in self.predictors for name in one.adds)]

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
        self._halves = np.full(3, np.inf)

    def counted(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Record batches, counted while they pass."""
        for batch in batches:
            self.rows += batch.num_rows
            if self._proof is not None:
                sizes = to_numpy(batch.column(self._proof))
                self._members, self._empty = self._members + int(sizes.sum()), self._empty + int((sizes == 0).sum())
            if self._ends is not None and batch.num_rows:
                low, high = (to_numpy(batch.column(name)) / 2 for name in self._ends)
                with np.errstate(invalid="ignore"):
                    width, centre = high - low, high + low
                self._halves = np.fmin(self._halves, [width.min(), centre.min(), -centre.max()])
            yield batch

    def summary(self) -> Summary:
        """Rows, mean set size and empty sets."""
        sizes = None if self._proof is None else (self._members, self._empty)
        return _summary(self.rows, sizes, None if self._ends is None else tuple((self._halves * [1, 1, -1]).tolist()))


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
