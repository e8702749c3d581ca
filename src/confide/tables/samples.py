"""Numbers and scores of tables that are kept whole: public samples for plans, and outputs of a model."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.core import Pilot
from confide.errors import InputError
from confide.evaluation import LabelledRecords
from confide.support import require
from confide.tables.arrow import ColumnRef, number_column
from confide.tables.columns import ColumnSpec
from confide.tables.number_columns import Reasons
from confide.tables.open_table import as_open_table
from confide.tables.record_columns import RecordColumns, checked_batches
from confide.tables.row_errors import ColumnError
from confide.tables.table import Progress, Table, no_progress


@dataclass(frozen=True)
class JoinedColumns:
    """Several scores of each record, from one pass, so that all have the same records in the same order."""

    scores: tuple[RecordColumns, ...]

    @property
    def reads(self) -> tuple[ColumnRef, ...]:
        """The columns, each once."""
        return tuple(dict.fromkeys(read for score in self.scores for read in score.reads))

    @property
    def requirements(self) -> list[str]:
        """The requirements on every record, in words."""
        return [requirement for score in self.scores for requirement in score.requirements]

    @property
    def _places(self) -> list[tuple[int, RecordColumns]]:
        """Each score's columns, with the number of requirements before theirs."""
        before = accumulate((len(score.requirements) for score in self.scores), initial=0)
        return list(zip(before, self.scores, strict=False))

    def read(self, batch: Any) -> tuple[list[LabelledRecords], Reasons]:
        """The input of each score, and the reasons of unusable records."""
        inputs = []
        reasons = np.zeros(batch.num_rows, np.int16)
        for before, score in self._places:
            records, wrong = score.read(batch)
            inputs.append(records)
            reasons = np.where((reasons == 0) & (wrong > 0), before + wrong.astype(np.int16), reasons)
        return inputs, reasons

    def column_errors(self, batch: Any) -> list[ColumnError]:
        """The errors column by column, for a batch with errors."""
        return [
            replace(error, reason=before + error.reason)
            for before, score in self._places
            for error in score.column_errors(batch)
        ]


def read_numbers(table: Table) -> NDArray[np.float64]:
    """All columns of an open table of numbers, such as outputs of a model: float64, shape (rows, columns).

    Raises
    ------
    InputError
        If a column holds something else, or lacks values.
    """
    for name in table.columns:
        table.check_number(name)
    with closing(table.batches([ColumnRef(name) for name in table.columns], 2**14)) as batches:
        rows = [np.column_stack([number_column(batch, name) for name in table.columns]) for batch in batches]
    numbers = np.concatenate(rows).astype(np.float64)
    for name, others in zip(table.columns, np.isnan(numbers).sum(axis=0), strict=True):
        require("column", not others, f"{name!r} must hold numbers", got=f"{others:,} missing or other values")
    return numbers


def read_pilot(
    source: Any, what: ColumnSpec, *, skip_incomplete: bool = False, progress: Progress = no_progress
) -> Pilot:
    """Read a PUBLIC sample for a plan. Never pass private records, because a plan reveals properties of the sample.

    Parameters
    ----------
    source
        A source that `open_table` opens, or its result.
    what
        The columns: scores; probabilities and labels, for which the plan also reports set sizes; or predictions and
        targets.
    skip_incomplete, progress
        As in `evaluate_table`.

    Raises
    ------
    InputError
        If rows cannot be used: how many, and why; and for losses and two sides, which have no one score.

    Examples
    --------
    >>> import pyarrow
    >>> from confide.tables import ScoreColumn
    >>> read_pilot(pyarrow.table({"s": [0.1, 0.5, 0.99]}), ScoreColumn("s", "lac")).scores
    array([0.1 , 0.5 , 0.99])
    """
    if "score" not in what._requested:
        raise InputError("pilot", "must have one score per record: no losses, and no scores of two sides")
    with as_open_table(source) as table:
        (sample,) = read_scores(table, [what], skip_incomplete=skip_incomplete, progress=progress)
        table.check_rows(len(sample["scores"]))
    width = float(sample["widths"].mean()) if "widths" in sample else None
    return Pilot(sample["scores"], sample.get("class_scores"), width, what.kind.name)


def read_scores(
    source: Any, specs: Sequence[ColumnSpec], *, skip_incomplete: bool = False, progress: Progress = no_progress
) -> list[dict[str, NDArray[Any]]]:
    """Read the scores of the same records from several column specifications, in one pass over the rows. **Private**.

    Each result has the arrays of all records by their names in `ColumnSpec._scores_read`: `scores`, shape (n,), of
    classes also `class_scores`, shape (n, K), and of CQR the `widths` of predicted intervals, shape (n,).

    With `skip_incomplete` a record counts if no column that is read lacks a value. A table without records gives empty
    arrays: the existence of private records is secret.
    """
    with as_open_table(source) as table:
        # Join the columns of all scores, each read once
        wholes = dict.fromkeys(what._whole for what in specs)
        readers = {what: reader for what in wholes for reader in what.readers(table)}
        joined = JoinedColumns(tuple(map(RecordColumns, readers.values())))
        rows = table.drop_missing(joined.reads) if skip_incomplete else table
        checked = checked_batches(rows, joined, progress, shows_types=True)
        read: list[list[dict[str, NDArray[Any]]]] = [[] for _ in specs]
        with closing(checked) as batches:
            for _, inputs in batches:
                records = dict(zip(readers, inputs, strict=True))
                for what, scores in zip(specs, read, strict=True):
                    scores.append(what._scores_read(readers[what._whole], records[what._whole]))
    return [{name: np.concatenate([batch[name] for batch in scores]) for name in scores[0]} for scores in read]
