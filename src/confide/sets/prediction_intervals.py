"""Prediction intervals as a value: a pair of arrays, lower and upper ends, that knows what it is."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_vector
from confide.errors import InputError
from confide.support import html_table, needs_extra

if TYPE_CHECKING:
    import pandas

MOST_SHOWN = 10


class PredictionIntervals(NamedTuple):
    """One interval per record; `lower, upper = intervals` unpacks the ends.

    Parameters
    ----------
    lower, upper
        float64, shape (n,): both ends belong to the interval, which is empty where lower > upper.

    Examples
    --------
    >>> intervals = PredictionIntervals(np.array([0.0, 1.0]), np.array([2.0, 4.0]))
    >>> intervals
    PredictionIntervals(n=2, mean width 2.5, empty 0, infinite 0)
    >>> intervals.contains([2.0, 0.5])
    array([ True, False])
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]

    @property
    def widths(self) -> NDArray[np.float64]:
        """Upper minus lower end, shape (n,); 0 for an empty interval."""
        with np.errstate(over="ignore"):
            return np.maximum(self.upper - self.lower, 0.0)

    def contains(self, targets: ArrayLike) -> NDArray[np.bool_]:
        """Whether each record's target lies in its interval: bool, shape (n,).

        Raises
        ------
        InputError
            If there is not one target per interval.
        """
        y = as_vector("targets", targets)
        if len(y) != len(self.lower):
            raise InputError(f"targets must have one entry per interval; found {len(y)} for {len(self.lower)}")
        return np.asarray((self.lower <= y) & (y <= self.upper))

    def to_pandas(self, index: Any = None) -> "pandas.DataFrame":
        """A data frame with the columns `lower` and `upper`; `index` names the records.

        Examples
        --------
        >>> PredictionIntervals(np.array([0.0]), np.array([2.0])).to_pandas()
           lower  upper
        0    0.0    2.0
        """
        with needs_extra("to_pandas", "pandas"):
            import pandas as pd
        return pd.DataFrame({"lower": self.lower, "upper": self.upper}, index=index)

    def __repr__(self) -> str:
        n, widths = len(self.lower), self.widths
        mean = f"{widths.mean():.4g}" if n else "undefined"
        empty, infinite = int((self.lower > self.upper).sum()), int(np.isinf(widths).sum())
        return f"PredictionIntervals(n={n}, mean width {mean}, empty {empty}, infinite {infinite})"

    def _repr_html_(self) -> str:
        """The first intervals as a table, for notebooks."""
        ends = zip(self.lower[:MOST_SHOWN].tolist(), self.upper[:MOST_SHOWN].tolist(), strict=True)
        rows = [(i, f"{low:.6g}", f"{high:.6g}") for i, (low, high) in enumerate(ends)]
        return html_table(repr(self), ("record", "lower", "upper"), rows)
