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
    """The columns of a table that are kept, with predictions."""

    table: Table
    keep: tuple[str, ...]
    predictors: tuple[Predictor, ...]

    def batches(self, *, as_text: bool, progress: Progress) -> Generator[Any]:
        """Record batches of all columns; with `as_text`, texts that fit into CSV cells.

        A table without rows gives one batch without rows. At the end `InputError` reports rows without a prediction.
        """
        import pyarrow as pa

        for name in self.keep if as_text else ():
            self.table.check_cell(name)
        reads = [ColumnRef(name, "text" if as_text else "value") for name in self.keep]
        reader = self.reader(as_text=as_text)
        checked = checked_batches(self.table, reader, progress, keep=reads, skips=True, shows_types=True)
        with closing(checked) as batches:
            for batch, added in batches:
                columns = [batch.column(read.alias) for read in reads]
                yield pa.RecordBatch.from_arrays([*columns, *added], names=self.names)

    def reader(self, *, as_text: bool) -> BatchReader:
        """The function from a batch to the added columns."""
        return _AllPredictors(self.predictors, as_text)

    @property
    def names(self) -> list[str]:
        """The names of the columns that are kept and of those that are added."""
        return [*self.keep, *(name for predictor in self.predictors for name in predictor.adds)]

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
        return tuple(dict.fromkeys(read for predictor in self.predictors for read in predictor.reads))

    @property
    def width(self) -> int:
        return self.predictors[0].width

    @property
    def requirements(self) -> list[str]:
        return self.predictors[0].requirements

    def read(self, batch: Any) -> tuple[list[Any], Reasons]:
        predictions = [predictor.read(batch, as_text=self.as_text) for predictor in self.predictors]
        return [column for columns, _ in predictions for column in columns], predictions[0][1]

    def column_errors(self, batch: Any) -> list[ColumnError]:
        return self.predictors[0].column_errors(batch)


# Of written predictions: `rows`, and for sets, if there are any, `mean_set_size` and `empty_sets`.
Summary: TypeAlias = dict[str, float]


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
            # Halves, because a sum or a difference of ends may exceed double precision
            if self._ends is not None and batch.num_rows:
                low, high = (to_numpy(batch.column(name)) / 2 for name in self._ends)
                with np.errstate(invalid="ignore"):
                    width, centre = high - low, high + low
                self._halves = np.fmin(self._halves, [width.min(), centre.min(), -centre.max()])
            yield batch

    def summary(self) -> Summary:
        """Rows, mean set size and empty sets; warns of uninformative intervals."""
        if self._ends is not None and self.rows:
            half, least, most = (self._halves * [1, 1, -1]).tolist()
            if 2 * half < _EXACT * (most - least):
                warn_of_widths(self.rows, 2 * half, least, most)
        if self._proof is None or not self.rows:
            return {"rows": self.rows}
        return {"rows": self.rows, "mean_set_size": self._members / self.rows, "empty_sets": self._empty}


# Centres are computed from ends. If the ends are this many times farther apart, centres differ only by rounding.
_EXACT = 1e14
