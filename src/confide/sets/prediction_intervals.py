"""Prediction intervals as a value: a pair of arrays, lower and upper ends, that knows what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self, SupportsIndex, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_vector, frame_of, refuse_other_rows
from confide.errors import InputError
from confide.releases import Release
from confide.sets.coverage import CoverageEstimate, promise_notes, share_covered
from confide.sets.drawn_intervals import draw_intervals
from confide.sets.prediction_sets import positions_of
from confide.sets.promise import warn_of_shortfall
from confide.support import Level, html_table, needs_extra

if TYPE_CHECKING:
    import pandas

MOST_SHOWN = 10
_CHOSEN = "intervals must be chosen by a slice, or a vector of positions or booleans"


class _Ends(NamedTuple):
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


class PredictionIntervals(_Ends):
    """One interval per record; `lower, upper = intervals` unpacks the ends.

    It is a pair, whose two items are the ends; a slice, positions or booleans choose records and give intervals again.

    Parameters
    ----------
    lower, upper
        float64, shape (n,): both ends belong to the interval, which is empty where lower > upper.
    promised
        The coverage that the calibration promises, at least, if the intervals come from one; no item of the pair.
    calibration
        The calibration that they come from, as in `PredictionSets`; no item of the pair either.
    index
        The index of the pandas object that they were made from; targets have to agree with it. No item of the pair.

    Examples
    --------
    >>> intervals = PredictionIntervals(np.array([0.0, 1.0]), np.array([2.0, 4.0]))
    >>> intervals
    PredictionIntervals(n=2, mean width 2.5, empty 0, infinite 0)
    >>> intervals.contains([2.0, 0.5])
    array([ True, False])
    >>> intervals[1:].widths, intervals[[False, True]].lower
    (array([3.]), array([1.]))
    """

    _promised: float | None = None
    _calibration: Release | None = None
    _index: Any = None

    def __new__(
        cls,
        lower: NDArray[np.float64],
        upper: NDArray[np.float64],
        promised: float | None = None,
        calibration: Release | None = None,
        index: Any = None,
    ) -> Self:
        """The pair; what was promised, and by what, and the index lie beside it."""
        pair = super().__new__(cls, lower, upper)
        pair._promised, pair._calibration, pair._index = promised, calibration, index
        return pair

    def __getstate__(self) -> dict[str, Any]:
        """What copies and pickles keep besides the pair: not the release."""
        return {**vars(self), "_calibration": None}

    @property
    def calibration(self) -> Release | None:
        """The calibration that they come from, if it is known; copies and pickles do not hold it."""
        return self._calibration

    @property
    def promised(self) -> float | None:
        """The coverage that the calibration promises, at least; None of intervals that come from none."""
        return self._promised

    @property
    def index(self) -> Any:
        """The index of the pandas object that the intervals were made from; None of intervals without one."""
        return self._index

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
        y = self._one_each("targets", targets)
        return np.asarray((self.lower <= y) & (y <= self.upper))

    def coverage(self, targets: ArrayLike, confidence: Level = 0.95) -> CoverageEstimate:
        """The share of records whose target is in their interval, with its exact interval; targets of shape (n,).

        Warns
        -----
        CoverageWarning
            If it is surely less than the calibration promises, and luck in calibrating does not explain that.

        Examples
        --------
        >>> PredictionIntervals(np.array([0.0, 1.0]), np.array([2.0, 4.0])).coverage([2.0, 0.5]).value
        0.5
        """
        inside = self.contains(targets)
        found = share_covered(inside, confidence)
        warn_of_shortfall(self.calibration, int(inside.sum()), len(inside))
        return found

    def plot(
        self,
        targets: ArrayLike | None = None,
        *,
        along: ArrayLike | None = None,
        level: float | None = None,
        name: str | None = None,
        ax: Any = None,
    ) -> Any:
        """The intervals on matplotlib axes, with targets as dots and those outside as crosses. Returns the axes.

        This is **not private**: every record is drawn as it is.

        Parameters
        ----------
        targets
            True values, shape (n,).
        along
            Where each interval lies, shape (n,): the predictions, or a feature; by default the middle of the interval.
        level
            The coverage that was promised, for the title; by default what the intervals know of it.
        name
            What they lie along; by default "prediction", or "middle of the interval".
        ax
            Matplotlib axes to draw on; by default those of a new figure.

        Raises
        ------
        InputError
            If there are no intervals, or not one number for each.
        """
        if not len(self.lower):
            raise InputError("intervals must be at least one for a picture; found none")
        if along is None:
            with np.errstate(invalid="ignore"):
                x = self.lower / 2 + self.upper / 2
        else:
            x = self._one_each("along", along)
        y = None if targets is None else self._one_each("targets", targets)
        named = name or ("middle of the interval" if along is None else "prediction")
        level = self.promised if level is None else level
        return draw_intervals(x, self.lower, self.upper, y, level=level, name=named, ax=ax)

    def to_frame(self, like: Any = "pandas") -> Any:
        """A data frame with the columns `lower` and `upper`, of the kind of `like`; see `PredictionSets.to_frame`.

        Examples
        --------
        >>> PredictionIntervals(np.array([0.0]), np.array([2.0])).to_frame("pyarrow").column_names
        ['lower', 'upper']
        """
        return frame_of([("lower", self.lower), ("upper", self.upper)], like, self.index)

    @overload
    def __getitem__(self, which: SupportsIndex) -> NDArray[np.float64]: ...

    @overload
    def __getitem__(self, which: slice | ArrayLike) -> PredictionIntervals: ...

    def __getitem__(self, which: Any) -> NDArray[np.float64] | PredictionIntervals:
        """The lower or upper ends, [0] or [1]; or the intervals of some records: a slice, positions, or booleans."""
        if isinstance(which, SupportsIndex) and np.ndim(which) == 0:  # type: ignore[arg-type]
            end: NDArray[np.float64] = tuple.__getitem__(self, which)
            return end
        chosen = positions_of(_CHOSEN, which)
        calibration = self.calibration if isinstance(which, slice) else None
        index = None if self.index is None else self.index[chosen]
        return PredictionIntervals(self.lower[chosen], self.upper[chosen], self.promised, calibration, index)

    def _one_each(self, name: str, values: ArrayLike) -> NDArray[np.float64]:
        refuse_other_rows(intervals=self, **{name: values})
        found = as_vector(name, values, empty=True)
        if len(found) != len(self.lower):
            raise InputError(f"{name} must have one entry per interval; found {len(found)} for {len(self.lower)}")
        return found

    def to_pandas(self, index: Any = None) -> pandas.DataFrame:
        """A data frame with the columns `lower` and `upper`; `index` names the records, by default their own.

        Examples
        --------
        >>> PredictionIntervals(np.array([0.0]), np.array([2.0])).to_pandas()
           lower  upper
        0    0.0    2.0
        """
        with needs_extra("to_pandas", "pandas"):
            import pandas as pd
        return pd.DataFrame({"lower": self.lower, "upper": self.upper}, index=self.index if index is None else index)

    def __repr__(self) -> str:
        n, widths = len(self.lower), self.widths
        mean = f"{widths.mean():.4g}" if n else "undefined"
        empty, infinite = int((self.lower > self.upper).sum()), int(np.isinf(widths).sum())
        return f"PredictionIntervals(n={n}, mean width {mean}, empty {empty}, infinite {infinite})"

    def _repr_html_(self) -> str:
        """The first intervals as a table, for notebooks."""
        ends = zip(self.lower[:MOST_SHOWN].tolist(), self.upper[:MOST_SHOWN].tolist(), strict=True)
        rows = [(i, f"{low:.6g}", f"{high:.6g}") for i, (low, high) in enumerate(ends)]
        promised = promise_notes(self.promised)
        return html_table(repr(self), ("record", "lower", "upper"), rows, promised, total=len(self.lower))
