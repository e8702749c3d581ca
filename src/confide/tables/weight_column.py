"""A column with the public weight of each record, and the whole number that it stands for."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.planning import RecordWeights
from confide.tables.arrow_types import in_words
from confide.tables.batch_columns import number_column
from confide.tables.expressions import exact, number
from confide.tables.findings import Fault
from confide.tables.table import Read, Table


@dataclass(frozen=True)
class WeightColumn:
    """A column of weights from 0 to a public bound.

    Parameters
    ----------
    column
        Its name.
    weights
        The bound, and the steps in which weights are counted.
    """

    column: str
    weights: RecordWeights

    @classmethod
    def of(cls, table: Table, column: str | None, weights: RecordWeights) -> "WeightColumn":
        """The column of a table.

        Raises
        ------
        InputError
            If there is no such column, or it holds no numbers.
        """
        assert column is not None  # it is given together with the bound of the weights
        kind = table.type_of(column)
        if not table.holds_numbers(column):
            raise InputError(f"column {column!r} holds {in_words(kind)}; weights are numbers; {table.existing()}")
        return cls(column, weights)

    @property
    def read(self) -> Read:
        """How the column is read."""
        return Read(self.column)

    @property
    def requirement(self) -> str:
        """What every record has to fulfil, for messages."""
        return f"column {self.column!r} must hold a weight from 0 to {self.weights.bound:g} (not missing, not NaN)"

    def whole(self, batch: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The whole weight of each record, int64, shape (n,), and which records have none (they weigh 0 here)."""
        column = number_column(batch, self.column).astype(np.float64)
        wrong = ~((column >= 0) & (column <= self.weights.bound))
        return self.weights.whole(np.where(wrong, 0.0, column)), wrong

    def fault(self, batch: Any, finding: int) -> Fault:
        """The records of a batch that have no usable weight."""
        missing = bool(np.isnan(number_column(batch, self.column)).any())
        return Fault(finding, self.requirement, self.whole(batch)[1], missing)

    def expressions(self, table: Any) -> tuple[Any, Any]:
        """The same in terms of an Ibis table: the whole weight, and the records that have none."""
        column = exact(table[self.column])
        usable = ((column >= number(0.0)) & (column <= number(self.weights.bound))).fill_null(False)
        kept = usable.ifelse(column, number(0.0))
        return (kept * number(float(self.weights.scale)) + number(0.5)).floor().cast("int64"), ~usable
