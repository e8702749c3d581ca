"""The rows of a table with their predictions, in batches; whoever writes them reads them here."""

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from confide.tables.findings import Findings
from confide.tables.predictors import LOWER, SIZE, Predictor
from confide.tables.progress import Progress
from confide.tables.stream_counts import rows_per_batch
from confide.tables.table import Read, Table


@dataclass(frozen=True)
class Predictions:
    """The kept columns of a table with predictions, to be written in batches or by its engine.

    Parameters
    ----------
    table
        What is read.
    keep
        The columns that are kept.
    predictors
        What is added.
    """

    table: Table
    keep: tuple[str, ...]
    predictors: tuple[Predictor, ...]

    def batches(self, *, as_text: bool, progress: Progress) -> Generator[Any]:
        """Record batches of all columns; texts that fit into CSV cells with `as_text`.

        Of a table without rows it is one batch without rows.

        Raises
        ------
        InputError
            At the end, if rows have no prediction.
        """
        kept = [Read(name, "text" if as_text else "value") for name in self.keep]
        reads = tuple(dict.fromkeys([*kept, *(read for one in self.predictors for read in one.reads)]))
        findings, start = Findings(), 0
        with closing(self.table.batches(reads, rows_per_batch(self._width + len(kept)))) as batches:
            for batch in batches:
                if not batch.num_rows:
                    empty = batch
                    continue
                made, wrong = self._predicted(batch, kept, as_text=as_text)
                if wrong is not None:
                    findings.note(wrong, start if self.table.ordered else None, self.predictors[0].faults(batch))
                start += batch.num_rows
                progress(batch.num_rows)
                if not findings:
                    yield made
        findings.refuse(self.predictors[0].requirements, self.table.rows, skips=True)
        if not start:
            yield self._predicted(empty, kept, as_text=as_text)[0]

    def _predicted(self, batch: Any, kept: list[Read], *, as_text: bool) -> tuple[Any, Any]:
        """A batch with its predictions, and what is wrong with its records, which every predictor finds alike."""
        import pyarrow as pa

        found = [predictor.columns(batch, as_text=as_text) for predictor in self.predictors]
        columns = [*(batch.column(read.alias) for read in kept), *(column for added, _ in found for column in added)]
        names = [*self.keep, *(name for predictor in self.predictors for name in predictor.adds)]
        return pa.RecordBatch.from_arrays(columns, names=names), found[0][1]

    @property
    def proof(self) -> str:
        """The column that is null where a row has no prediction."""
        return self.predictors[0].adds[-1]

    @property
    def counts_members(self) -> bool:
        """Whether the sizes of sets are summed; of one level only."""
        return self.proof == SIZE

    @property
    def ends(self) -> tuple[str, str] | None:
        """The columns of the ends of intervals, of the first level; None for sets."""
        lower, upper = self.predictors[0].adds
        return (lower, upper) if lower.startswith(LOWER) else None

    @property
    def _width(self) -> int:
        return max(
            len(self.predictors[0].reads), getattr(getattr(self.predictors[0], "probabilities", None), "width", 1)
        )
